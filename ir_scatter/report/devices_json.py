"""What can run here, for programs."""

from collections.abc import Sequence

from ir_scatter.report.characters import as_document, dumps, fields_of
from ir_scatter.runners.base import Availability
from ir_scatter.runners.releases.environments import Environment

_FIELDS = "runner is_available reason remedy full_name capabilities default_precision remarks versions driver"


def render(found: Sequence[Availability], *, environments: Sequence[Environment] = ()) -> str:
    releases = [
        {"release": str(one.release), "python": one.python, "folder": str(one.folder), "bytes": one.size}
        for one in environments
    ]
    return dumps(as_document(runners=[fields_of(one, _FIELDS) for one in found], releases=releases))
