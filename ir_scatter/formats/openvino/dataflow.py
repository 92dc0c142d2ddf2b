"""The dataflow of an IR, from edges, port maps and back edges."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias, TypeVar

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
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Graph, Node, Value
from ir_scatter.core.tensors import Constant
from ir_scatter.core.words import counted
from ir_scatter.formats.openvino.graph import ASSIGN, CONST, PARAMETER, RESULT, IrGraph
from ir_scatter.formats.openvino.layers import split_names
from ir_scatter.formats.openvino.xml_text import XmlElement, decoded

_SINK = "/sink_port_0"
"""The suffix of a Result's name that OpenVINO's frontends append to the name of the output."""

_BRANCHES = {True: "then", False: "else"}
_LEAST_INPUTS = {"if": 1, "loop": 2}
"""Minimum number of inputs by layer type: the condition of an If; trip count and condition of a Loop."""

_Entry = TypeVar("_Entry")
_Numbers: TypeAlias = Mapping[bytes, int]


class IrWiring(Dataflow):
    """The dataflow of the main graph or a body. Bodies in an IR receive outer values only by port maps."""

    def __init__(self, graph: Graph) -> None:
        assert isinstance(graph, IrGraph)
        self.graph = graph
        self._ir = graph
        self._parameters = graph.keys_of(PARAMETER)
        self._results = graph.keys_of(RESULT)
        self.inputs = tuple(map(self._input, self._parameters))
        outputs: dict[str, GraphOutput] = {}
        for layer in self._results:
            output = self._output(layer)
            name = output.name if output.name not in outputs else graph.node(layer).name
            while name in outputs:
                name += "'"
            outputs[name] = replace(output, name=name)
        self.outputs = tuple(outputs.values())
        self.assigned = dict(filter(None, map(self._assigned, graph.keys_of(ASSIGN))))

    def constant(self, key: Key) -> Constant | None:
        assert isinstance(key, tuple)
        if self._ir.type_of(key[0]) != CONST:
            return None
        value = self._ir.value(key)
        if value is None or value.constant is None:
            node = self._ir.node(key[0])
            message = f"{node.scope}: the constant has no known type and shape"
            raise UnreadableModel("constant-size", message, node.location)
        return value.constant

    def value(self, key: Key) -> Value | None:
        assert isinstance(key, tuple)
        return self._ir.value(key)

    def link(self, key: Key) -> Link | None:
        assert isinstance(key, tuple)
        layer = key[0]
        if self._ir.type_of(layer) in {b"", PARAMETER}:
            return None
        text, producers = self._ir.layer(layer), self._ir.body.producers(layer)
        inputs = tuple(producers.get(port.id) for port in text.inputs)
        return Link(self._ir.node(layer), inputs, tuple((layer, port.id) for port in text.outputs))

    def nested(self, node: Node) -> Nested | None:
        if not self._ir.graphs(node.handle):
            return None
        kind = node.type.lower()
        element = self._ir.element(node.handle)
        if len(self._ir.layer(node.handle).inputs) < _LEAST_INPUTS.get(kind, 0):
            raise _misfit(node, f"it has fewer than {counted(_LEAST_INPUTS[kind], 'input')}")
        if kind == "if":
            return Choice(0, {truth: self._branch(node, element, name) for truth, name in _BRANCHES.items()})
        if kind in {"loop", "tensoriterator"}:
            return self._repeat(node, element, has_trips=kind == "loop")
        return None

    def _branch(self, node: Node, element: XmlElement, name: str) -> Call:
        body, inputs, outputs, outer_inputs, outer_outputs = self._numbers(node, f"{name}_body")
        sources, targets = {}, {}
        for entry in element.iterfind(f"{name}_port_map/input"):
            number = _look_up(inputs, entry, "internal_layer_id", node)
            sources[number] = _look_up(outer_inputs, entry, "external_port_id", node)
        for entry in element.iterfind(f"{name}_port_map/output"):
            number = _look_up(outer_outputs, entry, "external_port_id", node)
            targets[number] = _look_up(outputs, entry, "internal_layer_id", node)
        ends = _complete(sources, len(body.inputs), node), _complete(targets, len(outer_outputs), node)
        return Call(body, *ends)

    def _repeat(self, node: Node, element: XmlElement, *, has_trips: bool) -> Repeat:
        body, inputs, outputs, outer_inputs, outer_outputs = self._numbers(node, "body")
        successors = {
            _look_up(inputs, edge, "to-layer", node): _look_up(outputs, edge, "from-layer", node)
            for edge in element.iterfind("back_edges/edge")
        }
        sources, targets, goes_on = {}, {}, None
        for entry in element.iterfind("port_map/input"):
            place = _look_up(inputs, entry, "internal_layer_id", node)
            if entry.get("purpose") == "current_iteration":
                sources[place] = BodyInput(BodySource.ITERATION)
                continue
            number, cut = _look_up(outer_inputs, entry, "external_port_id", node), _slice(entry, node)
            if cut is not None:
                sources[place] = BodyInput(BodySource.PART, number, slice=cut)
            elif place in successors:
                sources[place] = BodyInput(BodySource.CARRIED, number, successors[place])
            else:
                sources[place] = BodyInput(BodySource.WHOLE, number)
        for entry in element.iterfind("port_map/output"):
            inner = _look_up(outputs, entry, "internal_layer_id", node)
            if entry.get("purpose") == "execution_condition":
                goes_on = inner
            if entry.id("external_port_id") in outer_outputs:
                number = outer_outputs[entry.id("external_port_id")]
                targets[number] = BodyOutput(inner, _slice(entry, node))
        trips, condition = (0, 1) if has_trips else (None, None)
        ends = _complete(sources, len(body.inputs), node), _complete(targets, len(outer_outputs), node)
        return Repeat(body, *ends, trips, condition, goes_on)

    def _numbers(self, node: Node, name: str) -> "tuple[IrWiring, _Numbers, _Numbers, _Numbers, _Numbers]":
        """Return a body, and four maps from ids to positions.

        They contain the body's inputs and outputs by layer id, and the node's by port id.
        """
        graph = self._ir.graphs(node.handle).get(name)
        if graph is None:
            raise _misfit(node, f"<{name}> is missing")
        body, layer = IrWiring(graph), self._ir.layer(node.handle)
        ids = [[key.partition(b"\0")[0] for key in keys] for keys in (body._parameters, body._results)]
        ids += [[port.id for port in ports] for ports in (layer.inputs, layer.outputs)]
        inputs, outputs, outer_inputs, outer_outputs = (
            {id: number for number, id in enumerate(keys)} for keys in ids
        )
        return body, inputs, outputs, outer_inputs, outer_outputs

    def _input(self, layer: bytes) -> GraphInput:
        node, ports = self._ir.node(layer), self._ir.layer(layer).outputs
        if not ports:
            raise _misfit(node, "the Parameter has no output port")
        value = node.outputs[0]
        names = [name for port in self._ir.tensor_names(layer).values() for name in port]
        unique = dict.fromkeys([*sorted(names), node.name])
        return GraphInput((layer, ports[0].id), tuple(unique), value.element_type, value.shape)

    def _assigned(self, layer: bytes) -> tuple[str, Key] | None:
        """Return (name of the state, key of the value) of an Assign layer; None without a connected input."""
        source = next(iter(self._ir.body.producers(layer).values()), None)
        name = str(self._ir.node(layer).attributes.get("variable_id", ""))
        return None if source is None or source[1] not in self._ir.output_ports(source[0]) else (name, source)

    def _output(self, layer: bytes) -> GraphOutput:
        source = next(iter(self._ir.body.producers(layer).values()), None)
        if source is None or source[1] not in self._ir.output_ports(source[0]):
            raise _misfit(self._ir.node(layer), "nothing is connected to the Result")
        names = split_names(self._ir.element(layer).get("output_names"))
        names = names or self._ir.tensor_names(source[0]).get(source[1], [])
        ports = self._ir.layer(source[0]).outputs
        layer_name = self._ir.node(source[0]).name
        if len(ports) > 1:
            layer_name += f".{[port.id for port in ports].index(source[1])}"
        name = min(names, default="") or layer_name
        aliases = dict.fromkeys([*sorted(names), layer_name, self._ir.node(layer).name.removesuffix(_SINK)])
        aliases.pop(name, None)
        value = self._ir.value(source)
        element_type, shape = (None, None) if value is None else (value.element_type, value.shape)
        return GraphOutput(source, name, element_type, shape, tuple(aliases))


def _slice(entry: XmlElement, node: Node) -> Slice | None:
    if "axis" not in entry.attributes:
        return None
    words = {"axis": 0, "start": 0, "end": -1, "stride": 1, "part_size": 1}
    try:
        axis, start, end, stride, part = (int(entry.get(word, str(usual))) for word, usual in words.items())
    except ValueError:
        raise _misfit(node, "an attribute of a port map entry is not an integer") from None
    return Slice(axis, start, end, stride, part)


def _look_up(numbers: Mapping[bytes, int], entry: XmlElement, attribute: str, node: Node) -> int:
    id = entry.id(attribute)
    if id not in numbers:
        name = decoded(id) or "''"
        raise _misfit(node, f"the port map refers to {name}, which is not the expected kind of port or layer")
    return numbers[id]


def _complete(entries: Mapping[int, _Entry], count: int, node: Node) -> tuple[_Entry, ...]:
    if any(number not in entries for number in range(count)):
        raise _misfit(node, "the port map lacks a Parameter of the body or an output of the node")
    return tuple(entries[number] for number in range(count))


def _misfit(node: Node, message: str) -> UnreadableModel:
    return UnreadableModel("unknown-port", f"{node.scope}: {message}", node.location)
