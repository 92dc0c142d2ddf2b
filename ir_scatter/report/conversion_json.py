"""A conversion as JSON."""

from dataclasses import asdict
from typing import Any

from ir_scatter.convert.conversion import ConversionRun, Converted, Refused, Verified
from ir_scatter.report.characters import as_document, dumps
from ir_scatter.report.conversion_text import source_of


def render(done: ConversionRun) -> str:
    conversion = done.conversion
    document = as_document(
        model=conversion.origin or conversion.model.path,
        output=done.written,
        opset=conversion.opset,
        seed=conversion.seed,
        converted=[
            {
                **_node(node),
                "from": None if node.source is None else str(node.source),
                "to": str(node.target),
                "applicability": "safe" if node.is_safe else "assumed",
                "assumptions": node.assumptions,
                "rewrites": node.rewrites,
            }
            for node in conversion.converted
        ],
        refused=[
            {
                **_node(node),
                "from": source_of(node) or None,
                "to": None if node.target is None else str(node.target),
                "code": node.code,
                "reason": node.message,
            }
            for node in conversion.refused
        ],
        verified=[{**_node(node), "cases": node.cases} for node in conversion.verified],
        verified_on=dict(done.devices or {}),
        risks=[asdict(risk) for risk in conversion.risks],
        remarks=done.remarks,
        diff=done.diff,
        # where nodes and whole models were compared, and on how many inputs; or why they were not
        verification={
            "verified": bool(conversion.verified or done.devices or conversion.inlined)
            and not done.not_verified,
            "nodes": {"numpy": min(node.cases for node in conversion.verified)}
            if conversion.verified
            else {},
            "models": dict(done.devices or {}),
            "reason": done.not_verified or None,
        },
    )
    return dumps(document)


def _node(node: Converted | Refused | Verified) -> dict[str, Any]:
    return {"node": node.name, "scope": node.location.scope, "line": node.location.line}
