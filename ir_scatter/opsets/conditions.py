"""Whether the conditions of a fact hold for a node."""

from collections.abc import Callable, Mapping
from typing import Any

from ir_scatter.ops.opset_conditions import (
    AttributeIs,
    Condition,
    HasOutputs,
    IsNegative,
    IsWritten,
    MayBeNegative,
    MayCross,
    MayHaveOtherRank,
    MayHaveType,
    MayStartOutside,
)
from ir_scatter.opsets.draft import Draft


def holds(condition: Condition, draft: Draft) -> bool:
    """Tell whether a condition holds, or is not known not to hold.

    Raises:
        Refused: it depends on the calls of a function.
    """
    return _CHECKS[type(condition)](condition, draft)


def is_never_negative(draft: Draft, number: int) -> bool:
    """Tell whether an input is known to hold no negative number."""
    name = draft.input(number)
    element_type = draft.place.element_type(name)
    if element_type is not None and element_type.kind == "unsigned":
        return True
    array = draft.constant(name)
    return array is not None and not bool((array < 0).any())


def _attribute_is(condition: AttributeIs, draft: Draft) -> bool:
    return draft.attribute(condition.attribute, condition.default) in condition.values


def _is_written(condition: IsWritten, draft: Draft) -> bool:
    return draft.has(condition.attribute)


def _is_negative(condition: IsNegative, draft: Draft) -> bool:
    value = draft.attribute(condition.attribute, 0)
    return any(number < 0 for number in (value if isinstance(value, list) else [value]))


def _may_have_type(condition: MayHaveType, draft: Draft) -> bool:
    name = draft.input(condition.input)
    if not name:
        return False
    element_type = draft.place.element_type(name)
    return element_type is None or element_type.name in condition.types


def _may_have_other_rank(condition: MayHaveOtherRank, draft: Draft) -> bool:
    shape = draft.place.shape(draft.input(condition.input))
    return shape is None or len(shape) != condition.rank


def _may_be_negative(condition: MayBeNegative, draft: Draft) -> bool:
    return bool(draft.input(condition.input)) and not is_never_negative(draft, condition.input)


def _may_cross(condition: MayCross, draft: Draft) -> bool:
    names = draft.input(condition.low), draft.input(condition.high)
    if not all(names):
        return False
    low, high = map(draft.constant, names)
    return low is None or high is None or not bool((low <= high).all())


def _has_outputs(condition: HasOutputs, draft: Draft) -> bool:
    return any(draft.proto.output[condition.first :])


def _may_start_outside(_: MayStartOutside, draft: Draft) -> bool:
    kernel = draft.attribute("kernel_shape", [])
    strides, pads = draft.attribute("strides", [1] * len(kernel)), draft.attribute("pads", [])
    is_padded = any(pads) or draft.attribute("auto_pad", "NOTSET") not in {"NOTSET", "VALID"}
    has_gaps = any(step > size for size, step in zip(kernel, strides, strict=False))
    return is_padded or has_gaps or len(strides) != len(kernel)


_CHECKS: Mapping[type, Callable[[Any, Draft], bool]] = {
    AttributeIs: _attribute_is,
    IsWritten: _is_written,
    IsNegative: _is_negative,
    MayHaveType: _may_have_type,
    MayHaveOtherRank: _may_have_other_rank,
    MayBeNegative: _may_be_negative,
    MayCross: _may_cross,
    HasOutputs: _has_outputs,
    MayStartOutside: _may_start_outside,
}
