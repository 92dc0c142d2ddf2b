"""The graph of an IR: nodes and values made from its index when somebody asks for them."""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from functools import cached_property, partial

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import OPENVINO, Graph, Input, Node, Value
from ir_scatter.core.shapes import Shape, agree, is_static, narrow, static
from ir_scatter.core.tensors import Constant, few_numbers
from ir_scatter.formats.openvino.bodies import InvariantInputs, text_without_bodies
from ir_scatter.formats.openvino.file import CONST, PARAMETER, IrConstant, IrFile, byte_range, declared_by
from ir_scatter.formats.openvino.index import Body
from ir_scatter.formats.openvino.layers import LayerText, PortText, tensor_names

_FEW = 8

_Source = tuple[ElementType, Shape, Callable[[], memoryview | None] | None]
"""Type and shape of what feeds an input, and what gives its bytes if it is a Const."""


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
        self._values: dict[tuple[bytes, bytes], Value | None] = {}
        self._bodies: dict[bytes, dict[str, IrGraph]] = {}
        self._locations: dict[bytes, Location] = {}
        self._numbered_ports: dict[bytes, dict[bytes, tuple[int, PortText]]] = {}

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

    def graphs(self, key: bytes) -> "dict[str, IrGraph]":
        """Return the bodies of a layer."""
        if key not in self._bodies:
            bodies = self.body.bodies.get(key, {})
            node = self.node(key)
            self._bodies[key] = {name: IrGraph(self.file, body, node, self) for name, body in bodies.items()}
        return self._bodies[key]

    def layer(self, key: bytes) -> LayerText:
        """Return a layer as written."""
        layer = self._layers.get(key)
        if layer is None:
            data, parser = self.file.text.data, self.file.layers
            _, start, end = self.body.layers[key]
            if key in self.body.bodies:
                text = text_without_bodies(data, start, end, self.body.bodies[key].values())
                layer = parser.parse(text, 0, len(text))
            else:
                layer = parser.parse(data, start, end)
            self._layers[key] = layer
        return layer

    def node(self, key: bytes) -> Node:
        """Return the node of a layer."""
        node = self._nodes.get(key)
        if node is None:
            type, start, end = self.body.layers[key]
            head = None
            if key not in self._layers:
                head = self.file.layers.head(self.file.text.data, start, end)
            if head is None:
                layer = self.layer(key)
                head = layer.name, layer.version
            name = head[0] or f"layer_{self.id_of(key)}"
            node = Node(self, OPENVINO, type.decode("utf-8", "replace"), head[1], name, key)
            self._nodes[key] = node
        return node

    @staticmethod
    def id_of(key: bytes) -> str:
        """Return a layer's id as text."""
        return key.partition(b"\0")[0].decode("utf-8", "replace")

    def inputs_of(self, node: Node) -> tuple[Input, ...]:
        """Return the input ports; what feeds them is found through the edges."""
        producers = self.body.producers(node.handle)
        value = self.value
        return tuple(
            [
                Input(value(producers.get(port.id)), True, port.element_type, port.shape)
                for port in self.layer(node.handle).inputs
            ]
        )

    def outputs_of(self, node: Node) -> tuple[Value, ...]:
        """Return the values at the output ports."""
        key: bytes = node.handle
        ports = self.layer(key).outputs
        return tuple([self._make_value(key, index, port) for index, port in enumerate(ports)])

    def attributes_of(self, node: Node) -> Mapping[str, str]:
        """Return the attributes of `<data>` as text."""
        return self.layer(node.handle).attributes

    def bodies_of(self, node: Node) -> Mapping[str, Graph]:
        """Return the bodies of a node by the names of their elements."""
        return self.graphs(node.handle)

    def location_of(self, node: Node) -> Location:
        """Return the place of the layer's start tag."""
        key: bytes = node.handle
        if key not in self._locations:
            self._locations[key] = self.file.text.location(self.body.layers[key][1], node.scope)
        return self._locations[key]

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

    def _source(self, origin: tuple[bytes, bytes] | None) -> _Source | None:
        """Return what feeds an input; None if what stands in front may tell more of its shape."""
        if origin is None or self.file.shapes or not self.file.scatter_types:
            return None
        key, id = origin
        if key in self.body.constants and id == b"0":
            type, text, offset, size = self.body.constants[key]
            element_type, _, shape = self.file.declared(type, text)
            if element_type is None or shape is None or self.file.weights is None:
                return None
            return element_type, shape, partial(self.file.weights.view, int(offset), int(size))
        type = self.body.layers[key][0].lower() if key in self.body.layers else CONST
        if type in (CONST, PARAMETER) or type in self.file.scatter_types:
            return None
        found = self.output_port(key, id)
        if found is None or found[1].element_type is None or not is_static(found[1].shape):
            return None
        return found[1].element_type, found[1].shape, None

    def parameter_names(self) -> Iterator[frozenset[str]]:
        """Yield the names of every Parameter: the layer's, and those of its tensor."""
        for key, (type, _, _) in self.body.layers.items():
            if type.lower() == PARAMETER:
                yield self._names(key)

    def _names(self, key: bytes) -> frozenset[str]:
        _, start, end = self.body.layers[key]
        return frozenset({self.node(key).name, *tensor_names(self.file.text.data[start:end])})

    def value(self, producer: tuple[bytes, bytes] | None) -> Value | None:
        """Return the value of a layer's output port, None if there is no such port."""
        if producer is None:
            return None
        if producer not in self._values:
            self._values[producer] = self._find_value(*producer)
        return self._values[producer]

    def _find_value(self, key: bytes, port_id: bytes) -> Value | None:
        if key in self.body.constants and port_id == b"0" and not self.file.shapes:
            value = self._quick_constant(key)
            if value is not None:
                return value
        if key not in self.body.layers:
            return None
        found = self.output_port(key, port_id)
        return None if found is None else self._make_value(key, *found)

    def output_port(self, key: bytes, id: bytes) -> tuple[int, PortText] | None:
        """Return an output port and its number, the first one's of equal ids."""
        numbered = self._numbered_ports.get(key)
        if numbered is None:
            ports = self._output_ports(key)
            if len(ports) <= _FEW:
                return next(((number, port) for number, port in enumerate(ports) if port.id == id), None)
            numbered = {port.id: (number, port) for number, port in reversed([*enumerate(ports)])}
            self._numbered_ports[key] = numbered
        return numbered.get(id)

    def _output_ports(self, key: bytes) -> tuple[PortText, ...]:
        if key in self._layers or key in self.body.bodies:
            return self.layer(key).outputs
        _, start, end = self.body.layers[key]
        return self.file.layers.outputs(self.file.text.data, start, end)

    def has_output(self, key: bytes, id: bytes) -> bool:
        """Tell whether a layer has an output port."""
        if key in self.body.constants and id == b"0":
            return True
        return key in self.body.layers and self.output_port(key, id) is not None

    def _quick_constant(self, key: bytes) -> Value | None:
        """Make the value of a Const that the index has read, without parsing the layer.

        None if its type or shape is not known, so that what its port says counts.
        """
        type, text, offset, size = self.body.constants[key]
        element_type, shape, known = self.file.declared(type, text)
        if known is None or element_type is None:
            return None
        node = partial(self.node, key)
        constant = IrConstant(node, element_type, known, self.file.weights, (int(offset), int(size)))
        return Value(None, element_type, shape, node, 0, constant)

    def _make_value(self, key: bytes, index: int, port: PortText) -> Value:
        type = self.body.layers[key][0].lower()
        if type == PARAMETER:
            return self._parameter(self.node(key), port)
        element_type, shape, constant = port.element_type, port.shape, None
        if type == CONST:
            layer = self.layer(key)
            element_type, shape = declared_by(layer)
            constant = self._constant(key, element_type, static(shape), byte_range(layer))
        if self.file.shapes:
            propagated = self.file.shapes.get(self.node(key).scope, ())
            shape = propagated[index] if index < len(propagated) else shape
        return Value(
            None, element_type, shape, partial(self.node, key), index, constant, None,
            port.element_type, port.shape, type.decode("utf-8", "replace"),
        )  # fmt: skip

    def _parameter(self, node: Node, port: PortText) -> Value:
        element_type, shape = declared_by(self.layer(node.handle))
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
        if self.owner is None and self.file.input_shapes:
            for name in self._names(node.handle) & self.file.input_shapes.keys():
                return self.file.input_shapes[name]
        propagated = self.file.shapes.get(node.scope)
        return propagated[0] if propagated else shape

    @cached_property
    def _invariant_inputs(self) -> Mapping[str, int]:
        """The inputs of the owner that a Parameter of this body is at every iteration."""
        if self.owner is None or self.outer is None:
            return {}
        return InvariantInputs(self.outer, self.owner.handle, self.body.name).by_layer_id()

    def _fed_from_outside(self, key: bytes) -> Value | None:
        index = self._invariant_inputs.get(self.id_of(key))
        if index is None or self.owner is None:
            return None
        inputs = self.owner.inputs
        return inputs[index].value if index < len(inputs) else None

    def _constant(
        self,
        key: bytes,
        element_type: ElementType | None,
        shape: tuple[int, ...] | None,
        place: tuple[int, int] | None,
    ) -> Constant | None:
        if shape is None or element_type is None:
            return None
        return IrConstant(partial(self.node, key), element_type, shape, self.file.weights, place)
