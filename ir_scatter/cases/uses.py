"""Turns what a node asks of positions into uses, and illegal positions into legal ones."""

from typing import Any

import numpy as np

from ir_scatter.cases.movement import Positions
from ir_scatter.cases.terms import NO_TERM, Use
from ir_scatter.graphs.plan import Step
from ir_scatter.ops.plain.case import Array, kind


def range_use(step: Step, place: Positions, array: Array, terms: Array) -> tuple[int, Use]:
    """Return the use of an input that holds positions, and the number of the input.

    Positions that no input has a part in are left to the node itself.
    """
    lows, highs = np.array(place.lows), np.array(place.highs)
    values = columns(array, len(lows))
    of_inputs = columns(terms, len(lows))
    is_legal = bool((is_within(values, lows, highs) | (of_inputs == NO_TERM)).all())
    lanes = np.zeros(len(values), np.int64)
    use = Use(step.node.scope, of_inputs, values, lows, highs, lanes, array.shape, is_legal)
    return place.port, use


def holds_positions(array: Array) -> bool:
    """Tell whether an array holds numbers, which may be positions."""
    return kind(array) in {"signed", "unsigned", "float"}


def columns(array: Array, depth: int) -> Array:
    """Return an array as rows of `depth` whole numbers; what is no number that fits counts as -1."""
    if array.dtype.kind == "f":
        array = np.where(np.abs(array) < 2.0**62, array, -1)
    if array.dtype == np.uint64:
        array = np.where(array < 2**63, array, np.uint64(0)).astype(np.int64) - (array >= 2**63)
    return array.astype(np.int64).reshape(-1, depth) if depth else np.zeros((0, 0), np.int64)


def is_within(values: Array, lows: Any, highs: Any) -> Array:
    """Tell which numbers lie in a range."""
    return np.asarray((values >= lows) & (values <= highs))


def repaired(use: Use, array: Array) -> Array:
    """Return legal positions instead of those that are not."""
    highest = np.maximum(use.highs, use.lows)
    values = np.where(is_within(use.values, use.lows, highest), use.values, use.lows)
    return values.reshape(array.shape).astype(array.dtype)
