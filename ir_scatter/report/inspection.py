"""The scatter nodes of some files as a table or as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ir_scatter.inspect import NodeSummary, totals
from ir_scatter.report.characters import visible
from ir_scatter.report.phrases import counted

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


def rows(inspection: Inspection) -> list[tuple[str, ...]]:
    """Return the cells of the table, a header first; names cannot send terminal escapes."""
    cells: list[tuple[str, ...]] = [_COLUMNS]
    for node in inspection.nodes:
        line = "" if node.location.line is None else f"{node.location.line}: "
        inputs = ", ".join(f"{name} {shown}" for name, shown in node.inputs.items() if shown)
        axis = "" if node.axis is None else str(node.axis)
        row = (
            line + node.location.scope,
            node.operator,
            inputs,
            axis,
            node.reduction or "",
            str(node.indices),
        )
        cells.append(tuple(visible(cell) for cell in row))
    return cells


def summary(inspections: Sequence[Inspection]) -> str:
    """Return how many nodes there are of each operator in all files."""
    nodes = [node for inspection in inspections for node in inspection.nodes]
    files = counted(len(inspections), "file")
    if not nodes:
        return f"no scatter nodes in {files}"
    shown = ", ".join(f"{count} {operator}" for operator, count in totals(nodes).items())
    return f"{counted(len(nodes), 'scatter node')} in {files}: {shown}"


def document(inspections: Sequence[Inspection], versions: dict[str, str]) -> dict[str, Any]:
    """Return what is to be written as JSON."""
    return {
        "schema": 1,
        "versions": versions,
        "files": [
            {
                "path": inspection.path,
                "format": inspection.format,
                "readable": not inspection.error,
                "error": inspection.error or None,
                "nodes": [_node(node) for node in inspection.nodes],
                "totals": totals(list(inspection.nodes)),
            }
            for inspection in inspections
        ],
        "totals": totals([node for one in inspections for node in one.nodes]),
    }


def _node(node: NodeSummary) -> dict[str, Any]:
    return {
        "name": node.name,
        "operator": node.operator,
        "line": node.location.line,
        "column": node.location.column,
        "scope": node.location.scope,
        "inputs": node.inputs,
        "axis": node.axis,
        "reduction": node.reduction,
        "indices": {
            "constant": node.indices.is_constant,
            "low": node.indices.low,
            "high": node.indices.high,
            "repeated": node.indices.repeated,
        },
    }
