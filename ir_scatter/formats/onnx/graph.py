"""Graphs of an ONNX model: nodes and values are made when somebody asks for them."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from onnx import SparseTensorProto, TensorProto, ValueInfoProto

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import from_onnx_number
from ir_scatter.core.model import Graph, Input, Node, Value
from ir_scatter.core.shapes import Shape, agree
from ir_scatter.core.tensors import Constant
from ir_scatter.formats.onnx.attributes import attribute_value, bound, is_graph
from ir_scatter.formats.onnx.handed_on import HandedOn
from ir_scatter.formats.onnx.index import GraphIndex
from ir_scatter.formats.onnx.scope import NOTHING, Inferred, Scope
from ir_scatter.formats.onnx.tensors import listed_constant
from ir_scatter.formats.onnx.types import (
    UNKNOWN,
    TensorType,
    best_of,
    declared,
    inferred,
    normal_domain,
    text,
)


class OnnxGraph(Graph):
    """The main graph, a body, or one use of a function.

    Attributes:
        index: what the file says.
        shared: what the graph shares with its bodies.
        parent: the graph around it, where names that it does not have are looked up.
    """

    def __init__(
        self,
        index: GraphIndex,
        shared: Scope,
        infer: Callable[[], Inferred] = lambda: NOTHING,
        *,
        name: str = "",
        scope: str = "",
        parent: "OnnxGraph | None" = None,
        arguments: Mapping[str, Value | None] | None = None,
        input_shapes: Mapping[str, Shape] | None = None,
    ) -> None:
        """Make a graph.

        Args:
            index: what the file says.
            shared: what the graph shares with its bodies.
            infer: gives the inferred types, asked once and only if a type is wanted.
            name: the graph's name.
            scope: what stands before the name of a node.
            parent: the graph around it.
            arguments: the inputs of a function as the call gives them, None for one left out.
            input_shapes: shapes that the caller of the reader gives for inputs.
        """
        self.index = index
        self.shared = shared
        self.name = name
        self.scope = scope
        self.parent = parent
        self.arguments = arguments or {}
        self.input_shapes = input_shapes or {}
        self._infer = infer
        self._nodes: dict[int, Node] = {}
        self._values: dict[str, Value | None] = {}
        self._bodies: dict[int, dict[str, Graph]] = {}

    @cached_property
    def inferred(self) -> Inferred:
        """Return what shape inference found out."""
        return self._infer()

    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        """Yield nodes in the order of the file, those of bodies right after the node around them.

        Args:
            types: only nodes of the default domain with these types; None for all.
        """
        if types is None:
            every = range(len(self.index.nodes))
            return self._walk(every, every, lambda graph: graph.walk(None))
        wanted = {at for type in types for at in self.index.by_type.get(type, ())}
        places = sorted(wanted | self.index.bodies.keys())
        return self._walk(places, wanted, lambda graph: graph.walk(types))

    def walk_calls(self) -> Iterator[Node]:
        """Yield the nodes that call a function of the model."""
        places = sorted({*self.index.calls, *self.index.bodies})
        return self._walk(places, set(self.index.calls), lambda graph: graph.walk_calls())

    def node(self, position: int) -> Node:
        """Return the node at a position; always the same object."""
        node = self._nodes.get(position)
        if node is None:
            proto = self.index.nodes[position]
            domain, type = normal_domain(proto.domain), text(proto.op_type)
            name = proto.name or next((name for name in proto.output if name), f"{type}_{position}")
            opset = self.shared.opsets.get(domain)
            node = Node(self, text(domain), type, opset, text(name), position)
            self._nodes[position] = node
        return node

    def inputs_of(self, node: Node) -> tuple[Input, ...]:
        """Return a node's input ports."""
        return tuple(map(self._input, self.index.nodes[node.handle].input))

    def outputs_of(self, node: Node) -> tuple[Value, ...]:
        """Return a node's outputs, those without a name included."""
        names = list(self.index.nodes[node.handle].output)
        constant = self._constant_of(node) if len(names) == 1 else None
        return tuple(self._output(node, at, name, constant) for at, name in enumerate(names))

    def attributes_of(self, node: Node) -> Mapping[str, Any]:
        """Return a node's attributes but its bodies; those of a call are filled in."""
        pairs = bound(self.index.nodes[node.handle], self.shared.bindings)
        tensors = self.shared.tensors
        return {
            name: attribute_value(attribute, node, tensors)
            for name, attribute in pairs
            if not is_graph(attribute)
        }

    def bodies_of(self, node: Node) -> Mapping[str, Graph]:
        """Return the graphs inside a node by the attribute's name."""
        position = node.handle
        if position not in self.index.bodies:
            return {}
        if position not in self._bodies:
            self._bodies[position] = {
                name: self._body(node, name, index) for name, index in self.index.bodies[position].items()
            }
        return self._bodies[position]

    def location_of(self, node: Node) -> Location:
        """Return the file and the path to the node."""
        return Location(self.shared.path, scope=node.scope)

    def find(self, name: str) -> Value | None:
        """Return the value of a name, from the graphs around this one if it is not here."""
        if name not in self._values:
            self._values[name] = self._make(name)
        return self._values[name]

    def _walk(
        self,
        places: Iterable[int],
        wanted: Container[int],
        inside: "Callable[[OnnxGraph], Iterator[Node]]",
    ) -> Iterator[Node]:
        bodies = self.index.bodies
        for position in places:
            if position in wanted:
                yield self.node(position)
            if position in bodies:
                for graph in self.bodies_of(self.node(position)).values():
                    assert isinstance(graph, OnnxGraph)
                    yield from inside(graph)

    def _body(self, node: Node, name: str, index: GraphIndex) -> "OnnxGraph":
        key = (node.handle, name)
        return OnnxGraph(
            index,
            self.shared,
            lambda: self.inferred.bodies.get(key, NOTHING),
            name=name,
            scope=f"{node.scope}:{name}/",
            parent=self,
        )

    def _input(self, name: str) -> Input:
        if not name:
            return Input(None, is_present=False)
        value = self.find(name)
        return Input(value, is_present=value is not None or not self._is_left_out(name))

    def _is_left_out(self, name: str) -> bool:
        """Tell whether a name is an input of a function that the call does not give."""
        if name in self.index.inputs or name in self.index.producers or self.parent is None:
            return name in self.arguments
        return self.parent._is_left_out(name)

    def _make(self, name: str) -> Value | None:
        index = self.index
        if name in self.arguments:
            return self.arguments[name]
        if name in index.initializers:
            return self._initializer(name, index.initializers[name])
        if name in index.sparse_initializers:
            return self._sparse(name, index.sparse_initializers[name])
        if name in index.inputs:
            return self._graph_input(name, index.inputs[name])
        if name in index.producers:
            position, output = index.producers[name]
            return self.node(position).outputs[output]
        return None if self.parent is None else self.parent.find(name)

    def _initializer(self, name: str, tensor: TensorProto) -> Value:
        label, location = text(name), self._place(name)
        constant = self.shared.tensors.constant(tensor, label, location)
        input = self.index.inputs.get(name)
        stored = declared(self.index.stored.get(name) or input)
        shape: Shape = constant.shape if constant is not None else None
        if input is not None and self.shared.has_defaults:
            constant = None
            claimed = self.overridden(name, declared(input)).shape
            shape = claimed if agree(claimed, shape) and claimed is not None else shape
        return Value(
            label,
            from_onnx_number(tensor.data_type),
            shape,
            constant=constant,
            location=location,
            stored_type=stored.element_type,
            stored_shape=stored.shape,
        )

    def _sparse(self, name: str, tensor: SparseTensorProto) -> Value:
        stored = declared(self.index.stored.get(name))
        element_type = from_onnx_number(tensor.values.data_type)
        dims = tuple(tensor.dims)
        shape = None if any(dim < 0 for dim in dims) else dims
        return self._value(name, TensorType(element_type, shape), stored)

    def _graph_input(self, name: str, input: ValueInfoProto | None) -> Value:
        known = self.overridden(name, declared(input))
        if self.parent is not None:
            known = best_of(self.type_of(name), known)
        return self._value(name, known, declared(self.index.stored.get(name)))

    def overridden(self, name: str, known: TensorType) -> TensorType:
        """Return a type with the shape that the caller of the reader gives for an input."""
        given = self.input_shapes.get(text(name), known.shape)
        return TensorType(known.element_type, given)

    def _output(self, node: Node, number: int, name: str, constant: Constant | None) -> Value:
        stored = declared(self.index.stored.get(name)) if name else UNKNOWN
        if constant is not None:
            known = TensorType(constant.element_type, constant.shape)
        else:
            known = best_of(self.type_of(name), stored) if name else UNKNOWN
        return self._value(name, known, stored, node, number, constant)

    def _value(
        self,
        name: str,
        known: TensorType,
        stored: TensorType,
        node: Node | None = None,
        output: int = 0,
        constant: Constant | None = None,
    ) -> Value:
        location = self._place(name) if node is None else node.location
        return Value(text(name), *known, node, output, constant, location, *stored)

    def type_of(self, name: str) -> TensorType:
        """Return what is known of an output without what the file stores for it."""
        known = self.handed_on.get(name)
        if known is not None:
            return known
        found = self.inferred.types.get(name)
        return UNKNOWN if found is None else inferred(found)

    @cached_property
    def handed_on(self) -> HandedOn:
        """The types of outputs that are known without inference."""
        return HandedOn(self)

    def _constant_of(self, node: Node) -> Constant | None:
        """Return what a Constant node holds; a sparse tensor is none that can be shown."""
        if node.type != "Constant" or node.domain:
            return None
        for name, value in self.attributes_of(node).items():
            if name == "value":
                return value if isinstance(value, Constant) else None
            if name.startswith("value_"):
                return listed_constant(name, value, node)
        return None

    def _place(self, name: str) -> Location:
        return Location(self.shared.path, scope=self.scope + text(name))
