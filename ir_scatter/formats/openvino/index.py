"""Indexes the layers, edges and bodies of an IR by their byte positions, and parses nothing else.

Two functions build the same index. `quick_index` uses three regular expressions; it reads files in the
form of `save_model` and Model Optimizer, and gives up at the first unexpected text. `exact_index` reads
any well-formed file tag by tag, several times slower.

Ids are bytes in the shortest decimal form; `checks.py` reports an id such as "abc".
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, TypeAlias

from ir_scatter.formats.openvino.xml_text import TOKEN, attributes, decoded, parse_elements, shortest_id

Span: TypeAlias = tuple[bytes, int, int]
"""(type, offset of the first byte, end offset) of a layer."""

Edge: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""(from-layer, from-port, to-layer, to-port) ids of an edge."""

Declaration: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""(element type, shape, offset, size) of a Const, as in the file."""

_ID = rb'"(0|[1-9]\d*)"'
OPSET = re.compile(rb"opset(?:[1-9]|1[0-7])")
_NET = re.compile(rb"<net[^<>]*>\s*<layers>\s*(?=<layer |</layers>)")
_HEAD = (
    rb"<layer id=" + _ID + rb' name="[^"]*" type="([^"&\t\r\n]*)" version="' + OPSET.pattern + b'"'
    rb'(?: [\w:.-]+="[^"]*")*>'
    rb'(?:\s*<data element_type="([^"&\t\r\n]*)" shape="([^"&\t\r\n]*)"'
    rb' offset="(\d{1,19})" size="(\d{1,19})"\s*/>)?'
)
_FIRST = re.compile(_HEAD)
_NEXT = re.compile(rb"</layer>\s*" + _HEAD)
_LAYERS_END = re.compile(rb"</layer>\s*</layers>\s*<edges\s*(/?)>")
_EDGE = re.compile(
    rb"<edge from-layer=" + _ID + rb" from-port=" + _ID
    + rb" to-layer=" + _ID + rb" to-port=" + _ID + rb"\s*/>"
)  # fmt: skip
_LAYER_END = b"</layer>"
_SLASH = ord("/")
_BEFORE_ID = len(b'<layer id="')

_PLACE = rb"[0-9]{1,19}"
_TOKEN = rb"<dim>[^<]*</dim>|" + TOKEN.pattern
"""Pattern of a tag. A `<dim>` element is matched as a whole: it is the most frequent one, and contains
nothing to index.
"""
_DECLARED = (b"element_type", b"shape", b"offset", b"size")
_ENDS = ("from-layer", "from-port", "to-layer", "to-port")


@dataclass(slots=True, eq=False)
class Body:
    """The layers and edges of the main graph or of a body.

    Attributes:
        name: the element's name, such as "then_body"; "net" for the main graph.
        start: offset of its first byte.
        end: offset after its end tag; for the main graph the end of the file.
        layers: by key. The key of a layer is its id. If several layers have the same id, OpenVINO uses the
            last one; the key of the others is the id, a zero byte and their offset.
        edges: by the layer they go to.
        edges_start: offset after the first `<edges>` tag; None without one.
        constants: declarations of Consts in the usual form, by key.
        bodies: the bodies inside a layer, by key of the layer and name of the element.
        repeated_layers: keys of layers whose id is used by a later layer.
        unusual: keys of layers without a name, or whose version is not an opset of OpenVINO.
    """

    name: str
    start: int
    layers: dict[bytes, Span] = field(default_factory=dict)
    edges: dict[bytes, list[Edge]] = field(default_factory=dict)
    edges_start: int | None = None
    constants: dict[bytes, Declaration] = field(default_factory=dict)
    bodies: dict[bytes, "dict[str, Body]"] = field(default_factory=dict)
    repeated_layers: list[bytes] = field(default_factory=list)
    unusual: list[bytes] = field(default_factory=list)
    end: int = 0
    has_layers: bool = False

    def add_layer(self, id: bytes, span: Span) -> bytes:
        """Add a layer and return its key."""
        key = id
        if id in self.layers:
            key = b"%s\0%d" % (id, span[1])
            self.repeated_layers.append(key)
        self.layers[key] = span
        return key

    def give_ids_to_last(self) -> None:
        """Give each id that several layers have to the last of them. To be called after adding all layers."""
        last = {key.partition(b"\0")[0]: key for key in self.repeated_layers}
        keys = {key: id for id, key in last.items()}
        keys |= {id: b"%s\0%d" % (id, self.layers[id][1]) for id in last}
        self.layers = {keys.get(key, key): span for key, span in self.layers.items()}
        self.constants = {keys.get(key, key): declared for key, declared in self.constants.items()}
        self.bodies = {keys.get(key, key): bodies for key, bodies in self.bodies.items()}
        self.unusual = [keys.get(key, key) for key in self.unusual]
        self.repeated_layers = [key for key in self.layers if b"\0" in key]

    def add_edges(self, edges: Iterable[Edge]) -> None:
        for edge in edges:
            self.edges.setdefault(edge[2], []).append(edge)

    def producers(self, key: bytes) -> dict[bytes, tuple[bytes, bytes]]:
        """Return the (layer, port) that feeds each input of a layer, by port id; the first edge counts."""
        edges = self.edges.get(key.partition(b"\0")[0], ())
        return {edge[3]: (edge[0], edge[1]) for edge in reversed(edges)}


class EdgePlace(NamedTuple):
    start: int
    end: int
    edge: Edge


def edge_places(data: bytes, body: Body) -> Iterator[EdgePlace]:
    if body.edges_start is None or data[body.edges_start - 2] == _SLASH:
        return
    end = data.find(b"</edges>", body.edges_start)
    usual = [*_EDGE.finditer(data, body.edges_start, end)]
    if data.count(b"<", body.edges_start, end) == len(usual):
        yield from (EdgePlace(*edge.span(), (edge[1], edge[2], edge[3], edge[4])) for edge in usual)
        return
    for edge in parse_elements(data[body.edges_start : body.end]).iterfind("edge"):
        start, end = body.edges_start + edge.start, body.edges_start + edge.end
        origin, port, to, to_port = map(edge.id, _ENDS)
        yield EdgePlace(start, end, (origin, port, to, to_port))


def quick_index(data: bytes, root_start: int) -> Body | None:
    """Index an IR in the form that `save_model` writes; None for any other form.

    That form is: layers without bodies, separated only by white space, then the edges. The result is valid
    only for well-formed XML without comments and processing instructions. The caller checks this
    concurrently, and discards the result of any other file.
    """
    head = _NET.match(data, root_start)
    match = _FIRST.match(data, head.end()) if head else None
    if head is None or match is None or data.find(b"<layers", head.end()) >= 0:
        return None
    net = Body("net", root_start, end=len(data), has_layers=True)
    layers, constants = net.layers, net.constants
    types: dict[bytes, bytes] = {}
    start = match.start()
    for after in chain(_NEXT.finditer(data, match.end()), (None,)):  # one match at the end of each layer
        last = after.start() if after else data.find(_LAYER_END, match.end())
        id, type, element_type = match.group(1, 2, 3)
        span = types.setdefault(type, type), start, last + len(_LAYER_END)
        if id in layers:
            id = net.add_layer(id, span)
        else:
            layers[id] = span
        if element_type is not None and type == b"Const":
            constants[id] = (element_type, match[4], match[5], match[6])
        if after:
            match, start = after, after.start(1) - _BEFORE_ID
    end = _LAYERS_END.match(data, last) if last >= 0 else None
    if end is None or data.count(_LAYER_END) != len(layers):
        return None
    if net.repeated_layers:
        net.give_ids_to_last()
    if end[1]:
        return net
    net.edges_start = end.end()
    edges_end = data.find(b"</edges>", net.edges_start)
    edges = _EDGE.findall(data, net.edges_start, edges_end)
    net.add_edges(edges)
    return net if data.count(b"<", net.edges_start, edges_end) == len(edges) and edges_end >= 0 else None


class _Open(NamedTuple):
    """An element whose end tag is not read yet. Its kind is "" if its content is not indexed."""

    kind: str
    body: Body
    key: bytes = b""
    start: int = 0


def exact_index(data: bytes) -> Body:
    """Index a well-formed XML file with the root `<net>`."""
    opened: list[_Open] = []
    declared: set[int] = set()  # offsets of layers whose first `<data>` was read
    for match in re.finditer(_TOKEN, data, re.DOTALL):
        slash, name = match.groups()
        if name is None:
            continue
        start, end = match.span()
        if slash:
            closed = opened.pop()
        else:
            closed = _open(data, opened[-1] if opened else None, name, start, end, declared)
            if data[end - 2] != _SLASH:
                opened.append(closed)
                continue
        if closed.kind == "layers" and closed.body.repeated_layers:
            closed.body.give_ids_to_last()
        elif closed.kind == "layer":
            type, first, _ = closed.body.layers[closed.key]
            closed.body.layers[closed.key] = type, first, end
        elif closed.kind == "body":
            closed.body.end = end
            closed.body.add_edges(place.edge for place in edge_places(data, closed.body))
    return closed.body


def _open(data: bytes, parent: _Open | None, name: bytes, start: int, end: int, declared: set[int]) -> _Open:
    """Add the element that begins with a tag to the index, and return it."""
    if parent is None:
        return _Open("body", Body(decoded(name), start))
    kind, body, key, first = parent
    if kind == "body" and name == b"layers" and not body.has_layers:
        body.has_layers = True
        return _Open("layers", body)
    if kind == "body" and name == b"edges" and body.edges_start is None:
        body.edges_start = end
    elif kind == "layers" and name == b"layer":
        written = attributes(data, start, end)
        span = written.get(b"type", b""), start, end
        key = body.add_layer(shortest_id(written.get(b"id", b"")), span)
        if b"name" not in written or not OPSET.fullmatch(written.get(b"version", b"")):
            body.unusual.append(key)
        return _Open("layer", body, key, start)
    elif kind == "layer" and name == b"data" and first not in declared:
        declared.add(first)
        written = attributes(data, start, end)
        type, shape, offset, size = (written.get(attribute, b"") for attribute in _DECLARED)
        is_usual = {*_DECLARED} <= written.keys() and all(
            re.fullmatch(_PLACE, number) for number in (offset, size)
        )
        if is_usual and body.layers[key][0] == b"Const":
            body.constants[key] = type, shape, offset, size
    elif kind == "layer" and b"body" in name:
        siblings = body.bodies.setdefault(key, {})
        if decoded(name) not in siblings:
            siblings[decoded(name)] = Body(decoded(name), start)
            return _Open("body", siblings[decoded(name)])
    return _Open("", body)
