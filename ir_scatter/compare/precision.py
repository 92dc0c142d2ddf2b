"""What a runtime really made of scatter nodes, and what it computed in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ir_scatter.compare.tolerances import PRECISION_BITS, coarser
from ir_scatter.runners.base import NodeFacts

_SUFFIX = re.compile(r"(?:\.\d+)+$")
"""What a plugin adds to the name of a node when it puts conversions around it; these get more of it."""


def computed_in(facts: Sequence[NodeFacts]) -> str:
    """Return the coarsest floating-point precision of any node; "" if nothing is known."""
    found = {one.precision.lower() for one in facts} & PRECISION_BITS.keys()
    return coarser(*sorted(found)) if found else ""


def facts_about(facts: Sequence[NodeFacts], scopes: Mapping[str, str]) -> tuple[NodeFacts, ...]:
    """Return what a runtime made of some nodes; in `originals` they have the names that they have here.

    Args:
        facts: of all nodes.
        scopes: by the names that the runtime may have for them.
    """
    best: dict[str, tuple[int, int]] = {}
    for number, one in enumerate(facts):
        for name in one.originals:
            known = name if name in scopes else _SUFFIX.sub("", name)
            if known in scopes:
                rank = (len(name) - len(known), number)
                best[scopes[known]] = min(best.get(scopes[known], rank), rank)
    chosen: dict[int, list[str]] = {}
    for scope, (_, number) in best.items():
        chosen.setdefault(number, []).append(scope)
    return tuple(replace(facts[number], originals=tuple(chosen[number])) for number in sorted(chosen))
