"""Graphs of an ONNX model: nodes and values are made when somebody asks for them."""

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

from onnx import SparseTensorProto, TensorProto, ValueInfoProto

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import from_onnx_number
from ir_scatter.core.model import Graph, Input, Node, Value
from ir_scatter.core.shapes import Shape, agree, is_static
from ir_scatter.core.tensors import Constant, few_numbers
from ir_scatter.formats.onnx.index import (
    DEFAULT_DOMAINS,
    Bindings,
    GraphIndex,
    bound,
    is_graph,
    normal_domain,
    text,
)
from ir_scatter.formats.onnx.inference import (
    NOTHING,
    UNKNOWN,
    Inferred,
    TensorType,
    best_of,
    declared,
    inferred,
)
from ir_scatter.formats.onnx.tensors import Tensors, attribute_value, is_external, listed_constant, shape_of


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What all graphs of one model, or of one use of a function, share.

    Attributes:
        path: the file.
        tensors: makes constants.
        ir_version: below 4 every initializer is an input too, and a constant all the same.
        opsets: the versions by domain.
        bindings: what a call gives for the attributes of a function.
        scatter_types: their one output has the type and the shape of their first input.
    """

    path: str
    tensors: Tensors
    ir_version: int
    opsets: Mapping[str, int]
    bindings: Bindings = field(default_factory=dict)
    scatter_types: frozenset[str] = frozenset()


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
        shared: Shared,
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
        self._arguments = arguments or {}
        self._input_shapes = input_shapes or {}
        self._infer = infer
        self._nodes: dict[int, Node] = {}
        self._values: dict[str, Value | None] = {}
        self._bodies: dict[int, dict[str, OnnxGraph]] = {}

    @cached_property
    def inferred(self) -> Inferred:
        """What shape inference found out."""
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

    def _walk(
        self, places: Iterable[int], wanted: Container[int], inside: "Callable[[OnnxGraph], Iterator[Node]]"
    ) -> Iterator[Node]:
        for position in places:
            if position in wanted:
                yield self.node(position)
            for body in self.bodies_at(position).values():
                yield from inside(body)

    def node(self, position: int) -> Node:
        """Return the node at a position; always the same object."""
        if position not in self._nodes:
            proto = self.index.nodes[position]
            domain, type = normal_domain(proto.domain), text(proto.op_type)
            name = proto.name or next((name for name in proto.output if name), f"{type}_{position}")
            opset = self.shared.opsets.get(domain)
            self._nodes[position] = Node(self, text(domain), type, opset, text(name), position)
        return self._nodes[position]

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
        return {name: attribute_value(one, node, tensors) for name, one in pairs if not is_graph(one)}

    def bodies_of(self, node: Node) -> Mapping[str, Graph]:
        """Return the graphs inside a node by the attribute's name."""
        return self.bodies_at(node.handle)

    def bodies_at(self, position: int) -> "dict[str, OnnxGraph]":
        """Return the graphs inside the node at a position by the attribute's name."""
        if position not in self.index.bodies:
            return {}
        if position not in self._bodies:
            self._bodies[position] = {
                name: self._body(position, name, index) for name, index in self.index.bodies[position].items()
            }
        return self._bodies[position]

    def _body(self, position: int, name: str, index: GraphIndex) -> "OnnxGraph":
        def infer() -> Inferred:
            return self.inferred.bodies.get((position, name), NOTHING)

        scope = f"{self.node(position).scope}:{name}/"
        return OnnxGraph(index, self.shared, infer, name=name, scope=scope, parent=self)

    def location_of(self, node: Node) -> Location:
        """Return the file and the path to the node."""
        return Location(self.shared.path, scope=node.scope)

    def place(self, name: str) -> Location:
        """Return the file and the path to a value."""
        return Location(self.shared.path, scope=self.scope + text(name))

    def find(self, name: str) -> Value | None:
        """Return the value of a name, from the graphs around this one if it is not here."""
        if name not in self._values:
            self._values[name] = self._make(name)
        return self._values[name]

    @property
    def has_defaults(self) -> bool:
        """Whether an initializer that is an input too is only the input's default."""
        return self.shared.ir_version >= 4

    @cached_property
    def _keys(self) -> "_NodeKeys":
        return _NodeKeys(self)

    def key_of(self, node: Node, indices: int, spelled: Collection[int]) -> tuple[Hashable, list[int]] | None:
        key = self._keys.of(node.handle, spelled)
        numbers = None if key is None else self._keys.numbers(node.handle, indices)
        return None if key is None or numbers is None else (key, numbers)

    def type_of(self, name: str) -> TensorType:
        """Return what is known of a name without what the file stores for it."""
        found = self.inferred.types.get(name)
        return UNKNOWN if found is None else inferred(found)

    def stored_type(self, name: str) -> TensorType:
        """Return what the file stores for a name."""
        return declared(self.index.stored.get(name))

    def _input(self, name: str) -> Input:
        if not name:
            return Input(None, is_present=False)
        value = self.find(name)
        return Input(value, is_present=value is not None or not self._is_left_out(name))

    def _is_left_out(self, name: str) -> bool:
        """Tell whether a name is an input of a function that the call does not give."""
        if name in self.index.inputs or name in self.index.producers or self.parent is None:
            return name in self._arguments
        return self.parent._is_left_out(name)

    def _make(self, name: str) -> Value | None:
        index = self.index
        if name in self._arguments:
            return self._arguments[name]
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
        constant = self.shared.tensors.constant(tensor, text(name), self.place(name))
        input = self.index.inputs.get(name)
        stored = declared(self.index.stored.get(name) or input)
        shape: Shape = constant.shape if constant is not None else None
        if input is not None and self.has_defaults:
            constant = None
            claimed = self._overridden(name, declared(input)).shape
            shape = claimed if agree(claimed, shape) and claimed is not None else shape
        known = TensorType(from_onnx_number(tensor.data_type), shape)
        return self._value(name, known, stored, constant=constant)

    def _sparse(self, name: str, tensor: SparseTensorProto) -> Value:
        dims = tuple(tensor.dims)
        shape = None if any(dim < 0 for dim in dims) else dims
        known = TensorType(from_onnx_number(tensor.values.data_type), shape)
        return self._value(name, known, self.stored_type(name))

    def _graph_input(self, name: str, input: ValueInfoProto | None) -> Value:
        known = self._overridden(name, declared(input))
        if self.parent is not None:
            known = best_of(self.type_of(name), known)
        return self._value(name, known, self.stored_type(name))

    def _overridden(self, name: str, known: TensorType) -> TensorType:
        """Return a type with the shape that the caller of the reader gives for an input."""
        return TensorType(known.element_type, self._input_shapes.get(text(name), known.shape))

    def _output(self, node: Node, number: int, name: str, constant: Constant | None) -> Value:
        stored = self.stored_type(name) if name else UNKNOWN
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
        location = self.place(name) if node is None else node.location
        return Value(text(name), *known, node, output, constant, location, *stored)

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


_Brief: TypeAlias = tuple[str, tuple[Any, ...]]
"""What a value is ("constant", "node", "input"), and what is known of it and stored for it."""


class _NodeKeys:
    """Hashable keys of the nodes of a graph, computed from the messages without materialising values."""

    def __init__(self, graph: OnnxGraph) -> None:
        """Look at scatter nodes in order: the output of one has the shape of what another one gives."""
        self._graph = graph
        self._briefs: dict[str, _Brief | None] = {"": ("nothing", ())}
        types = graph.index.by_type.keys() & graph.shared.scatter_types
        self._scatter = {at for type in types for at in graph.index.by_type[type]}
        for position in sorted(self._scatter):
            for name in filter(None, graph.index.nodes[position].output[:]):
                self._briefs[name] = self._output(name)

    def of(
        self, handle: int, spelled: Collection[int]
    ) -> tuple[tuple[_Brief, ...], tuple[Hashable, ...]] | None:
        """Return the key of a node: what its inputs are, and what else it says.

        None where an input or an attribute takes a closer look.
        """
        graph = self._graph
        node = graph.index.nodes[handle]
        names = node.input[:]
        inputs = [brief for brief in map(self._brief, names) if brief is not None]
        if len(inputs) < len(names) or any(one.ref_attr_name for one in node.attribute):
            return None
        rest: list[Hashable] = [node.op_type, graph.shared.opsets.get(normal_domain(node.domain))]
        rest += [one.SerializeToString() for one in node.attribute]
        rest += [graph.stored_type(name) for name in node.output[:]]
        rest += map(names.index, names)
        for index in spelled:
            numbers = self.numbers(handle, index) if index < len(names) else []
            if numbers is None:
                return None
            rest.append(tuple(numbers))
        return tuple(inputs), tuple(rest)

    def numbers(self, handle: int, index: int) -> list[int] | None:
        """Return the few whole numbers of a constant; None for any other input, and where they are many."""
        graph = self._graph.index
        names = graph.nodes[handle].input
        brief = self._brief(names[index]) if index < len(names) else None
        if brief is None or brief[0] != "constant":
            return None
        name = names[index]
        tensor = graph.initializers.get(name)
        held = graph.tensors[graph.producers[name][0]] if tensor is None else tensor
        element_type, shape = brief[1][:2]
        return few_numbers(element_type, shape, lambda: memoryview(held.raw_data))

    def _brief(self, name: str) -> _Brief | None:
        if name not in self._briefs:
            self._briefs[name] = self._find(name)
        return self._briefs[name]

    def _find(self, name: str) -> _Brief | None:
        """Return where a value comes from, and what is known of it and stored for it."""
        graph, index = self._graph, self._graph.index
        if name in graph._arguments or name in index.sparse_initializers:
            return None
        if name in index.initializers:
            return None if name in index.inputs else self._constant(name, index.initializers[name])
        if name in index.inputs:
            found = graph.find(name) if graph.parent is None else None
            if found is None or found.element_type is None:
                return None
            return "input", (found.element_type, found.shape, found.stored_type, found.stored_shape)
        return self._output(name) if name in index.producers else None

    def _constant(self, name: str, tensor: TensorProto) -> _Brief | None:
        """Return what is known of a tensor; None if it does not hold as many bytes as it needs."""
        element_type, shape, size = from_onnx_number(tensor.data_type), shape_of(tensor), len(tensor.raw_data)
        if (
            element_type is None
            or shape is None
            or not size
            or is_external(tensor)
            or tensor.HasField("segment")
        ):
            return None
        known = (element_type, shape, self._graph.stored_type(name))
        return ("constant", known) if size == element_type.byte_size(prod(shape)) else None

    def _output(self, name: str) -> _Brief | None:
        """Return what is known of an output whose shape nothing in front of it can tell better."""
        graph, index = self._graph, self._graph.index
        if name not in index.producers:
            return None
        position = index.producers[name][0]
        node = index.nodes[position]
        if position in index.tensors:
            is_plain = len(node.output) == len(node.attribute) == 1 and not node.attribute[0].ref_attr_name
            tensor = index.tensors[position] if is_plain and node.domain in DEFAULT_DOMAINS else None
            return None if tensor is None else self._constant(name, tensor)
        known = graph.type_of(name)
        if known.element_type is None or not is_static(known.shape):
            return None
        if position in self._scatter and not self._is_of_shape(
            node.input[0] if node.input else "", known.shape
        ):
            return None
        return "node", (*known, graph.stored_type(name))

    def _is_of_shape(self, name: str, shape: Shape) -> bool:
        """Tell whether what a scatter node writes to has a shape; one whose producer comes later has none."""
        producer = self._graph.index.producers.get(name)
        is_scatter = producer is not None and producer[0] in self._scatter
        brief = self._briefs.get(name) if is_scatter else self._brief(name)
        return brief is not None and brief[0] != "nothing" and brief[1][1] == shape
