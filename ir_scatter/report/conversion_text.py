"""A conversion as text: converted and refused nodes, and a summary."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ir_scatter.convert.conversion import ConversionRun, Converted, Refused, Risk
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.words import counted
from ir_scatter.report.characters import visible, wrap_line
from ir_scatter.rewrites.guard import NAMES

_MOST_NAMES = 3
"""Maximum nodes named in a line about one risk; further ones are only counted."""


def render(done: ConversionRun, *, width: int | None = None) -> str:
    """Return a table of nodes, with the reason below each refusal, and a summary."""
    conversion = done.conversion
    rows = [*map(_converted_row, conversion.converted), *map(_refused_row, conversion.refused)]
    rows.sort(key=lambda row: row[0])
    widths = [max(len(cells[at]) for _, cells, _ in rows) for at in range(3)] if rows else []
    lines: list[str] = []
    for _, cells, reason in rows:
        lines.append("  ".join(map(str.ljust, cells, widths)).rstrip())
        lines += [f"    {reason}"] if reason else []
    lines += [f"note: {visible(remark)}" for remark in done.remarks]
    lines += _risk_lines(conversion.risks)
    return "".join(f"{wrap_line(line, width, '    ')}\n" for line in (*lines, _summary(done)))


def _risk_lines(risks: Sequence[Risk]) -> Iterator[str]:
    """Yield the number of nodes at risk, then for each defect these nodes, its condition and advice."""
    if not risks:
        return
    nodes = len({risk.scope for risk in risks})
    yield f"{counted(nodes, 'node')} still at risk:"
    alike: dict[tuple[str, str, str, str], list[str]] = {}
    for risk in risks:
        alike.setdefault((risk.defect, risk.runner, risk.when, risk.advice), []).append(risk.scope)
    for (defect, runner, when, advice), scopes in alike.items():
        names = ", ".join(map(visible, scopes[:_MOST_NAMES]))
        more = len(scopes) - _MOST_NAMES
        names += f" and {counted(more, 'other')}" if more > 0 else ""
        condition = f"if {when}" if when else "always"
        yield f"  {names}: {defect} on {runner}, {visible(condition)}"
        yield f"    {visible(advice)}"


_Row: TypeAlias = tuple[int, tuple[str, str, str], str]
"""(line in the model, to sort by; cells; reason of a refusal)."""


def _converted_row(node: Converted) -> _Row:
    change = " -> ".join(str(key) for key in (node.source, node.target) if key is not None)
    state = "safe" if node.is_safe else f"assumed: {', '.join(node.assumptions)}"
    named_rewrites = [name for name in node.rewrites if node.source == node.target or name in NAMES.values()]
    state = ", ".join((state, *named_rewrites))
    location = node.location
    return location.line or 0, (_where(location, node.name), change, state), ""


def _refused_row(node: Refused) -> _Row:
    names = [source_of(node), "" if node.target is None else str(node.target)]
    change = " -> ".join(visible(name) for name in names if name)
    cells = (_where(node.location, node.name), change, f"refused: {node.code}")
    return node.location.line or 0, cells, visible(node.message)


def source_of(node: Refused) -> str:
    return node.type if node.source is None else str(node.source)


def _where(location: Location, name: str) -> str:
    scope = location.scope or name or location.path
    return visible(scope if location.line is None else f"{location.line}: {scope}")


def _summary(done: ConversionRun) -> str:
    conversion = done.conversion
    if not conversion.refused and conversion.is_empty and conversion.origin is None:
        outcome = f"copied unchanged to {visible(done.written)}" if done.written else "nothing written"
        return f"nothing to convert; {outcome}"
    parts = [f"{counted(len(conversion.converted), 'node')} converted"]
    if conversion.inlined:
        parts.append(f"{counted(len(conversion.inlined), 'function')} inlined")
    if conversion.refused:
        parts.append(f"{len(conversion.refused)} refused")
    if conversion.verified:
        fewest, most = (ends(node.cases for node in conversion.verified) for ends in (min, max))
        cases = counted(most, "case") if fewest == most else f"{fewest} to {most} cases"
        parts.append(f"verified on {cases} each")
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
