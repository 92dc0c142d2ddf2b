"""A reduction of elements computed before they are written, where no two meet in one element."""

from ir_scatter.model import Value
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.parts import from_front, shape_with, size_on_axis
from ir_scatter.rewrites.reductions import joined
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rewrites.view import View
from ir_scatter.shapes import UNKNOWN_DIM, static


def elements_joined(view: View, build: Builder) -> "Value | Refusal":
    """Return updates joined with the old values in their places; updates as they are without those."""
    if not view.keeps_initial:
        return view.updates
    axis = view.site.axis
    if axis is None:
        message = "the axis is not known, expected a constant one to take the old values"
        return Refusal(Reason.NO_FORM, message)
    indices = view.indices
    if view.may_be_negative:
        indices = from_front(build, indices, size_on_axis(build, view), "places")
    reached = _reached(view, build, axis)
    return joined(view, build, build.gather_elements(reached, indices, axis, "old_values"))


def _reached(view: View, build: Builder, axis: int) -> Value:
    """Return the part of data that indices reach along the other axes.

    Where they are taken from, data may not be longer than indices there.
    """
    data, indices = view.data.shape, view.indices.shape
    rank = len(data or indices or ())
    others = [place for place in range(rank) if place != axis]
    if data is not None and indices is not None and static(data) and static(indices):
        others = [place for place in others if data[place] != indices[place]]
    if not others:
        return view.data
    begin = build.constant([0] * len(others), "begin")
    dims = build.shape_of(view.indices, "indices_shape")
    end = build.gather(dims, build.constant(others, "other_axes"), 0, "reached_end", (len(others),))
    known = shape_with(indices, axis, UNKNOWN_DIM if data is None else data[axis])
    return build.slice(view.data, begin, end, others, "data_reached", known)
