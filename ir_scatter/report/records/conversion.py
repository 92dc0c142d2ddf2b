"""What `ir-scatter convert --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import Natural, Pattern, Positive, SchemaNumber, Versions

Converted = TypedDict(
    "Converted",
    {
        "node": Annotated[str, "The name of the node; of the model where the whole of it is meant."],
        "scope": Annotated[str, 'The way to the node: "loop:body/scatter".'],
        "line": Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."],
        "from": Annotated[str | None, "The operator before."],
        "to": Annotated[str, "The operator now."],
        "applicability": Annotated[
            Literal["safe", "assumed"], "Whether it holds anyhow, or if what was promised holds."
        ],
        "assumptions": Annotated[list[str], "What was promised with --assume and used."],
        "rewrites": Annotated[list[str], "The names of the rewrites, in order."],
    },
)


Refused = TypedDict(
    "Refused",
    {
        "node": Annotated[str, "The name of the node; of the model where the whole of it is meant."],
        "scope": Annotated[str, 'The way to the node: "loop:body/scatter".'],
        "line": Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."],
        "from": Annotated[str | None, "The operator."],
        "to": Annotated[str | None, "What it was to become."],
        "code": Annotated[Annotated[str, Pattern("^CVT[0-9]{3}$")], "The code of the refusal."],
        "reason": Annotated[str, "What is, then what was expected."],
    },
)


class Verified(TypedDict):
    """A node that was computed before and after."""

    node: Annotated[str, "The name of the node; of the model where the whole of it is meant."]
    scope: Annotated[str, 'The way to the node: "loop:body/scatter".']
    line: Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."]
    cases: Annotated[Natural, "On how many generated inputs."]


class Verification(TypedDict):
    """What was computed to verify a conversion."""

    verified: Annotated[bool, "Whether old and new were compared and equal."]
    nodes: Annotated[dict[str, Natural], "Who compared nodes, and on how many inputs each."]
    models: Annotated[dict[str, Natural], "Where whole models were compared, and on how many inputs."]
    reason: Annotated[str | None, "Why something was not verified."]


class ConvertDocument(TypedDict):
    """A conversion of one model."""

    schema: SchemaNumber
    versions: Versions
    model: Annotated[str, "The path of the model that was converted."]
    output: Annotated[str | None, "What was written; null if nothing was."]
    opset: Annotated[int | None, "The opset that an ONNX model moved to; null if it stayed."]
    seed: Annotated[int, "What generated inputs follow from."]
    converted: Annotated[list[Converted], "Nodes that were rewritten."]
    refused: Annotated[list[Refused], "Nodes, or the model, that stay as they are."]
    verified: Annotated[list[Verified], "Nodes whose old and new form NumPy computed and compared."]
    verified_on: Annotated[
        dict[str, Natural], "Devices on which both models were equal, and on how many inputs."
    ]
    remarks: Annotated[list[str], "Sentences for people."]
    diff: Annotated[str | None, "What changes in the file, with --diff."]
    verification: Annotated[Verification, "How the result was proven."]


DOCUMENTS = {"convert": (ConvertDocument, "ir-scatter convert --format json")}
"""Records of whole documents by the name of their schema, with its title."""
