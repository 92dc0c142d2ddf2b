"""Pieces that several rewrites are made of: axes, sizes, and indices made non-negative."""

from collections.abc import Set

from ir_scatter.core.model import ONNX, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, Shape, static
from ir_scatter.ops.spec import IndexRange, OpSpec, Role
from ir_scatter.rewrites.builder import I64, Builder
from ir_scatter.rewrites.folding import array_of
from ir_scatter.rewrites.view import View

_WIDE = 32
"""Bits from which on an index can name every position of a dimension that it counts on from the end."""

GATHERED = frozenset({"i32", "i64"})
"""The types of indices that `GatherElements` takes in both formats."""

LAST = 1 << 62
"""The end of a slice that goes to the end."""


def shape_with(shape: Shape, axis: int | None, dim: Dim) -> Shape:
    """Return a shape with another dimension on an axis; None if either is not known."""
    if shape is None or axis is None:
        return None
    return (*shape[:axis], dim, *shape[axis + 1 :])


def rank_of(build: Builder, value: Value, label: str = "rank") -> Value:
    """Return the rank of a value as [1]."""
    if value.shape is not None:
        return build.constant([len(value.shape)], label)
    return build.shape_of(build.shape_of(value, "shape"), label)


def scalar(build: Builder, value: Value, label: str) -> Value:
    """Return a value of one element as a scalar."""
    return build.reshape(value, [], label)


def axis_of(build: Builder, view: View) -> Value:
    """Return the axis counted from 0: a constant, or computed where axis or rank are not known."""
    site = view.site
    if site.axis is not None:
        return build.constant(site.axis, "axis")
    written = site.written_axis
    if written is not None and written >= 0:
        return build.constant(written, "axis")
    rank = scalar(build, rank_of(build, view.data), "rank_scalar")
    if written is not None:
        return build.binary("Add", rank, build.constant(written, "negative_axis"), "axis")
    operand = site.operand(Role.AXIS)
    assert operand is not None
    axis = scalar(build, build.convert(operand.value, I64, "axis_i64"), "axis_scalar")
    is_negative = build.binary("Less", axis, build.constant(0, "zero"), "axis_is_negative")
    from_front = build.binary("Add", axis, rank, "axis_from_front")
    return build.select(is_negative, from_front, axis, "axis_counted")


def positions(build: Builder, view: View) -> Value:
    """Return 0, 1, ..., rank of data - 1."""
    return build.range(scalar(build, rank_of(build, view.data), "rank_scalar"), "positions")


def axis_mask(build: Builder, view: View) -> Value:
    """Return for each axis of data whether it is the one that indices count on."""
    return build.binary("Equal", positions(build, view), axis_of(build, view), "is_axis")


def size_on_axis(build: Builder, view: View) -> Value:
    """Return the size of data on the axis as a scalar."""
    axis, shape = view.site.axis, view.data.shape
    if axis is not None and shape is not None and isinstance(shape[axis], int):
        return build.constant(shape[axis], "size")
    dims = build.shape_of(view.data, "data_shape")
    return build.gather(dims, axis_of(build, view), 0, "size", ())


def count_of(build: Builder, value: Value, label: str) -> Value:
    """Return the number of elements as [1]."""
    known = static(value.shape)
    if known is not None:
        count = 1
        for dim in known:
            count *= dim
        return build.constant([count], label)
    is_list = value.shape is not None and len(value.shape) == 1
    flat = value if is_list else build.reshape(value, [-1], f"{label}_flat", (UNKNOWN_DIM,))
    return build.shape_of(flat, label)


def fitting_indices(build: Builder, indices: Value, target: OpSpec) -> Value:
    """Return indices in a type that the target takes."""
    port = target.port(Role.INDICES)
    return wide_indices(build, indices, port.element_types if port is not None else frozenset())


def wide_indices(build: Builder, indices: Value, allowed: Set[str] = GATHERED) -> Value:
    """Return indices in one of some types that are allowed; by default those of `GatherElements`."""
    type = indices.element_type
    is_fitting = len(allowed) > len(GATHERED) if type is None else type.name in allowed
    return indices if is_fitting else build.convert(indices, I64, "indices_i64")


def is_strict(target: OpSpec) -> bool:
    """Tell whether a row forbids indices that count from the end."""
    return target.index_range is IndexRange.NON_NEGATIVE


def must_be_non_negative(view: View, target: OpSpec) -> bool:
    """Tell whether indices have to be counted from the front for a target."""
    return is_strict(target) and not view.keeps_negative and view.may_be_negative


def counts_from_end(view: View, build: Builder) -> bool:
    """Tell whether indices must be counted from the front before elements are taken with them."""
    return view.may_be_negative and build.domain != ONNX


def from_front(build: Builder, indices: Value, sizes: Value, label: str = "indices_non_negative") -> Value:
    """Add the size of the dimension to negative indices.

    Indices that are out of range stay out of range.

    Args:
        build: makes the nodes.
        indices: of an integer type, or of one that is not known.
        sizes: what they count on, whole numbers that are broadcast to them.
        label: what the result is.
    """
    type = indices.element_type
    if type is None or type.bits < _WIDE:
        indices, type = build.convert(indices, I64, "indices_i64"), I64
    known = array_of(sizes)
    if known is not None:
        sizes = build.constant(known.astype("int64"), "sizes", type)
    else:
        sizes = build.convert(sizes, type, "sizes_converted")
    is_negative = build.binary("Less", indices, build.constant(0, "zero", type), "indices_are_negative")
    return build.select(is_negative, build.binary("Add", indices, sizes, "indices_wrapped"), indices, label)
