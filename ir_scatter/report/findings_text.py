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
_TAB = "    "
_CUT = "..."


def render(report: Report, *, color: bool = False, quiet: bool = False, statistics: bool = False) -> str:
    """Return the findings, separated by empty lines, and a summary.

    Args:
        report: what was found.
        color: use ANSI colours.
        quiet: leave the summary out; nothing found is then an empty text.
        statistics: add a table of how often each code was found.
    """
    paint = _painted if color else _plain
    blocks = ["\n".join(_finding(file, found, paint)) for file in report.files for found in file.diagnostics]
    if statistics and blocks:
        blocks.append("\n".join(phrases.statistics(report.diagnostics())))
    if not quiet:
        blocks.append(phrases.summary(report))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _finding(file: FileResult, found: Diagnostic, paint: _Paint) -> Iterator[str]:
    """Yield the lines of one finding."""
    code = visible(found.code)
    head = paint(f"{found.severity} {code}", _COLORS[found.severity])
    yield f"{paint(phrases.place(found.location) + ':', _BOLD)} {head} {visible(found.rule)}"
    yield f"    {visible(found.message)}"
    yield from _excerpt(file, found, paint)
    subject = phrases.subject(found)
    if subject:
        yield f"   in {subject}"
    for related in found.related:
        yield f"   {paint('note:', _CYAN)} {phrases.note(related, found)}"
    yield f"   {paint('help:', _CYAN)} ir-scatter explain {code}"
    mending = phrases.mending(found)
    if mending:
        yield f"   {paint('help:', _CYAN)} {mending}"


def _excerpt(file: FileResult, found: Diagnostic, paint: _Paint) -> Iterator[str]:
    """Yield the line the finding stands on and a caret, if the line is at hand."""
    number = found.location.line
    if number is None or number not in file.lines or found.location.path != file.path:
        return
    line, caret = excerpt(file.lines[number], found.location.column)
    margin = " " * len(str(number))
    yield f" {number} | {line}".rstrip()
    if caret:
        yield f" {margin} | {caret[:-1]}{paint('^', _COLORS[found.severity])}"


def _plain(text: str, _: str) -> str:
    return text


def _painted(text: str, color: str) -> str:
    return f"\x1b[{color}m{text}\x1b[0m"


def excerpt(line: str, column: int | None) -> tuple[str, str]:
    """Return the line as it is printed, and spaces with a caret below the column.

    Tabs are expanded and invisible characters spelled out in both; a long line is cut on both
    sides of the column.

    Args:
        line: the text of the line, with or without its line end.
        column: from 1, in characters; None gives an empty second line.
    """
    line = line.rstrip("\r\n")
    target = min(max((column or 1) - 1, 0), len(line))
    start, stop = _window(len(line), target)
    left = (_CUT if start else "") + _printed(line[start:target])
    right = _printed(line[target:stop]) + (_CUT if stop < len(line) else "")
    caret = "" if column is None else " " * _cells(left) + "^"
    return left + right, caret


def _window(length: int, target: int) -> tuple[int, int]:
    """Return which part of a line of this length is shown so that the target is in it."""
    start = max(0, min(target - _WIDTH // 2, length - _WIDTH))
    return start, min(length, start + _WIDTH)


def _printed(text: str) -> str:
    return visible(text.replace("\t", _TAB))


def _cells(text: str) -> int:
    """Return how many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text
    )
