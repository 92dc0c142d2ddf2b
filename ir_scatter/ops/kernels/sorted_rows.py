"""Reduce in a wider type than the elements': target after target, so that few wide rows are held."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy

from ir_scatter.ops.kernels.apply import reduce_block
from ir_scatter.ops.kernels.arithmetic import Arithmetic
from ir_scatter.ops.kernels.targets import BLOCK, Targets

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


@dataclass(frozen=True, slots=True)
class _Open:
    """The last target of a chunk, which the next one may go on with.

    Attributes:
        target: its number, -1 before the first chunk.
        row: reduced so far, [1, wide width].
        count: how many updates that were.
    """

    target: int
    row: "Array"
    count: int


def reduce_sorted(
    output: "Array", targets: Targets, updates: "Array", how: Arithmetic, *, keeps_initial: bool
) -> None:
    """Join rows of updates to rows of the output in a wider type, and round each target once.

    Args:
        output: [rows, width], contiguous.
        targets: which row each is for.
        updates: [count, width].
        how: widens, joins and rounds.
        keeps_initial: whether the old value takes part; it counts as one value.
    """
    order, numbers = _sorted_targets(targets)
    for start in range(0, targets.width, BLOCK):
        columns = slice(start, start + BLOCK)
        _reduce_columns(output[:, columns], order, numbers, updates[:, columns], how, keeps_initial)


def _reduce_columns(
    output: "Array", order: "Array", numbers: "Array", updates: "Array", how: Arithmetic, keeps_initial: bool
) -> None:
    step = max(1, BLOCK // output.shape[1])
    pending = _Open(-1, numpy.empty(0), 0)
    for start in range(0, len(order), step):
        chunk = order[start : start + step]
        pending = _chunk(output, numbers[chunk], updates[chunk], how, keeps_initial, pending)
    if pending.target >= 0:
        _close(output, numpy.array([pending.target]), pending.row, numpy.array([pending.count]), how)


def _sorted_targets(targets: Targets) -> "tuple[Array, Array]":
    numbers = numpy.empty(targets.count, numpy.int32 if targets.rows < 2**31 else numpy.int64)
    for source, base, rows in targets.blocks():
        numbers[source] = rows + base
    return numpy.argsort(numbers, kind="stable"), numbers


def _chunk(
    output: "Array",
    numbers: "Array",
    updates: "Array",
    how: Arithmetic,
    keeps_initial: bool,
    pending: _Open,
) -> _Open:
    """Reduce a chunk of updates in the order of their targets; all targets but the last are finished."""
    assert how.widen is not None
    is_new = numpy.ones(len(numbers), numpy.bool_)
    is_new[1:] = numbers[1:] != numbers[:-1]
    found = numbers[is_new]
    places = numpy.cumsum(is_new) - 1
    counts = numpy.bincount(places)
    rows = how.widen(output[found])
    if keeps_initial:
        counts += 1
    else:
        rows[...] = how.neutral
    if pending.target == found[0]:
        rows[0] = pending.row
        counts[0] += pending.count - int(keeps_initial)
    elif pending.target >= 0:
        _close(output, numpy.array([pending.target]), pending.row, numpy.array([pending.count]), how)
    reduce_block(rows, places, how.widen(updates), how.ufunc)
    _close(output, found[:-1], rows[:-1], counts[:-1], how)
    return _Open(int(found[-1]), rows[-1:].copy(), int(counts[-1]))


def _close(output: "Array", found: "Array", rows: "Array", counts: "Array", how: Arithmetic) -> None:
    assert how.finish is not None
    if len(found):
        output[found] = how.finish(rows, counts)
