"""The scatter nodes of files as JSON."""

from collections.abc import Sequence
from typing import Any

from ir_scatter.inspect import Inspection, NodeSummary, totals
from ir_scatter.report.characters import as_document, dumps, fields_of


def render(inspections: Sequence[Inspection]) -> str:
    files = [
        {
            "path": inspection.path,
            "format": inspection.format,
            "readable": not inspection.error,
            "error": inspection.error or None,
            "nodes": [_node(node) for node in inspection.nodes],
            "totals": totals(inspection.nodes),
        }
        for inspection in inspections
    ]
    return dumps(
        as_document(
            files=files, totals=totals([node for inspection in inspections for node in inspection.nodes])
        )
    )


def _node(node: NodeSummary) -> dict[str, Any]:
    return {
        **fields_of(node, "name operator"),
        **fields_of(node.location, "line column scope"),
        **fields_of(node, "inputs axis reduction"),
        "attributes": dict(node.attributes),
        "indices": fields_of(node.indices, "is_constant low high repeated"),
    }
