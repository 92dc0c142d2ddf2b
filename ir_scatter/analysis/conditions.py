"""Conditions on indices that rewrites need to give equal results, and their proofs for a scatter node."""

from dataclasses import dataclass
from enum import StrEnum
from math import prod

from ir_scatter.analysis.equal_elements import varying_axes
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.symbolic import has_equal_sizes, is_never_negative, is_never_repeated
from ir_scatter.core.shapes import (
    LARGEST_DIM,
    Dim,
    agree_dims,
    element_count,
    highest,
    is_static,
    lowest,
    show_dim,
)
from ir_scatter.core.words import counted
from ir_scatter.ops import index_values
from ir_scatter.ops.spec import IndexRange, IndicesLimit, Layout, Reduction


class Condition(StrEnum):
    """A condition on indices that a rewrite may need; users can promise it (`--assume NAME`)."""

    UNIQUE = "unique-indices"
    """All indices have different targets."""
    NON_NEGATIVE = "non-negative-indices"
    """No index is negative."""
    EQUAL = "equal-indices"
    """Indices are equal along every axis except the scatter axis."""
    FULL = "full-indices"
    """Indices have the size of data on every axis except the scatter axis."""


class ProofState(StrEnum):
    """Whether the model proves a condition, violates it, or neither."""

    PROVEN = "proven"
    UNKNOWN = "unknown"
    VIOLATED = "violated"


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of proving a condition for a node, and the reason if it is violated: "indices hold -1"."""

    verdict: ProofState
    reason: str = ""


_PROVEN, _UNKNOWN = Proof(ProofState.PROVEN), Proof(ProofState.UNKNOWN)


def judge(condition: Condition, scatter: ScatterNode) -> Proof:
    return _JUDGES[condition](scatter)


def _unique(scatter: ScatterNode) -> Proof:
    count, room = index_count(scatter), position_count(scatter)
    if count is not None and count < 2:
        return _PROVEN
    array, limits = scatter.index_array, scatter.limits
    if count is not None and room is not None and count > room:
        return Proof(ProofState.VIOLATED, f"there are {count} indices for {counted(room, 'position')}")
    if array is None and scatter.certainly_repeats:
        return Proof(ProofState.VIOLATED, f"indices repeat a target: {scatter.certainly_repeats}")
    if array is None and is_never_repeated(scatter):
        return _PROVEN
    if array is None or limits is None or scatter.out_of_range is not None:
        return _UNKNOWN
    if scatter.spec.layout is Layout.ELEMENTS and scatter.axis is None:
        return _UNKNOWN
    is_negative = array.size > 0 and array.dtype.kind == "i" and int(array.min()) < 0
    if is_negative:  # their targets are known only if sizes are static
        data, axis = scatter.data_shape, scatter.axis
        if scatter.spec.layout is Layout.TUPLES:
            sizes = None if data is None else data[: scatter.depth]
        else:
            sizes = None if data is None or axis is None else (data[axis],)
        if not is_static(sizes):
            return _UNKNOWN
    repeats = scatter.repeats
    if is_negative and not scatter.wraps:
        repeats = index_values.repeats(scatter.spec.layout, scatter.axis, array, limits, wraps=True)
    if repeats is None:
        return _PROVEN
    return Proof(ProofState.VIOLATED, f"{repeats.count} of {repeats.total} indices repeat a target")


def index_count(scatter: ScatterNode) -> int | None:
    """Return the number of indices, None if unknown; for ScatterElements and its kin that along the axis."""
    shape, layout, axis = scatter.indices_shape, scatter.spec.layout, scatter.axis
    if shape is None or layout is Layout.SEQUENCE:
        return None
    if layout is Layout.TUPLES:
        return element_count(shape[:-1])
    if layout is Layout.SLICES or axis is None or 0 in shape:
        return element_count(shape)
    size = shape[axis] if axis < len(shape) else None
    return size if isinstance(size, int) else None


def has_too_many_indices(scatter: ScatterNode) -> bool:
    """Return whether computed indices outnumber the targets, so that some target repeats."""
    return index_excess(scatter) is not None


def index_excess(scatter: ScatterNode) -> tuple[int, int] | None:
    """Return (least number of indices, greatest number of positions) if indices outnumber positions.

    Both are counted along the axis if each index has a target of one element. None with a reduction. None for
    constant indices too, as their values are checked instead.
    """
    if scatter.reduction is not Reduction.NONE or scatter.has_constant_indices:
        return None
    if scatter.spec.indices_limit is IndicesLimit.EVERYWHERE or not scatter.indices_shape:
        return None
    count = _least_count(scatter)
    positions = None if not count else _most_positions(scatter)
    return (count, positions) if positions is not None and positions < count <= LARGEST_DIM else None


def _least_count(scatter: ScatterNode) -> int:
    """Return the least possible number of indices, counted as by `index_count`."""
    shape, layout, axis = scatter.indices_shape, scatter.spec.layout, scatter.axis
    if not shape or layout is Layout.SEQUENCE or 0 in shape:
        return 0
    if layout is Layout.ELEMENTS and axis is not None:
        return lowest(shape[axis]) if axis < len(shape) else 0
    return prod(map(lowest, shape[:-1] if layout is Layout.TUPLES else shape))


def _most_positions(scatter: ScatterNode) -> int | None:
    """Return the greatest possible number of different targets, None if it is unknown."""
    data, depth, axis = scatter.data_shape, scatter.depth, scatter.axis
    if data is None:
        return None
    if scatter.spec.layout is not Layout.TUPLES:
        return None if axis is None else highest(data[axis])
    if depth is None or depth > len(data):
        return None
    sizes = [highest(dim) for dim in data[:depth]]
    return 0 if 0 in sizes else None if None in sizes else prod(size for size in sizes if size is not None)


def position_count(scatter: ScatterNode) -> int | None:
    """Return the number of different targets, counted as by `index_count`; None if it is unknown."""
    data, depth, axis = scatter.data_shape, scatter.depth, scatter.axis
    if data is None:
        return None
    if scatter.spec.layout is Layout.TUPLES:
        return None if depth is None or depth > len(data) else element_count(data[:depth])
    size = None if axis is None else data[axis]
    return size if isinstance(size, int) else None


def _non_negative(scatter: ScatterNode) -> Proof:
    indices = scatter.indices
    if indices is None or (scatter.spec.index_range is IndexRange.NON_NEGATIVE and not scatter.wraps):
        return _PROVEN
    if indices.element_type is not None and indices.element_type.kind == "unsigned":
        return _PROVEN
    array = scatter.index_array
    if array is None:
        return _PROVEN if is_never_negative(scatter) else _UNKNOWN
    if not array.size or int(array.min()) >= 0:
        return _PROVEN
    return Proof(ProofState.VIOLATED, f"indices hold {int(array.min())}")


def _equal(scatter: ScatterNode) -> Proof:
    shape, axis, array = scatter.indices_shape, scatter.axis, scatter.index_array
    if shape is None or axis is None or scatter.indices is None or axis >= len(shape):
        return _UNKNOWN
    if array is not None:
        for dim in range(array.ndim):
            if dim != axis and array.shape[dim] > 1 and (array != array.take([0], axis=dim)).any():
                return Proof(ProofState.VIOLATED, f"indices differ along axis {dim}")
    full = _full(scatter)
    if full.verdict is ProofState.VIOLATED:
        return full
    is_column = all(dim == 1 for number, dim in enumerate(shape) if number != axis)
    if is_column or array is not None:
        return _PROVEN
    axes = varying_axes(scatter.facts, scatter.indices.value)
    return _PROVEN if axes is not None and axes <= {axis - len(shape)} else _UNKNOWN


def _full(scatter: ScatterNode) -> Proof:
    data, shape, axis = scatter.data_shape, scatter.indices_shape, scatter.axis
    if data is None or shape is None or len(data) != len(shape):
        return _UNKNOWN
    off_axis = [(place, *dims) for place, dims in enumerate(zip(data, shape, strict=True)) if place != axis]
    shorter = [(place, size, dim) for place, size, dim in off_axis if not agree_dims(size, dim)]
    if len(shorter) > (axis is None):  # if the axis is unknown, it may be one of them
        place, size, dim = shorter[0]
        covered = f"{show_dim(dim)} of {show_dim(size)} positions on axis {place}"
        return Proof(ProofState.VIOLATED, f"indices reach {covered}")
    return _PROVEN if all(_are_same(scatter, *each) for each in off_axis) else _UNKNOWN


def _are_same(scatter: ScatterNode, axis: int, left: Dim, right: Dim) -> bool:
    """Return whether data and indices have one size on an axis; one name in two inputs proves nothing."""
    if isinstance(left, int) or isinstance(right, int):
        return left == right
    return has_equal_sizes(scatter, axis)


_JUDGES = {
    Condition.UNIQUE: _unique,
    Condition.NON_NEGATIVE: _non_negative,
    Condition.EQUAL: _equal,
    Condition.FULL: _full,
}
