"""Reads a model from a path or bytes; the entry to all file formats."""

import mmap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ir_scatter import formats
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import open_regular
from ir_scatter.core.model import ONNX, OPENVINO, Model
from ir_scatter.core.shapes import Shape
from ir_scatter.formats.base import IR, Operators, ReadOptions
from ir_scatter.ops import general_use
from ir_scatter.ops.lookup import scatter_types

_OPERATORS = Operators(general_use.outputs, general_use.problem)


def read(
    path: str | Path,
    data: bytes | None = None,
    *,
    format: str | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
) -> Model:
    """Read an OpenVINO IR (`.xml` with `.bin`) or an ONNX model; weights are not loaded into memory.

    Args:
        path: the `.xml` or `.onnx` file.
        data: the content of the file as bytes, if it is not to be read from disk; `path` then only names it.
        format: "openvino-ir" or "onnx"; None to detect it from the content.
        input_shapes: shapes for inputs of the model by name, from `ir_scatter.core.shapes.parse_shape`; for
            ONNX they are propagated through the model.

    Raises:
        UnreadableModel: the file is not a model, or cannot be read.
    """
    types = scatter_types(ONNX) | scatter_types(OPENVINO)
    options = ReadOptions(types, types, _OPERATORS, input_shapes=input_shapes or {})
    return formats.read(str(path), data, format=format, options=options)


def read_written(model: Model, content: bytes, appended: bytes) -> Model:
    """Read a converted model that is not in a file yet.

    Args:
        model: the original model; the new one lies in the same folder.
        content: the content of the new file.
        appended: bytes to append to the weights of an IR.
    """
    types = scatter_types(ONNX) | scatter_types(OPENVINO)
    options = ReadOptions(types, types, _OPERATORS, appended=appended)
    has_folder = model.identity is not None
    return formats.read(model.path, content, format=model.format, options=options, has_folder=has_folder)


def files_beside(path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, description) of the other files of a model, such as its weights."""
    if formats.format_of(path) == IR:
        yield str(Path(path).with_suffix(".bin")), f"the weights of {path}"
        return
    try:
        with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            has_locations = data.find(b"location") >= 0
    except (OSError, ValueError):  # a folder, a pipe, an empty file
        return
    if has_locations:
        with suppress(UnreadableModel):
            model = read(path)
            for beside in formats.FORMATS[model.format].files_beside(model, Path(path)):
                yield str(beside.path), f"a file of {path}"
