"""Puts numbers at the edges of types into inputs that become data or updates of scatter nodes."""

from collections.abc import Iterator

import numpy as np

from ir_scatter.analysis.interpreter import Step, UnknownOp
from ir_scatter.core.dataflow import Key
from ir_scatter.core.element_types import ElementType
from ir_scatter.inputs.numbers import clip_to_type, dtype_of
from ir_scatter.inputs.reach import Backward, reads_values, values_that_decide
from ir_scatter.inputs.search import Found, Search
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Role

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


def edge_feeds(search: Search, found: Found, random: np.random.Generator) -> list[Array]:
    """Return inputs with edge values where they may stand.

    That is in inputs that reach data or updates of a scatter node, and no positions, sizes or
    conditions. If NumPy computes the whole model, it must still be able to.

    Args:
        search: what found the inputs.
        found: the inputs.
        random: where randomness comes from.
    """
    arrays = list(found.arrays)
    for number in _eligible(search):
        tried = list(arrays)
        tried[number] = _with_edges(random, search.types[number], arrays[number])
        run = search.trace(tried)
        if not run.bad and len(run.stuck) <= found.stuck:
            arrays = tried
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


def _eligible(search: Search) -> list[int]:
    """Return the numbers of the inputs that may have such values.

    If none gets there without operators that NumPy does not compute, those that get there with them.
    """
    plan, plans = search.model.plan, search.model.plans
    decisive = values_that_decide(plan, plans)
    if not search.is_strict:  # nothing else would tell that a number has no whole one
        decisive = decisive | Backward(plans, _made_whole, reads_values).values(plan)
    for through_unknown in (False, True):
        reached = _written(search, through_unknown=through_unknown) - decisive
        found = [number for number, input in enumerate(search.inputs) if input.key in reached]
        if found:
            return found
    return []


def _written(search: Search, *, through_unknown: bool) -> set[Key]:
    """Return the values of the main graph from which data or updates of scatter nodes are made."""

    def passes(step: Step) -> bool:
        if isinstance(step.work, Lookup) or _is_lossy(step):
            return False
        if isinstance(step.work, GeneralOp):
            return not step.work.reads_shapes_only
        return through_unknown or not isinstance(step.work, UnknownOp)

    model = search.model
    return Backward(model.plans, _sources, passes).values(model.plan)


def _sources(step: Step) -> Iterator[Key]:
    """Yield data and updates of a scatter node."""
    if not isinstance(step.work, Lookup) or step.work.spec is None:
        return
    for port, key in zip(step.work.spec.ports, step.inputs, strict=False):
        if key is not None and port.role in {Role.DATA, Role.UPDATES}:
            yield key


def _made_whole(step: Step) -> Iterator[Key]:
    """Yield the input of a node that makes whole numbers of others."""
    if _is_lossy(step):
        yield from (key for key in step.inputs[:1] if key is not None)


def _is_lossy(step: Step) -> bool:
    """Tell whether a node makes whole numbers of others, which is not defined for all of them."""
    if not isinstance(step.work, GeneralOp) or not step.work.copies:
        return False
    if not step.node.inputs or not step.node.outputs:
        return False
    value = step.node.inputs[0].value
    before = None if value is None else value.element_type
    after = step.node.outputs[0].element_type
    if after is None or after.kind not in {"signed", "unsigned"}:
        return False
    return before is None or before.kind != after.kind or before.bits > after.bits
