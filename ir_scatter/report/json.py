"""For programs: everything that was found, in a schema of its own.

The fields of schema 1 are never renamed or left out; later versions may add some.
"""

import json
import re
from typing import Any

from ir_scatter.core.diagnostics import Diagnostic, Location, Related, Severity
from ir_scatter.lint import FileResult, Report

_SCHEMA = 1
_UNSAFE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def render(report: Report) -> str:
    """Return the report as one JSON object, indented by two spaces."""
    return dumps(
        {
            "schema": _SCHEMA,
            "versions": dict(report.versions),
            "files": [_file(file) for file in report.files],
            "summary": {
                "files": len(report.files),
                "errors": report.count(Severity.ERROR),
                "warnings": report.count(Severity.WARNING),
                "notes": report.count(Severity.NOTE),
            },
        }
    )


def dumps(document: dict[str, Any]) -> str:
    r"""Return JSON that UTF-8 can encode and a terminal can show.

    Letters stay letters; C1 controls, text direction marks and lone surrogates (the bytes of a
    path that is not UTF-8) are escaped like the control characters that JSON forbids, so
    `json.loads` gives them back.
    """
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


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
