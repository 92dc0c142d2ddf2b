"""What can run here, for programs."""

from collections.abc import Sequence

from ir_scatter.report.characters import as_document, dumps, fields_of
from ir_scatter.runners.base import Availability

_FIELDS = "runner is_available reason remedy full_name capabilities default_precision remarks versions driver"


def render(found: Sequence[Availability]) -> str:
    return dumps(as_document(runners=[fields_of(one, _FIELDS) for one in found]))
