"""From indices to targets: which rows of the output each block of updates is for.

The output is seen as a matrix of `rows` by `width`; a target is the number of a row. The updates are
seen as a matrix of the same width.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy

from ir_scatter.ops.kernels.ranges import checked
from ir_scatter.ops.kernels.task import IndexOutOfRange, Task
from ir_scatter.ops.spec import Layout, Reduction

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

    Block: TypeAlias = tuple[slice | Array, int, Array]
    """Which rows of the updates; a number of a row of the output; the target of each, counted from there."""

BLOCK = 1 << 16
"""Elements that are handled at a time: what fits the caches beside its targets."""


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
    task: Task,
    data_shape: tuple[int, ...],
    indices: "Array | None",
    updates_shape: tuple[int, ...],
) -> Targets:
    """Return where the updates go; every index is checked before or while blocks are made.

    Raises:
        IndexOutOfRange: an index is not legal.
    """
    if task.layout is Layout.SEQUENCE:
        return _sequence(task, data_shape, indices, updates_shape)
    assert indices is not None
    return _FAMILIES[task.layout](task, data_shape, indices)


def _elements(task: Task, shape: tuple[int, ...], indices: "Array") -> Targets:
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


def _boxes(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice, slice]]:
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


def _offsets(part: tuple[int, ...], whole: tuple[int, ...]) -> "Array":
    """Return the flat offset in `whole` of each position of `part`, in row-major order."""
    if part == whole:
        return numpy.arange(prod(whole), dtype=numpy.intp)
    offsets = numpy.zeros(1, numpy.intp)
    for count, size in zip(part, whole, strict=True):
        offsets = (offsets[:, None] * size + numpy.arange(count)).reshape(-1)
    return offsets


def _tuples(task: Task, shape: tuple[int, ...], indices: "Array") -> Targets:
    depth = indices.shape[-1]
    count = prod(indices.shape[:-1])
    numbers = indices.reshape(count, depth)
    rows = _linear(task, shape[:depth], numbers)
    width = prod(shape[depth:])
    return Targets(prod(shape[:depth]), width, count, lambda: _runs(rows))


def _linear(task: Task, sizes: tuple[int, ...], numbers: "Array") -> "Array":
    """Turn tuples of coordinates into one number each."""
    if len(sizes) == 1:
        return checked(numbers[:, 0], sizes[0], wraps=task.wraps).astype(numpy.intp, copy=False)
    linear = numpy.zeros(len(numbers), numpy.intp)
    for start in range(0, len(numbers), BLOCK):
        block = linear[start : start + BLOCK]
        for column, size in enumerate(sizes):
            block *= size
            part = numbers[start : start + BLOCK, column]
            block += checked(part, size, wraps=task.wraps).astype(numpy.intp, copy=False)
    return linear


def _runs(rows: "Array") -> "Iterator[Block]":
    for start in range(0, len(rows), BLOCK):
        yield slice(start, min(start + BLOCK, len(rows))), 0, rows[start : start + BLOCK]


def _slices(task: Task, shape: tuple[int, ...], indices: "Array") -> Targets:
    axis, size = task.axis, shape[task.axis]
    outer, width, count = prod(shape[:axis]), prod(shape[axis + 1 :]), indices.size
    numbers = checked(indices.reshape(-1), size, wraps=task.wraps).astype(numpy.intp, copy=False)
    sources = None
    if count > size and task.reduction is Reduction.NONE:
        numbers, sources = _last_ones(numbers, size)

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


def _last_ones(numbers: "Array", size: int) -> "tuple[Array, Array]":
    """Return each index once, and where it stands last."""
    last = numpy.full(size, -1, numpy.int32 if len(numbers) < 2**31 else numpy.int64)
    last[numbers] = numpy.arange(len(numbers), dtype=last.dtype)
    kept: Array = numpy.flatnonzero(last != -1)
    return kept, last[kept]


def _sequence(
    task: Task,
    shape: tuple[int, ...],
    indices: "Array | None",
    updates_shape: tuple[int, ...],
) -> Targets:
    axis, size, new = task.axis, shape[task.axis], updates_shape[task.axis]
    middle, width = prod(shape[1:axis]), prod(shape[axis + 1 :])
    count = shape[0] * middle * new
    starts = numpy.zeros(shape[0], numpy.intp) if indices is None else indices
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


_FAMILIES: dict[Layout, Callable[[Task, tuple[int, ...], "Array"], Targets]] = {
    Layout.ELEMENTS: _elements,
    Layout.TUPLES: _tuples,
    Layout.SLICES: _slices,
}
