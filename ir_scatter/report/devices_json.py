"""What can run here, for programs."""

from collections.abc import Mapping, Sequence

from ir_scatter.report.characters import as_document, dumps
from ir_scatter.runners.base import Availability


def render(found: Sequence[Availability], *, versions: Mapping[str, str] | None = None) -> str:
    """One JSON object; `versions` are those that are installed if None."""
    document = as_document(
        versions,
        runners=[
            {
                "runner": one.runner,
                "available": one.is_available,
                "reason": one.reason,
                "remedy": one.remedy,
                "full_name": one.full_name,
                "capabilities": list(one.capabilities),
                "default_precision": one.default_precision,
                "remarks": list(one.remarks),
                "versions": dict(one.versions),
            }
            for one in found
        ],
    )
    return dumps(document)
