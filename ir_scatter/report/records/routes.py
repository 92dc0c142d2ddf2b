"""What `ir-scatter routes --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import SchemaNumber, Versions

Route = TypedDict(
    "Route",
    {
        "from": Annotated[str, "The operator before, with its version."],
        "to": Annotated[str, "The operator after."],
        "dialect": Annotated[Literal["openvino", "onnx"], "Whose operators they are."],
        "conditions": Annotated[str, "When it applies."],
        "rewrite": Annotated[str, "Its name."],
    },
)


class RoutesDocument(TypedDict):
    """All conversions."""

    schema: SchemaNumber
    versions: Versions
    routes: Annotated[list[Route], "One entry for each pair of operators that a rewrite joins."]


DOCUMENTS = {"routes": (RoutesDocument, "ir-scatter routes --format json")}
"""Records of whole documents by the name of their schema, with its title."""
