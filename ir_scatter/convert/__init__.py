"""Rewrites scatter operators of a model, changes nothing else, and proves it before it writes."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.convert.conversion import Conversion, Converted, Refused, Verified

if TYPE_CHECKING:
    from ir_scatter.core.model import Model

__all__ = ["Conversion", "Converted", "Refused", "Verified", "convert"]

DEFAULT_CASES = 8


def convert(
    model: "Model | str | Path",
    to: str | None = None,
    *,
    sources: Collection[str] = (),
    nodes: Sequence[str] = (),
    opset: int | None = None,
    assume: Collection[str] = (),
    keep_negative_indices: bool = False,
    verify: int = DEFAULT_CASES,
    seed: int = 0,
    targets: Sequence[str] = (),
    guard: str | None = None,
) -> Conversion:
    """Rewrite scatter nodes into equal forms, as `ir_scatter.convert` says of each argument."""
    from ir_scatter.convert.pipeline import run

    return run(
        model,
        to,
        sources=sources,
        nodes=nodes,
        opset=opset,
        assume=assume,
        keeps_negative=keep_negative_indices,
        cases=verify,
        seed=seed,
        targets=targets,
        guard=guard,
    )
