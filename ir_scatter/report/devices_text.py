"""What can run here: first what does, then what the others need; `verbose` says all that is known of each."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ir_scatter.report.characters import Table, table_text, visible, wrapped
from ir_scatter.runners.base import MODEL_PRECISION, Availability
from ir_scatter.runners.releases.environments import Environment

if TYPE_CHECKING:
    from ir_scatter.jobs.machine import Machine

_MORE = "`ir-scatter devices -v` says more of each, and why others do not run"


def render(
    found: Sequence[Availability],
    *,
    color: bool = False,
    width: int | None = None,
    verbose: bool = False,
    environments: Sequence[Environment] = (),
    machines: Sequence["Machine"] = (),
) -> str:
    here = [one for one in found if one.is_available]
    others = [one for one in found if not one.is_available]
    tables = (
        Table(
            ("runs here", "device", "precision"),
            [(one.runner, one.full_name, one.default_precision or MODEL_PRECISION) for one in here],
        ),
        Table(("does not", "needs"), [(one.runner, one.remedy or one.reason) for one in others]),
        Table(
            ("release", "size", "for"),
            [(str(one.release), megabytes(one.size), one.python) for one in environments],
        ),
    )
    parts = [table_text(table, color=color, width=width) for table in tables if table.rows]
    if machines:
        parts.append("".join(f"{wrapped(visible(line), width)}\n" for line in lines_of_machines(machines)))
    if verbose:
        parts += ["".join(_details(one, width)) for one in found]
    else:
        versions = dict(pair for one in here for pair in list(one.versions.items())[:1])
        shown = "" if machines else ", ".join(f"{name} {version}" for name, version in versions.items())
        parts.append("".join(f"{wrapped(visible(line), width)}\n" for line in (shown, _MORE) if line))
    return "\n".join(parts)


def lines_of_machines(machines: Sequence["Machine"]) -> Iterator[str]:
    """Say what machines are, those together that should compute the same, and what differs between others."""
    from ir_scatter.jobs.machine import differences, groups

    found = groups(machines)
    for group in found:
        yield f"{', '.join(one.name for one in group)}: {group[0].summary}"
    for group in found[1:]:
        first, other = found[0][0], group[0]
        yield f"{first.name} and {other.name} differ in {'; '.join(differences(first, other))}"


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


def _details(one: Availability, width: int | None) -> Iterator[str]:
    """Yield lines: the runner, and below it what is known of it."""
    lines = [] if one.is_available else [f"does not run here: {one.reason}", one.remedy]
    lines.append(", ".join(f"{name} {version}" for name, version in one.versions.items()))
    lines += [one.driver, " ".join(one.capabilities)]
    yield f"{visible(one.runner)}\n"
    for line in filter(None, (*lines, *one.remarks)):
        yield f"{textwrap.indent(wrapped(visible(line), None if width is None else width - 2), '  ')}\n"
