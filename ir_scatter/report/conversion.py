"""What a conversion came to: for people and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ir_scatter.convert.conversion import Conversion, Converted, Refused
from ir_scatter.core.diagnostics import Location
from ir_scatter.report.characters import visible
from ir_scatter.report.phrases import counted

_SCHEMA = 1


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What was done with a conversion.

    Attributes:
        conversion: what it came to.
        output: the file that was written, None if none was.
        remarks: what else there is to say.
        devices: the runners on which both models gave the same outputs, and on how many inputs.
        diff: the changes as text, None if they were not asked for.
    """

    conversion: Conversion
    output: str | None = None
    remarks: tuple[str, ...] = ()
    devices: Mapping[str, int] | None = None
    diff: str | None = None


def text(result: Result) -> str:
    """Return a table of nodes, the reason of each refusal on a line of its own, and a summary."""
    conversion = result.conversion
    rows = [*map(_converted_row, conversion.converted), *map(_refused_row, conversion.refused)]
    rows.sort(key=lambda row: row.line)
    lines: list[str] = []
    for row, cells in zip(rows, _aligned([row.cells for row in rows]), strict=True):
        lines += [cells, f"    {row.reason}"] if row.reason else [cells]
    lines += [f"note: {visible(remark)}" for remark in result.remarks]
    return "".join(f"{line}\n" for line in (*lines, _summary(result)))


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
    names = [_source(one), "" if one.target is None else str(one.target)]
    change = " -> ".join(visible(name) for name in names if name)
    cells = (_where(one.location, one.name), change, f"refused: {one.code}")
    return _Row(one.location.line or 0, cells, visible(one.message))


def _source(one: Refused) -> str:
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


def _summary(result: Result) -> str:
    conversion = result.conversion
    if not conversion.refused and conversion.is_empty and conversion.origin is None:
        what = f"written to {visible(result.output)} as it is" if result.output else "nothing written"
        return f"nothing to convert; {what}"
    parts = [f"{counted(len(conversion.converted), 'node')} converted"]
    if conversion.refused:
        parts.append(f"{len(conversion.refused)} refused")
    if conversion.verified:
        parts.append(_verified([one.cases for one in conversion.verified]))
    parts += [f"equal on {name} ({counted(cases, 'case')})" for name, cases in (result.devices or {}).items()]
    if conversion.opset is not None:
        parts.append(f"opset {conversion.opset}")
    end = f"; {visible(result.output)} written" if result.output else "; nothing written"
    return ", ".join(parts) + end


def _verified(cases: Sequence[int]) -> str:
    fewest, most = min(cases), max(cases)
    return f"verified on {counted(most, 'case') if fewest == most else f'{fewest} to {most} cases'} each"


def document(result: Result, versions: Mapping[str, str]) -> dict[str, Any]:
    """Return what is to be written as JSON."""
    conversion = result.conversion
    return {
        "schema": _SCHEMA,
        "versions": dict(versions),
        "model": conversion.origin or conversion.model.path,
        "output": result.output,
        "opset": conversion.opset,
        "seed": conversion.seed,
        "converted": [
            {
                **_node(one.name, one.location),
                "from": None if one.source is None else str(one.source),
                "to": str(one.target),
                "applicability": "safe" if one.is_safe else "assumed",
                "assumptions": list(one.assumptions),
                "rewrites": list(one.rewrites),
            }
            for one in conversion.converted
        ],
        "refused": [
            {
                **_node(one.name, one.location),
                "from": _source(one) or None,
                "to": None if one.target is None else str(one.target),
                "code": one.code,
                "reason": one.message,
            }
            for one in conversion.refused
        ],
        "verified": [{**_node(one.name, one.location), "cases": one.cases} for one in conversion.verified],
        "verified_on": dict(result.devices or {}),
        "remarks": list(result.remarks),
        "diff": result.diff,
    }


def _node(name: str, location: Location) -> dict[str, Any]:
    return {"node": name, "scope": location.scope, "line": location.line}
