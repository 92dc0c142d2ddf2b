"""Tables of a comparison: verdicts by tensor and runner, operators by runner, kernels that ran the nodes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ir_scatter.compare.result import NUMPY, Compared, Comparison, Level, Verdict
from ir_scatter.report.comparison_json import conversion
from ir_scatter.report.phrases import counted
from ir_scatter.report.tables import Cell, Table
from ir_scatter.runners.base import OTHER_FORMAT, Status

_COLORS = {
    Verdict.EQUAL: "green",
    Verdict.CLOSE: "green",
    Verdict.CONTESTED: "yellow",
    Verdict.NONDETERMINISTIC: "red",
    Verdict.MISMATCH: "red",
}
_ORDER = list(Verdict)
_FEW_ROWS = 12
"""So many rows are drawn even if all verdicts in them are equal."""

_Column = tuple[str, str]
_Row = dict[_Column, list[Comparison]]

WORKS, REFUSES, DIFFERS = "works", "refuses", "differs"
NOT_APPLICABLE = "n/a"

_FEW_NODES = 12
"""So many nodes are listed one by one; of more those that agree are put together."""


def name_of(one: Comparison) -> str:
    """Return what a tensor is called: the output, or the node with its operator."""
    return one.tensor if one.node is None else f"{one.node} ({one.operator})"


def verdict_matrix(found: Sequence[Comparison], noun: str, most: int) -> Table:
    """Return the table, the worst rows first.

    Args:
        found: comparisons of one level.
        noun: what the rows are.
        most: rows; what is behind them is counted.
    """
    rows: dict[str, _Row] = {}
    columns: dict[_Column, None] = {}
    for one in found:
        column = _column(one, found)
        columns[column] = None
        rows.setdefault(name_of(one), {}).setdefault(column, []).append(one)
    ordered = sorted(rows.items(), key=lambda item: _worst(_all(item[1])), reverse=True)
    loud = sum(_worst(_all(row)) > 0 for row in rows.values())
    shown = min(max(loud, _FEW_ROWS), most)
    drawn: list[tuple[object, ...]] = [
        (name, *(_worst_of(row.get(column, ())) for column in columns)) for name, row in ordered[:shown]
    ]
    if ordered[shown:]:
        drawn.append(_rest([row for _, row in ordered[shown:]], columns))
    if all(subject == reference for subject, reference in columns):
        return Table((noun, *(subject for subject, _ in columns)), drawn)
    references = {reference for _, reference in columns}
    if len(references) == 1:
        return Table((f"{noun}, against {references.pop()}", *(subject for subject, _ in columns)), drawn)
    return Table((noun, *(f"{subject} against {reference}" for subject, reference in columns)), drawn)


def _rest(rows: Sequence[_Row], columns: Iterable[_Column]) -> tuple[object, ...]:
    """Return the last row, which stands for all others."""
    cells = [
        _worst_of([one for row in rows for one in row.get(column, ())], counts=False) for column in columns
    ]
    is_equal = all(one.text in {"", Verdict.EQUAL.value} for one in cells)
    return (f"and {len(rows)} more{'' if is_equal else ', at worst'}", *cells)


def _column(one: Comparison, found: Sequence[Comparison]) -> _Column:
    """Return the column; a runner against itself goes where the runner is judged anyway."""
    if one.subject != one.reference:
        return one.subject, one.reference
    pairs = ((other.subject, other.reference) for other in found if other.subject == one.subject)
    return next((pair for pair in pairs if pair[0] != pair[1]), (one.subject, one.reference))


def _all(row: _Row) -> list[Comparison]:
    return [one for same in row.values() for one in same]


def _worst(found: Iterable[Comparison]) -> int:
    return max(_ORDER.index(one.measure.verdict) for one in found)


def _worst_of(found: Sequence[Comparison], *, counts: bool = True) -> Cell:
    """Return the worst verdict, and of several computations how many have it."""
    if not found:
        return Cell("", "")
    verdict = _ORDER[_worst(found)]
    same = sum(one.measure.verdict is verdict for one in found)
    text = f"{verdict} ({same} of {len(found)})" if counts and same < len(found) else verdict.value
    return Cell(text, _COLORS[verdict])


def operator_matrix(found: Sequence[Compared]) -> Table:
    """Return a row for each operator: of the nodes of all models, how many each runner gets right.

    A node works on a runner if what the runner gives for it agrees with the document, or is one of
    several values that the document allows. A runner refuses all nodes of a model that it does not
    run, for whatever reason, but a format that is not the runner's is not applicable; a node that could
    not be looked at does not count.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    runners: dict[str, None] = {}
    for one in found:
        for outcome in one.outcomes:
            if outcome.runner == NUMPY:
                continue
            runners.setdefault(outcome.runner)
            if outcome.status is not Status.OK:
                word = NOT_APPLICABLE if outcome.reason == OTHER_FORMAT else REFUSES
                for operator in one.operators.values():
                    counts.setdefault((operator, outcome.runner), Counter())[word] += 1
        for (operator, runner), word in _by_node(one).items():
            counts.setdefault((operator, runner[0]), Counter())[word] += 1
    names = sorted({operator for operator, _ in counts})
    rows: list[tuple[object, ...]] = [
        (name, *(_counted(counts.get((name, runner))) for runner in runners)) for name in names
    ]
    return Table(("operator", *runners), rows)


def _by_node(one: Compared) -> dict[tuple[str, tuple[str, str]], str]:
    """Return what happened to each node on each runner, the worst of all cases."""
    found: dict[tuple[str, tuple[str, str]], str] = {}
    for comparison in one.comparisons:
        if comparison.level is not Level.NODE:
            continue
        key = comparison.operator, (comparison.subject, comparison.node or "")
        is_wrong = comparison.measure.verdict in {Verdict.MISMATCH, Verdict.NONDETERMINISTIC}
        if is_wrong or key not in found:
            found[key] = DIFFERS if is_wrong else WORKS
    return found


def _counted(counts: Counter[str] | None) -> str:
    if not counts:
        return ""
    words = [f"{word} {counts[word]}" for word in (WORKS, REFUSES, DIFFERS) if counts[word]]
    return ", ".join(words) or NOT_APPLICABLE


@dataclass(frozen=True, slots=True)
class _Kernel:
    nodes: tuple[str, ...]
    runner: str
    kernel: str
    precision: str
    converts: str
    microseconds: float | None
    is_loud: bool

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what rows have in common that are put together."""
        return self.runner, self.kernel, self.precision, self.converts


def kernel_table(found: Compared, most: int) -> Table:
    """Return the table: first the nodes that differ, then the others.

    Args:
        found: the comparison.
        most: rows; what is behind them is counted.
    """
    rows = sorted(_kernels(found), key=lambda row: not row.is_loud)
    if len(rows) > _FEW_NODES:
        rows = _together(rows)
    drawn: list[tuple[object, ...]] = [
        (_named(row.nodes), row.runner, row.kernel, row.precision, row.converts, _time(row.microseconds))
        for row in rows[:most]
    ]
    if len(rows) > most:
        drawn.append((f"and {len(rows) - most} more", "", "", "", "", ""))
    return Table(("node", "runner", "kernel", "precision", "converts", "time"), drawn)


def _kernels(found: Compared) -> list[_Kernel]:
    compared = {one.node for one in found.comparisons if one.node is not None}
    loud = {one.node for one in found.comparisons if one.measure.verdict.is_difference}
    rows = []
    for runner, facts in found.facts.items():
        for one in facts:
            nodes = tuple(name for name in one.originals if name in compared)
            if nodes:
                converts = conversion(one, found.types)
                is_loud = not loud.isdisjoint(nodes)
                rows.append(
                    _Kernel(nodes, runner, one.kernel, one.precision, converts, one.microseconds, is_loud)
                )
    return rows


def _together(rows: Sequence[_Kernel]) -> list[_Kernel]:
    """Put rows together that nobody must look at, where they say the same; times are added up."""
    kept = [row for row in rows if row.is_loud]
    same: dict[tuple[object, ...], list[_Kernel]] = {}
    for row in rows:
        if not row.is_loud:
            same.setdefault(row.kind, []).append(row)
    for group in same.values():
        first = group[0]
        nodes = tuple(name for row in group for name in row.nodes)
        times = [row.microseconds for row in group if row.microseconds is not None]
        total = sum(times) if times else None
        kept.append(
            _Kernel(nodes, first.runner, first.kernel, first.precision, first.converts, total, is_loud=False)
        )
    return kept


def _named(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) < 4 else counted(len(nodes), "node")


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds:.0f} us"
