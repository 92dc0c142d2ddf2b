"""The scatter nodes of files as tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from ir_scatter.inspect import NodeSummary, totals
from ir_scatter.report.characters import visible
from ir_scatter.report.phrases import counted
from ir_scatter.report.tables import Table, table_text

_COLUMNS = ("where", "operator", "inputs", "axis", "reduction", "indices")


@dataclass(frozen=True, slots=True)
class Inspection:
    """One file that was looked at.

    Attributes:
        path: as the caller named it.
        format: None if it cannot be read.
        nodes: its scatter nodes.
        error: why it cannot be read, "" if it can.
    """

    path: str
    format: str | None
    nodes: tuple[NodeSummary, ...]
    error: str = ""


def render(inspections: Sequence[Inspection], *, color: bool = False, width: int | None = None) -> str:
    """One table for each file that has scatter nodes, and the totals."""
    parts = []
    for one in inspections:
        if one.nodes:
            table = Table(_COLUMNS, [_row(node) for node in one.nodes], keeps_empty=True)
            path = visible(one.path)
            parts.append(f"\x1b[1m{path}\x1b[0m\n" if color else f"{path}\n")
            parts.append(table_text(table, color=color, width=width) + "\n")
    return "".join(parts) + summary(inspections) + "\n"


def _row(node: NodeSummary) -> tuple[object, ...]:
    line = "" if node.location.line is None else f"{node.location.line}: "
    inputs = ", ".join(f"{name} {shown}" for name, shown in node.inputs.items() if shown)
    axis = "" if node.axis is None else str(node.axis)
    return line + node.location.scope, node.operator, inputs, axis, node.reduction or "", str(node.indices)


def summary(inspections: Sequence[Inspection]) -> str:
    """How many nodes there are of each operator in all files."""
    nodes = [node for inspection in inspections for node in inspection.nodes]
    files = counted(len(inspections), "file")
    if not nodes:
        return f"no scatter nodes in {files}"
    shown = ", ".join(f"{count} {operator}" for operator, count in totals(nodes).items())
    return f"{counted(len(nodes), 'scatter node')} in {files}: {shown}"
