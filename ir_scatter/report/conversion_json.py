"""What a conversion came to, for programs."""

from collections.abc import Mapping
from typing import Any

from ir_scatter.convert.conversion import Done
from ir_scatter.core.diagnostics import Location
from ir_scatter.report.characters import as_document, dumps
from ir_scatter.report.conversion_text import source_of


def render(done: Done, *, versions: Mapping[str, str] | None = None) -> str:
    """One JSON object; `versions` are those that are installed if None."""
    conversion = done.conversion
    document = as_document(
        versions,
        model=conversion.origin or conversion.model.path,
        output=done.written,
        opset=conversion.opset,
        seed=conversion.seed,
        converted=[
            {
                **_node(one.name, one.location),
                "from": None if one.source is None else str(one.source),
                "to": str(one.target),
                "applicability": "safe" if one.is_safe else "assumed",
                "assumptions": list(one.assumptions),
                "rewrites": list(one.rewrites),
            }
            for one in conversion.converted
        ],
        refused=[
            {
                **_node(one.name, one.location),
                "from": source_of(one) or None,
                "to": None if one.target is None else str(one.target),
                "code": one.code,
                "reason": one.message,
            }
            for one in conversion.refused
        ],
        verified=[{**_node(one.name, one.location), "cases": one.cases} for one in conversion.verified],
        verified_on=dict(done.devices or {}),
        remarks=list(done.remarks),
        diff=done.diff,
    )
    return dumps(document)


def _node(name: str, location: Location) -> dict[str, Any]:
    return {"node": name, "scope": location.scope, "line": location.line}
