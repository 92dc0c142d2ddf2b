"""Notes on the fields of records, and types that several records share."""

from typing import Annotated, Literal, NamedTuple, TypeAlias


class Minimum(NamedTuple):
    """The least value of a number."""

    value: int


class Pattern(NamedTuple):
    """A regular expression that a text matches."""

    text: str


class DocumentReference(NamedTuple):
    """The name of another document that a value is."""

    name: str


class Closed(NamedTuple):
    """An object has no other fields than those of its record, now and later."""


Natural: TypeAlias = Annotated[int, Minimum(0)]
"""A count, a position, or a size."""
Positive: TypeAlias = Annotated[int, Minimum(1)]
"""A line or a column."""
SchemaNumber: TypeAlias = Annotated[
    Literal[1], "Fields may be added to schema 1; none will be renamed or left out."
]
Versions: TypeAlias = Annotated[
    dict[str, str], "The version of ir-scatter and of each package that had a part in the result."
]
