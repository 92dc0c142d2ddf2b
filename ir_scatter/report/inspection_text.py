"""The scatter nodes of files as tables."""

import re
from collections.abc import Iterator, Sequence

from ir_scatter.core.words import counted
from ir_scatter.inspect import Inspection, NodeSummary, totals
from ir_scatter.report.characters import Table, cells, fold, table_text, visible, without_middle, wrap_line

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_COLUMNS = ("where", "operator", "inputs", "axis", "reduction", "indices")


def render(inspections: Sequence[Inspection], *, color: bool = False, width: int | None = None) -> str:
    """Return a table for each file with scatter nodes, and the number of nodes of each operator.

    If a table is wider than the terminal, each of its nodes is printed in several lines instead.
    """
    parts = []
    for inspection in inspections:
        if inspection.nodes:
            table = Table(_COLUMNS, [_row(node) for node in inspection.nodes], keeps_empty=True)
            path = without_middle(visible(inspection.path), width)
            parts.append(f"\x1b[1m{path}\x1b[0m\n" if color else f"{path}\n")
            text = table_text(table, color=color, width=None)
            if width is not None and max(map(cells, _STYLE.sub("", text).splitlines())) > width:
                text = "".join(
                    f"{line}\n" for node in inspection.nodes for line in _lines(node, width, color=color)
                )
            parts.append(text + "\n")
    nodes = [node for inspection in inspections for node in inspection.nodes]
    readable = [inspection for inspection in inspections if not inspection.error]
    files = counted(len(readable), "file")
    if not readable and inspections:
        return ""
    if not nodes:
        return f"no scatter nodes in {files}\n"
    counts = ", ".join(f"{count} {operator}" for operator, count in totals(nodes).items())
    summary = f"{counted(len(nodes), 'scatter node')} in {files}: {counts}"
    return "".join(parts) + wrap_line(summary, width, "  ") + "\n"


def _row(node: NodeSummary) -> tuple[str, ...]:
    line = "" if node.location.line is None else f"{node.location.line}: "
    inputs = ", ".join(f"{name} {tensor}" for name, tensor in node.inputs.items() if tensor)
    axis = "" if node.axis is None else str(node.axis)
    return line + node.location.scope, node.operator, inputs, axis, _reduction(node), str(node.indices)


def _reduction(node: NodeSummary) -> str:
    """Return the reduction and unusual attributes: "max, use_init_val=false"; defaults are omitted."""
    written = [f"{name}={str(value).lower()}" for name, value in node.unusual_attributes.items()]
    return ", ".join(filter(None, [node.reduction or "", *written]))


def _lines(node: NodeSummary, width: int, *, color: bool) -> Iterator[str]:
    where, operator, inputs, *details = map(visible, _row(node))
    where = without_middle(where, width)
    yield f"\x1b[36m{where}\x1b[0m" if color else where
    labelled = zip(_COLUMNS[3:], details, strict=True)
    facts = [operator, *(f"{name} {text}" for name, text in labelled if text)]
    for text in (", ".join(facts), inputs):
        yield from fold(text, width, "  ", "    ") if text else ()
