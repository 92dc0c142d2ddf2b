"""A range of legal numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from ir_scatter.core.shapes import Shape


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The legal numbers of an input.

    Attributes:
        lows: the least number for all, or one for each column of its elements.
        highs: the greatest.
        are_different: whether no number may occur twice.
    """

    lows: Sequence[int]
    highs: Sequence[int]
    are_different: bool = False


def exactly(numbers: Sequence[int]) -> Limits:
    """Return that only these numbers are legal, one for each element."""
    return Limits(numbers, numbers)


def within(low: int, high: int) -> Limits:
    """Return that every number between two is legal."""
    return Limits([low], [high])


def sizes_of(shape: Shape, less: int = 0) -> list[int]:
    """Return the sizes of dimensions, 1 for one that is not known."""
    return [(dim if isinstance(dim, int) else 1) - less for dim in shape or ()]
