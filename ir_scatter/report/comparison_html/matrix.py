"""Tables of what is compared by who computes: one row for each tensor, one column for each runner."""

from collections.abc import Sequence
from typing import NamedTuple

from ir_scatter.compare.result import Compared, Comparison, Level, Verdict
from ir_scatter.report.matrices import FEW_ROWS, VERDICTS, Column, by_tensor, worst_of

_ILLEGAL, _NOT_TAPPED = "illegal", "not-tapped"
_WORDS = {_ILLEGAL: "illegal indices", _NOT_TAPPED: "not tapped"}
_ORDER = ["", Verdict.EQUAL.value, _NOT_TAPPED, *(one.value for one in VERDICTS[1:]), _ILLEGAL]


class Cell(NamedTuple):
    """What is to be said of a tensor on a runner: a verdict, "illegal", "not-tapped", or "" for nothing."""

    kind: str = ""
    word: str = ""
    note: str = ""


class Row(NamedTuple):
    """A tensor; its level and its name are what its differences are found by."""

    name: str
    operator: str
    level: Level
    cells: tuple[Cell, ...]

    @property
    def worst(self) -> int:
        return max(_ORDER.index(cell.kind) for cell in self.cells)


class Matrix(NamedTuple):
    """Rows that somebody should look at, the worst first, and the others."""

    columns: list[Column]
    rows: list[Row]
    quiet: list[Row]

    @property
    def references(self) -> list[str]:
        return list(dict.fromkeys(reference for _, reference in self.columns))


def make_matrix(found: Compared, level: Level) -> Matrix:
    """Return the table of one level."""
    chosen = [one for one in found.comparisons if one.level is level]
    columns, rows = by_tensor(chosen)
    operators = {one.node: one.operator for one in chosen}
    others: dict[tuple[str, str], str] = {}
    if level is Level.NODE:
        for illegal in found.guarded:
            if illegal.is_illegal:
                operators.setdefault(illegal.node, illegal.operator)
                others[illegal.node, illegal.runner] = _ILLEGAL
        for hidden in found.not_tapped:
            others.setdefault((hidden.node, hidden.runner), _NOT_TAPPED)
    reference = columns[0][1] if columns else ""
    known = {subject for subject, _ in columns}
    columns += [
        (runner, reference) for runner in dict.fromkeys(at[1] for at in others) if runner not in known
    ]
    made = [
        Row(
            name,
            operators.get(name, ""),
            level,
            tuple(_cell(rows.get(name, {}).get(at, ()), at, others.get((name, at[0]))) for at in columns),
        )
        for name in dict.fromkeys((*rows, *(at[0] for at in others)))
    ]
    made.sort(key=lambda row: max(row.worst, 1), reverse=True)
    loud = sum(row.worst > 1 for row in made)
    if len(made) <= FEW_ROWS:
        return Matrix(columns, made, [])
    return Matrix(columns, made[:loud], made[loud:])


def _cell(found: Sequence[Comparison], column: Column, other: str | None) -> Cell:
    own = [one for one in found if one.subject == one.reference and column[0] != column[1]]
    if other == _ILLEGAL or (other is not None and len(own) == len(found)):
        return Cell(other, _WORDS[other])
    if not found:
        return Cell()
    verdict = worst_of(found)
    alike = [one for one in found if one.measure.verdict is verdict]
    total = len(own) if all(one in own for one in alike) else len(found) - len(own)
    notes = [_note(verdict, alike, total)]
    if own and not any(one in alike for one in own):
        notes.append("changes from run to run")
    return Cell(verdict.value, verdict.value, ", ".join(filter(None, notes)))


def _note(verdict: Verdict, alike: Sequence[Comparison], total: int) -> str:
    """Return how many elements it is about, or how many runs if there are several."""
    if verdict is Verdict.EQUAL:
        return ""
    if total > 1 and len(alike) < total:
        return f"in {len(alike)} of {total}"
    measures = [one.measure for one in alike]
    if any(measure.remark for measure in measures):
        return "another shape or type" if all(one.got is not None for one in alike) else "missing"
    if verdict is Verdict.CONTESTED:
        count = max(measure.contested or measure.mismatched for measure in measures)
    else:
        count = max(measure.mismatched for measure in measures)
    elements = max(measure.elements for measure in measures)
    return f"{count:,} of {elements:,}" if count else ""
