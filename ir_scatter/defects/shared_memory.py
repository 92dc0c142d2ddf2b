"""Values that share memory in OpenVINO's CPU plugin: an update in place changes all of them.

Measured on 2026.4.1, these outputs share memory with an input: views that are removed or do not copy
(`GeneralOp.view`), parts of a split along the outermost dimension, a concatenation of all parts of a value,
branches of an If with a constant condition, and scatter nodes, which write into their data. A value is not
updated in place if another node reads it, unless that node is upstream of the node that writes: then it reads
before the write.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.dataflow import Call, Choice, Dataflow, Repeat
from ir_scatter.core.errors import Error
from ir_scatter.core.model import OPENVINO, Graph, Model, Node, Value
from ir_scatter.formats import dataflow_of
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import WITH_BODIES, GeneralOp, find
from ir_scatter.ops.general_views import ViewCase
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.ops.lookup import opset_number
from ir_scatter.ops.spec import Role

MOST_VIEWS = 1000
"""Maximum values followed upstream from a scatter node to the memory that it writes into."""

_MOST_POSITIONS = 1 << 20
"""Maximum elements of a value for which it is computed whether slices cover it."""

_COMPUTED_AS = {
    **dict.fromkeys(("i16", "u16", "i32", "u32", "i64", "u64"), "i32"),
    **dict.fromkeys(("f16", "bf16", "f32", "f64"), "f32"),
}
"""The type in which the plugin computes an element type; it removes conversions between types with equal
entries."""

_RESULT = "result"


class Surroundings(NamedTuple):
    """The node around each body, by the body's scope, and how values flow into its bodies."""

    holders: Mapping[str, Node]
    wires: Mapping[Node, Choice | Repeat]


class Origin(NamedTuple):
    """The value whose memory a scatter node overwrites.

    Attributes:
        value: the owner of the memory.
        through: types of the nodes between that value and the scatter node.
        conditions: unknown conditions that must hold, as clauses.
        is_source: whether indices or updates are computed from it too.
    """

    value: Value
    through: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    is_source: bool = False


class _Step(NamedTuple):
    """One step upstream: the input whose memory a value shares, and the nodes between them."""

    source: Value
    nodes: frozenset[Node]
    condition: str = ""
    graph: Graph | None = None
    """The graph of the source, if it is not the graph of the value."""
    parts: tuple[Value, ...] = ()
    """Values between source and value that no other node may read, such as the parts of a split."""


@lru_cache(1)
def surroundings(model: Model) -> Surroundings:
    """Return the loops and branches of a model, except in its functions."""
    holders, wires, pending = dict[str, Node](), dict[Node, Choice | Repeat](), list[Dataflow]()
    try:
        pending.append(dataflow_of(model))
        while pending:
            flow = pending.pop()
            for node in flow.graph.walk(WITH_BODIES):
                nested = flow.nested(node) if node.graph is flow.graph else None
                if isinstance(nested, Choice | Repeat):
                    wires[node] = nested
                calls = [*nested.branches.values()] if isinstance(nested, Choice) else [nested]
                bodies = [call.body for call in calls if isinstance(call, Call | Repeat)]
                holders.update((body.graph.scope, node) for body in bodies)
                pending += bodies
    except Error:  # the file cannot be read as a whole
        pass
    return Surroundings(holders, wires)


def taken_branch(facts: Facts, node: Node, choice: Choice) -> Call | None:
    """Return the branch that an If with a constant condition takes; None for any other If.

    Runtimes replace such an If by that branch.
    """
    port = node.inputs[choice.condition] if choice.condition < len(node.inputs) else None
    condition = None if port is None else port.value
    array = None if condition is None else facts.array(condition)
    return choice.branches[bool(array.item())] if array is not None and array.size == 1 else None


def origin(scatter: ScatterNode, is_end: Callable[[Value], bool], *, reads_results: bool) -> Origin | None:
    """Return the value whose memory a scatter node updates in place, if the upstream search reaches an end.

    Args:
        scatter: the node that writes.
        is_end: returns whether the search ends at a value.
        reads_results: whether a Result of the end counts as another reader of it.
    """
    if scatter.data is None:
        return None
    value, graph = scatter.data.value, scatter.node.graph
    nodes, through, conditions = frozenset({scatter.node}), list[str](), list[str]()
    is_source = False
    for _ in range(MOST_VIEWS):
        at_end = is_end(value)
        ignores = at_end and not reads_results
        readers_of_value = _others(value, graph, nodes, ignores_results=ignores)
        if is_output(value, graph) and not ignores:
            return None
        if not all(_is_read_before(reader, graph, nodes | {scatter.node}) for reader in readers_of_value):
            return None
        is_source = is_source or bool(readers_of_value)
        if any(
            (op := find(reader.domain, reader.type)) is not None and op.view for reader in readers_of_value
        ):
            conditions.append("all nodes that read it are computed before")
        if at_end:
            types = tuple(dict.fromkeys(reversed(through)))
            return Origin(value, types, tuple(dict.fromkeys(conditions)), is_source)
        step = step_back(scatter.facts, value, graph)
        if step is None or any(_others(part, graph, step.nodes) for part in step.parts):
            return None
        through += sorted(node.type for node in step.nodes if node.type not in WITH_BODIES)
        conditions += filter(None, [step.condition])
        value, nodes, graph = step.source, step.nodes, step.graph or graph
    return None


def step_back(facts: Facts, value: Value, graph: Graph, *, writes: bool = True) -> _Step | None:
    """Return the upstream value whose memory a value shares; with `writes`, also through scatter nodes."""
    node = value.producer
    if value.constant is not None:
        return None
    if node is None:
        return _out_of_branch(facts, value, graph)
    lookup = find_scatter(node.domain, node.type, node.opset)
    if lookup is not None:
        port = lookup.spec.port_index(Role.DATA) if writes and lookup.spec else None
        return None if port is None else _read_at(node, port)
    if node.type in WITH_BODIES:
        return _into_branch(facts, value, node)
    op = find(node.domain, node.type)
    if op is None or op.view is None:
        return None
    try:
        view = op.view(_case(facts, value, node))
    except (LookupError, TypeError, ValueError):  # the node breaks the rules of its operator
        return None
    if view is not None:
        return _read_at(node, view.port, view.when)
    return _joined_again(facts, node) if op.joins else None


def _read_at(node: Node, port: int, when: str = "") -> _Step | None:
    source = node.inputs[port].value if port < len(node.inputs) else None
    return None if source is None else _Step(source, frozenset({node}), when)


def _case(facts: Facts, value: Value, node: Node) -> ViewCase:
    following = facts.with_propagation()

    def type_of(value: Value | None) -> str:
        element_type = None if value is None else following.element_type(value)
        return "" if element_type is None else _COMPUTED_AS.get(element_type.name, element_type.name)

    inputs = [port.value for port in node.inputs]
    while inputs and inputs[-1] is None:
        inputs.pop()
    return ViewCase(
        [None if source_value is None else following.shape(source_value) for source_value in inputs],
        [*map(type_of, inputs)],
        following.shape(value),
        type_of(value),
        lambda port: None if (source := inputs[port]) is None else facts.array(source),
        node.attributes,
        value.output,
        node.domain != OPENVINO,
    )


def _out_of_branch(facts: Facts, value: Value, graph: Graph) -> _Step | None:
    """Step from an input of a branch that is certainly taken to the value outside the If."""
    around = None if facts.model is None else surroundings(facts.model)
    holder = None if around is None else around.holders.get(graph.scope)
    choice = None if around is None or holder is None else around.wires.get(holder)
    if holder is None or not isinstance(choice, Choice):
        return None
    branch = taken_branch(facts, holder, choice)
    if branch is None or branch.body.graph.scope != graph.scope:
        return None
    for input, outer in zip(branch.body.inputs, branch.inputs, strict=True):
        source = None if outer is None else holder.inputs[outer].value
        if branch.body.value(input.key) is value and source is not None:
            return _Step(source, frozenset({holder}), graph=holder.graph)
    return None


def _into_branch(facts: Facts, value: Value, node: Node) -> _Step | None:
    """Step from an output of an If with a constant condition to the output of the branch that is taken."""
    choice = None if facts.model is None else surroundings(facts.model).wires.get(node)
    branch = taken_branch(facts, node, choice) if isinstance(choice, Choice) else None
    if branch is None or value.output >= len(branch.outputs):
        return None
    body = branch.body
    source = body.value(body.outputs[branch.outputs[value.output]].key)
    if source is None:
        return None
    results = (node_in_body for node_in_body in body.graph.walk() if node_in_body.type.lower() == _RESULT)
    ends = [
        node_in_body for node_in_body in results if any(port.value is source for port in node_in_body.inputs)
    ]
    return _Step(source, frozenset({node, *ends}), graph=body.graph)


def _joined_again(facts: Facts, node: Node) -> _Step | None:
    """Step from a node that concatenates all parts of a value, in order, to that value; else None."""
    parts = [port.value for port in node.inputs]
    makers = [None if part is None else part.producer for part in parts]
    ops = [None if maker is None else find(maker.domain, maker.type) for maker in makers]
    if not ops or any(op is None or not op.is_part for op in ops):
        return None
    present = [part for part in parts if part is not None]
    cutters = [maker for maker in makers if maker is not None]
    sources = {maker.inputs[0].value if maker.inputs else None for maker in cutters}
    source = sources.pop()
    if sources or source is None or source.constant is not None:
        return None
    nodes, passed = frozenset(cutters), tuple(present)
    is_split = len(nodes) == 1 and len(cutters[0].outputs) > 1
    if is_split:
        is_whole = [part.output for part in present] == [*range(len(cutters[0].outputs))]
        is_same = _axis(facts, node, source) == _axis(facts, cutters[0], source)
        return _Step(source, nodes | {node}, parts=passed) if is_whole and is_same else None
    if len(nodes) != len(cutters):
        return None
    condition = _slices_condition(facts, node, cutters, source)
    return None if condition is None else _Step(source, nodes | {node}, condition, parts=passed)


def _axis(facts: Facts, node: Node, source: Value) -> int | None:
    """Return the axis of a Concat or Split, counted from the front; None if unknown."""
    shape = facts.with_propagation().shape(source)
    try:
        written = Attributes(node.attributes).integer("axis") if "axis" in node.attributes else None
    except (ValueError, TypeError):  # the file is broken
        return None
    if written is None and node.domain == OPENVINO and len(node.inputs) > 1:
        value = node.inputs[1].value
        numbers = None if value is None else facts.whole_numbers(value)
        written = None if numbers is None or numbers.size != 1 else numbers.item()
    axis = int(written or 0)
    return axis if shape is None or axis >= 0 else axis + len(shape)


def _slices_condition(facts: Facts, node: Node, cutters: list[Node], source: Value) -> str | None:
    """Return "" if slices cover the whole value in order, a condition if that is unknown, None if not."""
    import numpy as np

    from ir_scatter.ops import general_kernels

    shape, axis = facts.with_propagation().shape(source), _axis(facts, node, source)
    if shape is None or axis is None or not 0 <= axis < len(shape):
        return "the parts cover the whole value"
    if not isinstance(shape[axis], int):  # measured: the plugin keeps slices of a dynamic dimension
        return None
    sizes = [dim if isinstance(dim, int) else 2 for dim in shape]
    if np.prod(sizes, dtype=float) > _MOST_POSITIONS:
        return "the parts cover the whole value"
    positions, parts = np.arange(int(np.prod(sizes))).reshape(sizes), list[np.ndarray]()
    for cutter in cutters:
        inputs = [
            positions if number == 0 else None if port.value is None else facts.array(port.value)
            for number, port in enumerate(cutter.inputs)
        ]
        missing = any(
            array is None and port.is_present for array, port in zip(inputs, cutter.inputs, strict=True)
        )
        op: GeneralOp | None = find(cutter.domain, cutter.type)
        if op is None or missing:
            return None
        try:
            (part,) = general_kernels.compute(
                op,
                cutter.domain,
                inputs,
                cutter.attributes,
                opset=opset_number(cutter),
                output_count=1,
                element_limit=_MOST_POSITIONS,
            )
        except general_kernels.UnsupportedCase:
            return None
        parts.append(part)
    try:
        whole = np.concatenate(parts, axis)
    except ValueError:
        return None
    return "" if np.array_equal(whole, positions) else None


def _others(
    value: Value, graph: Graph, nodes: frozenset[Node], *, ignores_results: bool = False
) -> list[Node]:
    """Return the nodes that read elements of a value, except for `nodes`."""
    nodes_found = list[Node]()
    for reader in readers(graph).get(value, ()):
        op = find(reader.domain, reader.type)
        if reader in nodes or (op is not None and (op.reads_shapes_only or op.state == "written")):
            continue
        if ignores_results and reader.type.lower() == _RESULT:
            continue
        if not reader.graph.is_dropped(reader):
            nodes_found.append(reader)
    return nodes_found


def is_output(value: Value, graph: Graph) -> bool:
    """Return whether the graph's list of outputs (ONNX) has a value; an IR has Result nodes: False."""
    return bool(graph.output_names) and value.name in graph.output_names


def _is_read_before(reader: Node, graph: Graph, writers: frozenset[Node]) -> bool:
    """Return whether a node only feeds the nodes in `writers`, so that it is computed before them."""
    pending, seen = [reader], {reader}
    while pending and len(seen) <= MOST_VIEWS:
        node = pending.pop()
        consumers = [consumer for value in node.outputs for consumer in _others(value, graph, writers)]
        if node.type.lower() == _RESULT or any(is_output(value, graph) for value in node.outputs):
            return False
        pending += [consumer for consumer in dict.fromkeys(consumers) if consumer not in seen]
        seen.update(consumers)
    return not pending


@lru_cache(16)
def readers(graph: Graph) -> Mapping[Value, tuple[Node, ...]]:
    """Return, for each value, the nodes of a graph and its bodies that read it."""
    readers_by_value = dict[Value, list[Node]]()
    for node in graph.walk():
        for value in _values(node):
            readers_by_value.setdefault(value, []).append(node)
    return {value: tuple(nodes) for value, nodes in readers_by_value.items()}


def _values(node: Node) -> Iterator[Value]:
    return (port.value for port in node.inputs if port.value is not None)
