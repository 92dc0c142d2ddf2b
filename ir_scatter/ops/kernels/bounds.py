"""How far a floating-point reduction may be from the exact result, in any order.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy

from ir_scatter.ops.kernels.drift import find_drift
from ir_scatter.ops.kernels.scatter import scatter
from ir_scatter.ops.kernels.task import Task
from ir_scatter.ops.spec import Reduction

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

_SUMS = frozenset({Reduction.SUM, Reduction.SUB, Reduction.MEAN})
_COMPLEX_PRODUCT = 2 * 2**0.5
"""A product of complex numbers rounds its parts: its relative error has this bound, in units."""
_SAFETY = 1 + 2**-20
"""Covers the rounding of the bound itself."""
_MANY = 16
"""From so many operations on rounding is taken for chance."""
_DEVIATIONS = 4
"""How many standard deviations of chance are allowed."""
_MORE = 1.25
"""How much more than in the orders that are looked at a drift may be in others."""
_F64_DIGITS = 53


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """How far results may be apart.

    Attributes:
        bound: f64: how far a result in any order may be from the exact one.
        error: f64: how far the computed values are from the exact ones, at most.
    """

    bound: "Array"
    error: "Array"


def rounding_bound(
    task: Task, data: "Array", indices: "Array | None", updates: "Array", values: "Array", hits: "Array"
) -> Rounding:
    """Bound the difference between the exact result and one computed in the element type.

    Returns:
        f64 of the shape of data, never NaN: infinite where an order may overflow, 0 where nothing is
        rounded.
    """
    limits = _limits(data.dtype)
    if limits is None or task.reduction in {Reduction.NONE, Reduction.MIN, Reduction.MAX}:
        return Rounding(numpy.zeros(data.shape), numpy.zeros(data.shape))
    counts = hits + int(task.keeps_initial)
    operands = _Operands(task, data, indices, updates, counts, limits)
    with numpy.errstate(all="ignore"):
        bound, exact = (_sum if task.reduction in _SUMS else _product)(operands)
        bound = numpy.where((hits == 0) | numpy.isnan(bound), 0.0, bound * _SAFETY)
        if exact is None:
            return Rounding(bound, bound)
        error = numpy.abs(operands.wide(values) - exact)
        is_known = numpy.isfinite(error) & (hits > 0)
        error = numpy.where(is_known, error, numpy.where(hits == 0, 0.0, bound))
        # What rounding once to a number beyond the greatest gives is not bounded by what is finite.
        return Rounding(numpy.where(bound > 0, numpy.maximum(bound, error), 0.0), error * (bound > 0))


def counted_bound(
    task: Task, data: "Array", indices: "Array | None", updates: "Array", values: "Array", hits: "Array"
) -> "Array":
    """Bound the same difference by how many values there are, and how great.

    For a sum of n numbers it is n u / (1 - n u) times the sum of their magnitudes (Higham, Accuracy
    and Stability of Numerical Algorithms, 4.2), u being half the distance of 1 to the next number;
    for a product the same times its magnitude.
    """
    limits = _limits(data.dtype)
    if limits is None or task.reduction in {Reduction.NONE, Reduction.MIN, Reduction.MAX}:
        return numpy.zeros(data.shape)
    counts = hits + int(task.keeps_initial)
    operands = _Operands(task, data, indices, updates, counts, limits)
    with numpy.errstate(all="ignore"):
        if task.reduction not in _SUMS:
            bound = _counted_product(operands, _relative(counts, limits.unit * limits.factor))
        else:
            total = operands.reduced(Reduction.SUM, lambda part: _finite(numpy.abs(part), 0.0))
            bound = numpy.where(operands.has_other(), 0.0, _relative(counts, limits.unit) * total)
            bound[total > limits.largest] = numpy.inf
        if task.reduction is Reduction.MEAN:
            magnitude = _finite(numpy.abs(operands.wide(values)), 0.0)
            bound = bound / numpy.maximum(counts, 1) + magnitude * limits.unit + limits.smallest
        return numpy.where((hits == 0) | numpy.isnan(bound), 0.0, bound * _SAFETY)


class _Limits:
    """What a floating-point type can hold."""

    def __init__(self, info: Any, is_complex: bool) -> None:
        self.unit = float(info.eps) / 2
        self.digits = 1 - round(float(numpy.log2(float(info.eps))))
        self.largest = float(info.max)
        self.smallest = float(info.smallest_subnormal)
        self.normal = float(info.smallest_normal)
        self.factor = _COMPLEX_PRODUCT if is_complex else 1.0

    def fits(self, sizes: "Array") -> "Array":
        """Tell which whole numbers the significand holds; the sizes are computed in f64."""
        limit = 2.0**self.digits
        fits: Array = sizes < limit if self.digits == _F64_DIGITS else sizes <= limit
        return fits


def _limits(dtype: "numpy.dtype[Any]") -> _Limits | None:
    if dtype.isbuiltin == 1:
        return _Limits(numpy.finfo(dtype), dtype.kind == "c") if dtype.kind in "fc" else None
    if "float" not in dtype.name:
        return None
    import ml_dtypes

    finfo: Callable[[Any], Any] = ml_dtypes.finfo
    return _Limits(finfo(dtype), False)


class _Operands:
    """What takes part in a reduction, in f64 or complex128."""

    def __init__(
        self,
        task: Task,
        data: "Array",
        indices: "Array | None",
        updates: "Array",
        counts: "Array",
        limits: _Limits,
    ) -> None:
        self.task, self.indices, self.counts, self.limits = task, indices, counts, limits
        self.old, self.new = self.wide(data), self.wide(updates)
        self.is_complex = data.dtype.kind == "c"

    def wide(self, array: "Array") -> "Array":
        """Return numbers in the type that all is computed in."""
        return array.astype(numpy.complex128 if array.dtype.kind == "c" else numpy.float64)

    def reduced(self, reduction: Reduction, function: "Callable[[Array], Array]") -> "Array":
        """Reduce what a function makes of the operands."""
        task = replace(self.task, reduction=reduction)
        return scatter(task, function(self.old), self.indices, function(self.new))

    def has_other(self) -> "Array":
        """Tell into which elements an infinity or a NaN goes."""
        return self.reduced(Reduction.SUM, lambda part: ~numpy.isfinite(part))

    def parts(self) -> "Iterator[_Operands]":
        """Yield the real operands, or the real and the imaginary parts."""
        if not self.is_complex:
            yield self
            return
        for name in ("real", "imag"):
            part = object.__new__(_Operands)
            part.task, part.indices, part.counts, part.limits = (
                self.task, self.indices, self.counts, self.limits,
            )  # fmt: skip
            part.old, part.new, part.is_complex = getattr(self.old, name), getattr(self.new, name), False
            yield part


def _finite(array: "Array", other: float) -> "Array":
    finite: Array = numpy.where(numpy.isfinite(array), array, other)
    return finite


def _relative(counts: "Array", unit: float) -> "Array":
    """Return n u / (1 - n u), 1 or more where the bound says nothing."""
    share = counts * unit
    relative: Array = numpy.where(share < 1, share / (1 - share), numpy.inf)
    return relative


def _lowest_bits(array: "Array") -> "Array":
    """Return the power of two that is the last one in each number; infinity for 0."""
    mantissas, exponents = numpy.frexp(array)
    digits = (mantissas * 2.0**_F64_DIGITS).astype(numpy.int64)
    lowest = numpy.ldexp((digits & -digits).astype(numpy.float64), exponents - _F64_DIGITS)
    found: Array = numpy.where(array == 0, numpy.inf, lowest)
    return found


def _sum(operands: _Operands) -> "tuple[Array, Array | None]":
    """Bound a sum or mean, and return the exact one where f64 is wide enough for it."""
    found = [_real_sum(part) for part in operands.parts()]
    bounds = [bound for bound, _ in found]
    bound = bounds[0] if len(bounds) == 1 else numpy.hypot(*bounds)
    overflows = numpy.isinf(bound)
    bound = numpy.where(operands.has_other() & ~overflows, 0.0, bound)
    if operands.limits.digits == _F64_DIGITS:
        return bound, None
    exact = found[0][1] if len(found) == 1 else found[0][1] + 1j * found[1][1]
    return bound, exact


def _real_sum(operands: _Operands) -> "tuple[Array, Array]":
    """Bound the sum or mean of real numbers, and return it as f64 makes it."""
    task, limits, counts = operands.task, operands.limits, operands.counts
    sign = -1.0 if task.reduction is Reduction.SUB else 1.0
    real = _Operands(
        task, _finite(operands.old, 0.0), operands.indices, sign * _finite(operands.new, 0.0), counts, limits
    )
    above = real.reduced(Reduction.SUM, lambda part: numpy.maximum(part, 0.0))
    below = real.reduced(Reduction.SUM, lambda part: numpy.maximum(-part, 0.0))
    lowest = real.reduced(Reduction.MIN, _lowest_bits)
    greatest, total, steps = numpy.maximum(above, below), above - below, numpy.maximum(counts - 1, 0)
    is_exact = limits.fits(greatest / lowest) | (steps == 0)
    share = steps * limits.unit
    grown = numpy.where(is_exact, greatest, greatest * (1 + 2 * numpy.minimum(share, 1)))
    half = numpy.maximum(limits.unit * numpy.exp2(numpy.frexp(grown)[1] - 1.0), limits.smallest)
    bound = numpy.where(share <= 0.5, steps * half, numpy.inf)
    is_many = (steps >= _MANY) & ~is_exact
    if is_many.any():
        chance = _DEVIATIONS * half * numpy.sqrt(steps / 3)
        both = numpy.hypot(chance, _MORE * find_drift(task, real.indices, real.new, is_many, half))
        bound = numpy.where(is_many, numpy.minimum(bound, both), bound)
    bound = numpy.where(is_exact, 0.0, bound)
    if task.reduction is Reduction.MEAN:
        divisors = numpy.maximum(counts, 1)
        odd = divisors / _lowest_bits(divisors.astype(numpy.float64))
        is_whole = is_exact & (numpy.fmod(total / lowest, odd) == 0)
        total, bound = total / divisors, bound / divisors
        is_whole &= (total == 0) | (numpy.abs(total) >= limits.normal)
        rounded = bound + limits.unit * (numpy.abs(total) + bound) + limits.smallest
        bound = numpy.where(is_whole, 0.0, rounded)
    return numpy.where(grown > limits.largest, numpy.inf, bound), total


def _product(operands: _Operands) -> "tuple[Array, Array | None]":
    """Bound a product, and return the exact one where f64 is wide enough for it."""
    limits = operands.limits
    odd = operands.reduced(Reduction.PROD, _odd_parts)
    # A factor that is a power of two is not rounded, and the first of the others neither.
    rounded = operands.reduced(Reduction.SUM, lambda part: (_odd_parts(part) > 1).astype(numpy.float64))
    share = _relative(numpy.maximum(rounded - 1, 0), limits.unit * limits.factor)
    bound = _counted_product(operands, numpy.where(limits.fits(odd), 0.0, share))
    if limits.digits == _F64_DIGITS:
        return bound, None
    return bound, operands.reduced(Reduction.PROD, lambda part: part)


def _odd_parts(array: "Array") -> "Array":
    """Return the magnitudes divided by the last power of two in them; 1 for what has none.

    For complex numbers the magnitudes of both parts are added: that of a product is at most
    the product of those of its factors.
    """
    if array.dtype.kind == "c":
        sizes = numpy.abs(array.real) + numpy.abs(array.imag)
        lowest = numpy.minimum(_lowest_bits(array.real), _lowest_bits(array.imag))
    else:
        sizes, lowest = numpy.abs(array), _lowest_bits(array)
    found: Array = numpy.where(numpy.isfinite(sizes) & (sizes > 0), sizes / lowest, 1.0)
    return found


def _counted_product(operands: _Operands, share: "Array") -> "Array":
    """Bound a product by a share of itself; one that underflows loses what the great factors make of it."""
    limits, counts = operands.limits, operands.counts

    def nonzero(part: "Array") -> "Array":
        sizes = _finite(numpy.abs(part), 1.0)
        return numpy.where(sizes == 0, 1.0, sizes)

    great = operands.reduced(Reduction.PROD, lambda part: numpy.maximum(nonzero(part), 1.0))
    small = operands.reduced(Reduction.PROD, lambda part: numpy.minimum(nonzero(part), 1.0))
    product = operands.reduced(Reduction.PROD, lambda part: _finite(numpy.abs(part), 1.0))
    may_underflow, may_overflow = small < limits.normal, great > limits.largest
    lost = counts * limits.smallest * limits.factor * great
    has_zero = operands.reduced(Reduction.SUM, lambda part: part == 0)
    bound = numpy.where(has_zero, 0.0, share * product + numpy.where(may_underflow, lost, 0.0))
    other = operands.has_other()
    bound[other] = 0.0
    bound[may_overflow | (other & may_underflow)] = numpy.inf
    return bound
