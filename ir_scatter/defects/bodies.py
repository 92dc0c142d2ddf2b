"""Nodes in bodies of loops."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.dataflow import Call, Choice, Dataflow, Repeat, Source
from ir_scatter.core.errors import Error
from ir_scatter.core.model import Graph, Model, Node, Value
from ir_scatter.core.shapes import element_count
from ir_scatter.defects.base import Defect, Known, Meeting, Probe, Stage, Symptom, has_elements, meets
from ir_scatter.formats import dataflow_of
from ir_scatter.ops.general import WITH_BODIES
from ir_scatter.ops.spec import Reduction, Role

_ACCUMULATING = frozenset({Reduction.SUM, Reduction.SUB, Reduction.PROD, Reduction.MEAN})
_SUM, _MAX = {"reduction": "sum"}, {"reduction": "max"}
_MORE = "the loop runs more than once"


class _Loop(NamedTuple):
    """A node that computes a body again and again, and how it is wired."""

    node: Node
    wires: Repeat

    def invariants(self) -> dict[Value, Value | None]:
        """Return what every iteration is given as it is, and the value around the body that each one is."""
        body, found = self.wires.body, dict[Value, Value | None]()
        for input, inflow in zip(body.inputs, self.wires.inputs, strict=True):
            value = body.value(input.key)
            if value is not None and inflow.source is Source.WHOLE and inflow.outer is not None:
                found[value] = self.node.inputs[inflow.outer].value
        captured = filter(None, map(body.value, body.captured))
        return found | {value: value for value in captured}

    def runs_again(self, scatter: ScatterNode) -> Known:
        """Return whether there is more than one iteration."""
        number = self.wires.trips
        trips = None if number is None else self.node.inputs[number].value
        count = None if trips is None else scatter.facts.whole_numbers(trips)
        return Known(None if count is None or count.size != 1 else int(count.item()) > 1, _MORE)


@Defect(
    "DEV112",
    "invariant-updated-in-place",
    ("openvino:CPU",),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("elements", "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_SUM, iterations=3),
        Probe("tuples", "ScatterNDUpdate-15", (4, 3), [[1]], (1, 3), None, attributes=_SUM, iterations=2),
    ),
    near=(
        Probe("once", "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_SUM, iterations=1),
        Probe("replaced", "ScatterElementsUpdate-12", (4,), [0], [10], 0, iterations=3),
        Probe("greatest", "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_MAX, iterations=3),
    ),
    avoid="carry data from one iteration to the next, or compute a copy of it in the body",
    stays=True,
)
def invariant_updated_in_place(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin writes updates into an input of a loop that each iteration is to be given anew.

    The second iteration is given what the first one made: a sum of 10 into 1 is 31 after three iterations,
    and not 11. It does so where that input is no constant, and no other node of the body reads it. For a
    reduction that does not add up it shows where an iteration has other indices or updates.
    """
    loop, data = _loop_around(scatter), scatter.data
    if loop is None or data is None or scatter.attribute("use_init_val") is False:
        return None
    invariants = loop.invariants()
    outer = invariants.get(data.value)
    if outer is None or scatter.is_constant(outer) or element_count(scatter.indices_shape) == 0:
        return None
    if any(reader is not scatter.node for reader in _readers(scatter.node.graph).get(data.value, ())):
        return None
    others = [one.value for one in (scatter.indices, scatter.updates) if one is not None]
    is_same = all(one in invariants or scatter.is_constant(one) for one in others)
    is_boolean = data.element_type is not None and data.element_type.kind == "boolean"
    adds_up = Known(scatter.reduction is not Reduction.PROD or None, "no update is 0 or 1")
    if scatter.reduction not in _ACCUMULATING or is_boolean:
        adds_up = Known(False if is_same else None, "an iteration has other indices or updates")
    conditions = [adds_up, loop.runs_again(scatter), has_elements(scatter)]
    return meets("data is the same for each iteration", conditions, Role.DATA)


@Defect(
    "DEV114",
    "types-of-loops-refused",
    ("openvino:CPU",),
    Symptom.REFUSED,
    strikes=Stage.RUN,
    probes=(
        Probe("f4e2m1", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, "f4e2m1", iterations=3),
        Probe("f8e8m0", "ScatterNDUpdate-3", (4,), [[2]], (1,), None, "f8e8m0", iterations=2),
        Probe("u2", "ScatterUpdate-3", [1, 2, 3, 0], [2], [1], 0, "u2", iterations=1),
    ),
    near=(
        Probe("u4", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, "u4", iterations=3),
        Probe("f8e4m3", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, "f8e4m3", iterations=3),
    ),
    avoid="convert to f32 in front of the loop, and back in its body",
    stays=True,
)
def types_of_loops_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin compiles no loop that is given u2, f4e2m1 or f8e8m0, or that gives it out.

    "object is not initialized": it has no memory of that type for the ports. In a body alone, and in
    branches, it is taken.
    """
    loop = _loop_around(scatter)
    if loop is None:
        return None
    values = [*filter(None, [one.value for one in loop.node.inputs]), *loop.node.outputs]
    types = {known.name for one in values if (known := scatter.facts.element_type(one)) is not None}
    found = tuple(sorted(types & {"u2", "f4e2m1", "f8e8m0"}))
    meeting = meets(f"the loop is given {' and '.join(found)}, or gives it out", [bool(found)])
    return meeting and meeting._replace(probes=found)


@lru_cache(16)
def _readers(graph: Graph) -> Mapping[Value, Sequence[Node]]:
    """Return the nodes of a graph and of its bodies that read each value, for all of its nodes at once."""
    readers = defaultdict[Value, list[Node]](list)
    for node in graph.walk():
        for port in node.inputs:
            if port.value is not None:
                readers[port.value].append(node)
    return readers


def _loop_around(scatter: ScatterNode) -> _Loop | None:
    """Return the loop whose body holds a node itself."""
    graph, model = scatter.node.graph, scatter.facts.model
    return _loops(model).get(graph.scope) if graph.scope and model is not None else None


@lru_cache(1)
def _loops(model: Model) -> dict[str, _Loop]:
    """Return the loops of a model by the scope of their bodies; none of its functions."""
    found, pending = dict[str, _Loop](), list[Dataflow]()
    try:
        pending.append(dataflow_of(model))
        while pending:
            flow = pending.pop()
            for node in flow.graph.walk(WITH_BODIES):
                nested = flow.nested(node) if node.graph is flow.graph else None
                if isinstance(nested, Repeat):
                    found[nested.body.graph.scope] = _Loop(node, nested)
                calls = [*nested.branches.values()] if isinstance(nested, Choice) else [nested]
                pending += [one.body for one in calls if isinstance(one, Call | Repeat)]
    except Error:  # of a file that cannot be read as a whole
        return found
    return found
