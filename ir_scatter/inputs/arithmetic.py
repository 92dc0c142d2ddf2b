"""What becomes of terms where numbers are computed: near the values of this run, a line."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ir_scatter.inputs.terms import NO_TERM, Terms
from ir_scatter.ops.general_kernels.base import Array

_SUMS = frozenset({"add"})
_DIFFERENCES = frozenset({"sub", "subtract"})
_PRODUCTS = frozenset({"mul", "multiply"})
_NEGATIONS = frozenset({"neg", "negative"})
_REMAINDERS = frozenset({"mod", "floormod"})
_CHOICES = frozenset({"abs", "relu", "min", "minimum", "max", "maximum", "div", "divide"})
"""Operators that often give one of their inputs as it is."""

_LINEAR = _SUMS | _DIFFERENCES
_KNOWN = _SUMS | _DIFFERENCES | _PRODUCTS | _NEGATIONS | _REMAINDERS | _CHOICES

_Operand: TypeAlias = tuple[Array | None, Array | None]
"""Numbers and terms of an input."""


def combine(terms: Terms, type: str, operands: Sequence[_Operand], outputs: Sequence[Array]) -> Array | None:
    """Return the terms of an output that is computed element by element; None if there are none.

    Of several inputs that have a part in a number, the one counts whose step is the smallest; the
    others are taken as they are in this run.
    """
    kind = type.lower()
    if kind not in _KNOWN or len(outputs) != 1 or outputs[0].dtype.kind not in "iu":
        return None
    output = outputs[0]
    elements = np.full(output.shape, -1, np.int64)
    slopes = np.zeros(output.shape, np.int64)
    for number, (array, of_input) in enumerate(operands):
        if array is None or of_input is None or not _fits(array.shape, output.shape):
            continue
        found, steps, _ = terms.look_up(np.broadcast_to(of_input, output.shape))
        numbers = np.broadcast_to(array, output.shape)
        steps = _steps(kind, number, steps, numbers, output, operands)
        is_same = (found >= 0) & (found == elements) if kind in _LINEAR else np.zeros(output.shape, bool)
        is_better = (found >= 0) & (steps != 0) & ((elements < 0) | (abs(steps) < abs(slopes)))
        elements = np.where(is_better & ~is_same, found, elements)
        slopes = np.where(is_same, slopes + steps, np.where(is_better, steps, slopes))
    elements = np.where(slopes == 0, -1, elements)
    if not (elements >= 0).any():
        return None
    known = terms.values[np.maximum(elements, 0)]
    return terms.add(elements, slopes, output.astype(np.int64) - slopes * known)


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Tell whether an input is broadcast to the output, and not one too many."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(dim in {1, other} for dim, other in pairs)


def _steps(
    kind: str,
    number: int,
    steps: Array,
    numbers: Array,
    output: Array,
    operands: Sequence[_Operand],
) -> Array:
    """Return how much the output grows with the element that an input is made of."""
    if kind in _SUMS or (kind in _REMAINDERS and number == 0):
        return steps
    if kind in _DIFFERENCES:
        return steps if number == 0 else -steps
    if kind in _NEGATIONS:
        return -steps
    if kind in _PRODUCTS:
        other = operands[1 - number][0]
        return np.zeros_like(steps) if other is None else steps * np.broadcast_to(other, output.shape)
    return np.where(numbers == output, steps, NO_TERM)
