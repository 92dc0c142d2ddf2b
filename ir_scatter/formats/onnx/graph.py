"""Graphs of an ONNX model: nodes and values are made when somebody asks for them."""

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
    best_of,
    declared,
    described,
    differ,
    is_alike,
    tensor_message,
    type_held,
)
from ir_scatter.formats.onnx.tensors import Tensors, attribute_value, shape_of


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What all graphs of one model, or of one use of a function, share.

    Below `ir_version` ONLY_CONSTANTS every initializer is an input too, and a constant all the same.
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
    """The main graph, a body (of its `parent`), or one use of a function.

    `infer` is asked once and only if a type is wanted; `arguments` are the inputs of a function as the call
    gives them, None for one left out.
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
        return not self.shared.is_function  # of which onnxruntime does not look at value_info

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

    def _walk(self, wanted: Callable[[GraphIndex], set[int]]) -> Iterator[Node]:
        places = wanted(self.index)
        for position in sorted(places | self.index.bodies.keys()):
            if position in places:
                yield self.node(position)
            for body in self.bodies_at(position).values():
                yield from body._walk(wanted)

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
        names, found = self.index.nodes[node.handle].output, []
        constant = self._constant_of(node) if len(names) == 1 else None
        for at, name in enumerate(names):
            known = self.type_of(name) if name else UNKNOWN
            if name and name not in self.stale:
                known = best_of(known, self.stored_type(name))
            if constant is not None:
                known = TensorType(constant.element_type, constant.shape)
            found.append(self._value(name, known, node, at, constant))
        return tuple(found)

    def inferred_shape(self, value: Value) -> Shape:
        node = value.producer
        return (
            None if node is None else self.type_of(self.index.nodes[node.handle].output[value.output]).shape
        )

    def attributes_of(self, node: Node) -> Mapping[str, Any]:
        pairs = bound(self.index.nodes[node.handle], self.shared.bindings)
        tensors = self.shared.tensors
        return {name: attribute_value(one, node, tensors) for name, one in pairs if not is_graph(one)}

    def bodies_of(self, node: Node) -> Mapping[str, Graph]:
        return self.bodies_at(node.handle)

    def bodies_at(self, position: int) -> "dict[str, OnnxGraph]":
        """Return the graphs inside the node at a position by the attribute's name."""
        if position not in self._bodies:
            self._bodies[position] = found = {}
            for name, index in self.index.bodies.get(position, {}).items():
                infer = partial(lambda key: self.inferred.bodies.get(key, NOTHING), (position, name))
                scope = f"{self.node(position).scope}:{name}/"
                found[name] = OnnxGraph(index, self.shared, infer, name=name, scope=scope, parent=self)
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
    def no_tensors(self) -> Mapping[str, str]:
        """What values of this graph, or of those around it, are that are no tensors: "sequence", by name."""
        declared = {**self.index.stored, **self.index.inputs}
        types = self.inferred.types or {name: one.type for name, one in declared.items() if one is not None}
        found = {name: one.WhichOneof("value") for name, one in types.items() if tensor_message(one) is None}
        words = {name: word.removesuffix("_type").replace("_", " ") for name, word in found.items() if word}
        return words if self.parent is None else {**self.parent.no_tensors, **words}

    @cached_property
    def contradicted(self) -> Mapping[str, tuple[TensorType, TensorType]]:
        """What is found, and what is stored, for values of which both cannot be right."""
        types, held, pairs = self.inferred.types, self.index.initializers, {}
        for name, one in self.index.stored.items():
            type = types.get(name)
            if type is not None and not is_alike(type, one.type):
                pairs[name] = described(type), declared(one)
            elif name in held and name not in self.index.inputs:
                pairs[name] = type_held(held[name]), declared(one)
        return {name: pair for name, pair in pairs.items() if differ(*pair)}

    @property
    def wrong_defaults(self) -> Mapping[str, tuple[TensorType, TensorType]]:
        """What an initializer holds, and what the input of its name declares, where they differ."""
        held, inputs = self.index.initializers, self.index.inputs
        pairs = {name: (type_held(held[name]), declared(one)) for name, one in inputs.items() if name in held}
        return {name: pair for name, pair in pairs.items() if differ(*pair)}

    @cached_property
    def stale(self) -> Collection[str]:
        """What is contradicted, and what is computed of it: what the file stores for it does not count."""
        found = {*self.contradicted, *(() if self.parent is None else self.parent.stale)}
        for position in self.index.sorted_positions() if found else ():
            bodies = self.index.bodies.get(position, {}).values()
            names = set(self.index.nodes[position].input).union(*(body.captured for body in bodies))
            if not found.isdisjoint(names):
                found.update(self.index.nodes[position].output)
        return found - {""}

    def type_of(self, name: str) -> TensorType:
        found = self.inferred.types.get(name)
        return UNKNOWN if found is None else described(found)

    def stored_type(self, name: str) -> TensorType:
        return declared(self.index.stored.get(name))

    def find(self, name: str) -> Value | None:
        """Return the value of a name, from the graphs around this one if it is not here."""
        if name not in self._values:
            self._values[name] = self._make(name)
        return self._values[name]

    def _input(self, name: str) -> Input:
        value = self.find(name) if name else None
        return Input(value, is_present=value is not None or not (name == "" or self._is_left_out(name)))

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
            return self._initializer(name)
        if name in index.sparse_initializers:
            sparse = index.sparse_initializers[name]
            constant = self.shared.tensors.sparse_constant(sparse, text(name), self.place(name))
            known = TensorType(type_held(sparse.values).element_type, shape_of(sparse))
            return self._value(name, known, constant=constant)
        if name in index.inputs:
            known = self._declared_input(name)
            best = known if self.parent is None else best_of(self.type_of(name), known)
            return Value(text(name), *best, location=self.place(name))
        if name in index.producers:
            position, output = index.producers[name]
            return self.node(position).outputs[output]
        return None if self.parent is None else self.parent.find(name)

    def _initializer(self, name: str) -> Value:
        tensor = self.index.initializers[name]
        known = type_held(tensor)
        is_default = self.parent is None and self.shared.ir_version >= ONLY_CONSTANTS
        if name in self.index.inputs and is_default:
            claimed = self._declared_input(name).shape  # by an input, of which it is no more than a default
            is_claimed = claimed is not None and agree(claimed, known.shape)
            return self._value(name, known._replace(shape=claimed) if is_claimed else known)
        constant = self.shared.tensors.constant(tensor, text(name), self.place(name))
        constant = self.shared.tensors.constant(tensor, text(name), self.place(name))
        return self._value(name, known, constant=constant)

    def _declared_input(self, name: str) -> TensorType:
        """Return the type of an input, with the shape that the caller of the reader gives for it."""
        known = declared(self.index.inputs[name])
        given = {} if self.scope else self.shared.options.input_shapes
        return TensorType(known.element_type, given.get(text(name), known.shape))

    def _value(
        self,
        name: str,
        known: TensorType,
        node: Node | None = None,
        output: int = 0,
        constant: Constant | None = None,
    ) -> Value:
        location = self.place(name) if node is None else node.location
        return Value(text(name), *known, node, output, constant, location, *self.stored_type(name))

    def _constant_of(self, node: Node) -> Constant | None:
        """Return what a Constant node holds, a sparse tensor as a dense one."""
        if node.type != "Constant" or node.domain:
            return None
        for name, attribute in bound(self.index.nodes[node.handle], self.shared.bindings):
            tensor, shared = constant_tensor(name, attribute), self.shared.tensors
            if is_sparse_value(name, attribute):
                return shared.sparse_constant(attribute.sparse_tensor, node.name, node)
            if tensor is not None:
                return shared.constant(tensor, text(tensor.name) or node.name, node)
        return None
