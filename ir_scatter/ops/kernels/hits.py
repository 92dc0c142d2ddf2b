"""How many updates hit each element."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy

from ir_scatter.ops.kernels.targets import find_targets
from ir_scatter.ops.kernels.task import Task
from ir_scatter.ops.spec import Reduction

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


def count_hits(
    task: Task, data_shape: tuple[int, ...], indices: "Array | None", updates_shape: tuple[int, ...]
) -> "Array":
    """Count the updates of each element: i64, of the shape of data.

    Raises:
        IndexOutOfRange: an index is not legal.
    """
    every = replace(task, reduction=Reduction.SUM)
    targets = find_targets(every, data_shape, indices, updates_shape)
    counts = numpy.zeros(targets.rows, numpy.int64)
    if targets.count and targets.width:
        for _, base, rows in targets.blocks():
            numpy.add.at(counts[base:], rows, 1)
    hits: Array = numpy.repeat(counts, targets.width).reshape(data_shape)
    return hits
