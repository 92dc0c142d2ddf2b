"""A table of tensors and runners with the verdict of each."""

from collections.abc import Iterable, Sequence

from ir_scatter.compare.result import Comparison, Verdict
from ir_scatter.report.tables import Cell, Table, cell

_COLORS = {
    Verdict.EQUAL: "green",
    Verdict.CLOSE: "green",
    Verdict.CONTESTED: "yellow",
    Verdict.NONDETERMINISTIC: "red",
    Verdict.MISMATCH: "red",
}
_ORDER = list(Verdict)
_FEW = 12
"""So many rows are drawn even if all verdicts in them are equal."""

_Column = tuple[str, str]
_Row = dict[_Column, list[Comparison]]


def name_of(one: Comparison) -> str:
    """Return what a tensor is called: the output, or the node with its operator."""
    return one.tensor if one.node is None else f"{one.node} ({one.operator})"


def matrix(found: Sequence[Comparison], noun: str, most: int) -> Table:
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
    shown = min(max(loud, _FEW), most)
    drawn: list[tuple[object, ...]] = [
        (name, *(_verdicts(row.get(column, ())) for column in columns)) for name, row in ordered[:shown]
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
        _verdicts([one for row in rows for one in row.get(column, ())], counts=False) for column in columns
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


def _verdicts(found: Sequence[Comparison], *, counts: bool = True) -> Cell:
    """Return the worst verdict, and of several computations how many have it."""
    if not found:
        return cell("", "")
    verdict = _ORDER[_worst(found)]
    same = sum(one.measure.verdict is verdict for one in found)
    text = f"{verdict} ({same} of {len(found)})" if counts and same < len(found) else verdict.value
    return cell(text, _COLORS[verdict])
