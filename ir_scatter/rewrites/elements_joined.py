"""A reduction of elements computed before they are written, where no two meet in one element."""

from ir_scatter.model import Value
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.grids import coordinates
from ir_scatter.rewrites.parts import counts_from_end, from_front, shape_with, size_on_axis
from ir_scatter.rewrites.reductions import joined
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.view import View
from ir_scatter.shapes import UNKNOWN_DIM, Dim


def elements_joined(view: View, build: Builder) -> "Value | Refusal":
    """Return updates joined with the old values in their places; updates as they are without those."""
    if not view.keeps_initial:
        return view.updates
    return joined(view, build, _old_values(view, build))


def places_of(view: View, build: Builder) -> Value:
    """Return indices as elements can be taken with them."""
    if not counts_from_end(view, build):
        return view.indices
    return from_front(build, view.indices, size_on_axis(build, view), "places")


def _old_values(view: View, build: Builder) -> Value:
    """Return the elements that indices name."""
    axis, places = view.site.axis, places_of(view, build)
    if axis is not None:
        reached = _reached(view, build, axis)
        return build.gather_elements(reached, places, axis, "old_values")
    tuples, _ = coordinates(view, build, places)
    flat = build.gather_nd(view.data, tuples, "old_values_flat", (UNKNOWN_DIM,))
    dims = build.shape_of(view.updates, "updates_shape")
    return build.reshape(flat, dims, "old_values", view.updates.shape)


def _reached(view: View, build: Builder, axis: int) -> Value:
    """Return the part of data that indices reach along the other axes.

    Where they are taken from, data may not be longer than indices there.
    """
    data, indices = view.data.shape, view.indices.shape
    rank = len(data or indices or ())
    others = [place for place in range(rank) if place != axis]
    if data is not None and indices is not None:
        others = [place for place in others if not _is_same(data[place], indices[place])]
    if not others:
        return view.data
    begin = build.constant([0] * len(others), "begin")
    dims = build.shape_of(view.indices, "indices_shape")
    end = build.gather(dims, build.constant(others, "other_axes"), 0, "reached_end", (len(others),))
    known = shape_with(indices, axis, UNKNOWN_DIM if data is None else data[axis])
    return build.slice(view.data, begin, end, others, "data_reached", known)


def _is_same(size: Dim, dim: Dim) -> bool:
    """Tell whether both are one known number: a dimension that is not known may be a smaller one."""
    return isinstance(size, int) and size == dim
