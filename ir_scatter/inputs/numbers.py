"""Random arrays of any element type: moderate enough for every runtime, or with numbers at its edges."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array, extreme, too_many_dimensions
from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.errors import NoInputs

LARGEST = 8
"""No number that is drawn is larger, whichever its sign."""

_EIGHTH = 8
_WORDS = ("", "a", "b", "ab", "ba", "scatter")

_OFTEN = 0.5
"""How often an element is one of them."""

_FLOATS = (
    *(np.nan, np.inf, -np.inf, 0.0, -0.0),
    *(2.0**31, 2.0**31 - 1, 2.0**31 + 1, -(2.0**31), -(2.0**31) - 1),
    *(2.0**53, 2.0**53 - 1, 2.0**53 + 2, -(2.0**53), 2.0**24, 2.0**24 + 1, 2.0**63, 2.0**64),
    *(65504.0, -65504.0, 65519.0, 65520.0, 65536.0, 2.0**-14, 2.0**-24, 2.0**-25, 2.0**-14 - 2.0**-24),
    *(2.0**-126, 2.0**-149, -(2.0**-149), 2.0**-126 - 2.0**-149, 2.0**-1022, 2.0**-1074),
)
"""Limits of whole numbers, of exact whole numbers, of f16 and its subnormals, of f32 and f64."""

_WHOLE = (
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
    """Return random elements.

    Floating-point numbers are multiples of 1/8 unless they are to be whole, or what their type makes of one;
    f8e8m0, which has nothing but powers of two, gives those. Whole numbers stay within their type.
    """
    problem = too_many_dimensions(len(shape))
    if problem:
        raise NoInputs(f"an input {problem}")
    wanted = dtype_of(element_type)
    if element_type.kind == "string":
        return random.choice(np.array(_WORDS, object), shape).astype(object).reshape(shape)
    if element_type.kind == "boolean":
        return random.integers(0, 2, shape).astype(bool)
    if element_type.kind in {"signed", "unsigned"}:
        low, high = clip_to_type(element_type, low, high)
        return random.integers(low, high + 1, shape).astype(wanted)
    if is_whole:
        return random.integers(low, high + 1, shape).astype(np.float32).astype(wanted)
    if element_type.name == "f8e8m0":
        return np.exp2(random.integers(-3, 4, shape)).astype(np.float32).astype(wanted)
    found = _eighths(random, shape, low, high)
    if element_type.kind == "complex":
        return (found + 1j * _eighths(random, shape, low, high)).astype(wanted)
    return found.astype(wanted)


def clip_to_type(element_type: ElementType, low: int, high: int) -> tuple[int, int]:
    """Return the part of a range of whole numbers that a type can hold."""
    if element_type.kind not in {"signed", "unsigned"}:
        return low, high
    least, most = (extreme(dtype_of(element_type), is_lowest=is_lowest) for is_lowest in (True, False))
    return min(max(low, least), most), max(min(high, most), least)


def dtype_of(element_type: ElementType) -> "np.dtype[Any]":
    found = dtype(element_type)
    if found is None:
        raise NoInputs(f"NumPy has no type for {element_type.name}")
    return found


def _eighths(random: np.random.Generator, shape: Sequence[int], low: int, high: int) -> Array:
    return (random.integers(low * _EIGHTH, high * _EIGHTH + 1, shape) / _EIGHTH).astype(np.float32)


@cache
def edge_values(element_type: ElementType) -> Array:
    """Return the numbers at the edges of a type, not to be written to; empty if it has none."""
    if element_type.kind not in {"float", "signed", "unsigned"}:
        return np.empty(0)
    wanted = dtype_of(element_type)
    if element_type.kind != "float":
        low, high = clip_to_type(element_type, -(2**64), 2**64)
        whole = {low, low + 1, high - 1, high, *(number for number in _WHOLE if low <= number <= high)}
        return np.array(sorted(whole), np.uint64 if high >= 2**63 else np.int64).astype(wanted)
    with np.errstate(all="ignore"):
        floats = np.array(_FLOATS, np.float64)
        if wanted.type.__module__ == "numpy":
            limits = np.finfo(wanted)
            own = [limits.max, -limits.max, limits.smallest_normal, limits.smallest_subnormal, limits.eps]
            floats = np.concatenate([floats, np.array(own, np.float64)])
        return floats.astype(wanted) if wanted == np.float64 else floats.astype(np.float32).astype(wanted)


def has_edges(element_type: ElementType) -> bool:
    """Tell whether a type has numbers at its edges that `with_edges` draws."""
    return len(edge_values(element_type)) > 0


def with_edges(random: np.random.Generator, element_type: ElementType, array: Array) -> Array:
    """Return an array of which half the elements are at the edges of its type, if that has any."""
    edges = edge_values(element_type)
    if not len(edges):
        return array
    chosen = edges[random.integers(0, len(edges), array.shape)]
    return np.where(random.random(array.shape) < _OFTEN, chosen, array).astype(array.dtype)
