"""Conversions between element types: Convert, ConvertLike, Cast, CastLike, Identity."""

from typing import Any

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.ops.general_kernels.case import Array, Case, UnsupportedCase, kind

_BY_DTYPE = {row.dtype_name: row for row in ELEMENT_TYPES.values() if row.dtype_name}


def identity(case: Case) -> Array:
    """Return the input itself."""
    return case.array(0)


def convert(case: Case) -> Array:
    """Convert to the `destination_type` of an IR."""
    return change_type(case.array(0), dtype_of(case.attributes.element_type("destination_type")))


def convert_like(case: Case) -> Array:
    """Convert to the type of the second input."""
    return change_type(case.array(0), case.array(1).dtype)


def cast(case: Case) -> Array:
    """Convert to the type `to` of ONNX; types of 8 bits saturate unless `saturate` is 0."""
    destination = dtype_of(case.attributes.element_type("to"))
    return change_type(case.array(0), destination, saturate=_saturate(case))


def cast_like(case: Case) -> Array:
    """Convert to the type of the second input; `saturate` as for Cast."""
    return change_type(case.array(0), case.array(1).dtype, saturate=_saturate(case))


def dtype_of(element_type: ElementType) -> np.dtype[Any]:
    """Return NumPy's type for an element type; refuse one that NumPy has no type for."""
    found = dtype(element_type)
    if found is None:
        raise UnsupportedCase(f"{element_type.name} has no NumPy type")
    return found


def change_type(array: Array, destination: np.dtype[Any], *, saturate: bool = False) -> Array:
    """Convert elements to another type.

    Whole numbers wrap around. Floating-point numbers are truncated on the way to whole ones, and
    round to nearest even on the way to shorter ones, beyond whose range lies infinity (NaN if
    they have none). Everything but 0 becomes true. Refused, because undefined: a NaN, infinity or
    number out of range to a whole number; a NaN to a type without one; anything inexact to
    f8e8m0; strings and complex numbers.

    Args:
        array: of any shape.
        destination: the type to convert to.
        saturate: whether floats of at most 8 bits stop at their largest value.
    """
    if array.dtype == destination:
        return array
    target = _BY_DTYPE.get(destination.name)
    if target is None or {kind(array), target.kind} & {"string", "complex"}:
        raise UnsupportedCase(f"no conversion from {array.dtype} to {destination}")
    plain = widen(array)
    if target.kind == "boolean":
        return np.asarray(plain != 0)
    if target.kind != "float":
        whole = _truncated(plain, target) if kind(array) == "float" else plain
        return whole.astype(destination)
    return _shortened(plain, target, destination, saturate)


def widen(array: Array) -> Array:
    """Give elements that NumPy itself does not know (bf16, f8, i4, ...), and f16, a wider type."""
    if array.dtype.kind == "V" or array.dtype == np.float16:
        return array.astype(np.float32 if kind(array) == "float" else np.int16)
    return array


def narrow(array: Array, destination: np.dtype[Any]) -> Array:
    """Take back what `widen` did, after a computation: round, or wrap around."""
    return np.asarray(array).astype(destination, copy=False)


def _saturate(case: Case) -> bool:
    case.attributes.text("round_mode", "up", {"up", "down", "nearest"})
    return case.attributes.boolean("saturate", True)


def _truncated(numbers: Array, target: ElementType) -> Array:
    """Round floats towards zero; refuse what `target` cannot hold."""
    whole = np.trunc(numbers.astype(np.float64))
    is_signed = target.kind == "signed"
    limit = 2.0 ** (target.bits - is_signed)
    fits = (whole >= -limit * is_signed) & (whole < limit)
    if not fits.all():
        raise UnsupportedCase(f"{numbers[~fits].flat[0]} does not fit into {target.name}")
    return whole.astype(np.int64 if is_signed else np.uint64)


def _shortened(numbers: Array, target: ElementType, destination: np.dtype[Any], saturate: bool) -> Array:
    if target.bits > 8:
        return numbers.astype(destination)
    real = numbers.astype(np.float64 if numbers.dtype == np.float64 else np.float32)
    if target.name == "f8e8m0":
        exact = real.astype(destination)
        if not np.array_equal(exact.astype(real.dtype), real, equal_nan=True):
            raise UnsupportedCase("the rounding of f8e8m0 is not computed")
        return exact
    if target.bits < 8 and np.isnan(real).any():
        raise UnsupportedCase(f"NaN does not fit into {target.name}")
    if saturate and target.bits == 8:
        every = np.arange(256, dtype=np.uint8).view(destination).astype(np.float32)
        largest = float(every[np.isfinite(every)].max())
        real = np.clip(real, -largest, largest)
    return real.astype(destination)
