"""Tuples of coordinates as one number each, on data whose first dimensions are one."""

from dataclasses import dataclass
from math import prod

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, Shape, static
from ir_scatter.ops.spec import OpSpec, Reduction
from ir_scatter.rewrites.builder import BOOLEAN, I64, Builder
from ir_scatter.rewrites.folding import array_of
from ir_scatter.rewrites.parts import LAST, count_of, from_front, must_be_non_negative
from ir_scatter.rewrites.tuples_joined import counted_sizes
from ir_scatter.rewrites.view import View


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Data, indices and updates with one index for each tuple.

    Attributes:
        data: [product of the dimensions that tuples count on, the others...].
        indices: [count].
        updates: [count, the others...].
        column: indices as [count, 1] where the node has them so.
        is_flattened: whether the result must get the shape of data again.
    """

    data: Value
    indices: Value
    updates: Value
    column: Value | None
    is_flattened: bool


def linear(view: View, build: Builder, target: OpSpec) -> Linear:
    """Give every tuple one number.

    With one coordinate that is the coordinate itself. Otherwise data is reshaped so that the
    dimensions that tuples count on are one, and coordinates are joined row by row.
    """
    depth, column = view.depth, None
    dims = build.shape_of(view.data, "data_shape")
    if depth == 1:
        indices = view.indices
        if must_be_non_negative(view, target):
            first = view.data.shape[0] if view.data.shape else UNKNOWN_DIM
            size = _dim(build, dims, 0, first)
            indices = from_front(build, indices, size)
        flat, data = build.reshape(indices, [-1], "indices_flat", (UNKNOWN_DIM,)), view.data
        column = indices if indices.shape is not None and len(indices.shape) == 2 else None
    else:
        flat, data = _joined(view, build), _front_joined(view, build, dims)
    shape = _updates_shape(view, flat)
    if _is_one_list(view):
        updates = view.updates
    else:
        updates = build.reshape(
            view.updates, _target(build, flat, _others(view, build, dims), shape), "updates_reshaped", shape
        )
    if depth == 0:
        flat, updates = _last(view, build, flat, updates)
    return Linear(data, flat, updates, column, depth != 1)


def like_updates(view: View, build: Builder, parts: Linear, value: Value) -> Value:
    """Give a value of the shape of the node's updates that of the parts."""
    if parts.updates is view.updates:
        return value
    dims = build.shape_of(parts.updates, "updates_shape")
    return build.reshape(value, dims, "joined_reshaped", parts.updates.shape)


def _is_one_list(view: View) -> bool:
    """Tell whether there is one list of tuples, so that updates have the shape that is wanted."""
    data, indices, updates, depth = (
        view.data.shape, view.indices.shape, view.updates.shape, view.depth
    )  # fmt: skip
    if data is None or indices is None or updates is None or depth is None or len(indices) != 2:
        return False
    return len(updates) == 1 + len(data) - depth


def _target(build: Builder, flat: Value, others: Value, shape: Shape) -> "Value | list[int]":
    """Return the shape of updates with one dimension for all tuples."""
    known = array_of(others)
    if known is not None and known.all():  # beside a 0 a -1 could be anything
        return [-1, *known.tolist()]
    rank = None if shape is None else (len(shape),)
    return build.concat([count_of(build, flat, "count"), others], 0, "updates_shape", rank)


def _last(view: View, build: Builder, flat: Value, updates: Value) -> tuple[Value, Value]:
    """Return one of several tuples that name all of data where they are known to be several.

    Which update stays is open, so that the last one may.
    """
    count = flat.shape[0] if flat.shape else UNKNOWN_DIM
    if view.reduction is not Reduction.NONE or not isinstance(count, int) or count < 2:
        return flat, updates
    begin, end = build.constant([count - 1], "last_begin"), build.constant([count], "last_end")
    shape = None if updates.shape is None else (1, *updates.shape[1:])
    last = build.slice(updates, begin, end, [0], "last_update", shape)
    return build.constant([0], "indices_flat"), last


def _updates_shape(view: View, flat: Value) -> Shape:
    depth, data = view.depth, view.data.shape
    if depth is None or data is None:
        return None
    first: Dim = flat.shape[0] if flat.shape else UNKNOWN_DIM
    return (first, *data[depth:])


def _dim(build: Builder, dims: Value, place: int, known: Dim) -> Value:
    """Return one dimension as a scalar."""
    if isinstance(known, int):
        return build.constant(known, "size")
    return build.gather(dims, build.constant(place, "place"), 0, "size", ())


def _depth(view: View, build: Builder) -> Value:
    """Return the number of coordinates as [1]."""
    if view.depth is not None:
        return build.constant([view.depth], "depth")
    shape = build.shape_of(view.indices, "indices_shape")
    return build.gather(shape, build.constant([-1], "last"), 0, "depth", (1,))


def _others(view: View, build: Builder, dims: Value) -> Value:
    """Return the dimensions that tuples do not count on."""
    depth, shape = view.depth, view.data.shape
    known = static(None if shape is None or depth is None else shape[depth:])
    if known is not None:
        return build.constant(list(known), "other_dims")
    size = UNKNOWN_DIM if shape is None or depth is None else len(shape) - depth
    end = build.constant([LAST], "end")
    return build.slice(dims, _depth(view, build), end, [0], "other_dims", (size,))


def _front_joined(view: View, build: Builder, dims: Value) -> Value:
    """Return data with one dimension in the place of those that tuples count on."""
    depth, shape = view.depth, view.data.shape
    known: Shape = None
    if depth is not None and shape is not None:
        first = static(shape[:depth])
        known = (UNKNOWN_DIM if first is None else prod(first), *shape[depth:])
    others = _others(view, build, dims)
    numbers = array_of(others)
    if numbers is not None and numbers.all():
        return build.reshape(view.data, [-1, *numbers.tolist()], "data_joined", known)
    front = build.reduce("ReduceProd", counted_sizes(view, build), 0, "front_size", keeps=True)
    size = None if known is None else (len(known),)
    target = build.concat([front, others], 0, "data_joined_shape", size)
    return build.reshape(view.data, target, "data_joined", known)


def _joined(view: View, build: Builder) -> Value:
    """Return one number for each tuple, as one list."""
    indices = build.convert(view.indices, I64, "indices_i64")
    if view.depth == 0:
        return _zeros(view, build)
    counted = counted_sizes(view, build)
    if view.may_be_negative:
        indices = from_front(build, indices, counted)
    rows = build.binary("Multiply", indices, _strides(view, build, counted), "coordinates_scaled")
    numbers = build.reduce("ReduceSum", rows, -1, "indices_joined")
    return build.reshape(numbers, [-1], "indices_flat", (UNKNOWN_DIM,))


def _strides(view: View, build: Builder, counted: Value) -> Value:
    """Return how much one step of each coordinate counts: the product of the dimensions behind it."""
    depth = view.depth
    if depth is None:
        places = build.range(build.reshape(build.shape_of(counted, "depth"), [], "depth_scalar"), "places")
        rows = build.reshape(places, [-1, 1], "places_column", (UNKNOWN_DIM, 1))
        is_behind = build.binary("Less", rows, places, "is_behind")
    else:
        is_behind = build.constant(
            [[row < column for column in range(depth)] for row in range(depth)], "is_behind", BOOLEAN
        )
    table = build.select(is_behind, counted, build.constant(1, "one"), "dims_behind")
    return build.reduce("ReduceProd", table, 1, "strides")


def _zeros(view: View, build: Builder) -> Value:
    """Return a 0 for each tuple without coordinates: it names all of data."""
    shape = view.indices.shape
    known = static(None if shape is None else shape[:-1])
    if known is not None:
        count = build.constant([prod(known)], "count")
    else:
        dims = build.shape_of(view.indices, "indices_shape")
        begin, end = build.constant([0], "begin"), build.constant([-1], "last")
        size = UNKNOWN_DIM if shape is None else len(shape) - 1
        leading = build.slice(dims, begin, end, [0], "leading_dims", (size,))
        count = build.reduce("ReduceProd", leading, 0, "count", keeps=True)
    return build.broadcast(build.constant(0, "zero"), count, "indices_flat", (UNKNOWN_DIM,))
