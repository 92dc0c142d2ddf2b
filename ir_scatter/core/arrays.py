"""Helpers for NumPy arrays: kinds of elements, bitwise comparison, packing."""

from typing import Any, TypeAlias

import numpy as np

from ir_scatter.core.element_types import dtype, from_dtype

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

LARGEST_RANK = 64 if int(np.__version__.partition(".")[0]) > 1 else 32
"""Most dimensions of a NumPy array: 64 since NumPy 2.0."""

INEXACT = frozenset({"float", "complex"})
"""Kinds whose elements are rounded and can be NaN."""


def too_many_dimensions(rank: int) -> str:
    """Return an error message if NumPy does not support arrays of this rank, else ""."""
    return f"has {rank} dimensions, NumPy has at most {LARGEST_RANK}" if rank > LARGEST_RANK else ""


def kind(array: Array) -> str:
    """Return the kind of an array's elements, such as "float" or "signed".

    The others are "unsigned", "boolean", "complex" and "string".
    """
    element_type = from_dtype(array.dtype)
    return "string" if element_type is None else element_type.kind


def whole_numbers(array: Array) -> Array | None:
    """Return an integer array in a type that NumPy computes with (i4 becomes i8); None for other arrays."""
    if array.dtype.kind in "iu":
        return array
    return array.astype(np.int8) if kind(array) in {"signed", "unsigned"} else None


def extreme(of: np.dtype[Any], *, is_lowest: bool) -> Any:
    """Return the lowest or highest value of a dtype; infinite for floating-point types."""
    type = from_dtype(of)
    assert type is not None
    if type.kind == "boolean":
        return not is_lowest
    if type.kind == "float":
        return -np.inf if is_lowest else np.inf
    bits = type.bits - (type.kind == "signed")
    return -(2**bits) * (type.kind == "signed") if is_lowest else 2**bits - 1


def in_native_dtype(array: Array) -> Array:
    """Return an array in native byte order with NumPy's built-in dtype object for its type.

    Unpickled and byte-swapped arrays have other dtype objects, for which `isbuiltin` is not 1. The elements
    are copied only if bytes must be swapped.
    """
    stored = array.dtype
    if stored.isbuiltin == 1:
        return array
    row = None if stored.kind in "OUST" else from_dtype(stored)
    numpy_dtype: np.dtype[Any] | None = None if row is None else dtype(row)
    if row is None and not stored.isnative:
        numpy_dtype = stored.newbyteorder("=")
    if numpy_dtype is None or numpy_dtype is stored:
        return array
    return array.view(numpy_dtype) if numpy_dtype == stored else array.astype(numpy_dtype)


def are_equal(got: Array, expected: Array) -> bool:
    """Return whether two arrays have the same type, shape and bits; any NaN equals any other NaN."""
    got, expected = in_native_dtype(got), in_native_dtype(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    if not got.dtype.hasobject:  # compare all bytes at once, which is fast
        left, right = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (got, expected))
        if np.array_equal(left, right):
            return True
    return bool(same_bits(got, expected).all())


def same_bits(got: Array, expected: Array) -> Array:
    """Return a mask of the elements that have the same bits, or are both NaN."""
    if kind(got) not in INEXACT:
        return np.asarray(got == expected)
    with np.errstate(all="ignore"):
        same = (got == expected) & (np.signbit(native(got).real) == np.signbit(native(expected).real))
        return np.asarray(same | ((got != got) & (expected != expected)))


def bits_of(array: Array) -> Array:
    """Return the bytes of the elements on a new last axis, so that == compares bits; text is unchanged."""
    if array.dtype.hasobject:
        return array[..., np.newaxis]
    return np.ascontiguousarray(array).view(np.uint8).reshape(*array.shape, array.dtype.itemsize)


def native(array: Array) -> Array:
    """Return f8 and bf16 arrays as f32, others unchanged."""
    return array if array.dtype.kind in "fc" else array.astype(np.float32)


def pack(flat: Array, bits: int) -> Array:
    """Pack elements of less than a byte into bytes, the first element in the low bits."""
    count = 8 // bits
    padded = np.zeros(-(-len(flat) // count) * count, np.uint8)
    padded[: len(flat)] = flat.view(np.uint8) & ((1 << bits) - 1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    packed: Array = np.bitwise_or.reduce(padded.reshape(-1, count) << shifts, axis=1)
    return packed
