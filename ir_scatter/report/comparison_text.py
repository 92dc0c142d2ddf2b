"""A comparison for people: tables of runners, of outputs and of nodes, and what stands out."""

import math
import textwrap
from collections.abc import Iterator, Sequence

from ir_scatter.compare.measure import Excuse, Verdict
from ir_scatter.compare.request import Done
from ir_scatter.compare.result import Compared, Comparison, Guarded, Level, NotTapped, Relation
from ir_scatter.compare.run import shown
from ir_scatter.core.shapes import counted
from ir_scatter.report.characters import Cell, Table, table_text, visible
from ir_scatter.report.comparison_json import summary
from ir_scatter.report.matrices import (
    NOT_APPLICABLE,
    kernel_table,
    name_of,
    operator_matrix,
    verdict_matrix,
)
from ir_scatter.runners.base import OTHER_FORMAT, Status

_MOST_ROWS = 40
"""Rows of a table, and lines of a list; more are counted."""

IMPLICIT = "the reference: what the documents say; --no-reference leaves it out"

POLICY = "NaN equals NaN; 0.0 and -0.0 are close, not equal"


def render(done: Done, *, each: bool = False, color: bool = False, width: int | None = None) -> str:
    """One part for each model; with `each` a table of operators by runners ends the text.

    Tables and lines are as wide as the terminal, or as they are if there is none.
    """
    parts = [text(one, color=color, width=width) for one in done.found]
    if each:
        parts.append(table_text(operator_matrix(done.found), color=color, width=width))
    return "\n".join(parts)


def text(found: Compared, *, color: bool = False, width: int | None = None) -> str:
    parts = [visible(f"{found.other} against {found.model}" if found.other else found.model)]
    parts += [table_text(table, color=color, width=width) for table in _tables(found)]
    for lines in (_differences(found), _indices(found.guarded), _outliers(found)):
        parts.append("\n".join(_wrapped(visible(line), width) for line in lines))
    parts.append(table_text(kernel_table(found, _MOST_ROWS), color=color, width=width))
    parts.append("\n".join(_wrapped(visible(line), width) for line in _notes(found)))
    parts.append(last_line(found))
    return "\n\n".join(part.rstrip("\n") for part in parts if part.strip()) + "\n"


def _wrapped(line: str, width: int | None) -> str:
    if width is None or len(line) <= width:
        return line
    return textwrap.fill(line, max(width, 20), subsequent_indent="    ", break_on_hyphens=False)


def _tables(found: Compared) -> Iterator[Table]:
    rows: list[tuple[object, ...]] = []
    for one in found.outcomes:
        is_ok = one.status is Status.OK
        word = NOT_APPLICABLE if one.reason == OTHER_FORMAT else one.status.value
        status = Cell(word, "green" if is_ok else "" if one.implicit or word == NOT_APPLICABLE else "red")
        seconds = f"{one.seconds:.2f} s" if is_ok else ""
        message = one.message or (IMPLICIT if one.implicit else "")
        rows.append((one.runner, status, one.precision if is_ok else "", seconds, message))
    yield Table(("runner", "status", "precision", "time", "message"), rows)
    for level, noun in ((Level.MODEL, "output"), (Level.NODE, "node")):
        chosen = [one for one in found.comparisons if one.level is level]
        if chosen:
            yield verdict_matrix(chosen, noun, _MOST_ROWS)


def _differences(found: Compared) -> Iterator[str]:
    """Yield a line for each tensor of each runner that is not equal: its worst case."""
    worst: dict[tuple[object, ...], Comparison] = {}
    for one in found.comparisons:
        if one.measure.verdict is Verdict.EQUAL:
            continue
        key = (one.node, one.tensor, one.subject, one.reference, one.measure.verdict)
        known = worst.get(key)
        if known is None or one.measure.mismatched > known.measure.mismatched:
            worst[key] = one
    ordered = sorted(worst.values(), key=lambda one: list(Verdict).index(one.measure.verdict), reverse=True)
    for one in ordered[:_MOST_ROWS]:
        yield f"{one.measure.verdict}: {name_of(one)} on {_who(one)}: {_how(one)}"
    if len(ordered) > _MOST_ROWS:
        yield f"and {len(ordered) - _MOST_ROWS} more that are not equal"


def _who(one: Comparison) -> str:
    parts = [one.subject]
    if one.relation is Relation.MODELS:
        parts.append(f"between {one.reference_model} and {one.subject_model}")
    elif one.subject != one.reference:
        parts.append(f"against {one.reference}")
    elif one.measure.verdict is Verdict.MISMATCH:
        parts.append(f"against {one.subject} with taps")
    if one.place:
        parts.append(f"in iteration {', '.join(map(str, one.place))}")
    if one.caller:
        parts.append(f"called by {one.caller}")
    if one.case:
        parts.append(f"in case {one.case}")
    return " ".join(parts)


def _how(one: Comparison) -> str:
    found = one.measure
    if found.remark:
        return f"{found.remark}; {excuse_text(found.excuse)}" if found.excuse else found.remark
    parts = []
    if found.verdict is Verdict.NONDETERMINISTIC:
        parts.append("changes when nodes are tapped" if one.tapped else "changes from run to run")
    elif found.mismatched:
        parts.append(f"{found.mismatched} of {counted(found.elements, 'element')} differ")
    if found.excuse is not None:
        parts.append(excuse_text(found.excuse))
    elif found.contested:
        parts.append(f"{counted(found.contested, 'element')} with a value that the document allows")
    elif found.verdict is Verdict.CONTESTED:
        parts.append("an upstream node leaves the result open")
    if one.wrong_runs is not None:
        parts.append(f"in {one.wrong_runs[0]} of {one.wrong_runs[1]} runs")
    if found.worst is not None:
        element = f"{list(found.worst.index)} is" if found.worst.index else "it is"
        parts.append(f"{element} {one.both(shown(found.worst.got), shown(found.worst.expected))}")
    if found.max_ulp and math.isfinite(found.max_abs):
        parts.append(f"needs abs {found.max_abs:.3g}, rel {found.max_rel:.3g} ({found.max_ulp} ulp)")
    for noun, (got, expected) in (("NaN", found.nans), ("infinities", found.infinities)):
        if got != expected:
            parts.append(one.both(f"{got} {noun}", expected))
    return "; ".join(parts)


def excuse_text(excuse: Excuse) -> str:
    start = "an upstream node leaves the result open"
    if excuse.elements is None:
        return f"{start}, its shape as well: {excuse.why}"
    where = f"{start} in {counted(excuse.elements, 'element')}"
    return f"{where}: {excuse.why}" if excuse.is_whole else where


def _indices(guarded: Sequence[Guarded]) -> Iterator[str]:
    """Yield what is to be said of indices: once for all runners and cases that have the same."""
    same: dict[tuple[str, str, str], list[Guarded]] = {}
    for one in guarded:
        same.setdefault((one.kind, one.node, one.message), []).append(one)
    groups = sorted(same.items(), key=lambda item: not item[1][0].is_illegal)
    for (kind, node, message), members in groups[:_MOST_ROWS]:
        head = {"illegal": "not legal", "nan": "left open"}.get(kind, f"{kind} indices")
        runners = ", ".join(dict.fromkeys(one.runner for one in members))
        yield f"{head}: {node} ({members[0].operator}): {message} (seen by {runners})"
    if len(groups) > _MOST_ROWS:
        yield f"and {counted(len(groups) - _MOST_ROWS, 'more node')} with such indices"


def _outliers(found: Compared) -> Iterator[str]:
    for one in found.outliers[:_MOST_ROWS]:
        where = one.node if one.node is not None else one.tensor
        yield f"who is wrong: {where}: {one.message}"
    if len(found.outliers) > _MOST_ROWS:
        yield f"and {len(found.outliers) - _MOST_ROWS} more"


def _notes(found: Compared) -> Iterator[str]:
    same: dict[tuple[str, str], list[NotTapped]] = {}
    for one in found.not_tapped:
        same.setdefault((one.runner, one.reason), []).append(one)
    for (runner, reason), members in same.items():
        names = ", ".join(one.node for one in members[:_MOST_ROWS])
        more = f" and {len(members) - _MOST_ROWS} more" if len(members) > _MOST_ROWS else ""
        yield f"not compared on {runner}: {names}{more}: {reason}"
    yield from found.remarks
    for runner, remarks in found.about.items():
        more = "; `ir-scatter devices -v` says more" if len(remarks) > 1 else ""
        yield f"{runner}: {remarks[0].removesuffix('.')}{more}"
    cases = counted(len(found.feeds), "case")
    precision = found.settings.precision
    yield f"seed {found.settings.seed}, {cases}, precision {precision}; {POLICY}"


def last_line(found: Compared) -> str:
    counts = summary(found.comparisons)
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "nothing compared"
    illegal = len({one.node for one in found.guarded if one.is_illegal})
    return words + (f", {counted(illegal, 'illegal node')}" if illegal else "")
