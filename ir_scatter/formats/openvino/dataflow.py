"""How values flow through an IR: edges, port maps and back edges."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from ir_scatter.core.dataflow import (
    BodyInput,
    BodyOutput,
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
    Source,
)
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.core.shapes import Shape, counted
from ir_scatter.core.tensors import Constant
from ir_scatter.formats.openvino.graph import CONST, PARAMETER, IrGraph, id_in
from ir_scatter.formats.openvino.layers import split_names
from ir_scatter.formats.openvino.xml_text import Element

_RESULT = b"result"
_BRANCHES = {True: "then", False: "else"}
_LEAST_INPUTS = {"if": 1, "loop": 2}
"""The condition of an If; the trip count and the condition of a Loop."""

_Entry = TypeVar("_Entry")
_Port: TypeAlias = tuple[bytes, bytes]
"""A layer's key and the id of its output port: what names a value."""


def wire(model: Model) -> Dataflow:
    """Return how the values of an IR flow."""
    assert isinstance(model.graph, IrGraph)
    return IrWiring(model.graph)


class IrWiring(Dataflow):
    """The main graph or a body; bodies of an IR take nothing from outside but by port maps."""

    def __init__(self, graph: IrGraph) -> None:
        self.graph = graph
        self._ir = graph
        self._parameters = self._ir.keys_of(PARAMETER)
        self._results = self._ir.keys_of(_RESULT)
        self.inputs = tuple(map(self._input, self._parameters))
        self.outputs = tuple(self._named_apart(map(self._output, self._results)))

    def constant(self, key: Key) -> Constant | None:
        """Return the constant that a value is."""
        layer, _ = _port(key)
        if self._ir.type_of(layer) != CONST:
            return None
        value = self._ir.value(_port(key))
        if value is None or value.constant is None:
            node = self._ir.node(layer)
            message = f"{node.scope}: the constant has no known type and shape"
            raise UnreadableModel("constant-size", message, node.location)
        return value.constant

    def link(self, key: Key) -> Link | None:
        """Return the node that a value comes from."""
        layer, _ = _port(key)
        if self._ir.type_of(layer) in {b"", PARAMETER}:
            return None
        text = self._ir.layer(layer)
        producers = self._ir.body.producers(layer)
        inputs = tuple(producers.get(port.id) for port in text.inputs)
        return Link(self._ir.node(layer), inputs, tuple((layer, port.id) for port in text.outputs))

    def nested(self, node: Node) -> Nested | None:
        """Return how a node is wired to its bodies."""
        bodies = self._ir.graphs(node.handle)
        if not bodies:
            return None
        kind = node.type.lower()
        element = self._ir.element(node.handle)
        if len(self._ir.layer(node.handle).inputs) < _LEAST_INPUTS.get(kind, 0):
            raise _misfit(node, f"it has fewer than {counted(_LEAST_INPUTS[kind], 'input')}")
        if kind == "if":
            branches = {truth: self._branch(node, element, name) for truth, name in _BRANCHES.items()}
            return Choice(0, branches)
        if kind in {"loop", "tensoriterator"}:
            return self._repeat(node, element, has_trips=kind == "loop")
        return None

    def numbers(self) -> tuple[dict[bytes, int], dict[bytes, int]]:
        """Return the numbers of the inputs and of the outputs by the layers' ids."""
        return _numbered(self._parameters), _numbered(self._results)

    def _branch(self, node: Node, element: Element, name: str) -> Call:
        body = self._body(node, f"{name}_body")
        inputs, outputs = body.numbers()
        outer_inputs, outer_outputs = self._port_numbers(node)
        sources: list[int | None] = [None] * len(inputs)
        for entry in element.iterfind(f"{name}_port_map/input"):
            number = _look_up(inputs, id_in(entry, "internal_layer_id"), node)
            sources[number] = _look_up(outer_inputs, id_in(entry, "external_port_id"), node)
        targets: list[int | None] = [None] * len(outer_outputs)
        for entry in element.iterfind(f"{name}_port_map/output"):
            number = _look_up(outer_outputs, id_in(entry, "external_port_id"), node)
            targets[number] = _look_up(outputs, id_in(entry, "internal_layer_id"), node)
        return Call(body, tuple(_complete(sources, node)), tuple(_complete(targets, node)))

    def _repeat(self, node: Node, element: Element, *, has_trips: bool) -> Repeat:
        body = self._body(node, "body")
        inputs, outputs = body.numbers()
        outer_inputs, outer_outputs = self._port_numbers(node)
        successors = {
            _look_up(inputs, id_in(edge, "to-layer"), node): _look_up(
                outputs, id_in(edge, "from-layer"), node
            )
            for edge in element.iterfind("back_edges/edge")
        }
        sources: list[BodyInput | None] = [None] * len(inputs)
        for entry in element.iterfind("port_map/input"):
            number = _look_up(inputs, id_in(entry, "internal_layer_id"), node)
            sources[number] = _body_input(entry, outer_inputs, successors.get(number), node)
        targets: list[BodyOutput | None] = [None] * len(outer_outputs)
        goes_on = None
        for entry in element.iterfind("port_map/output"):
            inner = _look_up(outputs, id_in(entry, "internal_layer_id"), node)
            if entry.get("purpose") == "execution_condition":
                goes_on = inner
            if id_in(entry, "external_port_id") in outer_outputs:
                number = outer_outputs[id_in(entry, "external_port_id")]
                targets[number] = BodyOutput(inner, _slice(entry, node))
        trips, condition = (0, 1) if has_trips else (None, None)
        found = tuple(_complete(sources, node)), tuple(_complete(targets, node))
        return Repeat(body, *found, trips, condition, goes_on)

    def _body(self, node: Node, name: str) -> "IrWiring":
        graph = self._ir.graphs(node.handle).get(name)
        if graph is None:
            raise _misfit(node, f"<{name}> is missing")
        return IrWiring(graph)

    def _port_numbers(self, node: Node) -> tuple[dict[bytes, int], dict[bytes, int]]:
        layer = self._ir.layer(node.handle)
        inputs, outputs = (
            {port.id: number for number, port in enumerate(ports)} for ports in (layer.inputs, layer.outputs)
        )
        return inputs, outputs

    def _input(self, layer: bytes) -> GraphInput:
        node, ports = self._ir.node(layer), self._ir.layer(layer).outputs
        if not ports:
            raise _misfit(node, "the Parameter has no output port")
        element_type, shape = _known(node.outputs[0])
        names = [name for port in self._ir.tensor_names(layer).values() for name in port]
        unique = dict.fromkeys([*sorted(names), node.name])
        return GraphInput((layer, ports[0].id), tuple(unique), element_type, shape)

    def _output(self, layer: bytes) -> GraphOutput:
        source = next(iter(self._ir.body.producers(layer).values()), None)
        if source is None or source[0] not in self._ir.body.layers:
            raise _misfit(self._ir.node(layer), "nothing is connected to the Result")
        own = split_names(self._ir.element(layer).get("output_names"))
        names = own or self._ir.tensor_names(source[0]).get(source[1], [])
        ports = self._ir.layer(source[0]).outputs
        name = min(names, default="") or self._ir.node(source[0]).name
        if not names and len(ports) > 1:
            name += f".{[port.id for port in ports].index(source[1])}"
        element_type, shape = _known(self._ir.value(source))
        return GraphOutput(source, name, element_type, shape)

    def _named_apart(self, outputs: Iterator[GraphOutput]) -> Iterator[GraphOutput]:
        """Give a second output of the same name that of its Result."""
        taken: set[str] = set()
        for layer, output in zip(self._results, outputs, strict=True):
            name = output.name if output.name not in taken else self._ir.node(layer).name
            while name in taken:
                name += "'"
            taken.add(name)
            yield GraphOutput(output.key, name, output.element_type, output.shape)


def _numbered(layers: Sequence[bytes]) -> dict[bytes, int]:
    return {layer.partition(b"\0")[0]: number for number, layer in enumerate(layers)}


def _port(key: Key) -> _Port:
    assert isinstance(key, tuple)
    return key


def _known(value: Value | None) -> tuple[ElementType | None, Shape]:
    return (None, None) if value is None else (value.element_type, value.shape)


def _body_input(entry: Element, outer: Mapping[bytes, int], successor: int | None, node: Node) -> BodyInput:
    if entry.get("purpose") == "current_iteration":
        return BodyInput(Source.ITERATION)
    number = _look_up(outer, id_in(entry, "external_port_id"), node)
    cut = _slice(entry, node)
    if cut is not None:
        return BodyInput(Source.PART, number, slice=cut)
    if successor is not None:
        return BodyInput(Source.CARRIED, number, successor)
    return BodyInput(Source.WHOLE, number)


def _slice(entry: Element, node: Node) -> Slice | None:
    if "axis" not in entry.attributes:
        return None
    words = {"axis": 0, "start": 0, "end": -1, "stride": 1, "part_size": 1}
    try:
        axis, start, end, stride, part = (
            int(entry.get(word, str(default))) for word, default in words.items()
        )
    except ValueError:
        raise _misfit(node, "an entry of the port map holds no whole numbers") from None
    return Slice(axis, start, end, stride, part)


def _look_up(numbers: Mapping[bytes, int], id: bytes, node: Node) -> int:
    if id not in numbers:
        shown = id.decode("utf-8", "replace") or "''"
        raise _misfit(node, f"the port map names {shown}, which is no such port or layer")
    return numbers[id]


def _complete(entries: Sequence[_Entry | None], node: Node) -> Iterator[_Entry]:
    for entry in entries:
        if entry is None:
            raise _misfit(node, "the port map leaves out a Parameter of the body or an output of the node")
        yield entry


def _misfit(node: Node, message: str) -> UnreadableModel:
    return UnreadableModel("unknown-port", f"{node.scope}: {message}", node.location)
