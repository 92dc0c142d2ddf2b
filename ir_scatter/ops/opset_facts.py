"""What a new version of an ONNX operator can have changed: the vocabulary of `onnx_changes`.

Every fact is about one version and the one before it. An operator version without facts only
widened the one before: more types, optional inputs, attributes whose default means the old.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ir_scatter.ops.opset_conditions import Condition


class Form(Enum):
    """How an attribute looks once it is an input."""

    LIST = "whole numbers in a list"
    ONE = "one whole number in a list"
    SCALAR = "one whole number without dimensions"
    FLOATS = "float numbers in a list"
    FLOAT = "one float number without dimensions"
    LIKE_DATA = "one number of the type of the data, without dimensions"


class Empty(Enum):
    """What an empty list stands for."""

    KEPT = "for itself"
    ABSENT = "for one that is not given"
    UNSAID = "for something that the document does not say"


@dataclass(frozen=True, slots=True)
class Moved:
    """An attribute became an input.

    Attributes:
        attribute: its name.
        input: the number of the input.
        form: what the input looks like.
        absent: what the attribute means where it is not written; None for nothing that an input could say.
        default: what the input means where it is left out; None as for `absent`.
        default_types: the types of data for which it means that; None for all.
        counts: an attribute that is a list: without this one, 0, 1, 2, ... as long as that list is meant.
        empty: what an empty list means.
    """

    attribute: str
    input: int
    form: Form
    absent: float | None = None
    default: float | None = None
    default_types: frozenset[str] | None = None
    counts: str = ""
    empty: Empty = Empty.UNSAID


@dataclass(frozen=True, slots=True)
class Added:
    """A new attribute of which another value than the default means the old.

    Where a new attribute has a default and no such fact, the default means the old.

    Attributes:
        attribute: its name.
        same: the value that means the old; None if only leaving it out does.
        is_list_of_same: whether a list of nothing but that value means it.
        is_idle: whether no value means anything else, for nodes that the old version allows.
    """

    attribute: str
    same: Any = None
    is_list_of_same: bool = False
    is_idle: bool = False


@dataclass(frozen=True, slots=True)
class ForZeros:
    """A new attribute says what the zeros of an input mean; without zeros it says nothing.

    Attributes:
        attribute: its name.
        input: the number of the input.
    """

    attribute: str
    input: int


@dataclass(frozen=True, slots=True)
class Switch:
    """A new input that is true or false; leaving it out, or false, means the old.

    Attributes:
        input: its number.
        reason: why true has no equal in the older version.
    """

    input: int
    reason: str


@dataclass(frozen=True, slots=True)
class Removed:
    """An attribute is gone, and only one of its values can still be meant."""

    attribute: str
    value: Any


@dataclass(frozen=True, slots=True)
class Words:
    """An attribute takes other words.

    Attributes:
        attribute: its name.
        up: the new word for each old one.
        down: the old word for each new one.
    """

    attribute: str
    up: Mapping[str, str] = field(hash=False)
    down: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Renamed:
    """The operator goes on under another name.

    Attributes:
        type: the name.
        only_enlarges: whether the old one never makes its input smaller, which the new one can.
    """

    type: str
    only_enlarges: bool = False


@dataclass(frozen=True, slots=True)
class Redefined:
    """An output means something else, or has another type.

    Attributes:
        output: its number.
        reason: what changed.
    """

    output: int
    reason: str


@dataclass(frozen=True, slots=True)
class Coerced:
    """Up to here, input 0 was taken as a matrix: the dimensions before `axis`, and those from it on.

    From here on, `axis` is the one dimension that the operator works along.

    Attributes:
        before: the default of the attribute up to here.
        after: the default from here on.
    """

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Misread:
    """Nothing changed, but from here on a runtime takes `axis` for one dimension, as after `Coerced`.

    Attributes:
        default: that of the attribute.
    """

    default: int


@dataclass(frozen=True, slots=True)
class Counted:
    """Where input 1 does not say the lengths of the parts, an attribute now says how many there are.

    Attributes:
        attribute: its name.
        axis: the attribute that says what is divided; 0 if it is not written.
    """

    attribute: str
    axis: str


@dataclass(frozen=True, slots=True)
class Sampled:
    """Which positions are sampled can be said from here on; before, it was one way only.

    Attributes:
        mode: the attribute for the kind of interpolation.
        coordinates: attribute and word for how positions are found; that way for every mode.
        rounding: attribute and words for rounding where the input is enlarged, and where it is made smaller.
        nearest: the mode that rounds.
        linear: the mode that does not.
    """

    mode: str
    coordinates: tuple[str, str]
    rounding: tuple[str, str, str]
    nearest: str
    linear: str


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Up to here an input must be an empty tensor where another is given; from here on it is left out.

    Attributes:
        empty: the number of that input.
        other: the number of the other one.
        optional: inputs that may be left out from here on, and are empty tensors otherwise.
    """

    empty: int
    other: int
    optional: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Negative numbers of input 0 count from the end from here on; before they were out of range."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Attributes that hold numbers or text are new: before, a tensor holds them.

    Attributes:
        tensor: the attribute that is older.
        others: the new attributes, and the element type of the tensor that means the same.
    """

    tensor: str
    others: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Nodes that have no equal in the other version.

    Attributes:
        reason: why, as a part of a sentence.
        conditions: what must hold, all of it, for a node to be one of them; none: every node is.
        up: whether it stops a move to the newer version.
        down: whether it stops a move to the older version.
    """

    reason: str
    conditions: tuple[Condition, ...] = ()
    up: bool = True
    down: bool = True


Fact = (
    Moved
    | Added
    | ForZeros
    | Switch
    | Removed
    | Words
    | Renamed
    | Redefined
    | Coerced
    | Misread
    | Counted
    | Sampled
    | Exclusive
    | Wrapped
    | Listed
    | Barrier
)
