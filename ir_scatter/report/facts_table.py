"""A table of what runtimes really made of scatter nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from ir_scatter.compare.result import Compared
from ir_scatter.report.comparison_json import conversion
from ir_scatter.report.phrases import counted
from ir_scatter.report.tables import Table

_FEW = 12
"""So many nodes are listed one by one; of more those that agree are put together."""


@dataclass(frozen=True, slots=True)
class _Row:
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


def facts_table(found: Compared, most: int) -> Table:
    """Return the table: first the nodes that differ, then the others.

    Args:
        found: the comparison.
        most: rows; what is behind them is counted.
    """
    rows = sorted(_rows(found), key=lambda row: not row.is_loud)
    if len(rows) > _FEW:
        rows = _together(rows)
    drawn: list[tuple[object, ...]] = [
        (_name(row.nodes), row.runner, row.kernel, row.precision, row.converts, _time(row.microseconds))
        for row in rows[:most]
    ]
    if len(rows) > most:
        drawn.append((f"and {len(rows) - most} more", "", "", "", "", ""))
    return Table(("node", "runner", "kernel", "precision", "converts", "time"), drawn)


def _rows(found: Compared) -> list[_Row]:
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
                    _Row(nodes, runner, one.kernel, one.precision, converts, one.microseconds, is_loud)
                )
    return rows


def _together(rows: Sequence[_Row]) -> list[_Row]:
    """Put rows together that nobody must look at, where they say the same; times are added up."""
    kept = [row for row in rows if row.is_loud]
    same: dict[tuple[object, ...], list[_Row]] = {}
    for row in rows:
        if not row.is_loud:
            same.setdefault(row.kind, []).append(row)
    for group in same.values():
        first = group[0]
        nodes = tuple(name for row in group for name in row.nodes)
        times = [row.microseconds for row in group if row.microseconds is not None]
        total = sum(times) if times else None
        kept.append(
            _Row(nodes, first.runner, first.kernel, first.precision, first.converts, total, is_loud=False)
        )
    return kept


def _name(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) < 4 else counted(len(nodes), "node")


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds:.0f} us"
