"""Findings as an HTML page, by file and by rule."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape

from ir_scatter.core.diagnostics import Diagnostic, Location, Severity
from ir_scatter.core.words import counted
from ir_scatter.lint import FileResult, Report, place_of
from ir_scatter.report import phrases
from ir_scatter.report.findings_text import Snippet, pieces, snippets
from ir_scatter.report.graph_picture import picture
from ir_scatter.report.page import document, name_span, plain
from ir_scatter.rules import by_code
from ir_scatter.version import versions

_BADGES = {
    Severity.ERROR: ("mismatch", "✕"),
    Severity.WARNING: ("contested", "!"),
    Severity.NOTE: ("unavailable", "i"),
}
"""CSS class and sign of each severity."""
_LONGEST_LINE = 240
"""Characters of a line of the file that are shown."""
MOST_SHOWN = 1_000
"""Findings on a page at most: a page with 60,000 had 376 MB, which no browser opens."""


def render(report: Report, *, docs_url: str | None = None) -> str:
    """Return a self-contained page without scripts; rules link to the site at `docs_url`."""
    subject = report.files[0].path if len(report.files) == 1 else counted(len(report.files), "file")
    body = [
        *_head(report, subject),
        '<main id="found" tabindex="-1">',
        *_body(report, docs_url),
        "</main>\n<footer>",
        f"<p>{plain(', '.join(f'{name} {version}' for name, version in versions().items()))}</p>",
        "</footer>",
    ]
    return document(f"{phrases.summary(report)} | {subject}", body, "findings.css")


def _head(report: Report, subject: str) -> Iterator[str]:
    yield '<header class="page"><p class="brand">ir-scatter validate</p>'
    yield f"<h1>{name_span(subject)}</h1>"
    is_unread = not all(file.is_readable for file in report.files)
    findings = report.diagnostics()
    state = "failed" if is_unread or findings else "agrees" if report.files else "nothing"
    state = "differs" if report.count(Severity.ERROR) else state
    yield f'<p class="banner {state}">{plain(phrases.summary(report))}</p>'
    yield '<ul class="tiles">'
    for severity in Severity:
        number = report.count(severity)
        kind, plural = ("" if number else ' class="none"'), counted(number, severity).partition(" ")[2]
        yield f'<li{kind}><span class="count">{number}</span> {_badge(severity, plural)}</li>'
    yield "</ul>"
    if len(findings) > MOST_SHOWN:
        yield f'<p class="lead">{plain(_limit_note(len(findings)))}</p>'
    yield "</header>"


def _limit_note(total: int) -> str:
    """Return the note of a page that does not show all findings."""
    order = "errors before warnings and notes"
    return f"Showing the first {MOST_SHOWN:,} of {total:,} findings, {order}; JSON contains all."


def _numbers_on_page(findings: Sequence[Diagnostic]) -> set[int]:
    """Return the numbers of the findings to show: the most severe ones."""
    by_severity = sorted(range(len(findings)), key=lambda number: findings[number].severity.rank)
    return set(by_severity[:MOST_SHOWN])


def _body(report: Report, docs_url: str | None) -> Iterator[str]:
    findings, first = report.diagnostics(), 0
    on_page, parts = _numbers_on_page(findings), list[list[tuple[int, Diagnostic]]]()
    for file in report.files:
        numbered = enumerate(file.diagnostics, first)
        parts.append([(number, diagnostic) for number, diagnostic in numbered if number in on_page])
        first += len(file.diagnostics)
    if report.files:
        yield '<nav class="index" aria-labelledby="files"><h2 id="files">Files</h2>'
        yield from _index(report.files, [bool(part) for part in parts])
        yield "</nav>"
    if findings:
        yield '<nav class="index" aria-labelledby="rules"><h2 id="rules">Rules</h2>'
        yield from _rules(findings, on_page, docs_url)
        yield "</nav>"
    for number, (file, part) in enumerate(zip(report.files, parts, strict=True)):
        if part:
            yield f'<section class="model" id="file{number}" aria-labelledby="file{number}-name">'
            yield f'<h2 id="file{number}-name">{name_span(file.path)}</h2>'
            yield f'<p class="soft">{plain(_file_line(file))}</p>'
            drawn = dict[tuple[Location, int | None], int]()
            for number, diagnostic in part:
                yield from _card(number, diagnostic, file, drawn)
            if len(part) < len(file.diagnostics):
                rest = counted(len(file.diagnostics) - len(part), "other finding")
                yield f'<p class="soft">{plain(rest)} of this file not shown</p>'
            yield '<p class="back"><a href="#top">Back to the top<span class="hidden"> of the page, from '
            yield f"{plain(file.path)}</span></a></p></section>"


def _file_line(file: FileResult) -> str:
    """Return the format and number of scatter nodes of a file."""
    if not file.is_readable:
        return "could not be read"
    return f"{file.format or 'no known format'}, {counted(file.scatter_nodes, 'scatter node')}"


def _index(files: Sequence[FileResult], has_section: Sequence[bool]) -> Iterator[str]:
    yield '<table class="cards" role="table"><thead role="rowgroup"><tr role="row">'
    yield from (f'<th scope="col" role="columnheader">{head}</th>' for head in ("File", "Model", "Findings"))
    yield '</tr></thead><tbody role="rowgroup">'
    for number, file in enumerate(files):
        name = (
            f'<a href="#file{number}">{name_span(file.path)}</a>'
            if has_section[number]
            else name_span(file.path)
        )
        counts = Counter(diagnostic.severity for diagnostic in file.diagnostics)
        badges = " ".join(
            _badge(severity, counted(counts[severity], severity)) for severity in Severity if counts[severity]
        )
        none = '<span class="soft">no findings</span>' if file.is_readable else "could not be read"
        yield f'<tr role="row"><th scope="row" role="rowheader">{name}</th>'
        yield f'<td role="cell" data-label="Model">{plain(_file_line(file))}</td>'
        yield f'<td role="cell" data-label="Findings" class="badges">{badges or none}</td></tr>'
    yield "</tbody></table>"


def _rules(
    diagnostics: Iterable[Diagnostic], on_page: Collection[int], docs_url: str | None
) -> Iterator[str]:
    """Yield an index: every broken rule with its summary and links to its findings."""
    broken = defaultdict[str, list[tuple[int, Diagnostic]]](list)
    for number, diagnostic in enumerate(diagnostics):
        broken[diagnostic.code].append((number, diagnostic))
    yield '<div class="rules">'
    for code, pairs in sorted(broken.items()):
        first = pairs[0][1]
        rule = by_code().get(code)
        title = f'<span class="name">{plain(code)}</span> {plain(first.rule)}'
        if docs_url and rule:
            title = f'<a href="{plain(docs_url.rstrip("/"))}/rules/{plain(code)}.html">{title}</a>'
        yield f'<div class="rule"><h3>{title} <span class="soft">{len(pairs)}</span></h3>'
        if rule and rule.documentation:
            summary = " ".join(rule.documentation.split("\n\n")[0].split())
            yield f'<p class="soft">{plain(summary)}</p>'
        yield "<ul>"
        linked = [pair for pair in pairs if pair[0] in on_page]
        for number, diagnostic in linked:
            where = diagnostic.location.scope or _place(diagnostic)
            yield f'<li><a href="#f{number}">{name_span(where)}</a> <span class="soft">'
            yield f"{plain(diagnostic.location.path) if diagnostic.location.scope else ''}</span></li>"
        yield "</ul>"
        if len(linked) < len(pairs):
            yield f'<p class="soft">and {len(pairs) - len(linked):,} not shown</p>'
        yield "</div>"
    yield f'</div><p class="lead">For more: <code>ir-scatter explain {plain(min(broken))}</code></p>'


def _card(
    number: int, diagnostic: Diagnostic, file: FileResult, drawn: dict[tuple[Location, int | None], int]
) -> Iterator[str]:
    """Yield a finding; the graph around a node is drawn once for findings at the same port."""
    yield f'<article class="difference finding" id="f{number}" tabindex="-1"><header>'
    code = f'<span class="name">{plain(diagnostic.code)}</span>'
    yield f"<h3>{_badge(diagnostic.severity)} {code} {plain(diagnostic.rule)}</h3>"
    yield f'<p class="lead">{name_span(_place(diagnostic))}</p></header>'
    around, port = file.neighbourhoods.get(diagnostic.location), (diagnostic.location, diagnostic.port_index)
    yield '<div class="figures"><div>' if around else "<div>"
    yield f'<p class="says">{plain(diagnostic.message)}</p>'
    subject = phrases.subject(diagnostic)
    if subject:
        yield f'<p class="soft">in {name_span(subject)}</p>'
    excerpts, notes = snippets(file, diagnostic)
    yield from map(_excerpt, excerpts)
    if notes:
        yield '<ul class="notes">'
        yield from (f"<li>{plain(phrases.note(note, diagnostic))}</li>" for note in notes)
        yield "</ul>"
    sentence, command = phrases.help_of(diagnostic)
    if sentence or command:
        command_block = f"<pre><code>{plain(command)}</code></pre>" if command else ""
        yield f'<div class="mend"><b>Help:</b> {plain(sentence)}{command_block}</div>'
    yield "</div>"
    if around and port in drawn:
        yield f'<p><a href="#f{drawn[port]}">See the graph above.</a></p>'
    elif around:
        drawn[port] = number
        yield f"<figure>{picture(around, diagnostic.port_index)}"
        yield "<figcaption>The node with its inputs and consumers</figcaption></figure>"
    yield "</div>" if around else ""
    yield "</article>"


def _excerpt(snippet: Snippet) -> str:
    """Return a line of the file without indentation, with the fault marked."""
    left, marked, right = pieces(snippet.excerpt, snippet.place[1], snippet.end, _LONGEST_LINE)
    text = escape(left.lstrip())
    if snippet.underline:
        kind = ' class="fault"' if snippet.underline == "^" else ""
        text += f"<mark{kind}>{escape(marked) or ' '}</mark>{escape(right)}"
    else:
        text += escape(marked + right)
    label = f'<span class="label">{snippet.underline} {plain(snippet.label)}</span>' if snippet.label else ""
    number = f'<span class="number">{snippet.place[0]}</span>'
    return f'<pre class="excerpt"><code>{number}<span>{text}</span>{label}</code></pre>'


def _place(diagnostic: Diagnostic) -> str:
    return phrases.place(diagnostic.location, place_of(diagnostic))


def _badge(severity: Severity, text: str = "") -> str:
    kind, mark = _BADGES[severity]
    sign = f'<span class="mark" aria-hidden="true">{mark}</span>'
    return f'<span class="badge {kind}">{sign}{text or severity}</span>'
