"""IRs of one scatter node whose inputs come from Parameters, Consts or plain operators."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.rules.ir_text import Dims, IrText, Output

Source = Callable[[IrText], Output]


def given(name: str, type: str = "f32", shape: Dims | None = ()) -> Source:
    """Take a value from outside."""
    return lambda ir: ir.parameter(name, type, shape)


def held(values: Any, type: str = "i64", name: str = "indices") -> Source:
    """Take a value that the file holds."""
    return lambda ir: ir.const(name, type, values)


def add_scatter(
    ir: IrText,
    type: str,
    opset: str,
    inputs: list[Output],
    name: str = "scatter",
    attributes: Mapping[str, str] | None = None,
) -> Output:
    """Add a scatter node."""
    return ir.add(name, type, opset, inputs, [(inputs[0].precision, inputs[0].dims)], attributes)


def one_scatter(
    folder: Path,
    type: str,
    opset: str,
    data: Source,
    indices: Source,
    updates: Source,
    axis: Source | None = None,
    attributes: Mapping[str, str] | None = None,
) -> str:
    """Write a model of one scatter node and a Result; return its path."""
    ir = IrText()
    sources = [data, indices, updates, *([axis] if axis is not None else [])]
    known: dict[Source, Output] = {}
    for source in sources:  # one source at two inputs is one value
        if source not in known:
            known[source] = source(ir)
    inputs = [known[source] for source in sources]
    found = add_scatter(ir, type, opset, inputs, attributes=attributes)
    ir.add("result", "Result", "opset1", [found], [])
    return ir.write(folder)
