"""Defects with 0-D indices and updates."""

from ir_scatter.analysis.constants import MAX_NODES
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.defects.base import (
    Defect,
    Meeting,
    Probe,
    Stage,
    Symptom,
    Ternary,
    has_elements,
    meets,
    rank_of,
)
from ir_scatter.ops.general import find
from ir_scatter.ops.general_views import always, same_type
from ir_scatter.ops.spec import Layout, Role


@Defect(
    "DEV101",
    "scalar-indices-refused",
    ("openvino:CPU",),
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=(
        Probe("0-d", "ScatterUpdate-3", (2, 3), 1, (3,), 0),
        Probe(
            "0-d-constant", "ScatterUpdate-3", (2, 3), 1, (2,), 1, constants=frozenset({*Role} - {Role.DATA})
        ),
        Probe("0-d-dynamic", "ScatterUpdate-3", (4,), 2, 9, 0, "i32", shapes="dynamic"),
        Probe("0-d-empty", "ScatterUpdate-3", (2, 0), 1, (0,), 0),
    ),
    near=(
        Probe("1-d", "ScatterUpdate-3", (2, 3), [1], (1, 3), 0),
        Probe("no-data", "ScatterUpdate-3", (2, 0), 1, (0,), 0, constants=frozenset({Role.DATA, Role.AXIS})),
    ),
    avoid="reshape indices to one dimension, and insert a dimension of 1 into updates in its place",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.VALUES, Fact.TYPES, Fact.PRODUCERS}),
)
def scalar_indices_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin refuses 0-D indices.

    The specification of ScatterUpdate allows indices of any rank. When the model is compiled, the plugin
    reports that it does "not support scalar input". If data is empty and no input of the model, data and node
    are folded before.
    """
    if scatter.spec.layout is not Layout.SLICES:
        return None
    conditions = [rank_of(scatter.indices_shape, 0, "indices"), _is_compiled(scatter)]
    return meets("indices have no dimensions", conditions, Role.INDICES)


def _is_compiled(scatter: ScatterNode) -> Ternary:
    """Return whether the plugin compiles a node; with empty data, only if data is an input of the model.

    Measured: Abs, Add, Sin, Roll, Reshape, Squeeze, Transpose, Convert, Slice and Concat of inputs or of
    constants are folded if their output has no elements. A Convert to the same type or a Reshape to the same
    shape is removed instead, so that its output still counts as an input.
    """
    unknown = Ternary(None, "data is not folded")
    if scatter.data is None or has_elements(scatter).truth:
        return Ternary(True)
    value, facts = scatter.data.value, scatter.facts
    for _ in range(MAX_NODES):
        node = value.producer
        if value.constant is not None or value.is_input or node is None:
            break
        op = find(node.domain, node.type)
        source = node.inputs[0].value if node.inputs else None
        if op is None or op.state or node.bodies or source is None:
            return unknown
        is_same = facts.element_type(source) == facts.element_type(value)
        if op.view is None or not is_same or facts.shape(source) != facts.shape(value):
            return Ternary(False)
        if op.view not in {always, same_type}:
            return unknown
        value = source
    if value.constant is not None:
        return Ternary(False)
    is_fed = value.is_input or value.producer is None
    return Ternary(True) if is_fed and not scatter.node.graph.scope else unknown


@Defect(
    "DEV102",
    "one-element-for-scalar-updates-refused",
    ("openvino:CPU",),
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=(
        Probe("1-element", "ScatterNDUpdate-3", (4,), [3], [9], None),
        Probe("1-by-1", "ScatterNDUpdate-15", (2, 3), [1, 2], [[9]], None),
    ),
    near=(Probe("0-d", "ScatterNDUpdate-3", (4,), [3], 9, None),),
    avoid="reshape updates to 0-D",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES}),
)
def one_element_for_scalar_updates_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin refuses one-element updates such as [1] if the shape formula gives 0-D updates.

    This concerns a single index tuple with a coordinate for every dimension. OpenVINO's own shape inference
    accepts updates of shape [1] for it. The plugin compares ranks, and reports that they "do not have matched
    tensor rank relationship".
    """
    if not scatter.spec.scalar_updates or scatter.spec.layout is not Layout.TUPLES:
        return None
    data, updates = scatter.data_shape, scatter.updates.shape if scatter.updates else None
    depth = None if data is None or scatter.depth is None else scatter.depth == len(data)
    more = Ternary(None if updates is None else len(updates) > 0, "updates have dimensions")
    conditions = [
        rank_of(scatter.indices_shape, 1, "indices"),
        Ternary(depth, "an index tuple has all coordinates"),
        more,
    ]
    return meets("updates have dimensions where the formula gives none", conditions, Role.UPDATES)
