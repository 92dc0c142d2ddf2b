"""What an ONNX file says, by names and positions: one walk over each graph and each function.

Names are those of the file, which protobuf gives as bytes where they are not UTF-8; they serve as
keys all the same, and `text` makes them printable.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, TypeVar

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)

from ir_scatter.formats.cycles import find_cycles

_Key = TypeVar("_Key")
_Declaration = TypeVar("_Declaration")

FunctionKey = tuple[str, str, str]
"""Domain, name, overload."""

Bindings = Mapping[str, AttributeProto]
"""What a call gives for the attributes of a function, by name."""

DEFAULT_DOMAINS = frozenset({"", "ai.onnx"})
_GRAPHS = frozenset({AttributeProto.GRAPH, AttributeProto.GRAPHS})
_UNTYPED = {
    "f": AttributeProto.FLOAT, "i": AttributeProto.INT, "s": AttributeProto.STRING,
    "t": AttributeProto.TENSOR, "g": AttributeProto.GRAPH, "floats": AttributeProto.FLOATS,
    "ints": AttributeProto.INTS, "strings": AttributeProto.STRINGS, "tensors": AttributeProto.TENSORS,
    "graphs": AttributeProto.GRAPHS,
}  # fmt: skip
"""Types of attributes by the field that is set, for files that do not write the type."""


def text(name: str | bytes) -> str:
    """Return a name that can be printed: protobuf hands out bytes where it is not UTF-8."""
    return name if isinstance(name, str) else name.decode("utf-8", errors="backslashreplace")


def normal_domain(domain: str) -> str:
    """Return "" for both spellings of the default domain."""
    return "" if domain in DEFAULT_DOMAINS else domain


def kind_of(attribute: AttributeProto) -> int:
    """Return the type of an attribute; files of IR versions 1 and 2 do not write it."""
    if attribute.type:
        return attribute.type
    fields = (descriptor.name for descriptor, _ in attribute.ListFields())
    return next((_UNTYPED[name] for name in fields if name in _UNTYPED), AttributeProto.UNDEFINED)


def is_graph(attribute: AttributeProto) -> bool:
    """Tell whether an attribute holds graphs."""
    return kind_of(attribute) in _GRAPHS


def graphs_of(attribute: AttributeProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield the graphs that an attribute holds, and their names."""
    name = text(attribute.name)
    if attribute.HasField("g"):
        yield name, attribute.g
    for number, graph in enumerate(attribute.graphs):
        yield f"{name}[{number}]", graph


def bound(node: NodeProto, bindings: Bindings) -> list[tuple[str, AttributeProto]]:
    """Return a node's attributes by name; one that the call does not give is left out."""
    found = []
    for attribute in node.attribute:
        reference = attribute.ref_attr_name
        value = bindings.get(reference) if reference else attribute
        if value is not None:
            found.append((text(attribute.name), value))
    return found


def function_key(proto: NodeProto | FunctionProto) -> FunctionKey:
    """Return what a call and the function that it calls have in common."""
    name = proto.op_type if isinstance(proto, NodeProto) else proto.name
    return normal_domain(proto.domain), name, proto.overload


def opsets_of(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Return the versions by domain; both spellings of the default domain are ""."""
    return {normal_domain(entry.domain): entry.version for entry in imports}


class Links(NamedTuple):
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
    """A graph or the definition of a function.

    Attributes:
        nodes: in the order of the file.
        inputs: by name; a function's have no declaration.
        outputs: the names.
        initializers: by name.
        sparse_initializers: by name.
        stored: what value_info and outputs declare, by name.
        duplicates: names that something else in the graph has already, and the position of the
            node that repeats it (None: an input or initializer).
        producers: by name, the position of the node and the number of its output.
        by_type: positions of the nodes of the default domain, by type.
        domains: every domain that the nodes name.
        bodies: the graphs inside nodes, by position and name.
        calls: positions of the nodes that call a function of the model.
        tensors: the tensors of Constant nodes, by position.
    """

    nodes: list[NodeProto]
    inputs: dict[str, ValueInfoProto | None] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    initializers: dict[str, TensorProto] = field(default_factory=dict)
    sparse_initializers: dict[str, SparseTensorProto] = field(default_factory=dict)
    stored: dict[str, ValueInfoProto] = field(default_factory=dict)
    duplicates: list[tuple[str, int | None]] = field(default_factory=list)
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    by_type: dict[str, list[int]] = field(default_factory=dict)
    domains: set[str] = field(default_factory=set)
    bodies: dict[int, dict[str, "GraphIndex"]] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)
    tensors: dict[int, TensorProto] = field(default_factory=dict)

    @cached_property
    def links(self) -> Links:
        """How the nodes hang together."""
        seen = {"", *self.inputs, *self.initializers, *self.sparse_initializers}
        pending: list[tuple[int, str]] = []
        for position, node in enumerate(self.nodes):
            names = node.input[:]
            if not seen.issuperset(names):
                pending.extend((position, name) for name in names if name not in seen)
            for body in self.bodies.get(position, {}).values():
                pending.extend((position, name) for name in sorted(body.captured - seen, key=repr))
            seen.update(node.output[:])
        early = [use for use in pending if use[1] in self.producers]
        missing = [use for use in pending if use[1] not in self.producers]
        captured = {name for _, name in missing} | {name for name in self.outputs if name not in seen}
        return Links(early, missing, captured)

    @property
    def captured(self) -> set[str]:
        """The names that the graph, or a body in it, takes from outside."""
        return self.links.captured

    def all_graphs(self) -> Iterator["GraphIndex"]:
        """Yield the graph and every graph inside its nodes."""
        yield self
        for bodies in self.bodies.values():
            for body in bodies.values():
                yield from body.all_graphs()

    def has_any(self, types: frozenset[str]) -> bool:
        """Tell whether a node of the default domain, here or in a body, has one of the types."""
        return any(not types.isdisjoint(graph.by_type) for graph in self.all_graphs())

    def called(self) -> tuple[FunctionKey, ...]:
        """Return the functions that the nodes call, those of bodies too, one entry for each call."""
        return tuple(function_key(graph.nodes[at]) for graph in self.all_graphs() for at in graph.calls)

    def predecessors(self) -> dict[int, set[int]]:
        """Return, for each node, those whose outputs it or a body in it needs."""
        found = {}
        for position, node in enumerate(self.nodes):
            names = set(node.input)
            for body in self.bodies.get(position, {}).values():
                names |= body.captured
            found[position] = {self.producers[name][0] for name in names if name in self.producers}
        return found

    def sorted_positions(self) -> Sequence[int]:
        """Return the nodes, producers first; nodes on a cycle, and what needs them, come last."""
        every = range(len(self.nodes))
        if not self.links.early:
            return every
        order = dict.fromkeys(sources_first(self.predecessors()))
        return [*order, *(position for position in every if position not in order)]


def sources_first(predecessors: Mapping[_Key, Collection[_Key]]) -> list[_Key]:
    """Return the keys in topological order, without those on cycles and what needs these."""
    sorter, order = TopologicalSorter(predecessors), list[_Key]()
    with suppress(CycleError):
        sorter.prepare()
    while ready := sorter.get_ready():
        order += ready
        sorter.done(*ready)
    return order


def index_graph(graph: GraphProto, functions: Container[FunctionKey]) -> GraphIndex:
    """Walk a graph and the graphs inside its nodes.

    Args:
        graph: the graph.
        functions: the functions of the model, so that calls are known.
    """
    index = GraphIndex(list(graph.node), outputs=[output.name for output in graph.output])
    _declare(index, index.inputs, [(one.name, one) for one in graph.input])
    _declare(index, index.initializers, [(one.name, one) for one in graph.initializer])
    _declare(index, index.sparse_initializers, [(one.values.name, one) for one in graph.sparse_initializer])
    index.stored.update([(one.name, one) for one in graph.value_info])
    outputs = [one for one in graph.output if one.name not in index.inputs and one.HasField("type")]
    index.stored.update([(one.name, one) for one in outputs])
    _add_nodes(index, functions)
    return index


def _index_function(function: FunctionProto, functions: Container[FunctionKey]) -> GraphIndex:
    index = GraphIndex(list(function.node), outputs=list(function.output))
    _declare(index, index.inputs, [(name, None) for name in function.input])
    index.stored.update([(one.name, one) for one in function.value_info])
    _add_nodes(index, functions)
    return index


def _declare(
    index: GraphIndex,
    table: dict[str, _Declaration],
    declared: Iterable[tuple[str, _Declaration]],
) -> None:
    """Enter inputs or initializers; an initializer may have the name of an input."""
    for name, declaration in declared:
        if name in table:
            index.duplicates.append((name, None))
        else:
            table[name] = declaration


def _add_nodes(index: GraphIndex, functions: Container[FunctionKey]) -> None:
    """Look at every node; each field of all of them at once, which is twice as quick."""
    nodes = index.nodes
    domains, types = [node.domain for node in nodes], [node.op_type for node in nodes]
    index.domains.update(domains)
    for position, (domain, type) in enumerate(zip(domains, types, strict=True)):
        if domain in DEFAULT_DOMAINS:
            index.by_type.setdefault(type, []).append(position)
    if functions:
        index.calls.extend(at for at, node in enumerate(nodes) if function_key(node) in functions)
    for position, attributes in [(at, node.attribute) for at, node in enumerate(nodes) if node.attribute]:
        for attribute in attributes:
            kind = attribute.type or kind_of(attribute)
            if kind in _GRAPHS and not attribute.ref_attr_name:
                for name, graph in graphs_of(attribute):
                    bodies = index.bodies.setdefault(position, {})
                    bodies[name] = index_graph(graph, functions)
            elif (
                kind == AttributeProto.TENSOR and attribute.name == "value" and types[position] == "Constant"
            ):
                index.tensors[position] = attribute.t
    outside = index.inputs.keys() | index.initializers.keys() | index.sparse_initializers.keys()
    for position, names in enumerate([node.output[:] for node in nodes]):
        for number, name in enumerate(names):
            if name and (name in index.producers or name in outside):
                index.duplicates.append((name, position))
            elif name:
                index.producers[name] = (position, number)


@dataclass(frozen=True, eq=False)
class Definition:
    """A function as it is written.

    Attributes:
        key: what a call names.
        proto: the message.
        index: its nodes.
        opsets: its versions by domain.
        defaults: the attributes that need not be given.
        callees: the functions that its nodes call, one entry per call.
    """

    key: FunctionKey
    proto: FunctionProto
    index: GraphIndex
    opsets: Mapping[str, int]
    defaults: Bindings
    callees: tuple[FunctionKey, ...]

    @property
    def name(self) -> str:
        """Return "domain::name:overload", each part only if it is there."""
        domain, name, overload = map(text, self.key)
        return f"{domain}::{name}"[0 if domain else 2 :] + (f":{overload}" if overload else "")


class Definitions(dict[FunctionKey, Definition]):
    """All functions of a model, by key.

    Attributes:
        duplicates: names that more than one function has.
        cycles: groups of functions that call each other.
        sizes: the nodes that a call stands for, calls in calls counted; none where functions call each other.
    """

    def __init__(self, model: ModelProto) -> None:
        super().__init__()
        keys = frozenset(map(function_key, model.functions))
        self.duplicates: list[str] = []
        for function in model.functions:
            definition = _define(function, keys)
            if definition.key in self:
                self.duplicates.append(definition.name)
            else:
                self[definition.key] = definition
        callees = {key: definition.callees for key, definition in self.items()}
        self.cycles = [[self[key] for key in keys] for keys in find_cycles(callees)]
        self._group = {one.key: number for number, group in enumerate(self.cycles) for one in group}

    def is_recursive(self, caller: Definition | None, callee: Definition) -> bool:
        """Tell whether a call leads back to the function that makes it."""
        group = self._group.get(callee.key)
        return caller is not None and group is not None and group == self._group.get(caller.key)

    @cached_property
    def sizes(self) -> dict[FunctionKey, int]:
        """The nodes that a call stands for."""
        plain = {key: one.callees for key, one in self.items() if key not in self._group}
        acyclic = {key: [one for one in callees if one in plain] for key, callees in plain.items()}
        sizes: dict[FunctionKey, int] = {}
        for key in sources_first(acyclic):
            sizes[key] = count_nodes(self[key].index) + sum(sizes[one] for one in acyclic[key])
        return sizes


def count_nodes(index: GraphIndex) -> int:
    """Count the nodes of a graph, those of bodies included."""
    return sum(len(graph.nodes) for graph in index.all_graphs())


def _define(function: FunctionProto, keys: frozenset[FunctionKey]) -> Definition:
    index = _index_function(function, keys)
    defaults = {attribute.name: attribute for attribute in function.attribute_proto}
    opsets = opsets_of(function.opset_import)
    return Definition(function_key(function), function, index, opsets, defaults, index.called())
