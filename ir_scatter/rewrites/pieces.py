"""Pieces that several rewrites are made of: axes, sizes, indices counted from the front, coordinates."""

from math import prod

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import ONNX, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, Shape, static
from ir_scatter.ops.spec import IndexRange, OpSpec, Role
from ir_scatter.rewrites.base import View
from ir_scatter.rewrites.builder import I64, LARGEST_FOLDED, Builder, array_of

WIDE = 32
"""Bits from which on an index can name every position of a dimension that it counts on from the end."""

_GATHERED = frozenset({"i32", "i64"})
"""The types of indices that `GatherElements` takes in both formats."""

LAST = 1 << 62
"""The end of a slice that goes to the end."""


def shape_with(shape: Shape, axis: int | None, dim: Dim) -> Shape:
    """Return a shape with another dimension on an axis; None if either is not known."""
    return None if shape is None or axis is None else (*shape[:axis], dim, *shape[axis + 1 :])


def _rank_of_data(view: View, build: Builder) -> Value:
    if view.data.shape is not None:
        rank = build.constant([len(view.data.shape)], "rank")
    else:
        rank = build.shape_of(build.shape_of(view.data, "shape"), "rank")
    return build.reshape(rank, [], "rank_scalar")


def axis_of(view: View, build: Builder) -> Value:
    """Return the axis counted from 0: a constant, or computed where axis or rank are not known."""
    written = view.scatter.written_axis
    known = written if view.scatter.axis is None else view.scatter.axis
    if known is not None and known >= 0:
        return build.constant(known, "axis")
    rank = _rank_of_data(view, build)
    if written is not None:
        return build.binary("Add", rank, build.constant(written, "negative_axis"), "axis")
    assert isinstance(view.given_axis, Value)
    axis = build.reshape(build.convert(view.given_axis, I64, "axis_i64"), [], "axis_scalar")
    is_negative = build.binary("Less", axis, build.constant(0, "zero"), "axis_is_negative")
    return build.select(is_negative, build.binary("Add", axis, rank, "axis_from_front"), axis, "axis_counted")


def positions(view: View, build: Builder) -> Value:
    """Return 0, 1, ..., rank of data - 1."""
    return build.range(_rank_of_data(view, build), "positions")


def axis_mask(view: View, build: Builder) -> Value:
    """Return for each axis of data whether it is the one that indices count on."""
    return build.binary("Equal", positions(view, build), axis_of(view, build), "is_axis")


def along(build: Builder, mask: Value, value: Value, label: str) -> Value:
    """Lay a list along the one axis that a mask names, with 1 on all other axes."""
    rest, one = build.constant(-1, "rest"), build.constant(1, "one")
    return build.reshape(value, build.select(mask, rest, one, f"{label}_shape"), label)


def is_first(build: Builder, places: Value) -> Value:
    return build.binary("Equal", places, build.constant(0, "zero"), "is_first")


def size_on_axis(view: View, build: Builder, value: Value | None = None, label: str = "size") -> Value:
    """Return the size on the axis as a scalar: that of data, or of another value of its rank."""
    axis, value = view.scatter.axis, value or view.data
    shape, dims = value.shape, "data_shape" if value is view.data else f"{label}_of"
    if axis is not None and shape is not None and isinstance(shape[axis], int):
        return build.constant(shape[axis], label)
    return build.gather(build.shape_of(value, dims), axis_of(view, build), 0, label, ())


def tuple_dims(view: View, build: Builder, *, are_front: bool = True) -> Value:
    """Return the dimensions of data that the coordinates of a tuple count on, or the others."""
    depth, shape, label = view.depth, view.data.shape, "sizes" if are_front else "other_dims"
    part = None if depth is None or shape is None else shape[:depth] if are_front else shape[depth:]
    known = static(part)
    if known is not None:
        return build.constant(list(known), label)
    if depth is not None:
        at = build.constant([depth], "depth")
    else:
        index_dims = build.shape_of(view.indices, "indices_shape")
        at = build.gather(index_dims, build.constant([-1], "last"), 0, "depth", (1,))
    begin = build.constant([0], "begin") if are_front else at
    end = at if are_front else build.constant([LAST], "end")
    size = UNKNOWN_DIM if part is None else len(part)
    return build.slice(build.shape_of(view.data, "data_shape"), begin, end, [0], label, (size,))


def count_of(build: Builder, value: Value, label: str) -> Value:
    """Return the number of elements as [1]."""
    known = static(value.shape)
    if known is not None:
        return build.constant([prod(known)], label)
    is_list = value.shape is not None and len(value.shape) == 1
    flat = value if is_list else build.reshape(value, [-1], f"{label}_flat", (UNKNOWN_DIM,))
    return build.shape_of(flat, label)


def fitting_indices(build: Builder, indices: Value, target: OpSpec | None = None) -> Value:
    """Return indices in a type that the target takes, or without one that `GatherElements` takes."""
    port, type = target.port(Role.INDICES) if target else None, indices.element_type
    allowed = port.element_types if port else _GATHERED
    is_fitting = len(allowed) > len(_GATHERED) if type is None else type.name in allowed
    return indices if is_fitting else build.convert(indices, I64, "indices_i64")


def is_strict(target: OpSpec) -> bool:
    """Tell whether a row forbids indices that count from the end."""
    return target.index_range is IndexRange.NON_NEGATIVE


def must_be_non_negative(view: View, target: OpSpec) -> bool:
    return is_strict(target) and not view.promises.keeps_negative and view.may_be_negative


def counts_from_end(view: View, build: Builder) -> bool:
    """Tell whether indices must be counted from the front before elements are taken with them."""
    return view.may_be_negative and build.domain != ONNX


def in_type(build: Builder, numbers: Value, type: ElementType, label: str) -> Value:
    """Return whole numbers in the type of indices, which is wide enough for positions."""
    known = array_of(numbers)
    if known is None:
        return build.convert(numbers, type, f"{label}_converted")
    return build.constant(known.astype("int64").clip(max=(1 << (type.bits - 1)) - 1), label, type)


def from_front(build: Builder, indices: Value, sizes: Value, label: str = "indices_non_negative") -> Value:
    """Add the size of the dimension to negative indices; those that are out of range stay out of range.

    `sizes` are what indices count on, whole numbers that are broadcast to them.
    """
    type = indices.element_type
    if type is None or type.bits < WIDE:
        indices, type = build.convert(indices, I64, "indices_i64"), I64
    sizes = in_type(build, sizes, type, "sizes")
    is_negative = build.binary("Less", indices, build.constant(0, "zero", type), "indices_are_negative")
    return build.select(is_negative, build.binary("Add", indices, sizes, "indices_wrapped"), indices, label)


def element_indices(view: View, build: Builder, target: OpSpec) -> Value:
    """Return indices, counted from the front if the target demands it."""
    if not must_be_non_negative(view, target):
        return view.indices
    return from_front(build, view.indices, size_on_axis(view, build))


def coordinates(view: View, build: Builder, indices: Value) -> tuple[Value, Value]:
    """Return a tuple of coordinates for each update, and updates in the shape that fits.

    Where the rank and the axis are known, tuples have the dimensions of indices before their own;
    otherwise they are one list, and updates are flattened. `indices` are those of the node, or what
    stands for them.
    """
    indices = build.convert(indices, I64, "indices_i64")
    axis, shape, data = view.scatter.axis, view.indices.shape, view.data.shape
    if shape is None and data is not None:
        shape = (UNKNOWN_DIM,) * len(data)
    if axis is None or shape is None:
        ones = build.broadcast(
            build.constant(1, "one"), build.shape_of(view.indices, "indices_shape"), "ones"
        )
        count = UNKNOWN_DIM if ones.shape is None else len(ones.shape)
        found = build.make("NonZero", [ones], (count, UNKNOWN_DIM), "positions_by_axis", I64)
        grid = build.transpose(found, build.constant([1, 0], "swap"), "positions_by_element")
        rows = build.reshape(indices, [-1, 1], "indices_column", (UNKNOWN_DIM, 1))
        tuples = build.select(axis_mask(view, build), rows, grid, "coordinates")
        return tuples, build.reshape(view.updates, [-1], "updates_flat", (UNKNOWN_DIM,))
    rank = len(shape)
    dims = build.shape_of(view.indices, "indices_shape")
    column_shape = build.concat([dims, build.constant([1], "one_column")], 0, "column_shape", (rank + 1,))
    columns = []
    for place, dim in enumerate(shape):
        if place == axis:
            columns.append(build.unsqueeze(indices, [rank], "indices_unsqueezed"))
            continue
        if isinstance(dim, int) and dim <= LARGEST_FOLDED:
            numbers = build.constant(range(dim), f"positions_{place}")
        else:
            size = build.gather(dims, build.constant(place, "place"), 0, f"size_{place}", ())
            numbers = build.range(size, f"positions_{place}")
        others = [number for number in range(rank + 1) if number != place]
        column = build.unsqueeze(numbers, others, f"column_{place}")
        columns.append(build.broadcast(column, column_shape, f"coordinates_{place}", (*shape, 1)))
    return build.concat(columns, rank, "coordinates", (*shape, rank)), view.updates
