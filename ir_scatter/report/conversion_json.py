"""What a conversion came to, for programs."""

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
                **_node(one),
                "from": None if one.source is None else str(one.source),
                "to": str(one.target),
                "applicability": "safe" if one.is_safe else "assumed",
                "assumptions": one.assumptions,
                "rewrites": one.rewrites,
            }
            for one in conversion.converted
        ],
        refused=[
            {
                **_node(one),
                "from": source_of(one) or None,
                "to": None if one.target is None else str(one.target),
                "code": one.code,
                "reason": one.message,
            }
            for one in conversion.refused
        ],
        verified=[{**_node(one), "cases": one.cases} for one in conversion.verified],
        verified_on=dict(done.devices or {}),
        remarks=done.remarks,
        diff=done.diff,
        # nodes and whole models: where they were compared, and on how many inputs; or why not
        verification={
            "verified": bool(conversion.verified or done.devices) and not done.not_verified,
            "nodes": {"numpy": min(one.cases for one in conversion.verified)} if conversion.verified else {},
            "models": dict(done.devices or {}),
            "reason": done.not_verified or None,
        },
    )
    return dumps(document)


def _node(one: Converted | Refused | Verified) -> dict[str, Any]:
    return {"node": one.name, "scope": one.location.scope, "line": one.location.line}
