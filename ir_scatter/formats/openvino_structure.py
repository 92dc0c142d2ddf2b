"""Whether the parts of an IR fit together: ids, ports, edges, cycles."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ir_scatter.diagnostics import Location
from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.openvino_constants import constant_defects
from ir_scatter.formats.openvino_graph import IrGraph
from ir_scatter.formats.xml_exact import shortest
from ir_scatter.formats.xml_index import EDGE_ATTRIBUTES, Body, Edge
from ir_scatter.lazy import lazy
from ir_scatter.model import Defect

_PORT = re.compile(rb'<port id="(0|[1-9]\d*)"')
_BAD_DIM = re.compile(rb"<dim(?!>(?:-1|\d{1,18})</dim>)")
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
                is_sound = is_sound and ports.is_unique and self._fits(fed, ports)
            collected[key] = ports
        return is_sound and seen == len(edges)

    def _counted_ports(self) -> list[tuple[bytes, _Ports]] | None:
        """Return the ports of the layers by counting them; None if that does not tell their ids.

        Where every layer numbers its ports from 0 on, inputs first, counts say everything. A
        section that is written in an unusual way is counted wrongly; its edges then do not fit.
        """
        data, find, count = self.data, self.data.find, self.data.count
        if self.body.bodies or self.graph.file.text.has_asides or _BAD_DIM.search(data):
            return None
        found: list[tuple[bytes, _Ports]] = []
        expected: list[bytes] = []
        known: dict[tuple[int, int], _Ports] = {}
        for key, (_, start, end) in self.body.layers.items():
            middle = find(b"<output>", start, end)
            middle = end if middle < 0 else middle
            counts = count(b"<port ", start, middle), count(b"<port ", middle, end)
            ports = known.get(counts)
            if ports is None:
                ids = [b"%d" % number for number in range(sum(counts))]
                ports = _Ports(tuple(ids[: counts[0]]), tuple(ids[counts[0] :]), True)
                known[counts] = ports
            expected += ports.inputs
            expected += ports.outputs
            found.append((key, ports))
        written = _PORT.findall(data, self.body.start, self.body.end)
        return found if written == expected else None

    def _listed_ports(self) -> Iterator[tuple[bytes, _Ports]]:
        """Yield the ports of the layers by parsing each layer."""
        for key in self.body.layers:
            layer = self.graph.layer(key)
            self.bad_dims |= any(port.bad_dims for port in (*layer.inputs, *layer.outputs))
            inputs = tuple(port.id for port in layer.inputs)
            outputs = tuple(port.id for port in layer.outputs)
            is_unique = len({*inputs}) + len({*outputs}) == len(inputs) + len(outputs)
            yield key, _Ports(inputs, outputs, is_unique)

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
            for id, count in Counter(ids).items():
                if count > 1:
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
            message = f"an edge goes to port {_text(to_port)} of {node.name}, which has no such input"
            yield Defect("unknown-port", message, self._edge_location(edge), node)
        producer = self.ports.get(origin)
        if producer is not None and port in producer.outputs:
            return
        missing = f"layer {_text(origin)}"
        if producer is not None:
            missing = f"port {_text(port)} of layer {_text(origin)}"
        message = f"port {_text(to_port)} is fed by {missing}, which does not exist"
        yield self._defect("unknown-value", message, to, indices.get(to_port))

    def _edge_location(self, edge: Edge) -> Location:
        """Return the place of an edge."""
        offset = self._edge_offsets.get(edge, self.body.start)
        return self.graph.file.text.location(offset, self.graph.scope.rstrip("/"))

    @lazy
    def _edge_offsets(self) -> dict[Edge, int]:
        """The first byte of every edge; edges stand behind the layers of their body."""
        last = max((end for _, _, end in self.body.layers.values()), default=self.body.start)
        found: dict[Edge, int] = {}
        for match in _EDGE.finditer(self.data, last, self.body.end):
            pairs = {key.decode(): a or b for key, a, b in _ATTRIBUTE.findall(match[1])}
            ends = [shortest(pairs.get(n, b"").decode("utf-8", "replace")) for n in EDGE_ATTRIBUTES]
            found.setdefault((ends[0], ends[1], ends[2], ends[3]), match.start())
        return found

    def _cycles(self) -> Iterator[Defect]:
        predecessors = {key: [edge[0] for edge in self.body.edges.get(key, ())] for key in self.body.layers}
        for cycle in find_cycles(predecessors):
            names = ", ".join(self.graph.node(key).name for key in cycle[:_NODES_NAMED])
            more = f" and {len(cycle) - _NODES_NAMED} more" if len(cycle) > _NODES_NAMED else ""
            message = f"layers depend on each other in a cycle: {names}{more}"
            yield self._defect("cycle", message, cycle[0])


def _text(id: bytes) -> str:
    return id.decode("utf-8", "replace") or "''"
