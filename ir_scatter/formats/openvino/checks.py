"""Whether the parts of an IR fit together: ids, ports, edges, cycles, constants and their bytes."""

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import from_element_type, is_dynamic_word
from ir_scatter.core.model import Defect
from ir_scatter.core.shapes import MAX_RANK, counted, element_count, parse_shape
from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.openvino.graph import CONST, PARAMETER, IrGraph, byte_range
from ir_scatter.formats.openvino.index import Body, Edge, edge_places
from ir_scatter.formats.openvino.xml_text import shown

_PORT = re.compile(rb'<port id="(0|[1-9]\d*)"')
_BAD_DIM = re.compile(rb"<dim(?!>(?:-1|\d{1,18})</dim>)")
_NODES_NAMED = 5
_NAME_LIMIT = 200
_FEW = 8


def find_defects(graph: IrGraph) -> Iterator[Defect]:
    """Yield what is broken in the file itself, body by body, then what is wrong with constants."""
    for body in graph.with_bodies():
        yield from _Structure(body).defects()
    yield from _Constants(graph).defects()


class _Ports(NamedTuple):
    """The ids of a layer's ports.

    Attributes:
        inputs: in the order of the file.
        outputs: quick to search.
        repeated: how often an id is used that is used more than once, those of inputs first.
    """

    inputs: tuple[bytes, ...]
    outputs: Collection[bytes]
    repeated: tuple[tuple[bytes, int], ...] = ()


class _Structure:
    """Holds the ids, ports and edges of one body against each other."""

    def __init__(self, graph: IrGraph) -> None:
        self.graph = graph
        self.body: Body = graph.body
        self.data = graph.file.text.data
        self.ports: dict[bytes, _Ports] = {}
        self.has_bad_numbers = False

    def defects(self) -> Iterator[Defect]:
        """Yield the defects of this body."""
        yield from self._ids()
        yield from self._types()
        is_sound = self._is_sound()
        if self.has_bad_numbers:
            yield from self._port_numbers()
        if is_sound:
            return
        for key in self.body.layers:
            yield from self._layer(key)
        for to, fed in self.body.edges.items():
            for edge in fed if to not in self.body.layers else ():
                message = f"an edge goes to layer {_text(to)}, which does not exist"
                yield Defect("dangling-edge", message, self._edge_location(edge))
        yield from self._cycles()

    def _defect(self, kind: str, message: str, key: bytes, port: int | None = None) -> Defect:
        node = self.graph.node(key)
        return Defect(kind, message, node.location, node, port)

    def _ids(self) -> Iterator[Defect]:
        for key in self.body.repeated_layers:
            repeated = _text(key.partition(b"\0")[0])
            yield self._defect("duplicate-id", f"layer id {repeated} is used twice, expected once", key)
        for key in self.body.layers:
            if not _is_number(key) and b"\0" not in key:
                id = shown(self.graph.id_of(key))
                yield self._defect("bad-number", f"layer id is {id!r}, expected a number", key)

    def _port_numbers(self) -> Iterator[Defect]:
        for key in self.body.layers:
            layer = self.graph.layer(key)
            for port in (*layer.inputs, *layer.outputs):
                if not _is_number(port.id):
                    id = shown(port.id.decode("utf-8", "replace"))
                    yield self._defect("bad-number", f"port id is {id!r}, expected a number", key)
                for text in port.bad_dims:
                    found = f"a dimension of port {_text(port.id)} is {shown(text)!r}"
                    yield self._defect("bad-number", f"{found}, expected a number >= -1", key)

    def _types(self) -> Iterator[Defect]:
        for key, (type, _, _) in self.body.layers.items():
            if type == b"Constant":
                message = "the type is 'Constant', expected 'Const': OpenVINO's process ends here"
                yield self._defect("unknown-type", message, key)
            elif not type:
                yield self._defect("unknown-type", "the layer has no type, expected one", key)

    def _is_sound(self) -> bool:
        """Collect the ports, and tell whether every edge fits and comes from a layer before."""
        counted = self._counted_ports()
        return (counted is not None and self._fit(counted)) or self._fit(self._listed_ports())

    def _fit(self, layers: Iterable[tuple[bytes, _Ports]]) -> bool:
        edges, collected = self.body.edges, self.ports
        collected.clear()
        is_sound, seen = not self.body.repeated_layers, 0
        for key, ports in layers:
            fed = edges.get(key)
            if fed is None:
                is_sound = is_sound and not ports.inputs
            else:
                seen += 1
                is_sound = is_sound and not ports.repeated and self._fits(fed, ports)
            collected[key] = ports
        return is_sound and seen == len(edges)

    def _counted_ports(self) -> list[tuple[bytes, _Ports]] | None:
        """Return the ports of the layers by counting them; None if that does not tell their ids.

        Where every layer numbers its ports from 0 on, inputs first, counts say everything. A
        section that is written in an unusual way is counted wrongly; its edges then do not fit.
        """
        data, find, count = self.data, self.data.find, self.data.count
        if (
            self.body.bodies
            or self.graph.file.text.has_asides
            or _BAD_DIM.search(data, self.body.start, self.body.end)
        ):
            return None
        found: list[tuple[bytes, _Ports]] = []
        expected: list[bytes] = []
        known: dict[tuple[int, int], tuple[_Ports, list[bytes]]] = {}
        for key, (_, start, end) in self.body.layers.items():
            middle = find(b"<output>", start, end)
            middle = end if middle < 0 else middle
            counts = count(b"<port", start, middle), count(b"<port", middle, end)
            if counts not in known:
                ids = [b"%d" % number for number in range(sum(counts))]
                ports = _Ports(tuple(ids[: counts[0]]), _searchable(ids[counts[0] :]))
                known[counts] = ports, ids
            ports, ids = known[counts]
            expected += ids
            found.append((key, ports))
        written = _PORT.findall(data, self.body.start, self.body.end)
        return found if written == expected else None

    def _listed_ports(self) -> Iterator[tuple[bytes, _Ports]]:
        """Yield the ports of the layers by parsing each layer."""
        for key in self.body.layers:
            layer = self.graph.layer(key)
            for port in (*layer.inputs, *layer.outputs):
                if port.bad_dims or not _is_number(port.id):
                    self.has_bad_numbers = True
            inputs = tuple(port.id for port in layer.inputs)
            outputs = tuple(port.id for port in layer.outputs)
            yield key, _Ports(inputs, _searchable(outputs), (*_repeated(inputs), *_repeated(outputs)))

    def _fits(self, fed: list[Edge], ports: _Ports) -> bool:
        """Tell whether the edges into a layer feed each input once, from layers already seen."""
        inputs = _searchable(ports.inputs)
        if len(fed) != len(inputs) or (len(fed) > 1 and len({edge[3] for edge in fed}) != len(fed)):
            return False
        for origin, port, _, to_port in fed:
            producer = self.ports.get(origin)
            if producer is None or port not in producer[1] or to_port not in inputs:
                return False
        return True

    def _layer(self, key: bytes) -> Iterator[Defect]:
        """Yield what is wrong with the ports of a layer and the edges into it."""
        ports = self.ports[key]
        for id, count in ports.repeated:
            message = f"port id {_text(id)} is used {count} times, expected once"
            yield self._defect("duplicate-id", message, key)
        if b"\0" in key:
            return
        fed = self.body.edges.get(key, [])
        counts = Counter(edge[3] for edge in fed)
        for index, id in enumerate(ports.inputs):
            if counts[id] != 1:
                found = "no edge goes" if counts[id] == 0 else f"{counts[id]} edges go"
                kind = "duplicate-edge" if counts[id] else "unconnected-input"
                yield self._defect(kind, f"{found} to port {_text(id)}, expected one", key, index)
        indices = {id: index for index, id in enumerate(ports.inputs)}
        for edge in fed:
            yield from self._edge(edge, indices)

    def _edge(self, edge: Edge, indices: Mapping[bytes, int]) -> Iterator[Defect]:
        """Yield what is wrong with the two ends of an edge."""
        origin, port, to, to_port = edge
        if to_port not in indices:
            node = self.graph.node(to)
            message = f"an edge goes to port {_text(to_port)} of {_name(node.name)}, which has no such input"
            yield Defect("unknown-port", message, self._edge_location(edge), node)
        producer = self.ports.get(origin)
        if producer is not None and port in producer.outputs:
            return
        missing = f"layer {_text(origin)}"
        if producer is not None:
            missing = f"port {_text(port)} of {missing}"
        message = f"port {_text(to_port)} is fed by {missing}, which does not exist"
        yield self._defect("unknown-value", message, to, indices.get(to_port))

    def _edge_location(self, edge: Edge) -> Location:
        return self.graph.file.text.location(self._edge_starts[edge], self.graph.scope.rstrip("/"))

    @cached_property
    def _edge_starts(self) -> dict[Edge, int]:
        """The first byte of every edge, the first one's for equal edges."""
        return {place.edge: place.start for place in reversed([*edge_places(self.data, self.body)])}

    def _cycles(self) -> Iterator[Defect]:
        predecessors = {key: [edge[0] for edge in self.body.edges.get(key, ())] for key in self.body.layers}
        for cycle in find_cycles(predecessors):
            names = ", ".join(_name(self.graph.node(key).name) for key in cycle[:_NODES_NAMED])
            more = f" and {len(cycle) - _NODES_NAMED} more" if len(cycle) > _NODES_NAMED else ""
            message = f"layers depend on each other in a cycle: {names}{more}"
            yield self._defect("cycle", message, cycle[0])


class _Constants:
    """Looks at every Const and Parameter of a graph and its bodies; equal declarations are judged once."""

    def __init__(self, graph: IrGraph) -> None:
        self.graph = graph
        self.weights = graph.file.weights
        self.available = None if self.weights is None else self.weights.size
        self.count = 0
        self._needed: dict[tuple[bytes, bytes], int | None] = {}

    def defects(self) -> Iterator[Defect]:
        """Yield the defects, the missing `.bin` last."""
        for graph in self.graph.with_bodies():
            constants = graph.body.constants
            yield from self._indexed(graph)
            for key, (type, _, _) in graph.body.layers.items():
                if type.lower() in {CONST, PARAMETER} and key not in constants:
                    yield from self._declared(graph, key)
        if self.count and self.available is None:
            yield self._missing()

    def _indexed(self, graph: IrGraph) -> Iterator[Defect]:
        """Check the Consts that the index has read."""
        end = sys.maxsize if self.available is None else self.available
        for key, (type, shape, offset, size) in graph.body.constants.items():
            if (type, shape) not in self._needed:
                texts = type.decode("utf-8", "replace"), shape.decode("utf-8", "replace")
                self._needed[type, shape] = _needed_bytes(*texts)
            needed, first, length = self._needed[type, shape], int(offset), int(size)
            if needed is None:
                yield from self._declared(graph, key)
            elif length < needed or first + length > end:
                yield from self._place(graph, key, first, length, needed)
            else:
                self.count += 1

    def _declared(self, graph: IrGraph, key: bytes) -> Iterator[Defect]:
        """Check a declaration that is wrong, or written in another order."""
        layer, node = graph.layer(key), graph.node(key)
        shape, type = layer.attributes.get("shape"), layer.attributes.get("element_type", "")
        problems = list(_problems(type, shape))
        is_const = graph.type_of(key) == CONST
        place = byte_range(layer) if is_const else None
        if is_const and place is None:
            texts = [layer.attributes.get(name) for name in ("offset", "size")]
            offset, size = (None if text is None else shown(text) for text in texts)
            problems.append(f"offset and size are {offset!r} and {size!r}, expected numbers")
        for problem in problems:
            yield Defect("bad-number", problem, node.location, node)
        if place is not None:
            needed = None if problems else _needed_bytes(type, shape or "")
            yield from self._place(graph, key, *place, needed or 0)

    def _place(self, graph: IrGraph, key: bytes, offset: int, size: int, needed: int) -> Iterator[Defect]:
        self.count += 1
        if size < needed:
            message = f"the constant has {counted(size, 'byte')}, its type and shape need {needed}"
            yield Defect("constant-size", message, graph.node(key).location, graph.node(key))
        if self.available is not None and offset + size > self.available and self.weights is not None:
            name = self.weights.path.name
            message = f"the constant ends at byte {offset + size} of {name}, which has {self.available}"
            yield Defect("weights-truncated", message, graph.node(key).location, graph.node(key))

    def _missing(self) -> Defect:
        constants = "1 constant is" if self.count == 1 else f"{self.count} constants are"
        if self.weights is None:
            reason = "there is no .bin beside standard input"
        else:
            reason = f"{self.weights.path.name} cannot be read ({self.weights.error})"
        message = f"{reason}: the values of {constants} unknown"
        return Defect("weights-missing", message, Location(self.graph.file.text.path))


def _needed_bytes(type: str, shape: str) -> int | None:
    """Return the bytes of a constant; 0 if its type has no size, None if something is wrong."""
    if any(_problems(type, shape)):
        return None
    element_type = from_element_type(type.strip())
    count = element_count(parse_shape(shape))
    if element_type is None or count is None or element_type.kind == "string":
        return 0
    return element_type.byte_size(count)


def _problems(type: str, shape: str | None) -> Iterator[str]:
    if shape is None:
        yield "<data> has no shape, expected one"
    else:
        try:
            rank = len(parse_shape(shape) or ())
        except ValueError as error:
            yield f"shape is {shown(shape)!r}: {error}"
        else:
            if rank > MAX_RANK:
                yield f"shape has {rank} dimensions, expected at most {MAX_RANK}"
    if from_element_type(type.strip()) is None and not is_dynamic_word(type.strip()):
        yield f"element_type is {shown(type)!r}, expected a type such as 'f32'"


def _is_number(id: bytes) -> bool:
    return id.isdigit() and len(id) < 20


def _searchable(ids: Sequence[bytes]) -> Collection[bytes]:
    return ids if len(ids) <= _FEW else frozenset(ids)


def _repeated(ids: Sequence[bytes]) -> Iterable[tuple[bytes, int]]:
    if len({*ids}) == len(ids):
        return ()
    return ((id, count) for id, count in Counter(ids).items() if count > 1)


def _text(id: bytes) -> str:
    return _printable(shown(id.decode("utf-8", "replace")))


def _name(name: str) -> str:
    return _printable(shown(name, _NAME_LIMIT))


def _printable(text: str) -> str:
    return text if text and text.isprintable() else repr(text)
