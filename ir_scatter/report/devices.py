"""What can run here: for people and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ir_scatter.report.characters import visible
from ir_scatter.report.tables import Table, cell, render
from ir_scatter.runners.base import Availability


def text(found: Sequence[Availability], *, color: bool = False, width: int | None = None) -> str:
    """Return a table of runners, and what is to be known of each."""
    rows: list[tuple[object, ...]] = [
        (
            one.runner,
            cell("yes", "green") if one.is_available else cell("no", "yellow"),
            one.full_name,
            one.default_precision,
            " ".join(one.capabilities),
            ", ".join(f"{name} {version}" for name, version in one.versions.items()),
        )
        for one in found
    ]
    header = ("runner", "runs here", "device", "default precision", "capabilities", "versions")
    lines = "".join(f"{visible(line)}\n" for one in found for line in _lines(one))
    return render(Table(header, rows), color=color, width=width) + ("\n" + lines if lines else "")


def _lines(one: Availability) -> Iterator[str]:
    if not one.is_available:
        yield f"{one.runner}: {one.reason}" + (f"; {one.remedy}" if one.remedy else "")
    for remark in one.remarks:
        yield f"{one.runner}: {remark}"


def document(found: Sequence[Availability], versions: Mapping[str, str]) -> dict[str, Any]:
    """Return what is to be written as JSON."""
    return {
        "schema": 1,
        "versions": dict(versions),
        "runners": [
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
    }
