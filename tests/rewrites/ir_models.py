"""Models of one scatter node whose inputs come from outside, from the file or from plain operators."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.models.ir_text import Dims, IrText, Output
from tests.models.onnx_graph import OnnxGraph

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
    kind: str = "f32",
    more: Sequence[str] = (),
    **attributes: Any,
) -> bytes:
    """Write a model of one node; `indices` are a shape, or an array that the model holds."""
    graph = OnnxGraph(opset)
    graph.input("data", kind, data)
    if isinstance(indices, np.ndarray):
        graph.constant("indices", indices, np.int64)
    else:
        graph.input("indices", "i64", indices)
    graph.input("updates", kind, updates)
    names = ["data", "updates", "indices"] if type == "TensorScatter" else ["data", "indices", "updates"]
    graph.output(graph.add(type, [*names, *more], "result", "node", **attributes), kind, data)
    return bytes(graph.model().SerializeToString())
