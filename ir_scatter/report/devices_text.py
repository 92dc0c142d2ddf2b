"""What can run here: a table of runners, and what is to be known of each."""

from collections.abc import Iterator, Sequence

from ir_scatter.report.characters import visible
from ir_scatter.report.tables import Cell, Table, table_text
from ir_scatter.runners.base import Availability


def render(found: Sequence[Availability], *, color: bool = False, width: int | None = None) -> str:
    rows: list[tuple[object, ...]] = [
        (
            one.runner,
            Cell("yes", "green") if one.is_available else Cell("no", "yellow"),
            one.full_name,
            one.default_precision,
            " ".join(one.capabilities),
            ", ".join(f"{name} {version}" for name, version in one.versions.items()),
        )
        for one in found
    ]
    header = ("runner", "runs here", "device", "default precision", "capabilities", "versions")
    lines = "".join(f"{visible(line)}\n" for one in found for line in _lines(one))
    return table_text(Table(header, rows), color=color, width=width) + ("\n" + lines if lines else "")


def _lines(one: Availability) -> Iterator[str]:
    if not one.is_available:
        yield f"{one.runner}: {one.reason}" + (f"; {one.remedy}" if one.remedy else "")
    for remark in one.remarks:
        yield f"{one.runner}: {remark}"
