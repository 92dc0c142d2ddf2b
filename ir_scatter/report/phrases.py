"""The phrases that the formats for people share."""

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from ir_scatter.core.diagnostics import Diagnostic, Location, Related, Severity
from ir_scatter.core.words import counted
from ir_scatter.lint import Report
from ir_scatter.report.characters import visible


def place(location: Location, exactly: tuple[int, int] | None = None) -> str:
    """Return "m.xml:12:3", as much of it as is known; exactly may be another place of the file."""
    numbers: list[int | None] = [] if location.line is None else [location.line, location.column]
    numbers = numbers if exactly is None or location.column is None else [*exactly]
    return ":".join([visible(location.path), *(str(n) for n in numbers if n is not None)])


def subject(found: Diagnostic) -> str:
    """Return "body/scatter (ScatterUpdate-3), input 2, updates"; "" for a finding on the file."""
    scope = found.location.scope
    parts = [] if found.port_index is None else [f"input {found.port_index}"]
    if found.port and found.port not in parts:
        parts.append(visible(found.port))
    if found.node is not None:
        version = "" if found.node.version is None else f"-{found.node.version}"
        parts.insert(0, f"{visible(scope or found.node.name)} ({visible(found.node.type)}{version})")
    elif scope:
        parts.insert(0, visible(scope))
    return ", ".join(parts)


def note(related: Related, found: Diagnostic) -> str:
    """Return what a second place has to do with the finding, and where it is."""
    location = related.location
    parts = [visible(related.message)]
    if location.line is not None or location.path != found.location.path:
        parts.append(place(location))
    if location.line is None and location.scope and location.scope not in related.message:
        parts.append(f"in {visible(location.scope)}")
    return ", ".join(parts)


def one_line(found: Diagnostic) -> str:
    """Return "error SCT203 message [body/scatter]"."""
    line = f"{found.severity} {visible(found.code)} {visible(found.message)}"
    scope = found.location.scope
    return f"{line} [{visible(scope)}]" if scope else line


def help_of(found: Diagnostic) -> tuple[str, str]:
    """Return how to mend a finding, in a sentence and as a command; "" for what there is not."""
    path, sentence = found.location.path, visible(found.help)
    is_file = not (path.startswith("<") and path.endswith(">"))  # "<stdin>", "<bytes>"
    if found.fixed_by is None or not is_file:
        return sentence, ""
    from shlex import quote

    command = f"ir-scatter convert {quote(visible(path))} -o NEW{PurePath(path).suffix}"
    return sentence, f"{command} {found.fixed_by}".rstrip()


def whole_help(found: Diagnostic) -> str:
    """Return the same in one sentence."""
    return ": ".join(filter(None, help_of(found)))


def statistics(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return one line per code: count, code, severity, rule; the most frequent first."""
    counts = Counter((found.code, found.severity, found.rule) for found in diagnostics)
    if not counts:
        return []
    ordered = sorted(counts, key=lambda row: (-counts[row], row[0], row[1].rank, row[2]))
    digits = len(str(counts[ordered[0]]))
    widths = [max(len(row[at]) for row in ordered) for at in (0, 1)]
    return [
        f"{counts[row]:>{digits}}  {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}" for row in ordered
    ]


def summary(report: Report) -> str:
    """Return the last line: "2 errors, 1 warning in 1 of 3 files (71 scatter nodes)"."""
    if not report.files:
        return "no files were checked"
    counts = [(report.count(severity), severity) for severity in Severity]
    findings = ", ".join(counted(number, severity) for number, severity in counts if number)
    nodes = counted(sum(file.scatter_nodes for file in report.files), "scatter node")
    touched = sum(bool(file.diagnostics) for file in report.files)
    files = counted(len(report.files), "file")
    where = f"{touched} of {files}" if touched and len(report.files) > 1 else files
    line = f"{findings or 'no findings'} in {where} ({nodes})"
    unreadable = sum(not file.is_readable for file in report.files)
    return f"{line}, {counted(unreadable, 'file')} could not be read" if unreadable else line
