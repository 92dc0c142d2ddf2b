"""Whether the parts of an IR fit together: ids, ports, edges, cycles, constants and their bytes."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache

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


def find_defects(graph: IrGraph) -> Iterator[Defect]:
    """Yield what is broken in the file itself, body by body, then what is wrong with constants."""
    for body in graph.with_bodies():
        yield from _Structure(body).defects()
    yield from _constants(graph)


class _Structure:
    """Holds the ids, ports and edges of one body against each other."""

    def __init__(self, graph: IrGraph) -> None:
        self.graph = graph
        self.body: Body = graph.body

    def defects(self) -> Iterator[Defect]:
        """Yield the defects of this body."""
        for key in self.body.repeated_layers:
            repeated = _text(key.partition(b"\0")[0])
            yield self._defect("duplicate-id", f"layer id {repeated} is used twice, expected once", key)
        for key in self.body.layers:
            if not _is_number(key) and b"\0" not in key:
                id = shown(self.graph.id_of(key))
                yield self._defect("bad-number", f"layer id is {id!r}, expected a number", key)
        for key, (type, _, _) in self.body.layers.items():
            if type == b"Constant":
                message = "the type is 'Constant', expected 'Const': OpenVINO's process ends here"
                yield self._defect("unknown-type", message, key)
            elif not type:
                yield self._defect("unknown-type", "the layer has no type, expected one", key)
        if self._is_sound_by_counts():
            return
        for key in self.body.layers:
            yield from self._ports(key)
        for to, fed in self.body.edges.items():
            for edge in fed if to not in self.body.layers else ():
                message = f"an edge goes to layer {_text(to)}, which does not exist"
                yield Defect("dangling-edge", message, self._edge_location(edge))
        predecessors = {key: [edge[0] for edge in self.body.edges.get(key, ())] for key in self.body.layers}
        for cycle in find_cycles(predecessors):
            names = ", ".join(_name(self.graph.node(key).name) for key in cycle[:_NODES_NAMED])
            more = f" and {len(cycle) - _NODES_NAMED} more" if len(cycle) > _NODES_NAMED else ""
            message = f"layers depend on each other in a cycle: {names}{more}"
            yield self._defect("cycle", message, cycle[0])

    def _defect(self, kind: str, message: str, key: bytes, port: int | None = None) -> Defect:
        node = self.graph.node(key)
        return Defect(kind, message, node.location, node, port)

    def _is_sound_by_counts(self) -> bool:
        """Tell whether every edge fits and comes from a layer before, without parsing any layer.

        Where every layer numbers its ports from 0 on, inputs first, counts say everything. A section that
        is written in an unusual way is counted wrongly; its edges then do not fit.
        """
        body, text = self.body, self.graph.file.text
        data, find, count = text.data, text.data.find, text.data.count
        is_unusual = body.bodies or body.repeated_layers or text.has_asides
        if is_unusual or _BAD_DIM.search(data, body.start, body.end):
            return False
        ids: list[bytes] = []
        outputs: dict[bytes, frozenset[bytes]] = {}
        known: dict[tuple[int, int], tuple[list[bytes], frozenset[bytes], frozenset[bytes]]] = {}
        for key, (_, start, end) in body.layers.items():
            middle = find(b"<output>", start, end)
            middle = end if middle < 0 else middle
            counts = count(b"<port", start, middle), count(b"<port", middle, end)
            if counts not in known:
                own = [b"%d" % number for number in range(sum(counts))]
                known[counts] = own, frozenset(own[: counts[0]]), frozenset(own[counts[0] :])
            own, inputs, made = known[counts]
            fed = body.edges.get(key, ())
            if len(fed) != len(inputs) or (fed and {edge[3] for edge in fed} != inputs):
                return False
            for origin, port, _, _ in fed:
                if port not in outputs.get(origin, ()):
                    return False
            outputs[key] = made
            ids += own
        is_complete = body.edges.keys() <= outputs.keys()
        return is_complete and _PORT.findall(data, body.start, body.end) == ids

    def _ports(self, key: bytes) -> Iterator[Defect]:
        """Yield what is wrong with the ports of a layer and the edges into it."""
        layer = self.graph.layer(key)
        for port in (*layer.inputs, *layer.outputs):
            if not _is_number(port.id):
                found = shown(port.id.decode("utf-8", "replace"))
                yield self._defect("bad-number", f"port id is {found!r}, expected a number", key)
            for dim in port.bad_dims:
                found = f"a dimension of port {_text(port.id)} is {shown(dim)!r}"
                yield self._defect("bad-number", f"{found}, expected a number >= -1", key)
        for ports in (layer.inputs, layer.outputs):
            for id, count in Counter(port.id for port in ports).items() if len(ports) > 1 else ():
                if count > 1:
                    message = f"port id {_text(id)} is used {count} times, expected once"
                    yield self._defect("duplicate-id", message, key)
        if b"\0" in key:
            return
        fed = self.body.edges.get(key, [])
        counts = Counter([edge[3] for edge in fed])
        for index, port in enumerate(layer.inputs):
            if counts[port.id] != 1:
                found = f"{counts[port.id]} edges go" if counts[port.id] else "no edge goes"
                kind = "duplicate-edge" if counts[port.id] else "unconnected-input"
                yield self._defect(kind, f"{found} to port {_text(port.id)}, expected one", key, index)
        indices = {port.id: index for index, port in enumerate(layer.inputs)}
        for edge in fed:
            yield from self._edge(edge, indices)

    def _edge(self, edge: Edge, indices: Mapping[bytes, int]) -> Iterator[Defect]:
        """Yield what is wrong with the two ends of an edge."""
        origin, port, to, to_port = edge
        if to_port not in indices:
            node = self.graph.node(to)
            message = f"an edge goes to port {_text(to_port)} of {_name(node.name)}, which has no such input"
            yield Defect("unknown-port", message, self._edge_location(edge), node)
        if port not in self.graph.output_ports(origin):
            missing = f"port {_text(port)} of " if origin in self.body.layers else ""
            message = f"port {_text(to_port)} is fed by {missing}layer {_text(origin)}, which does not exist"
            yield self._defect("unknown-value", message, to, indices.get(to_port))

    def _edge_location(self, edge: Edge) -> Location:
        return self.graph.file.text.location(self._edge_starts[edge], self.graph.scope.rstrip("/"))

    @cached_property
    def _edge_starts(self) -> dict[Edge, int]:
        """The first byte of every edge, the first one's for equal edges."""
        places = edge_places(self.graph.file.text.data, self.body)
        return {place.edge: place.start for place in reversed([*places])}


def _constants(net: IrGraph) -> Iterator[Defect]:
    """Yield what is wrong with every Const and Parameter, bodies included, the missing `.bin` last."""
    weights = net.file.weights
    available = None if weights is None else weights.size
    end = sys.maxsize if available is None else available
    count = 0
    for graph in net.with_bodies():
        indexed = graph.body.constants
        for key, (type, shape, offset, size) in indexed.items():
            needed = _needed_bytes(type.decode("utf-8", "replace"), shape.decode("utf-8", "replace"))
            if needed is None or int(size) < needed or int(offset) + int(size) > end:
                yield from _declaration(graph, key)
        for key, (type, _, _) in graph.body.layers.items():
            if type.lower() in {CONST, PARAMETER} and key not in indexed:
                yield from _declaration(graph, key)
        if available is None:
            count += sum(graph.declared(key)[2] is not None for key in graph.keys_of(CONST))
    if count:
        constants = "1 constant is" if count == 1 else f"{count} constants are"
        reason = f"{weights.path.name} cannot be read ({weights.error})" if weights else ""
        message = f"{reason or 'there is no .bin beside standard input'}: the values of {constants} unknown"
        yield Defect("weights-missing", message, Location(net.file.text.path))


def _declaration(graph: IrGraph, key: bytes) -> Iterator[Defect]:
    """Yield what is wrong with a Const or a Parameter."""
    layer, node, weights = graph.layer(key), graph.node(key), graph.file.weights
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
    if place is None:
        return
    needed = (not problems and _needed_bytes(type, shape or "")) or 0
    if place[1] < needed:
        message = f"the constant has {counted(place[1], 'byte')}, its type and shape need {needed}"
        yield Defect("constant-size", message, node.location, node)
    if weights is not None and weights.size is not None and sum(place) > weights.size:
        message = f"the constant ends at byte {sum(place)} of {weights.path.name}, which has {weights.size}"
        yield Defect("weights-truncated", message, node.location, node)


@lru_cache(1 << 10)
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


def _text(id: bytes) -> str:
    return _printable(shown(id.decode("utf-8", "replace")))


def _name(name: str) -> str:
    return _printable(shown(name, _NAME_LIMIT))


def _printable(text: str) -> str:
    return text if text and text.isprintable() else repr(text)
