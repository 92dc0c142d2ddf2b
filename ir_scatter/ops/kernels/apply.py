"""Write or reduce blocks of updates into the rows of an output."""

from typing import TYPE_CHECKING, Any

import numpy

from ir_scatter.ops.kernels.targets import Targets

if TYPE_CHECKING:
    from ir_scatter.model import Array

_NARROW = 16
"""Rows of fewer elements are reduced element by element."""


def write(output: "Array", targets: Targets, updates: "Array") -> None:
    """Write rows of updates over rows of the output; of those for one row the last one stays.

    Args:
        output: [rows, width], contiguous.
        targets: which row each is for.
        updates: [count, width].
    """
    left, right = _as_items(output, updates)
    for source, rows in targets.blocks():
        left[rows] = right[source]


def _as_items(output: "Array", updates: "Array") -> "tuple[Array, Array]":
    """View rows as single items, which NumPy moves whole, where their memory allows it."""
    if output.shape[1] == 1:
        return output[:, 0], updates[:, 0]
    is_plain = output.dtype.kind not in "OT" and updates.flags.c_contiguous
    if not is_plain or not output.size or not updates.size:
        return output, updates
    item = numpy.dtype((numpy.void, output.dtype.itemsize * output.shape[1]))
    return output.view(item)[:, 0], updates.view(item)[:, 0]


def fill(output: "Array", targets: Targets, value: Any) -> None:
    """Write one value into every row that is a target."""
    for _, rows in targets.blocks():
        output[rows] = value


def reduce(output: "Array", targets: Targets, updates: "Array", ufunc: "numpy.ufunc") -> None:
    """Join rows of updates to rows of the output, one after the other.

    Args:
        output: [rows, width], contiguous.
        targets: which row each is for.
        updates: [count, width].
        ufunc: takes the value that is there, and the update.
    """
    for source, rows in targets.blocks():
        reduce_block(output, rows, updates[source], ufunc)


def reduce_block(output: "Array", rows: "Array", updates: "Array", ufunc: "numpy.ufunc") -> None:
    """Join one block of rows to rows of the output.

    Rows of single elements go through `ufunc.at`, which is quick on one dimension only. Of wide rows
    those that name a target for the first time are gathered, joined and written back; what remains
    goes element by element.
    """
    width = output.shape[1]
    if width < _NARROW:
        _reduce_elements(output, rows, updates, ufunc)
        return
    first = _first_ones(rows)
    if first is None:
        _reduce_different(output, rows, updates, ufunc)
        return
    _reduce_different(output, rows[first], updates[first], ufunc)
    _reduce_elements(output, rows[~first], updates[~first], ufunc)


def _first_ones(rows: "Array") -> "Array | None":
    """Tell which targets come for the first time; None if all are different."""
    ordered = numpy.sort(rows)
    if not (ordered[1:] == ordered[:-1]).any():
        return None
    order = numpy.argsort(rows, kind="stable")
    ordered = rows[order]
    first = numpy.ones(len(rows), numpy.bool_)
    first[order[1:]] = ordered[1:] != ordered[:-1]
    return first


def _reduce_different(output: "Array", rows: "Array", updates: "Array", ufunc: "numpy.ufunc") -> None:
    joined = output.take(rows, axis=0, mode="clip")
    ufunc(joined, updates, out=joined)
    output[rows] = joined


def _reduce_elements(output: "Array", rows: "Array", updates: "Array", ufunc: "numpy.ufunc") -> None:
    width = output.shape[1]
    if width != 1:
        rows = (rows[:, None] * width + numpy.arange(width)).reshape(-1)
    ufunc.at(output.reshape(-1), rows, updates.reshape(-1))
