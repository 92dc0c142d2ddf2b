"""Models of one general operator that rewrites emit, in every element type and rank, with known or dynamic sizes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from tests.models.ir_text import PRECISIONS, IrText, Output

SIZES = (2, 3, 1, 2, 1, 2)
_ODD_SIZES = (3, 3, 1, 3, 1, 3)
"""Sizes of an odd number of elements, so that those of 4 bits fill no whole bytes."""
RANKS = range(len(SIZES) + 1)
SHAPES = ("static", "bounded", "open")
"""Whether a file has sizes, upper bounds of 4, or neither."""

BINARY = (
    "Add", "Subtract", "Multiply", "Divide", "FloorMod", "Equal", "Less", "Minimum", "Maximum", "Concat",
)  # fmt: skip
SINGLE = ("Negative", "ShapeOf", "NonZero")
MOVING = ("Reshape", "Unsqueeze", "Broadcast", "Slice", "Transpose", "Gather", "GatherND", "GatherElements")
REDUCING = ("ReduceSum", "ReduceProd")
OPERATORS = (*BINARY, *SINGLE, *MOVING, *REDUCING, "Select")
CONVERSIONS = tuple(
    pair for type in ("i64", "i32", "f32") for pair in (f"Convert to {type}", f"Convert from {type}")
)
ALL = (*OPERATORS, *CONVERSIONS)

_WITHOUT_SCALARS = {
    "NonZero",
    "Concat",
    "Slice",
    "Transpose",
    "Gather",
    "GatherND",
    "GatherElements",
    *REDUCING,
}
_OPSETS = {
    "Broadcast": "opset3", "ShapeOf": "opset3", "NonZero": "opset3", "Slice": "opset8", "Gather": "opset8",
    "GatherND": "opset8", "GatherElements": "opset6",
}  # fmt: skip
_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    **{name: {"auto_broadcast": "numpy"} for name in (*BINARY, "Select")},
    "Concat": {"axis": "0"}, "Reshape": {"special_zero": "false"}, "Broadcast": {"mode": "numpy"},
    "ShapeOf": {"output_type": "i64"}, "NonZero": {"output_type": "i64"}, "Gather": {"batch_dims": "0"},
    "GatherND": {"batch_dims": "0"}, "GatherElements": {"axis": "0"},
    "ReduceSum": {"keep_dims": "false"}, "ReduceProd": {"keep_dims": "false"},
}  # fmt: skip
_RESULTS = {"Equal": "boolean", "Less": "boolean", "ShapeOf": "i64", "NonZero": "i64"}


class General(NamedTuple):
    """One general operator: "Reshape", or "Convert to i64"."""

    operator: str
    type: str
    rank: int
    shape: str

    @property
    def row(self) -> str:
        """The operator as a table names it."""
        return self.operator.partition(" ")[0]

    @property
    def rank_of_result(self) -> int:
        if self.row in {"Unsqueeze", "Broadcast"}:
            return self.rank + 1
        if self.row in REDUCING:
            return self.rank - 1
        return {"Reshape": 2, "ShapeOf": 1, "NonZero": 2}.get(self.row, self.rank)

    @property
    def is_possible(self) -> bool:
        """Whether there is such a node: some operators have no scalars, and a scalar has no sizes."""
        has_scalars = self.operator not in _WITHOUT_SCALARS
        return self.rank > 0 or (has_scalars and self.shape == "static")


def write_general(folder: Path, node: General) -> tuple[str, dict[str, Array]]:
    """Write an IR of one node, and return its path and inputs: small numbers, which every type holds."""
    PRECISIONS.setdefault(node.type, node.type.upper())
    ir, operator = IrText(), node.row
    sizes = (_ODD_SIZES if operator == "Concat" else SIZES)[: node.rank]
    types = _types(node)
    feeds, inputs = dict[str, Array](), list[Output]()
    for number, type in enumerate(types):
        name = "abc"[number]
        inputs.append(ir.parameter(name, type, _written(sizes, node.shape)))
        numbers = np.arange(np.prod(sizes, dtype=int)).reshape(sizes) % 2
        kind = dtype(ELEMENT_TYPES[type])
        feeds[name] = np.asarray(1 - numbers if number else numbers)
        if operator == "Divide":  # by something other than 0
            feeds[name] = np.asarray(0 * numbers + 1)
        if operator == "FloorMod":  # of a negative number, which is not the remainder of a division
            is_signed = type[0] in "fbi" and type != "f8e8m0"
            feeds[name] = np.asarray(0 * numbers + (2 if number else -1 if is_signed else 1))
        if kind is not None:
            feeds[name] = feeds[name].astype(kind)
    for number, values in enumerate(_constants(operator, node.rank)):
        inputs.append(ir.const(f"constant_{number}", "i64", values))
    attributes = dict(_ATTRIBUTES.get(operator, {}))
    result = _RESULTS.get(operator, types[-1])
    if operator == "Convert":
        result = node.operator.split()[-1] if " to " in node.operator else node.type
        attributes["destination_type"] = result
        PRECISIONS.setdefault(result, result.upper())
    rank = node.rank_of_result
    found = ir.add(
        "node", operator, _OPSETS.get(operator, "opset1"), inputs, [(result, [-1] * rank)], attributes
    )
    ir.add("result", "Result", "opset1", [found], [])
    return ir.write(folder), feeds


def _types(node: General) -> Sequence[str]:
    if node.operator.startswith("Convert from"):
        return [node.operator.split()[-1]]
    if node.operator == "Select":
        return ["boolean", node.type, node.type]
    return [node.type] * (2 if node.operator in BINARY else 1)


def _written(sizes: Sequence[int], shape: str) -> list[int | str]:
    return [*sizes] if shape == "static" else ["1..4" if shape == "bounded" else -1 for _ in sizes]


def _constants(operator: str, rank: int) -> list[Any]:
    """The inputs of an operator after its data, which the file holds."""
    constants: Mapping[str, list[Any]] = {
        "Reshape": [[-1, 1]], "Unsqueeze": [[0]], "Broadcast": [[2, *SIZES[:rank]]],
        "Slice": [[0], [1], [1], [0]], "Transpose": [[*range(rank)][::-1]], "Gather": [[0], 0],
        "GatherND": [[[0]]], "GatherElements": [np.zeros((1, *SIZES[1:rank]))], "ReduceSum": [[0]], "ReduceProd": [[0]],
    }  # fmt: skip
    return constants.get(operator, [])
