"""The table of rewrites: from, to, conditions."""

from typing import Any

from ir_scatter.model import OPENVINO
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites import all_rewrites
from ir_scatter.rewrites.rewrite import Rewrite

_HEADER = ("from", "to", "conditions", "rewrite")


def text() -> str:
    """Return the table for people: the versions of one operator share a line."""
    groups: dict[tuple[str, str, str, str, str], list[Rewrite]] = {}
    for rewrite in all_rewrites():
        source, target = rewrite.source.key, rewrite.target.key
        key = (source.domain, source.type, target.type, rewrite.conditions, rewrite.name)
        groups.setdefault(key, []).append(rewrite)
    rows = [_HEADER]
    for (_, _, _, conditions, name), found in groups.items():
        sources = _versions([rewrite.source for rewrite in found])
        rows.append((sources, _versions([rewrite.target for rewrite in found]), conditions, name))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def document(versions: dict[str, str]) -> dict[str, Any]:
    """Return what is to be written as JSON: one entry for each pair of rows."""
    return {
        "schema": 1,
        "versions": versions,
        "routes": [
            {
                "from": str(rewrite.source.key),
                "to": str(rewrite.target.key),
                "dialect": "openvino" if rewrite.source.key.domain == OPENVINO else "onnx",
                "conditions": rewrite.conditions,
                "rewrite": rewrite.name,
            }
            for rewrite in all_rewrites()
        ],
    }


def _versions(specs: list[OpSpec]) -> str:
    """Return "ScatterElements-11, -13"."""
    keys = sorted({spec.key for spec in specs})
    return ", ".join(str(key) if number == 0 else f"-{key.version}" for number, key in enumerate(keys))
