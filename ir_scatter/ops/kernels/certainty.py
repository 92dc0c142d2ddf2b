"""What is certain about the result of a reduction: hits, candidates, and how far rounding may take it.

Two bounds. `rounding_bound` follows the values:

- Sums of which every partial sum is a number of the type are exact in any order: multiples of a power
  of two (whole numbers are) that fit the significand when all of one sign are added up.
- Otherwise one addition is off by half a *spacing* at most, the distance between the numbers of the
  type where the greatest partial sum lies. For few additions that is the bound, and for many it
  is what they would be off if rounding were chance (their root times the spacing), and what is no chance:
  the *drift*. Where a sum is a multiple of the spacing, adding x is off by what rounding x alone to the
  spacing is off, whatever the sum is; equal values are all off in one direction. The drift is
  the most that such errors of updates which stand next to each other, in the order of the indices,
  of the values or of their magnitudes, add up to.
- A product whose odd parts fit the significand is exact too; another one is off by a share of itself
  for every factor that is no power of two. A factor that is lost is hardly ever that near to 1.

`counted_bound` knows only how many there are and how great, and holds for a computation in a coarser
precision when it is scaled by that.
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
"""Covers the rounding of the bound itself."""
MANY = 16
"""From so many operations on rounding is taken for chance."""
_DEVIATIONS = 4
"""How many standard deviations of chance are allowed."""
_MORE = 1.25
"""How much more than in the orders that are looked at a drift may be in others."""
_LEVELS = 4
"""So many spacings, each half of the one before, are looked at for a drift: sums grow through them."""
_RUN = 1 << 15
"""About so many updates are looked at for a drift at a time."""
_F64_DIGITS = 53


def count_hits(
    task: Task, data_shape: tuple[int, ...], indices: Array | None, updates_shape: tuple[int, ...]
) -> Array:
    """Count the updates of each element: i64, of the shape of data."""
    targets = find_targets(task, data_shape, indices, updates_shape, all_updates=True)
    counts = np.zeros(targets.rows, np.int64)
    if targets.count and targets.width:
        for _, rows in targets.blocks():
            np.add.at(counts, rows, 1)
    return np.repeat(counts, targets.width).reshape(data_shape)


def _targets(one: Operation) -> Targets:
    return find_targets(one.task, one.data.shape, one.indices, one.updates.shape, all_updates=True)


def find_candidates(one: Operation, position: tuple[int, ...]) -> Array:
    """Return the updates that hit one element of data, in row-major order of legal indices."""
    targets = _targets(one)
    if not targets.count:
        return one.updates.reshape(-1)[:0].copy()
    row, column = divmod(int(np.ravel_multi_index(position, one.data.shape)), targets.width)
    values = one.updates.reshape(targets.count, targets.width)[:, column]
    return np.concatenate([values[source][rows == row] for source, rows in targets.blocks()])


def is_candidate(one: Operation, values: Array, absolute: float, relative: float) -> Array:
    """Tell for each element of an output, `values`, whether some update that hits it has its value.

    A number may be off by so much, and by so much in proportion to the update.
    """
    targets = _targets(one)
    found = np.zeros((targets.rows, targets.width), np.bool_)
    if targets.count and targets.width:
        rows = np.ascontiguousarray(values).reshape(targets.rows, targets.width)
        source = one.updates.reshape(targets.count, targets.width)
        for part, places in targets.blocks():
            same = is_near(source[part], rows[places], absolute, relative)
            np.logical_or.at(found, places, same)
    return found.reshape(values.shape)


def has_other_updates(one: Operation, values: Array) -> Array:
    """Tell for each element of an output, `values`, whether some update that hits it has other bits."""
    targets = _targets(one)
    found = np.zeros((targets.rows, targets.width), np.bool_)
    if targets.count and targets.width:
        rows = np.ascontiguousarray(values).reshape(targets.rows, targets.width)
        source = one.updates.reshape(targets.count, targets.width)
        for part, places in targets.blocks():
            differs = (bits_of(source[part]) != bits_of(rows[places])).any(axis=-1)
            np.logical_or.at(found, places, differs)
    return found.reshape(values.shape)


def is_near(new: Array, old: Array, absolute: float, relative: float) -> Array:
    """Tell where values are those of updates, NaN being one of them."""
    with np.errstate(all="ignore"):
        same: Array = (new == old) | ((new != new) & (old != old))
        if absolute or relative:
            distance = abs(old.astype(np.complex128) - new.astype(np.complex128))
            same = same | (distance <= absolute + relative * abs(new).astype(np.float64))
    return same


def contested_by_nan(one: Operation, values: Array) -> Array:
    """Tell into which elements of a min or max both NaN and numbers go.

    No document says what becomes of NaN there: what stays depends on the order of the operands. In
    `values`, what came out of it, every NaN that takes part goes on.
    """
    every = replace(one.task, reduction=Reduction.SUM)
    is_number = scatter(every, one.data == one.data, one.indices, one.updates == one.updates)
    return np.asarray((values != values) & is_number)


def beyond_type(one: Operation, values: Array, hits: Array) -> Array:
    """Tell which results of numbers are none because the type cannot say them, and has no infinity either."""
    operands = _operands(one, hits)
    if operands is None:
        return np.zeros(values.shape, np.bool_)
    return np.asarray((values != values) & (hits > 0) & ~operands.has_other())


class Rounding(NamedTuple):
    """How far a result in any order may be from the exact one, and how far the computed values are."""

    bound: Array
    error: Array


def rounding_bound(one: Operation, values: Array, hits: Array) -> Rounding:
    """Bound the difference between the exact result and one computed in the element type.

    Never NaN: infinite where an order may overflow, 0 where nothing is rounded.
    """
    operands = _operands(one, hits)
    if operands is None:
        return Rounding(np.zeros(values.shape), np.zeros(values.shape))
    with np.errstate(all="ignore"):
        bound, exact = (_sum if one.task.reduction in _SUMS else _product)(operands)
        bound = np.where((hits == 0) | np.isnan(bound), 0.0, bound * _SAFETY)
        if operands.limits.digits == _F64_DIGITS:
            return Rounding(bound, bound)
        error = np.abs(_wide(values) - exact)
        is_known = np.isfinite(error) & (hits > 0)
        error = np.where(is_known, error, np.where(hits == 0, 0.0, bound))
        # What rounding once to a number beyond the greatest gives is not bounded by what is finite.
        return Rounding(np.where(bound > 0, np.maximum(bound, error), 0.0), error * (bound > 0))


def counted_bound(one: Operation, values: Array, hits: Array) -> Array:
    """Bound the same difference by how many values there are, and how great.

    For a sum of n numbers it is n u / (1 - n u) times the sum of their magnitudes (Higham, Accuracy
    and Stability of Numerical Algorithms, 4.2), u being half the distance of 1 to the next number;
    for a product the same times its magnitude.
    """
    operands = _operands(one, hits)
    if operands is None:
        return np.zeros(values.shape)
    limits, counts = operands.limits, operands.counts
    with np.errstate(all="ignore"):
        if one.task.reduction not in _SUMS:
            bound = _counted_product(operands, _relative(counts, limits.unit * limits.factor))
        else:
            total = operands.reduced(Reduction.SUM, lambda part: _finite(np.abs(part), 0.0))
            bound = np.where(operands.has_other(), 0.0, _relative(counts, limits.unit) * total)
            bound[total > limits.largest] = np.inf
        if one.task.reduction is Reduction.MEAN:
            magnitude = _finite(np.abs(_wide(values)), 0.0)
            bound = bound / np.maximum(counts, 1) + magnitude * limits.unit + limits.smallest
        return np.where((hits == 0) | np.isnan(bound), 0.0, bound * _SAFETY)


class _Limits:
    """What a floating-point type can hold."""

    def __init__(self, info: Any, is_complex: bool) -> None:
        self.unit = float(info.eps) / 2
        self.digits = 1 - round(float(np.log2(float(info.eps))))
        self.largest = float(info.max)
        self.smallest = float(info.smallest_subnormal)
        self.normal = float(info.smallest_normal)
        # A product of complex numbers rounds its parts: its relative error has this bound, in units.
        self.factor = 2 * 2**0.5 if is_complex else 1.0

    def fits(self, sizes: Array) -> Array:
        """Tell which whole numbers the significand holds; the sizes are computed in f64."""
        limit = 2.0**self.digits
        return np.asarray(sizes < limit if self.digits == _F64_DIGITS else sizes <= limit)


@dataclass(frozen=True, slots=True, eq=False)
class _Operands(Operation):
    """What takes part in a reduction: data and updates in f64 or complex128."""

    counts: Array
    limits: _Limits

    def reduced(self, reduction: Reduction, function: Callable[[Array], Array]) -> Array:
        """Reduce what a function makes of the operands."""
        task = replace(self.task, reduction=reduction)
        return scatter(task, function(self.data), self.indices, function(self.updates))

    def has_other(self) -> Array:
        """Tell into which elements an infinity or a NaN goes."""
        return self.reduced(Reduction.SUM, lambda part: ~np.isfinite(part))

    def made(self, function: Callable[[Array], Array]) -> "_Operands":
        return replace(self, data=function(self.data), updates=function(self.updates))


def _operands(one: Operation, hits: Array) -> _Operands | None:
    """Return what takes part in a reduction that rounds, None if it does not."""
    dtype, task = one.data.dtype, one.task
    is_floating = dtype.kind in "fc" if dtype.isbuiltin == 1 else "float" in dtype.name
    if not is_floating or task.reduction in {Reduction.NONE, Reduction.MIN, Reduction.MAX}:
        return None
    finfo: Any = np.finfo
    if dtype.isbuiltin != 1:
        from ml_dtypes import finfo
    limits, counts = _Limits(finfo(dtype), dtype.kind == "c"), hits + int(task.keeps_initial)
    return _Operands(task, _wide(one.data), one.indices, _wide(one.updates), counts, limits)


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _finite(array: Array, other: float) -> Array:
    return np.where(np.isfinite(array), array, other)


def _relative(counts: Array, unit: float) -> Array:
    """Return n u / (1 - n u), infinity where that says nothing."""
    share = counts * unit
    return np.where(share < 1, share / (1 - share), np.inf)


def _lowest_bits(array: Array) -> Array:
    """Return the power of two that is the last one in each number; infinity for 0."""
    mantissas, exponents = np.frexp(array)
    digits = (mantissas * 2.0**_F64_DIGITS).astype(np.int64)
    lowest = np.ldexp((digits & -digits).astype(np.float64), exponents - _F64_DIGITS)
    return np.where(array == 0, np.inf, lowest)


def _sum(operands: _Operands) -> tuple[Array, Array]:
    """Bound a sum or mean, and return it as f64 makes it."""
    if operands.updates.dtype.kind != "c":
        bound, total = _real_sum(operands)
    else:
        (bound, total), (other, imaginary) = (
            _real_sum(operands.made(lambda part: part.real)),
            _real_sum(operands.made(lambda part: part.imag)),
        )
        bound, total = np.hypot(bound, other), total + 1j * imaginary
    return np.where(operands.has_other() & ~np.isinf(bound), 0.0, bound), total


def _real_sum(operands: _Operands) -> tuple[Array, Array]:
    task, limits, counts = operands.task, operands.limits, operands.counts
    real = operands.made(lambda part: _finite(part, 0.0))
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
    """Return what rounding errors of one direction may add up to, for chosen elements.

    `half` is half the distance between numbers of the type where the greatest partial sum lies.
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
    found = np.zeros(form)
    step = max(1, _RUN // len(rows))
    for left in range(0, targets.width, step):
        columns = slice(left, left + step)
        scaled = (updates[places, columns] / spacing[rows, columns]).T
        begins = (np.arange(len(scaled))[:, None] * len(rows) + starts).reshape(-1)
        found[rows[starts], columns] = _most_errors(scaled.reshape(-1), begins).reshape(len(scaled), -1).T
    return np.asarray((found * spacing).reshape(chosen.shape))


def _most_errors(scaled: Array, starts: Array) -> Array:
    """Return the most that the errors of neighbours add up to, in spacings, whatever is neighbour of what.

    The updates are divided by the spacing, and those of one element one behind the other from its start on.
    """
    is_start = np.zeros(len(scaled), np.int64)
    is_start[starts] = 1
    elements = np.cumsum(is_start) << 32
    # Sorted by element, and by what f32 and its bits know of the value, or of the magnitude.
    codes = scaled.astype(np.float32).view(np.int32)
    magnitudes = codes & np.int32(2**31 - 1)
    most = np.zeros(len(starts))
    for ranks in (None, np.where(codes < 0, -magnitudes, magnitudes), magnitudes):
        ordered = scaled if ranks is None else scaled[np.argsort(elements + ranks)]
        found = np.zeros(len(starts))
        for level in range(_LEVELS):  # a sum goes through one spacing after the other
            finer = ordered * 2.0**level
            errors = np.rint(finer) - finer
            sums = np.cumsum(errors)
            before = sums[starts] - errors[starts]
            high = np.maximum(np.maximum.reduceat(sums, starts), before)
            low = np.minimum(np.minimum.reduceat(sums, starts), before)
            found += (high - low) / 2.0**level
        most = np.maximum(most, found)
    return most


def _product(operands: _Operands) -> tuple[Array, Array | None]:
    """Bound a product, and return the exact one where f64 is wide enough for it."""
    limits = operands.limits
    odd = operands.reduced(Reduction.PROD, _odd_parts)
    # A factor that is a power of two is not rounded, and the first of the others neither.
    rounded = operands.reduced(Reduction.SUM, lambda part: (_odd_parts(part) > 1).astype(np.float64))
    share = _relative(np.maximum(rounded - 1, 0), limits.unit * limits.factor)
    bound = _counted_product(operands, np.where(limits.fits(odd), 0.0, share))
    if limits.digits == _F64_DIGITS:
        return bound, None
    return bound, operands.reduced(Reduction.PROD, lambda part: part)


def _odd_parts(array: Array) -> Array:
    """Return the magnitudes divided by the last power of two in them; 1 for what has none.

    For complex numbers the magnitudes of both parts are added: that of a product is at most
    the product of those of its factors.
    """
    if array.dtype.kind == "c":
        sizes = np.abs(array.real) + np.abs(array.imag)
        lowest = np.minimum(_lowest_bits(array.real), _lowest_bits(array.imag))
    else:
        sizes, lowest = np.abs(array), _lowest_bits(array)
    return np.where(np.isfinite(sizes) & (sizes > 0), sizes / lowest, 1.0)


def _counted_product(operands: _Operands, share: Array) -> Array:
    """Bound a product by a share of itself; one that underflows loses what the great factors make of it."""
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
    other = operands.has_other()
    bound[other] = 0.0
    bound[may_overflow | (other & may_underflow)] = np.inf
    return bound
