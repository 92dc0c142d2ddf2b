"""The kernel of the scatter family: targets of the layout, then arithmetic of the element type."""

from math import prod

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.ops.kernels.reduce import Arithmetic, arithmetic, as_items, reduce, reduce_widened
from ir_scatter.ops.kernels.targets import BLOCK, Task, checked, find_targets, whole_numbers
from ir_scatter.ops.spec import Layout, Reduction

_FEWEST = 64
"""Fewer columns at a time than this are not worth their calls."""
_SPARSE = 4
"""With fewer than one index for so many elements it is quicker to copy data in one go."""


def scatter(task: Task, data: Array, indices: Array | None, updates: Array) -> Array:
    """Compute the output of a scatter operator, a new contiguous array; shapes and types are legal.

    Data and updates are in native byte order; without indices a cache is written from its beginning.

    Raises:
        IndexOutOfRange: an index is not legal.
    """
    how = None if task.reduction is Reduction.NONE else arithmetic(data.dtype, task.reduction)
    if task.layout is Layout.ELEMENTS and indices is not None and (how is None or how.widen is None):
        columns = BLOCK // 2 // max(data.shape[task.axis], indices.shape[task.axis], 1)
        if _goes_by_columns(data, indices, task.axis, columns):
            return _scatter_columns(task, data, whole_numbers(indices), updates, how, columns)
    targets = find_targets(task, data.shape, indices, updates.shape)
    output: Array = np.array(data, order="C", copy=True)
    if updates.size == 0:
        for _ in targets.blocks():
            pass  # indices are checked on the way
        return output
    rows = output.reshape(targets.rows, targets.width)
    source = updates.reshape(targets.count, targets.width)
    if how is None:
        left, right = as_items(rows), as_items(source)
        if left.ndim != right.ndim:
            left, right = rows, source
        for part, hit in targets.blocks():
            left[hit] = right[part]
        return output
    with np.errstate(all="ignore"):
        if how.widen is not None:
            reduce_widened(rows, targets, source, how, keeps_initial=task.keeps_initial)
            return output
        if not task.keeps_initial:
            for _, hit in targets.blocks():
                rows[hit] = how.neutral
        for part, hit in targets.blocks():
            reduce(rows, hit, source[part], how.ufunc)
    return output


# Elements on an axis with much after it, some columns at a time: the elements that the indices of one
# column name lie far apart, and many of them share few sets of the caches. Columns that are copied side by
# side first fit the caches, and the copy is needed anyway.


def _goes_by_columns(data: Array, indices: Array, axis: int, columns: int) -> bool:
    shape = data.shape
    if indices.shape[:axis] != shape[:axis] or indices.shape[axis + 1 :] != shape[axis + 1 :]:
        return False
    is_simple = data.flags.c_contiguous and indices.flags.c_contiguous and not data.dtype.hasobject
    is_dense = data.size > BLOCK and indices.shape[axis] * _SPARSE >= shape[axis]
    return is_simple and is_dense and prod(shape[axis + 1 :]) > columns >= _FEWEST


def _scatter_columns(
    task: Task, data: Array, indices: Array, updates: Array, how: Arithmetic | None, columns: int
) -> Array:
    size, count, after = data.shape[task.axis], indices.shape[task.axis], prod(data.shape[task.axis + 1 :])
    output: Array = np.empty_like(data, order="C", subok=False)
    old, result = data.reshape(-1, size, after), output.reshape(-1, size, after)
    numbers, new = indices.reshape(-1, count, after), updates.reshape(-1, count, after)
    for outer in range(len(old)):
        for start in range(0, after, columns):
            place = outer, slice(None), slice(start, start + columns)
            local, legal = old[place].flatten(), checked(numbers[place], size, wraps=task.wraps)
            width = legal.shape[1]
            flat, source = (legal * width + np.arange(width)).reshape(-1), new[place].reshape(-1)
            if how is None:
                local[flat] = source
            else:
                with np.errstate(all="ignore"):
                    if not task.keeps_initial:
                        local[flat] = how.neutral
                    how.ufunc.at(local, flat, source)
            result[place] = local.reshape(size, width)
    return output
