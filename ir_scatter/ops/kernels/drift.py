"""What rounding errors of one direction add up to where many numbers are summed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy

from ir_scatter.ops.kernels.ranges import whole_numbers
from ir_scatter.ops.kernels.targets import find_targets
from ir_scatter.ops.kernels.task import Task
from ir_scatter.ops.spec import Reduction

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

_LEVELS = 4
"""So many spacings, each half of the one before, are looked at for a drift: sums grow through them."""
_AT_ONCE = 1 << 20
"""Elements that are looked at for a drift at a time."""


def find_drift(
    task: Task, indices: "Array | None", updates: "Array", chosen: "Array", half: "Array"
) -> "Array":
    """Return what rounding errors of one direction may add up to, for chosen elements.

    Args:
        task: layout, axis and how indices count; updates are taken one by one.
        indices: as given.
        updates: finite, f64.
        chosen: which elements of the output are wanted, at least one.
        half: half the distance between numbers of the type where the greatest partial sum lies.

    Returns:
        f64, 0 for elements that are not chosen.
    """
    every = replace(task, reduction=Reduction.SUM)
    numbered = None if indices is None else whole_numbers(indices)
    targets = find_targets(every, chosen.shape, numbered, updates.shape)
    numbers = numpy.empty(targets.count, numpy.intp)
    for source, base, rows in targets.blocks():
        numbers[source] = rows + base
    form = targets.rows, targets.width
    wanted, spacing = chosen.reshape(form), 2 * half.reshape(form)
    rows_of_updates = updates.reshape(targets.count, targets.width)
    is_row_wanted: Array = numpy.any(wanted, axis=1)
    places = numpy.flatnonzero(is_row_wanted[numbers])
    places = places[numpy.argsort(numbers[places], kind="stable")]
    rows = numbers[places]
    starts = numpy.flatnonzero(numpy.diff(rows, prepend=-1))
    found = numpy.zeros(form)
    step = max(1, _AT_ONCE // len(rows))
    for first in range(0, targets.width, step):
        columns = slice(first, first + step)
        scaled = rows_of_updates[places, columns] / spacing[rows, columns]
        found[rows[starts], columns] = numpy.max(
            [_ranges(one, starts) for one in _orders(scaled, rows)], axis=0
        )
    drift: Array = found * spacing
    return drift.reshape(chosen.shape)


def _orders(scaled: "Array", rows: "Array") -> "Iterator[Array]":
    """Yield the updates of each target as they come, by their values, and by their magnitudes."""
    yield scaled
    for ranked in (scaled, numpy.abs(scaled)):
        by_rank = numpy.argsort(ranked, axis=0, kind="stable")
        # A stable sort by row keeps the order by rank within each row.
        by_row = numpy.argsort(rows[by_rank], axis=0, kind="stable")
        yield numpy.take_along_axis(scaled, numpy.take_along_axis(by_rank, by_row, axis=0), axis=0)


def _ranges(scaled: "Array", starts: "Array") -> "Array":
    """Return the most that the errors of neighbours add up to, in spacings.

    Args:
        scaled: updates divided by the spacing, those of one target one behind the other.
        starts: where the updates of each target begin.
    """
    most = numpy.zeros((len(starts), scaled.shape[1]))  # a sum goes through one spacing after the other
    for level in range(_LEVELS):
        finer = scaled * 2.0**level
        errors = (numpy.rint(finer) - finer) / 2.0**level
        sums = numpy.cumsum(errors, axis=0)
        before = sums[starts] - errors[starts]
        high = numpy.maximum(numpy.maximum.reduceat(sums, starts, axis=0), before)
        low = numpy.minimum(numpy.minimum.reduceat(sums, starts, axis=0), before)
        most += high - low
    return most
