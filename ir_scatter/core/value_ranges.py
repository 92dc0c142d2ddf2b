"""Ranges of numbers that a user gives for inputs, such as "0..31999"; both ends are included."""

import math
from collections.abc import Sequence
from typing import TypeAlias

ValueRange: TypeAlias = tuple[float, float]
"""The lowest and the highest number; integers stay `int`, so that 64 bits are exact."""

_EXPECTED = "expected LOW..HIGH, like 0..31999 or -0.5..0.5"


def parse_range(text: str) -> ValueRange:
    """Parse a range such as "0..31999" or "-0.5..0.5".

    Raises:
        ValueError: the text is not a range; the message says why.
    """
    low, dots, high = text.strip().partition("..")
    if not dots:
        raise ValueError(f"{text!r} is not a range, {_EXPECTED}")
    return make_range((_number(low, text), _number(high, text)))


def make_range(ends: Sequence[float]) -> ValueRange:
    """Return a range from its two ends.

    Raises:
        ValueError: they are not two finite numbers in ascending order.
    """
    if len(ends) != 2 or not all(isinstance(end, int | float) and math.isfinite(end) for end in ends):
        raise ValueError(f"{ends!r} is not a range, expected two finite numbers")
    low, high = ends
    if low > high:
        raise ValueError(f"the range begins at {low} and ends at {high}, expected the lower number first")
    return low, high


def show_range(ends: ValueRange) -> str:
    return f"{ends[0]}..{ends[1]}"


def _number(text: str, whole: str) -> float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{whole!r} is not a range, {_EXPECTED}") from None
