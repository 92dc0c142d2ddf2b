"""What can be asked of a node of an ONNX model before it takes another version of its operator."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AttributeIs:
    """An attribute has one of some values.

    Attributes:
        attribute: its name.
        values: the values.
        default: what it is where it is not written.
    """

    attribute: str
    values: tuple[Any, ...]
    default: Any = None


@dataclass(frozen=True, slots=True)
class IsWritten:
    """A node has an attribute."""

    attribute: str


@dataclass(frozen=True, slots=True)
class IsNegative:
    """A written attribute, or a number of its list, is negative."""

    attribute: str


@dataclass(frozen=True, slots=True)
class MayHaveType:
    """An input is given and has one of some types, or a type that is not known."""

    input: int
    types: frozenset[str]


@dataclass(frozen=True, slots=True)
class MayHaveOtherRank:
    """An input is not known to have a rank."""

    input: int
    rank: int


@dataclass(frozen=True, slots=True)
class MayBeNegative:
    """An input is not known to hold no negative number."""

    input: int


@dataclass(frozen=True, slots=True)
class MayCross:
    """Two inputs are given, and the first is not known to be at most the second."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class HasOutputs:
    """An output from some number on is wanted."""

    first: int


@dataclass(frozen=True, slots=True)
class MayStartOutside:
    """A window of a pool is not known to start inside of the input or in what is put before it.

    Where nothing is put behind the input, none does unless the windows leave gaps.
    """


Condition = (
    AttributeIs
    | IsWritten
    | IsNegative
    | MayHaveType
    | MayHaveOtherRank
    | MayBeNegative
    | MayCross
    | HasOutputs
    | MayStartOutside
)
