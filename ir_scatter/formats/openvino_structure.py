"""Whether the parts of an IR fit together: ids, ports, edges, cycles."""

import re
from collections.abc import Iterator

from ir_scatter.diagnostics import Location
from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.openvino_constants import constant_defects
from ir_scatter.formats.openvino_graph import IrGraph
from ir_scatter.formats.xml_exact import shortest
from ir_scatter.formats.xml_index import EDGE_ATTRIBUTES, Body, PortKey
from ir_scatter.model import Defect

_PORT_OR_OUTPUT = re.compile(rb'<port\b(?: id="(0|[1-9]\d*)")?|<(output)\b')
_BAD_DIM = re.compile(rb"<dim>(?!(?:-1|\d{1,18})</dim>)|<dim\s|<dim/")
_EDGE = re.compile(rb"<edge\s([^<>]*)>")
_ATTRIBUTE = re.compile(rb"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_NODES_NAMED = 5

_Ports = tuple[tuple[bytes, ...], tuple[bytes, ...]]


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
        self.inputs: set[PortKey] = set()
        self.outputs: set[PortKey] = set()

    def defects(self) -> Iterator[Defect]:
        """Yield the defects of this body."""
        yield from self._ids()
        yield from self._dims()
        yield from self._types()
        self._collect_ports()
        yield from self._edges()
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
        if _BAD_DIM.search(self.data, self.body.start, self.body.end) is None:
            return
        for key, (_, start, end) in self.body.layers.items():
            if _BAD_DIM.search(self.data, start, end) is None:
                continue
            layer = self.graph.layer(key)
            for port in (*layer.inputs, *layer.outputs):
                for text in port.bad_dims:
                    name = port.id.decode("utf-8", "replace")
                    message = f"a dimension of port {name} is {text!r}, expected a number >= -1"
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

    def _collect_ports(self) -> None:
        known: dict[tuple[tuple[bytes, bytes], ...], _Ports] = {}
        for key, (_, start, end) in self.body.layers.items():
            found = tuple(_PORT_OR_OUTPUT.findall(self.data, start, end))
            ports = known.get(found)
            if ports is None or key in self.body.bodies:
                ports, is_usual = self._ports(key, found)
                if is_usual:
                    known[found] = ports
            for port in ports[0]:
                self.inputs.add((key, port))
            for port in ports[1]:
                self.outputs.add((key, port))

    def _ports(self, key: bytes, found: tuple[tuple[bytes, bytes], ...]) -> tuple[_Ports, bool]:
        """Return the ids of a layer's ports, and whether their texts alone tell them."""
        layer = self.graph.layer(key)
        inputs = tuple(port.id for port in layer.inputs)
        outputs = tuple(port.id for port in layer.outputs)
        plain = [(id, b"") for id in inputs]
        if outputs or (b"", b"output") in found:
            plain += [(b"", b"output"), *((id, b"") for id in outputs)]
        is_unique = len({*inputs}) + len({*outputs}) == len(inputs) + len(outputs)
        return (inputs, outputs), is_unique and tuple(plain) == found

    def _edges(self) -> Iterator[Defect]:
        yield from self._repeated_ports()
        producers = self.body.producers
        for to, port in self.body.repeated_edges:
            if to in self.body.layers:
                message = f"two edges go to port {_text(port)}, expected one"
                yield self._defect("duplicate-edge", message, to, self._index(to, port))
        for to, port in self._sorted(producers.keys() - self.inputs):
            yield self._edge_to_nowhere(to, port)
        for to, port in self._sorted(self.inputs - producers.keys()):
            if b"\0" not in to:
                message = f"no edge goes to port {_text(port)}, expected one"
                yield self._defect("unconnected-input", message, to, self._index(to, port))
        if set(producers.values()) <= self.outputs:
            return
        for (to, to_port), (origin, port) in producers.items():
            if (origin, port) not in self.outputs and to in self.body.layers:
                what = f"port {_text(port)} of layer {_text(origin)}"
                if origin not in self.body.layers:
                    what = f"layer {_text(origin)}"
                message = f"port {_text(to_port)} is fed by {what}, which does not exist"
                yield self._defect("unknown-value", message, to, self._index(to, to_port))

    def _repeated_ports(self) -> Iterator[Defect]:
        total = sum(1 for _ in self.outputs) + len(self.inputs)
        written = self.data.count(b"<port ", self.body.start, self.body.end)
        if total == written:
            return
        for key in self.body.layers:
            layer = self.graph.layer(key)
            for ports in (layer.inputs, layer.outputs):
                ids = [port.id for port in ports]
                for id in sorted({id for id in ids if ids.count(id) > 1}):
                    message = f"port id {_text(id)} is used twice, expected once"
                    yield self._defect("duplicate-id", message, key)

    def _sorted(self, ports: "set[PortKey]") -> list[PortKey]:
        """Sort in the order of the file, edges to missing layers last."""
        if not ports:
            return []
        position = {key: number for number, key in enumerate(self.body.layers)}
        return sorted(ports, key=lambda port: (position.get(port[0], len(position)), port[1]))

    def _index(self, key: bytes, port: bytes) -> int | None:
        ids = [port.id for port in self.graph.layer(key).inputs]
        return ids.index(port) if port in ids else None

    def _edge_to_nowhere(self, to: bytes, port: bytes) -> Defect:
        location = self._edge_location(to, port)
        if to in self.body.layers:
            node = self.graph.node(to)
            message = f"an edge goes to port {_text(port)} of {node.name}, which has no such input"
            return Defect("unknown-port", message, location, node)
        message = f"an edge goes to layer {_text(to)}, which does not exist"
        return Defect("dangling-edge", message, location)

    def _edge_location(self, to: bytes, port: bytes) -> Location:
        """Return the place of the edge that feeds a port; edges stand behind the layers."""
        last = max((end for _, _, end in self.body.layers.values()), default=self.body.start)
        for match in _EDGE.finditer(self.data, last, self.body.end):
            pairs = {key.decode(): a or b for key, a, b in _ATTRIBUTE.findall(match[1])}
            ends = [shortest(pairs.get(n, b"").decode("utf-8", "replace")) for n in EDGE_ATTRIBUTES]
            if ends[2:] == [to, port]:
                return self.graph.file.text.location(match.start(), self.graph.scope.rstrip("/"))
        return self.graph.file.text.location(self.body.start, self.graph.scope.rstrip("/"))

    def _cycles(self) -> Iterator[Defect]:
        position = {key: number for number, key in enumerate(self.body.layers)}
        known = position.get
        producers = self.body.producers.items()
        if all([known(origin, -1) < known(to, 0) for (to, _), (origin, _) in producers]):
            return
        predecessors: dict[bytes, list[bytes]] = {key: [] for key in self.body.layers}
        for (to, _), (origin, _) in producers:
            if to in predecessors:
                predecessors[to].append(origin)
        for cycle in find_cycles(predecessors):
            names = ", ".join(self.graph.node(key).name for key in cycle[:_NODES_NAMED])
            more = f" and {len(cycle) - _NODES_NAMED} more" if len(cycle) > _NODES_NAMED else ""
            message = f"layers depend on each other in a cycle: {names}{more}"
            yield self._defect("cycle", message, cycle[0])


def _text(id: bytes) -> str:
    return id.decode("utf-8", "replace") or "''"
