"""Reductions: what is computed for an element type, and how updates join the rows of an output."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from ir_scatter.ops.kernels.targets import BLOCK, Targets
from ir_scatter.ops.spec import Reduction

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

    DType = numpy.dtype[Any]

_UFUNCS: dict[Reduction, "numpy.ufunc"] = {
    Reduction.SUM: numpy.add,
    Reduction.SUB: numpy.subtract,
    Reduction.PROD: numpy.multiply,
    Reduction.MIN: numpy.minimum,
    Reduction.MAX: numpy.maximum,
    Reduction.MEAN: numpy.add,
}
_LOW_BITS = 32
_LOW_MASK = (1 << _LOW_BITS) - 1

_NARROW = 16
_FEW = 4096
"""Rows of fewer elements, and fewer elements in all, are not worth gathering."""
_LONG = 1 << 13
"""Rows of more elements are joined one by one where they are."""
_WIDENED = 1 << 17
"""So many elements are held in a wider type at a time, or two for each row of updates."""


class Arithmetic(NamedTuple):
    """How one element type is reduced.

    Attributes:
        ufunc: joins the value that is there with an update.
        neutral: the value, in the type that is computed in, that changes no update.
        widen: makes of rows of elements rows of the type that is computed in; None if that is the
            elements' own.
        finish: makes of reduced rows, and the number of values in each, rows of elements.
    """

    ufunc: "numpy.ufunc"
    neutral: Any
    widen: "Callable[[Array], Array] | None" = None
    finish: "Callable[[Array, Array], Array] | None" = None


@cache
def arithmetic(dtype: "DType", reduction: Reduction) -> Arithmetic:
    """Return how a reduction other than none is computed for a dtype."""
    is_mean, is_floating = reduction is Reduction.MEAN, "float" in dtype.name
    ufunc = _UFUNCS[reduction]
    if dtype.kind == "b" and reduction is Reduction.SUB:
        ufunc = numpy.logical_xor
    if not is_mean and dtype.isbuiltin == 1 and dtype != numpy.float16:
        return Arithmetic(ufunc, _neutral(dtype, reduction))
    if is_mean and dtype.kind in "iu" and dtype.itemsize == 8:
        return Arithmetic(ufunc, 0, _split, lambda rows, counts: _mean_of_halves(rows, counts, dtype))
    wide = numpy.dtype(numpy.float64 if is_floating else numpy.int64)

    def finish(rows: "Array", counts: "Array") -> "Array":
        if is_mean:
            rows = rows / counts[:, None] if is_floating else rows // counts[:, None]
        return round_once(rows, dtype) if is_floating else rows.astype(dtype)

    return Arithmetic(ufunc, _neutral(wide, reduction), lambda rows: rows.astype(wide), finish)


def _neutral(dtype: "DType", reduction: Reduction) -> Any:
    """Return the value that changes no update; it is never the result, since an update follows."""
    if reduction in {Reduction.SUM, Reduction.SUB, Reduction.MEAN}:
        return dtype.type(0)
    if reduction is Reduction.PROD:
        return dtype.type(1)
    is_min = reduction is Reduction.MIN
    if dtype.kind == "b":
        return dtype.type(is_min)
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        return dtype.type(limits.max if is_min else limits.min)
    return dtype.type(numpy.inf if is_min else -numpy.inf)


def round_once(values: "Array", dtype: "DType") -> "Array":
    """Round f64 to a narrower floating-point type, to nearest even.

    NumPy rounds f64 to its own types once. ml_dtypes goes through f32, which rounds twice; so f32 is
    made by rounding to odd first (what is not exact gets an odd last bit), which keeps every later
    rounding right as long as the type has at least two bits less.
    """
    if dtype.isbuiltin == 1:
        return values.astype(dtype)
    nearest = values.astype(numpy.float32)
    back = nearest.astype(numpy.float64)
    is_inexact = (back != values) & ~numpy.isnan(values)
    is_even = (nearest.view(numpy.int32) & 1) == 0
    towards = numpy.where(back < values, numpy.float32(numpy.inf), numpy.float32(-numpy.inf))
    odd = numpy.where(is_inexact & is_even, numpy.nextafter(nearest, towards), nearest)
    return odd.astype(dtype)


def _split(rows: "Array") -> "Array":
    """Put the upper and the lower half of 64 bits side by side, so that their sums do not wrap."""
    upper = (rows >> _LOW_BITS).astype(numpy.int64)
    lower = (rows & rows.dtype.type(_LOW_MASK)).astype(numpy.int64)
    return numpy.concatenate((upper, lower), axis=1)


def _mean_of_halves(rows: "Array", counts: "Array", dtype: "DType") -> "Array":
    """Divide the sum that two halves make, rounding towards minus infinity.

    Every step fits 64 bits for up to 2^31 values of one target.
    """
    upper, lower = numpy.split(rows, 2, axis=1)
    divisor = counts[:, None].astype(numpy.int64)
    upper = upper + (lower >> _LOW_BITS)
    quotient, remainder = numpy.divmod(upper, divisor)
    rest = ((remainder << _LOW_BITS) + (lower & _LOW_MASK)) // divisor
    mean: Array = (quotient.astype(dtype) << dtype.type(_LOW_BITS)) + rest.astype(dtype)
    return mean


def reduce(output: "Array", targets: Targets, updates: "Array", ufunc: "numpy.ufunc") -> None:
    """Join rows of updates to rows of the output, one after the other.

    Args:
        output: [rows, width], contiguous.
        targets: which row each is for.
        updates: [count, width].
        ufunc: takes the value that is there, and the update.
    """
    for source, base, rows in targets.blocks():
        _reduce_block(output[base:], rows, updates[source], ufunc)


def reduce_widened(
    output: "Array", targets: Targets, updates: "Array", how: Arithmetic, *, keeps_initial: bool
) -> None:
    """Join rows of updates to rows of the output in a wider type, and round each target once.

    Only the rows that are targets are widened, some at a time.

    Args:
        output: [rows, width], contiguous.
        targets: which row each is for.
        updates: [count, width].
        how: widens, joins and rounds.
        keeps_initial: whether the old value takes part; it counts as one value.
    """
    assert how.widen is not None
    assert how.finish is not None
    small = numpy.int32 if max(targets.rows, targets.count) < 2**31 - 1 else numpy.int64
    places: Array = numpy.zeros(targets.rows, small)
    for _, base, rows in targets.blocks():
        places[base:][rows] = 1
    hit = numpy.flatnonzero(places).astype(small)
    places[hit] = numpy.arange(len(hit), dtype=small)
    counts = numpy.full(len(hit), int(keeps_initial), small)
    for _, base, rows in targets.blocks():
        numpy.add.at(counts, places[base:][rows], small(1))
    room = max(_WIDENED, 2 * targets.count)
    for start in range(0, targets.width, BLOCK):
        columns = slice(start, start + BLOCK)
        step = max(1, room // min(targets.width, BLOCK))
        for low in range(0, len(hit), step):
            part = hit[low : low + step]
            wide = numpy.ascontiguousarray(how.widen(output[part, columns]))
            if not keeps_initial:
                wide[...] = how.neutral
            for source, base, rows in targets.blocks():
                local, new = places[base:][rows] - small(low), updates[source, columns]
                if len(part) < len(hit):
                    is_here = (local >= 0) & (local < len(part))
                    local, new = local[is_here], new[is_here]
                count = max(1, BLOCK // wide.shape[1])
                for first in range(0, len(local), count):
                    few = slice(first, first + count)
                    _reduce_block(wide, local[few], how.widen(new[few]), how.ufunc)
            output[part, columns] = how.finish(wide, counts[low : low + step])


def as_items(rows: "Array") -> "Array":
    """View rows as single items, which NumPy moves whole, where their memory allows it."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    if rows.dtype.kind in "OT" or not rows.flags.c_contiguous or not rows.size:
        return rows
    return rows.view(numpy.dtype((numpy.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]


def _reduce_block(output: "Array", rows: "Array", updates: "Array", ufunc: "numpy.ufunc") -> None:
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
