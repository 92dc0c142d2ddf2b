"""Elements on an axis with much after it, some columns at a time.

The elements that the indices of one column name lie far apart, and many of them share few sets of the
caches. Columns that are copied side by side first fit the caches, and the copy is needed anyway. On a
quiet machine this is as quick as going through the whole in order; where others use the caches
too, it is up to twice as quick.
"""

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

import numpy

from ir_scatter.ops.kernels.arithmetic import Arithmetic
from ir_scatter.ops.kernels.ranges import checked
from ir_scatter.ops.kernels.targets import BLOCK
from ir_scatter.ops.kernels.task import Task
from ir_scatter.ops.spec import Layout

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

_FEWEST = 64
"""Fewer columns at a time than this are not worth their calls."""
_SPARSE = 4
"""With fewer than one index for so many elements it is quicker to copy data in one go."""


def goes_by_columns(task: Task, data: "Array", indices: "Array | None") -> bool:
    """Tell whether `scatter_columns` can do it, and as quickly as going through it in order."""
    if task.layout is not Layout.ELEMENTS or indices is None or data.size <= BLOCK:
        return False
    axis, shape = task.axis, data.shape
    if indices.shape[:axis] != shape[:axis] or indices.shape[axis + 1 :] != shape[axis + 1 :]:
        return False
    is_plain = data.flags.c_contiguous and indices.flags.c_contiguous and not data.dtype.hasobject
    is_dense = indices.shape[axis] * _SPARSE >= shape[axis]
    return is_plain and is_dense and prod(shape[axis + 1 :]) > _columns(task, data, indices) >= _FEWEST


def _columns(task: Task, data: "Array", indices: "Array") -> int:
    """Return how many columns are taken at a time."""
    longest: int = max(data.shape[task.axis], indices.shape[task.axis])
    return BLOCK // 2 // longest


def scatter_columns(
    task: Task, data: "Array", indices: "Array", updates: "Array", how: Arithmetic | None
) -> "Array":
    """Compute the output in the element type itself; for reduction none `how` is None.

    Raises:
        IndexOutOfRange: an index is not legal.
    """
    size, count = data.shape[task.axis], indices.shape[task.axis]
    after, most = prod(data.shape[task.axis + 1 :]), _columns(task, data, indices)
    output = numpy.empty_like(data, order="C", subok=False)
    old, result = data.reshape(-1, size, after), output.reshape(-1, size, after)
    numbers, new = indices.reshape(-1, count, after), updates.reshape(-1, count, after)
    spaces = (
        numpy.empty((size, most), data.dtype),
        numpy.empty((count, most), data.dtype),
        numpy.empty((count, most), numpy.intp),
    )
    for place, width in _parts(len(old), after, most):
        local, source, targets = (_front(space, width) for space in spaces)
        local[...], source[...] = old[place], new[place]
        legal = checked(numbers[place], size, wraps=task.wraps)
        numpy.multiply(legal, width, out=targets, dtype=numpy.intp, casting="unsafe")
        targets += numpy.arange(width)
        _apply(local.reshape(-1), targets.reshape(-1), source.reshape(-1), task, how)
        result[place] = local
    return output


def _parts(outer: int, after: int, most: int) -> Iterator[tuple[tuple[int, slice, slice], int]]:
    for number in range(outer):
        for start in range(0, after, most):
            stop = min(start + most, after)
            yield (number, slice(None), slice(start, stop)), stop - start


def _front(space: "Array", width: int) -> "Array":
    """Return the beginning of a buffer as rows of some width."""
    return space.reshape(-1)[: len(space) * width].reshape(len(space), width)


def _apply(local: "Array", targets: "Array", updates: "Array", task: Task, how: Arithmetic | None) -> None:
    if how is None:
        local[targets] = updates
        return
    if not task.keeps_initial:
        local[targets] = how.neutral
    how.ufunc.at(local, targets, updates)
