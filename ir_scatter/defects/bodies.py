"""Defects of scatter nodes in bodies of loops."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.dataflow import BodyInput, BodySource, Repeat
from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import element_count
from ir_scatter.core.words import listed
from ir_scatter.defects.base import (
    Defect,
    Meeting,
    Probe,
    Stage,
    Symptom,
    Ternary,
    has_elements,
    is_folded,
    meets,
)
from ir_scatter.defects.shared_memory import Origin, origin, readers, surroundings, taken_branch
from ir_scatter.ops.spec import Reduction, Role

_ACCUMULATING = frozenset({Reduction.SUM, Reduction.SUB, Reduction.PROD, Reduction.MEAN})
_SUM, _MAX = {"reduction": "sum"}, {"reduction": "max"}
_MORE = "the loop runs more than once"


class _Loop(NamedTuple):
    """A loop node that contains a scatter node, and how values enter and leave its body."""

    node: Node
    wires: Repeat

    def invariants(self) -> dict[Value, Value | None]:
        """Return the body inputs with the same value in each iteration, each with its value outside the loop.

        An input that the body passes unchanged to the next iteration counts as well.
        """
        body, invariants = self.wires.body, dict[Value, Value | None]()
        for input, inflow in zip(body.inputs, self.wires.inputs, strict=True):
            value, is_same = body.value(input.key), inflow.source is BodySource.WHOLE
            if inflow.source is BodySource.CARRIED and inflow.successor is not None:
                is_same = body.outputs[inflow.successor].key == input.key
            if value is not None and is_same and inflow.outer is not None:
                invariants[value] = self.node.inputs[inflow.outer].value
        captured = filter(None, map(body.value, body.captured))
        return invariants | {value: value for value in captured}

    def runs_again(self, scatter: ScatterNode) -> Ternary:
        """Return whether the loop runs for more than one iteration.

        A loop without a trip count runs once for each slice of a sliced input. Measured: the plugin drops
        inputs that the body does not read; without any other sliced input the loop runs once.
        """
        number = self.wires.trips
        if number is None:
            counts = [self._parts(scatter.facts, inflow) for inflow in self._read_parts()]
            known = [count for count in counts if count is not None]
            return Ternary(None if len(known) < len(counts) else min(known, default=1) > 1, _MORE)
        trips = None if number is None else self.node.inputs[number].value
        count = None if trips is None else scatter.facts.whole_numbers(trips)
        return Ternary(None if count is None or count.size != 1 else int(count.item()) > 1, _MORE)

    def _read_parts(self) -> Iterator[BodyInput]:
        """Yield the sliced loop inputs (one slice per iteration) that the body reads."""
        body = self.wires.body
        for input, inflow in zip(body.inputs, self.wires.inputs, strict=True):
            value = body.value(input.key)
            nodes = () if value is None else readers(body.graph).get(value, ())
            if inflow.source is BodySource.PART and not all(map(body.graph.is_dropped, nodes)):
                yield inflow

    def _parts(self, facts: Facts, inflow: BodyInput) -> int | None:
        """Return the number of slices, and so of iterations, of an input; None if unknown."""
        value = None if inflow.outer is None else self.node.inputs[inflow.outer].value
        shape, cut = None if value is None else facts.with_propagation().shape(value), inflow.slice
        if shape is None or cut is None or not -len(shape) <= cut.axis < len(shape):
            return None
        size = shape[cut.axis]
        if not isinstance(size, int) or cut.part < 1:
            return None
        first, last = (end + size if end < 0 else end for end in (cut.start, cut.end))
        return (abs(last - first) + 1) // cut.part if size else 0


def _probe(name: str, *before: str) -> Probe:
    """Return the probe of a sum in a loop, with these general operators upstream of its data."""
    sum = Probe(name, "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_SUM, iterations=3)
    return replace(sum, before=before)


@Defect(
    "DEV112",
    "invariant-updated-in-place",
    ("openvino:CPU",),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("elements", "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_SUM, iterations=3),
        Probe("tuples", "ScatterNDUpdate-15", (4, 3), [[1]], (1, 3), None, attributes=_SUM, iterations=2),
        _probe("reshaped", "Unsqueeze", "Squeeze"),
        _probe("sliced", "Slice"),
        _probe("transposed", "Transpose"),
        _probe("tiled", "Tile"),
    ),
    near=(
        Probe("once", "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_SUM, iterations=1),
        Probe("replaced", "ScatterElementsUpdate-12", (4,), [0], [10], 0, iterations=3),
        Probe("greatest", "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_MAX, iterations=3),
        _probe("computed", "Abs"),
        _probe("rolled", "Roll"),
    ),
    avoid="carry data from one iteration to the next, or compute a copy of it in the body",
    stays=True,
    taps_hide=True,
)
def invariant_updated_in_place(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin writes updates into a loop input that should be the same for each iteration.

    The second iteration reads the result of the first one: 1 + 10 gives 31 after three iterations instead of
    11. It happens if that input is not a constant, and the only other nodes of the body that read it are
    ShapeOf, a Result, and nodes upstream of indices or updates. An input that the body passes unchanged to
    the next iteration counts as well. With a reduction that does not accumulate, such as max, it shows only
    if iterations differ in indices or updates.

    Operators that do not copy their input let it happen too: Reshape, Squeeze, Unsqueeze, Identity, Convert
    to the same type (or between i16, i32 and i64, or f16, f32 and f64, which the plugin computes alike), a
    Slice of everything, Transpose in the same order, Tile by 1, Pad by 0, Broadcast to the same shape, Gather
    of every position, arithmetic with 0 or 1 that changes nothing, a concatenation of all parts of a Split or
    of all slices, a part of a Split along the first dimension, an If with a constant condition, and other
    scatter nodes. With dynamic dimensions Broadcast and Gather do copy, and so do Slice and StridedSlice
    unless they begin at 0 and have no end (9223372036854775807, or masked). Roll, Relu, Abs and any other
    computation always do.
    """
    loop = _loop_around(scatter)
    if loop is None or scatter.data is None or element_count(scatter.indices_shape) == 0:
        return None
    invariants = loop.invariants()
    memory = origin(scatter, invariants.__contains__, reads_results=False)
    outer = None if memory is None else invariants[memory.value]
    if memory is None or outer is None:
        return None
    folded = is_folded(scatter, outer)
    is_kept = Ternary(None if folded is None else not folded, "data of the loop is not folded")
    adds_up = adds_up_again(scatter, lambda value: value in invariants, "an iteration", memory)
    conditions = [is_kept, adds_up, *conditions_of(memory), loop.runs_again(scatter), has_elements(scatter)]
    reason = "data is the same for each iteration"
    if memory.through:
        reason += f", and shares its memory through {listed(memory.through)}"
    return meets(reason, conditions, Role.DATA)


def conditions_of(memory: Origin) -> list[Ternary]:
    return [Ternary(None, condition) for condition in memory.conditions]


def adds_up_again(
    scatter: ScatterNode, is_same: Callable[[Value], bool], run: str, memory: Origin
) -> Ternary:
    """Return whether a result changes if data already contains what the same node wrote in an earlier run.

    `is_same` returns whether an input is the same in each run. `run` is what a run is called in texts, such
    as "an iteration".
    """
    ports = [port for port in (scatter.indices, scatter.updates) if port is not None]
    kind = "" if scatter.data is None or scatter.data.element_type is None else scatter.data.element_type.kind
    keeps = scatter.attribute("use_init_val") is not False
    if keeps and scatter.reduction in _ACCUMULATING and kind != "boolean":
        return Ternary(scatter.reduction is not Reduction.PROD or None, "no update is 0 or 1")
    if memory.is_source:
        return Ternary(None, "indices or updates that are computed from data change")
    if not keeps or scatter.reduction is Reduction.NONE:  # writing the same positions again changes nothing
        ports = [port for port in ports if port is scatter.indices]
        words = "indices"
    else:
        words = "indices or updates"
    are_same = all(is_same(port.value) or is_folded(scatter, port.value) for port in ports)
    return Ternary(False if are_same else None, f"{run} has different {words}")


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
    avoid="cast to f32 before the loop and back in its body",
    stays=True,
    remains="an input or output of the loop itself has that type, which no form of the node changes",
)
def types_of_loops_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin refuses loops with an input or output of type u2, f4e2m1 or f8e8m0.

    It reports "object is not initialized": it has no memory of that type for the loop's ports. Values of
    these types that do not cross the loop's boundary are accepted, and so are branches.
    """
    loop = _loop_around(scatter)
    if loop is None:
        return None
    values = [*filter(None, [port.value for port in loop.node.inputs]), *loop.node.outputs]
    types = {row.name for value in values if (row := scatter.facts.element_type(value)) is not None}
    refused = tuple(sorted(types & {"u2", "f4e2m1", "f8e8m0"}))
    meeting = meets(f"the loop has an input or output of type {' and '.join(refused)}", [bool(refused)])
    return meeting and meeting._replace(probes=refused)


def _loop_around(scatter: ScatterNode) -> _Loop | None:
    """Return the loop whose body contains a node, directly or in branches that are certainly taken."""
    model, graph = scatter.facts.model, scatter.node.graph
    while graph.scope and model is not None:
        around = surroundings(model)
        node = around.holders.get(graph.scope)
        wires = None if node is None else around.wires.get(node)
        if node is None or wires is None:
            return None
        if isinstance(wires, Repeat):
            return _Loop(node, wires)
        branch = taken_branch(scatter.facts, node, wires)
        if branch is None or branch.body.graph.scope != graph.scope:
            return None
        graph = node.graph
    return None
