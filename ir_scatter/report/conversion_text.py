"""What a conversion came to, for people."""

from typing import TypeAlias

from ir_scatter.convert.conversion import ConversionRun, Converted, Refused
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.words import counted
from ir_scatter.report.characters import visible, wrapped
from ir_scatter.rewrites.guard import NAMES


def render(done: ConversionRun, *, width: int | None = None) -> str:
    """A table of nodes, the reason of each refusal on a line of its own, and a summary."""
    conversion = done.conversion
    rows = [*map(_converted_row, conversion.converted), *map(_refused_row, conversion.refused)]
    rows.sort(key=lambda row: row[0])
    widths = [max(len(cells[at]) for _, cells, _ in rows) for at in range(3)] if rows else []
    lines: list[str] = []
    for _, cells, reason in rows:
        lines.append("  ".join(map(str.ljust, cells, widths)).rstrip())
        lines += [f"    {reason}"] if reason else []
    lines += [f"note: {visible(remark)}" for remark in done.remarks]
    return "".join(f"{wrapped(line, width, '    ')}\n" for line in (*lines, _summary(done)))


_Row: TypeAlias = tuple[int, tuple[str, str, str], str]
"""The line it is sorted by, cells, and the reason of a refusal."""


def _converted_row(one: Converted) -> _Row:
    change = " -> ".join(str(key) for key in (one.source, one.target) if key is not None)
    state = "safe" if one.is_safe else f"assumed: {', '.join(one.assumptions)}"
    told = [name for name in one.rewrites if one.source == one.target or name in NAMES.values()]
    state = ", ".join((state, *told))
    location = one.location
    return location.line or 0, (_where(location, one.name), change, state), ""


def _refused_row(one: Refused) -> _Row:
    names = [source_of(one), "" if one.target is None else str(one.target)]
    change = " -> ".join(visible(name) for name in names if name)
    cells = (_where(one.location, one.name), change, f"refused: {one.code}")
    return one.location.line or 0, cells, visible(one.message)


def source_of(one: Refused) -> str:
    return one.type if one.source is None else str(one.source)


def _where(location: Location, name: str) -> str:
    scope = location.scope or name or location.path
    return visible(scope if location.line is None else f"{location.line}: {scope}")


def _summary(done: ConversionRun) -> str:
    conversion = done.conversion
    if not conversion.refused and conversion.is_empty and conversion.origin is None:
        what = f"written to {visible(done.written)} as it is" if done.written else "nothing written"
        return f"nothing to convert; {what}"
    parts = [f"{counted(len(conversion.converted), 'node')} converted"]
    if conversion.refused:
        parts.append(f"{len(conversion.refused)} refused")
    if conversion.verified:
        fewest, most = (ends(one.cases for one in conversion.verified) for ends in (min, max))
        shown = counted(most, "case") if fewest == most else f"{fewest} to {most} cases"
        parts.append(f"verified on {shown} each")
    equal = [f"equal on {name} ({counted(cases, 'case')})" for name, cases in (done.devices or {}).items()]
    if equal and not conversion.verified:
        equal[0] = f"verified: {equal[0]}"
    parts += equal
    if conversion.opset is not None:
        parts.append(f"opset {conversion.opset}")
    if done.not_verified and (done.written or conversion.is_whole):
        parts.append(f"not verified: {visible(done.not_verified)}")
    end = f"; {visible(done.written)} written" if done.written else "; nothing written"
    return ", ".join(parts) + end
