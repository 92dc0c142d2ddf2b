"""Changes to a ModelProto: nodes that others take the place of, imports of opsets."""

from collections import deque
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from ir_scatter.formats.onnx_index import FunctionKey, function_key, graphs_of
from ir_scatter.formats.onnx_types import normal_domain
from ir_scatter.opsets.draft import Draft

NodeKey = tuple[str, tuple[str, ...]]
"""Operator and outputs: within a graph, no other node has the same."""


_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def node_key(node: NodeProto) -> NodeKey:
    """Return what a node is found by when the graph around it has changed."""
    return node.op_type, tuple(node.output)


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """What takes the place of a node.

    Attributes:
        before: new nodes in front of it.
        node: the node itself, changed.
        after: new nodes behind it.
        names: the new names among their values and nodes.
        gone: names of outputs that nobody computes any more.
    """

    before: tuple[NodeProto, ...]
    node: NodeProto
    after: tuple[NodeProto, ...]
    names: tuple[str, ...]
    gone: tuple[str, ...]

    @classmethod
    def of(cls, draft: Draft) -> "Replacement":
        """Return what became of a draft."""
        return cls(
            tuple(draft.before), draft.proto, tuple(draft.after), tuple(draft.names), tuple(draft.gone)
        )

    def nodes(self, taken: set[str]) -> list[NodeProto]:
        """Return the nodes in order, with new names that are not taken.

        Args:
            taken: every name of the model; those that are given out are added.
        """
        chosen = {name: _free(name, taken) for name in self.names}
        nodes = [*self.before, self.node, *self.after]
        if all(old == new for old, new in chosen.items()):
            return nodes
        return [_renamed(node, chosen) for node in nodes]


@dataclass(frozen=True, slots=True, eq=False)
class GraphPlan:
    """Changes to one graph and to the bodies in it.

    Attributes:
        replacements: by node, in the order of the file.
        bodies: by node and name of the body.
    """

    replacements: dict[NodeKey, list[Replacement]] = field(default_factory=dict)
    bodies: dict[NodeKey, dict[str, "GraphPlan"]] = field(default_factory=dict)

    def add(self, node: NodeProto, replacement: Replacement) -> None:
        """Enter what takes the place of a node."""
        self.replacements.setdefault(node_key(node), []).append(replacement)

    def add_body(self, key: NodeKey, name: str, plan: "GraphPlan") -> None:
        """Enter the changes to a body, if there are any."""
        if plan.count():
            self.bodies.setdefault(key, {})[name] = plan

    def count(self) -> int:
        """Return the number of nodes that become other nodes, in bodies too."""
        inner = (plan.count() for bodies in self.bodies.values() for plan in bodies.values())
        return sum(map(len, self.replacements.values())) + sum(inner)


def apply_graphs(proto: ModelProto, graph: GraphPlan, functions: Mapping[FunctionKey, GraphPlan]) -> None:
    """Replace the nodes of a model and of its functions."""
    if not any(plan.count() for plan in (graph, *functions.values())):
        return
    taken = set(_names(proto.graph))
    for function in proto.functions:
        taken.update(_names(function))
    _apply(proto.graph, graph, taken)
    for function in proto.functions:
        _apply(function, functions[function_key(function)], taken)


def move_imports(proto: ModelProto, opset: int) -> None:
    """Write the new opset wherever the default domain is imported."""
    for owner in (proto, *proto.functions):
        for entry in owner.opset_import:
            if normal_domain(entry.domain) == "":
                entry.version = opset


def _apply(graph: GraphProto | FunctionProto, plan: GraphPlan, taken: set[str]) -> None:
    left = {key: deque(replacements) for key, replacements in plan.replacements.items()}
    gone: set[str] = set()
    position = 0
    while position < len(graph.node):
        node = graph.node[position]
        key = node_key(node)
        _apply_bodies(node, plan.bodies.get(key, {}), taken)
        found = left[key].popleft() if left.get(key) else None
        if found is not None:
            gone.update(found.gone)
            nodes = found.nodes(taken)
            node.CopyFrom(nodes[0])
            for number, other in enumerate(nodes[1:], position + 1):
                graph.node.insert(number, other)
            position += len(nodes) - 1
        position += 1
    _forget(graph, gone)


def _apply_bodies(node: NodeProto, plans: Mapping[str, GraphPlan], taken: set[str]) -> None:
    if plans:
        for attribute in node.attribute:
            for name, body in graphs_of(attribute):
                if name in plans:
                    _apply(body, plans[name], taken)


def _forget(graph: GraphProto | FunctionProto, gone: Container[str]) -> None:
    """Take away what is declared of values that nobody computes any more."""
    for position in range(len(graph.value_info) - 1, -1, -1):
        if graph.value_info[position].name in gone:
            del graph.value_info[position]


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


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    taken.add(free)
    return free


def _renamed(node: NodeProto, chosen: Mapping[str, str]) -> NodeProto:
    """Return a copy of a node with other names for values and for itself."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = chosen.get(copy.name, copy.name)
    for names in (copy.input, copy.output):
        for number, name in enumerate(names):
            if name in chosen:
                names[number] = chosen[name]
    return copy
