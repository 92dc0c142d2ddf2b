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
) -> Conversion:
    """Rewrite scatter nodes into equal forms; nothing is written yet.

    Args:
        model: as `read` gives it, or the path of a file.
        to: the operator that is wanted, "ScatterNDUpdate" or "ScatterNDUpdate-3"; without a version
            the newest (in ONNX that of the model's opset). None: deprecated operators become their
            successors.
        sources: only nodes of these operators; empty for all.
        nodes: only nodes with these names or scope paths, literally or as globs.
        opset: the opset that an ONNX model is to have; None for the nearest one that works.
        assume: conditions to take for granted where the file does not tell: "unique-indices",
            "non-negative-indices", "equal-indices", "full-indices".
        keep_negative_indices: leave negative indices as they are where the target forbids them.
        verify: on how many generated inputs both forms of each node are compared; 0 for none.
        seed: for these inputs.

    Returns:
        What is rewritten, what is refused and why, and what was proven; `.write(path)` writes it.

    Raises:
        UsageError: a name, an operator, an opset or a condition does not exist.
        UnreadableModel: the model cannot be read.
    """
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
    )
