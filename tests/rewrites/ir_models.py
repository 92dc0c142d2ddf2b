"""Models of one scatter node whose inputs come from outside, from the file or from plain operators."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.rules.ir_text import Dims, IrText, Output

Source = Callable[[IrText], Output]


def given(name: str, type: str = "f32", shape: Dims | None = ()) -> Source:
    """Take a value from outside."""
    return lambda ir: ir.parameter(name, type, shape)


def held(values: Any, type: str = "i64", name: str = "indices") -> Source:
    """Take a value that the file holds."""
    return lambda ir: ir.const(name, type, values)


def one_scatter(
    folder: Path,
    type: str,
    opset: str,
    data: Source,
    indices: Source,
    updates: Source,
    axis: Source | None = None,
    attributes: Mapping[str, str] | None = None,
    *,
    name: str = "scatter",
) -> str:
    """Write a model of one scatter node, whose output is called out, and a Result; return its path."""
    ir = IrText()
    known: dict[Source, Output] = {}  # one source at two inputs is one value
    sources = [data, indices, updates, *([axis] if axis is not None else [])]
    for source in sources:
        if source not in known:
            known[source] = source(ir)
    inputs = [known[source] for source in sources]
    outputs = [(inputs[0].precision, inputs[0].dims)]
    found = ir.add(name, type, opset, inputs, outputs, attributes, ports=' names="out"')
    ir.add("result", "Result", "opset1", [found], [])
    return ir.write(folder)


# ONNX


def one_onnx(
    type: str,
    opset: int,
    data: Sequence[int | str | None] | None,
    indices: Any,
    updates: Sequence[int | str | None] | None,
    *,
    kind: int = TensorProto.FLOAT,
    more: Sequence[str] = (),
    **attributes: Any,
) -> bytes:
    """Write a model of one node; `indices` are a shape, or an array that the model holds."""
    info, is_held = helper.make_tensor_value_info, isinstance(indices, np.ndarray)
    inputs = [info("data", kind, data), info("updates", kind, updates)]
    if not is_held:
        inputs.insert(1, info("indices", TensorProto.INT64, indices))
    names = ["data", "updates", "indices"] if type == "TensorScatter" else ["data", "indices", "updates"]
    graph = helper.make_graph(
        [helper.make_node(type, [*names, *more], ["result"], "node", **attributes)],
        "graph",
        inputs,
        [info("result", kind, data)],
        [numpy_helper.from_array(indices.astype(np.int64), "indices")] if is_held else [],
    )
    imports = [helper.make_opsetid("", opset)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())
