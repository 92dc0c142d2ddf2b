"""The graphs of an ONNX model: nodes and values are created on first access."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.model import Graph, Input, Node, Value
from ir_scatter.core.shapes import Shape, agree
from ir_scatter.core.tensors import Constant
from ir_scatter.formats.base import ReadOptions
from ir_scatter.formats.onnx.index import (
    ONLY_CONSTANTS,
    Bindings,
    Definitions,
    GraphIndex,
    bound,
    constant_tensor,
    is_graph,
    is_sparse_value,
    normal_domain,
    text,
)
from ir_scatter.formats.onnx.inference import (
    NOTHING,
    UNKNOWN,
    Inferred,
    TensorType,
    contradict,
    declared,
    is_equal_without_symbols,
    merge_types,
    tensor_message,
    tensor_type_of,
    type_of_tensor,
)
from ir_scatter.formats.onnx.tensors import Tensors, attribute_value, shape_of


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The data that all graphs of a model, or of one function call, have in common.

    `ir_version` decides about an initializer that is also an input: below `ONLY_CONSTANTS` it is a constant,
    since every initializer had to be an input; later it is a default that the caller may replace.
    """

    path: str
    options: ReadOptions
    tensors: Tensors
    ir_version: int
    opsets: Mapping[str, int]
    definitions: Definitions
    bindings: Bindings = field(default_factory=dict)
    is_function: bool = False


@dataclass(eq=False, repr=False)
class OnnxGraph(Graph):
    """The main graph, a body (of its `parent`), or the graph of a function for one signature of calls.

    `infer` runs shape inference, once, on the first access to a type. `arguments` are the inputs of a
    function as passed by the call; None for a missing one.
    """

    index: GraphIndex
    shared: Shared
    infer: Callable[[], Inferred] = lambda: NOTHING
    name: str = ""
    scope: str = ""
    parent: "OnnxGraph | None" = None
    arguments: Mapping[str, Value | None] = field(default_factory=dict)
    _nodes: dict[int, Node] = field(default_factory=dict, init=False)
    _values: dict[str, Value | None] = field(default_factory=dict, init=False)
    _bodies: "dict[int, dict[str, OnnxGraph]]" = field(default_factory=dict, init=False)

    @property
    def output_names(self) -> frozenset[str]:
        return frozenset(map(text, self.index.outputs))

    @property
    def refuses_types(self) -> bool:
        return not self.shared.is_function  # onnxruntime ignores the stored types (value_info) of functions

    @cached_property
    def inferred(self) -> Inferred:
        return self.infer()

    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        if types is None:
            return self._walk(lambda index: {*range(len(index.nodes))})
        return self._walk(lambda index: {at for type in types for at in index.by_type.get(type, ())})

    def walk_calls(self) -> Iterator[Node]:
        """Yield the nodes that call a function of the model."""
        return self._walk(lambda index: {*index.calls})

    def _walk(self, select: Callable[[GraphIndex], set[int]]) -> Iterator[Node]:
        places = select(self.index)
        for position in sorted(places | self.index.bodies.keys()):
            if position in places:
                yield self.node(position)
            for body in self.bodies_at(position).values():
                yield from body._walk(select)

    def node(self, position: int) -> Node:
        if position not in self._nodes:
            proto = self.index.nodes[position]
            domain, type = normal_domain(proto.domain), text(proto.op_type)
            name = proto.name or next((name for name in proto.output if name), f"{type}_{position}")
            opset = self.shared.opsets.get(domain)
            self._nodes[position] = Node(self, text(domain), type, opset, text(name), position)
        return self._nodes[position]

    def inputs_of(self, node: Node) -> tuple[Input, ...]:
        return tuple(map(self._input, self.index.nodes[node.handle].input))

    def outputs_of(self, node: Node) -> tuple[Value, ...]:
        names, values = self.index.nodes[node.handle].output, []
        constant = self._constant_of(node) if len(names) == 1 else None
        for at, name in enumerate(names):
            type = self.type_of(name) if name else UNKNOWN
            if name and name not in self.stale:
                type = merge_types(type, self.stored_type(name))
            if constant is not None:
                type = TensorType(constant.element_type, constant.shape)
            values.append(self._value(name, type, node, at, constant))
        return tuple(values)

    def inferred_shape(self, value: Value) -> Shape:
        node = value.producer
        return (
            None if node is None else self.type_of(self.index.nodes[node.handle].output[value.output]).shape
        )

    def attributes_of(self, node: Node) -> Mapping[str, Any]:
        pairs = bound(self.index.nodes[node.handle], self.shared.bindings)
        tensors = self.shared.tensors
        return {name: attribute_value(proto, node, tensors) for name, proto in pairs if not is_graph(proto)}

    def bodies_of(self, node: Node) -> Mapping[str, Graph]:
        return self.bodies_at(node.handle)

    def bodies_at(self, position: int) -> "dict[str, OnnxGraph]":
        """Return the bodies of the node at a position, by attribute name."""
        if position not in self._bodies:
            self._bodies[position] = bodies = {}
            for name, index in self.index.bodies.get(position, {}).items():
                infer = partial(lambda key: self.inferred.bodies.get(key, NOTHING), (position, name))
                scope = f"{self.node(position).scope}:{name}/"
                bodies[name] = OnnxGraph(index, self.shared, infer, name=name, scope=scope, parent=self)
        return self._bodies[position]

    def location_of(self, node: Node) -> Location:
        return Location(self.shared.path, scope=node.scope)

    def with_bodies(self) -> "Iterator[OnnxGraph]":
        yield self
        for position in sorted(self.index.bodies):
            for body in self.bodies_at(position).values():
                yield from body.with_bodies()

    def place(self, name: str) -> Location:
        return Location(self.shared.path, scope=self.scope + text(name))

    @cached_property
    def non_tensors(self) -> Mapping[str, str]:
        """Kinds of the visible values that are not tensors, such as "sequence", by name."""
        declared = {**self.index.stored, **self.index.inputs}
        types = self.inferred.types or {
            name: info.type for name, info in declared.items() if info is not None
        }
        fields = {
            name: type.WhichOneof("value") for name, type in types.items() if tensor_message(type) is None
        }
        words = {name: word.removesuffix("_type").replace("_", " ") for name, word in fields.items() if word}
        return words if self.parent is None else {**self.parent.non_tensors, **words}

    @cached_property
    def contradicted(self) -> Mapping[str, tuple[TensorType, TensorType]]:
        """(inferred, stored) types that contradict each other, by name of the value."""
        types, held, pairs = self.inferred.types, self.index.initializers, {}
        for name, info in self.index.stored.items():
            type = types.get(name)
            if type is not None and not is_equal_without_symbols(type, info.type):
                pairs[name] = tensor_type_of(type), declared(info)
            elif name in held and name not in self.index.inputs:
                pairs[name] = type_of_tensor(held[name]), declared(info)
        return {name: pair for name, pair in pairs.items() if contradict(*pair)}

    @property
    def wrong_defaults(self) -> Mapping[str, tuple[TensorType, TensorType]]:
        """(initializer's, input's) types of inputs that contradict the initializer of the same name."""
        held, inputs = self.index.initializers, self.index.inputs
        pairs = {
            name: (type_of_tensor(held[name]), declared(info))
            for name, info in inputs.items()
            if name in held
        }
        return {name: pair for name, pair in pairs.items() if contradict(*pair)}

    @cached_property
    def stale(self) -> Collection[str]:
        """Names of values with a contradicted type, and of all values downstream.

        Their stored types are ignored.
        """
        names = {*self.contradicted, *(() if self.parent is None else self.parent.stale)}
        for position in self.index.sorted_positions() if names else ():
            bodies = self.index.bodies.get(position, {}).values()
            inputs = set(self.index.nodes[position].input).union(*(body.captured for body in bodies))
            if not names.isdisjoint(inputs):
                names.update(self.index.nodes[position].output)
        return names - {""}

    def type_of(self, name: str) -> TensorType:
        type = self.inferred.types.get(name)
        return UNKNOWN if type is None else tensor_type_of(type)

    def stored_type(self, name: str) -> TensorType:
        return declared(self.index.stored.get(name))

    def find(self, name: str) -> Value | None:
        """Return the value of a name, from this graph or the nearest outer graph; None if none has it."""
        if name not in self._values:
            self._values[name] = self._make(name)
        return self._values[name]

    def _input(self, name: str) -> Input:
        value = self.find(name) if name else None
        return Input(value, is_present=value is not None or not (name == "" or self._is_left_out(name)))

    def _is_left_out(self, name: str) -> bool:
        """Return whether a name is an optional input of the function that the call does not pass."""
        if name in self.index.inputs or name in self.index.producers or self.parent is None:
            return name in self.arguments
        return self.parent._is_left_out(name)

    def _make(self, name: str) -> Value | None:
        index = self.index
        if name in self.arguments:
            return self.arguments[name]
        if name in index.initializers:
            return self._initializer(name)
        if name in index.sparse_initializers:
            sparse = index.sparse_initializers[name]
            constant = self.shared.tensors.sparse_constant(sparse, text(name), self.place(name))
            type = TensorType(type_of_tensor(sparse.values).element_type, shape_of(sparse))
            return self._value(name, type, constant=constant)
        if name in index.inputs:
            type = self._declared_input(name)
            best = type if self.parent is None else merge_types(self.type_of(name), type)
            return Value(text(name), *best, location=self.place(name))
        if name in index.producers:
            position, output = index.producers[name]
            return self.node(position).outputs[output]
        return None if self.parent is None else self.parent.find(name)

    def _initializer(self, name: str) -> Value:
        tensor = self.index.initializers[name]
        type = type_of_tensor(tensor)
        is_default = self.parent is None and self.shared.ir_version >= ONLY_CONSTANTS
        if name in self.index.inputs and is_default:
            declared_shape = self._declared_input(name).shape  # the initializer is only the input's default
            is_valid = declared_shape is not None and agree(declared_shape, type.shape)
            return self._value(name, type._replace(shape=declared_shape) if is_valid else type)
        constant = self.shared.tensors.constant(tensor, text(name), self.place(name))
        constant = self.shared.tensors.constant(tensor, text(name), self.place(name))
        return self._value(name, type, constant=constant)

    def _declared_input(self, name: str) -> TensorType:
        """Return the declared type of an input; a shape in `ReadOptions.input_shapes` takes precedence."""
        type = declared(self.index.inputs[name])
        shapes = {} if self.scope else self.shared.options.input_shapes
        return TensorType(type.element_type, shapes.get(text(name), type.shape))

    def _value(
        self,
        name: str,
        type: TensorType,
        node: Node | None = None,
        output: int = 0,
        constant: Constant | None = None,
    ) -> Value:
        location = self.place(name) if node is None else node.location
        return Value(text(name), *type, node, output, constant, location, *self.stored_type(name))

    def _constant_of(self, node: Node) -> Constant | None:
        """Return the dense value of a Constant node; None for other nodes."""
        if node.type != "Constant" or node.domain:
            return None
        for name, attribute in bound(self.index.nodes[node.handle], self.shared.bindings):
            tensor, shared = constant_tensor(name, attribute), self.shared.tensors
            if is_sparse_value(name, attribute):
                return shared.sparse_constant(attribute.sparse_tensor, node.name, node)
            if tensor is not None:
                return shared.constant(tensor, text(tensor.name) or node.name, node)
        return None
