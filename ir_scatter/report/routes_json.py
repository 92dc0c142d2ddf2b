"""The rewrites of `convert` as JSON: one entry for each pair of operator versions."""

from collections.abc import Sequence

from ir_scatter.core.model import OPENVINO
from ir_scatter.report.characters import as_document, dumps
from ir_scatter.rewrites.base import Rewrite


def render(rewrites: Sequence[Rewrite]) -> str:
    routes = [
        {
            "from": str(rewrite.source.key),
            "to": str(rewrite.target.key),
            "dialect": "openvino" if rewrite.source.key.domain == OPENVINO else "onnx",
            "conditions": rewrite.conditions,
            "rewrite": rewrite.name,
        }
        for rewrite in rewrites
    ]
    return dumps(as_document(routes=routes))
