"""Converts indices to targets: row numbers of the output, to which blocks of updates are written.

Output and updates are viewed as matrices of the same width.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.ops.index_values import BadIndices, outside, whole_numbers
from ir_scatter.ops.spec import Layout, Reduction

Shape: TypeAlias = tuple[int, ...]
Block: TypeAlias = tuple[slice | Array, Array]
"""(rows of the updates, row number of the output for each of them)."""

BLOCK = 1 << 16
"""Number of elements per block: a block and its targets fit the caches."""


@dataclass(frozen=True, slots=True)
class Task:
    """A scatter operator with its attributes, without arrays.

    Attributes:
        axis: 0 or more; 0 for a layout without an axis.
        keeps_initial: whether the old value takes part in a reduction.
        wraps: whether a negative index counts from the end.
        is_circular: whether positions beyond the end of a cache continue at its beginning.
    """

    layout: Layout
    axis: int = 0
    reduction: Reduction = Reduction.NONE
    keeps_initial: bool = True
    wraps: bool = True
    is_circular: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A scatter operator with its arrays, in their own dtypes.

    A cache without indices is written from its beginning.
    """

    task: Task
    data: Array
    indices: Array | None
    updates: Array


class IndexOutOfRange(Exception):
    """Error: an index is illegal; `find_illegal` returns its position and range."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of updates: number of output rows, their width, and number of rows of updates.

    `blocks` yields blocks in row-major order of the indices, and may raise IndexOutOfRange. A block is valid
    until the next one is yielded, since they share memory.
    """

    rows: int
    width: int
    count: int
    blocks: Callable[[], Iterator[Block]]


def find_targets(
    task: Task, shape: Shape, indices: Array | None, updates_shape: Shape, *, all_updates: bool = False
) -> Targets:
    """Return the output rows to which updates are written, for data of the given shape.

    Unless `all_updates` is set, updates that later ones overwrite may be omitted. Indices are checked here or
    while blocks are yielded.
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


def checked(numbers: Array, size: int, *, wraps: bool) -> Array:
    """Return index values as positions of 0 or more; raises IndexOutOfRange if one is illegal."""
    wide = numbers.astype(np.intp, copy=False)
    # Viewed as unsigned, a negative number is too large: one pass checks both ends of the range.
    if numbers.size == 0 or int(numbers.view(f"u{numbers.itemsize}").max()) < size:
        return wide
    if int(numbers.max()) >= size or int(numbers.min()) < (-size if wraps else 0):
        raise IndexOutOfRange
    return np.where(wide < 0, wide + size, wide)


def find_illegal(task: Task, data: Array, indices: Array, updates: Array) -> BadIndices | None:
    """Find the illegal index values; None if all are legal."""
    if task.is_circular:
        return None
    if task.layout is Layout.SEQUENCE:
        return outside(indices, [(0, data.shape[task.axis] - updates.shape[task.axis])])
    is_tuples = task.layout is Layout.TUPLES
    sizes = data.shape[: indices.shape[-1]] if is_tuples else data.shape[task.axis : task.axis + 1]
    return outside(whole_numbers(indices), [(-size if task.wraps else 0, size - 1) for size in sizes])


def _elements(task: Task, shape: Shape, indices: Array) -> Targets:
    """Layout ELEMENTS: a target is the flat offset of an index and of its own position off the axis."""
    axis, size = task.axis, shape[task.axis]
    stride = prod(shape[axis + 1 :])
    before = _offsets(indices.shape[:axis], shape[:axis]) * (size * stride)
    after = _offsets(indices.shape[axis + 1 :], shape[axis + 1 :])
    numbers = indices.reshape(len(before), indices.shape[axis], len(after))

    def blocks() -> Iterator[Block]:
        start, buffer = 0, np.empty(min(BLOCK, indices.size), np.intp)
        for outer, middle, inner in _boxes(numbers.shape):
            legal = checked(numbers[outer, middle, inner], size, wraps=task.wraps)
            rows = buffer[: legal.size].reshape(legal.shape)
            if stride != 1:
                legal = np.multiply(legal, stride, out=rows)
            np.add(legal, before[outer, None, None] + after[inner], out=rows)
            yield slice(start, start + rows.size), rows.reshape(-1)
            start += rows.size

    return Targets(prod(shape), 1, indices.size, blocks)


def _boxes(shape: Shape) -> Iterator[tuple[slice, slice, slice]]:
    """Cut a three-dimensional array into boxes of at most BLOCK elements, contiguous in row-major order."""
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


def _offsets(part: Shape, whole: Shape) -> Array:
    """Return the flat offset in `whole` of each position of `part`, in row-major order."""
    offsets = np.zeros(1, np.intp)
    for count, size in zip(part, whole, strict=True):
        offsets = (offsets[:, None] * size + np.arange(count)).reshape(-1)
    return offsets


def _tuples(task: Task, shape: Shape, indices: Array) -> Targets:
    """Layout TUPLES: coordinates are the mixed-radix digits of a row number."""
    depth, count = indices.shape[-1], prod(indices.shape[:-1])
    numbers = indices.reshape(count, depth)

    def blocks() -> Iterator[Block]:
        for start in range(0, count, BLOCK):
            part = slice(start, min(start + BLOCK, count))
            rows = np.zeros(part.stop - start, np.intp)
            for column, size in enumerate(shape[:depth]):
                rows *= size
                rows += checked(numbers[part, column], size, wraps=task.wraps)
            yield part, rows

    return Targets(prod(shape[:depth]), prod(shape[depth:]), count, blocks)


def _slices(task: Task, shape: Shape, indices: Array, *, only_last: bool) -> Targets:
    """Layout SLICES: an index is a row number within a block; each position before the axis has a block."""
    axis, size = task.axis, shape[task.axis]
    outer, width, count = prod(shape[:axis]), prod(shape[axis + 1 :]), indices.size
    numbers = checked(indices.reshape(-1), size, wraps=task.wraps)
    sources: Array | None = None
    if only_last and count > size and width < BLOCK:
        last = np.full(size, -1)
        last[numbers] = np.arange(count)
        numbers = np.flatnonzero(last != -1)
        sources = last[numbers]

    def blocks() -> Iterator[Block]:
        high = max(1, BLOCK // max(1, width))
        thick = max(1, high // max(1, len(numbers)))
        for i in range(0, outer, thick):
            block = np.arange(i, min(i + thick, outer))[:, None]
            for j in range(0, len(numbers), high):
                targets = (block * size + numbers[j : j + high]).reshape(-1)
                if sources is None:
                    yield slice(i * count + j, i * count + j + targets.size), targets
                else:
                    yield (block * count + sources[j : j + high]).reshape(-1), targets

    return Targets(outer * size, width, outer * count, blocks)


def _sequence(task: Task, shape: Shape, indices: Array | None, updates_shape: Shape) -> Targets:
    """Layout SEQUENCE: a target is the start of the batch plus the update's own position on the axis."""
    axis, size, new = task.axis, shape[task.axis], updates_shape[task.axis]
    middle, width = prod(shape[1:axis]), prod(shape[axis + 1 :])
    count = shape[0] * middle * new
    starts: Array = np.zeros(shape[0], np.intp) if indices is None else indices
    if task.is_circular:
        starts = starts % max(1, size)
    elif starts.size and (int(starts.min()) < 0 or int(starts.max()) > size - new):
        raise IndexOutOfRange

    def blocks() -> Iterator[Block]:
        step = max(1, BLOCK // max(1, width))
        for start in range(0, count, step):
            numbers = np.arange(start, min(start + step, count))
            line, position = np.divmod(numbers, new)
            position += starts[line // middle]
            if task.is_circular:
                position %= size
            yield slice(start, start + len(numbers)), line * size + position

    return Targets(shape[0] * middle * size, width, count, blocks)
