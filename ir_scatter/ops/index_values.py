"""What the numbers of indices say, in the terms of the documents: which are legal, which name a target again.

Every function takes indices as they are, the shape of data as far as it is known, and the axis. An
index, or for the ND operators a tuple of coordinates, names a *target*.
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
    """How many index values are outside of a range, where the first is, and what is in range there.

    The range is that of 64 bits if the size is not known, and `high` is below `low` if it is 0.
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
    """How many indices or tuples, of all, name a target again; where the first is, and which it repeats."""

    count: int
    total: int
    first: tuple[int, ...]
    earlier: tuple[int, ...]


def expected_updates(layout: Layout, data: Shape, indices: Shape, axes: Iterable[int]) -> list[Shape]:
    """Return the shapes that updates may have, one for each axis that is possible; empty if none is known."""
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
    """Return indices in a type that NumPy itself computes with: ml_dtypes' i4 and the like become i64."""
    if indices.dtype.isbuiltin == 1:
        return indices
    import numpy

    return indices.astype(numpy.uint64 if indices.dtype.kind == "u" else numpy.int64)


def from_front(indices: "Array", sizes: int | Sequence[int]) -> "Array":
    """Return indices as i64, negative ones counted from the front; those that are out of range stay so."""
    import numpy

    wide = indices.astype(numpy.int64)
    return numpy.where(wide < 0, wide + numpy.asarray(sizes, numpy.int64), wide)


def sizes(
    layout: Layout, data: Shape, axis: int | None, indices: tuple[Dim, ...], run: int = 1
) -> list[int | None]:
    """Return the size that indices count on: one, or for tuples one for each coordinate.

    A dimension that is only bounded counts with its upper bound: what is outside of that is outside. Where an
    index is the start of a run that must fit, there are as many starts.
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
    """Find the negative indices that are not below -s."""
    columns = indices.reshape(-1, max(len(limits), 1))
    bad = columns < 0
    for number, s in enumerate(limits):
        if s is not None:
            bad[:, number] &= columns[:, number] >= -s
    return _bad(indices, bad, _ranges(limits))


def outside(indices: "Array", ranges: Sequence[tuple[int, int] | None]) -> BadIndices | None:
    """Find the indices outside of the least and the greatest one: one pair, or one for each coordinate."""
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
    """Find targets that are named more than once; None if there are none or it cannot be known.

    With `wraps` a negative index counts from the end; otherwise it names no target but itself.
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
    """Number targets such that two are equal if and only if their numbers are.

    None if there are fewer than two, or if it cannot be known. With `wraps` as in `repeats`.
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
    """Number the targets such that those of different numbers never meet: with ELEMENTS those of one lane."""
    import numpy

    shape = indices.shape[:-1] if layout is Layout.TUPLES else indices.shape
    if layout is not Layout.ELEMENTS or axis is None:
        return numpy.zeros(prod(shape), numpy.int64)
    others = [1 if number == axis % len(shape) else size for number, size in enumerate(shape)]
    grid = numpy.arange(prod(others)).reshape(others)
    return numpy.broadcast_to(grid, shape).reshape(-1).copy()


def _position(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    import numpy

    return tuple(map(int, numpy.unravel_index(flat, shape)))
