"""Constraints on the inputs of general operators: which numbers are legal, and what they mean.

The rows of `general.py` contain them.
"""

from enum import Enum
from typing import Any, NamedTuple


class Meaning(Enum):
    """What the numbers of an input stand for."""

    POSITION = "a position on one dimension of another input"
    COORDINATES = "the positions of an element in another input, one in each column"
    FLAT = "the flat position of an element of another input; all different"
    DIMENSION = "dimensions of another input, all different"
    NEW_DIMENSION = "dimensions of the output that another input lacks, all different"
    REDUCED = "as DIMENSION; the output lacks them, or has size 1 there"
    ONES = "dimensions of 1 of another input"
    NUMBER = "any number between two"
    COUNT = "a number of positions, from 1 to the size of one dimension of another input"
    SIZE = "the exact size of one dimension of another input"
    KEPT = "as COUNT; the size of that dimension in the output"
    BELOW = "numbers below the number in another input"
    SEGMENTS = "as BELOW, and ascending"
    OFFSETS = "ascending positions from 0 in another input"
    ASCENDING = "0, 1, 2, ..."
    BOXES = "a batch, and the corners of a box in it"
    LENGTH = "the size of one dimension of the output"
    LENGTHS = "the sizes of the output's dimensions"
    RESHAPED = "as LENGTHS, and with as many elements as another input"
    TARGET = "as LENGTHS; another input is broadcast to them"
    LIKE = "new sizes of certain dimensions of another input"
    SCALES = "the factors by which certain dimensions of another input grow"
    REPEATS = "how often each dimension of another input is repeated"
    PARTS = "the sizes of the parts of a split dimension of another input"
    BEGIN = "the first position of a slice, for certain dimensions of another input"
    END = "the end of that slice"
    PADS = "the padding before every dimension, then the padding after every dimension"
    PADS_BEGIN = "the padding before every dimension"
    PADS_END = "the padding after every dimension"
    GRID = "the shape of a batch of images; another input has the same batch size"
    CHOICES = "elements that are counted; the count decides the size of the output"

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
    """The element types of an input to which a constraint applies."""

    ANY = "any"
    WHOLE = "whole"
    FLOAT = "float"


class Axis(NamedTuple):
    """Source of a dimension's number: an attribute, else input `port`, else `default`."""

    attribute: str | None = "axis"
    default: int = 0
    port: int | None = None


_NAMED = Axis()


class Constraint(NamedTuple):
    """The legal numbers of an input of an operator, in every version of the operator.

    Example: input 1 of Gather contains positions on one axis of input 0, which must be below its size.

    Attributes:
        port: the constrained input.
        of: the input that the numbers refer to.
        axis: the dimension that they refer to.
        axes: the input that contains the dimension for each number; None for 0, 1, 2, ...
        first: the dimension that the first number refers to.
        low: the smallest number, unless the meaning decides it.
        high: the largest number; for numbers of dimensions, the difference from the rank.
        wraps_since: the opset since which negative positions count from the end; None if in no opset.
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
        """Whether a violation is out of range, and may cause out-of-bounds memory access."""
        return self.meaning in _PLACES


def fixed(axis: int) -> Axis:
    return Axis(None, axis)


def number(port: int, low: int, high: int, numbers: Numbers = Numbers.ANY) -> Constraint:
    return Constraint(port, Meaning.NUMBER, low=low, high=high, numbers=numbers)


def position(port: int, axis: Axis = _NAMED, of: int = 0) -> Constraint:
    return Constraint(port, Meaning.POSITION, of, axis)
