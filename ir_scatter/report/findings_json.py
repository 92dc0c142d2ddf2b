"""Findings as JSON."""

from typing import Any

from ir_scatter.core.diagnostics import Diagnostic, Severity, Span
from ir_scatter.lint import Report
from ir_scatter.report import phrases
from ir_scatter.report.characters import as_document, dumps, fields_of

_PLACE = "line column scope"


def render(report: Report) -> str:
    files = [
        {
            **fields_of(file, "path format is_readable scatter_nodes"),
            "diagnostics": [_diagnostic(diagnostic) for diagnostic in file.diagnostics],
        }
        for file in report.files
    ]
    counts = {f"{severity.value}s": report.count(severity) for severity in Severity}
    return dumps(as_document(files=files, summary={"files": len(files), **counts}))


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        **fields_of(diagnostic, "code rule severity message"),
        **fields_of(diagnostic.location, _PLACE),
        "span": _span(diagnostic.span),
        "port": diagnostic.port,
        "node": diagnostic.node and fields_of(diagnostic.node, "name type version"),
        "related": [
            {
                "message": related.message,
                **fields_of(related.location, f"path {_PLACE}"),
                "span": _span(related.span),
            }
            for related in diagnostic.related
        ],
        "help": phrases.whole_help(diagnostic) or None,
    }


def _span(span: Span | None) -> dict[str, int] | None:
    return span and span._asdict()
