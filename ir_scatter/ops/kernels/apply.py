"""Write or reduce blocks of updates into the rows of an output."""

from typing import TYPE_CHECKING, Any

import numpy

from ir_scatter.ops.kernels.targets import BLOCK, Targets

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

_NARROW = 16
_FEW = 4096
"""Rows of fewer elements, and fewer elements in all, are not worth gathering."""
_LONG = 1 << 13
"""Rows of more elements are joined one by one where they are."""


def write(output: "Array", targets: Targets, updates: "Array") -> None:
    """Write rows of updates over rows of the output; of those for one row the last one stays.

    Args:
        output: [rows, width], contiguous.
        targets: which row each is for.
        updates: [count, width].
    """
    left, right = as_items(output), as_items(updates)
    if left.ndim != right.ndim:
        left, right = output, updates
    for source, base, rows in targets.blocks():
        if len(rows) == 1 and not isinstance(source, slice):
            source = slice(int(source[0]), int(source[0]) + 1)
        left[base:][rows] = right[source]


def as_items(rows: "Array") -> "Array":
    """View rows as single items, which NumPy moves whole, where their memory allows it."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    if rows.dtype.kind in "OT" or not rows.flags.c_contiguous or not rows.size:
        return rows
    return rows.view(numpy.dtype((numpy.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]


def fill(output: "Array", targets: Targets, value: Any) -> None:
    """Write one value into every row that is a target."""
    for _, base, rows in targets.blocks():
        output[base:][rows] = value


def reduce(output: "Array", targets: Targets, updates: "Array", ufunc: "numpy.ufunc") -> None:
    """Join rows of updates to rows of the output, one after the other.

    Args:
        output: [rows, width], contiguous.
        targets: which row each is for.
        updates: [count, width].
        ufunc: takes the value that is there, and the update.
    """
    for source, base, rows in targets.blocks():
        reduce_block(output[base:], rows, updates[source], ufunc)


def reduce_block(output: "Array", rows: "Array", updates: "Array", ufunc: "numpy.ufunc") -> None:
    """Join some rows to rows of the output; few elements or rows of few go element by element."""
    width = output.shape[1]
    if width >= _LONG:
        for row, update in zip(rows.tolist(), updates, strict=True):
            ufunc(output[row], update, out=output[row])
    elif width < _NARROW or updates.size <= _FEW:
        _reduce_elements(output, rows, updates, ufunc)
    else:
        _reduce_wide(output, rows, updates, ufunc)


def _reduce_wide(output: "Array", rows: "Array", updates: "Array", ufunc: "numpy.ufunc") -> None:
    """Gather some rows of the output, join the updates to them and write them back.

    Where a target is there for the second time, only its first update is joined that way; the others
    go element by element.
    """
    step = max(1, BLOCK // 2 // output.shape[1])
    later = _later_ones(rows, step)
    cuts = numpy.searchsorted(later, numpy.arange(0, len(rows) + step, step))
    buffer = numpy.empty((min(step, len(rows)), output.shape[1]), output.dtype)
    for number, start in enumerate(range(0, len(rows), step)):
        part, new = rows[start : start + step], updates[start : start + step]
        joined = numpy.take(output, part, axis=0, mode="clip", out=buffer[: len(part)])
        ufunc(joined, new, out=joined)
        if cuts[number] == cuts[number + 1]:
            as_items(output)[part] = as_items(joined)
            continue
        # In reverse order the last one written, which stays, is the first of its target.
        as_items(output)[part[::-1]] = as_items(joined)[::-1]
        others = later[cuts[number] : cuts[number + 1]]
        _reduce_elements(output, rows[others], updates[others], ufunc)


def _later_ones(rows: "Array", step: int) -> "Array":
    """Return in order the places of all targets but the first of each, within every `step` places.

    One sort of targets that carry their places in the lower bits.
    """
    bits = step.bit_length()
    count = -(-len(rows) // step)
    tagged = numpy.full(count * step, -1, numpy.int64)
    tagged[: len(rows)] = rows
    table = tagged.reshape(count, step)
    table <<= bits
    table |= numpy.arange(step)
    table.sort(axis=1)
    numbers = table >> bits
    is_later = numbers[:, 1:] == numbers[:, :-1]
    if not is_later.any():
        return tagged[:0]
    table &= (1 << bits) - 1
    table += numpy.arange(0, count * step, step)[:, None]
    later = numpy.sort(table[:, 1:][is_later])
    return later[later < len(rows)]


def _reduce_elements(output: "Array", rows: "Array", updates: "Array", ufunc: "numpy.ufunc") -> None:
    width, elements = output.shape[1], output.reshape(-1)
    if width == 1:
        ufunc.at(elements, rows, updates.reshape(-1))
        return
    columns, step = numpy.arange(width), max(1, BLOCK // width)
    for start in range(0, len(rows), step):
        places = rows[start : start + step, None] * width + columns
        ufunc.at(elements, places.reshape(-1), updates[start : start + step].reshape(-1))
