"""The rewrites of `convert` as text: from, to, conditions."""

import textwrap
from collections.abc import Sequence

from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites.base import Rewrite

_WIDTH = 80
_INDENT = "    "


def render(rewrites: Sequence[Rewrite]) -> str:
    """Return a table of rewrites; versions of an operator share a row."""
    groups: dict[tuple[str, str, str, str, str], list[Rewrite]] = {}
    for rewrite in rewrites:
        source, target = rewrite.source.key, rewrite.target.key
        key = (source.domain, source.type, target.type, rewrite.conditions, rewrite.name)
        groups.setdefault(key, []).append(rewrite)
    rows = [("from", "to", "")]
    for (_, _, _, conditions, _), group in groups.items():
        sources = _versions([rewrite.source for rewrite in group])
        rows.append((sources, _versions([rewrite.target for rewrite in group]), conditions))
    width = max(len(row[0]) for row in rows)
    lines: list[str] = []
    for left, right, conditions in rows:
        lines.append(f"{left.ljust(width)}  {right}")
        lines += textwrap.wrap(conditions, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
    return "".join(f"{line}\n" for line in lines)


def _versions(specs: list[OpSpec]) -> str:
    """Return "ScatterElements-11, -13"."""
    keys = sorted({spec.key for spec in specs})
    return ", ".join(str(key) if number == 0 else f"-{key.version}" for number, key in enumerate(keys))
