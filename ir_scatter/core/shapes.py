"""Partial shapes: a dimension or the rank may be unknown, and a dimension may have bounds."""

import re
from collections.abc import Iterable
from functools import lru_cache
from math import prod
from typing import NamedTuple, TypeAlias, TypeGuard

from ir_scatter.core.display import brief


class Bounds(NamedTuple):
    """A dimension that is not known exactly: `1..5`, `2..`, `?`, or a symbol such as `batch`."""

    low: int = 0
    high: int | None = None
    symbol: str | None = None

    def __repr__(self) -> str:
        return brief(show_dim(self))


Dim: TypeAlias = "int | Bounds"
Shape: TypeAlias = "tuple[Dim, ...] | None"
"""A tuple of dimensions; None if the rank is unknown."""

UNKNOWN_DIM = Bounds()
_EXACT = frozenset({int})

_BOUNDS = re.compile(r"\[?([0-9]{0,19})\.\.([0-9]{0,19})\]?")
_NUMBER = re.compile(r"[0-9]{1,19}")
LARGEST_DIM = 2**63 - 1
MAX_RANK = 64
"""Largest rank that any runtime, or NumPy, accepts."""


def agree_dims(left: Dim, right: Dim) -> bool:
    """Return whether two dimensions can be the same number: `?` and 3 can, 2 and 3 cannot."""
    return at_most(left, right) and at_most(right, left)


def agree(left: Shape, right: Shape) -> bool:
    """Return whether two partial shapes can be the same shape; an unknown rank agrees with every shape."""
    if left == right or left is None or right is None:
        return True
    return len(left) == len(right) and all(map(agree_dims, left, right))


def claims_more(stored: Shape, inferred: Shape) -> bool:
    """Return whether a stored shape contradicts the inferred one, or is more exact."""
    if stored is None or inferred is None or stored == inferred:
        return False
    if len(stored) != len(inferred):
        return True
    return any(isinstance(dim, int) and dim != actual for dim, actual in zip(stored, inferred, strict=True))


def differing_dim(left: Shape, right: Shape) -> int | None:
    """Return the index of the only dimension in which two shapes differ; None if there is not just one."""
    if left is None or right is None or len(left) != len(right):
        return None
    pairs = [*enumerate(zip(left, right, strict=True))]
    contrary = [number for number, (first, second) in pairs if not agree_dims(first, second)]
    different = contrary or [number for number, (first, second) in pairs if first != second]
    return different[0] if len(different) == 1 else None


def excludes(inferred: Shape, stored: Shape) -> bool:
    """Return whether a stored shape contradicts the inferred one, or has a number for a symbol of it."""
    if not agree(inferred, stored):
        return True
    pairs = zip(inferred or (), stored or (), strict=False)
    return any(isinstance(dim, Bounds) and dim.symbol and isinstance(size, int) for dim, size in pairs)


def at_most(dim: Dim, limit: Dim) -> bool:
    """Return whether `dim` may be at most `limit`: true for `2..` and 5, false for `6..` and 5."""
    high = highest(limit)
    return high is None or lowest(dim) <= high


def lowest(dim: Dim) -> int:
    """Return the lower bound of a dimension."""
    return dim if isinstance(dim, int) else dim.low


def highest(dim: Dim) -> int | None:
    """Return the upper bound of a dimension, None without one."""
    return dim if isinstance(dim, int) else dim.high


def narrow_dim(left: Dim, right: Dim) -> Dim:
    """Return the intersection of two dimensions, which must agree: `1..5` and `3..` -> `3..5`."""
    if isinstance(left, int):
        return left
    if isinstance(right, int):
        return right
    highs = [bound.high for bound in (left, right) if bound.high is not None]
    low, high = max(left.low, right.low), min(highs) if highs else None
    return low if low == high else Bounds(low, high, left.symbol or right.symbol)


def narrow(left: Shape, right: Shape) -> Shape:
    """Return the intersection of two shapes, which must agree: [2, ?] and [?, 3] -> [2, 3]."""
    if left is None or left == right:
        return right
    return left if right is None else tuple(map(narrow_dim, left, right))


def is_static(shape: Shape) -> TypeGuard[tuple[int, ...]]:
    return shape is not None and _EXACT.issuperset(map(type, shape))


def static(shape: Shape) -> tuple[int, ...] | None:
    """Return the shape if every dimension is a number, else None."""
    return shape if is_static(shape) else None


@lru_cache(1 << 10)
def element_count(shape: Shape) -> int | None:
    """Return the number of elements, None if unknown; it is 0 if any dimension is 0."""
    if shape is None:
        return None
    if 0 in shape:
        return 0
    sizes = static(shape)
    return None if sizes is None else prod(sizes)


def concatenate(*parts: Shape) -> Shape:
    """Concatenate shapes; None if the rank of a part is unknown."""
    joined: list[Dim] = []
    for part in parts:
        if part is None:
            return None
        joined.extend(part)
    return tuple(joined)


def show_dim(dim: Dim) -> str:
    """Format a dimension: `3`, `?`, `1..5`, `2..`, `batch`."""
    if isinstance(dim, int):
        return str(dim)
    if dim.symbol is not None:
        return dim.symbol
    if dim.high is None:
        return f"{dim.low}.." if dim.low else "?"
    return f"{dim.low}..{dim.high}"


def show(shape: Shape) -> str:
    """Format a shape: `[2, ?, 1..5]`, `[]` for a scalar, `[...]` for an unknown rank."""
    if shape is None:
        return "[...]"
    dims = ", ".join(map(show_dim, shape[:MAX_RANK]))
    return f"[{dims}]" if len(shape) <= MAX_RANK else f"[{dims}, ... {len(shape)} in all]"


def show_numbers(numbers: Iterable[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def parse_dim(text: str) -> Dim:
    """Parse one dimension: `3`, `?`, `-1`, `1..5`, `2..`, `..5`.

    Raises:
        ValueError: the text is not a dimension.
    """
    if text in {"?", "-1"}:
        return UNKNOWN_DIM
    match = _BOUNDS.fullmatch(text)
    if match is None and not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a dimension, expected a number, ?, -1 or 1..5")
    ends = (text, text) if match is None else match.groups()
    low, high = int(ends[0] or 0), int(ends[1]) if ends[1] else None
    if max(low, high or 0) > LARGEST_DIM:
        raise ValueError(f"{text!r} is not a dimension: more than {LARGEST_DIM}")
    if high is not None and high < low:
        raise ValueError(f"{text!r} is not a dimension: its upper bound is below its lower one")
    return low if low == high else Bounds(low, high)


def parse_shape(text: str) -> Shape:
    """Parse a shape such as `1,3,?`, with or without brackets; empty is a scalar, `...` an unknown rank.

    Raises:
        ValueError: the text is not a shape.
    """
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1].strip()
    if inner == "...":
        return None
    if not inner:
        return ()
    dims = inner.split(",")
    if len(dims) > MAX_RANK:
        raise ValueError(f"{len(dims)} dimensions are more than {MAX_RANK}")
    return tuple(parse_dim(dim.strip()) for dim in dims)
