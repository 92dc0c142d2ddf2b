"""Findings as workflow commands of GitHub Actions, which shows them as annotations beside the lines.

The commands and their escapes: https://docs.github.com/actions/reference/workflow-commands and `command.ts`
of https://github.com/actions/toolkit.
"""

from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.lint import Report
from ir_scatter.report.characters import visible

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = _IN_MESSAGE | str.maketrans({":": "%3A", ",": "%2C"})


def render(report: Report) -> str:
    """Return one workflow command per finding; "" without findings."""
    return "".join(f"{_command(diagnostic)}\n" for diagnostic in report.diagnostics())


def _command(diagnostic: Diagnostic) -> str:
    location = diagnostic.location
    properties: dict[str, str] = {"file": location.path}
    if location.line is not None:
        properties["line"] = str(location.line)
        if location.column is not None:
            properties["col"] = str(location.column)
    properties["title"] = f"{diagnostic.code} {diagnostic.rule}"
    listed = ",".join(f"{name}={_escape(value, _IN_PROPERTY)}" for name, value in properties.items())
    message = f"{diagnostic.message} [{location.scope}]" if location.scope else diagnostic.message
    return f"::{_COMMANDS[diagnostic.severity]} {listed}::{_escape(message, _IN_MESSAGE)}"


def _escape(text: str, table: dict[int, str]) -> str:
    return visible(text, keep="\r\n").translate(table)
