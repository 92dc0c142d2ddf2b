"""A reduction of slices computed before they are written, where no two meet in one slice."""

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, static
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.parts import counts_from_end, from_front
from ir_scatter.rewrites.reductions import joined
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.view import View


def tuples_joined(view: View, build: Builder) -> "Value | Refusal":
    """Return updates joined with the old values in their places."""
    indices, depth = view.indices, view.depth
    if depth == 0:  # they name all of data
        dims = build.shape_of(view.updates, "updates_shape")
        return joined(view, build, build.broadcast(view.data, dims, "old_values", view.updates.shape))
    if counts_from_end(view, build):
        indices = from_front(build, indices, counted_sizes(view, build), "places")
    return joined(view, build, build.gather_nd(view.data, indices, "old_values", view.updates.shape))


def counted_sizes(view: View, build: Builder) -> Value:
    """Return the dimensions of data that the coordinates of a tuple count on."""
    depth, shape = view.depth, view.data.shape
    known = static(None if depth is None or shape is None else shape[:depth])
    if known is not None:
        return build.constant(list(known), "sizes")
    if depth is None:
        dims = build.shape_of(view.indices, "indices_shape")
        stop = build.gather(dims, build.constant([-1], "last"), 0, "depth", (1,))
    else:
        stop = build.constant([depth], "depth")
    size = UNKNOWN_DIM if depth is None else depth
    begin = build.constant([0], "begin")
    return build.slice(build.shape_of(view.data, "data_shape"), begin, stop, [0], "sizes", (size,))
