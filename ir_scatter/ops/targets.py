"""Which positions of data the indices name: ranges and repetitions, one view for each layout.

Every function takes indices as they are, the shape of data as far as it is known, and the axis. It
answers in the terms of the document: an index, or for the ND operators a tuple of coordinates,
names a *target*.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ir_scatter.core.shapes import Shape, highest
from ir_scatter.ops.spec import Layout

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

_FEW = 64
"""Up to so many numbers Python's own min, max and set are quicker than NumPy's calls."""


@dataclass(frozen=True, slots=True)
class BadIndices:
    """Index values that are outside of a range.

    Attributes:
        count: how many there are.
        position: that of the first, in indices.
        value: that of the first.
        size: the size of the dimension that the first counts on; None if it is not known.
    """

    count: int
    position: tuple[int, ...]
    value: int
    size: int | None


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
        if data is None:
            return [None] * depth
        return [highest(dim) for dim in data[:depth]]
    if data is None or axis is None:
        return [None]
    return [highest(data[axis])]


def out_of_range(indices: "Array", limits: Sequence[int | None]) -> BadIndices | None:
    """Find the indices outside of [-s, s-1]."""
    if indices.size == 0 or all(limit is None for limit in limits):
        return None
    lows, highs = _extremes(indices, len(limits))
    pairs = list(zip(limits, lows, highs, strict=True))
    if not any(s is not None and (low < -s or high >= s) for s, low, high in pairs):
        return None
    import numpy

    columns = indices.reshape(-1, len(limits))
    bad = numpy.zeros(columns.shape, numpy.bool_)
    for number, s in enumerate(limits):
        if s is not None:
            column = columns[:, number]
            bad[:, number] = column >= s
            if indices.dtype.kind == "i":
                bad[:, number] |= column < -s
    return _bad(indices, bad, limits)


def negative(indices: "Array", limits: Sequence[int | None]) -> BadIndices | None:
    """Find the negative indices that are not below -s."""
    if indices.size == 0 or indices.dtype.kind != "i":
        return None
    if min(_extremes(indices, len(limits))[0]) >= 0:
        return None
    columns = indices.reshape(-1, len(limits))
    bad = columns < 0
    for number, s in enumerate(limits):
        if s is not None:
            bad[:, number] &= columns[:, number] >= -s
    return _bad(indices, bad, limits) if bad.any() else None


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
    if indices.size <= _FEW and layout is Layout.SLICES and _is_plainly_unique(indices):
        return None
    flat = _target_numbers(layout, axis, indices, limits, wraps)
    if flat is None or flat.size < 2:
        return None
    if flat.size <= _FEW:
        is_unique = len(set(flat.tolist())) == flat.size
    else:
        ordered = numpy.sort(flat)
        is_unique = not bool((ordered[1:] == ordered[:-1]).any())
    if is_unique:
        return None
    shape = indices.shape[:-1] if layout is Layout.TUPLES else indices.shape
    values, firsts, inverse = numpy.unique(flat, return_index=True, return_inverse=True)
    repeated = numpy.flatnonzero(firsts[inverse.reshape(-1)] != numpy.arange(flat.size))
    first = int(repeated[0])
    earlier = int(firsts[inverse.reshape(-1)[first]])
    return Repeats(flat.size - values.size, flat.size, _position(first, shape), _position(earlier, shape))


def _is_plainly_unique(indices: "Array") -> bool:
    numbers = indices.reshape(-1).tolist()
    return len(set(numbers)) == len(numbers) and (not numbers or min(numbers) >= 0)


def _target_numbers(
    layout: Layout,
    axis: int | None,
    indices: "Array",
    limits: Sequence[int | None],
    wraps: bool,
) -> "Array | None":
    """Number the targets so that two are equal if and only if their numbers are."""
    import numpy

    columns = indices.reshape(-1, len(limits)) if limits else None
    if columns is None:
        return numpy.zeros(indices.shape[:-1], numpy.int64).reshape(-1)
    flat = numpy.zeros(len(columns), numpy.int64)
    span = 1
    for number, s in enumerate(limits):
        column = columns[:, number].astype(numpy.int64)
        if wraps and len(column) and int(column.min()) < 0:
            if s is None and int(column.max()) >= 0:
                return None
            column = numpy.where(column < 0, column + (s or 0), column)
        low = int(column.min()) if len(column) else 0
        width = (int(column.max()) - low + 1) if len(column) else 1
        span *= width
        if span > 2**62:
            return None
        flat = flat * width + (column - low)
    if layout is not Layout.ELEMENTS or axis is None:
        return flat
    others = [1 if number == axis else size for number, size in enumerate(indices.shape)]
    grid = numpy.arange(int(numpy.prod(others, dtype=numpy.int64))).reshape(others)
    return (numpy.broadcast_to(grid, indices.shape).reshape(-1) * span) + flat


def _extremes(indices: "Array", columns: int) -> tuple[list[int], list[int]]:
    if columns == 1:
        if indices.size <= _FEW:
            numbers = indices.reshape(-1).tolist()
            return [min(numbers)], [max(numbers)]
        return [int(indices.min())], [int(indices.max())]
    table = indices.reshape(-1, columns)
    return table.min(axis=0).tolist(), table.max(axis=0).tolist()


def _bad(indices: "Array", bad: "Array", limits: Sequence[int | None]) -> BadIndices:
    first = int(bad.reshape(-1).argmax())
    return BadIndices(
        count=int(bad.sum()),
        position=_position(first, indices.shape),
        value=int(indices.reshape(-1)[first]),
        size=limits[first % len(limits)],
    )


def _position(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    position = []
    for size in reversed(shape):
        flat, coordinate = divmod(flat, size)
        position.append(coordinate)
    return tuple(reversed(position))
