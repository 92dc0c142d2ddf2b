"""The vocabulary of `general.py` for what an input must be: which numbers are legal, and what they say."""

from enum import Enum
from typing import Any, NamedTuple


class Meaning(Enum):
    """What the numbers of an input say."""

    POSITION = "a position on one dimension of another input"
    COORDINATES = "the positions of an element in another input, one in each column"
    FLAT = "the position of an element in another input as if that had one dimension; all different"
    DIMENSION = "dimensions of another input, all different"
    NEW_DIMENSION = "dimensions of the output that another input lacks, all different"
    REDUCED = "as DIMENSION; the output has none or 1 of them"
    ONES = "dimensions of 1 of another input"
    NUMBER = "any number between two"
    COUNT = "how many positions there are, 1 or more, on one dimension of another input"
    SIZE = "how many positions there are on one dimension of another input, exactly"
    KEPT = "as COUNT; so many the output has"
    BELOW = "numbers below the one that another input holds"
    SEGMENTS = "as BELOW, and ascending"
    OFFSETS = "ascending positions from 0 in another input"
    ASCENDING = "0, 1, 2, ..."
    BOXES = "a batch, and the corners of a box in it"
    LENGTH = "the size of one dimension of the output"
    LENGTHS = "the sizes of the output's dimensions"
    RESHAPED = "as LENGTHS, and with as many elements as another input"
    TARGET = "as LENGTHS, to which another input is repeated"
    LIKE = "new sizes of certain dimensions of another input"
    SCALES = "by how much certain dimensions of another input grow"
    REPEATS = "how often each dimension of another input is repeated"
    PARTS = "the sizes of the parts into which a dimension of another input is cut"
    BEGIN = "where the kept part of certain dimensions of another input begins"
    END = "where it ends"
    PADS = "how much is put before every dimension, then how much behind every one"
    PADS_BEGIN = "how much is put before every dimension"
    PADS_END = "how much is put behind every dimension"
    GRID = "the shape of pictures, as many as another input has"
    CHOICES = "what is counted, and decides how large the output is"

    def __call__(self, port: int, **facts: Any) -> "Constraint":
        return Constraint(port, self, **facts)


_VALUES_ONLY = frozenset(
    {
        Meaning.POSITION, Meaning.COORDINATES, Meaning.FLAT, Meaning.COUNT, Meaning.BELOW,
        Meaning.SEGMENTS, Meaning.OFFSETS, Meaning.ASCENDING, Meaning.BOXES,
    }
)  # fmt: skip
_PLACES = frozenset(
    {
        Meaning.POSITION, Meaning.COORDINATES, Meaning.FLAT, Meaning.DIMENSION, Meaning.NEW_DIMENSION,
        Meaning.REDUCED, Meaning.COUNT, Meaning.KEPT, Meaning.BELOW, Meaning.SEGMENTS, Meaning.OFFSETS,
    }
)  # fmt: skip


class Numbers(Enum):
    """For which element types of the input a constraint holds."""

    ANY = "any"
    WHOLE = "whole"
    FLOAT = "float"


class Axis(NamedTuple):
    """Where the number of a dimension comes from: an attribute, or the input `port`, or the default."""

    attribute: str | None = "axis"
    default: int = 0
    port: int | None = None


_NAMED = Axis()


class Constraint(NamedTuple):
    """What the numbers of one input of an operator must be, in every version of it.

    Attributes:
        of: the input that they speak of.
        axis: the dimension that they speak of.
        axes: the input that holds the dimensions for each of the numbers; None for 0, 1, 2, ...
        first: the dimension that the first of the numbers speaks of.
        low: the least number, where nothing else says it.
        high: the greatest; for dimensions: how many more or less there are.
        wraps_since: the opset from which on a position below 0 counts from the end; None for no opset.
    """

    port: int
    meaning: Meaning
    of: int = 0
    axis: Axis = _NAMED
    axes: int | None = None
    first: int = 0
    low: int = 0
    high: int = 0
    numbers: Numbers = Numbers.ANY
    wraps_since: int | None = None

    @property
    def decides_shape(self) -> bool:
        if self.meaning is Meaning.NUMBER:
            return self.numbers is Numbers.ANY
        return self.meaning not in _VALUES_ONLY

    @property
    def is_strict(self) -> bool:
        """Tell whether other numbers are out of range, and may make a runtime leave its memory."""
        return self.meaning in _PLACES


def fixed(axis: int) -> Axis:
    return Axis(None, axis)


def number(port: int, low: int, high: int, numbers: Numbers = Numbers.ANY) -> Constraint:
    return Constraint(port, Meaning.NUMBER, low=low, high=high, numbers=numbers)


def position(port: int, axis: Axis = _NAMED, of: int = 0) -> Constraint:
    return Constraint(port, Meaning.POSITION, of, axis)
