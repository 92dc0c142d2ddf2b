"""Puts numbers at the edges of types into inputs that become data or updates of scatter nodes."""

from collections.abc import Callable, Sequence

import numpy as np

from ir_scatter.core.element_types import ElementType
from ir_scatter.inputs.numbers import clip_to_type, dtype_of
from ir_scatter.inputs.trace import Inputs
from ir_scatter.ops.general_kernels.case import Array

_OFTEN = 0.5
"""How often an element is one of them."""

_FLOATS = (
    *(np.nan, np.inf, -np.inf, 0.0, -0.0),
    *(2.0**31, 2.0**31 - 1, 2.0**31 + 1, -(2.0**31), -(2.0**31) - 1),
    *(2.0**53, 2.0**53 - 1, 2.0**53 + 2, -(2.0**53), 2.0**24, 2.0**24 + 1, 2.0**63, 2.0**64),
    *(65504.0, -65504.0, 65519.0, 65520.0, 65536.0, 2.0**-14, 2.0**-24, 2.0**-25, 2.0**-14 - 2.0**-24),
    *(2.0**-126, 2.0**-149, -(2.0**-149), 2.0**-126 - 2.0**-149, 2.0**-1022, 2.0**-1074),
)
"""Limits of whole numbers, of exact whole numbers, of f16 and its subnormals, of f32 and f64."""

_WHOLE = (
    *(0, 1, -1, 2**24 + 1, -(2**24) - 1, 2**31 - 1, 2**31, 2**31 + 1, -(2**31), -(2**31) - 1),
    *(2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)),
)


def with_edges(
    random: np.random.Generator,
    types: Sequence[ElementType],
    inputs: Inputs,
    arrays: list[Array],
    is_good: Callable[[list[Array]], bool],
) -> list[Array]:
    """Return inputs with edge values where they may stand.

    That is in inputs from which data or updates of a scatter node are computed, and no positions, sizes or
    conditions; if there is none, in those that reach them through operators that are not computed.

    Args:
        random: where randomness comes from.
        types: of the inputs.
        inputs: what becomes of them.
        arrays: legal inputs.
        is_good: tells whether the model still takes other inputs.
    """
    eligible = inputs.written & ~inputs.decisive or inputs.reaching & ~inputs.decisive
    for number in range(len(arrays)):
        if eligible >> number & 1:
            tried = list(arrays)
            tried[number] = _with_edges(random, types[number], arrays[number])
            arrays = tried if is_good(tried) else arrays
    return arrays


def edge_values(element_type: ElementType) -> Array:
    """Return the numbers at the edges of a type; empty if it has none."""
    if element_type.kind not in {"float", "signed", "unsigned"}:
        return np.empty(0)
    wanted = dtype_of(element_type)
    if element_type.kind != "float":
        low, high = clip_to_type(element_type, -(2**64), 2**64)
        whole = {low, low + 1, high - 1, high, *(number for number in _WHOLE if low <= number <= high)}
        return np.array(sorted(whole), np.uint64 if high >= 2**63 else np.int64).astype(wanted)
    with np.errstate(all="ignore"):
        floats = np.array(_FLOATS, np.float64)
        if wanted.type.__module__ == "numpy":
            limits = np.finfo(wanted)
            own = [limits.max, -limits.max, limits.smallest_normal, limits.smallest_subnormal, limits.eps]
            floats = np.concatenate([floats, np.array(own, np.float64)])
        return floats.astype(wanted) if wanted == np.float64 else floats.astype(np.float32).astype(wanted)


def _with_edges(random: np.random.Generator, element_type: ElementType, array: Array) -> Array:
    edges = edge_values(element_type)
    if not len(edges):
        return array
    chosen = edges[random.integers(0, len(edges), array.shape)]
    return np.where(random.random(array.shape) < _OFTEN, chosen, array).astype(array.dtype)
