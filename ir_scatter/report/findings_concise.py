"""For editors and grep: one line per finding."""

from ir_scatter.lint import Report
from ir_scatter.report import phrases


def render(report: Report, *, statistics: bool = False) -> str:
    found = report.diagnostics()
    lines = [f"{phrases.place(one.location)}: {phrases.one_line(one)}" for one in found]
    if statistics and found:
        lines += ["", *phrases.statistics(found)]
    return "".join(f"{line}\n" for line in lines)
