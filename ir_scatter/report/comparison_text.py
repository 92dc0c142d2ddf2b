"""A comparison for people: tables of runners, of outputs and of nodes, and what stands out."""

from collections.abc import Callable, Iterator, Sequence

from ir_scatter.compare.session import Compared
from ir_scatter.compare.verdicts import Comparison, Level, Verdict
from ir_scatter.report.characters import visible
from ir_scatter.report.comparison_json import summary
from ir_scatter.report.phrases import counted
from ir_scatter.report.tables import Table, cell, render
from ir_scatter.runners.outcome import Status

_COLORS = {
    Verdict.EQUAL: "green",
    Verdict.CLOSE: "green",
    Verdict.CONTESTED: "yellow",
    Verdict.NONDETERMINISTIC: "red",
    Verdict.MISMATCH: "red",
}
_MOST_ROWS = 40
"""Rows of a table; more are counted."""

POLICY = "NaN equals NaN; 0.0 and -0.0 are close, not equal"


def text(found: Compared, *, color: bool = False, width: int | None = None) -> str:
    """Return what was found.

    Args:
        found: the comparison.
        color: use ANSI colours.
        width: columns of the terminal; None for tables as wide as they are.
    """
    tables = [_runners(found), _outputs(found), _nodes(found), _facts(found)]
    title = f"{found.model} and {found.other}" if found.other else found.model
    parts = [visible(title)]
    parts += [render(table, color=color, width=width) for table in tables if table.rows]
    lines = list(_lines(found))
    if lines:
        parts.append("\n".join(map(visible, lines)))
    parts.append(last_line(found))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _runners(found: Compared) -> Table:
    rows: list[tuple[object, ...]] = [
        (
            one.runner,
            cell(one.status.value, "green" if one.status is Status.OK else "red"),
            one.precision,
            f"{one.seconds:.2f} s" if one.status is Status.OK else "",
            one.message,
        )
        for one in found.outcomes
    ]
    return Table(("runner", "status", "precision", "time", "message"), rows)


def _outputs(found: Compared) -> Table:
    """Return a row for each output, worst case first, that is not plainly equal; or all if they are few."""
    chosen = [one for one in found.comparisons if one.level is Level.MODEL]
    rows = _rows(chosen, lambda one: one.tensor)
    return Table(("output", "runner", "against", "verdict", "differing", "worst", "required"), rows)


def _nodes(found: Compared) -> Table:
    chosen = [one for one in found.comparisons if one.level is Level.NODE]
    rows = _rows(chosen, lambda one: f"{one.node} ({one.operator})")
    return Table(("node", "runner", "against", "verdict", "differing", "worst", "required"), rows)


def _rows(chosen: Sequence[Comparison], name: Callable[[Comparison], str]) -> list[tuple[object, ...]]:
    ordered = sorted(chosen, key=_rank, reverse=True)
    shown = ordered[:_MOST_ROWS]
    rows: list[tuple[object, ...]] = [
        (
            name(one),
            one.subject,
            one.reference,
            cell(one.measure.verdict.value, _COLORS[one.measure.verdict]),
            _differing(one),
            _worst(one),
            _required(one),
        )
        for one in shown
    ]
    rest = summary(ordered[_MOST_ROWS:])
    if rest:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in rest.items())
        rows.append((f"and {len(ordered) - _MOST_ROWS} more", "", "", counts, "", "", ""))
    return rows


def _rank(one: Comparison) -> int:
    return list(Verdict).index(one.measure.verdict)


def _differing(one: Comparison) -> str:
    found = one.measure
    if found.verdict is Verdict.EQUAL:
        return ""
    count = f"{found.mismatched} of {found.elements}" if found.mismatched else ""
    contested = f"{found.contested} contested" if found.contested else ""
    return ", ".join(part for part in (count, contested) if part)


def _worst(one: Comparison) -> str:
    found = one.measure
    if found.remark:
        return found.remark
    if found.worst is None:
        return ""
    return f"{list(found.worst.index)}: {shown(found.worst.got)}, expected {shown(found.worst.expected)}"


def _required(one: Comparison) -> str:
    found = one.measure
    if found.verdict not in {Verdict.CLOSE, Verdict.MISMATCH} or found.remark:
        return ""
    return f"abs {found.max_abs:.3g}, rel {found.max_rel:.3g}, {found.max_ulp} ulp"


def shown(element: object) -> str:
    """Return an element in few characters."""
    return f"{element:.9g}" if isinstance(element, float) else str(element)


def _facts(found: Compared) -> Table:
    """Return how each runner really ran the scatter nodes."""
    rows: list[tuple[object, ...]] = []
    names = {one.node for one in found.comparisons if one.node is not None}
    for runner, facts in found.facts.items():
        for one in facts:
            if not names.isdisjoint(one.originals):
                time = "" if one.microseconds is None else f"{one.microseconds:.0f} us"
                rows.append((", ".join(one.originals), runner, one.kernel, one.precision, time))
    more = len(rows) - _MOST_ROWS
    if more > 0:
        rows = [*rows[:_MOST_ROWS], (f"and {more} more", "", "", "", "")]
    return Table(("node", "runner", "kernel", "precision", "time"), rows)


def _lines(found: Compared) -> Iterator[str]:
    for guarded in found.guarded:
        kind = "illegal indices" if guarded.is_illegal else "repeated indices"
        yield f"{kind}: {guarded.node} ({guarded.operator}) on {guarded.runner}: {guarded.message}"
    for odd in found.odd:
        where = odd.node if odd.node is not None else odd.tensor
        yield f"who is wrong: {where}: {odd.message}"
    if found.not_tapped:
        yield f"{counted(len(found.not_tapped), 'node')} not tapped:"
    for one in found.not_tapped[:_MOST_ROWS]:
        yield f"  {one.node} on {one.runner}: {one.reason}"
    yield from found.remarks
    yield f"{POLICY}; seed {found.settings.seed}, {counted(len(found.feeds), 'case')}"


def last_line(found: Compared) -> str:
    """Return the verdicts in one line."""
    counts = summary(found.comparisons)
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "nothing compared"
    illegal = sum(one.is_illegal for one in found.guarded)
    return words + (f", {illegal} with illegal indices" if illegal else "")
