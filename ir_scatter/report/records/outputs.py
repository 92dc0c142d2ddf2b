"""What `ir-scatter run --format json` writes."""

from typing import Annotated, NotRequired, TypedDict

from ir_scatter.report.records.fields import Natural, SchemaNumber, Versions


class OutputRecord(TypedDict):
    """An output that was computed."""

    name: Annotated[str, "Its name."]
    type: Annotated[str, 'Its element type, "f32".']
    shape: Annotated[list[Natural], "Its shape."]
    min: Annotated[
        str | None, "The least element, as it is printed; null where there is no order, or no element."
    ]
    max: Annotated[str | None, "The greatest element, likewise."]


class MissingOutputRecord(TypedDict):
    """An output that was not computed."""

    name: Annotated[str, "Its name."]
    after: Annotated[str, "The node that it depends on and that NumPy does not compute, with its operator."]


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
"""Records of whole documents by the name of their schema, with its title."""
