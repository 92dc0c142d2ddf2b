"""The changes that take a model to another opset: copies of nodes that adapters change, and where they go."""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    helper,
    numpy_helper,
)

from ir_scatter.core.element_types import ElementType, from_onnx_number
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import FunctionKey, function_key, graphs_of, normal_domain, text
from ir_scatter.formats.onnx.tensors import attribute_value

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

NodeKey = tuple[str, tuple[str, ...]]
"""Operator and outputs: within a graph, no other node has the same."""

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def node_key(node: NodeProto) -> NodeKey:
    """Return what a node is found by when the graph around it has changed."""
    return node.op_type, tuple(node.output)


class CannotAdapt(Exception):
    """A node cannot mean the same in another version: the message says why. Never leaves this package."""


class AdaptedNode:
    """A copy of a node, the new nodes that it needs beside it, and what is known of its inputs.

    Attributes:
        graphs: where the node stands; for a function, one graph for each signature that it is called with.
        position: that of the node.
        target: the opset where it goes.
        is_up: whether that is a newer one.
        original: the node in the model.
        proto: the copy.
        before: new nodes that compute inputs of it.
        after: new nodes that compute from its outputs what the original gave.
        new_names: names of values and nodes that the model may have already.
        gone: outputs that nobody reads and that it has no more.
    """

    def __init__(
        self,
        graphs: tuple[OnnxGraph, ...],
        position: int,
        read_names: Callable[[], Collection[str]],
        *,
        target: int,
        is_up: bool,
    ) -> None:
        """Make a copy of the node at a position; `read_names` gives all values that are read there."""
        self.graphs, self.position, self._read_names = graphs, position, read_names
        self.target, self.is_up = target, is_up
        self.original = graphs[0].index.nodes[position]
        self.proto = NodeProto()
        self.proto.CopyFrom(self.original)
        self.before: list[NodeProto] = []
        self.after: list[NodeProto] = []
        self.new_names: list[str] = []
        self.gone: list[str] = []
        self._new_constants: dict[str, Array] = {}

    @property
    def nodes(self) -> list[NodeProto]:
        """What takes the place of the node, in order; the first one takes its position."""
        return [*self.before, self.proto, *self.after]

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from the node in the model."""
        return bool(self.before or self.after) or self.proto != self.original

    def is_read(self, name: str) -> bool:
        """Tell whether a node, a body or an output of the graph reads a value."""
        return name in self._read_names()

    def has(self, attribute: str) -> bool:
        """Tell whether an attribute is written."""
        return self._written(attribute) is not None

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return a written attribute as Python sees it, else the default.

        Raises:
            CannotAdapt: a call of the function gives it.
        """
        written, graph = self._written(name), self.graphs[0]
        if written is None:
            return default
        if written.ref_attr_name:
            raise CannotAdapt(f"its attribute {name} is given by the calls of the function")
        return attribute_value(written, graph.node(self.position), graph.shared.tensors)

    def write(self, name: str, value: Any) -> None:
        """Write an attribute, in its place if it is there."""
        written = self._written(name)
        (self.proto.attribute.add() if written is None else written).CopyFrom(_attribute(name, value))

    def erase(self, name: str) -> None:
        """Take an attribute away, if it is there."""
        written = self._written(name)
        if written is not None:
            self.proto.attribute.remove(written)

    def input(self, number: int) -> str:
        """Return the name of an input, "" if it is left out."""
        return self.proto.input[number] if number < len(self.proto.input) else ""

    def connect(self, number: int, name: str) -> None:
        """Set an input; "" leaves it out.

        Raises:
            CannotAdapt: a name cannot be written.
        """
        if any(isinstance(known, bytes) for known in (name, *self.proto.input)):
            raise CannotAdapt("its inputs have names that are not UTF-8, which cannot be written anew")
        names = [*self.proto.input]
        names += [""] * (number + 1 - len(names))
        names[number] = name
        while names and not names[-1]:
            names.pop()
        self.proto.input[:] = names

    def element_type(self, number: int) -> ElementType | None:
        """Return the element type of an input, None if it is not known or not the same in all uses."""
        found = {None if value is None else value.element_type for value in self._values(self.input(number))}
        return found.pop() if len(found) == 1 else None

    def shape(self, number: int) -> Shape:
        """Return the shape of an input; dimensions that are not the same in all uses are not known."""
        shapes = [None if value is None else value.shape for value in self._values(self.input(number))]
        known = [shape for shape in shapes if shape is not None]
        if len(known) < len(shapes) or len(set(map(len, known))) > 1:
            return None
        return tuple(dims[0] if len(set(dims)) == 1 else UNKNOWN_DIM for dims in zip(*known, strict=True))

    def constant(self, number: int) -> "Array | None":
        """Return the content of an input, None if it is not known or not the same in all uses."""
        name = self.input(number)
        if name in self._new_constants:
            return self._new_constants[name]
        constants = [None if value is None else value.constant for value in self._values(name)]
        first, *others = [None if constant is None else constant.load() for constant in constants]
        is_same = first is not None and all(
            other is not None
            and (other.dtype, other.shape) == (first.dtype, first.shape)
            and other.tobytes() == first.tobytes()
            for other in others
        )
        return first if is_same else None

    def type_text(self, name: str) -> str | None:
        """Return the type of any value as schemas write it, "tensor(float)"; None as for `element_type`."""
        found = {_type_text(graph, name) for graph in self.graphs}
        return found.pop() if len(found) == 1 else None

    def new_constant(self, label: str, array: "Array") -> str:
        """Add a Constant node before this one and return the name of its output."""
        name = self._new_name(label)
        self.before.append(_node("Constant", [], name, name, value=numpy_helper.from_array(array, name)))
        self._new_constants[name] = array
        return name

    def new_node(self, type: str, inputs: list[str], label: str, **attributes: Any) -> str:
        """Add a node before this one and return the name of its output."""
        name = self._new_name(label)
        self.before.append(_node(type, inputs, name, name, **attributes))
        return name

    def follow_with(self, type: str, others: list[str], label: str, **attributes: Any) -> None:
        """Add a node behind this one that takes over its name and its first output.

        Args:
            type: the new node's.
            others: its inputs but the first, which is what this node computes.
            label: what this node computes, for its new name.
            attributes: those of the new node.
        """
        result, own = self.proto.output[0], self._new_name(label)
        self.proto.output[0] = own
        self.after.append(_node(type, [own, *others], result, self.proto.name, **attributes))
        self.proto.name = own

    def _written(self, name: str) -> AttributeProto | None:
        return next((written for written in self.proto.attribute if written.name == name), None)

    def _new_name(self, label: str) -> str:
        first = next((name for name in self.original.output if name), self.original.op_type)
        self.new_names.append(free_name(f"{text(self.original.name or first)}/{label}", self.new_names))
        return self.new_names[-1]

    def _values(self, name: str) -> list[Value | None]:
        return [None if name in self.new_names else graph.find(name) for graph in self.graphs]


def _node(type: str, inputs: list[str], output: str, name: str, **attributes: Any) -> NodeProto:
    written = [_attribute(key, value) for key, value in attributes.items()]
    return NodeProto(op_type=type, input=inputs, output=[output], name=name, attribute=written)


def _attribute(name: str, value: Any) -> AttributeProto:
    if isinstance(value, TensorProto):  # most new nodes are constants, and the helper takes its time
        return AttributeProto(name=name, type=AttributeProto.TENSOR, t=value)
    return helper.make_attribute(name, value, attr_type=AttributeProto.INTS if value == [] else None)


def _type_text(graph: OnnxGraph, name: str) -> str | None:
    value = graph.find(name)
    if value is not None and value.element_type is not None:
        return f"tensor({value.element_type.onnx_name})"
    owner: OnnxGraph | None = graph
    while owner is not None:
        known = owner.inferred.types.get(name)
        declared = owner.index.stored.get(name) or owner.index.inputs.get(name)
        type = known or (declared.type if declared is not None else None)
        if type is not None:
            return _show_type(type)
        owner = owner.parent
    return None


def _show_type(type: TypeProto) -> str | None:
    kind = type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        element_type = from_onnx_number(getattr(type, kind).elem_type)
        word = kind.removesuffix("_type")
        return None if element_type is None else f"{word}({element_type.onnx_name})"
    if kind in ("sequence_type", "optional_type"):
        inner = _show_type(getattr(type, kind).elem_type)
        word = "seq" if kind == "sequence_type" else "optional"
        return None if inner is None else f"{word}({inner})"
    return None


@dataclass(frozen=True, slots=True, eq=False)
class GraphChanges:
    """Changes to one graph and to the bodies in it.

    Attributes:
        replacements: by node, in the order of the file.
        bodies: by node and name of the body; only those with changes.
    """

    replacements: dict[NodeKey, list[AdaptedNode]] = field(default_factory=dict)
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


def _with_free_names(adapted: AdaptedNode, taken: set[str]) -> list[NodeProto]:
    chosen = {}
    for name in adapted.new_names:
        chosen[name] = free_name(name, taken)
        taken.add(chosen[name])
    if all(old == new for old, new in chosen.items()):
        return adapted.nodes
    nodes = []
    for node in adapted.nodes:
        nodes.append(copy := NodeProto())
        copy.CopyFrom(node)
        copy.name = chosen.get(copy.name, copy.name)
        for names in (copy.input, copy.output):
            for number, name in enumerate(names):
                if name in chosen:
                    names[number] = chosen[name]
    return nodes


def free_name(base: str, taken: Collection[str]) -> str:
    """Return a name that is not taken: the base, or with a number behind it."""
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name


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
