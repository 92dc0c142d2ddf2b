"""Typed records of the JSON that `ir-scatter validate --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import Natural, Pattern, Positive, SchemaNumber, Versions


class SpanRecord(TypedDict):
    """A range of characters in a file."""

    line: Annotated[Positive, "The first line, from 1."]
    column: Annotated[Positive, "The first column, from 1."]
    end_line: Annotated[Positive, "The last line."]
    end_column: Annotated[Positive, "The column after the last character."]


class NodeNameRecord(TypedDict):
    """A node by its name and operator."""

    name: Annotated[str, "Its name."]
    type: Annotated[str, 'The type of its operator: "ScatterUpdate".']
    version: Annotated[
        int | None, "The version of the operator that its opset names; null where there is none."
    ]


class RelatedRecord(TypedDict):
    """A place that helps to explain a diagnostic."""

    message: Annotated[str, "How the place is related to the diagnostic."]
    path: Annotated[str, "The file."]
    line: Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."]
    column: Annotated[Positive | None, "The column of the layer, from 1; null in an ONNX file."]
    scope: Annotated[str, 'The path to the node: "loop:body/scatter".']
    span: Annotated[
        SpanRecord | None, "The range of text concerned; null if it is not a single range of the file."
    ]


class DiagnosticRecord(TypedDict):
    """A finding of a rule or a known defect."""

    code: Annotated[Annotated[str, Pattern("^SCT[0-9]{3}$")], "The code of the rule."]
    rule: Annotated[str, "The name of the rule."]
    severity: Annotated[Literal["error", "warning", "note"], "The severity."]
    message: Annotated[str, "A sentence: the actual state, then the expected one."]
    line: Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."]
    column: Annotated[Positive | None, "The column of the layer, from 1; null in an ONNX file."]
    scope: Annotated[str, 'The path to the node: "loop:body/scatter".']
    span: Annotated[
        SpanRecord | None, "The range of text concerned; null if it is not a single range of the file."
    ]
    port: Annotated[str | None, "The input or output concerned, as the specification names it; else null."]
    node: Annotated[
        NodeNameRecord | None,
        "The scatter node, or the node where the file is broken; null for the whole file.",
    ]
    related: Annotated[
        list[RelatedRecord], "Related places, such as the constant that holds the illegal index."
    ]
    help: Annotated[str | None, "How to fix it, in one sentence; null if that is unknown."]


class CheckedFileRecord(TypedDict):
    """A file that was checked."""

    path: Annotated[str, "The path as given by the user, or as found in a folder."]
    format: Annotated[
        Literal["openvino-ir", "onnx", None], "The format of the file; null if it could not be read."
    ]
    readable: Annotated[bool, "Whether the file could be read."]
    scatter_nodes: Annotated[Natural, "Number of scatter nodes, including those in bodies and functions."]
    diagnostics: Annotated[list[DiagnosticRecord], "The findings in the file."]


class SummaryRecord(TypedDict):
    """Counts of files, nodes and diagnostics."""

    files: Annotated[Natural, "Number of files."]
    errors: Annotated[Natural, "Number of errors."]
    warnings: Annotated[Natural, "Number of warnings."]
    notes: Annotated[Natural, "Number of notes."]


class ValidateDocument(TypedDict):
    """The findings in models."""

    schema: SchemaNumber
    versions: Versions
    files: Annotated[list[CheckedFileRecord], "One entry per file, in the order in which they were checked."]
    summary: Annotated[SummaryRecord, "Counts over all files."]


DOCUMENTS = {"validate": (ValidateDocument, "ir-scatter validate --format json")}
"""(record, title) of each whole document, by the name of its schema."""
