"""From f64 to a narrower floating-point type, rounded once."""

from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


def round_once(values: "Array", dtype: "numpy.dtype[Any]") -> "Array":
    """Round f64 to a narrower type, to nearest even.

    NumPy rounds f64 to its own types once. ml_dtypes goes through f32, which rounds twice; so f32 is
    made by rounding to odd first, which keeps every later rounding right as long as the type has at
    least two bits less.
    """
    if dtype.isbuiltin == 1:
        return values.astype(dtype)
    return _round_to_odd(values).astype(dtype)


def _round_to_odd(values: "Array") -> "Array":
    """Round f64 to f32 so that what is not exact gets an odd last bit."""
    nearest = values.astype(numpy.float32)
    back = nearest.astype(numpy.float64)
    is_inexact = (back != values) & ~numpy.isnan(values)
    is_even = (nearest.view(numpy.int32) & 1) == 0
    towards = numpy.where(back < values, numpy.float32(numpy.inf), numpy.float32(-numpy.inf))
    odd = numpy.nextafter(nearest, towards)
    rounded: Array = numpy.where(is_inexact & is_even, odd, nearest)
    return rounded
