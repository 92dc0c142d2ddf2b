"""Draws random arrays of any element type: of moderate numbers, or of edge values such as infinity."""

from collections.abc import Sequence
from functools import cache
from math import ceil, floor
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, extreme, too_many_dimensions
from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.errors import BadFeed, NoInputs
from ir_scatter.core.value_ranges import ValueRange, show_range

LARGEST = 8
"""Maximum absolute value of ordinary random numbers."""

_STEPS_PER_UNIT = 8
"""Random floating-point numbers are multiples of 1/8: they and their sums are exact in most types."""
_LARGEST_IN_EIGHTHS = 2**20
"""Multiples of 1/8 are drawn only from ranges with ends up to this: larger ones are not exact in f32."""

_STRINGS = ("", "a", "b", "ab", "ba", "scatter")

_EDGE_SHARE = 0.5
"""Share of elements that `with_edges` replaces by edge values."""

_EDGE_FLOATS = (
    *(np.nan, np.inf, -np.inf, 0.0, -0.0),
    *(2.0**31, 2.0**31 - 1, 2.0**31 + 1, -(2.0**31), -(2.0**31) - 1),
    *(2.0**53, 2.0**53 - 1, 2.0**53 + 2, -(2.0**53), 2.0**24, 2.0**24 + 1, 2.0**63, 2.0**64),
    *(65504.0, -65504.0, 65519.0, 65520.0, 65536.0, 2.0**-14, 2.0**-24, 2.0**-25, 2.0**-14 - 2.0**-24),
    *(2.0**-126, 2.0**-149, -(2.0**-149), 2.0**-126 - 2.0**-149, 2.0**-1022, 2.0**-1074),
)
"""Special values, limits of integer types, limits of exact integers, limits and subnormals of f16, f32,
f64."""

_EDGE_INTEGERS = (
    *(0, 1, -1, 2**24 + 1, -(2**24) - 1, 2**31 - 1, 2**31, 2**31 + 1, -(2**31), -(2**31) - 1),
    *(2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)),
)


def random_array(
    random: np.random.Generator,
    element_type: ElementType,
    shape: Sequence[int],
    *,
    low: int = -LARGEST,
    high: int = LARGEST,
    is_whole: bool = False,
) -> Array:
    """Return an array of random elements from `low` to `high`, both included.

    Floating-point numbers are multiples of 1/8, or integers with `is_whole`, rounded to the type; for f8e8m0
    they are powers of two. The range of integers is clipped to the type.
    """
    problem = too_many_dimensions(len(shape))
    if problem:
        raise NoInputs(f"an input {problem}")
    numpy_type = dtype_of(element_type)
    if element_type.kind == "string":
        return random.choice(np.array(_STRINGS, object), shape).astype(object).reshape(shape)
    if element_type.kind == "boolean":
        return random.integers(0, 2, shape).astype(bool)
    if element_type.kind in {"signed", "unsigned"}:
        low, high = clip_to_type(element_type, low, high)
        return random.integers(low, high + 1, shape).astype(numpy_type)
    if is_whole:
        return random.integers(low, high + 1, shape).astype(np.float32).astype(numpy_type)
    if element_type.name == "f8e8m0":
        return np.exp2(random.integers(-3, 4, shape)).astype(np.float32).astype(numpy_type)
    numbers = _eighths(random, shape, low, high)
    if element_type.kind == "complex":
        return (numbers + 1j * _eighths(random, shape, low, high)).astype(numpy_type)
    return numbers.astype(numpy_type)


def random_array_within(
    random: np.random.Generator,
    element_type: ElementType,
    shape: Sequence[int],
    ends: ValueRange,
    *,
    is_whole: bool = False,
) -> Array:
    """Return an array of random elements in a range that `check_range` accepts, both ends included.

    Floating-point numbers are integers with `is_whole`. Without it they are multiples of 1/8, or any numbers
    if the range is shorter than 1 or has very large ends.
    """
    problem = too_many_dimensions(len(shape))
    if problem:
        raise NoInputs(f"an input {problem}")
    numpy_type = dtype_of(element_type)
    is_short = numpy_type.type.__module__ != "numpy"
    if is_whole or element_type.kind != "float":
        fitting = float_ends(element_type, ends) if element_type.kind == "float" else ends
        first, last = whole_ends(element_type, fitting)
        integers = random.integers(
            first, last, shape, np.uint64 if last >= 2**63 else np.int64, endpoint=True
        )
        is_converted_twice = is_short and element_type.kind == "float"
        return (integers.astype(np.float32) if is_converted_twice else integers).astype(numpy_type)
    low, high = float_ends(element_type, ends)
    if high - low >= 1 and max(abs(low), abs(high)) <= _LARGEST_IN_EIGHTHS:
        first, last = ceil(low * _STEPS_PER_UNIT), floor(high * _STEPS_PER_UNIT)
        numbers = np.asarray(random.integers(first, last, shape, endpoint=True) / _STEPS_PER_UNIT)
    else:
        numbers = np.asarray(low + (high - low) * random.random(shape))
    return (numbers.astype(np.float32) if is_short else numbers).astype(numpy_type)


def float_ends(element_type: ElementType, ends: ValueRange) -> ValueRange:
    """Return the part of a range within the finite numbers of a floating-point type; low > high if empty."""
    finfo: Any = np.finfo
    numpy_type = dtype_of(element_type)
    if numpy_type.isbuiltin != 1:
        from ml_dtypes import finfo
    most = float(finfo(numpy_type).max)
    least = 0.0 if element_type.name == "f8e8m0" else -most
    return max(ends[0], least), min(ends[1], most)


def whole_ends(element_type: ElementType, ends: ValueRange) -> tuple[int, int]:
    """Return the lowest and highest integer of a range that a type can represent; low > high if none."""
    low, high = ceil(ends[0]), floor(ends[1])
    if element_type.kind == "boolean":
        return max(low, 0), min(high, 1)
    if element_type.kind not in {"signed", "unsigned"}:
        return low, high
    least, most = (extreme(dtype_of(element_type), is_lowest=is_lowest) for is_lowest in (True, False))
    return max(low, least), min(high, most)


def check_range(name: str, element_type: ElementType, ends: ValueRange) -> None:
    """Raise BadFeed if the type of an input can represent no number of a range."""
    if element_type.kind not in {"boolean", "signed", "unsigned", "float"}:
        raise BadFeed(f"{name} is {element_type.name}, expected numbers for the range {show_range(ends)}")
    low, high = (float_ends if element_type.kind == "float" else whole_ends)(element_type, ends)
    if low > high:
        raise BadFeed(f"{name} is {element_type.name}, which has no number in {show_range(ends)}")


def clip_to_type(element_type: ElementType, low: int, high: int) -> tuple[int, int]:
    """Return the part of an integer range that an integer type can represent; unchanged for other types."""
    if element_type.kind not in {"signed", "unsigned"}:
        return low, high
    least, most = (extreme(dtype_of(element_type), is_lowest=is_lowest) for is_lowest in (True, False))
    return min(max(low, least), most), max(min(high, most), least)


def dtype_of(element_type: ElementType) -> "np.dtype[Any]":
    numpy_type = dtype(element_type)
    if numpy_type is None:
        raise NoInputs(f"NumPy has no type for {element_type.name}")
    return numpy_type


def _eighths(random: np.random.Generator, shape: Sequence[int], low: int, high: int) -> Array:
    return (
        random.integers(low * _STEPS_PER_UNIT, high * _STEPS_PER_UNIT + 1, shape) / _STEPS_PER_UNIT
    ).astype(np.float32)


@cache
def edge_values(element_type: ElementType) -> Array:
    """Return the edge values of a type, such as its limits and NaN; empty for types without any.

    The result is cached: do not modify it.
    """
    if element_type.kind not in {"float", "signed", "unsigned"}:
        return np.empty(0)
    numpy_type = dtype_of(element_type)
    if element_type.kind != "float":
        low, high = clip_to_type(element_type, -(2**64), 2**64)
        within = [number for number in _EDGE_INTEGERS if low <= number <= high]
        integers = {low, low + 1, high - 1, high, *within}
        return np.array(sorted(integers), np.uint64 if high >= 2**63 else np.int64).astype(numpy_type)
    with np.errstate(all="ignore"):
        floats = np.array(_EDGE_FLOATS, np.float64)
        if numpy_type.type.__module__ == "numpy":
            limits = np.finfo(numpy_type)
            smallest = limits.smallest_normal, limits.smallest_subnormal, limits.eps
            type_limits = [limits.max, -limits.max, *smallest]
            floats = np.concatenate([floats, np.array(type_limits, np.float64)])
        if numpy_type == np.float64:
            return floats.astype(numpy_type)
        return floats.astype(np.float32).astype(numpy_type)


def has_edges(element_type: ElementType) -> bool:
    return len(edge_values(element_type)) > 0


def with_edges(random: np.random.Generator, element_type: ElementType, array: Array) -> Array:
    """Replace about half of the elements by edge values of the type, if it has any."""
    edges = edge_values(element_type)
    if not len(edges):
        return array
    chosen = edges[random.integers(0, len(edges), array.shape)]
    return np.where(random.random(array.shape) < _EDGE_SHARE, chosen, array).astype(array.dtype)
