"""Legal index values: a quick check of each block, and a search that tells what is wrong."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy

from ir_scatter.ops.kernels.task import IndexOutOfRange, Task
from ir_scatter.ops.spec import Layout

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


_UNSIGNED = {size: numpy.dtype(f"u{size}") for size in (1, 2, 4, 8)}
"""Seen without a sign a negative number is too great: one pass tells that all are in range."""


@dataclass(frozen=True, slots=True)
class IllegalIndices:
    """Index values that are not legal.

    Attributes:
        position: that of the first, in indices.
        value: that of the first.
        low: the least legal value there.
        high: the greatest legal value there; below `low` if there is none.
        count: how many there are.
    """

    position: tuple[int, ...]
    value: int
    low: int
    high: int
    count: int


def whole_numbers(indices: "Array") -> "Array":
    """Return indices in a native type that NumPy computes with: ml_dtypes' i4 and the like become i64."""
    if indices.dtype.isbuiltin == 1:
        return indices
    wide = numpy.uint64 if indices.dtype.kind == "u" else numpy.int64
    return indices.astype(wide)


def checked(numbers: "Array", size: int, *, wraps: bool) -> "Array":
    """Return index values counted from 0, after making sure that they are legal.

    Args:
        numbers: index values on one dimension, of a type of NumPy's own.
        size: the size of the dimension.
        wraps: whether a negative index counts from the end.

    Returns:
        `numbers` themselves, or a new array of i64 if some are negative.

    Raises:
        IndexOutOfRange: one of them is not legal.
    """
    if numbers.size == 0 or int(numbers.view(_UNSIGNED[numbers.dtype.itemsize]).max()) < size:
        return numbers
    low, high = int(numbers.min()), int(numbers.max())
    if high >= size or low < (-size if wraps else 0):
        raise IndexOutOfRange
    if low >= 0:
        return numbers
    wide = numbers.astype(numpy.intp, copy=False)
    return numpy.where(wide < 0, wide + size, wide)


def legal_ranges(task: Task, data: "Array", indices: "Array", updates: "Array") -> list[tuple[int, int]]:
    """Return the least and greatest legal index: one pair, or for tuples one for each coordinate."""
    if task.layout is Layout.SEQUENCE:
        return [(0, data.shape[task.axis] - updates.shape[task.axis])]
    depth = indices.shape[-1] if task.layout is Layout.TUPLES else 1
    sizes = data.shape[:depth] if task.layout is Layout.TUPLES else (data.shape[task.axis],)
    return [(-size if task.wraps else 0, size - 1) for size in sizes]


def find_illegal(task: Task, data: "Array", indices: "Array", updates: "Array") -> IllegalIndices | None:
    """Find the index values that are not legal, None if all are."""
    ranges = legal_ranges(task, data, indices, updates)
    if task.is_circular or indices.size == 0 or not ranges:
        return None
    numbers = whole_numbers(indices)
    columns = numbers.reshape(-1, len(ranges))
    bad = numpy.zeros(columns.shape, numpy.bool_)
    for number, (low, high) in enumerate(ranges):
        column = columns[:, number]
        bad[:, number] = (column < low) | (column > high)
    if not bad.any():
        return None
    first = int(bad.reshape(-1).argmax())
    position = tuple(int(part) for part in numpy.unravel_index(first, indices.shape))
    low, high = ranges[first % len(ranges)]
    return IllegalIndices(position, int(numbers[position]), low, high, int(bad.sum()))
