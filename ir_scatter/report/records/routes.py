"""Typed records of the JSON that `ir-scatter routes --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import SchemaNumber, Versions

RouteRecord = TypedDict(
    "RouteRecord",
    {
        "from": Annotated[str, "The operator and version that is rewritten."],
        "to": Annotated[str, "The operator and version that replaces it."],
        "dialect": Annotated[Literal["openvino", "onnx"], "The format that the operators belong to."],
        "conditions": Annotated[str, "The conditions under which the rewrite applies."],
        "rewrite": Annotated[str, "The name of the rewrite."],
    },
)


class RoutesDocument(TypedDict):
    """All conversions."""

    schema: SchemaNumber
    versions: Versions
    routes: Annotated[
        list[RouteRecord], "One entry for each pair of operator versions for which there is a rewrite."
    ]


DOCUMENTS = {"routes": (RoutesDocument, "ir-scatter routes --format json")}
"""(record, title) of each whole document, by the name of its schema."""
