"""The dataflow of an ONNX model: names, bodies that capture outer names, and functions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ir_scatter.core.dataflow import (
    BodyInput,
    BodyOutput,
    BodySource,
    Call,
    Choice,
    Dataflow,
    GraphInput,
    GraphOutput,
    Key,
    Link,
    Nested,
    Repeat,
    Slice,
)
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnknownOperator, UnreadableModel
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.core.tensors import Constant
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import Definition, function_key, text
from ir_scatter.formats.onnx.inference import MOST_CALLS, declared

_BRANCHES = {True: "then_branch", False: "else_branch"}
_FIRST_CARRIED = 2
"""Number of the first carried input of a Loop and of its body. A Loop's inputs 0 and 1 are trip count and
condition, those of its body iteration number and condition.
"""

_SCAN_WITHOUT_BATCH = 9
"""The first version of Scan without a batch dimension."""


def wire(model: Model) -> Dataflow:
    """Return the dataflow of an ONNX model.

    Raises:
        UnknownOperator: nested function calls expand to too many graphs.
    """
    assert isinstance(model.graph, OnnxGraph)
    definitions = model.graph.shared.definitions
    count = definitions.count_calls(model.graph.index)
    if count > MOST_CALLS:
        message = (
            f"functions are called {count} times (including nested calls), expected at most {MOST_CALLS}"
        )
        raise UnknownOperator(f"NumPy does not compute it: {message}", Location(model.path))
    return OnnxWiring(model.graph)


class OnnxWiring(Dataflow):
    """The dataflow of the main graph, of a body, or of a function with the attributes of one call."""

    graph: OnnxGraph

    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self._index = graph.index
        # a body's constants count as its own values
        held = self._index.initializers if graph.parent is not None else ()
        self._input_names = [name for name in self._index.inputs if name not in held]
        self.inputs = tuple(map(self._input, self._input_names))
        names = self._index.outputs
        self.outputs = tuple(GraphOutput(name, text(name), *graph.stored_type(name)) for name in names)
        if graph.parent is not None:
            self.captured = tuple(sorted(self._index.captured, key=repr))

    def constant(self, key: Key) -> Constant | None:
        name, index = _name(key), self._index
        if name in self._input_names:
            return None
        if name in index.initializers:
            return self._initializer(name)
        if name in index.sparse_initializers:
            sparse, place = index.sparse_initializers[name], self.graph.place(name)
            constant = self.graph.shared.tensors.sparse_constant(sparse, text(name), place)
            if constant is None:
                raise self._unreadable(f"the dimensions of {text(name)} are not a shape")
            return constant
        if name not in index.producers:
            return None
        node = self.graph.node(index.producers[name][0])
        if node.type != "Constant" or node.domain:
            return None
        constant = node.outputs[0].constant
        if constant is None:
            raise self._unreadable(f"{node.scope} holds no tensor, expected one")
        return constant

    def value(self, key: Key) -> Value | None:
        return self.graph.find(_name(key))

    def link(self, key: Key) -> Link | None:
        name = _name(key)
        if name in self._index.inputs or name not in self._index.producers:
            return None
        node = self.graph.node(self._index.producers[name][0])
        proto = self._index.nodes[node.handle]
        inputs, outputs = (tuple(name or None for name in names) for names in (proto.input, proto.output))
        return Link(node, inputs, outputs)

    def nested(self, node: Node) -> Nested | None:
        proto = self._index.nodes[node.handle]
        definition = self.graph.shared.definitions.get(function_key(proto))
        if definition is not None:
            return self._call(node, definition)
        if node.domain:
            return None
        if node.type == "If":
            if not proto.input:
                raise self._unreadable(f"{node.scope} has no condition, expected one")
            bodies = {truth: self._body(node, name) for truth, name in _BRANCHES.items()}
            return Choice(0, {truth: self._whole_call(node, body, ()) for truth, body in bodies.items()})
        if node.type == "Loop":
            return self._loop(node)
        return self._scan(node) if node.type == "Scan" else None

    def _call(self, node: Node, definition: Definition) -> Call:
        """Return the dataflow of the called function, with attributes from the call."""
        proto, shared = self._index.nodes[node.handle], self.graph.shared
        bindings = definition.bindings(proto, shared.bindings)
        shared = replace(shared, opsets=definition.opsets, bindings=bindings)
        scope = f"{node.scope}:{definition.name}/"
        graph = OnnxGraph(definition.index, shared, name=definition.name, scope=scope)
        count = len(proto.input)
        inputs = tuple(n if n < count and proto.input[n] else None for n in range(len(graph.index.inputs)))
        return self._whole_call(node, OnnxWiring(graph), inputs)

    def _whole_call(self, node: Node, body: "OnnxWiring", inputs: tuple[int | None, ...]) -> Call:
        count = len(self._index.nodes[node.handle].output)
        self._demand(node, count <= len(body.outputs) and len(inputs) == len(body.inputs))
        return Call(body, inputs, tuple(range(count)))

    def _loop(self, node: Node) -> Repeat:
        body, proto = self._body(node, "body"), self._index.nodes[node.handle]
        carried = len(body.inputs) - _FIRST_CARRIED
        count = len(proto.output)
        is_fitting = len(proto.input) == len(body.inputs) and len(body.outputs) > max(carried, count)
        self._demand(node, carried >= 0 and is_fitting)
        inputs = [BodyInput(BodySource.ITERATION), BodyInput(BodySource.CONDITION)]
        inputs += [BodyInput(BodySource.CARRIED, _FIRST_CARRIED + at, 1 + at) for at in range(carried)]
        outputs = [
            BodyOutput(1 + at, None if at < carried else Slice(0, keeps_axis=False)) for at in range(count)
        ]
        trips, condition = (n if proto.input[n] else None for n in (0, 1))
        return Repeat(body, tuple(inputs), tuple(outputs), trips, condition, 0)

    def _scan(self, node: Node) -> Repeat:
        """Return the dataflow of a Scan since version 9; version 8 has batches and raises an error."""
        body, proto, opset = self._body(node, "body"), self._index.nodes[node.handle], node.opset
        count = node.attributes.get("num_scan_inputs")
        if not isinstance(opset, int) or opset < _SCAN_WITHOUT_BATCH or not isinstance(count, int):
            raise self._unreadable(f"{node.scope}: a Scan before opset {_SCAN_WITHOUT_BATCH} is not computed")
        carried = len(proto.input) - count
        self._demand(node, count >= 1 and carried >= 0 and len(body.inputs) == len(proto.input))
        inputs = [BodyInput(BodySource.CARRIED, at, at) for at in range(carried)]
        slices = _slices(node.attributes, "scan_input", count)
        inputs += [BodyInput(BodySource.PART, carried + at, slice=cut) for at, cut in enumerate(slices)]
        outputs = [BodyOutput(at) for at in range(carried)]
        slices = _slices(node.attributes, "scan_output", max(len(proto.output) - carried, 0))
        outputs += [BodyOutput(carried + at, cut) for at, cut in enumerate(slices)]
        is_fitting = len(inputs) == len(proto.input) and len(outputs) >= len(proto.output)
        self._demand(node, is_fitting and len(outputs) <= len(body.outputs))
        return Repeat(body, tuple(inputs), tuple(outputs))

    def _demand(self, node: Node, is_fitting: bool) -> None:
        if not is_fitting:
            message = f"{node.scope}: inputs and outputs of the body do not fit those of the node"
            raise self._unreadable(message)

    def _body(self, node: Node, name: str) -> "OnnxWiring":
        graph = self.graph.bodies_at(node.handle).get(name)
        if graph is None:
            raise self._unreadable(f"{node.scope} has no {name}, expected a graph")
        return OnnxWiring(graph)

    def _input(self, name: str) -> GraphInput:
        default = self._initializer(name) if name in self._index.initializers else None
        info = self._index.inputs[name]
        kind = "" if info is None else (info.type.WhichOneof("value") or "").removesuffix("_type")
        kind = "tensor" if kind in {"", "tensor", "sparse_tensor"} else kind
        return GraphInput(name, (text(name),), *declared(info), default, kind)

    def _initializer(self, name: str) -> Constant:
        tensor, place = self._index.initializers[name], self.graph.place(name)
        constant = self.graph.shared.tensors.constant(tensor, text(name), place)
        if constant is None:
            raise self._unreadable(f"the dimensions of {text(name)} are not a shape")
        return constant

    def _unreadable(self, message: str) -> UnreadableModel:
        return UnreadableModel("unknown-value", message, self.graph.place(""))


def _slices(attributes: Mapping[str, Any], word: str, count: int) -> list[Slice]:
    """Return the axis and direction in which a Scan slices each input or concatenates each output.

    `word` is "input" or "output". The default axis is 0.
    """
    parts = []
    for name in ("axes", "directions"):
        written = attributes.get(f"{word}_{name}")
        is_list = isinstance(written, list) and all(isinstance(number, int) for number in written)
        parts.append(written if is_list and written else [0] * count)
    return [
        Slice(axis, -1, 0, -1, keeps_axis=False) if backward else Slice(axis, keeps_axis=False)
        for axis, backward in zip(*parts, strict=False)
    ]


def _name(key: Key) -> str:
    assert isinstance(key, str | bytes)
    return key  # type: ignore[return-value]  # protobuf gives bytes where a name is not UTF-8
