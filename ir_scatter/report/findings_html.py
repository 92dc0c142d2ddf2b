"""Findings as an HTML page, by file and by rule."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from ir_scatter.core.diagnostics import Diagnostic, Location, Severity
from ir_scatter.core.words import counted
from ir_scatter.lint import FileResult, Report, place_of
from ir_scatter.report import phrases
from ir_scatter.report.findings_text import Snippet, pieces, snippets
from ir_scatter.report.graph_picture import layout
from ir_scatter.report.page import render_page
from ir_scatter.rules import by_code

_Values: TypeAlias = dict[str, Any]
"""Values for a template, by name."""
_LONGEST_LINE = 240
"""Maximum characters of a line in an excerpt of the file."""
MOST_SHOWN = 1_000
"""Maximum findings on a page: one with 60,000 had 376 MB, which no browser opens."""


def render(report: Report, *, docs_url: str | None = None) -> str:
    """Return a self-contained page without scripts; rules link to the site at `docs_url`."""
    findings = report.diagnostics()
    on_page = _numbers_on_page(findings)
    files, first = list[_Values](), 0
    for number, file in enumerate(report.files):
        files.append(_file(number, file, first, on_page))
        first += len(file.diagnostics)
    shown = {finding["number"]: finding for file in files for finding in file["findings"]}
    return render_page(
        "findings.html.j2",
        subject=report.files[0].path if len(report.files) == 1 else counted(len(report.files), "file"),
        summary=phrases.summary(report),
        state=_state(report),
        counts=[
            (severity, report.count(severity), counted(report.count(severity), severity).partition(" ")[2])
            for severity in Severity
        ],
        limit=_limit_note(len(findings)) if len(findings) > MOST_SHOWN else "",
        files=files,
        rules=_rules(findings, shown, docs_url),
    )


def _state(report: Report) -> str:
    """Return the CSS class of the banner."""
    if report.count(Severity.ERROR):
        return "differs"
    if report.diagnostics() or not all(file.is_readable for file in report.files):
        return "failed"
    return "agrees" if report.files else "nothing"


def _limit_note(total: int) -> str:
    """Return a note that the page does not show all findings; "" if it does."""
    order = "errors before warnings and notes"
    return f"Showing the first {MOST_SHOWN:,} of {total:,} findings, {order}; JSON contains all."


def _numbers_on_page(findings: Sequence[Diagnostic]) -> set[int]:
    """Return the numbers of the findings to show: the most severe ones."""
    by_severity = sorted(range(len(findings)), key=lambda number: findings[number].severity.rank)
    return set(by_severity[:MOST_SHOWN])


def _file(number: int, file: FileResult, first: int, on_page: Collection[int]) -> _Values:
    """Return the template values of a file and its findings; `first` is its first finding's number."""
    counts = Counter(diagnostic.severity for diagnostic in file.diagnostics)
    drawn = dict[tuple[Location, int | None], int]()
    findings = [
        _finding(place, diagnostic, file, drawn)
        for place, diagnostic in enumerate(file.diagnostics, first)
        if place in on_page
    ]
    hidden = len(file.diagnostics) - len(findings)
    return {
        "number": number,
        "path": file.path,
        "model": f"{file.format or 'no known format'}, {counted(file.scatter_nodes, 'scatter node')}"
        if file.is_readable
        else "could not be read",
        "is_readable": file.is_readable,
        "counts": [
            (severity, counted(counts[severity], severity)) for severity in Severity if counts[severity]
        ],
        "findings": findings,
        "hidden": counted(hidden, "other finding") if hidden else "",
    }


def _rules(
    diagnostics: Sequence[Diagnostic], shown: Mapping[int, _Values], docs_url: str | None
) -> list[_Values]:
    """Return the template values of every broken rule: its summary, and its findings on the page."""
    broken = defaultdict[str, list[int]](list)
    for number, diagnostic in enumerate(diagnostics):
        broken[diagnostic.code].append(number)
    rows = []
    for code, numbers in sorted(broken.items()):
        rule = by_code().get(code)
        documentation = rule.documentation if rule else ""
        findings = [shown[number] for number in numbers if number in shown]
        rows.append(
            {
                "code": code,
                "name": diagnostics[numbers[0]].rule,
                "link": f"{docs_url.rstrip('/')}/rules/{code}.html" if docs_url and rule else "",
                "summary": " ".join(documentation.split("\n\n")[0].split()),
                "total": len(numbers),
                "findings": findings,
                "hidden": len(numbers) - len(findings),
            }
        )
    return rows


def _finding(
    number: int, diagnostic: Diagnostic, file: FileResult, drawn: dict[tuple[Location, int | None], int]
) -> _Values:
    """Return the template values of a finding; findings at the same port share one picture of the graph."""
    around, port = file.neighbourhoods.get(diagnostic.location), (diagnostic.location, diagnostic.port_index)
    is_new = around is not None and drawn.setdefault(port, number) == number
    excerpts, notes = snippets(file, diagnostic)
    sentence, command = phrases.help_of(diagnostic)
    return {
        "number": number,
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "rule": diagnostic.rule,
        "path": diagnostic.location.path,
        "scope": diagnostic.location.scope,
        "place": phrases.place(diagnostic.location, place_of(diagnostic)),
        "message": diagnostic.message,
        "subject": phrases.subject(diagnostic),
        "excerpts": [_excerpt(snippet) for snippet in excerpts],
        "notes": [phrases.note(note, diagnostic) for note in notes],
        "help": sentence,
        "command": command,
        "graph": layout(around, diagnostic.port_index) if around and is_new else None,
        "same_graph": drawn[port] if around and not is_new else None,
    }


def _excerpt(snippet: Snippet) -> _Values:
    """Return a line of the file without indentation, in three parts: before, in and after the fault."""
    left, marked, right = pieces(snippet.excerpt, snippet.place[1], snippet.end, _LONGEST_LINE)
    return {
        "number": snippet.place[0],
        "left": left.lstrip(),
        "marked": marked,
        "right": right,
        "underline": snippet.underline,
        "label": snippet.label,
    }
