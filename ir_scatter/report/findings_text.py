"""Findings as text in the style of a compiler, with excerpts of the file, and a summary."""

from collections.abc import Iterator
from typing import NamedTuple

from ir_scatter.core.diagnostics import Diagnostic, Excerpt, Related, Severity, Span
from ir_scatter.lint import FileResult, Place, Report, place_of
from ir_scatter.report import phrases
from ir_scatter.report.characters import cells, fold, head, tail, visible, without_middle

_BOLD, _CYAN = "1", "36"
_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: _CYAN}
_CUT = "..."
_NARROWEST = 40
"""Minimum width of lines in cells; narrower terminals get longer lines."""
_CODES_NAMED = 5
"""Maximum codes named in the last line."""


def render(
    report: Report,
    *,
    color: bool = False,
    width: int | None = None,
    quiet: bool = False,
    statistics: bool = False,
    hint: str = "",
) -> str:
    """Return findings in lines of at most `width` cells; with None, lines are not cut.

    The hint is the last line if scatter nodes were checked and nothing was found.
    """
    page = _Page(color, None if width is None else max(width, _NARROWEST))
    blocks = [
        "\n".join(page.finding(file, diagnostic)) for file in report.files for diagnostic in file.diagnostics
    ]
    if statistics and blocks:
        blocks.append("\n".join(phrases.statistics(report.diagnostics())))
    if not quiet:
        closing = page.fold(phrases.summary(report))
        if proofs := phrases.proofs(report):
            closing += page.fold(proofs)
        codes = [*dict.fromkeys(visible(diagnostic.code) for diagnostic in report.diagnostics())]
        if codes:
            closing += page.fold(_closing(codes))
        if any(len(file.by_target) > 1 for file in report.files):
            for line in phrases.changes_of_targets(report):
                closing += page.fold(line, rest="    ")
        if hint and not codes and report.known is None and any(file.scatter_nodes for file in report.files):
            closing += page.fold(hint)
        blocks.append("\n".join(closing))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _closing(codes: list[str]) -> str:
    more = [*codes[1:_CODES_NAMED], *(["..."] if len(codes) > _CODES_NAMED else [])]
    return f"For more: ir-scatter explain {codes[0]}" + (f" (or {', '.join(more)})" if more else "")


class Snippet(NamedTuple):
    """A line of the file with an underlined part and a label."""

    place: Place
    excerpt: Excerpt
    end: int | None
    """The column after the underlined part; None for the end of the line."""
    underline: str
    """"^" for the fault, "-" for a related location, "" if the format has no columns."""
    label: str


def snippets(file: FileResult, diagnostic: Diagnostic) -> tuple[list[Snippet], list[Related]]:
    """Return excerpts for a finding and its related locations, and the related locations without excerpt."""
    drawn, notes, place = list[Snippet](), list[Related](), place_of(diagnostic)
    if place is not None and place in file.excerpts and diagnostic.location.path == file.path:
        has_column = diagnostic.span is not None or diagnostic.location.column is not None
        end = _end(diagnostic.span) if diagnostic.span is not None else place[1] + 1
        label = diagnostic.label or (diagnostic.port if diagnostic.span else "") or ""
        drawn.append(Snippet(place, file.excerpts[place], end, "^" if has_column else "", label))
    for related in diagnostic.related:
        place = place_of(related)
        is_here = place is not None and place in file.excerpts and related.location.path == file.path
        if place is not None and is_here and related.span is not None:
            drawn.append(Snippet(place, file.excerpts[place], _end(related.span), "-", related.message))
        else:
            notes.append(related)
    return drawn, notes


class _Page:
    def __init__(self, color: bool, width: int | None) -> None:
        self.color = color
        self.width = width

    def paint(self, text: str, *styles: str) -> str:
        return f"\x1b[{';'.join(styles)}m{text}\x1b[0m" if self.color and text else text

    def fold(self, text: str, first: str = "", rest: str = "") -> list[str]:
        return [first + text] if self.width is None else fold(text, self.width, first, rest)

    def finding(self, file: FileResult, diagnostic: Diagnostic) -> Iterator[str]:
        color = _COLORS[diagnostic.severity]
        code = f"{diagnostic.severity} {visible(diagnostic.code)}"
        title, *more = self.fold(
            f"{code} {visible(diagnostic.rule)}: {visible(diagnostic.message)}", rest="    "
        )
        yield self.paint(code, _BOLD, color) + self.paint(title.removeprefix(code), _BOLD)
        yield from (self.paint(line, _BOLD) for line in more)
        drawn, notes = snippets(file, diagnostic)
        digits = max((len(str(snippet.place[0])) for snippet in drawn), default=1)
        yield self._place(diagnostic, " " * digits)
        bar = self.paint("|", _CYAN)
        for number, snippet in enumerate(drawn):
            yield f"{' ' * digits} {bar}" if number == 0 else self.paint("...", _CYAN)
            yield from self._snippet(snippet, digits, color)
        if drawn:
            yield f"{' ' * digits} {bar}"
        remarks = [("in", phrases.subject(diagnostic), "")]
        remarks += [("note:", phrases.note(related, diagnostic), "") for related in notes]
        for word, text, command in (*remarks, ("help:", *phrases.help_of(diagnostic))):
            if text or command:
                yield from self._remark(digits, word, text, command)

    def _remark(self, digits: int, word: str, text: str, command: str) -> Iterator[str]:
        """Yield a text and a command; the command gets lines of its own if both do not fit into one."""
        first, rest = f"{' ' * digits} = {word} ", " " * (digits + 4 + len(word))
        whole = ": ".join(filter(None, (text, command)))
        if self.width is None or not command or cells(first + whole) <= self.width:
            lines = self.fold(whole, first, rest)
        else:
            broken = fold(command, self.width - 2, rest, f"{rest}  ")
            lines = self.fold(f"{text}:", first, rest) if text else [first.rstrip()]
            lines += [*(f"{line} \\" for line in broken[:-1]), broken[-1]]
        yield f"{' ' * digits} {self.paint('=', _CYAN)} {self.paint(word, _BOLD)} {lines[0][len(first) :]}"
        yield from lines[1:]

    def _place(self, diagnostic: Diagnostic, indent: str) -> str:
        arrow, place = f"{indent}--> ", phrases.place(diagnostic.location, place_of(diagnostic))
        room = None if self.width is None else self.width - len(arrow)
        return self.paint(arrow, _CYAN) + without_middle(place, room)

    def _snippet(self, snippet: Snippet, digits: int, color: str) -> Iterator[str]:
        bar = self.paint("|", _CYAN)
        room = None if self.width is None else self.width - digits - 3
        text, start, marked = window(snippet.excerpt, snippet.place[1], snippet.end, room)
        yield f"{self.paint(f'{snippet.place[0]:>{digits}}', _CYAN)} {bar} {text}".rstrip()
        if not snippet.underline:
            return
        label, below, style = (
            visible(snippet.label),
            list[str](),
            color if snippet.underline == "^" else _CYAN,
        )
        if room is not None and start + marked + 1 + cells(label) > room:
            indent = " " * max(0, min(start, room - cells(label)))
            label, below = "", fold(label, room, indent, indent)
        line = self.paint(snippet.underline * marked, _BOLD, style)
        line = f"{line} {self.paint(label, style)}" if label else line
        yield f"{' ' * digits} {bar} {' ' * start}{line}"
        yield from (f"{' ' * digits} {bar} {self.paint(more, style)}" for more in below)


def _end(span: Span) -> int | None:
    return span.end_column if span.line == span.end_line else None


def window(excerpt: Excerpt, column: int, end: int | None, room: int | None) -> tuple[str, int, int]:
    """Return an excerpt cut to `room` cells, and the start and width of its underlined part in cells.

    The underlined part reaches from `column` to `end`, or to the end of the line. Tabs are expanded and
    invisible characters spelled out. A line that is too long loses its indentation first, then both ends.
    """
    left, marked, right = pieces(excerpt, column, end, room)
    return left + marked + right, cells(left), max(1, cells(marked))


def pieces(excerpt: Excerpt, column: int, end: int | None, room: int | None) -> tuple[str, str, str]:
    """Cut an excerpt like `window`; return three parts: before, in and after the underlined part."""
    text = excerpt.text.rstrip()
    first = min(max(column - excerpt.first, 0), len(text))
    last = len(text) if end is None else min(max(end - excerpt.first, first), len(text))
    parts = (text[:first], text[first:last], text[last:])
    left, marked, right = (visible(part.replace("\t", "    ")) for part in parts)
    left = _CUT + left if excerpt.first > 1 else left
    right = right + _CUT if excerpt.goes_on else right
    if room is not None and cells(left + marked + right) > room:
        left = left.lstrip()
    if room is not None and cells(left + marked + right) > room:
        least = len(_CUT)
        if cells(marked) > room - 2 * least:
            left = _CUT if left else ""
            marked, right = head(marked, room - len(left) - least), _CUT
        free = room - cells(marked)
        share = max(free // 2, free - cells(right))
        left = left if cells(left) <= share else _CUT + tail(left.removeprefix(_CUT), share - least)
        share = free - cells(left)
        right = right if cells(right) <= share else head(right, share - least) + _CUT
    return left, marked, right
