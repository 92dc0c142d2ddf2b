"""A path or bytes in, a model out: tells the readers of file formats what they must know of operators."""

from collections.abc import Mapping
from pathlib import Path

from ir_scatter import formats
from ir_scatter.core.model import ONNX, OPENVINO, Model
from ir_scatter.core.shapes import Shape
from ir_scatter.ops.lookup import scatter_types


def read(
    path: str | Path,
    data: bytes | None = None,
    *,
    format: str | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
) -> Model:
    """Read an OpenVINO IR (`.xml`, its `.bin` beside it) or an ONNX model; weights are mapped, not read.

    Args:
        path: the `.xml` or `.onnx` file.
        data: its bytes, where they did not come from the file of that name.
        format: "openvino-ir" or "onnx"; told by the content if None.
        input_shapes: shapes for inputs of the model by name, as `ir_scatter.core.shapes.parse_shape`
            reads them; for ONNX they are propagated.

    Raises:
        UnreadableModel: the file is no model, or cannot be read.
    """
    types = scatter_types(ONNX) | scatter_types(OPENVINO)
    return formats.read(
        str(path), data, format=format, types=types, scatter_types=types, input_shapes=input_shapes
    )
