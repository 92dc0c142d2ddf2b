"""The changes that take a ModelProto to another opset: nodes that others take the place of, imports."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from ir_scatter.core.errors import UsageError
from ir_scatter.formats.onnx.index import FunctionKey, function_key, graphs_of, normal_domain

NodeKey = tuple[str, tuple[str, ...]]
"""Operator and outputs: within a graph, no other node has the same."""

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def node_key(node: NodeProto) -> NodeKey:
    """Return what a node is found by when the graph around it has changed."""
    return node.op_type, tuple(node.output)


class Replacement(NamedTuple):
    """What takes the place of a node.

    Attributes:
        nodes: in their order; the first one takes the node's position.
        new_names: names of values and nodes among them that the model may have already.
        gone: names of outputs that nobody computes any more.
    """

    nodes: tuple[NodeProto, ...]
    new_names: tuple[str, ...]
    gone: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class GraphChanges:
    """Changes to one graph and to the bodies in it.

    Attributes:
        replacements: by node, in the order of the file.
        bodies: by node and name of the body; only those with changes.
    """

    replacements: dict[NodeKey, list[Replacement]] = field(default_factory=dict)
    bodies: dict[NodeKey, dict[str, "GraphChanges"]] = field(default_factory=dict)

    def count(self) -> int:
        """Return the number of nodes that become other nodes, in bodies too."""
        inner = (changes.count() for bodies in self.bodies.values() for changes in bodies.values())
        return sum(map(len, self.replacements.values())) + sum(inner)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A node that cannot mean the same at the new opset.

    Attributes:
        scope: the path to the node, "If_3:then_branch/Clip_1"; "" for the model itself.
        type: the operator; "" for the model itself.
        reason: why, one sentence without its full stop.
    """

    scope: str
    type: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A model's way to another opset.

    Attributes:
        opset: where it goes.
        obstacles: what stands in the way; the move may be applied only if there is nothing.
        graph: the changes to the main graph.
        functions: the changes to the functions.
    """

    opset: int
    obstacles: tuple[Obstacle, ...]
    graph: GraphChanges
    functions: dict[FunctionKey, GraphChanges]

    @property
    def changed(self) -> int:
        """Return the number of nodes that become other nodes."""
        return sum(changes.count() for changes in (self.graph, *self.functions.values()))

    def apply(self, proto: ModelProto) -> None:
        """Change the model: the opsets that it and its functions import, and the nodes concerned.

        Nodes are found by what they compute, so that others may have been replaced since the move
        was planned. New nodes must be those of the new opset. The version of the file format stays:
        neither onnx.checker nor onnxruntime nor OpenVINO ties it to the opset.

        Args:
            proto: the model that was planned for, or a copy.

        Raises:
            UsageError: something stands in the way.
        """
        if self.obstacles:
            first = self.obstacles[0]
            raise UsageError(f"the model cannot move to opset {self.opset}: {first.scope}: {first.reason}")
        if self.changed:
            taken = {name for owner in (proto.graph, *proto.functions) for name in _names(owner)}
            _apply(proto.graph, self.graph, taken)
            for function in proto.functions:
                _apply(function, self.functions[function_key(function)], taken)
        for owner in (proto, *proto.functions):
            for entry in owner.opset_import:
                if normal_domain(entry.domain) == "":
                    entry.version = self.opset


def _apply(graph: GraphProto | FunctionProto, changes: GraphChanges, taken: set[str]) -> None:
    """Replace the nodes of a graph and its bodies, and forget what is declared of values that are gone.

    Args:
        graph: the graph.
        changes: what is to be done.
        taken: every name of the model; those that are given out are added.
    """
    left = {key: deque(replacements) for key, replacements in changes.replacements.items()}
    gone: set[str] = set()
    position = 0
    while position < len(graph.node):
        node = graph.node[position]
        key = node_key(node)
        if key in changes.bodies:
            bodies = changes.bodies[key]
            for attribute in node.attribute:
                for name, body in graphs_of(attribute):
                    if name in bodies:
                        _apply(body, bodies[name], taken)
        if left.get(key):
            found = left[key].popleft()
            gone.update(found.gone)
            first, *others = _with_free_names(found, taken)
            node.CopyFrom(first)
            for other in others:
                position += 1
                graph.node.insert(position, other)
        position += 1
    for number in range(len(graph.value_info) - 1, -1, -1):
        if graph.value_info[number].name in gone:
            del graph.value_info[number]


def _with_free_names(replacement: Replacement, taken: set[str]) -> tuple[NodeProto, ...]:
    chosen = {}
    for name in replacement.new_names:
        free, number = name, 2
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        taken.add(free)
        chosen[name] = free
    if all(old == new for old, new in chosen.items()):
        return replacement.nodes
    return tuple(_renamed(node, chosen) for node in replacement.nodes)


def _renamed(node: NodeProto, chosen: Mapping[str, str]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = chosen.get(copy.name, copy.name)
    for names in (copy.input, copy.output):
        for number, name in enumerate(names):
            if name in chosen:
                names[number] = chosen[name]
    return copy


def _names(graph: GraphProto | FunctionProto) -> Iterator[str]:
    """Yield every name in a graph and its bodies: of values and of nodes."""
    if isinstance(graph, GraphProto):
        for group in (graph.input, graph.output, graph.initializer):
            yield from (entry.name for entry in group)
        yield from (sparse.values.name for sparse in graph.sparse_initializer)
    else:
        yield from graph.input
    for node in graph.node:
        yield node.name
        yield from node.output
        for attribute in node.attribute:
            if attribute.type in _GRAPHS or not attribute.type:
                for _, body in graphs_of(attribute):
                    yield from _names(body)
