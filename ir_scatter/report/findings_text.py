"""For people: each finding with its line, and a summary."""

from collections.abc import Callable, Iterator

from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.lint import FileResult, Report
from ir_scatter.report import phrases
from ir_scatter.report.characters import visible

_BOLD, _CYAN = "1", "36"
_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: _CYAN}

_Paint = Callable[[str, str], str]
_WIDTH = 100  # characters of the file that are shown of a long line


def render(report: Report, *, color: bool = False, quiet: bool = False, statistics: bool = False) -> str:
    def paint(text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if color else text

    blocks = ["\n".join(_finding(file, found, paint)) for file in report.files for found in file.diagnostics]
    if statistics and blocks:
        blocks.append("\n".join(phrases.statistics(report.diagnostics())))
    if not quiet:
        blocks.append(phrases.summary(report))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _finding(file: FileResult, found: Diagnostic, paint: _Paint) -> Iterator[str]:
    code = visible(found.code)
    head = paint(f"{found.severity} {code}", _COLORS[found.severity])
    yield f"{paint(phrases.place(found.location) + ':', _BOLD)} {head} {visible(found.rule)}"
    yield f"    {visible(found.message)}"
    number = found.location.line
    if number is not None and number in file.lines and found.location.path == file.path:
        line, caret = excerpt(file.lines[number], found.location.column)
        yield f" {number} | {line}".rstrip()
        if caret:
            yield f" {' ' * len(str(number))} | {caret[:-1]}{paint('^', _COLORS[found.severity])}"
    subject = phrases.subject(found)
    if subject:
        yield f"   in {subject}"
    for related in found.related:
        yield f"   {paint('note:', _CYAN)} {phrases.note(related, found)}"
    yield f"   {paint('help:', _CYAN)} ir-scatter explain {code}"
    mending = phrases.mending(found)
    if mending:
        yield f"   {paint('help:', _CYAN)} {mending}"


def excerpt(line: str, column: int | None) -> tuple[str, str]:
    """Return the line as it is printed, and spaces with a caret below the column.

    Tabs are expanded and invisible characters spelled out in both; a long line is cut on both
    sides of the column.
    """
    line = line.rstrip("\r\n")
    target = min(max((column or 1) - 1, 0), len(line))
    start = max(0, min(target - _WIDTH // 2, len(line) - _WIDTH))
    left, right = (
        visible(part.replace("\t", "    ")) for part in (line[start:target], line[target : start + _WIDTH])
    )
    left = f"...{left}" if start else left
    shown = left + right + ("..." if start + _WIDTH < len(line) else "")
    return shown, "" if column is None else " " * _cells(left) + "^"


def _cells(text: str) -> int:
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)
