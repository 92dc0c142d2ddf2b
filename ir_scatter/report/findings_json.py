"""For programs: everything that was found."""

from collections.abc import Mapping
from typing import Any

from ir_scatter.core.diagnostics import Diagnostic, Location, Related, Severity
from ir_scatter.lint import FileResult, Report
from ir_scatter.report.characters import as_document, dumps


def render(report: Report, *, versions: Mapping[str, str] | None = None) -> str:
    """One JSON object; `versions` are those that are installed if None."""
    document = as_document(
        versions,
        files=[_file(file) for file in report.files],
        summary={
            "files": len(report.files),
            "errors": report.count(Severity.ERROR),
            "warnings": report.count(Severity.WARNING),
            "notes": report.count(Severity.NOTE),
        },
    )
    return dumps(document)


def _file(file: FileResult) -> dict[str, Any]:
    return {
        "path": file.path,
        "format": file.format,
        "readable": file.is_readable,
        "scatter_nodes": file.scatter_nodes,
        "diagnostics": [_diagnostic(found) for found in file.diagnostics],
    }


def _diagnostic(found: Diagnostic) -> dict[str, Any]:
    node = found.node
    return {
        "code": found.code,
        "rule": found.rule,
        "severity": found.severity.value,
        "message": found.message,
        **_place(found.location),
        "port": found.port,
        "node": node and {"name": node.name, "type": node.type, "version": node.version},
        "related": [_related(related) for related in found.related],
    }


def _related(related: Related) -> dict[str, Any]:
    location = related.location
    return {"message": related.message, "path": location.path, **_place(location)}


def _place(location: Location) -> dict[str, Any]:
    return {"line": location.line, "column": location.column, "scope": location.scope}
