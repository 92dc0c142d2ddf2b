"""The graph of an IR: nodes and values are created from its index on first access.

The key of a layer identifies it within its body, see `index.Body`.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import TypeAlias

from ir_scatter.core.diagnostics import Location, Part, Span
from ir_scatter.core.element_types import ElementType, from_element_type
from ir_scatter.core.model import OPENVINO, Graph, Input, Node, Value
from ir_scatter.core.shapes import MAX_RANK, Shape, agree, is_static, narrow, parse_shape
from ir_scatter.core.tensors import Constant, Weights, few_numbers
from ir_scatter.formats.base import ReadOptions
from ir_scatter.formats.openvino.index import Body
from ir_scatter.formats.openvino.layers import LayerPlaces, LayerText, PortText, parse_layer, split_names
from ir_scatter.formats.openvino.xml_text import XmlElement, XmlText, decoded, parse_elements

CONST = b"const"
PARAMETER = b"parameter"
RESULT = b"result"
ASSIGN = b"assign"
BODIES = {b"if": ("then_", "else_"), b"loop": ("",), b"tensoriterator": ("",)}
"""Layer types with bodies, and the prefixes of their body and port map elements: "then_" in "then_body"."""

_SINKS = frozenset({b"Result", b"Assign"})
"""Types of layers that OpenVINO keeps together with all layers upstream; the case matters."""

Port: TypeAlias = tuple[bytes, bytes]
"""An output port: the key of a layer, and the id of the port."""

_Source: TypeAlias = tuple[ElementType, Shape, Callable[[], memoryview | None] | None]
"""Element type and shape of the value at an input; for a Const also a function that returns its bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class IrFile:
    """The data that all graphs of a file share. `weights` is None if the model came from a stream."""

    text: XmlText
    weights: Weights | None
    options: ReadOptions


@lru_cache(1 << 10)
def _parse_declaration(type: bytes, shape: bytes | None) -> tuple[ElementType | None, Shape]:
    """Return element type and shape from the `<data>` of a Const or Parameter; None if invalid."""
    try:
        parsed = None if shape is None else parse_shape(decoded(shape))
    except ValueError:
        parsed = None
    too_many = parsed is not None and len(parsed) > MAX_RANK
    return from_element_type(decoded(type).strip()), None if too_many else parsed


def byte_range(layer: LayerText) -> tuple[int, int] | None:
    """Return (offset, size) of a Const; None if one of them is not a number."""
    offset, size = (layer.attributes.get(name, "").lstrip().removeprefix("+") for name in ("offset", "size"))
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in (offset, size)):
        return None
    return int(offset), int(size)


class IrGraph(Graph):
    """The main graph of an IR, or a body. A node's handle is its layer's key in the index.

    `output_ports` maps the ids of a layer's output ports to their positions; among equal ids the first
    counts. `value` returns the value of an output port, or None if the port does not exist.
    """

    def __init__(
        self, file: IrFile, body: Body, owner: Node | None = None, outer: "IrGraph | None" = None
    ) -> None:
        self.file = file
        self.body = body
        self.owner = owner
        self.outer = outer
        self.name = body.name
        self.scope = f"{owner.scope}:{body.name}/" if owner else ""
        self.graphs: Callable[[bytes], dict[str, IrGraph]] = cache(self._make_graphs)
        self.layer: Callable[[bytes], LayerText] = cache(lambda key: parse_layer(self.text_of(key)))
        self.node: Callable[[bytes], Node] = cache(self._make_node)
        self.value: Callable[[Port | None], Value | None] = cache(self._find_value)
        self._location: Callable[[bytes], Location] = cache(
            lambda key: file.text.location(body.layers[key][1], self.node(key).scope)
        )
        self.output_ports: Callable[[bytes], dict[bytes, int]] = cache(self._number_outputs)
        self.places: Callable[[bytes], LayerPlaces] = cache(lambda key: LayerPlaces(self.text_of(key)))

    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        lower_types = None if types is None else {type.lower().encode() for type in types}
        for key, (type, _, _) in self.body.layers.items():
            if lower_types is None or type.lower() in lower_types:
                yield self.node(key)
            if self.body.bodies and key in self.body.bodies:
                for graph in self.graphs(key).values():
                    yield from graph.walk(types)

    def with_bodies(self) -> "Iterator[IrGraph]":
        """Yield this graph, then the graphs of all nested bodies."""
        pending = [self]
        while pending:
            graph = pending.pop()
            yield graph
            inner = [body for key in graph.body.bodies for body in graph.graphs(key).values()]
            pending.extend(reversed(inner))

    def is_dropped(self, node: Node) -> bool:
        """Return whether OpenVINO removes a layer because no Result or Assign depends on it.

        In a graph without Result and Assign all layers stay.
        """
        is_outer_dropped = self.owner is not None and self.owner.graph.is_dropped(self.owner)
        return is_outer_dropped or node.handle not in self._needed

    @cached_property
    def _needed(self) -> Collection[bytes]:
        pending = [
            key for key, (type, _, _) in self.body.layers.items() if type in _SINKS and b"\0" not in key
        ]
        if not pending:
            return self.body.layers
        needed = {key for key in self.keys_of(PARAMETER) if b"\0" not in key}
        while pending:
            key = pending.pop()
            if key not in needed:
                needed.add(key)
                pending.extend(edge[0] for edge in self.body.edges.get(key, ()))
        return needed

    @cached_property
    def upstream_of_scatter(self) -> Collection[bytes]:
        """Keys of the layers upstream of scatter layers.

        A layer with a scatter layer in a body is included. In such a body, all layers upstream of a Result
        are included too: a loop carries results to its next iteration, and a branch is refused as a whole.
        """
        keys, edges, pending = {*self._holders}, self.body.edges, [*self._holders, *self._scatter_keys]
        if (
            self.owner is not None
            and self.outer is not None
            and self.owner.handle in self.outer.upstream_of_scatter
        ):
            pending += self.keys_of(RESULT)
        while pending:
            for edge in edges.get(pending.pop(), ()):
                if edge[0] not in keys:
                    keys.add(edge[0])
                    pending.append(edge[0])
        return keys & self.body.layers.keys()

    @cached_property
    def nonconstant(self) -> Collection[bytes]:
        """Keys of the layers whose values may differ between runs.

        These are layers without inputs, except constants, and all layers downstream of them.
        """
        consumers: dict[bytes, list[bytes]] = {}
        for to, fed in self.body.edges.items():
            for edge in fed:
                consumers.setdefault(edge[0], []).append(to)
        constants, edges = self.body.constants, self.body.edges
        pending = [key for key in self.body.layers if key not in edges and key not in constants]
        keys = {*pending}
        while pending:
            new = {to for to in consumers.get(pending.pop(), ()) if to not in keys}
            keys |= new
            pending += new
        return keys

    @cached_property
    def _scatter_keys(self) -> Sequence[bytes]:
        scatters = self._scatters
        return [key for key, (type, _, _) in self.body.layers.items() if type.lower() in scatters]

    @cached_property
    def _holders(self) -> Sequence[bytes]:
        """Keys of the layers with scatter layers in their bodies."""
        graphs = ((key, self.graphs(key).values()) for key in self.body.bodies)
        return [key for key, bodies in graphs if any(body._scatter_keys or body._holders for body in bodies)]

    def _make_graphs(self, key: bytes) -> "dict[str, IrGraph]":
        bodies = self.body.bodies.get(key, {})
        return {name: IrGraph(self.file, body, self.node(key), self) for name, body in bodies.items()}

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

    def element(self, key: bytes) -> XmlElement:
        """Return a layer as a parsed element without its bodies."""
        return parse_elements(self.text_of(key)).children[0]

    def is_scatter(self, key: bytes) -> bool:
        return self.type_of(key) in self._scatters

    def type_of(self, key: bytes) -> bytes:
        """Return the type of a layer in lower case; b"" if the layer does not exist."""
        span = self.body.layers.get(key)
        return b"" if span is None else span[0].lower()

    def _make_node(self, key: bytes) -> Node:
        layer, type = self.layer(key), decoded(self.body.layers[key][0])
        return Node(self, OPENVINO, type, layer.version, layer.name or f"layer_{self.id_of(key)}", key)

    @staticmethod
    def id_of(key: bytes) -> str:
        return decoded(key.partition(b"\0")[0])

    def inputs_of(self, node: Node) -> tuple[Input, ...]:
        feed, value = self.body.producers(node.handle).get, self.value
        return tuple(
            [
                Input(value(feed(port.id)), True, port.element_type, port.shape)
                for port in self.layer(node.handle).inputs
            ]
        )

    def outputs_of(self, node: Node) -> tuple[Value, ...]:
        """Return the values at the output ports, the same objects that consumers get.

        The value of a Const is an exception: here it has the type and shape of the port, for consumers those
        of the declaration.
        """
        key, numbers = node.handle, self.output_ports(node.handle)
        is_const, outputs = self.type_of(key) == CONST, list[Value]()
        for number, port in enumerate(self.layer(key).outputs):
            is_read = not is_const and numbers[port.id] == number  # otherwise an earlier port has the same id
            value = self.value((key, port.id)) if is_read else None
            outputs.append(value or self._make_value(key, number, port))
        return tuple(outputs)

    def attributes_of(self, node: Node) -> Mapping[str, str]:
        return self.layer(node.handle).attributes

    def bodies_of(self, node: Node) -> Mapping[str, Graph]:
        return self.graphs(node.handle)

    def location_of(self, node: Node) -> Location:
        """Return the place of the layer's start tag. Cached, since many diagnostics share a long scope."""
        return self._location(node.handle)

    def span_of(self, node: Node, part: Part) -> Span:
        """Return the place of a part of a layer; if it is missing, of the element that should contain it."""
        key = node.handle
        is_declaring = self.type_of(key) in {CONST, PARAMETER}
        return self.span(key, self.places(key).find(part, is_declaring=is_declaring))

    def span(self, key: bytes, place: tuple[int, int]) -> Span:
        """Convert a range of `text_of(key)`, which omits bodies, to a range of the file."""
        start, last = place[0], place[1] - 1
        for body in self.body.bodies.get(key, {}).values():
            first = body.start - self.body.layers[key][1]
            start += (body.end - body.start) * (start >= first)
            last += (body.end - body.start) * (last >= first)
        begin = self.body.layers[key][1]
        return self.file.text.span(begin + start, begin + last + 1)

    def keys_of(self, type: bytes) -> list[bytes]:
        """Return the keys of all layers of a type, given in lower case."""
        return [key for key, (written, _, _) in self.body.layers.items() if written.lower() == type]

    def tensor_names(self, key: bytes) -> dict[bytes, list[str]]:
        """Return the tensor names of a layer's outputs, by port id."""
        if b"names=" not in self.text_of(key):
            return {}
        ports = self.element(key).iterfind("output/port")
        return {port.id("id"): split_names(port.get("names")) for port in ports}

    def parameter_names(self, key: bytes) -> frozenset[str]:
        """Return the name of a Parameter and all names of its tensor."""
        return frozenset([self.node(key).name]).union(*self.tensor_names(key).values())

    def _find_value(self, producer: Port | None) -> Value | None:
        if producer is None:
            return None
        key, id = producer
        if id == b"0" and key in self.body.constants and not self.file.options.shapes:
            value = self._make_value(key, 0, None)
            if value.constant is not None:  # without a known type and shape, use those of the port
                return value
        number = self.output_ports(key).get(id)
        return None if number is None else self._make_value(key, number, self.layer(key).outputs[number])

    def _number_outputs(self, key: bytes) -> dict[bytes, int]:
        outputs = self.layer(key).outputs if key in self.body.layers else ()
        return {port.id: number for number, port in reversed([*enumerate(outputs)])}

    def declared(self, key: bytes) -> tuple[ElementType | None, Shape, tuple[int, int] | None]:
        """Return (element type, shape, byte range) declared in the `<data>` of a Const or Parameter."""
        if key in self.body.constants:
            type, shape, offset, size = self.body.constants[key]
            return *_parse_declaration(type, shape), (int(offset), int(size))
        layer = self.layer(key)
        written, text = layer.attributes.get("element_type", ""), layer.attributes.get("shape")
        # OpenVINO reads a Parameter without a shape as a scalar
        text = "" if text is None and self.type_of(key) == PARAMETER else text
        return *_parse_declaration(written.encode(), None if text is None else text.encode()), byte_range(
            layer
        )

    def _make_value(self, key: bytes, index: int, port: PortText | None) -> Value:
        type, node = self.type_of(key), partial(self.node, key)
        stored_type, stored_shape = (port.element_type, port.shape) if port else (None, None)
        if type == PARAMETER:
            return self._parameter(node(), stored_type, stored_shape)
        element_type, shape, constant = stored_type, stored_shape, None
        if type == CONST:
            element_type, shape, place = self.declared(key)
            if element_type is not None and is_static(shape):
                weights = self.file.weights
                view = None if weights is None or place is None else partial(weights.view, *place)
                constant = Constant(node, element_type, shape, view=view)
        if self.file.options.shapes:
            propagated = self.file.options.shapes.get(self.node(key).scope, ())
            shape = propagated[index] if index < len(propagated) else shape
        written = stored_type, stored_shape, decoded(type)
        return Value(None, element_type, shape, node, index, constant, None, *written)

    def _parameter(self, node: Node, stored_type: ElementType | None, stored_shape: Shape) -> Value:
        options = self.file.options
        element_type, shape, _ = self.declared(node.handle)
        shape = next(iter(options.shapes.get(node.scope, ())), shape)
        if self.owner is None and options.input_shapes:
            for name in self.parameter_names(node.handle) & options.input_shapes.keys():
                shape = options.input_shapes[name]
        fed = self._invariant_inputs.get(node.handle.partition(b"\0")[0])
        constant, producer, output, is_input = None, node, 0, True
        if fed is not None and agree(fed.shape, shape):
            shape = narrow(fed.shape, shape)
            constant, output, is_input = fed.constant, fed.output, fed.is_input
            producer = fed.producer or node
        facts = node.name, element_type, shape, producer, output, constant
        return Value(*facts, None, stored_type, stored_shape, is_input=is_input)

    @cached_property
    def _invariant_inputs(self) -> Mapping[bytes, Value | None]:
        """Loop inputs that are the same in every iteration, by the id of their Parameter in the body.

        These are inputs that are not sliced along an axis and have no back edge.
        """
        if self.owner is None or self.outer is None:
            return {}
        layer = self.outer.element(self.owner.handle)
        fed = zip(self.outer.layer(self.owner.handle).inputs, self.owner.inputs, strict=True)
        ports = {port.id: input.value for port, input in reversed([*fed])}
        replaced = {edge.id("to-layer") for edge in layer.iterfind("back_edges/edge")}
        values = {}
        for entry in layer.iterfind(f"{self.body.name.removesuffix('body')}port_map/input"):
            external, internal = entry.id("external_port_id"), entry.id("internal_layer_id")
            if "axis" not in entry.attributes and internal not in replaced and external in ports:
                values[internal] = ports[external]
        return values

    def key_of(self, node: Node, indices: int, spelled: Collection[int]) -> tuple[Hashable, list[int]] | None:
        """Return (key, index values) of a scatter layer; None if this quick test cannot decide.

        Layers with equal keys differ only in names and index values. The key consists of attributes, ports,
        and element types and shapes of the inputs. `indices` is the number of the indices input; constants at
        the inputs `spelled` are part of the key with their elements.
        """
        layer, feed = self.layer(node.handle), self.body.producers(node.handle)
        origins = [feed.get(port.id) for port in layer.inputs]
        sources: list[_Source] = []
        for origin in origins:
            source = self._source(origin)
            if source is None:
                return None
            sources.append(source)
        if len(sources) <= indices:
            return None
        numbers = [few_numbers(*sources[place]) for place in (indices, *spelled) if place < len(sources)]
        if numbers[0] is None or None in numbers:
            return None
        key = (
            node.type, node.opset, layer.inputs, layer.outputs, tuple(layer.attributes.items()),
            tuple([(type, shape, view is None) for type, shape, view in sources]), repr(numbers[1:]),
            tuple(map(origins.index, origins)) if len({*origins}) < len(origins) else (),
        )  # fmt: skip
        return key, numbers[0]

    def _source(self, origin: Port | None) -> _Source | None:
        """Return the source of an input; None if its shape may depend on layers further upstream."""
        weights = self.file.weights
        if origin is None or self.file.options.shapes or not self._scatters:
            return None
        key, id = origin
        if key in self.body.constants:
            element_type, shape, place = self.declared(key)
            if id != b"0" or element_type is None or not is_static(shape) or weights is None or place is None:
                return None
            return element_type, shape, partial(weights.view, *place)
        number = self.output_ports(key).get(id)
        if number is None or self.type_of(key) in {CONST, PARAMETER, *self._scatters}:
            return None
        port = self.layer(key).outputs[number]
        if port.element_type is None or not is_static(port.shape):
            return None
        return port.element_type, port.shape, None

    @cached_property
    def _scatters(self) -> frozenset[bytes]:
        return frozenset(type.lower().encode() for type in self.file.options.scatter_types)
