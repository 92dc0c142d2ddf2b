"""The graph of an IR: nodes and values made from its index when somebody asks for them."""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType, from_element_type
from ir_scatter.core.model import OPENVINO, Graph, Input, Node, Value
from ir_scatter.core.shapes import MAX_RANK, Shape, agree, is_static, narrow, parse_shape, static
from ir_scatter.core.tensors import Constant, Weights, decode, few_numbers
from ir_scatter.formats.base import ReadOptions
from ir_scatter.formats.openvino.index import Body, shortest
from ir_scatter.formats.openvino.layers import LayerText, PortText, parse_layer, split_names
from ir_scatter.formats.openvino.xml_text import Element, XmlText, parse_elements

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

CONST = b"const"
PARAMETER = b"parameter"

Port: TypeAlias = tuple[bytes, bytes]
"""A layer's key and the id of its output port: what names a value."""

_Source: TypeAlias = tuple[ElementType, Shape, Callable[[], memoryview | None] | None]
"""Type and shape of what feeds an input, and what gives its bytes if it is a Const."""

Declared: TypeAlias = tuple[ElementType | None, Shape, tuple[int, ...] | None]
"""Element type, shape, and the shape again if it is static."""


@dataclass(frozen=True, slots=True, eq=False)
class IrFile:
    """What all graphs of one file share.

    Attributes:
        text: the `.xml`.
        weights: the `.bin`; None if there can be none.
        options: how it is read.
    """

    text: XmlText
    weights: Weights | None
    options: ReadOptions
    _declared: dict[tuple[bytes, bytes], Declared] = field(default_factory=dict)

    def declared(self, type: bytes, shape: bytes) -> Declared:
        """Return what `<data>` of a Const says that the index has read; equal texts are read once."""
        known = self._declared.get((type, shape))
        if known is None:
            texts = type.decode("utf-8", "replace"), shape.decode("utf-8", "replace")
            known = self._declared[type, shape] = _declared(*texts)
        return known


def _declared(type: str, shape: str | None) -> Declared:
    """Return what `<data>` of a Const or Parameter says; None for what is no type or no shape."""
    try:
        parsed = None if shape is None else parse_shape(shape)
    except ValueError:
        parsed = None
    if parsed is not None and len(parsed) > MAX_RANK:
        parsed = None
    return from_element_type(type.strip()), parsed, static(parsed)


class IrConstant(Constant):
    """A Const of an IR: a place in the `.bin`."""

    __slots__ = ("_place", "_weights")

    def __init__(
        self,
        node: "partial[Node]",
        element_type: ElementType,
        shape: tuple[int, ...],
        weights: Weights | None,
        place: tuple[int, int] | None,
    ) -> None:
        super().__init__(node, element_type, shape, self._decoded)
        self._weights = weights
        self._place = place

    def view(self) -> memoryview | None:
        """Return the bytes, None where they cannot be had."""
        if self._weights is None or self._place is None:
            return None
        return self._weights.view(*self._place)

    def _decoded(self) -> "Array | None":
        view = self.view()
        if view is None or self.element_type is None:
            return None
        return decode(view, self.element_type, self.shape)


def byte_range(layer: LayerText) -> tuple[int, int] | None:
    """Return offset and size of a Const, None unless both are numbers."""
    offset, size = (layer.attributes.get(name, "").strip().removeprefix("+") for name in ("offset", "size"))
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in (offset, size)):
        return None
    return int(offset), int(size)


def _declared_by(layer: LayerText) -> Declared:
    return _declared(layer.attributes.get("element_type", ""), layer.attributes.get("shape"))


class IrGraph(Graph):
    """The main graph of an IR, or a body; a node's handle is the key of its layer."""

    def __init__(
        self, file: IrFile, body: Body, owner: Node | None = None, outer: "IrGraph | None" = None
    ) -> None:
        self.file = file
        self.body = body
        self.owner = owner
        self.outer = outer
        self.name = body.name
        self.scope = f"{owner.scope}:{body.name}/" if owner else ""
        self._nodes: dict[bytes, Node] = {}
        self._layers: dict[bytes, LayerText] = {}
        self._values: dict[Port, Value | None] = {}
        self._bodies: dict[bytes, dict[str, IrGraph]] = {}
        self._locations: dict[bytes, Location] = {}
        self._output_ports: dict[bytes, dict[bytes, tuple[int, PortText]]] = {}

    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        """Yield every node, those of bodies included, in the order of the file."""
        lowered = None if types is None else {type.lower().encode() for type in types}
        wanted: dict[bytes, bool] = {}
        for key, (type, _, _) in self.body.layers.items():
            if type not in wanted:
                wanted[type] = lowered is None or type.lower() in lowered
            if wanted[type]:
                yield self.node(key)
            if self.body.bodies and key in self.body.bodies:
                for graph in self.graphs(key).values():
                    yield from graph.walk(types)

    def with_bodies(self) -> "Iterator[IrGraph]":
        """Yield this graph, then all graphs in it."""
        pending = [self]
        while pending:
            graph = pending.pop()
            yield graph
            inner = [body for key in graph.body.bodies for body in graph.graphs(key).values()]
            pending.extend(reversed(inner))

    def graphs(self, key: bytes) -> "dict[str, IrGraph]":
        """Return the bodies of a layer."""
        if key not in self._bodies:
            bodies = self.body.bodies.get(key, {})
            node = self.node(key)
            self._bodies[key] = {name: IrGraph(self.file, body, node, self) for name, body in bodies.items()}
        return self._bodies[key]

    def text_of(self, key: bytes) -> bytes:
        """Return the text of a layer without its bodies."""
        data, (_, start, end) = self.file.text.data, self.body.layers[key]
        if key not in self.body.bodies:
            return data[start:end]
        parts = []
        for body in self.body.bodies[key].values():
            parts.append(data[start : body.start])
            start = body.end
        return b"".join([*parts, data[start:end]])

    def element(self, key: bytes) -> Element:
        """Return all that stands in a layer but its bodies."""
        return parse_elements(self.text_of(key)).children[0]

    def layer(self, key: bytes) -> LayerText:
        """Return a layer as written."""
        layer = self._layers.get(key)
        if layer is None:
            data, (_, start, end) = self.file.text.data, self.body.layers[key]
            if key in self.body.bodies:
                data = self.text_of(key)
                start, end = 0, len(data)
            layer = self._layers[key] = parse_layer(data, start, end)
        return layer

    def type_of(self, key: bytes) -> bytes:
        """Return the type of a layer in lower case; b"" if there is no such layer."""
        span = self.body.layers.get(key)
        return b"" if span is None else span[0].lower()

    def node(self, key: bytes) -> Node:
        """Return the node of a layer."""
        node = self._nodes.get(key)
        if node is None:
            layer, type = self.layer(key), self.body.layers[key][0].decode("utf-8", "replace")
            name = layer.name or f"layer_{self.id_of(key)}"
            node = self._nodes[key] = Node(self, OPENVINO, type, layer.version, name, key)
        return node

    @staticmethod
    def id_of(key: bytes) -> str:
        """Return a layer's id as text."""
        return key.partition(b"\0")[0].decode("utf-8", "replace")

    def inputs_of(self, node: Node) -> tuple[Input, ...]:
        """Return the input ports; what feeds them is found through the edges."""
        feed, value = self.body.producers(node.handle).get, self.value
        return tuple(
            [
                Input(value(feed(port.id)), True, port.element_type, port.shape)
                for port in self.layer(node.handle).inputs
            ]
        )

    def outputs_of(self, node: Node) -> tuple[Value, ...]:
        """Return the values at the output ports."""
        key: bytes = node.handle
        return tuple([self._make_value(key, *found) for found in enumerate(self.layer(key).outputs)])

    def attributes_of(self, node: Node) -> Mapping[str, str]:
        """Return the attributes of `<data>` as text."""
        return self.layer(node.handle).attributes

    def bodies_of(self, node: Node) -> Mapping[str, Graph]:
        """Return the bodies of a node by the names of their elements."""
        return self.graphs(node.handle)

    def location_of(self, node: Node) -> Location:
        """Return the place of the layer's start tag; one object, as many findings may name a long scope."""
        key: bytes = node.handle
        if key not in self._locations:
            self._locations[key] = self.file.text.location(self.body.layers[key][1], node.scope)
        return self._locations[key]

    def keys_of(self, type: bytes) -> list[bytes]:
        """Return the keys of all layers of a type, which is written in lower case."""
        return [key for key, (written, _, _) in self.body.layers.items() if written.lower() == type]

    def tensor_names(self, key: bytes) -> dict[bytes, list[str]]:
        """Return the names of the tensors at the output ports of a layer that have some."""
        if b"names=" not in self.text_of(key):
            return {}
        ports = self.element(key).iterfind("output/port")
        return {shortest(port.get("id").encode()): split_names(port.get("names")) for port in ports}

    def parameter_names(self, key: bytes) -> frozenset[str]:
        """Return the names that a Parameter may be called by: the layer's, and those of its tensor."""
        return frozenset([self.node(key).name]).union(*self.tensor_names(key).values())

    def value(self, producer: Port | None) -> Value | None:
        """Return the value of a layer's output port, None if there is no such port."""
        if producer is None:
            return None
        try:
            return self._values[producer]
        except KeyError:
            value = self._values[producer] = self._find_value(*producer)
            return value

    def _find_value(self, key: bytes, port_id: bytes) -> Value | None:
        if key in self.body.constants and port_id == b"0" and not self.file.options.shapes:
            constant = self._indexed_constant(key)
            if constant is not None:
                return Value(
                    None, constant.element_type, constant.shape, partial(self.node, key), 0, constant
                )
        found = self.output_port(key, port_id)
        return None if found is None else self._make_value(key, *found)

    def output_port(self, key: bytes, id: bytes) -> tuple[int, PortText] | None:
        """Return an output port and its number, the first one's of equal ids."""
        if key not in self.body.layers:
            return None
        ports = self._output_ports.get(key)
        if ports is None:
            numbered = reversed([*enumerate(self.layer(key).outputs)])
            ports = self._output_ports[key] = {port.id: (number, port) for number, port in numbered}
        return ports.get(id)

    def has_output(self, key: bytes, id: bytes) -> bool:
        """Tell whether a layer has an output port."""
        return (id == b"0" and key in self.body.constants) or self.output_port(key, id) is not None

    def indexed_declaration(self, key: bytes) -> Declared:
        """Return what a Const says that the index has read."""
        type, shape, _, _ = self.body.constants[key]
        return self.file.declared(type, shape)

    def _indexed_constant(self, key: bytes) -> IrConstant | None:
        """Return a Const that the index has read, without parsing the layer.

        None if its type or shape is not known, so that what its port says counts.
        """
        element_type, _, shape = self.indexed_declaration(key)
        if shape is None or element_type is None:
            return None
        _, _, offset, size = self.body.constants[key]
        place = int(offset), int(size)
        return IrConstant(partial(self.node, key), element_type, shape, self.file.weights, place)

    def _make_value(self, key: bytes, index: int, port: PortText) -> Value:
        type = self.type_of(key)
        if type == PARAMETER:
            return self._parameter(self.node(key), port)
        element_type, shape, constant = port.element_type, port.shape, None
        if type == CONST:
            layer = self.layer(key)
            element_type, shape, known = _declared_by(layer)
            if element_type is not None and known is not None:
                node = partial(self.node, key)
                constant = IrConstant(node, element_type, known, self.file.weights, byte_range(layer))
        if self.file.options.shapes:
            propagated = self.file.options.shapes.get(self.node(key).scope, ())
            shape = propagated[index] if index < len(propagated) else shape
        return Value(
            None, element_type, shape, partial(self.node, key), index, constant, None,
            port.element_type, port.shape, type.decode("utf-8", "replace"),
        )  # fmt: skip

    def _parameter(self, node: Node, port: PortText) -> Value:
        element_type, shape, _ = _declared_by(self.layer(node.handle))
        shape = self._given_shape(node, shape)
        fed = self._fed_from_outside(node.handle)
        constant, producer, output, is_input = None, node, 0, True
        if fed is not None and agree(fed.shape, shape):
            shape = narrow(fed.shape, shape)
            constant, output, is_input = fed.constant, fed.output, fed.is_input
            producer = fed.producer or node
        return Value(
            node.name, element_type, shape, producer, output, constant, None, port.element_type,
            port.shape, is_input=is_input,
        )  # fmt: skip

    def _given_shape(self, node: Node, shape: Shape) -> Shape:
        if self.owner is None and self.file.options.input_shapes:
            for name in self.parameter_names(node.handle) & self.file.options.input_shapes.keys():
                return self.file.options.input_shapes[name]
        propagated = self.file.options.shapes.get(node.scope)
        return propagated[0] if propagated else shape

    def _fed_from_outside(self, key: bytes) -> Value | None:
        """Return the input of the owner that a Parameter is at every iteration."""
        index = self._invariant_inputs.get(key.partition(b"\0")[0])
        if index is None or self.owner is None:
            return None
        inputs = self.owner.inputs
        return inputs[index].value if index < len(inputs) else None

    @cached_property
    def _invariant_inputs(self) -> Mapping[bytes, int]:
        """The number of the owner's input by the id of the Parameter that it feeds.

        An input is invariant if the body gets it whole, and the same at every iteration: it is not
        sliced along an axis, and no back edge replaces it.
        """
        if self.owner is None or self.outer is None:
            return {}
        key: bytes = self.owner.handle
        layer = self.outer.element(key)
        numbered = reversed([*enumerate(self.outer.layer(key).inputs)])
        ports = {port.id: number for number, port in numbered}
        replaced = {id_in(edge, "to-layer") for edge in layer.iterfind("back_edges/edge")}
        found = {}
        for entry in layer.iterfind(f"{self.body.name.removesuffix('body')}port_map/input"):
            external, internal = id_in(entry, "external_port_id"), id_in(entry, "internal_layer_id")
            if "axis" not in entry.attributes and internal not in replaced and external in ports:
                found[internal] = ports[external]
        return found

    def key_of(self, node: Node, indices: int, spelled: Collection[int]) -> tuple[Hashable, list[int]] | None:
        """Tell layers apart by the texts of their ports, and of the Consts and layers that feed them."""
        layer, feed = self.layer(node.handle), self.body.producers(node.handle)
        origins = [feed.get(port.id) for port in layer.inputs]
        known: list[_Source] = []
        for origin in origins:
            source = self._source(origin)
            if source is None:
                return None
            known.append(source)
        if len(known) <= indices:
            return None
        numbers = [few_numbers(*known[place]) for place in (indices, *spelled) if place < len(known)]
        if numbers[0] is None or None in numbers:
            return None
        key = (
            node.type, node.opset, layer.inputs, layer.outputs, tuple(layer.attributes.items()),
            tuple([(type, shape, view is None) for type, shape, view in known]), repr(numbers[1:]),
            tuple(map(origins.index, origins)) if len({*origins}) < len(origins) else (),
        )  # fmt: skip
        return key, numbers[0]

    def _source(self, origin: Port | None) -> _Source | None:
        """Return what feeds an input; None if what stands in front may tell more of its shape."""
        weights = self.file.weights
        if origin is None or self.file.options.shapes or not self._scatters:
            return None
        key, id = origin
        if key in self.body.constants:
            element_type, _, shape = self.indexed_declaration(key)
            if id != b"0" or element_type is None or shape is None or weights is None:
                return None
            _, _, offset, size = self.body.constants[key]
            return element_type, shape, partial(weights.view, int(offset), int(size))
        found = self.output_port(key, id)
        if found is None or self.type_of(key) in {CONST, PARAMETER, *self._scatters}:
            return None
        port = found[1]
        if port.element_type is None or not is_static(port.shape):
            return None
        return port.element_type, port.shape, None

    @cached_property
    def _scatters(self) -> frozenset[bytes]:
        return frozenset(type.lower().encode() for type in self.file.options.scatter_types)


def id_in(element: Element, name: str) -> bytes:
    """Return an id that an attribute names."""
    return shortest(element.get(name).encode())
