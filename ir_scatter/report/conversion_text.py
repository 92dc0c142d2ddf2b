"""What a conversion came to, for people."""

from collections.abc import Sequence
from typing import NamedTuple

from ir_scatter.convert.conversion import Converted, Done, Refused
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.shapes import counted
from ir_scatter.report.characters import visible


def render(done: Done) -> str:
    """A table of nodes, the reason of each refusal on a line of its own, and a summary."""
    conversion = done.conversion
    rows = [*map(_converted_row, conversion.converted), *map(_refused_row, conversion.refused)]
    rows.sort(key=lambda row: row.line)
    lines: list[str] = []
    for row, cells in zip(rows, _aligned([row.cells for row in rows]), strict=True):
        lines += [cells, f"    {row.reason}"] if row.reason else [cells]
    lines += [f"note: {visible(remark)}" for remark in done.remarks]
    return "".join(f"{line}\n" for line in (*lines, _summary(done)))


class _Row(NamedTuple):
    line: int
    cells: tuple[str, str, str]
    reason: str = ""


def _converted_row(one: Converted) -> _Row:
    change = " -> ".join(str(key) for key in (one.source, one.target) if key is not None)
    state = "safe" if one.is_safe else f"assumed: {', '.join(one.assumptions)}"
    if one.source == one.target and one.rewrites:
        state += f", {', '.join(one.rewrites)}"
    return _Row(one.location.line or 0, (_where(one.location, one.name), change, state))


def _refused_row(one: Refused) -> _Row:
    names = [source_of(one), "" if one.target is None else str(one.target)]
    change = " -> ".join(visible(name) for name in names if name)
    cells = (_where(one.location, one.name), change, f"refused: {one.code}")
    return _Row(one.location.line or 0, cells, visible(one.message))


def source_of(one: Refused) -> str:
    return one.type if one.source is None else str(one.source)


def _where(location: Location, name: str) -> str:
    scope = location.scope or name or location.path
    return visible(scope if location.line is None else f"{location.line}: {scope}")


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pairs = [zip(row, widths, strict=True) for row in rows]
    return ["  ".join(cell.ljust(width) for cell, width in row).rstrip() for row in pairs]


def _summary(done: Done) -> str:
    conversion = done.conversion
    if not conversion.refused and conversion.is_empty and conversion.origin is None:
        what = f"written to {visible(done.written)} as it is" if done.written else "nothing written"
        return f"nothing to convert; {what}"
    parts = [f"{counted(len(conversion.converted), 'node')} converted"]
    if conversion.refused:
        parts.append(f"{len(conversion.refused)} refused")
    if conversion.verified:
        parts.append(_verified([one.cases for one in conversion.verified]))
    parts += [f"equal on {name} ({counted(cases, 'case')})" for name, cases in (done.devices or {}).items()]
    if conversion.opset is not None:
        parts.append(f"opset {conversion.opset}")
    end = f"; {visible(done.written)} written" if done.written else "; nothing written"
    return ", ".join(parts) + end


def _verified(cases: Sequence[int]) -> str:
    fewest, most = min(cases), max(cases)
    return f"verified on {counted(most, 'case') if fewest == most else f'{fewest} to {most} cases'} each"
