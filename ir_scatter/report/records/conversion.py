"""Typed records of the JSON that `ir-scatter convert --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import Natural, Pattern, Positive, SchemaNumber, Versions

ConvertedRecord = TypedDict(
    "ConvertedRecord",
    {
        "node": Annotated[str, "The name of the node, or of the model if the whole model is concerned."],
        "scope": Annotated[str, 'The path to the node: "loop:body/scatter".'],
        "line": Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."],
        "from": Annotated[str | None, "The operator and version before the conversion."],
        "to": Annotated[str, "The operator and version after the conversion."],
        "applicability": Annotated[
            Literal["safe", "assumed"],
            "'safe': equal for all legal inputs; 'assumed': only if the assumptions are true.",
        ],
        "assumptions": Annotated[list[str], "The conditions of --assume that the conversion relies on."],
        "rewrites": Annotated[list[str], "The names of the rewrites, in order."],
    },
)


RefusedRecord = TypedDict(
    "RefusedRecord",
    {
        "node": Annotated[str, "The name of the node, or of the model if the whole model is concerned."],
        "scope": Annotated[str, 'The path to the node: "loop:body/scatter".'],
        "line": Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."],
        "from": Annotated[str | None, "The operator and version."],
        "to": Annotated[str | None, "The requested operator and version."],
        "code": Annotated[Annotated[str, Pattern("^CVT[0-9]{3}$")], "The code of the refusal."],
        "reason": Annotated[str, "A sentence: the actual state, then the expected one."],
    },
)


class VerifiedRecord(TypedDict):
    """A node whose old and new form were computed and compared."""

    node: Annotated[str, "The name of the node, or of the model if the whole model is concerned."]
    scope: Annotated[str, 'The path to the node: "loop:body/scatter".']
    line: Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."]
    cases: Annotated[Natural, "Number of generated sets of inputs that gave equal results."]


class RiskRecord(TypedDict):
    """A known defect that still affects a node of the new model, for some legal inputs or for all."""

    node: Annotated[str, "The name of the node."]
    scope: Annotated[str, 'The way to the node: "loop:body/scatter".']
    defect: Annotated[Annotated[str, Pattern("^DEV[0-9]{3}$")], "The code of the defect."]
    runner: Annotated[str, 'The device that has it: "openvino:GPU".']
    when: Annotated[str, "The condition on inputs; empty if it is always met."]
    advice: Annotated[str, "How to avoid the defect."]


class VerificationRecord(TypedDict):
    """The computations that verified a conversion."""

    verified: Annotated[bool, "Whether the old and the new nodes were compared and gave equal results."]
    nodes: Annotated[
        dict[str, Natural], "Smallest number of sets of inputs on which a node was verified, by runner."
    ]
    models: Annotated[
        dict[str, Natural], "Number of sets of inputs, by the runner that compared the whole models."
    ]
    reason: Annotated[str | None, "Why something was not verified; null if everything was."]


class ConvertDocument(TypedDict):
    """A conversion of one model."""

    schema: SchemaNumber
    versions: Versions
    model: Annotated[str, "The path of the model that was converted."]
    output: Annotated[str | None, "The path of the new model; null if nothing was written."]
    opset: Annotated[int | None, "The new opset of an ONNX model; null if it is unchanged."]
    seed: Annotated[int, "The seed of the generated inputs."]
    converted: Annotated[list[ConvertedRecord], "Nodes that were rewritten."]
    refused: Annotated[
        list[RefusedRecord], "Nodes that are not rewritten; or the model, if it cannot be converted."
    ]
    verified: Annotated[
        list[VerifiedRecord], "Nodes for which NumPy computed the old and the new form and got equal results."
    ]
    verified_on: Annotated[
        dict[str, Natural], "Number of sets of inputs for which both models gave equal results, by device."
    ]
    risks: Annotated[list[RiskRecord], "Known defects of the devices of --for that remain in the new model."]
    remarks: Annotated[list[str], "Remarks for people, a sentence each."]
    diff: Annotated[str | None, "The changes of the file as a diff, with --diff; else null."]
    verification: Annotated[VerificationRecord, "How the conversion was verified."]


DOCUMENTS = {"convert": (ConvertDocument, "ir-scatter convert --format json")}
"""(record, title) of each whole document, by the name of its schema."""
