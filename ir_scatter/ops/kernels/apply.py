"""The kernel of the scatter family: targets of the layout, then arithmetic of the element type."""

from math import prod
from typing import TYPE_CHECKING

import numpy

from ir_scatter.ops.kernels.reduce import Arithmetic, arithmetic, as_items, reduce, reduce_widened
from ir_scatter.ops.kernels.targets import BLOCK, Targets, Task, checked, find_targets, whole_numbers
from ir_scatter.ops.spec import Layout, Reduction

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_FEWEST = 64
"""Fewer columns at a time than this are not worth their calls."""
_SPARSE = 4
"""With fewer than one index for so many elements it is quicker to copy data in one go."""


def scatter(task: Task, data: "Array", indices: "Array | None", updates: "Array") -> "Array":
    """Compute the output of a scatter operator whose shapes and types are legal.

    Args:
        task: what is to be done.
        data: of any type with a dtype, native byte order; not changed.
        indices: whole numbers; None for a cache that is written from its beginning.
        updates: of the type of data.

    Returns:
        A new contiguous array of the shape and type of data.

    Raises:
        IndexOutOfRange: an index is not legal.
    """
    if task.reduction is Reduction.NONE:
        return _scatter(task, data, indices, updates, None)
    with numpy.errstate(all="ignore"):
        return _scatter(task, data, indices, updates, arithmetic(data.dtype, task.reduction))


def _scatter(
    task: Task, data: "Array", indices: "Array | None", updates: "Array", how: Arithmetic | None
) -> "Array":
    numbers = None if indices is None else whole_numbers(indices)
    if numbers is not None and (how is None or how.widen is None) and _goes_by_columns(task, data, numbers):
        return _scatter_columns(task, data, numbers, updates, how)
    targets = find_targets(task, data.shape, numbers, updates.shape)
    output: Array = numpy.array(data, order="C", copy=True)
    if updates.size == 0:
        return output
    rows = output.reshape(targets.rows, targets.width)
    source = updates.reshape(targets.count, targets.width)
    if how is None:
        _write(rows, targets, source)
    elif how.widen is not None:
        reduce_widened(rows, targets, source, how, keeps_initial=task.keeps_initial)
    else:
        if not task.keeps_initial:
            for _, base, hit in targets.blocks():
                rows[base:][hit] = how.neutral
        reduce(rows, targets, source, how.ufunc)
    return output


def _write(output: "Array", targets: Targets, updates: "Array") -> None:
    """Write rows of updates over rows of the output; of those for one row the last one stays."""
    left, right = as_items(output), as_items(updates)
    if left.ndim != right.ndim:
        left, right = output, updates
    for source, base, rows in targets.blocks():
        if len(rows) == 1 and not isinstance(source, slice):
            source = slice(int(source[0]), int(source[0]) + 1)
        left[base:][rows] = right[source]


# Elements on an axis with much after it, some columns at a time: the elements that the indices of one
# column name lie far apart, and many of them share few sets of the caches. Columns that are copied side by
# side first fit the caches, and the copy is needed anyway.


def _goes_by_columns(task: Task, data: "Array", indices: "Array") -> bool:
    """Tell whether `_scatter_columns` can do it, and as quickly as going through it in order."""
    axis, shape = task.axis, data.shape
    if task.layout is not Layout.ELEMENTS or data.size <= BLOCK:
        return False
    if indices.shape[:axis] != shape[:axis] or indices.shape[axis + 1 :] != shape[axis + 1 :]:
        return False
    is_plain = data.flags.c_contiguous and indices.flags.c_contiguous and not data.dtype.hasobject
    is_dense = indices.shape[axis] * _SPARSE >= shape[axis]
    return is_plain and is_dense and prod(shape[axis + 1 :]) > _columns(task, data, indices) >= _FEWEST


def _columns(task: Task, data: "Array", indices: "Array") -> int:
    """Return how many columns are taken at a time."""
    longest: int = max(data.shape[task.axis], indices.shape[task.axis])
    return BLOCK // 2 // longest


def _scatter_columns(
    task: Task, data: "Array", indices: "Array", updates: "Array", how: Arithmetic | None
) -> "Array":
    size, count = data.shape[task.axis], indices.shape[task.axis]
    after, most = prod(data.shape[task.axis + 1 :]), _columns(task, data, indices)
    output = numpy.empty_like(data, order="C", subok=False)
    old, result = data.reshape(-1, size, after), output.reshape(-1, size, after)
    numbers, new = indices.reshape(-1, count, after), updates.reshape(-1, count, after)
    for outer in range(len(old)):
        for start in range(0, after, most):
            place = outer, slice(None), slice(start, start + most)
            local, legal = old[place].flatten(), checked(numbers[place], size, wraps=task.wraps)
            width = legal.shape[1]
            targets = legal.astype(numpy.intp)
            targets *= width
            targets += numpy.arange(width)
            flat, source = targets.reshape(-1), new[place].reshape(-1)
            if how is None:
                local[flat] = source
            else:
                if not task.keeps_initial:
                    local[flat] = how.neutral
                how.ufunc.at(local, flat, source)
            result[place] = local.reshape(size, width)
    return output
