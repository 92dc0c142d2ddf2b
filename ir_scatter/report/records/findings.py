"""What `ir-scatter validate --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import Natural, Pattern, Positive, SchemaNumber, Versions


class Span(TypedDict):
    """A range of characters in a file."""

    line: Annotated[Positive, "The first line, from 1."]
    column: Annotated[Positive, "The first column, from 1."]
    end_line: Annotated[Positive, "The last line."]
    end_column: Annotated[Positive, "The column after the last character."]


class NodeName(TypedDict):
    """A node by its name and operator."""

    name: Annotated[str, "Its name."]
    type: Annotated[str, 'Its operator, "ScatterUpdate".']
    version: Annotated[
        int | None, "The version of the operator that its opset names; null where there is none."
    ]


class Related(TypedDict):
    """A place that explains a diagnostic."""

    message: Annotated[str, "What stands there."]
    path: Annotated[str, "The file."]
    line: Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."]
    column: Annotated[Positive | None, "The column of the layer, from 1; null in an ONNX file."]
    scope: Annotated[str, 'The way to the node: "loop:body/scatter".']
    span: Annotated[
        Span | None,
        "Where the text itself stands that this is about; null where that is not one place of the file.",
    ]


class Diagnostic(TypedDict):
    """A finding of a rule or a known defect."""

    code: Annotated[Annotated[str, Pattern("^SCT[0-9]{3}$")], "The code of the rule."]
    rule: Annotated[str, "The name of the rule."]
    severity: Annotated[Literal["error", "warning", "note"], "How bad it is."]
    message: Annotated[str, "What is, then what was expected."]
    line: Annotated[Positive | None, "The line of the layer, from 1; null in an ONNX file."]
    column: Annotated[Positive | None, "The column of the layer, from 1; null in an ONNX file."]
    scope: Annotated[str, 'The way to the node: "loop:body/scatter".']
    span: Annotated[
        Span | None,
        "Where the text itself stands that this is about; null where that is not one place of the file.",
    ]
    port: Annotated[str | None, "The input or output that it is about, as the specification names it."]
    node: Annotated[
        NodeName | None, "The scatter node, or the node that the file is broken at; null for the file."
    ]
    related: Annotated[
        list[Related], "Other places that belong to it, such as the constant that holds a bad index."
    ]
    help: Annotated[str | None, "How to fix it, in one sentence; null if not known."]


class CheckedFile(TypedDict):
    """A file that was checked."""

    path: Annotated[str, "The path as it was given or found."]
    format: Annotated[
        Literal["openvino-ir", "onnx", None], "The format of the file, null where it could not be read."
    ]
    readable: Annotated[bool, "Whether it could be read at all."]
    scatter_nodes: Annotated[Natural, "How many scatter nodes it has, bodies and functions included."]
    diagnostics: Annotated[list[Diagnostic], "What was found in it."]


class Summary(TypedDict):
    """How many files, nodes and diagnostics there are."""

    files: Annotated[Natural, "Files."]
    errors: Annotated[Natural, "Errors."]
    warnings: Annotated[Natural, "Warnings."]
    notes: Annotated[Natural, "Notes."]


class ValidateDocument(TypedDict):
    """The findings in models."""

    schema: SchemaNumber
    versions: Versions
    files: Annotated[list[CheckedFile], "One entry for each file, in the order in which they were looked at."]
    summary: Annotated[Summary, "Counts over all files."]


DOCUMENTS = {"validate": (ValidateDocument, "ir-scatter validate --format json")}
"""Records of whole documents by the name of their schema, with its title."""
