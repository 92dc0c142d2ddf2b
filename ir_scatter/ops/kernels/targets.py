"""From indices to targets: which rows of the output each block of updates is for.

The output is seen as a matrix of `rows` by `width`; a target is the number of a row. The updates are
seen as a matrix of the same width.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy

from ir_scatter.ops.spec import Layout, Reduction
from ir_scatter.ops.targets import BadIndices, outside

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

    Shape: TypeAlias = tuple[int, ...]
    Block: TypeAlias = tuple[slice | Array, int, Array]
    """Which rows of the updates; a number of a row of the output; the target of each, counted from there."""

BLOCK = 1 << 16
"""Elements that are handled at a time: what fits the caches beside its targets."""

_UNSIGNED = {size: numpy.dtype(f"u{size}") for size in (1, 2, 4, 8)}
"""Seen without a sign a negative number is too great: one pass tells that all are in range."""


@dataclass(frozen=True, slots=True)
class Task:
    """One use of an operator, without its arrays.

    Attributes:
        layout: how indices, updates and data belong together.
        axis: counted from 0; 0 for a layout without one.
        reduction: how an update meets the value that is there.
        keeps_initial: whether the old value takes part in a reduction.
        wraps: whether a negative index counts from the end.
        is_circular: whether positions past the end of a cache go on at its beginning.
    """

    layout: Layout
    axis: int = 0
    reduction: Reduction = Reduction.NONE
    keeps_initial: bool = True
    wraps: bool = True
    is_circular: bool = False


class IndexOutOfRange(Exception):
    """Some index is illegal; `find_illegal` tells which."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Where the updates go.

    Attributes:
        rows: how many rows the output has.
        width: how many elements a row has.
        count: how many rows the updates have.
        blocks: yields the blocks in row-major order of the indices; an array that it yields is good
            until the next one. Raises IndexOutOfRange on the way.
    """

    rows: int
    width: int
    count: int
    blocks: "Callable[[], Iterator[Block]]"


def find_targets(
    task: Task, shape: "Shape", indices: "Array | None", updates_shape: "Shape", *, all_updates: bool = False
) -> Targets:
    """Return where the updates go; every index is checked before or while blocks are made.

    Args:
        task: what is done.
        shape: that of data.
        indices: whole numbers of any type.
        updates_shape: that of updates.
        all_updates: whether updates that others write over are wanted too.

    Raises:
        IndexOutOfRange: an index is not legal.
    """
    numbers = None if indices is None else whole_numbers(indices)
    if task.layout is Layout.SEQUENCE:
        return _sequence(task, shape, numbers, updates_shape)
    assert numbers is not None
    if task.layout is Layout.ELEMENTS:
        return _elements(task, shape, numbers)
    if task.layout is Layout.TUPLES:
        return _tuples(task, shape, numbers)
    return _slices(task, shape, numbers, only_last=task.reduction is Reduction.NONE and not all_updates)


def whole_numbers(indices: "Array") -> "Array":
    """Return indices in a native type that NumPy computes with: ml_dtypes' i4 and the like become i64."""
    if indices.dtype.isbuiltin == 1:
        return indices
    return indices.astype(numpy.uint64 if indices.dtype.kind == "u" else numpy.int64)


def checked(numbers: "Array", size: int, *, wraps: bool) -> "Array":
    """Return index values on a dimension of some size counted from 0, after making sure that they are legal.

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


def find_illegal(task: Task, data: "Array", indices: "Array", updates: "Array") -> BadIndices | None:
    """Find the index values that are not legal, None if all are."""
    if task.is_circular:
        return None
    if task.layout is Layout.SEQUENCE:
        return outside(indices, [(0, data.shape[task.axis] - updates.shape[task.axis])])
    is_tuples = task.layout is Layout.TUPLES
    sizes = data.shape[: indices.shape[-1]] if is_tuples else data.shape[task.axis : task.axis + 1]
    return outside(whole_numbers(indices), [(-size if task.wraps else 0, size - 1) for size in sizes])


def _elements(task: Task, shape: "Shape", indices: "Array") -> Targets:
    """An index and the coordinates of its place off the axis make a flat offset."""
    axis, size = task.axis, shape[task.axis]
    stride = prod(shape[axis + 1 :])
    before = _offsets(indices.shape[:axis], shape[:axis]) * (size * stride)
    after = _offsets(indices.shape[axis + 1 :], shape[axis + 1 :])
    numbers = indices.reshape(len(before), indices.shape[axis], len(after))
    is_regular = indices.shape[1:axis] == shape[1:axis]

    def blocks() -> "Iterator[Block]":
        start, pattern = 0, None
        buffer = numpy.empty(min(BLOCK, indices.size), numpy.intp)
        for outer, middle, inner in _boxes(numbers.shape):
            part = numbers[outer, middle, inner]
            offsets = before[outer]
            base = int(offsets[0]) if is_regular else 0
            if pattern is None or not is_regular or len(after) > BLOCK:
                pattern = _pattern(offsets - base, part.shape[1], after[inner])
            rows = buffer[: part.size]
            legal = checked(part.reshape(-1), size, wraps=task.wraps)
            if stride != 1:
                numpy.multiply(legal, stride, out=rows, dtype=numpy.intp, casting="unsafe")
                legal = rows
            numpy.add(legal, pattern[: part.size], out=rows, dtype=numpy.intp, casting="unsafe")
            yield slice(start, start + part.size), base, rows
            start += part.size

    return Targets(prod(shape), 1, indices.size, blocks)


def _pattern(before: "Array", count: int, after: "Array") -> "Array":
    """Return what the places of a block add to its indices, flat."""
    pattern = numpy.empty((len(before), count, len(after)), numpy.intp)
    numpy.add(before[:, None, None], after, out=pattern)
    return pattern.reshape(-1)


def _boxes(shape: "Shape") -> Iterator[tuple[slice, slice, slice]]:
    """Cut three dimensions into boxes of at most BLOCK elements, each a run in row-major order.

    All but the last in a direction are of one size.
    """
    outer, middle, inner = shape
    if outer * middle * inner == 0:
        return
    thick = max(1, BLOCK // (middle * inner))
    high = middle if middle * inner <= BLOCK else max(1, BLOCK // inner)
    long = min(inner, BLOCK)
    for i in range(0, outer, thick):
        for j in range(0, middle, high):
            for k in range(0, inner, long):
                yield slice(i, i + thick), slice(j, j + high), slice(k, k + long)


def _offsets(part: "Shape", whole: "Shape") -> "Array":
    """Return the flat offset in `whole` of each position of `part`, in row-major order."""
    if part == whole:
        return numpy.arange(prod(whole), dtype=numpy.intp)
    offsets = numpy.zeros(1, numpy.intp)
    for count, size in zip(part, whole, strict=True):
        offsets = (offsets[:, None] * size + numpy.arange(count)).reshape(-1)
    return offsets


def _tuples(task: Task, shape: "Shape", indices: "Array") -> Targets:
    """Coordinates are digits of the number of a row."""
    depth, count = indices.shape[-1], prod(indices.shape[:-1])
    numbers = indices.reshape(count, depth)
    if depth == 1:
        rows = checked(numbers[:, 0], shape[0], wraps=task.wraps).astype(numpy.intp, copy=False)
    else:
        rows = numpy.zeros(count, numpy.intp)
        for start in range(0, count, BLOCK):
            block = rows[start : start + BLOCK]
            for column, size in enumerate(shape[:depth]):
                block *= size
                part = checked(numbers[start : start + BLOCK, column], size, wraps=task.wraps)
                block += part.astype(numpy.intp, copy=False)

    def blocks() -> "Iterator[Block]":
        for start in range(0, count, BLOCK):
            yield slice(start, min(start + BLOCK, count)), 0, rows[start : start + BLOCK]

    return Targets(prod(shape[:depth]), prod(shape[depth:]), count, blocks)


def _slices(task: Task, shape: "Shape", indices: "Array", *, only_last: bool) -> Targets:
    """The indices are the rows of every block of data before the axis."""
    axis, size = task.axis, shape[task.axis]
    outer, width, count = prod(shape[:axis]), prod(shape[axis + 1 :]), indices.size
    numbers = checked(indices.reshape(-1), size, wraps=task.wraps).astype(numpy.intp, copy=False)
    sources: Array | None = None
    if only_last and count > size:
        last = numpy.full(size, -1, numpy.int32 if count < 2**31 else numpy.int64)
        last[numbers] = numpy.arange(count, dtype=last.dtype)
        numbers = numpy.flatnonzero(last != -1)
        sources = last[numbers]

    def blocks() -> "Iterator[Block]":
        high = max(1, BLOCK // max(1, width))
        thick = max(1, high // max(1, len(numbers)))
        for i in range(0, outer, thick):
            block = numpy.arange(i, min(i + thick, outer))[:, None]
            for j in range(0, len(numbers), high):
                targets = block * size + numbers[j : j + high]
                if sources is None:
                    start = i * count + j
                    yield slice(start, start + targets.size), 0, targets.reshape(-1)
                else:
                    yield (block * count + sources[j : j + high]).reshape(-1), 0, targets.reshape(-1)

    return Targets(outer * size, width, outer * count, blocks)


def _sequence(task: Task, shape: "Shape", indices: "Array | None", updates_shape: "Shape") -> Targets:
    """A row of updates is for the start of its batch and its own place on the axis."""
    axis, size, new = task.axis, shape[task.axis], updates_shape[task.axis]
    middle, width = prod(shape[1:axis]), prod(shape[axis + 1 :])
    count = shape[0] * middle * new
    starts: Array = numpy.zeros(shape[0], numpy.intp) if indices is None else indices
    if task.is_circular:
        starts = starts % max(1, size)
    elif starts.size and (int(starts.min()) < 0 or int(starts.max()) > size - new):
        raise IndexOutOfRange

    def blocks() -> "Iterator[Block]":
        step = max(1, BLOCK // max(1, width))
        for start in range(0, count, step):
            numbers = numpy.arange(start, min(start + step, count))
            line, position = numpy.divmod(numbers, new)
            position += starts[line // middle]
            if task.is_circular:
                position %= size
            yield slice(start, start + len(numbers)), 0, line * size + position

    return Targets(shape[0] * middle * size, width, count, blocks)
