"""Which positions of data the indices name: ranges and repetitions, one view for each layout.

Every function takes indices as they are, the shape of data as far as it is known, and the axis. It
answers in the terms of the document: an index, or for the ND operators a tuple of coordinates,
names a *target*.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ir_scatter.core.shapes import Bounds, Shape, concatenate, highest
from ir_scatter.ops.spec import Layout

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_FEW = 64
"""Up to so many numbers Python's own min, max and set are quicker than NumPy's calls."""

_ANY = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class BadIndices:
    """Index values that are outside of a range.

    Attributes:
        count: how many there are.
        position: that of the first, in indices.
        value: that of the first.
        low: the least value in range there; that of 64 bits if the size is not known.
        high: the greatest value in range there; below `low` if there is none.
    """

    count: int
    position: tuple[int, ...]
    value: int
    low: int
    high: int

    @property
    def size(self) -> int | None:
        """The size of the dimension that the first counts on; None if it is not known."""
        return None if self.high == _ANY[1] else self.high + 1


@dataclass(frozen=True, slots=True)
class Repeats:
    """Targets that are named more than once.

    Attributes:
        count: how many indices or tuples name a target that an earlier one has named.
        total: how many there are in all.
        first: the position of the first that repeats.
        earlier: the position of the one it repeats.
    """

    count: int
    total: int
    first: tuple[int, ...]
    earlier: tuple[int, ...]


def expected_updates(layout: Layout, data: Shape, indices: Shape, axes: Iterable[int]) -> list[Shape]:
    """Return the shapes that updates may have; empty if nothing is known.

    Args:
        layout: how indices, updates and data belong together.
        data: the shape of data.
        indices: the shape of indices.
        axes: the axes that are possible, counted from 0: there is one shape for each.
    """
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


def from_front(indices: "Array", sizes: int | Sequence[int]) -> "Array":
    """Return indices with negative ones counted from the front; those that are out of range stay so.

    Args:
        indices: of a type of NumPy's own.
        sizes: what they count on: one number, or for tuples one for each coordinate.

    Returns:
        An array of i64.
    """
    import numpy

    wide = indices.astype(numpy.int64)
    return numpy.where(wide < 0, wide + numpy.asarray(sizes, numpy.int64), wide)


def sizes(layout: Layout, data: Shape, axis: int | None, indices: tuple[int, ...]) -> list[int | None]:
    """Return the size that indices count on: one, or for tuples one for each coordinate.

    A dimension that is only bounded counts with its upper bound: what is outside of that is outside.
    """
    if layout is Layout.TUPLES:
        depth = indices[-1]
        return [None] * depth if data is None else [highest(dim) for dim in data[:depth]]
    return [None if data is None or axis is None else highest(data[axis])]


def out_of_range(indices: "Array", limits: Sequence[int | None]) -> BadIndices | None:
    """Find the indices outside of [-s, s-1]."""
    return outside(indices, _ranges(limits))


def outside(indices: "Array", ranges: Sequence[tuple[int, int] | None]) -> BadIndices | None:
    """Find the indices outside of the least and the greatest one: one pair, or one for each coordinate."""
    if indices.size == 0 or not any(ranges):
        return None
    pairs = zip(ranges, *_extremes(indices, len(ranges)), strict=True)
    if not any(range and (least < range[0] or most > range[1]) for range, least, most in pairs):
        return None
    import numpy

    columns = indices.reshape(-1, len(ranges))
    bad = numpy.zeros(columns.shape, numpy.bool_)
    for number, range in enumerate(ranges):
        if range is not None:
            bad[:, number] = (columns[:, number] < range[0]) | (columns[:, number] > range[1])
    return _bad(indices, bad, ranges)


def negative(indices: "Array", limits: Sequence[int | None]) -> BadIndices | None:
    """Find the negative indices that are not below -s."""
    if indices.size == 0 or min(_extremes(indices, len(limits))[0]) >= 0:
        return None
    columns = indices.reshape(-1, len(limits))
    bad = columns < 0
    for number, s in enumerate(limits):
        if s is not None:
            bad[:, number] &= columns[:, number] >= -s
    return _bad(indices, bad, _ranges(limits)) if bad.any() else None


def repeats(
    layout: Layout,
    axis: int | None,
    indices: "Array",
    limits: Sequence[int | None],
    *,
    wraps: bool,
) -> Repeats | None:
    """Find targets that are named more than once; None if there are none or it cannot be known.

    With `wraps` a negative index counts from the end; otherwise it names no target but itself.
    """
    import numpy

    if layout is Layout.SEQUENCE or (layout is Layout.ELEMENTS and axis is None):
        return None
    flat = _target_numbers(layout, axis, indices, limits, wraps)
    if flat is None or flat.size < 2:
        return None
    ordered = numpy.sort(flat)
    if not bool((ordered[1:] == ordered[:-1]).any()):
        return None
    shape = indices.shape[:-1] if layout is Layout.TUPLES else indices.shape
    values, firsts, inverse = numpy.unique(flat, return_index=True, return_inverse=True)
    earlier = firsts[inverse.reshape(-1)]
    first = int(numpy.flatnonzero(earlier != numpy.arange(flat.size))[0])
    places = _position(first, shape), _position(int(earlier[first]), shape)
    return Repeats(flat.size - values.size, flat.size, *places)


def _target_numbers(
    layout: Layout,
    axis: int | None,
    indices: "Array",
    limits: Sequence[int | None],
    wraps: bool,
) -> "Array | None":
    """Number the targets so that two are equal if and only if their numbers are."""
    import numpy

    if not limits:
        return numpy.zeros(indices.shape[:-1], numpy.int64).reshape(-1)
    columns = indices.reshape(-1, len(limits))
    flat = numpy.zeros(len(columns), numpy.int64)
    if not len(columns):
        return flat
    span = 1
    for number, s in enumerate(limits):
        column = columns[:, number].astype(numpy.int64)
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
    if layout is not Layout.ELEMENTS or axis is None:
        return flat
    others = [1 if number == axis else size for number, size in enumerate(indices.shape)]
    grid = numpy.arange(int(numpy.prod(others, dtype=numpy.int64))).reshape(others)
    return (numpy.broadcast_to(grid, indices.shape).reshape(-1) * span) + flat


def _ranges(limits: Sequence[int | None]) -> list[tuple[int, int] | None]:
    return [None if s is None else (-s, s - 1) for s in limits]


def _extremes(indices: "Array", columns: int) -> tuple[list[int], list[int]]:
    if columns == 1 and indices.size <= _FEW:
        numbers = indices.reshape(-1).tolist()
        return [min(numbers)], [max(numbers)]
    table = indices.reshape(-1, columns)
    return table.min(axis=0).tolist(), table.max(axis=0).tolist()


def _bad(indices: "Array", bad: "Array", ranges: Sequence[tuple[int, int] | None]) -> BadIndices:
    first = int(bad.reshape(-1).argmax())
    low, high = ranges[first % len(ranges)] or _ANY
    value = int(indices.reshape(-1)[first])
    return BadIndices(int(bad.sum()), _position(first, indices.shape), value, low, high)


def _position(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    import numpy

    return tuple(map(int, numpy.unravel_index(flat, shape)))
