"""A reduction of elements computed before they are written, where no two meet in one element."""

from ir_scatter.core.model import ONNX, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.grids import coordinates
from ir_scatter.rewrites.parts import counts_from_end, from_front, shape_with, size_on_axis, wide_indices
from ir_scatter.rewrites.reductions import joined
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.view import View


def elements_joined(view: View, build: Builder, *, are_slices: bool = False) -> "Value | Refusal":
    """Return updates joined with the old values in their places; updates as they are without those.

    Args:
        view: the node.
        build: makes the nodes.
        are_slices: whether indices reach all of data along the other axes.
    """
    if not view.keeps_initial:
        return view.updates
    return joined(view, build, _old_values(view, build, are_slices=are_slices))


def places_of(view: View, build: Builder) -> Value:
    """Return indices as elements can be taken with them."""
    if not counts_from_end(view, build):
        return view.indices
    return from_front(build, view.indices, size_on_axis(build, view), "places")


def _old_values(view: View, build: Builder, *, are_slices: bool) -> Value:
    """Return the elements that indices name.

    Where indices may reach a part of data only, an IR takes them by all of their coordinates:
    OpenVINO's optimizer drops a slice before `GatherElements` and then refuses its shapes.
    """
    axis, places = view.site.axis, places_of(view, build)
    shorter = None if axis is None else ([] if are_slices else _shorter(view, axis))
    if axis is not None and shorter is not None and (build.domain == ONNX or not shorter):
        reached = _reached(view, build, axis, shorter)
        return build.gather_elements(reached, wide_indices(build, places), axis, "old_values")
    tuples, new = coordinates(view, build, places)
    shape = None if tuples.shape is None else tuples.shape[:-1]
    found = build.gather_nd(view.data, tuples, "old_values", shape)
    if new is view.updates:
        return found
    dims = build.shape_of(view.updates, "updates_shape")
    return build.reshape(found, dims, "old_values_reshaped", view.updates.shape)


def _shorter(view: View, axis: int) -> list[int]:
    """Return the other axes along which indices may be shorter than data."""
    data, indices = view.data.shape, view.indices.shape
    others = [place for place in range(len(data or indices or ())) if place != axis]
    if data is None or indices is None:
        return others
    return [place for place in others if not _is_same(data[place], indices[place])]


def _reached(view: View, build: Builder, axis: int, others: list[int]) -> Value:
    """Return the part of data that indices reach along other axes."""
    data, indices = view.data.shape, view.indices.shape
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
