"""The scatter nodes of files, for programs."""

from collections.abc import Sequence
from typing import Any

from ir_scatter.inspect import Inspection, NodeSummary, totals
from ir_scatter.report.characters import as_document, dumps, fields_of


def render(inspections: Sequence[Inspection]) -> str:
    files = [
        {
            "path": one.path,
            "format": one.format,
            "readable": not one.error,
            "error": one.error or None,
            "nodes": [_node(node) for node in one.nodes],
            "totals": totals(one.nodes),
        }
        for one in inspections
    ]
    return dumps(as_document(files=files, totals=totals([node for one in inspections for node in one.nodes])))


def _node(node: NodeSummary) -> dict[str, Any]:
    return {
        **fields_of(node, "name operator"),
        **fields_of(node.location, "line column scope"),
        **fields_of(node, "inputs axis reduction"),
        "attributes": dict(node.attributes),
        "indices": fields_of(node.indices, "is_constant low high repeated"),
    }
