"""Turns what a node asks of positions into uses, and illegal positions into legal ones."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ir_scatter.analysis.constants import opset_number
from ir_scatter.analysis.interpreter import Step
from ir_scatter.inputs.asked import Asked
from ir_scatter.inputs.bounds import limits_of
from ir_scatter.inputs.cells import Traced
from ir_scatter.inputs.limits import Limits
from ir_scatter.inputs.terms import NO_TERM, Use
from ir_scatter.ops.constraints import Constraint as Need
from ir_scatter.ops.constraints import Numbers
from ir_scatter.ops.general_kernels.base import Array, kind


def need_uses(asked: Asked, needs: Sequence[Need]) -> Iterator[tuple[int, Use]]:
    """Yield the uses of inputs that hold positions or sizes, and their numbers.

    Positions that no input has a part in are left to the node itself.
    """
    for need in needs:
        cell = asked.cells[need.port] if need.port < len(asked.cells) else None
        if not isinstance(cell, Traced) or (cell.terms is None and not cell.is_opaque):
            continue
        array = cell.array
        if not holds_positions(array) or not array.size or not _is_of(need, array):
            continue
        terms = np.full(array.shape, NO_TERM) if cell.terms is None else cell.terms
        limits = limits_of(need, asked, array, terms)
        if limits is not None and array.size % len(limits.lows) == 0:
            yield need.port, _use(asked.step, need, limits, array, terms)


def _use(step: Step, need: Need, limits: Limits, array: Array, terms: Array) -> Use:
    lows, highs = np.array(limits.lows, np.int64), np.array(limits.highs, np.int64)
    values, of_inputs = columns(array, len(lows)), columns(terms, len(lows))
    is_certain, opset = of_inputs != NO_TERM, opset_number(step.node)
    wraps = None not in {need.wraps_since, opset} and (opset or 0) >= (need.wraps_since or 0)
    least = lows - (highs + 1) if wraps else lows
    is_legal = bool((is_within(values, least, highs) | ~is_certain).all())
    if limits.are_different and is_legal and bool(is_certain.all()):
        is_legal = len(np.unique(values)) == values.size
    return Use(
        step.node.scope,
        of_inputs,
        values,
        lows,
        highs,
        np.zeros(len(values), np.int64),
        array.shape,
        is_legal,
        is_unique=limits.are_different,
        is_strict=need.is_strict,
        wraps=wraps,
    )


def _is_of(need: Need, array: Array) -> bool:
    """Tell whether a need speaks of arrays of this type."""
    if need.numbers is Numbers.ANY:
        return True
    return (kind(array) == "float") is (need.numbers is Numbers.FLOAT)


def holds_positions(array: Array) -> bool:
    """Tell whether an array holds numbers, which may be positions."""
    return kind(array) in {"signed", "unsigned", "float"}


def columns(array: Array, depth: int) -> Array:
    """Return an array as rows of `depth` whole numbers; what is no number that fits counts as -1."""
    if array.dtype.kind == "f":
        wide = array.astype(np.float64)
        array = np.where(np.abs(wide) < 2.0**62, wide, -1)
    if array.dtype == np.uint64:
        array = np.where(array < 2**63, array, np.uint64(0)).astype(np.int64) - (array >= 2**63)
    return array.astype(np.int64).reshape(-1, depth) if depth else np.zeros((0, 0), np.int64)


def is_within(values: Array, lows: Any, highs: Any) -> Array:
    """Tell which numbers lie in a range."""
    return np.asarray((values >= lows) & (values <= highs))


def repaired(use: Use, array: Array) -> Array:
    """Return legal positions instead of those that are not."""
    highest = np.maximum(use.highs, use.lows)
    values = np.where(is_within(use.values, use.least, highest), use.values, use.lows)
    is_roomy = use.is_unique and len(use.lows) == 1 and len(values) <= use.positions
    if is_roomy and len(np.unique(values)) != values.size:
        values = use.lows + np.arange(len(values)).reshape(-1, 1)
    return values.reshape(array.shape).astype(array.dtype)
