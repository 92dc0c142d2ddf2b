"""Typed records of the JSON that `ir-scatter run --format json` writes."""

from typing import Annotated, NotRequired, TypedDict

from ir_scatter.report.records.fields import Natural, SchemaNumber, Versions


class OutputRecord(TypedDict):
    """An output that was computed."""

    name: Annotated[str, "The name of the output."]
    type: Annotated[str, 'The element type: "f32".']
    shape: Annotated[list[Natural], "The shape."]
    min: Annotated[
        str | None, "The smallest element as text; null for strings, complex numbers and empty outputs."
    ]
    max: Annotated[str | None, "The largest element as text; null as for `min`."]


class MissingOutputRecord(TypedDict):
    """An output that was not computed."""

    name: Annotated[str, "The name of the output."]
    after: Annotated[str, "The node upstream of the output that NumPy does not compute, with its operator."]


class RunDocument(TypedDict):
    """The outputs of a model."""

    schema: SchemaNumber
    versions: Versions
    outputs: Annotated[list[OutputRecord], "The outputs of the model that were computed."]
    not_computed: NotRequired[
        Annotated[
            list[MissingOutputRecord], "The outputs that depend on a node which NumPy does not compute."
        ]
    ]


DOCUMENTS = {"run": (RunDocument, "ir-scatter run --format json")}
"""(record, title) of each whole document, by the name of its schema."""
