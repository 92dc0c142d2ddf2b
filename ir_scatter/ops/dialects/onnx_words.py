"""Plain operations in ONNX's main domain, from opset 11 on."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ir_scatter.elements import ElementType
from ir_scatter.ops.dialects.written import Written

_Values: TypeAlias = Mapping[str, Any]
_Writer: TypeAlias = Callable[[_Values, int], Written]

_AXES_ARE_INPUTS = 13
_PRODUCT_AXES_ARE_INPUTS = 18
_ALLOW_ZERO = 14
_WHOLE_EXTREMES = 12
_NARROW_ARITHMETIC = 14
_NARROW = 32


def _fixed(type: str, **attributes: Any) -> _Writer:
    return lambda _, opset: Written(type, opset, attributes)


def _with_axes(type: str, first: int) -> _Writer:
    """Write axes as an attribute before an opset, as an input from it on."""

    def write(values: _Values, opset: int) -> Written:
        attributes = {"keepdims": int(values["keeps"])} if "keeps" in values else {}
        if opset < first:
            return Written(type, opset, {"axes": list(values["axes"]), **attributes})
        return Written(type, opset, attributes, (("axes", values["axes"]),))

    return write


def _reshape(_: _Values, opset: int) -> Written:
    """A 0 in the target is a dimension without positions, where that can be said."""
    return Written("Reshape", opset, {"allowzero": 1} if opset >= _ALLOW_ZERO else {})


OPERATIONS: Mapping[str, _Writer] = {
    "shape_of": _fixed("Shape"),
    "reshape": _reshape,
    "unsqueeze": _with_axes("Unsqueeze", _AXES_ARE_INPUTS),
    "broadcast": _fixed("Expand"),
    "concat": lambda values, opset: Written("Concat", opset, {"axis": values["axis"]}),
    "range": _fixed("Range"),
    "gather": lambda values, opset: Written("Gather", opset, {"axis": values["axis"]}),
    "gather_elements": lambda values, opset: Written("GatherElements", opset, {"axis": values["axis"]}),
    "gather_nd": _fixed("GatherND"),
    "slice": lambda values, opset: Written("Slice", opset, {}, (("axes", values["axes"]),)),
    "transpose": lambda values, opset: Written("Transpose", opset, {"perm": list(values["order"])}),
    "select": _fixed("Where"),
    "equal": _fixed("Equal"),
    "less": _fixed("Less"),
    "add": _fixed("Add"),
    "subtract": _fixed("Sub"),
    "multiply": _fixed("Mul"),
    "divide": _fixed("Div"),
    "floor_mod": _fixed("Mod"),
    "minimum": _fixed("Min"),
    "maximum": _fixed("Max"),
    "logical_and": _fixed("And"),
    "logical_or": _fixed("Or"),
    "logical_xor": _fixed("Xor"),
    "negative": _fixed("Neg"),
    "non_zero": _fixed("NonZero"),
    "convert": lambda values, opset: Written("Cast", opset, {"to": values["type"].onnx_number}),
    "reduce_prod": _with_axes("ReduceProd", _PRODUCT_AXES_ARE_INPUTS),
    "reduce_sum": _with_axes("ReduceSum", _AXES_ARE_INPUTS),
}


def takes(operation: str, type: ElementType, opset: int) -> bool:
    """Tell whether an operation that joins two numbers takes a type.

    Min and Max take whole numbers from opset 12 on, arithmetic those of 8 and 16 bits from 14 on.
    """
    if type.kind not in {"signed", "unsigned"}:
        return type.kind != "complex"
    if operation in {"minimum", "maximum"}:
        return opset >= _WHOLE_EXTREMES
    return type.bits >= _NARROW or opset >= _NARROW_ARITHMETIC
