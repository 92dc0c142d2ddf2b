"""Tables of what is compared by who computes: one row for each tensor, one column for each runner."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ir_scatter.compare.result import Compared, Comparison, Level, Verdict

_ORDER = (Verdict.EQUAL, Verdict.CLOSE, Verdict.CONTESTED, Verdict.NONDETERMINISTIC, Verdict.MISMATCH)
_ILLEGAL, _NOT_TAPPED = "illegal", "not-tapped"
_WORDS = {_ILLEGAL: "illegal indices", _NOT_TAPPED: "not tapped"}
_ALWAYS_SHOWN = 12
"""So many rows are shown even if all are equal."""


class Column(NamedTuple):
    """A runner, and the one that it is held against."""

    subject: str
    reference: str


class Cell(NamedTuple):
    """What is to be said of a tensor on a runner: a verdict, "illegal", "not-tapped", or "" for nothing."""

    kind: str = ""
    word: str = ""
    note: str = ""

    @property
    def is_quiet(self) -> bool:
        return self.kind in {"", Verdict.EQUAL.value}


class Row(NamedTuple):
    """A tensor; `key` is what the differences of this row are found by."""

    name: str
    operator: str
    cells: tuple[Cell, ...]
    key: tuple[Level, str]


class Matrix(NamedTuple):
    """Rows that somebody should look at, the worst first, and the others."""

    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    quiet: tuple[Row, ...] = ()

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column.reference for column in self.columns))


@dataclass(slots=True)
class _Collected:
    operator: str = ""
    found: dict[Column, list[Comparison]] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)


def subject_of(one: Comparison) -> str:
    """Return what a row is called: the scope of the node, or the output."""
    return one.tensor if one.node is None else one.node


def make_matrix(found: Compared, level: Level) -> Matrix:
    """Return the table of one level."""
    rows: dict[str, _Collected] = {}
    chosen = [one for one in found.comparisons if one.level is level]
    for one in chosen:
        row = rows.setdefault(subject_of(one), _Collected())
        row.operator = one.operator
        row.found.setdefault(Column(one.subject, one.reference), []).append(one)
    if level is Level.NODE:
        _add_what_was_not_compared(found, rows)
    columns = _columns(chosen, rows.values())
    made = [
        Row(name, row.operator, tuple(_cell(row, column) for column in columns), (level, name))
        for name, row in rows.items()
    ]
    loud = [row for row in made if not all(cell.is_quiet for cell in row.cells)]
    quiet = [row for row in made if all(cell.is_quiet for cell in row.cells)]
    loud.sort(key=_rank, reverse=True)
    if len(made) <= _ALWAYS_SHOWN:
        return Matrix(columns, (*loud, *quiet))
    return Matrix(columns, tuple(loud), tuple(quiet))


def _add_what_was_not_compared(found: Compared, rows: dict[str, _Collected]) -> None:
    for guarded in found.guarded:
        if guarded.is_illegal:
            row = rows.setdefault(guarded.node, _Collected())
            row.operator = row.operator or guarded.operator
            row.told[guarded.runner] = _ILLEGAL
    for one in found.not_tapped:
        row = rows.setdefault(one.node, _Collected())
        row.told.setdefault(one.runner, _NOT_TAPPED)


def _columns(chosen: Sequence[Comparison], rows: Iterable[_Collected]) -> tuple[Column, ...]:
    """Return the pairs that were compared; a runner against itself is a column only without another."""
    pairs = dict.fromkeys(Column(one.subject, one.reference) for one in chosen)
    told = dict.fromkeys(runner for row in rows for runner in row.told)
    others = {pair.subject for pair in pairs if pair.subject != pair.reference}
    kept = [pair for pair in pairs if pair.subject != pair.reference or pair.subject not in others]
    known = {pair.subject for pair in kept}
    reference = kept[0].reference if kept else ""
    return (*kept, *(Column(runner, reference) for runner in told if runner not in known))


def _cell(row: _Collected, column: Column) -> Cell:
    found = row.found.get(column, [])
    changes = row.found.get(Column(column.subject, column.subject), [])
    told = row.told.get(column.subject)
    if told == _ILLEGAL or (told is not None and not found):
        return Cell(told, _WORDS[told])
    if not found and not changes:
        return Cell()
    verdict = max((one.measure.verdict for one in [*found, *changes]), key=_ORDER.index)
    alike = [one for one in [*found, *changes] if one.measure.verdict is verdict]
    total = len(changes if all(one.subject == one.reference for one in alike) else found)
    note = _note(verdict, alike, total)
    if changes and not any(one in alike for one in changes):
        note += ", changes from run to run"
    return Cell(verdict.value, verdict.value, note.removeprefix(", "))


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


def _rank(row: Row) -> int:
    order = ["", *(verdict.value for verdict in _ORDER)]
    return max(
        len(order) if cell.kind == _ILLEGAL else 2 if cell.kind == _NOT_TAPPED else order.index(cell.kind)
        for cell in row.cells
    )
