"""How far a floating-point reduction may be from the exact result, in any order."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy

from ir_scatter.ops.kernels.scatter import scatter
from ir_scatter.ops.kernels.task import Task
from ir_scatter.ops.spec import Reduction

if TYPE_CHECKING:
    from ir_scatter.constants import Array

_SUMS = frozenset({Reduction.SUM, Reduction.SUB, Reduction.MEAN})
_COMPLEX_PRODUCT = 2 * 2**0.5
"""A product of complex numbers rounds its parts: its relative error has this bound, in units."""
_SAFETY = 1 + 2**-20
"""Covers the rounding of the bound itself."""


def rounding_bound(
    task: Task, data: "Array", indices: "Array | None", updates: "Array", values: "Array", hits: "Array"
) -> "Array":
    """Bound the difference between the exact result and one computed in the element type.

    The bound holds for every order of the updates and of the old value, with rounding to nearest.
    For a sum of n numbers it is n u / (1 - n u) times the sum of their magnitudes (Higham, Accuracy
    and Stability of Numerical Algorithms, 4.2), u being half the distance of 1 to the next number;
    for a product the same times its magnitude.

    Returns:
        f64 of the shape of data: infinite where an order may overflow, 0 where nothing is rounded.
    """
    limits = _limits(data.dtype)
    if limits is None or task.reduction in {Reduction.NONE, Reduction.MIN, Reduction.MAX}:
        return numpy.zeros(data.shape)
    magnitudes = _magnitude(data), _magnitude(updates)
    counts = hits + int(task.keeps_initial)
    with numpy.errstate(all="ignore"):
        is_sum = task.reduction in _SUMS
        bound = (_sum_bound if is_sum else _product_bound)(task, magnitudes, indices, counts, limits)
        if task.reduction is Reduction.MEAN:
            bound = bound / numpy.maximum(counts, 1) + _magnitude(values) * limits.unit + limits.smallest
    return numpy.where(hits == 0, 0.0, bound * _SAFETY)


class _Limits:
    """What a floating-point type can hold."""

    def __init__(self, info: Any, is_complex: bool) -> None:
        self.unit = float(info.eps) / 2
        self.largest = float(info.max)
        self.smallest = float(info.smallest_subnormal)
        self.normal = float(info.smallest_normal)
        self.factor = _COMPLEX_PRODUCT if is_complex else 1.0


def _limits(dtype: "numpy.dtype[Any]") -> _Limits | None:
    if dtype.isbuiltin == 1:
        return _Limits(numpy.finfo(dtype), dtype.kind == "c") if dtype.kind in "fc" else None
    if "float" not in dtype.name:
        return None
    import ml_dtypes

    finfo: Callable[[Any], Any] = ml_dtypes.finfo
    return _Limits(finfo(dtype), False)


def _magnitude(array: "Array") -> "Array":
    wide = array if array.dtype.kind == "c" else array.astype(numpy.float64)
    magnitude: Array = numpy.abs(wide).astype(numpy.float64)
    return magnitude


def _reduced(
    task: Task, reduction: Reduction, old: "Array", indices: "Array | None", updates: "Array"
) -> "Array":
    return scatter(replace(task, reduction=reduction), old, indices, updates)


def _relative(counts: "Array", unit: float) -> "Array":
    """Return n u / (1 - n u), 1 or more where the bound says nothing."""
    share = counts * unit
    relative: Array = numpy.where(share < 1, share / (1 - share), numpy.inf)
    return relative


def _sum_bound(
    task: Task,
    magnitudes: "tuple[Array, Array]",
    indices: "Array | None",
    counts: "Array",
    limits: _Limits,
) -> "Array":
    finite = [numpy.where(numpy.isfinite(part), part, 0.0) for part in magnitudes]
    total = _reduced(task, Reduction.SUM, finite[0], indices, finite[1])
    has_other = _has_other(task, magnitudes, indices)
    bound: Array = numpy.where(has_other, 0.0, _relative(counts, limits.unit) * total)
    bound[total > limits.largest] = numpy.inf
    return bound


def _has_other(task: Task, magnitudes: "tuple[Array, Array]", indices: "Array | None") -> "Array":
    """Tell into which elements an infinity or a NaN goes."""
    old, new = (~numpy.isfinite(part) for part in magnitudes)
    return _reduced(task, Reduction.SUM, old, indices, new)


def _product_bound(
    task: Task,
    magnitudes: "tuple[Array, Array]",
    indices: "Array | None",
    counts: "Array",
    limits: _Limits,
) -> "Array":
    """Bound a product; one that underflows on the way loses what the great factors make of it."""
    finite = [numpy.where(numpy.isfinite(part), part, 1.0) for part in magnitudes]
    nonzero = [numpy.where(part == 0, 1.0, part) for part in finite]
    great = _reduced(
        task, Reduction.PROD, numpy.maximum(nonzero[0], 1), indices, numpy.maximum(nonzero[1], 1)
    )
    small = _reduced(
        task, Reduction.PROD, numpy.minimum(nonzero[0], 1), indices, numpy.minimum(nonzero[1], 1)
    )
    product = _reduced(task, Reduction.PROD, finite[0], indices, finite[1])
    bound = _relative(counts, limits.unit * limits.factor) * product
    may_underflow, may_overflow = small < limits.normal, great > limits.largest
    bound = bound + numpy.where(may_underflow, counts * limits.smallest * limits.factor * great, 0.0)
    other = _has_other(task, magnitudes, indices)
    bound[other] = 0.0
    bound[may_overflow | (other & may_underflow)] = numpy.inf
    return bound
