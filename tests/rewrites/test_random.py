"""Rewrites of random nodes of which any part may be known: equal, or refused for a reason that is true."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.convert.proof import prove
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.element_types import dtype
from ir_scatter.core.model import ONNX, OPENVINO
from ir_scatter.core.shapes import Bounds, Dim, Shape
from ir_scatter.evaluate import evaluate_detailed
from ir_scatter.ops.spec import Layout, Reduction, Role
from ir_scatter.rewrites import all_rewrites
from ir_scatter.rewrites.base import Rewrite
from ir_scatter.rewrites.refusals import Refusal
from tests.ops import naive_scatter
from tests.rewrites.forms import (
    Array,
    engine_for,
    indices_equal,
    opset_of,
    rewritten,
    run,
    site_for,
    targets_differ,
)
from tests.rewrites.refusal_truth import Refused, demand_true
from tests.unit.case import Case
from tests.unit.random_case import random_case

PAIRS = {
    domain: [rewrite for rewrite in all_rewrites() if rewrite.source.key.domain == domain]
    for domain in (OPENVINO, ONNX)
}


def partial(draw: st.DrawFn, shape: tuple[int, ...]) -> Shape:
    """Forget a part of a shape."""
    how = draw(st.sampled_from(["all", "some", "some", "ranks", "nothing"]))
    if how == "nothing":
        return None
    return tuple(_partial_dim(draw, size, how) for size in shape)


def _partial_dim(draw: st.DrawFn, size: int, how: str) -> Dim:
    if how == "all" or (how == "some" and draw(st.booleans())):
        return size
    if how == "ranks" or draw(st.booleans()):
        return Bounds()
    return Bounds(max(size - draw(st.integers(0, 2)), 0), size + draw(st.integers(0, 3)))


def arrays_of(case: Case, axis_shape: tuple[int, ...]) -> dict[Role, Array | None]:
    found = {Role.DATA: case.data, Role.INDICES: case.indices, Role.UPDATES: case.updates}
    if case.axis is not None and case.spec.axis is not None and case.spec.axis.attribute is None:
        found[Role.AXIS] = np.full(axis_shape, case.axis, np.int64)
    return found


def true_conditions(case: Case, arrays: Mapping[Role, Array | None]) -> set[Condition]:
    """Return the conditions that hold in a case, so that they may be promised of its node."""
    found = {Condition.UNIQUE} if targets_differ(case.spec, arrays, case.axis) else set()
    if case.indices is not None and (not case.indices.size or int(case.indices.astype(np.int64).min()) >= 0):
        found.add(Condition.NON_NEGATIVE)
    if case.spec.layout is Layout.ELEMENTS and indices_equal(arrays, case.axis or 0):
        found.add(Condition.EQUAL)
    return found


@st.composite
def trials(
    draw: st.DrawFn, domain: str
) -> tuple[Rewrite, Case, ScatterNode, Rewriter, dict[Role, Array | None]]:
    """Draw a rewrite, a case of its source, and a node that the case is one of."""
    rewrite = PAIRS[domain][draw(st.integers(0, len(PAIRS[domain]) - 1))]
    case = random_case(rewrite.source, draw(st.integers(0, 2**32)))
    assume(case.element_type.name != "f8e8m0")  # arithmetic on powers of two alone is not computed
    axis_shape = draw(st.sampled_from([(), (1,)]))
    arrays = arrays_of(case, axis_shape)
    holding = sorted(true_conditions(case, arrays))
    promised = draw(st.sets(st.sampled_from(holding))) if holding else set[Condition]()
    keeps = Condition.NON_NEGATIVE in holding and draw(st.booleans())
    engine = engine_for(case.spec.key.domain, promised, keeps_negative=keeps)
    shapes: dict[Role, Shape] = {Role.DATA: partial(draw, case.data.shape)}
    shapes[Role.UPDATES] = partial(draw, case.updates.shape)
    constants = {}
    if case.indices is not None:
        shapes[Role.INDICES] = partial(draw, case.indices.shape)
        if case.spec.layout is not Layout.SEQUENCE and draw(st.booleans()):
            constants[Role.INDICES] = case.indices
    axis: Any = 0 if case.axis is None else case.axis
    if Role.AXIS in arrays and draw(st.booleans()):
        axis = partial(draw, axis_shape)
    site = site_for(
        engine,
        case.spec,
        shapes,
        attributes=case.attributes,
        axis=axis,
        element_type=draw(st.sampled_from([case.element_type.name] * 7 + [None])),
        index_type=case.index_type.name,
        constants=constants,
    )
    return rewrite, case, site, engine, arrays


@given(trials(OPENVINO))
def test_a_node_of_an_ir_is_equal_or_refused_for_a_true_reason(trial: Any) -> None:
    _demand(*trial)


@given(trials(ONNX))
def test_a_node_of_onnx_is_equal_or_refused_for_a_true_reason(trial: Any) -> None:
    _demand(*trial)


def _demand(
    rewrite: Rewrite, case: Case, site: ScatterNode, engine: Rewriter, arrays: dict[Role, Array | None]
) -> None:
    outcome = rewritten(engine, site, rewrite)
    if isinstance(outcome, Refusal):
        demand_true(Refused(outcome, site, rewrite, engine.promises.conditions, arrays, case.axis))
        return
    if outcome is None:
        assert case.indices is not None
        assert case.indices.ndim == 1
        return
    assume(_can_run(rewrite, case, site))
    assert prove(engine, site, outcome, opset_of(rewrite.target), 2, 0) == 2
    demand_equal(outcome, case, arrays)


def _can_run(rewrite: Rewrite, case: Case, site: ScatterNode) -> bool:
    """Tell what plain operators cannot say of sizes that are only known when the model runs."""
    sizes = (*case.data.shape, *(case.indices.shape if case.indices is not None else ()))
    opset, port = opset_of(rewrite.target), rewrite.target.port(Role.DATA)
    if port is None or case.element_type.name not in port.element_types:
        return False
    if 0 not in sizes:
        return True
    if opset is not None and opset < 14:
        return False
    if case.spec.layout is Layout.SEQUENCE:
        return case.attributes.get("mode") != "circular"
    is_lost = case.reduction not in {Reduction.NONE, *rewrite.target.reductions.values()}
    if case.spec.layout is Layout.TUPLES and site.depth is None:
        return sizes[-1] != 0 or not is_lost
    is_other = case.spec.layout is Layout.ELEMENTS and rewrite.target.layout is Layout.SLICES
    return not is_other or indices_equal({Role.DATA: case.data, Role.INDICES: case.indices}, case.axis or 0)


def demand_equal(outcome: Rewritten, case: Case, arrays: Mapping[Role, Array | None]) -> None:
    """Demand what the loop gives, within what rounding in another order may make of it."""
    found = run(outcome, case.spec, arrays)
    told = dict(case.attributes)
    if case.axis is not None:
        told["axis"] = case.axis
    expected = naive_scatter.scatter(case.spec.key.type, case.data, case.indices, case.updates, **told)
    assert found.dtype == expected.dtype == dtype(case.element_type)
    assert found.shape == expected.shape
    bound = evaluate_detailed(str(case.spec.key), **case.arguments()).rounding_bound
    with np.errstate(all="ignore"):
        wrong = np.asarray(found != expected) & ~(
            np.asarray(found != found) & np.asarray(expected != expected)
        )
        if bound.any():
            wide = np.complex128 if found.dtype.kind == "c" else np.float64
            wrong &= ~(np.abs(found.astype(wide) - expected.astype(wide)) <= 2 * bound)
    assert not wrong.any(), (found, expected)
