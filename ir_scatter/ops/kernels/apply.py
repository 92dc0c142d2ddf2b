"""The kernel of the scatter family: targets of the layout, then arithmetic of the element type."""

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.ops.kernels.reduce import arithmetic, as_items, reduce, reduce_widened
from ir_scatter.ops.kernels.targets import Task, find_targets
from ir_scatter.ops.spec import Reduction


def scatter(task: Task, data: Array, indices: Array | None, updates: Array) -> Array:
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
    targets = find_targets(task, data.shape, indices, updates.shape)
    output: Array = np.array(data, order="C", copy=True)
    if updates.size == 0:
        for _ in targets.blocks():
            pass  # indices are checked on the way
        return output
    rows = output.reshape(targets.rows, targets.width)
    source = updates.reshape(targets.count, targets.width)
    if task.reduction is Reduction.NONE:
        left, right = as_items(rows), as_items(source)
        if left.ndim != right.ndim:
            left, right = rows, source
        for part, hit in targets.blocks():
            left[hit] = right[part]
        return output
    how = arithmetic(data.dtype, task.reduction)
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
