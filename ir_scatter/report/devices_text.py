"""Devices as text: the available ones, then what the others need; all details if `verbose`."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ir_scatter.report.characters import Table, table_text, visible, wrap_line
from ir_scatter.runners.base import MODEL_PRECISION, Availability
from ir_scatter.runners.releases.environments import Environment

if TYPE_CHECKING:
    from ir_scatter.jobs.machine import Machine

_MORE = "for details, and reasons why devices are not available: ir-scatter devices -v"


def render(
    devices: Sequence[Availability],
    *,
    color: bool = False,
    width: int | None = None,
    verbose: bool = False,
    environments: Sequence[Environment] = (),
    machines: Sequence["Machine"] = (),
) -> str:
    available = [device for device in devices if device.is_available]
    unavailable = [device for device in devices if not device.is_available]
    tables = (
        Table(
            ("available", "device", "precision"),
            [
                (device.runner, device.full_name, device.default_precision or MODEL_PRECISION)
                for device in available
            ],
        ),
        Table(
            ("not available", "needs"),
            [(device.runner, device.remedy or device.reason) for device in unavailable],
        ),
        Table(
            ("release", "size", "for"),
            [
                (str(environment.release), megabytes(environment.size), environment.python)
                for environment in environments
            ],
        ),
    )
    parts = [table_text(table, color=color, width=width) for table in tables if table.rows]
    if machines:
        parts.append("".join(f"{wrap_line(visible(line), width)}\n" for line in lines_of_machines(machines)))
    if verbose:
        parts += ["".join(_details(device, width)) for device in devices]
    else:
        versions = dict(pair for device in available for pair in list(device.versions.items())[:1])
        packages = "" if machines else ", ".join(f"{name} {version}" for name, version in versions.items())
        parts.append("".join(f"{wrap_line(visible(line), width)}\n" for line in (packages, _MORE) if line))
    return "\n".join(parts)


def lines_of_machines(machines: Sequence["Machine"]) -> Iterator[str]:
    """Yield a line per group of machines that should give the same results, then the groups' differences."""
    from ir_scatter.jobs.machine import differences, groups

    machine_groups = groups(machines)
    for group in machine_groups:
        yield f"{', '.join(machine.name for machine in group)}: {group[0].summary}"
    for group in machine_groups[1:]:
        first, second = machine_groups[0][0], group[0]
        yield f"{first.name} and {second.name} differ in {'; '.join(differences(first, second))}"


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


def _details(device: Availability, width: int | None) -> Iterator[str]:
    """Yield the name of a runner, and below it all details."""
    lines = [] if device.is_available else [f"not available: {device.reason}", device.remedy]
    lines.append(", ".join(f"{name} {version}" for name, version in device.versions.items()))
    lines += [device.driver, " ".join(device.capabilities)]
    yield f"{visible(device.runner)}\n"
    for line in filter(None, (*lines, *device.remarks)):
        yield f"{textwrap.indent(wrap_line(visible(line), None if width is None else width - 2), '  ')}\n"
