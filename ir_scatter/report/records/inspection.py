"""Typed records of the JSON that `ir-scatter inspect --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import Natural, Positive, SchemaNumber, Versions


class IndexFactsRecord(TypedDict):
    """Facts about the indices of a node."""

    constant: Annotated[bool, "Whether the indices are constant."]
    low: Annotated[int | None, "The smallest index; null if it is unknown."]
    high: Annotated[int | None, "The largest index; null if it is unknown."]
    repeated: Annotated[
        int | None, "Number of indices that select a target which an earlier index selects; null if unknown."
    ]


class NodeRecord(TypedDict):
    """A scatter node."""

    name: Annotated[str, "The name of the node."]
    operator: Annotated[
        str, 'Type and version, "ScatterUpdate-3"; without a version where the opset has none.'
    ]
    line: Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."]
    column: Annotated[Positive | None, "The column of the layer, from 1; null in an ONNX file."]
    scope: Annotated[str, 'The path to the node: "loop:body/scatter".']
    inputs: Annotated[
        dict[str, str], 'Type and shape of each input, by its name in the specification: "f32[1, 2, ?, 4]".'
    ]
    axis: Annotated[int | str | None, 'The axis; "?" if it is unknown, null if the operator has none.']
    reduction: Annotated[
        str | None, "The reduction, in the words of the operator; null if the operator has none."
    ]
    attributes: Annotated[
        dict[str, bool | int | str | None],
        "Every attribute of the operator's specification, as written or at its default.",
    ]
    indices: Annotated[IndexFactsRecord, "What is known of the values of indices from the file."]


class FileRecord(TypedDict):
    """A file and its scatter nodes."""

    path: Annotated[str, "The path as given by the user, or as found in a folder."]
    format: Annotated[
        Literal["openvino-ir", "onnx", None], "The format of the file; null if it could not be read."
    ]
    readable: Annotated[bool, "Whether it could be read."]
    error: Annotated[str | None, "The error if the file could not be read; else null."]
    nodes: Annotated[list[NodeRecord], "Its scatter nodes."]
    totals: Annotated[dict[str, Natural], "Number of scatter nodes by operator."]


class InspectDocument(TypedDict):
    """The scatter nodes of models."""

    schema: SchemaNumber
    versions: Versions
    files: Annotated[list[FileRecord], "One entry for each file."]
    totals: Annotated[dict[str, Natural], "Number of scatter nodes in all files by operator."]


DOCUMENTS = {"inspect": (InspectDocument, "ir-scatter inspect --format json")}
"""(record, title) of each whole document, by the name of its schema."""
