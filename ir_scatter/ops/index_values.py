"""Checks index values: which are out of range, and which select an element repeatedly.

Arguments are the indices as in the model, the known part of data's shape, and the axis. The *target* of an
index (for the ND operators, of a tuple of coordinates) is the element or slice that it selects.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from ir_scatter.core.shapes import Bounds, Dim, Shape, concatenate, highest, lowest
from ir_scatter.ops.spec import Layout

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_ANY = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class BadIndices:
    """The number of illegal index values, and position, value and legal range of the first.

    If the size of data is unknown, the range is that of 64-bit integers. If the size is 0, `high` is below
    `low`.
    """

    count: int
    position: tuple[int, ...]
    value: int
    low: int
    high: int

    @property
    def size(self) -> int | None:
        """The size of the dimension that the first value refers to; None if unknown."""
        return None if self.high == _ANY[1] else self.high + 1


@dataclass(frozen=True, slots=True)
class Repeats:
    """The number of repeated targets among `total` indices, and the first two indices with equal targets."""

    count: int
    total: int
    first: tuple[int, ...]
    earlier: tuple[int, ...]


def expected_updates(layout: Layout, data: Shape, indices: Shape, axes: Iterable[int]) -> list[Shape]:
    """Return the possible shapes of updates, one for each possible axis; empty if unknown."""
    if layout is Layout.ELEMENTS:
        return [] if indices is None else [indices]
    if data is None:
        return []
    if layout is Layout.SEQUENCE:  # any length up to that of data on the axis
        return [(*data[:axis], Bounds(0, highest(data[axis])), *data[axis + 1 :]) for axis in axes]
    if indices is None:
        return []
    if layout is Layout.SLICES:
        return [concatenate(data[:axis], indices, data[axis + 1 :]) for axis in axes]
    depth = indices[-1] if indices else None
    if not isinstance(depth, int) or depth > len(data):
        return []
    return [concatenate(indices[:-1], data[depth:])]


def whole_numbers(indices: "Array") -> "Array":
    """Convert indices of element types that NumPy lacks, such as i4, to i64 or u64."""
    if indices.dtype.isbuiltin == 1:
        return indices
    import numpy

    return indices.astype(numpy.uint64 if indices.dtype.kind == "u" else numpy.int64)


def from_front(indices: "Array", sizes: int | Sequence[int]) -> "Array":
    """Return indices as i64, with `sizes` added to negative ones: [2, -1] of size 3 becomes [2, 2].

    Indices out of range stay out of range.
    """
    import numpy

    wide = indices.astype(numpy.int64)
    return numpy.where(wide < 0, wide + numpy.asarray(sizes, numpy.int64), wide)


def sizes(
    layout: Layout, data: Shape, axis: int | None, indices: tuple[Dim, ...], run: int = 1
) -> list[int | None]:
    """Return the size that limits each index; for tuples one size for each coordinate.

    A bounded dimension counts with its upper bound: an index beyond it is certainly out of range. If an index
    is the start of `run` positions, the size is the number of possible starts.
    """
    if layout is Layout.TUPLES:
        depth = lowest(indices[-1])
        return [None] * depth if data is None else [highest(dim) for dim in data[:depth]]
    size = None if data is None or axis is None else highest(data[axis])
    return [None if size is None else size - run + 1]


def out_of_range(indices: "Array", limits: Sequence[int | None]) -> BadIndices | None:
    """Find the indices outside of [-s, s-1]."""
    return outside(indices, _ranges(limits))


def negative(indices: "Array", limits: Sequence[int | None]) -> BadIndices | None:
    """Find the negative indices that count from the end: -s to -1 on a dimension of size s."""
    columns = indices.reshape(-1, max(len(limits), 1))
    bad = columns < 0
    for number, s in enumerate(limits):
        if s is not None:
            bad[:, number] &= columns[:, number] >= -s
    return _bad(indices, bad, _ranges(limits))


def outside(indices: "Array", ranges: Sequence[tuple[int, int] | None]) -> BadIndices | None:
    """Find the indices outside of a (smallest, largest) range; for tuples one range for each coordinate."""
    columns = indices.reshape(-1, max(len(ranges), 1))
    bad = columns != columns
    for number, range in enumerate(ranges):
        if range is not None:
            bad[:, number] = (columns[:, number] < range[0]) | (columns[:, number] > range[1])
    return _bad(indices, bad, ranges)


def _ranges(limits: Sequence[int | None]) -> list[tuple[int, int] | None]:
    return [None if s is None else (-s, s - 1) for s in limits]


def _bad(indices: "Array", bad: "Array", ranges: Sequence[tuple[int, int] | None]) -> BadIndices | None:
    if not bad.any():
        return None
    first = int(bad.reshape(-1).argmax())
    low, high = ranges[first % len(ranges)] or _ANY
    value = int(indices.reshape(-1)[first])
    return BadIndices(int(bad.sum()), _position(first, indices.shape), value, low, high)


def repeats(
    layout: Layout, axis: int | None, indices: "Array", limits: Sequence[int | None], *, wraps: bool
) -> Repeats | None:
    """Find targets with several indices; None if there are none, or if it is unknown.

    With `wraps` a negative index counts from the end; otherwise it has its own target.
    """
    import numpy

    shape = indices.shape[:-1] if layout is Layout.TUPLES else indices.shape
    count, flat = prod(shape), target_numbers(layout, axis, indices, limits, wraps=wraps)
    if flat is None:
        return None
    ordered = numpy.sort(flat)
    if not bool((ordered[1:] == ordered[:-1]).any()):
        return None
    values, firsts, inverse = numpy.unique(flat, return_index=True, return_inverse=True)
    earlier = firsts[inverse.reshape(-1)]
    first = int(numpy.flatnonzero(earlier != numpy.arange(count))[0])
    places = _position(first, shape), _position(int(earlier[first]), shape)
    return Repeats(count - values.size, count, *places)


def target_numbers(
    layout: Layout, axis: int | None, indices: "Array", limits: Sequence[int | None], *, wraps: bool
) -> "Array | None":
    """Return a number for each index; equal numbers mean equal targets.

    None for fewer than two indices, or if targets are unknown. `wraps` as in `repeats`. Coordinates are the
    digits of a mixed-radix number; the lane (see `lanes`) is the highest digit.
    """
    import numpy

    shape = indices.shape[:-1] if layout is Layout.TUPLES else indices.shape
    count = prod(shape)
    if layout is Layout.SEQUENCE or (layout is Layout.ELEMENTS and axis is None) or count < 2:
        return None
    flat, span = numpy.zeros(count, numpy.int64), 1
    for number, s in enumerate(limits):
        column = indices.reshape(count, -1)[:, number].astype(numpy.int64)
        if wraps and indices.dtype.kind != "u" and int(column.min()) < 0:
            if s is None and int(column.max()) >= 0:
                return None
            column = numpy.where(column < 0, column + (s or 0), column)
        low = int(column.min())
        width = int(column.max()) - low + 1
        span *= width
        if span > 2**62:
            return None
        flat = flat * width + (column - low)
    flat += lanes(layout, axis, indices) * span
    return flat


def lanes(layout: Layout, axis: int | None, indices: "Array") -> "Array":
    """Return the lane number of each index; indices of different lanes never have the same target.

    With layout ELEMENTS a lane is a line of indices along the axis. Otherwise all indices are in lane 0.
    """
    import numpy

    shape = indices.shape[:-1] if layout is Layout.TUPLES else indices.shape
    if layout is not Layout.ELEMENTS or axis is None:
        return numpy.zeros(prod(shape), numpy.int64)
    sizes = [1 if number == axis % len(shape) else size for number, size in enumerate(shape)]
    grid = numpy.arange(prod(sizes)).reshape(sizes)
    return numpy.broadcast_to(grid, shape).reshape(-1).copy()


def _position(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    import numpy

    return tuple(map(int, numpy.unravel_index(flat, shape)))
