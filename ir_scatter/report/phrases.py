"""Phrases that all text formats of findings share."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath

from ir_scatter.core.diagnostics import Diagnostic, Location, Related, Severity
from ir_scatter.core.parameters import Invocation
from ir_scatter.core.words import counted
from ir_scatter.lint import KnownFindings, Report
from ir_scatter.report.characters import visible

MOST_NODES = 20
"""Nodes of a model that a line names at most; the others are only counted."""


def place(location: Location, exactly: tuple[int, int] | None = None) -> str:
    """Return "m.xml:12:3", without unknown parts; `exactly` replaces line and column."""
    numbers: list[int | None] = [] if location.line is None else [location.line, location.column]
    numbers = numbers if exactly is None or location.column is None else [*exactly]
    return ":".join([visible(location.path), *(str(n) for n in numbers if n is not None)])


def subject(diagnostic: Diagnostic) -> str:
    """Return "body/scatter (ScatterUpdate-3), input 2, updates"; "" for a finding about the file."""
    scope = diagnostic.location.scope
    parts = [] if diagnostic.port_index is None else [f"input {diagnostic.port_index}"]
    if diagnostic.port and diagnostic.port not in parts:
        parts.append(visible(diagnostic.port))
    if diagnostic.node is not None:
        version = "" if diagnostic.node.version is None else f"-{diagnostic.node.version}"
        parts.insert(
            0, f"{visible(scope or diagnostic.node.name)} ({visible(diagnostic.node.type)}{version})"
        )
    elif scope:
        parts.insert(0, visible(scope))
    return ", ".join(parts)


def note(related: Related, diagnostic: Diagnostic) -> str:
    """Return the message of a related location, with the location."""
    location = related.location
    parts = [visible(related.message)]
    if location.line is not None or location.path != diagnostic.location.path:
        parts.append(place(location))
    if location.line is None and location.scope and location.scope not in related.message:
        parts.append(f"in {visible(location.scope)}")
    return ", ".join(parts)


def one_line(diagnostic: Diagnostic) -> str:
    """Return "error SCT203 message [body/scatter]"."""
    line = f"{diagnostic.severity} {visible(diagnostic.code)} {visible(diagnostic.message)}"
    scope = diagnostic.location.scope
    return f"{line} [{visible(scope)}]" if scope else line


def help_of(diagnostic: Diagnostic) -> tuple[str, str]:
    """Return (sentence, command) on how to fix a finding; "" for a missing one."""
    path, sentence = diagnostic.location.path, visible(diagnostic.help)
    is_file = not (path.startswith("<") and path.endswith(">"))  # "<stdin>", "<bytes>"
    if diagnostic.fixed_by is None or not is_file:
        return sentence, ""
    arguments = {parameter.name: parameter.value for parameter in diagnostic.fixed_by}
    return sentence, str(Invocation("convert", arguments, (visible(path),), f"NEW{PurePath(path).suffix}"))


def whole_help(diagnostic: Diagnostic) -> str:
    """Return the sentence and command of `help_of` in one line."""
    return ": ".join(filter(None, help_of(diagnostic)))


def statistics(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return one line per code: count, code, severity, rule; the most frequent first."""
    counts = Counter((diagnostic.code, diagnostic.severity, diagnostic.rule) for diagnostic in diagnostics)
    if not counts:
        return []
    ordered = sorted(counts, key=lambda row: (-counts[row], row[0], row[1].rank, row[2]))
    digits = len(str(counts[ordered[0]]))
    widths = [max(len(row[at]) for row in ordered) for at in (0, 1)]
    return [
        f"{counts[row]:>{digits}}  {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}" for row in ordered
    ]


def proofs(report: Report) -> str:
    """Return a line that counts nodes by the proof of their indices; "" if no proof was requested."""
    counts = Counter[str]()
    for file in report.files:
        counts.update(file.proofs)
    texts = [f"{number} {status}" for status, number in counts.items() if number]
    by_names = sum(file.proofs_by_names for file in report.files)
    names = (
        f" ({by_names} if dimensions of one name have one size, as warnings about devices assume)"
        if by_names
        else ""
    )
    return f"indices in range: {', '.join(texts)}{names}" if texts else ""


def changes(label: str, old: Collection[str], new: Collection[str]) -> str:
    """Return "new in 2026.4.1: DEV134, DEV135; gone: none; same: 22" for two sets of defects."""
    added, gone = sorted({*new} - {*old}), sorted({*old} - {*new})
    same = len({*new} & {*old})
    return f"new in {label}: {', '.join(added) or 'none'}; gone: {', '.join(gone) or 'none'}; same: {same}"


def changes_of_targets(report: Report) -> Iterator[str]:
    """Yield how devices or releases differ from the first one: in defects, then in nodes of each model."""
    first, *others = dict.fromkeys(target for file in report.files for target in file.by_target)
    for target in others:
        codes = [
            {code for file in report.files for _, code in file.by_target.get(name, ())}
            for name in (first, target)
        ]
        yield f"{changes(target, *codes)} (as in {first})"
        for file in report.files:
            old, new = (dict.fromkeys(file.by_target.get(name, ())) for name in (first, target))
            nodes = dict[str, list[str]]()
            for sign, pairs in (("+", new.keys() - old.keys()), ("-", old.keys() - new.keys())):
                for scope, code in sorted(pairs):
                    nodes.setdefault(scope, []).append(f"{sign}{code}")
            texts = [f"{visible(scope)} {' '.join(codes)}" for scope, codes in nodes.items()]
            more = f" and {counted(len(texts) - MOST_NODES, 'other node')}" if len(texts) > MOST_NODES else ""
            if texts:
                yield f"  {visible(file.path)}: {', '.join(texts[:MOST_NODES])}{more}"


def _of_baseline(known: KnownFindings) -> str:
    """Return "34 known, 2 of the baseline are gone"."""
    verb = "is" if known.gone == 1 else "are"
    gone = f", {known.gone} of the baseline {verb} gone" if known.gone else ""
    return f"{known.accepted} known{gone}"


def summary(report: Report) -> str:
    """Return the last line: "2 errors, 1 warning in 1 of 3 files (71 scatter nodes)"."""
    if not report.files:
        return "no files were checked"
    counts = [(report.count(severity), severity) for severity in Severity]
    new = "new " if report.known else ""
    findings = ", ".join(counted(number, f"{new}{severity}") for number, severity in counts if number)
    findings = findings or f"no {new}findings"
    if report.known:
        findings += f" ({_of_baseline(report.known)})"
    nodes = counted(sum(file.scatter_nodes for file in report.files), "scatter node")
    touched = sum(bool(file.diagnostics) for file in report.files)
    files = counted(len(report.files), "file")
    where = f"{touched} of {files}" if touched and len(report.files) > 1 else files
    line = f"{findings} in {where} ({nodes})"
    unreadable = sum(not file.is_readable for file in report.files)
    return f"{line}, {counted(unreadable, 'file')} could not be read" if unreadable else line
