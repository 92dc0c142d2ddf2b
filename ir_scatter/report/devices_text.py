"""What can run here: a table of runners, and what is to be known of each."""

from collections.abc import Sequence

from ir_scatter.report.characters import Cell, Table, table_text, visible
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
    lines = []
    for one in found:
        if not one.is_available:
            lines.append(f"{one.runner}: {one.reason}" + (f"; {one.remedy}" if one.remedy else ""))
        lines += [f"{one.runner}: {remark}" for remark in one.remarks]
    notes = "".join(f"{visible(line)}\n" for line in lines)
    return table_text(Table(header, rows), color=color, width=width) + ("\n" + notes if notes else "")
