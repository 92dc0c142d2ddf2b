"""One scatter node without a model around it, rewritten, run, and held against the loop of the tests."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.cases.case import Case
from ir_scatter.convert.proof import run_fragment
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.model import ONNX, OPENVINO, Input, Model, Value
from ir_scatter.core.shapes import Shape, is_static
from ir_scatter.core.tensors import Constant
from ir_scatter.evaluate import evaluate_detailed
from ir_scatter.evaluate.operator import make_scatter_node
from ir_scatter.ops.spec import Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites.base import Promises, Rewrite
from tests.ops import naive_scatter

Array = Any

I64 = ELEMENT_TYPES["i64"]


def engine_for(
    domain: str = OPENVINO, assume: Collection[Condition] = (), *, keeps_negative: bool = False
) -> Rewriter:
    form = "onnx" if domain == ONNX else "openvino-ir"
    model = Model("", form, domain, Fragment([], []))
    return Rewriter(model, Promises(frozenset(assume), keeps_negative))


def constant(name: str, type: ElementType, array: Array) -> Value:
    content = Constant(Location(""), type, array.shape, lambda: array, name)
    return Value(name, type, array.shape, constant=content)


def site_for(
    engine: Rewriter,
    spec: OpSpec,
    shapes: Mapping[Role, Shape],
    *,
    attributes: Mapping[str, Any] | None = None,
    axis: "int | Shape" = 0,
    element_type: str | None = "i32",
    index_type: str | None = "i64",
    constants: Mapping[Role, Array] | None = None,
    inputs: Mapping[Role, Input] | None = None,
) -> ScatterNode:
    """Make a node.

    Args:
        engine: whose facts it uses.
        spec: its row.
        shapes: what is known of the inputs; a role that is missing is left out.
        attributes: as Python values, without the axis.
        axis: its number; or, where it is an input that is not constant, the shape of that.
        element_type: of data and updates, None if it is not known.
        index_type: of indices.
        constants: inputs whose numbers the file holds.
        inputs: inputs that come from somewhere.
    """
    types = {Role.DATA: element_type, Role.INDICES: index_type, Role.UPDATES: element_type}
    given: list[Value | None] = []
    for port in spec.ports:
        type = ELEMENT_TYPES.get(types.get(port.role) or "")
        if inputs and port.role in inputs:
            given.append(inputs[port.role].value)
        elif port.role is Role.AXIS:
            if isinstance(axis, int):
                given.append(constant("axis", I64, np.array(axis)))
            else:
                given.append(Value("axis", I64, axis))
        elif constants and port.role in constants:
            assert type is not None
            given.append(constant(port.name, type, constants[port.role]))
        elif port.role in shapes:
            given.append(Value(port.name, type, shapes[port.role]))
        else:
            given.append(None)
    written = dict(attributes or {})
    if spec.axis is not None and spec.axis.attribute is not None:
        written[spec.axis.attribute] = axis
    if spec.key.domain == OPENVINO:
        written = {
            name: str(value).lower() if isinstance(value, bool) else value for name, value in written.items()
        }
    site = engine.scatter(make_scatter_node(spec, given, written).node)
    assert site is not None
    return site


def opset_of(target: OpSpec) -> int | None:
    """Return the newest opset of a row of ONNX, None for one of an IR."""
    newest = target.opsets[-1]
    return newest if isinstance(newest, int) else None


def run(outcome: Rewritten, spec: OpSpec, arrays: Mapping[Role, Array | None]) -> Array:
    """Compute the new form on inputs by role."""
    return run_fragment(outcome.fragment, [arrays.get(port.role) for port in spec.ports])


def can_run(rewrite: Rewrite, case: Case, site: ScatterNode) -> bool:
    """Tell what plain operators can say of sizes that are only known when the model runs."""
    sizes = (*case.data.shape, *(case.indices.shape if case.indices is not None else ()))
    opset, port, layout = opset_of(rewrite.target), rewrite.target.port(Role.DATA), case.spec.layout
    if port is None or case.element_type.name not in port.element_types:
        return False
    if case.attributes.get("mode") == "circular" and case.data.shape[case.axis_from_front] == 0:
        return False  # a remainder of nothing
    if 0 not in sizes:
        return True
    if layout is Layout.ELEMENTS and rewrite.target.layout is Layout.SLICES:
        arrays = {Role.DATA: case.data, Role.INDICES: case.indices}
        return indices_equal(arrays, case.axis_from_front)
    if is_static(site.data_shape) and (site.indices is None or is_static(site.indices_shape)):
        return True
    is_lost = case.reduction not in {Reduction.NONE, *rewrite.target.reductions.values()}
    if layout is Layout.TUPLES and sizes[-1] == 0 and is_lost:
        return False  # slices named by no coordinates cannot be taken
    return opset is None or opset >= 14  # before, a reshape to 0 copies a dimension


def demand_equal(found: Array, case: Case) -> None:
    """Demand what the loop gives, or one of the candidates, within what rounding in another order makes."""
    told = dict(case.attributes)
    if case.axis is not None:
        told["axis"] = case.axis
    operator, operands = case.spec.key.type, (case.data, case.indices, case.updates)
    expected = naive_scatter.scatter(operator, *operands, **told)
    assert found.dtype == expected.dtype == dtype(case.element_type)
    assert found.shape == expected.shape
    with np.errstate(all="ignore"):
        wrong = np.asarray(found != expected) & ~np.asarray((found != found) & (expected != expected))
        if not wrong.any():
            return
        if case.reduction is Reduction.NONE:
            mode = case.attributes.get("mode", "linear")
            for place, update in naive_scatter.hits(operator, *operands, case.axis or 0, mode):
                wrong[place] &= bool(found[place] != update)
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        bound = evaluate_detailed(case.operator, **case.arguments()).rounding_bound
        if bound.any():
            wrong &= ~(np.abs(found.astype(wide) - expected.astype(wide)) <= 2 * bound)
    assert not wrong.any(), (case, found, expected)


def true_conditions(case: Case, arrays: Mapping[Role, Array | None]) -> set[Condition]:
    """Return the conditions that hold in a case, so that they may be promised of its node."""
    found = {Condition.UNIQUE} if targets_differ(case.spec, arrays, case.axis) else set()
    if case.indices is not None and (not case.indices.size or int(case.indices.astype(np.int64).min()) >= 0):
        found.add(Condition.NON_NEGATIVE)
    if case.spec.layout is Layout.ELEMENTS and indices_equal(arrays, case.axis or 0):
        found |= {Condition.EQUAL, Condition.FULL}
    return found


def targets_differ(spec: OpSpec, arrays: Mapping[Role, Array | None], axis: int | None) -> bool:
    """Tell whether no two updates meet in one element, or no two tuples or indices in one slice."""
    data: Array = arrays[Role.DATA]
    indices = arrays.get(Role.INDICES)
    if indices is None or spec.layout is Layout.SEQUENCE:
        return True
    if spec.layout is Layout.TUPLES:
        sizes = np.array(data.shape[: indices.shape[-1]])
        rows: Array = indices.reshape(int(np.prod(indices.shape[:-1])), indices.shape[-1])
        return len({tuple(row % sizes) for row in rows}) == len(rows)
    assert axis is not None
    counted = indices % data.shape[axis] if indices.size else indices
    if spec.layout is Layout.SLICES:
        return bool(len(set(counted.reshape(-1).tolist())) == counted.size)
    steps: Array = np.diff(np.sort(counted, axis), axis=axis)
    return bool(np.all(steps != 0))


def indices_equal(arrays: Mapping[Role, Array | None], axis: int) -> bool:
    """Tell whether indices are equal along every axis but one, and reach all of data there."""
    data: Array = arrays[Role.DATA]
    indices: Array = arrays[Role.INDICES]
    others = [place for place in range(indices.ndim) if place != axis % indices.ndim]
    if any(indices.shape[place] != data.shape[place] or indices.shape[place] == 0 for place in others):
        return False
    first = indices[tuple(slice(None) if place not in others else slice(1) for place in range(indices.ndim))]
    return bool(np.all(indices == first))
