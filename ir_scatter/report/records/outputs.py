"""What `ir-scatter run --format json` writes."""

from typing import Annotated, TypedDict

from ir_scatter.report.records.fields import Natural, SchemaNumber, Versions


class Output(TypedDict):
    """An output that was computed."""

    name: Annotated[str, "Its name."]
    type: Annotated[str, 'Its element type, "f32".']
    shape: Annotated[list[Natural], "Its shape."]
    min: Annotated[
        str | None, "The least element, as it is printed; null where there is no order, or no element."
    ]
    max: Annotated[str | None, "The greatest element, likewise."]


class RunDocument(TypedDict):
    """The outputs of a model."""

    schema: SchemaNumber
    versions: Versions
    outputs: Annotated[list[Output], "The outputs of the model."]


DOCUMENTS = {"run": (RunDocument, "ir-scatter run --format json")}
"""Records of whole documents by the name of their schema, with its title."""
