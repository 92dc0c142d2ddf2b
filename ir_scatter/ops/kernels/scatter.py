"""The kernel of the scatter family: targets of the layout, then arithmetic of the element type."""

from typing import TYPE_CHECKING

import numpy

from ir_scatter.ops.kernels.apply import fill, reduce, write
from ir_scatter.ops.kernels.arithmetic import Arithmetic, arithmetic
from ir_scatter.ops.kernels.columns import goes_by_columns, scatter_columns
from ir_scatter.ops.kernels.ranges import whole_numbers
from ir_scatter.ops.kernels.sorted_rows import reduce_sorted
from ir_scatter.ops.kernels.targets import find_targets
from ir_scatter.ops.kernels.task import Task
from ir_scatter.ops.spec import Reduction

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


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
    numbers = None if indices is None else whole_numbers(indices)
    if task.reduction is Reduction.NONE:
        return _scatter(task, data, numbers, updates, None)
    with numpy.errstate(all="ignore"):
        return _scatter(task, data, numbers, updates, arithmetic(data.dtype, task.reduction))


def _scatter(
    task: Task, data: "Array", indices: "Array | None", updates: "Array", how: Arithmetic | None
) -> "Array":
    is_own_type = how is None or how.widen is None
    if is_own_type and goes_by_columns(task, data, indices):
        assert indices is not None
        return scatter_columns(task, data, indices, updates, how)
    targets = find_targets(task, data.shape, indices, updates.shape)
    output: Array = numpy.array(data, order="C", copy=True)
    if updates.size == 0:
        return output
    rows = output.reshape(targets.rows, targets.width)
    source = updates.reshape(targets.count, targets.width)
    if how is None:
        write(rows, targets, source)
    elif how.widen is not None:
        reduce_sorted(rows, targets, source, how, keeps_initial=task.keeps_initial)
    else:
        if not task.keeps_initial:
            fill(rows, targets, how.neutral)
        reduce(rows, targets, source, how.ufunc)
    return output
