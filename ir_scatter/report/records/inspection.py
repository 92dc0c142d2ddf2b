"""What `ir-scatter inspect --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import Natural, Positive, SchemaNumber, Versions


class IndexFacts(TypedDict):
    """What is known of the indices of a node."""

    constant: Annotated[bool, "Whether they are constant."]
    low: Annotated[int | None, "The least of them."]
    high: Annotated[int | None, "The greatest of them."]
    repeated: Annotated[int | None, "How many name a target that another one names as well."]


class Node(TypedDict):
    """A scatter node."""

    name: Annotated[str, "The name of the node."]
    operator: Annotated[
        str, 'Type and version, "ScatterUpdate-3"; without a version where the opset has none.'
    ]
    line: Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."]
    column: Annotated[Positive | None, "The column of the layer, from 1; null in an ONNX file."]
    scope: Annotated[str, 'The way to the node: "loop:body/scatter".']
    inputs: Annotated[
        dict[str, str], 'Type and shape of each input by its documented name: "f32[1, 2, ?, 4]".'
    ]
    axis: Annotated[int | str | None, 'The axis; "?" where it is not known, null if the operator has none.']
    reduction: Annotated[str | None, "The reduction, in the words of the operator; null where it has none."]
    attributes: Annotated[
        dict[str, bool | int | str | None],
        "Every attribute of the operator's specification, as written or at its default.",
    ]
    indices: Annotated[IndexFacts, "What the file says of the values of indices."]


class File(TypedDict):
    """A file and its scatter nodes."""

    path: Annotated[str, "The path as it was given or found."]
    format: Annotated[
        Literal["openvino-ir", "onnx", None], "The format of the file, null where it could not be read."
    ]
    readable: Annotated[bool, "Whether it could be read."]
    error: Annotated[str | None, "Why it could not be read."]
    nodes: Annotated[list[Node], "Its scatter nodes."]
    totals: Annotated[dict[str, Natural], "Scatter nodes by operator."]


class InspectDocument(TypedDict):
    """The scatter nodes of models."""

    schema: SchemaNumber
    versions: Versions
    files: Annotated[list[File], "One entry for each file."]
    totals: Annotated[dict[str, Natural], "Scatter nodes of all files by operator."]


DOCUMENTS = {"inspect": (InspectDocument, "ir-scatter inspect --format json")}
"""Records of whole documents by the name of their schema, with its title."""
