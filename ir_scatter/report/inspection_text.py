"""The scatter nodes of files as tables."""

from collections.abc import Sequence

from ir_scatter.core.shapes import counted
from ir_scatter.inspect import Inspection, NodeSummary, totals
from ir_scatter.report.characters import Table, table_text, visible

_COLUMNS = ("where", "operator", "inputs", "axis", "reduction", "indices")


def render(inspections: Sequence[Inspection], *, color: bool = False, width: int | None = None) -> str:
    """One table for each file that has scatter nodes, and how many nodes there are of each operator."""
    parts = []
    for one in inspections:
        if one.nodes:
            table = Table(_COLUMNS, [_row(node) for node in one.nodes], keeps_empty=True)
            path = visible(one.path)
            parts.append(f"\x1b[1m{path}\x1b[0m\n" if color else f"{path}\n")
            parts.append(table_text(table, color=color, width=width) + "\n")
    nodes = [node for one in inspections for node in one.nodes]
    files = counted(len(inspections), "file")
    if not nodes:
        return f"no scatter nodes in {files}\n"
    shown = ", ".join(f"{count} {operator}" for operator, count in totals(nodes).items())
    return "".join(parts) + f"{counted(len(nodes), 'scatter node')} in {files}: {shown}\n"


def _row(node: NodeSummary) -> tuple[object, ...]:
    line = "" if node.location.line is None else f"{node.location.line}: "
    inputs = ", ".join(f"{name} {shown}" for name, shown in node.inputs.items() if shown)
    axis = "" if node.axis is None else str(node.axis)
    return line + node.location.scope, node.operator, inputs, axis, node.reduction or "", str(node.indices)
