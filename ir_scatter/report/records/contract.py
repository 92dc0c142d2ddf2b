"""Typed records of the JSON that `ir-scatter contract --format json` writes."""

from typing import Annotated, Any, Literal, TypedDict

from ir_scatter.report.records.fields import Natural, Positive, SchemaNumber, Versions

Status = Annotated[
    Literal["proven", "conditional", "refuted", "unknown"],
    "proven for all inputs; conditional: if the conditions hold; refuted by some legal input; or unknown.",
]


class DistinctRecord(TypedDict):
    """Whether the targets of a node are distinct."""

    status: Status
    because: Annotated[str, "The reason; for 'unknown', the point at which the analysis ends."]
    conditions: Annotated[list[str], "The conditions that inputs must satisfy, in the syntax of --given."]


class RangeRecord(TypedDict):
    """Whether the indices of a node are in range."""

    status: Status
    because: Annotated[str, "The reason; for 'unknown', the point at which the analysis ends."]
    conditions: Annotated[list[str], "The conditions that inputs must satisfy, in the syntax of --given."]
    witness: Annotated[
        dict[str, Any] | None, "Inputs and sizes that break an index, confirmed by a run in NumPy."
    ]


class ContractNodeRecord(TypedDict):
    """A scatter node, and the proofs about its indices."""

    name: Annotated[str, "The name of the node."]
    scope: Annotated[str, 'The way to the node: "loop:body/scatter".']
    operator: Annotated[str, 'Type and version, "ScatterUpdate-3".']
    line: Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."]
    range: Annotated[RangeRecord, "Whether its indices are in range."]
    distinct: Annotated[DistinctRecord, "Whether its targets are distinct."]


class ContractInputRecord(TypedDict):
    """The conditions that an input must satisfy."""

    name: Annotated[str, "The name of the input."]
    conditions: Annotated[list[str], "The conditions that its elements must satisfy."]


class ContractSummaryRecord(TypedDict):
    """Scatter nodes by the status of their range."""

    proven: Annotated[Natural, "Indices are in range for all inputs."]
    conditional: Annotated[Natural, "Indices are in range if inputs satisfy the conditions."]
    refuted: Annotated[Natural, "Some legal input breaks an index."]
    unknown: Annotated[Natural, "It is unknown whether indices are in range."]


class ContractModelRecord(TypedDict):
    """The contract of one model."""

    path: Annotated[str, "The path as given by the user, or as found in a folder."]
    given: Annotated[list[str], "The conditions on its inputs that the user gave with --given."]
    summary: Annotated[ContractSummaryRecord, "Scatter nodes by the status of their range."]
    nodes: Annotated[list[ContractNodeRecord], "Its scatter nodes."]
    inputs: Annotated[list[ContractInputRecord], "The conditions that its inputs must satisfy."]
    sizes: Annotated[list[str], "Conditions that concern only sizes of dimensions."]


class ContractDocument(TypedDict):
    """The contracts of models."""

    schema: SchemaNumber
    versions: Versions
    models: Annotated[list[ContractModelRecord], "One entry for each model."]


DOCUMENTS = {"contract": (ContractDocument, "ir-scatter contract --format json")}
"""(record, title) of each whole document, by the name of its schema."""
