"""Build ONNX files with onnx.helper."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64

Tensors = Mapping[str, tuple[int, Sequence[int | str]]]
"""Element type and shape by name."""


def save_onnx(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Tensors,
    outputs: Tensors,
    constants: Mapping[str, Any],
    opset: int,
    functions: Sequence[onnx.FunctionProto] = (),
) -> None:
    """Save a model of IR version 10 with its own opset."""
    graph = helper.make_graph(
        list(nodes),
        path.stem,
        [helper.make_tensor_value_info(name, *what) for name, what in inputs.items()],
        [helper.make_tensor_value_info(name, *what) for name, what in outputs.items()],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    if functions:
        imports.append(helper.make_opsetid("samples", 1))
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)
    model.producer_name = "ir_scatter samples"
    path.write_bytes(model.SerializeToString(deterministic=True))


def node(type: str, name: str, *inputs: str, **attributes: Any) -> onnx.NodeProto:
    """Make a node that writes to an output of its own name."""
    return helper.make_node(type, list(inputs), [name], name, **attributes)


def ints(*values: Any) -> Any:
    """Make an int64 array."""
    return np.array(values, np.int64)
