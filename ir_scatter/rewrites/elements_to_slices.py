"""Indices that are equal along every other axis name whole slices: the fast form.

One list of indices along the axis is enough where indices are a broadcast of it, or constant and
equal along the other axes. Updates stay as they are: they already have the shape of the slices.
"""

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, agree_dims, show_dim
from ir_scatter.ops.scatter_openvino import (
    SCATTER_ELEMENTS_UPDATE_3,
    SCATTER_ELEMENTS_UPDATE_12,
    SCATTER_UPDATE_3,
)
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.conditions import Condition
from ir_scatter.rewrites.elements_joined import elements_joined
from ir_scatter.rewrites.parts import LAST, axis_of, from_front, must_be_non_negative, size_on_axis
from ir_scatter.rewrites.reductions import CARRIED, needs_unique
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> "Value | Refusal":
    gap = _uncovered(view)
    if gap is not None:
        return gap
    view.take_for_granted(Condition.FULL)
    updates = view.updates
    if view.reduction is not Reduction.NONE:
        joined = elements_joined(view, build, are_slices=True)
        if isinstance(joined, Refusal):
            return joined
        updates = joined
    indices = _one_list(view, build)
    if must_be_non_negative(view, target):
        indices = from_front(build, indices, size_on_axis(build, view))
    axis = view.site.operand(Role.AXIS)
    inputs = {
        Role.DATA: view.data,
        Role.INDICES: indices,
        Role.UPDATES: updates,
        Role.AXIS: axis.value if axis else None,
    }
    return build.scatter(target, inputs, {})


def _one_list(view: View, build: Builder) -> Value:
    """Return the indices at the first position of every other axis."""
    indices, axis = view.indices, view.site.axis
    shape = indices.shape
    if shape is None or axis is None:
        return _taken(view, build)
    others = [place for place in range(len(shape)) if place != axis]
    if not others:
        return indices
    cut = indices
    if any(shape[place] != 1 for place in others):
        begin, end = ([number] * len(others) for number in (0, 1))
        known = tuple(dim if place == axis else 1 for place, dim in enumerate(shape))
        ends = build.constant(begin, "begin"), build.constant(end, "end")
        cut = build.slice(indices, *ends, others, "indices_cut", known)
    return build.reshape(cut, [-1], "indices_list", (shape[axis],))


def _taken(view: View, build: Builder) -> Value:
    """Return the indices that lie one step on the axis apart, from the first on."""
    axis, dims = axis_of(build, view), build.shape_of(view.indices, "indices_shape")
    count = build.gather(dims, axis, 0, "count", ())
    after = build.reshape(build.binary("Add", axis, build.constant(1, "one"), "next_axis"), [1], "after_axis")
    behind = build.slice(dims, after, build.constant([LAST], "end"), [0], "dims_behind", (UNKNOWN_DIM,))
    step = build.reduce("ReduceProd", behind, 0, "step")
    places = build.binary("Multiply", build.range(count, "run"), step, "places")
    flat = build.reshape(view.indices, [-1], "indices_flat", (UNKNOWN_DIM,))
    return build.gather(flat, places, 0, "indices_list", (UNKNOWN_DIM,))


def _uncovered(view: View) -> Refusal | None:
    """Refuse indices that are known not to reach every position of another axis, or to have none."""
    data, indices, axis = view.data.shape, view.indices.shape, view.site.axis
    if data is None or indices is None or len(data) != len(indices):
        return None
    dims = [*enumerate(zip(data, indices, strict=True))]
    shorter = [place for place, (size, dim) in dims if place != axis and not agree_dims(size, dim)]
    if len(shorter) > (axis is None):  # one of them may be the axis
        place = shorter[0]
        reached = f"{show_dim(indices[place])} of {show_dim(data[place])}"
        message = f"indices reach {reached} positions on axis {place}, expected all of them"
        return Refusal(Reason.CONDITION_VIOLATED, message)
    for place, (_, dim) in dims:
        if dim == 0 and place != axis and axis is not None:
            message = f"indices have no position on axis {place}, so that no list of them can be told"
            return Refusal(Reason.NO_FORM, message)
    return None


def _requires(view: View, target: OpSpec) -> tuple[Condition, ...]:
    return (Condition.EQUAL, *needs_unique(view, target))


REWRITES = tuple(
    Rewrite(
        "elements-to-slices",
        source,
        SCATTER_UPDATE_3,
        _rewrite,
        carries=CARRIED,
        requires=_requires,
        reads=BY_SIGNATURE,
        conditions="equal indices along the other axes, as long as data there; a reduction: unique indices",
    )
    for source in (SCATTER_ELEMENTS_UPDATE_12, SCATTER_ELEMENTS_UPDATE_3)
)
