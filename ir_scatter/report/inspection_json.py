"""The scatter nodes of files, for programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from ir_scatter.inspect import NodeSummary, totals
from ir_scatter.report.characters import as_document, dumps
from ir_scatter.report.inspection_text import Inspection


def render(inspections: Sequence[Inspection], *, versions: Mapping[str, str] | None = None) -> str:
    """One JSON object; `versions` are those that are installed if None."""
    document = as_document(
        versions,
        files=[
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
        totals=totals([node for one in inspections for node in one.nodes]),
    )
    return dumps(document)


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
