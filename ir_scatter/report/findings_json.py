"""For programs: everything that was found."""

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
            "diagnostics": [_diagnostic(found) for found in file.diagnostics],
        }
        for file in report.files
    ]
    counts = {f"{severity.value}s": report.count(severity) for severity in Severity}
    return dumps(as_document(files=files, summary={"files": len(files), **counts}))


def _diagnostic(found: Diagnostic) -> dict[str, Any]:
    return {
        **fields_of(found, "code rule severity message"),
        **fields_of(found.location, _PLACE),
        "span": _span(found.span),
        "port": found.port,
        "node": found.node and fields_of(found.node, "name type version"),
        "related": [
            {"message": one.message, **fields_of(one.location, f"path {_PLACE}"), "span": _span(one.span)}
            for one in found.related
        ],
        "help": phrases.whole_help(found) or None,
    }


def _span(span: Span | None) -> dict[str, int] | None:
    return span and span._asdict()
