"""Findings as one line each, for editors and grep."""

from ir_scatter.lint import Report
from ir_scatter.report import phrases


def render(report: Report, *, statistics: bool = False) -> str:
    diagnostics = report.diagnostics()
    lines = [
        f"{phrases.place(diagnostic.location)}: {phrases.one_line(diagnostic)}" for diagnostic in diagnostics
    ]
    if statistics and diagnostics:
        lines += ["", *phrases.statistics(diagnostics)]
    return "".join(f"{line}\n" for line in lines)
