"""The kernel of the scatter family: targets of the layout, then arithmetic of the element type."""

from typing import TYPE_CHECKING

import numpy

from ir_scatter.ops.kernels.apply import fill, reduce, write
from ir_scatter.ops.kernels.arithmetic import arithmetic
from ir_scatter.ops.kernels.sorted_rows import reduce_sorted
from ir_scatter.ops.kernels.targets import find_targets
from ir_scatter.ops.kernels.task import Task
from ir_scatter.ops.spec import Reduction

if TYPE_CHECKING:
    from ir_scatter.model import Array


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
    output = numpy.array(data, order="C", copy=True)
    targets = find_targets(task, data.shape, indices, updates.shape)
    rows = output.reshape(targets.rows, targets.width)
    source = updates.reshape(targets.count, targets.width)
    if source.size == 0:
        return output
    if task.reduction is Reduction.NONE:
        write(rows, targets, source)
        return output
    with numpy.errstate(all="ignore"):
        how = arithmetic(output.dtype, task.reduction)
        if how.widen is not None:
            reduce_sorted(rows, targets, source, how, keeps_initial=task.keeps_initial)
            return output
        if not task.keeps_initial:
            fill(rows, targets, how.neutral)
        reduce(rows, targets, source, how.ufunc)
    return output
