"""Available devices as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ir_scatter.report.characters import as_document, dumps, fields_of
from ir_scatter.runners.base import Availability
from ir_scatter.runners.releases.environments import Environment

if TYPE_CHECKING:
    from ir_scatter.jobs.machine import Machine

_FIELDS = "runner is_available reason remedy full_name capabilities default_precision remarks versions driver"


def render(
    devices: Sequence[Availability],
    *,
    environments: Sequence[Environment] = (),
    machines: Sequence["Machine"] = (),
) -> str:
    releases = [
        {
            "release": str(environment.release),
            "python": environment.python,
            "folder": str(environment.folder),
            "bytes": environment.size,
        }
        for environment in environments
    ]
    fleet = {"machines": machine_groups(machines)} if machines else {}
    return dumps(
        as_document(runners=[fields_of(device, _FIELDS) for device in devices], releases=releases, **fleet)
    )


def machine_groups(machines: Sequence["Machine"]) -> list[dict[str, Any]]:
    """Return the machines of a fleet in groups that should give the same results."""
    from ir_scatter.jobs.machine import groups

    return [
        {
            "names": [machine.name for machine in group],
            "hosts": [machine.host for machine in group],
            "python": group[0].python,
            **fields_of(group[0], "system cpu instructions fingerprint releases"),
            "packages": dict(group[0].packages),
        }
        for group in groups(machines)
    ]
