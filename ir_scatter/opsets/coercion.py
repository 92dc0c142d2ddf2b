"""Operators that took their input as a matrix up to some version, and work along one axis since."""

from ir_scatter.ops.opset_facts import Coerced, Misread
from ir_scatter.opsets.draft import Draft, Refused
from ir_scatter.shapes import Shape, counted

_FIRST_WITH_ALLOWZERO = 14


def separate(fact: Coerced, draft: Draft) -> None:
    """Make a node that took its input as a matrix work along one axis."""
    axis = draft.attribute("axis", fact.before)
    if _is_last(draft, axis):
        draft.write("axis", axis)
    else:
        _work_on_rows(draft, axis)


def protect(fact: Misread, draft: Draft) -> None:
    """Make a node that takes its input as a matrix say so, unless one axis is all it is about."""
    axis = draft.attribute("axis", fact.default)
    if not _is_last(draft, axis):
        _work_on_rows(draft, axis)


def unite(fact: Coerced, draft: Draft) -> None:
    """Make a node that works along one axis take its input as a matrix."""
    axis = draft.attribute("axis", fact.after)
    if not _is_last(draft, axis):
        raise Refused(f"it works along axis {axis}, and along all dimensions from there on before")
    shape = draft.place.shape(draft.input(0))
    draft.write("axis", axis if axis >= 0 or shape is None else axis + len(shape))


def _work_on_rows(draft: Draft, axis: int) -> None:
    if not any(draft.proto.output):
        return  # nobody can tell what it computes
    data = draft.input(0)
    shape = draft.make_node("Shape", [data], "shape")
    draft.connect(0, draft.make_node("Flatten", [data], "flattened", axis=axis))
    draft.write("axis", -1)
    # Before 14, a Reshape cannot say a dimension of 0 behind the second one: it stops there.
    keeps_zeros = {"allowzero": 1} if draft.target >= _FIRST_WITH_ALLOWZERO else {}
    draft.follow_with("Reshape", [shape], "along_rows", **keeps_zeros)


def _is_last(draft: Draft, axis: int) -> bool:
    shape = draft.place.shape(draft.input(0))
    if shape is not None and not -len(shape) <= axis < len(shape):
        raise Refused(f"its axis is {axis}, expected one of {counted(len(shape), 'dimension')}")
    return is_last(shape, axis)


def is_last(shape: Shape, axis: int) -> bool:
    """Tell whether nothing but dimensions of 1 is known to follow an axis, or there are no elements.

    A matrix with one row for each position in front of the axis then says the same as the axis.
    """
    if shape is None:
        return axis == -1
    return 0 in shape or all(dim == 1 for dim in shape[axis % max(len(shape), 1) + 1 :])
