"""Plain operations in OpenVINO's opsets."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ir_scatter.ops.dialects.written import Written

_Values: TypeAlias = Mapping[str, Any]
_Writer: TypeAlias = Callable[[_Values], Written]


def _fixed(type: str, opset: str, **attributes: str) -> _Writer:
    written = Written(type, opset, attributes)
    return lambda _: written


def _binary(type: str) -> _Writer:
    return _fixed(type, "opset1", auto_broadcast="numpy")


def _reduce(type: str) -> _Writer:
    return lambda values: Written(
        type,
        "opset1",
        {"keep_dims": "true" if values["keeps"] else "false"},
        (("axes", values["axes"]),),
    )


OPERATIONS: Mapping[str, _Writer] = {
    "shape_of": _fixed("ShapeOf", "opset3", output_type="i64"),
    "reshape": _fixed("Reshape", "opset1", special_zero="false"),
    "unsqueeze": lambda values: Written("Unsqueeze", "opset1", {}, (("axes", values["axes"]),)),
    "broadcast": _fixed("Broadcast", "opset3", mode="numpy"),
    "concat": lambda values: Written("Concat", "opset1", {"axis": str(values["axis"])}),
    "range": _fixed("Range", "opset4", output_type="i64"),
    "gather": lambda values: Written("Gather", "opset8", {"batch_dims": "0"}, (("axis", values["axis"]),)),
    "gather_elements": lambda values: Written("GatherElements", "opset6", {"axis": str(values["axis"])}),
    "gather_nd": _fixed("GatherND", "opset8", batch_dims="0"),
    "slice": lambda values: Written(
        "Slice", "opset8", {}, (("step", [1] * len(values["axes"])), ("axes", values["axes"]))
    ),
    "transpose": _fixed("Transpose", "opset1"),
    "select": _binary("Select"),
    "equal": _binary("Equal"),
    "less": _binary("Less"),
    "add": _binary("Add"),
    "subtract": _binary("Subtract"),
    "multiply": _binary("Multiply"),
    "divide": _binary("Divide"),
    "floor_mod": _binary("FloorMod"),
    "minimum": _binary("Minimum"),
    "maximum": _binary("Maximum"),
    "logical_and": _binary("LogicalAnd"),
    "logical_or": _binary("LogicalOr"),
    "logical_xor": _binary("LogicalXor"),
    "negative": _fixed("Negative", "opset1"),
    "non_zero": _fixed("NonZero", "opset3", output_type="i64"),
    "convert": lambda values: Written("Convert", "opset1", {"destination_type": values["type"].name}),
    "reduce_prod": _reduce("ReduceProd"),
    "reduce_sum": _reduce("ReduceSum"),
}
