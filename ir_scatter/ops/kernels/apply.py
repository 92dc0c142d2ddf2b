"""The kernel of all scatter operators: `scatter` finds the targets, then writes or reduces the updates."""

from collections.abc import Callable
from functools import cache
from math import prod
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array, extreme
from ir_scatter.ops.index_values import whole_numbers
from ir_scatter.ops.kernels.targets import BLOCK, IndexOutOfRange, Targets, Task, checked, find_targets
from ir_scatter.ops.spec import Layout, Reduction

DType = np.dtype[Any]

_UFUNCS: dict[Reduction, np.ufunc] = {
    Reduction.SUM: np.add,
    Reduction.SUB: np.subtract,
    Reduction.PROD: np.multiply,
    Reduction.MIN: np.minimum,
    Reduction.MAX: np.maximum,
    Reduction.MEAN: np.add,
}
_LOW_BITS = 32
_LOW_MASK = (1 << _LOW_BITS) - 1

_NARROW = 16
"""Rows of fewer elements are reduced element by element: gathering them into a matrix takes longer."""
_FEW = 1 << 11
"""Up to this number of update elements are also reduced element by element."""
_LONG = 1 << 13
"""Rows of more elements are reduced one row at a time, in place."""
_WIDENED = 1 << 17
"""Number of elements to convert to a wider type at a time; at least two for each row of updates."""
_FEWEST = 64
"""Minimum columns to process at a time: with fewer, calls cost more than the caches save."""
_SPARSE = 4
"""Minimum elements on the axis per index for which copying all data first is faster."""


class ReductionMethod(NamedTuple):
    """The computation of a reduction for an element type.

    Attributes:
        neutral: the neutral element, in the type of the computation.
        widen: converts rows to the type of the computation; None if that is the elements' own type.
        finish: converts reduced rows back, given the number of values in each row.
    """

    ufunc: np.ufunc
    neutral: Any
    widen: Callable[[Array], Array] | None = None
    finish: Callable[[Array, Array], Array] | None = None


def scatter(task: Task, data: Array, indices: Array | None, updates: Array) -> Array:
    """Compute the output of a scatter operator as a new contiguous array.

    Shapes and types must be legal; data and updates must be in native byte order. A cache without indices is
    written from its beginning.

    Raises:
        IndexOutOfRange: an index is not legal.
    """
    how = None if task.reduction is Reduction.NONE else _reduction_method(data.dtype, task.reduction)
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
        left, right = _as_items(rows), _as_items(source)
        if left.ndim != right.ndim:
            left, right = rows, source
        for part, hit in targets.blocks():
            left[hit] = right[part]
        return output
    with np.errstate(all="ignore"):
        if how.widen is not None:
            _reduce_widened(rows, targets, source, how, keeps_initial=task.keeps_initial)
            return output
        if not task.keeps_initial:
            for _, hit in targets.blocks():
                rows[hit] = how.neutral
        for part, hit in targets.blocks():
            _reduce(rows, hit, source[part], how.ufunc)
    return output


def bind_scatter(task: Task, data: Array, indices: Array | None, updates: Array) -> Callable[..., Array]:
    """Return a faster `scatter` for arrays with these types and shapes only, as in the body of a loop."""
    one = None if indices is None or not updates.size else _bind_one(task, data, indices, updates)
    return one or (lambda data, indices, updates: scatter(task, data, indices, updates))


def _bind_one(
    task: Task, data: Array, indices: Array, updates: Array
) -> Callable[[Array, Array, Array], Array] | None:
    """Return a fast function for a single index or tuple of indices; None for all other cases."""
    how = None if task.reduction is Reduction.NONE else _reduction_method(data.dtype, task.reduction)
    is_simple = how is None or (how.widen is None and task.keeps_initial)
    is_tuple = task.layout is Layout.TUPLES
    count = prod(indices.shape[:-1]) if is_tuple else indices.size
    is_number = indices.dtype.isbuiltin == 1 and indices.dtype.kind in "iu"
    if not is_simple or count != 1 or task.layout is Layout.SEQUENCE or not is_number or task.is_circular:
        return None
    sizes = data.shape[: indices.shape[-1]] if is_tuple else data.shape[task.axis : task.axis + 1]
    axis, width = task.axis, slice(None) if task.layout is Layout.SLICES else slice(0, 1)
    rest = data.ndim - axis - 1
    shape = (
        data.shape[len(sizes) :]
        if is_tuple
        else tuple(dim if task.layout is Layout.SLICES else 1 for dim in data.shape)
    )
    if not is_tuple:
        shape = (*shape[:axis], 1, *shape[axis + 1 :])

    def compute(data: Array, indices: Array, updates: Array) -> Array:
        place: list[slice | int | EllipsisType] = []
        for number, size in zip(indices.reshape(-1).tolist(), sizes, strict=True):
            position = number + size if number < 0 and task.wraps else number
            if not 0 <= position < size:
                raise IndexOutOfRange
            place.append(position if is_tuple else slice(position, position + 1))
        where = (*place, ...) if is_tuple else (*(width,) * axis, *place, *(width,) * rest)
        output, new = data.copy(), updates.reshape(shape)
        output[where] = new if how is None else how.ufunc(output[where], new)
        return output

    return compute


# Layout ELEMENTS on an axis with many elements after it, some columns at a time. The targets of one column
# are far apart in memory, and share few cache sets. Columns that are first copied side by side fit into
# the caches, and data must be copied anyway.


def _goes_by_columns(data: Array, indices: Array, axis: int, columns: int) -> bool:
    shape = data.shape
    if indices.shape[:axis] != shape[:axis] or indices.shape[axis + 1 :] != shape[axis + 1 :]:
        return False
    is_simple = data.flags.c_contiguous and indices.flags.c_contiguous and not data.dtype.hasobject
    is_dense = data.size > BLOCK and indices.shape[axis] * _SPARSE >= shape[axis]
    return is_simple and is_dense and prod(shape[axis + 1 :]) > columns >= _FEWEST


def _scatter_columns(
    task: Task, data: Array, indices: Array, updates: Array, how: ReductionMethod | None, columns: int
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


# Reductions


@cache
def _reduction_method(dtype: DType, reduction: Reduction) -> ReductionMethod:
    """Return the computation of a reduction (sum, max, ...) for a dtype."""
    is_mean, is_floating = reduction is Reduction.MEAN, "float" in dtype.name
    ufunc = _UFUNCS[reduction]
    if dtype.kind == "b" and reduction is Reduction.SUB:
        ufunc = np.logical_xor
    if not is_mean and dtype.isbuiltin == 1 and dtype != np.float16:
        return ReductionMethod(ufunc, _neutral(dtype, reduction))
    if is_mean and dtype.kind in "iu" and dtype.itemsize == 8:
        return ReductionMethod(ufunc, 0, _split, lambda rows, counts: _mean_of_halves(rows, counts, dtype))
    wide = np.dtype(np.float64 if is_floating else np.int64)

    def finish(rows: Array, counts: Array) -> Array:
        if is_mean:
            rows = rows / counts[:, None] if is_floating else rows // counts[:, None]
        return round_once(rows, dtype) if is_floating else rows.astype(dtype)

    return ReductionMethod(ufunc, _neutral(wide, reduction), lambda rows: rows.astype(wide), finish)


def _neutral(dtype: DType, reduction: Reduction) -> Any:
    """Return the neutral element of a reduction."""
    if reduction in {Reduction.MIN, Reduction.MAX}:
        return extreme(dtype, is_lowest=reduction is Reduction.MAX)
    return int(reduction is Reduction.PROD)


def round_once(values: Array, dtype: DType) -> Array:
    """Round f64 to a narrower floating-point type, to nearest even.

    NumPy rounds f64 to its own types once. ml_dtypes converts through f32, which would round twice. So f64 is
    first rounded to odd in f32 (an inexact result gets an odd last bit). Rounding that again is correct for
    every type whose significand has at least two bits less than that of f32.
    """
    if dtype.isbuiltin == 1:
        return values.astype(dtype)
    nearest = values.astype(np.float32)
    back = nearest.astype(np.float64)
    is_inexact = (back != values) & ~np.isnan(values)
    is_even = (nearest.view(np.int32) & 1) == 0
    towards = np.where(back < values, np.float32(np.inf), np.float32(-np.inf))
    odd = np.where(is_inexact & is_even, np.nextafter(nearest, towards), nearest)
    return odd.astype(dtype)


def _split(rows: Array) -> Array:
    """Return the upper and the lower 32 bits of each number as separate columns, whose sums do not wrap."""
    upper = (rows >> _LOW_BITS).astype(np.int64)
    lower = (rows & rows.dtype.type(_LOW_MASK)).astype(np.int64)
    return np.concatenate((upper, lower), axis=1)


def _mean_of_halves(rows: Array, counts: Array, dtype: DType) -> Array:
    """Divide a sum from `_split` by the counts, rounding towards minus infinity.

    Every step fits 64 bits for up to 2^31 values of one target.
    """
    upper, lower = np.split(rows, 2, axis=1)
    divisor = counts[:, None].astype(np.int64)
    upper = upper + (lower >> _LOW_BITS)
    quotient, remainder = np.divmod(upper, divisor)
    rest = ((remainder << _LOW_BITS) + (lower & _LOW_MASK)) // divisor
    mean: Array = (quotient.astype(dtype) << dtype.type(_LOW_BITS)) + rest.astype(dtype)
    return mean


def _reduce_widened(
    output: Array, targets: Targets, updates: Array, how: ReductionMethod, *, keeps_initial: bool
) -> None:
    """Reduce updates into rows of the output in a wider type, and round each result once.

    Only rows with updates are converted, some at a time. If the old value takes part, it counts as one
    update.
    """
    assert how.widen is not None
    assert how.finish is not None
    hits = np.zeros(targets.rows, np.int32)
    for _, rows in targets.blocks():
        np.add.at(hits, rows, 1)
    hit = np.flatnonzero(hits)
    counts = hits[hit] + int(keeps_initial)
    places = hits
    places[hit] = np.arange(len(hit))
    room = max(_WIDENED, 2 * targets.count)
    for start in range(0, targets.width, BLOCK):
        columns = slice(start, start + BLOCK)
        step = max(1, room // min(targets.width, BLOCK))
        for low in range(0, len(hit), step):
            part = hit[low : low + step]
            wide = np.ascontiguousarray(how.widen(output[part, columns]))
            if not keeps_initial:
                wide[...] = how.neutral
            for source, rows in targets.blocks():
                local = places[rows] - low
                is_here = (local >= 0) & (local < len(part))
                local, new = local[is_here], updates[source, columns][is_here]
                count = max(1, BLOCK // wide.shape[1])
                for first in range(0, len(local), count):
                    few = slice(first, first + count)
                    _reduce(wide, local[few], how.widen(new[few]), how.ufunc)
            output[part, columns] = how.finish(wide, counts[low : low + step])


def _as_items(rows: Array) -> Array:
    """View each row as a single NumPy item, which is copied as a whole; `rows` if that is impossible."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    if rows.dtype.kind in "OT" or not rows.flags.c_contiguous or not rows.size:
        return rows
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]


def _reduce(output: Array, rows: Array, updates: Array, ufunc: np.ufunc) -> None:
    """Reduce updates [count, width] sequentially into rows of the output [any, width].

    Wide rows are gathered some at a time, reduced and written back. If a target occurs several times among
    them, only its first update is reduced that way; its later updates are reduced element by element.
    """
    width = output.shape[1]
    if width >= _LONG:
        for row, update in zip(rows.tolist(), updates, strict=True):
            ufunc(output[row], update, out=output[row])
        return
    if width < _NARROW or updates.size <= _FEW:
        _reduce_elements(output, rows, updates, ufunc)
        return
    step = min(len(rows), max(1, BLOCK // 2 // width))
    items, first_of, places = _as_items(output), np.empty(len(output), np.intp), np.arange(step)
    buffer = np.empty((step, width), output.dtype)
    for start in range(0, len(rows), step):
        part, new = rows[start : start + step], updates[start : start + step]
        joined = np.take(output, part, axis=0, mode="clip", out=buffer[: len(part)])
        ufunc(joined, new, out=joined)
        # Written in reverse order, the first update of each target is the last write, which stays.
        reverse = part[::-1]
        items[reverse] = _as_items(joined)[::-1]
        first_of[reverse] = places[: len(part)][::-1]
        later = np.flatnonzero(first_of[part] != places[: len(part)])
        if len(later):
            _reduce_elements(output, part[later], new[later], ufunc)


def _reduce_elements(output: Array, rows: Array, updates: Array, ufunc: np.ufunc) -> None:
    width, elements = output.shape[1], output.reshape(-1)
    if width == 1:
        ufunc.at(elements, rows, updates.reshape(-1))
        return
    columns, step = np.arange(width), max(1, BLOCK // width)
    for start in range(0, len(rows), step):
        places = rows[start : start + step, None] * width + columns
        ufunc.at(elements, places.reshape(-1), updates[start : start + step].reshape(-1))
