"""How certain the result of a reduction is: number of hits, candidates, and bounds of the rounding error.

A hit is an update of an element; a candidate is an update that may be the final value. There are two bounds.
`rounding_bound` depends on the values:

- A sum is exact in any order if every partial sum is a number of the type. That holds if the values are
  multiples of a power of two (as integers are), and the sum of all values of one sign fits the significand.
- Otherwise the error of an addition is at most half a *spacing*, the distance between the numbers of the
  type near the largest partial sum. For few additions the bound is the sum of these errors. For many it has
  two parts: the error if rounding were random (the root of the count times the spacing), and the systematic
  error, the *drift*. If a sum is a multiple of the spacing, the error of adding x is that of rounding x to
  the spacing, for any sum; the errors of equal values have one direction. The drift is the largest total of
  such errors over neighbouring updates, in the order of the indices, of the values or of their magnitudes.
- A product whose odd parts fit the significand is exact too. Otherwise every factor that is not a power of
  two adds a relative error. That is small enough to detect a lost factor, unless the factor is very near 1.

`counted_bound` depends only on the number of values and their magnitudes. Scaled by the ratio of precisions
it is also valid for a computation in a coarser precision.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array, bits_of
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.ops.kernels.targets import Operation, Targets, Task, find_targets
from ir_scatter.ops.spec import Reduction

_SUMS = frozenset({Reduction.SUM, Reduction.SUB, Reduction.MEAN})
_SAFETY = 1 + 2**-20
"""Factor on each bound of a rounding error, as the computation of the bound itself rounds."""
MANY = 16
"""Minimum number of operations for which rounding counts as random."""
_DEVIATIONS = 4
"""Number of standard deviations that a random error may have."""
_MORE = 1.25
"""Factor of the drift, because orders other than the three computed ones may drift more."""
_LEVELS = 4
"""Number of spacings for which a drift is computed, each half of the previous: sums grow through them."""
_RUN = 1 << 15
"""Approximate number of updates whose drift is computed at a time."""
_F64_DIGITS = 53
"""Bits of the significand of f64."""


def count_hits(
    task: Task, data_shape: tuple[int, ...], indices: Array | None, updates_shape: tuple[int, ...]
) -> Array:
    """Return the number of updates of each element: i64, of the shape of data."""
    targets = find_targets(task, data_shape, indices, updates_shape, all_updates=True)
    counts = np.zeros(targets.rows, np.int64)
    if targets.count and targets.width:
        for _, rows in targets.blocks():
            np.add.at(counts, rows, 1)
    return np.repeat(counts, targets.width).reshape(data_shape)


def _targets(operation: Operation) -> Targets:
    data, indices, updates = operation.data, operation.indices, operation.updates
    return find_targets(operation.task, data.shape, indices, updates.shape, all_updates=True)


def find_candidates(operation: Operation, position: tuple[int, ...]) -> Array:
    """Return the updates of the element at `position`, in row-major order of the (legal) indices."""
    targets = _targets(operation)
    if not targets.count:
        return operation.updates.reshape(-1)[:0].copy()
    row, column = divmod(int(np.ravel_multi_index(position, operation.data.shape)), targets.width)
    values = operation.updates.reshape(targets.count, targets.width)[:, column]
    return np.concatenate([values[source][rows == row] for source, rows in targets.blocks()])


def is_candidate(operation: Operation, values: Array, absolute: float, relative: float) -> Array:
    """Return whether each element of an output, `values`, equals one of its updates.

    A difference of at most `absolute` plus `relative` times the update counts as equal.
    """
    targets = _targets(operation)
    mask = np.zeros((targets.rows, targets.width), np.bool_)
    if targets.count and targets.width:
        rows = np.ascontiguousarray(values).reshape(targets.rows, targets.width)
        source = operation.updates.reshape(targets.count, targets.width)
        for part, places in targets.blocks():
            same = is_near(source[part], rows[places], absolute, relative)
            np.logical_or.at(mask, places, same)
    return mask.reshape(values.shape)


def has_other_updates(operation: Operation, values: Array) -> Array:
    """Return whether each element of an output, `values`, has an update with different bits."""
    targets = _targets(operation)
    mask = np.zeros((targets.rows, targets.width), np.bool_)
    if targets.count and targets.width:
        rows = np.ascontiguousarray(values).reshape(targets.rows, targets.width)
        source = operation.updates.reshape(targets.count, targets.width)
        for part, places in targets.blocks():
            differs = (bits_of(source[part]) != bits_of(rows[places])).any(axis=-1)
            np.logical_or.at(mask, places, differs)
    return mask.reshape(values.shape)


def is_near(new: Array, old: Array, absolute: float, relative: float) -> Array:
    """Return where new and old values are equal within a tolerance; NaN equals NaN."""
    with np.errstate(all="ignore"):
        same: Array = (new == old) | ((new != new) & (old != old))
        if absolute or relative:
            distance = abs(old.astype(np.complex128) - new.astype(np.complex128))
            same = same | (distance <= absolute + relative * abs(new).astype(np.float64))
    return same


def contested_by_nan(operation: Operation, values: Array) -> Array:
    """Return the elements of a min or max whose operands include both NaN and numbers.

    No specification defines that result, which depends on the order of the operands. `values` is the output
    of this package's kernel, which propagates every NaN.
    """
    every = replace(operation.task, reduction=Reduction.SUM)
    data, updates = operation.data, operation.updates
    is_number = scatter(every, data == data, operation.indices, updates == updates)
    return np.asarray((values != values) & is_number)


def beyond_type(operation: Operation, values: Array, hits: Array) -> Array:
    """Return where finite operands result in NaN, because the type lacks both the result and infinity."""
    operands = _operands(operation, hits)
    if operands is None:
        return np.zeros(values.shape, np.bool_)
    return np.asarray((values != values) & (hits > 0) & ~operands.has_other())


class Rounding(NamedTuple):
    """Distances from the exact result: the maximum (`bound`) for any order, and that of `values`."""

    bound: Array
    error: Array


def rounding_bound(operation: Operation, values: Array, hits: Array) -> Rounding:
    """Bound the difference between the exact result and a result computed in the element type.

    Never NaN: infinite if some order may overflow, 0 if no operation rounds.
    """
    operands = _operands(operation, hits)
    if operands is None:
        return Rounding(np.zeros(values.shape), np.zeros(values.shape))
    with np.errstate(all="ignore"):
        bound, exact = (_sum if operation.task.reduction in _SUMS else _product)(operands)
        bound = np.where((hits == 0) | np.isnan(bound), 0.0, bound * _SAFETY)
        if operands.limits.digits == _F64_DIGITS:
            return Rounding(bound, bound)
        error = np.abs(_wide(values) - exact)
        is_known = np.isfinite(error) & (hits > 0)
        error = np.where(is_known, error, np.where(hits == 0, 0.0, bound))
        # Rounding to a number beyond the largest is not limited by the bound for finite numbers.
        return Rounding(np.where(bound > 0, np.maximum(bound, error), 0.0), error * (bound > 0))


def counted_bound(operation: Operation, values: Array, hits: Array) -> Array:
    """Bound the same difference as `rounding_bound`, from the number of values and their magnitudes only.

    For a sum of n numbers it is n u / (1 - n u) times the sum of their magnitudes (Higham, Accuracy and
    Stability of Numerical Algorithms, 4.2), where u is half the distance from 1 to the next number. For a
    product it is the same factor times its magnitude.
    """
    operands = _operands(operation, hits)
    if operands is None:
        return np.zeros(values.shape)
    limits, counts = operands.limits, operands.counts
    with np.errstate(all="ignore"):
        if operation.task.reduction not in _SUMS:
            bound = _counted_product(operands, _relative(counts, limits.unit * limits.factor))
        else:
            total = operands.reduced(Reduction.SUM, lambda part: _finite(np.abs(part), 0.0))
            bound = np.where(operands.has_other(), 0.0, _relative(counts, limits.unit) * total)
            bound[total > limits.largest] = np.inf
        if operation.task.reduction is Reduction.MEAN:
            magnitude = _finite(np.abs(_wide(values)), 0.0)
            bound = bound / np.maximum(counts, 1) + magnitude * limits.unit + limits.smallest
        return np.where((hits == 0) | np.isnan(bound), 0.0, bound * _SAFETY)


class _Limits:
    """The limits of a floating-point type."""

    def __init__(self, info: Any, is_complex: bool) -> None:
        self.unit = float(info.eps) / 2
        self.digits = 1 - round(float(np.log2(float(info.eps))))
        self.largest = float(info.max)
        self.smallest = float(info.smallest_subnormal)
        self.normal = float(info.smallest_normal)
        # A product of complex numbers rounds its parts: its relative error has this bound, in units.
        self.factor = 2 * 2**0.5 if is_complex else 1.0

    def fits(self, sizes: Array) -> Array:
        """Return which integers fit the significand; `sizes` are computed in f64."""
        limit = 2.0**self.digits
        return np.asarray(sizes < limit if self.digits == _F64_DIGITS else sizes <= limit)


@dataclass(frozen=True, slots=True, eq=False)
class _Operands(Operation):
    """The operands of a reduction: data and updates in f64 or complex128."""

    counts: Array
    limits: _Limits

    def reduced(self, reduction: Reduction, function: Callable[[Array], Array]) -> Array:
        """Apply a function to the operands, and reduce the results."""
        task = replace(self.task, reduction=reduction)
        return scatter(task, function(self.data), self.indices, function(self.updates))

    def has_other(self) -> Array:
        """Return which elements have an infinite or NaN operand."""
        return self.reduced(Reduction.SUM, lambda part: ~np.isfinite(part))

    def mapped(self, function: Callable[[Array], Array]) -> "_Operands":
        return replace(self, data=function(self.data), updates=function(self.updates))


def _operands(operation: Operation, hits: Array) -> _Operands | None:
    """Return the operands of a reduction that rounds; None if it is always exact."""
    dtype, task = operation.data.dtype, operation.task
    is_floating = dtype.kind in "fc" if dtype.isbuiltin == 1 else "float" in dtype.name
    if not is_floating or task.reduction in {Reduction.NONE, Reduction.MIN, Reduction.MAX}:
        return None
    finfo: Any = np.finfo
    if dtype.isbuiltin != 1:
        from ml_dtypes import finfo
    limits, counts = _Limits(finfo(dtype), dtype.kind == "c"), hits + int(task.keeps_initial)
    return _Operands(task, _wide(operation.data), operation.indices, _wide(operation.updates), counts, limits)


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _finite(array: Array, default: float) -> Array:
    return np.where(np.isfinite(array), array, default)


def _relative(counts: Array, unit: float) -> Array:
    """Return n u / (1 - n u); infinity if n u is 1 or more, where the bound does not hold."""
    share = counts * unit
    return np.where(share < 1, share / (1 - share), np.inf)


def _lowest_bits(array: Array) -> Array:
    """Return the value of the lowest set bit of each number, a power of two; infinity for 0."""
    mantissas, exponents = np.frexp(array)
    digits = (mantissas * 2.0**_F64_DIGITS).astype(np.int64)
    lowest = np.ldexp((digits & -digits).astype(np.float64), exponents - _F64_DIGITS)
    return np.where(array == 0, np.inf, lowest)


def _sum(operands: _Operands) -> tuple[Array, Array]:
    """Return the bound of a sum or mean, and the result in f64."""
    if operands.updates.dtype.kind != "c":
        bound, total = _real_sum(operands)
    else:
        (bound, total), (imaginary_bound, imaginary) = (
            _real_sum(operands.mapped(lambda part: part.real)),
            _real_sum(operands.mapped(lambda part: part.imag)),
        )
        bound, total = np.hypot(bound, imaginary_bound), total + 1j * imaginary
    return np.where(operands.has_other() & ~np.isinf(bound), 0.0, bound), total


def _real_sum(operands: _Operands) -> tuple[Array, Array]:
    task, limits, counts = operands.task, operands.limits, operands.counts
    real = operands.mapped(lambda part: _finite(part, 0.0))
    if task.reduction is Reduction.SUB:
        real = replace(real, updates=-real.updates)
    above = real.reduced(Reduction.SUM, lambda part: np.maximum(part, 0.0))
    below = real.reduced(Reduction.SUM, lambda part: np.maximum(-part, 0.0))
    lowest = real.reduced(Reduction.MIN, _lowest_bits)
    greatest, total, steps = np.maximum(above, below), above - below, np.maximum(counts - 1, 0)
    is_exact = limits.fits(greatest / lowest) | (steps == 0)
    share = steps * limits.unit
    grown = np.where(is_exact, greatest, greatest * (1 + 2 * np.minimum(share, 1)))
    half = np.maximum(limits.unit * np.exp2(np.frexp(grown)[1] - 1.0), limits.smallest)
    bound = np.where(share <= 0.5, steps * half, np.inf)
    is_many = (steps >= MANY) & ~is_exact
    if is_many.any():
        chance = _DEVIATIONS * half * np.sqrt(steps / 3)
        both = np.hypot(chance, _MORE * _drift(real, is_many, half))
        bound = np.where(is_many, np.minimum(bound, both), bound)
    bound = np.where(is_exact, 0.0, bound)
    if task.reduction is Reduction.MEAN:
        divisors = np.maximum(counts, 1)
        odd = divisors / _lowest_bits(divisors.astype(np.float64))
        is_whole = is_exact & (np.fmod(total / lowest, odd) == 0)
        total, bound = total / divisors, bound / divisors
        is_whole &= (total == 0) | (np.abs(total) >= limits.normal)
        rounded = bound + limits.unit * (np.abs(total) + bound) + limits.smallest
        bound = np.where(is_whole, 0.0, rounded)
    return np.where(grown > limits.largest, np.inf, bound), total


def _drift(operands: _Operands, chosen: Array, half: Array) -> Array:
    """Return the largest total of rounding errors in one direction, for the elements in `chosen`.

    `half` is half the distance between the numbers of the type near the largest partial sum.
    """
    targets = _targets(operands)
    numbers = np.empty(targets.count, np.int64)
    for source, hit in targets.blocks():
        numbers[source] = hit
    form = targets.rows, targets.width
    is_row_wanted: Array = np.any(chosen.reshape(form), axis=1)
    places = np.flatnonzero(is_row_wanted[numbers])
    places = places[np.argsort(numbers[places], kind="stable")]
    rows = numbers[places]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    updates, spacing = operands.updates.reshape(targets.count, targets.width), 2 * half.reshape(form)
    errors = np.zeros(form)
    step = max(1, _RUN // len(rows))
    for left in range(0, targets.width, step):
        columns = slice(left, left + step)
        scaled = (updates[places, columns] / spacing[rows, columns]).T
        begins = (np.arange(len(scaled))[:, None] * len(rows) + starts).reshape(-1)
        errors[rows[starts], columns] = _most_errors(scaled.reshape(-1), begins).reshape(len(scaled), -1).T
    return np.asarray((errors * spacing).reshape(chosen.shape))


def _most_errors(scaled: Array, starts: Array) -> Array:
    """Return the largest total of errors of neighbouring updates, in spacings, over three orders.

    `scaled` are updates divided by the spacing; those of element i are contiguous from `starts[i]` on.

    For each order: e = rint(x) - x, prefix sums S of e. The largest total over neighbours is max(S) - min(S)
    within the element.
    """
    is_start = np.zeros(len(scaled), np.int64)
    is_start[starts] = 1
    elements = np.cumsum(is_start) << 32
    # Sorted by element, and by the bits of the f32 value, or of its magnitude: an order up to f32 precision.
    codes = scaled.astype(np.float32).view(np.int32)
    magnitudes = codes & np.int32(2**31 - 1)
    most = np.zeros(len(starts))
    for ranks in (None, np.where(codes < 0, -magnitudes, magnitudes), magnitudes):
        ordered = scaled if ranks is None else scaled[np.argsort(elements + ranks)]
        total = np.zeros(len(starts))
        for level in range(_LEVELS):  # a growing sum passes through finer spacings first
            finer = ordered * 2.0**level
            errors = np.rint(finer) - finer
            sums = np.cumsum(errors)
            before = sums[starts] - errors[starts]
            high = np.maximum(np.maximum.reduceat(sums, starts), before)
            low = np.minimum(np.minimum.reduceat(sums, starts), before)
            total += (high - low) / 2.0**level
        most = np.maximum(most, total)
    return most


def _product(operands: _Operands) -> tuple[Array, Array | None]:
    """Return the error bound of the products, and the products in f64 (None if the type is f64)."""
    limits = operands.limits
    odd = operands.reduced(Reduction.PROD, _odd_parts)
    # Multiplying by a power of two does not round, nor does the first of the other factors.
    rounded = operands.reduced(Reduction.SUM, lambda part: (_odd_parts(part) > 1).astype(np.float64))
    share = _relative(np.maximum(rounded - 1, 0), limits.unit * limits.factor)
    bound = _counted_product(operands, np.where(limits.fits(odd), 0.0, share))
    if limits.digits == _F64_DIGITS:
        return bound, None
    return bound, operands.reduced(Reduction.PROD, lambda part: part)


def _odd_parts(array: Array) -> Array:
    """Return the magnitudes divided by the largest power of two that divides them; 1 for 0, infinity and NaN.

    For complex numbers the magnitudes of both parts are added: this sum for a product is at most the product
    of the sums of its factors.
    """
    if array.dtype.kind == "c":
        sizes = np.abs(array.real) + np.abs(array.imag)
        lowest = np.minimum(_lowest_bits(array.real), _lowest_bits(array.imag))
    else:
        sizes, lowest = np.abs(array), _lowest_bits(array)
    return np.where(np.isfinite(sizes) & (sizes > 0), sizes / lowest, 1.0)


def _counted_product(operands: _Operands, share: Array) -> Array:
    """Bound a product by `share` of its magnitude, plus the underflow error times the large factors."""
    limits, counts = operands.limits, operands.counts

    def nonzero(part: Array) -> Array:
        sizes = _finite(np.abs(part), 1.0)
        return np.where(sizes == 0, 1.0, sizes)

    great = operands.reduced(Reduction.PROD, lambda part: np.maximum(nonzero(part), 1.0))
    small = operands.reduced(Reduction.PROD, lambda part: np.minimum(nonzero(part), 1.0))
    product = operands.reduced(Reduction.PROD, lambda part: _finite(np.abs(part), 1.0))
    may_underflow, may_overflow = small < limits.normal, great > limits.largest
    lost = counts * limits.smallest * limits.factor * great
    has_zero = operands.reduced(Reduction.SUM, lambda part: part == 0)
    bound = np.where(has_zero, 0.0, share * product + np.where(may_underflow, lost, 0.0))
    not_finite = operands.has_other()
    bound[not_finite] = 0.0
    bound[may_overflow | (not_finite & may_underflow)] = np.inf
    return bound
