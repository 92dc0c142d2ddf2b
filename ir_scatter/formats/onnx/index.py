"""One walk over a graph of an ONNX file: who produces what, which nodes hold or call graphs.

Names are those of the file, which protobuf gives as bytes where they are not UTF-8; they serve as
keys all the same, and `onnx_types.text` makes them printable.
"""

from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)

from ir_scatter.formats.onnx.attributes import WITHOUT_TENSORS, kind_of
from ir_scatter.formats.onnx.types import DEFAULT_DOMAINS, normal_domain, text

_Declaration = TypeVar("_Declaration")

FunctionKey = tuple[str, str, str]
"""Domain, name, overload."""

_TENSOR = AttributeProto.TENSOR
_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """How the nodes of a graph hang together.

    Attributes:
        early: (position, name) of uses before the node that produces the name.
        missing: (position, name) of uses of names that the graph does not have.
        captured: the names that the graph, or a body in it, takes from outside.
    """

    early: list[tuple[int, str]]
    missing: list[tuple[int, str]]
    captured: set[str]


@dataclass(frozen=True, eq=False)
class GraphIndex:
    """A graph or the definition of a function, by names and positions of nodes.

    Attributes:
        nodes: in the order of the file.
        inputs: by name; a function's have no declaration.
        outputs: the names.
        initializers: by name.
        sparse_initializers: by name.
        stored: what value_info and outputs declare, by name.
        producers: by name, the position of the node and the number of its output.
        by_type: positions of the nodes of the default domain, by type.
        foreign: positions of the nodes of other domains.
        domains: every domain that the nodes name.
        bodies: the graphs inside nodes, by position and name.
        calls: positions of the nodes that call a function of the model.
        holders: positions of nodes with an attribute that may hold tensors.
        tensors: the tensors of Constant nodes, by position.
        references: positions of nodes with an attribute that a call must fill in.
        duplicates: names that something else in the graph has already, and the position of the
            node that repeats it (None: an input or initializer).
    """

    nodes: list[NodeProto]
    inputs: dict[str, ValueInfoProto | None]
    outputs: list[str]
    initializers: dict[str, TensorProto] = field(default_factory=dict)
    sparse_initializers: dict[str, SparseTensorProto] = field(default_factory=dict)
    stored: dict[str, ValueInfoProto] = field(default_factory=dict)
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    by_type: dict[str, list[int]] = field(default_factory=dict)
    foreign: list[int] = field(default_factory=list)
    domains: set[str] = field(default_factory=set)
    bodies: dict[int, dict[str, "GraphIndex"]] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)
    holders: list[int] = field(default_factory=list)
    tensors: dict[int, TensorProto] = field(default_factory=dict)
    references: set[int] = field(default_factory=set)
    duplicates: list[tuple[str, int | None]] = field(default_factory=list)

    @cached_property
    def links(self) -> Links:
        """How the nodes hang together."""
        return _link(self)

    @property
    def captured(self) -> set[str]:
        """Return the names that the graph, or a body in it, takes from outside."""
        return self.links.captured

    def all_graphs(self) -> Iterator["GraphIndex"]:
        """Yield the graph and every graph inside its nodes."""
        yield self
        for bodies in self.bodies.values():
            for body in bodies.values():
                yield from body.all_graphs()

    def constant(self, position: int) -> TensorProto | None:
        """Return the tensor of a Constant node that says nothing else, None for any other node."""
        node = self.nodes[position]
        is_plain = node.domain in DEFAULT_DOMAINS and len(node.output) == len(node.attribute) == 1
        return self.tensors.get(position) if is_plain and not node.attribute[0].ref_attr_name else None

    def has_any(self, types: frozenset[str]) -> bool:
        """Tell whether a node of the default domain, here or in a body, has one of the types."""
        return any(not types.isdisjoint(graph.by_type) for graph in self.all_graphs())


def index_graph(graph: GraphProto, functions: Container[FunctionKey]) -> GraphIndex:
    """Walk a graph and the graphs inside its nodes.

    Args:
        graph: the graph.
        functions: the functions of the model, so that calls are known.
    """
    return _Walk(functions, in_function=False).graph(graph)


def index_function(function: FunctionProto, functions: Container[FunctionKey]) -> GraphIndex:
    """Walk the definition of a function and the graphs inside its nodes."""
    return _Walk(functions, in_function=True).function(function)


def predecessors(index: GraphIndex) -> dict[int, set[int]]:
    """Return, for each node, those whose outputs it or a body in it needs."""
    found = {}
    for position, node in enumerate(index.nodes):
        names = set(node.input)
        for body in index.bodies.get(position, {}).values():
            names |= body.captured
        found[position] = {index.producers[name][0] for name in names if name in index.producers}
    return found


def sorted_positions(index: GraphIndex) -> Sequence[int]:
    """Return the nodes, producers first; nodes on a cycle, and what needs them, come last."""
    if not index.links.early:
        return range(len(index.nodes))
    needed = predecessors(index)
    users: dict[int, list[int]] = {position: [] for position in needed}
    for position, producers in needed.items():
        for producer in producers:
            users[producer].append(position)
    ready = deque(position for position, producers in needed.items() if not producers)
    order = []
    while ready:
        producer = ready.popleft()
        order.append(producer)
        for position in users[producer]:
            needed[position].discard(producer)
            if not needed[position]:
                ready.append(position)
    return [*order, *sorted(needed.keys() - set(order))]


def function_key(proto: NodeProto | FunctionProto) -> FunctionKey:
    """Return what a call and the function that it calls have in common."""
    name = proto.op_type if isinstance(proto, NodeProto) else proto.name
    return normal_domain(proto.domain), name, proto.overload


def graphs_of(attribute: AttributeProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield the graphs that an attribute holds, and their names."""
    name = text(attribute.name)
    if attribute.HasField("g"):
        yield name, attribute.g
    for number, graph in enumerate(attribute.graphs):
        yield f"{name}[{number}]", graph


class _Walk:
    """Fills indices; only inside functions may attributes refer to those of a call."""

    def __init__(self, functions: Container[FunctionKey], *, in_function: bool) -> None:
        self.functions = functions
        self.in_function = in_function

    def graph(self, graph: GraphProto) -> GraphIndex:
        """Index a graph."""
        index = GraphIndex(list(graph.node), {}, [output.name for output in graph.output])
        for value_info in graph.input:
            _declare(index, index.inputs, value_info.name, value_info)
        _declare_all(index, index.initializers, [(tensor.name, tensor) for tensor in graph.initializer])
        for sparse in graph.sparse_initializer:
            _declare(index, index.sparse_initializers, sparse.values.name, sparse)
        index.stored.update([(value_info.name, value_info) for value_info in graph.value_info])
        for value_info in graph.output:
            if value_info.name not in index.inputs and value_info.HasField("type"):
                index.stored[value_info.name] = value_info
        self._nodes(index)
        return index

    def function(self, function: FunctionProto) -> GraphIndex:
        """Index the definition of a function."""
        index = GraphIndex(list(function.node), {}, list(function.output))
        for name in function.input:
            _declare(index, index.inputs, name, None)
        for value_info in function.value_info:
            index.stored[value_info.name] = value_info
        self._nodes(index)
        return index

    def _nodes(self, index: GraphIndex) -> None:
        """Look at every node; each field of all of them at once, which is twice as quick."""
        nodes, by_type = index.nodes, index.by_type
        index.domains.update([node.domain for node in nodes])
        types = [node.op_type for node in nodes]
        if not index.domains <= DEFAULT_DOMAINS:
            index.foreign.extend(at for at, node in enumerate(nodes) if node.domain not in DEFAULT_DOMAINS)
        foreign = set(index.foreign)
        for position, type in enumerate(types):
            if position in foreign:
                continue
            if type in by_type:
                by_type[type].append(position)
            else:
                by_type[type] = [position]
        if self.functions:
            index.calls.extend(at for at, node in enumerate(nodes) if function_key(node) in self.functions)
        for position, attributes in [(at, node.attribute) for at, node in enumerate(nodes) if node.attribute]:
            for attribute in attributes:
                if attribute.type not in WITHOUT_TENSORS:
                    self._attribute(index, position, attribute)
                if self.in_function and attribute.ref_attr_name:
                    index.references.add(position)
        _produce(index)

    def _attribute(self, index: GraphIndex, position: int, attribute: AttributeProto) -> None:
        if not index.holders or index.holders[-1] != position:
            index.holders.append(position)
        kind = attribute.type or kind_of(attribute)
        if kind in _GRAPHS:
            self._bodies(index, position, attribute)
        elif kind == _TENSOR and attribute.name == "value" and index.nodes[position].op_type == "Constant":
            index.tensors[position] = attribute.t

    def _bodies(self, index: GraphIndex, position: int, attribute: AttributeProto) -> None:
        if attribute.ref_attr_name:
            return
        for name, graph in graphs_of(attribute):
            index.bodies.setdefault(position, {})[name] = self.graph(graph)


def _declare(index: GraphIndex, table: dict[str, _Declaration], name: str, declaration: _Declaration) -> None:
    """Enter an input or initializer; an initializer may have the name of an input."""
    if name in table:
        index.duplicates.append((name, None))
    else:
        table[name] = declaration


def _declare_all(
    index: GraphIndex, table: dict[str, _Declaration], declared: list[tuple[str, _Declaration]]
) -> None:
    """Enter many declarations, at once if their names are all different."""
    if not table and len(dict(declared)) == len(declared):
        table.update(declared)
        return
    for name, declaration in declared:
        _declare(index, table, name, declaration)


def _produce(index: GraphIndex) -> None:
    """Find the producers of names."""
    producers = index.producers
    outside = index.inputs.keys() | index.initializers.keys() | index.sparse_initializers.keys()
    for position, names in enumerate([node.output[:] for node in index.nodes]):
        for number, name in enumerate(names):
            if name and (name in producers or name in outside):
                index.duplicates.append((name, position))
            elif name:
                producers[name] = (position, number)


def _link(index: GraphIndex) -> Links:
    """Find the uses of names that are produced later, or not in this graph."""
    seen = {"", *index.inputs, *index.initializers, *index.sparse_initializers}
    pending: list[tuple[int, str]] = []
    for position, node in enumerate(index.nodes):
        names = node.input[:]
        if not seen.issuperset(names):
            pending.extend((position, name) for name in names if name not in seen)
        if position in index.bodies:
            for body in index.bodies[position].values():
                pending.extend((position, name) for name in sorted(body.captured - seen, key=repr))
        seen.update(node.output[:])
    early = [use for use in pending if use[1] in index.producers]
    missing = [use for use in pending if use[1] not in index.producers]
    captured = {name for _, name in missing} | {name for name in index.outputs if name not in seen}
    return Links(early, missing, captured)
