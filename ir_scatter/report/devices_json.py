"""What can run here, for programs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ir_scatter.report.characters import as_document, dumps, fields_of
from ir_scatter.runners.base import Availability
from ir_scatter.runners.releases.environments import Environment

if TYPE_CHECKING:
    from ir_scatter.jobs.machine import Machine

_FIELDS = "runner is_available reason remedy full_name capabilities default_precision remarks versions driver"


def render(
    found: Sequence[Availability],
    *,
    environments: Sequence[Environment] = (),
    machines: Sequence["Machine"] = (),
) -> str:
    releases = [
        {"release": str(one.release), "python": one.python, "folder": str(one.folder), "bytes": one.size}
        for one in environments
    ]
    told = {"machines": machine_groups(machines)} if machines else {}
    return dumps(as_document(runners=[fields_of(one, _FIELDS) for one in found], releases=releases, **told))


def machine_groups(machines: Sequence["Machine"]) -> list[dict[str, Any]]:
    """Return machines of a fleet, those together that should compute the same."""
    from ir_scatter.jobs.machine import groups

    return [
        {
            "names": [one.name for one in group],
            "hosts": [one.host for one in group],
            "python": group[0].python,
            **fields_of(group[0], "system cpu instructions fingerprint releases"),
            "packages": dict(group[0].packages),
        }
        for group in groups(machines)
    ]
