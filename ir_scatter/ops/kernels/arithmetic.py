"""What a reduction computes for an element type: in which type, from which value on, rounded how."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy

from ir_scatter.ops.kernels.rounding import round_once
from ir_scatter.ops.spec import Reduction

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

    DType = numpy.dtype[Any]

_UFUNCS: dict[Reduction, "numpy.ufunc"] = {
    Reduction.SUM: numpy.add,
    Reduction.SUB: numpy.subtract,
    Reduction.PROD: numpy.multiply,
    Reduction.MIN: numpy.minimum,
    Reduction.MAX: numpy.maximum,
    Reduction.MEAN: numpy.add,
}
_F64 = numpy.dtype(numpy.float64)
_I64 = numpy.dtype(numpy.int64)
_LOW_BITS = 32
_LOW_MASK = (1 << _LOW_BITS) - 1


@dataclass(frozen=True, slots=True)
class Arithmetic:
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
    ufunc = _UFUNCS[reduction]
    if dtype.kind == "b" and reduction is Reduction.SUB:
        ufunc = numpy.logical_xor
    is_wide = reduction is Reduction.MEAN or not _is_native(dtype)
    if not is_wide:
        return Arithmetic(ufunc, _neutral(dtype, reduction))
    if _is_floating(dtype):
        finish = _floating_mean(dtype) if reduction is Reduction.MEAN else _floating(dtype)
        return Arithmetic(ufunc, _neutral(_F64, reduction), _widen(_F64), finish)
    if reduction is not Reduction.MEAN:
        return Arithmetic(ufunc, _neutral(_I64, reduction), _widen(_I64), _integer(dtype))
    if dtype.itemsize == _I64.itemsize:
        return Arithmetic(ufunc, 0, _split, _joined_mean(dtype))
    return Arithmetic(ufunc, 0, _widen(_I64), _integer_mean(dtype))


def _is_native(dtype: "DType") -> bool:
    """Tell whether the type itself is wide enough to compute in."""
    return dtype.isbuiltin == 1 and dtype != numpy.float16


def _is_floating(dtype: "DType") -> bool:
    """Tell floating-point types from whole numbers, ml_dtypes' included."""
    return "float" in dtype.name


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


def _widen(wide: "DType") -> "Callable[[Array], Array]":
    return lambda rows: rows.astype(wide)


def _floating(dtype: "DType") -> "Callable[[Array, Array], Array]":
    return lambda rows, counts: round_once(rows, dtype)


def _floating_mean(dtype: "DType") -> "Callable[[Array, Array], Array]":
    return lambda rows, counts: round_once(rows / counts[:, None], dtype)


def _integer(dtype: "DType") -> "Callable[[Array, Array], Array]":
    return lambda rows, counts: rows.astype(dtype)


def _integer_mean(dtype: "DType") -> "Callable[[Array, Array], Array]":
    return lambda rows, counts: (rows // counts[:, None]).astype(dtype)


def _split(rows: "Array") -> "Array":
    """Put the upper and the lower half of 64 bits side by side, so that their sums do not wrap."""
    upper = (rows >> _LOW_BITS).astype(numpy.int64)
    lower = (rows & rows.dtype.type(_LOW_MASK)).astype(numpy.int64)
    return numpy.concatenate((upper, lower), axis=1)


def _joined_mean(dtype: "DType") -> "Callable[[Array, Array], Array]":
    """Divide the sum that two halves make, rounding towards minus infinity.

    Every step fits 64 bits for up to 2^31 values of one target.
    """

    def finish(rows: "Array", counts: "Array") -> "Array":
        upper, lower = numpy.split(rows, 2, axis=1)
        divisor = counts[:, None]
        upper = upper + (lower >> _LOW_BITS)
        quotient, remainder = numpy.divmod(upper, divisor)
        rest = ((remainder << _LOW_BITS) + (lower & _LOW_MASK)) // divisor
        mean: Array = (quotient.astype(dtype) << dtype.type(_LOW_BITS)) + rest.astype(dtype)
        return mean

    return finish
