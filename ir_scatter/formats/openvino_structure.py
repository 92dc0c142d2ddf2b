"""Whether the parts of an IR fit together: ids, ports, edges, cycles."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ir_scatter.diagnostics import Location
from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.openvino_constants import constant_defects
from ir_scatter.formats.openvino_graph import IrGraph
from ir_scatter.formats.xml_exact import shortest
from ir_scatter.formats.xml_index import EDGE_ATTRIBUTES, Body, Edge
from ir_scatter.model import Defect

_PORT = re.compile(rb'<port id="(0|[1-9]\d*)"')
_UNUSUAL = re.compile(
    rb'<port(?! id="(?:0|[1-9]\d*)")|<dim(?!>(?:-1|\d{1,18})</dim>)|<!|<(?:data|rt_info|input\s|output\s)'
)
_EDGE = re.compile(rb"<edge\s([^<>]*)>")
_ATTRIBUTE = re.compile(rb"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_NODES_NAMED = 5


class _Ports(NamedTuple):
    """The ids of a layer's ports."""

    inputs: tuple[bytes, ...]
    outputs: tuple[bytes, ...]
    is_unique: bool


def find_defects(graph: IrGraph) -> Iterator[Defect]:
    """Yield what is broken in the file itself, body by body."""
    pending = [graph]
    while pending:
        current = pending.pop()
        yield from _Structure(current).defects()
        inner = [graph for key in current.body.bodies for graph in current.graphs(key).values()]
        pending.extend(reversed(inner))
    yield from constant_defects(graph)


class _Structure:
    """Holds the ids, ports and edges of one body against each other."""

    def __init__(self, graph: IrGraph) -> None:
        self.graph = graph
        self.body: Body = graph.body
        self.data = graph.file.text.data
        self.ports: dict[bytes, _Ports] = {}
        self.bad_dims = False
        self._known: dict[tuple[tuple[bytes, ...], tuple[bytes, ...]], _Ports] = {}
        self._sections: dict[bytes, tuple[bytes, ...] | None] = {}

    def defects(self) -> Iterator[Defect]:
        """Yield the defects of this body."""
        yield from self._ids()
        yield from self._types()
        is_sound = self._is_sound()
        if self.bad_dims:
            yield from self._dims()
        if is_sound:
            return
        for key in self.body.layers:
            yield from self._layer(key)
        for to in self.body.edges.keys() - self.body.layers.keys():
            for edge in self.body.edges[to]:
                message = f"an edge goes to layer {_text(to)}, which does not exist"
                yield Defect("dangling-edge", message, self._edge_location(edge))
        yield from self._cycles()

    def _defect(self, kind: str, message: str, key: bytes, port: int | None = None) -> Defect:
        node = self.graph.node(key)
        return Defect(kind, message, node.location, node, port)

    def _ids(self) -> Iterator[Defect]:
        for key in self.body.repeated_layers:
            id = self.graph.id_of(key)
            yield self._defect("duplicate-id", f"layer id {id} is used twice, expected once", key)
        for key in self.body.layers:
            if not key.isdigit() and b"\0" not in key:
                id = self.graph.id_of(key)
                yield self._defect("bad-number", f"layer id is {id!r}, expected a number", key)

    def _dims(self) -> Iterator[Defect]:
        for key in self.body.layers:
            layer = self.graph.layer(key)
            for port in (*layer.inputs, *layer.outputs):
                for text in port.bad_dims:
                    message = f"a dimension of port {_text(port.id)} is {text!r}, expected a number >= -1"
                    yield self._defect("bad-number", message, key)

    def _types(self) -> Iterator[Defect]:
        types = {type for type, _, _ in self.body.layers.values()}
        if b"Constant" not in types and b"" not in types:
            return
        for key, (type, _, _) in self.body.layers.items():
            if type == b"Constant":
                message = "the type is 'Constant', expected 'Const': OpenVINO's process ends here"
                yield self._defect("unknown-type", message, key)
            elif not type:
                yield self._defect("unknown-type", "the layer has no type, expected one", key)

    def _is_sound(self) -> bool:
        """Collect the ports, and tell whether every edge fits and comes from a layer before."""
        edges, collected, bodies = self.body.edges, self.ports, self.body.bodies
        is_sound, seen = not self.body.repeated_layers, 0
        for key, (_, start, end) in self.body.layers.items():
            is_nested = bool(bodies) and key in bodies
            ports = self._listed_ports(key) if is_nested else self._ports(key, start, end)
            collected[key] = ports
            fed = edges.get(key)
            if fed is None:
                is_sound = is_sound and not ports.inputs
                continue
            seen += 1
            is_sound = is_sound and ports.is_unique and self._fits(fed, ports)
        return is_sound and seen == len(edges)

    def _ports(self, key: bytes, start: int, end: int) -> _Ports:
        """Return the ids of a layer's ports from its two sections, whose texts repeat themselves."""
        data = self.data
        middle = data.find(b"<output>", start, end)
        first = data.find(b"<input>", start, end if middle < 0 else middle)
        inputs = () if first < 0 else self._section(data[first : end if middle < 0 else middle])
        outputs = () if middle < 0 else self._section(data[middle:end])
        if inputs is None or outputs is None or (first < 0 and middle < 0):
            return self._listed_ports(key)
        both = inputs, outputs
        ports = self._known.get(both)
        if ports is None:
            is_unique = len({*inputs}) + len({*outputs}) == len(inputs) + len(outputs)
            ports = self._known[both] = _Ports(inputs, outputs, is_unique)
        return ports

    def _section(self, text: bytes) -> tuple[bytes, ...] | None:
        """Return the ids of the ports in `<input>` or `<output>`, None if it is unusual."""
        if text in self._sections:
            return self._sections[text]
        ids: tuple[bytes, ...] | None = tuple(_PORT.findall(text))
        if _UNUSUAL.search(text) is not None:
            ids = None
        self._sections[text] = ids
        return ids

    def _listed_ports(self, key: bytes) -> _Ports:
        """Return the ids of a layer's ports by parsing the layer."""
        layer = self.graph.layer(key)
        self.bad_dims |= any(port.bad_dims for port in (*layer.inputs, *layer.outputs))
        inputs = tuple(port.id for port in layer.inputs)
        outputs = tuple(port.id for port in layer.outputs)
        is_unique = len({*inputs}) + len({*outputs}) == len(inputs) + len(outputs)
        return _Ports(inputs, outputs, is_unique)

    def _fits(self, fed: list[Edge], ports: _Ports) -> bool:
        """Tell whether the edges into a layer feed each input once, from layers already seen."""
        inputs = ports.inputs
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
        for ids in (ports.inputs, ports.outputs):
            for id in sorted({id for id in ids if ids.count(id) > 1}):
                message = f"port id {_text(id)} is used twice, expected once"
                yield self._defect("duplicate-id", message, key)
        if b"\0" in key:
            return
        fed = self.body.edges.get(key, [])
        counts = {id: sum(edge[3] == id for edge in fed) for id in dict.fromkeys(ports.inputs)}
        for id, count in counts.items():
            if count != 1:
                found = "no edge goes" if count == 0 else f"{count} edges go"
                kind = "duplicate-edge" if count else "unconnected-input"
                message = f"{found} to port {_text(id)}, expected one"
                yield self._defect(kind, message, key, ports.inputs.index(id))
        for edge in fed:
            yield from self._edge(edge, ports)

    def _edge(self, edge: Edge, ports: _Ports) -> Iterator[Defect]:
        """Yield what is wrong with the two ends of an edge."""
        origin, port, to, to_port = edge
        if to_port not in ports.inputs:
            node = self.graph.node(to)
            message = f"an edge goes to port {_text(to_port)} of {node.name}, which has no such input"
            yield Defect("unknown-port", message, self._edge_location(edge), node)
        producer = self.ports.get(origin)
        if producer is not None and port in producer.outputs:
            return
        missing = f"layer {_text(origin)}"
        if producer is not None:
            missing = f"port {_text(port)} of layer {_text(origin)}"
        index = ports.inputs.index(to_port) if to_port in ports.inputs else None
        message = f"port {_text(to_port)} is fed by {missing}, which does not exist"
        yield self._defect("unknown-value", message, to, index)

    def _edge_location(self, edge: Edge) -> Location:
        """Return the place of an edge; edges stand behind the layers of their body."""
        last = max((end for _, _, end in self.body.layers.values()), default=self.body.start)
        scope = self.graph.scope.rstrip("/")
        for match in _EDGE.finditer(self.data, last, self.body.end):
            pairs = {key.decode(): a or b for key, a, b in _ATTRIBUTE.findall(match[1])}
            ends = [shortest(pairs.get(n, b"").decode("utf-8", "replace")) for n in EDGE_ATTRIBUTES]
            if tuple(ends) == edge:
                return self.graph.file.text.location(match.start(), scope)
        return self.graph.file.text.location(self.body.start, scope)

    def _cycles(self) -> Iterator[Defect]:
        predecessors = {key: [edge[0] for edge in self.body.edges.get(key, ())] for key in self.body.layers}
        for cycle in find_cycles(predecessors):
            names = ", ".join(self.graph.node(key).name for key in cycle[:_NODES_NAMED])
            more = f" and {len(cycle) - _NODES_NAMED} more" if len(cycle) > _NODES_NAMED else ""
            message = f"layers depend on each other in a cycle: {names}{more}"
            yield self._defect("cycle", message, cycle[0])


def _text(id: bytes) -> str:
    return id.decode("utf-8", "replace") or "''"
