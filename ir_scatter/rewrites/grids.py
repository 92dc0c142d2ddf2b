"""The coordinates of every element that indices name."""

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites.builder import I64, LARGEST_FOLDED, Builder
from ir_scatter.rewrites.parts import axis_mask, must_be_non_negative, size_on_axis
from ir_scatter.rewrites.parts import from_front as counted_from_front
from ir_scatter.rewrites.view import View


def element_indices(view: View, build: Builder, target: OpSpec) -> Value:
    """Return indices, counted from the front if the target demands it."""
    if not must_be_non_negative(view, target):
        return view.indices
    return counted_from_front(build, view.indices, size_on_axis(build, view))


def coordinates(view: View, build: Builder, indices: Value) -> tuple[Value, Value]:
    """Return a tuple of coordinates for each update, and updates in the shape that fits.

    Where the rank and the axis are known, tuples have the dimensions of indices before their own;
    otherwise they are one list, and updates are flattened.

    Args:
        view: the node.
        build: makes the nodes.
        indices: those of the node, or what stands for them.
    """
    indices = build.convert(indices, I64, "indices_i64")
    axis, shape = view.site.axis, _indices_shape(view)
    if axis is None or shape is None:
        return _list(view, build, indices)
    rank = len(shape)
    dims = build.shape_of(view.indices, "indices_shape")
    column_shape = build.concat([dims, build.constant([1], "one_column")], 0, "column_shape", (rank + 1,))
    columns = []
    for place in range(rank):
        if place == axis:
            columns.append(build.unsqueeze(indices, [rank], "indices_unsqueezed"))
            continue
        dim = shape[place]
        if isinstance(dim, int) and dim <= LARGEST_FOLDED:
            numbers = build.constant(range(dim), f"positions_{place}")
        else:
            size = build.gather(dims, build.constant(place, "place"), 0, f"size_{place}", ())
            numbers = build.range(size, f"positions_{place}")
        others = [number for number in range(rank + 1) if number != place]
        column = build.unsqueeze(numbers, others, f"column_{place}")
        columns.append(build.broadcast(column, column_shape, f"coordinates_{place}", (*shape, 1)))
    return build.concat(columns, rank, "coordinates", (*shape, rank)), view.updates


def _indices_shape(view: View) -> Shape:
    """Return the shape of indices; of unknown dimensions where only the rank of data is known."""
    if view.indices.shape is not None:
        return view.indices.shape
    return None if view.data.shape is None else (UNKNOWN_DIM,) * len(view.data.shape)


def _list(view: View, build: Builder, indices: Value) -> tuple[Value, Value]:
    """Return one list of tuples: the positions of all elements of indices, the axis replaced."""
    ones = build.broadcast(build.constant(1, "one"), build.shape_of(view.indices, "indices_shape"), "ones")
    found = build.non_zero(ones, "positions_by_axis")
    grid = build.transpose(found, build.constant([1, 0], "swap"), "positions_by_element")
    rows = build.reshape(indices, [-1, 1], "indices_column", (UNKNOWN_DIM, 1))
    tuples = build.select(axis_mask(build, view), rows, grid, "coordinates")
    return tuples, build.reshape(view.updates, [-1], "updates_flat", (UNKNOWN_DIM,))
