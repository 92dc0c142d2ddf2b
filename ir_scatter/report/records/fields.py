"""Annotations for fields of records, and types that several records use."""

from typing import Annotated, Literal, NamedTuple, TypeAlias


class Minimum(NamedTuple):
    """Annotation: the smallest allowed number."""

    value: int


class Pattern(NamedTuple):
    """Annotation: a regular expression that the text matches."""

    text: str


class DocumentReference(NamedTuple):
    """Annotation: the value is another document, whose schema has this name."""

    name: str


class Closed(NamedTuple):
    """Annotation: the object never has fields other than those of its record."""


Natural: TypeAlias = Annotated[int, Minimum(0)]
"""A count, a position, or a size."""
Positive: TypeAlias = Annotated[int, Minimum(1)]
"""A line or column number, from 1."""
SchemaNumber: TypeAlias = Annotated[
    Literal[1], "Fields may be added to schema 1; none will be renamed or left out."
]
Versions: TypeAlias = Annotated[
    dict[str, str], "The version of ir-scatter and of each package that had a part in the result."
]
