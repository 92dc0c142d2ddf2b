"""Where the layers, edges and bodies of an IR stand: byte spans, and nothing else is parsed.

There are two ways to the same index. The quick one, three regular expressions over the bytes, takes
files as `save_model` and Model Optimizer write them and gives up at the first thing that it does not
expect. The exact one, tag by tag, takes every well-formed file and is several times slower.

Ids stay text, in their shortest decimal form, so that "abc" is an id like any other until a rule
looks at it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ir_scatter.formats.openvino.xml_text import TOKEN, attributes, tags

Span: TypeAlias = tuple[bytes, int, int]
"""Type, first byte and end of a layer."""

Edge: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""The ids of from-layer, from-port, to-layer and to-port."""

Declaration: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""Element type, shape, offset and size of a Const as written."""

_ID = rb'"(0|[1-9]\d*)"'
_NET = re.compile(rb"<net[^<>]*>\s*<layers>\s*(?=<layer |</layers>)")
_HEAD = (
    rb"<layer id=" + _ID + rb' name="[^"]*" type="([^"&\t\r\n]*)"(?: [\w:.-]+="[^"]*")*>'
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

_NUMBER = re.compile(rb"\s*\+?0*([0-9]+)\s*")
_PLACE = re.compile(rb"[0-9]{1,19}")
_TOKEN = re.compile(rb"<dim>[^<]*</dim>|" + TOKEN.pattern, re.DOTALL)
"""Most elements are dimensions, inside which nothing can stand that counts."""
_DECLARED = (b"element_type", b"shape", b"offset", b"size")
_ENDS = (b"from-layer", b"from-port", b"to-layer", b"to-port")


@dataclass(slots=True, eq=False)
class Body:
    """One set of layers and edges: the net's, or that of a body.

    Attributes:
        name: the element's name, "then_body"; "net" for the net's own.
        start: its first byte.
        end: the end of its end tag; in the net's own body there may be space behind it.
        layers: by key, in the order of the file. A key is the id; where the id is taken, the id, a
            zero byte and the first byte's offset.
        edges: by the layer they go to, in the order of the file.
        edges_start: the end of the first `<edges>` tag, None if there is none.
        constants: of Consts written the usual way, by the layer's key.
        bodies: the bodies inside a layer, by the layer's key and the element's name.
        repeated_layers: keys of layers whose id was taken.
        has_layers: whether there is a `<layers>`.
    """

    name: str
    start: int
    layers: dict[bytes, Span] = field(default_factory=dict)
    edges: dict[bytes, list[Edge]] = field(default_factory=dict)
    edges_start: int | None = None
    constants: dict[bytes, Declaration] = field(default_factory=dict)
    bodies: dict[bytes, "dict[str, Body]"] = field(default_factory=dict)
    repeated_layers: list[bytes] = field(default_factory=list)
    end: int = 0
    has_layers: bool = False

    def new_key(self, id: bytes, start: int) -> bytes:
        """Return the key of a layer that begins at `start`: its id, or one of its own if that is taken."""
        return b"%s\0%d" % (id, start) if id in self.layers else id

    def add_layer(self, key: bytes, span: Span) -> None:
        """Enter a layer."""
        if b"\0" in key:
            self.repeated_layers.append(key)
        self.layers[key] = span

    def add_edges(self, edges: Iterable[Edge]) -> None:
        """Enter edges."""
        known = self.edges
        for edge in edges:
            if edge[2] in known:
                known[edge[2]].append(edge)
            else:
                known[edge[2]] = [edge]

    def producers(self, key: bytes) -> dict[bytes, tuple[bytes, bytes]]:
        """Return what feeds a layer: layer and port by the id of its own port, the first edge's."""
        edges = self.edges.get(key.partition(b"\0")[0], ())
        return {edge[3]: (edge[0], edge[1]) for edge in reversed(edges)}


def shortest(text: bytes) -> bytes:
    """Return an id in its shortest decimal form; other text as it is."""
    match = _NUMBER.fullmatch(text)
    return match[1] if match else text


def _edge(found: dict[bytes, bytes]) -> Edge:
    origin, port, to, to_port = (shortest(found.get(name, b"")) for name in _ENDS)
    return origin, port, to, to_port


class EdgePlace(NamedTuple):
    """An edge and its place."""

    start: int
    end: int
    edge: Edge


def edge_places(data: bytes, body: Body) -> Iterator[EdgePlace]:
    """Yield the edges of a body with their places."""
    if body.edges_start is None or data[body.edges_start - 2] == _SLASH:
        return
    end = data.find(b"</edges>", body.edges_start)
    usual = [
        EdgePlace(*match.span(), (match[1], match[2], match[3], match[4]))
        for match in _EDGE.finditer(data, body.edges_start, end)
    ]
    if data.count(b"<", body.edges_start, end) == len(usual):
        yield from usual
        return
    depth, opening = 0, None
    for tag in tags(data, body.edges_start, body.end):
        if depth == 0 and tag.name == b"edge":
            opening = tag
        depth += tag.depth
        if depth < 0:
            return
        if depth == 0 and opening is not None:
            yield EdgePlace(opening.start, tag.end, _edge(attributes(data, opening.start, opening.end)))
            opening = None


def quick_index(data: bytes, root_start: int) -> Body | None:
    """Index an IR as `save_model` writes it; None if anything is unusual.

    Usual is: layers without bodies, one behind the other with nothing but space between, then the
    edges. The bytes must be well-formed XML without comments and processing instructions for the
    answer to mean something; a caller who does not know yet throws the answer away later.
    """
    match = _NET.match(data, root_start)
    first = _FIRST.match(data, match.end()) if match else None
    if match is None or first is None or data.find(b"<layers", match.end()) >= 0:
        return None
    net = Body("net", root_start, end=len(data), has_layers=True)
    end = _LAYERS_END.match(data, _fill(net, data, first))
    if end is None or data.count(_LAYER_END) != len(net.layers):
        return None
    return net if end[1] or _fill_edges(net, data, end.end()) else None


def _fill(net: Body, data: bytes, match: "re.Match[bytes]") -> int:
    """Enter the layers, the first of which `match` found; return the first byte of the last's end.

    A layer ends where the next one's match begins.
    """
    layers, constants = net.layers, net.constants
    types: dict[bytes, bytes] = {}
    start = match.start()

    def enter(last: int) -> None:
        id, type, element_type = match.group(1, 2, 3)
        span = types.setdefault(type, type), start, last + len(_LAYER_END)
        if id in layers:
            net.add_layer(net.new_key(id, start), span)
        else:
            layers[id] = span
            if element_type is not None and type == b"Const":
                constants[id] = (element_type, match[4], match[5], match[6])

    for following in _NEXT.finditer(data, match.end()):
        enter(following.start())
        match, start = following, following.start(1) - _BEFORE_ID
    last = data.find(_LAYER_END, match.end())
    enter(last)
    return last if last >= 0 else len(data)


def _fill_edges(net: Body, data: bytes, start: int) -> bool:
    """Enter the edges; False if something else stands among them."""
    net.edges_start = start
    end = data.find(b"</edges>", start)
    edges = _EDGE.findall(data, start, end)
    net.add_edges(edges)
    return end >= 0 and data.count(b"<", start, end) == len(edges)


@dataclass(slots=True)
class _Open:
    """An element that is open.

    Attributes:
        kind: "body", "layers", "layer", "edges", or "" for anything else, inside which nothing counts.
        start: its first byte.
        body: the net or the body that it is or is in.
        key: of the layer.
        type: of the layer.
        has_data: whether the layer's `<data>` was seen.
    """

    kind: str
    start: int
    body: Body
    key: bytes = b""
    type: bytes = b""
    has_data: bool = False


_OTHER = _Open("", 0, Body("", 0))


def exact_index(data: bytes) -> Body:
    """Index well-formed XML whose root is `<net>`."""
    opened: list[_Open] = []
    inner = 0
    for match in _TOKEN.finditer(data):
        slash, name = match.groups()
        if name is None:
            continue
        if inner:
            inner += -1 if slash else data[match.end() - 2] != _SLASH
            continue
        start, end = match.span()
        if slash:
            element = opened.pop()
        else:
            element = _open(data, opened[-1] if opened else None, name, start, end)
            if data[end - 2] != _SLASH:
                inner = element is _OTHER
                if not inner:
                    opened.append(element)
                continue
        if element.kind == "layer":
            element.body.add_layer(element.key, (element.type, element.start, end))
        elif element.kind == "body":
            element.body.end = end
    return element.body


def _open(data: bytes, parent: _Open | None, name: bytes, start: int, end: int) -> _Open:
    """Return the element that begins with a tag, and enter what the tag says."""
    if parent is None:
        return _Open("body", start, Body(_decoded(name), start))
    kind, body = parent.kind, parent.body
    if kind == "body" and name == b"layers" and not body.has_layers:
        body.has_layers = True
        return _Open("layers", start, body)
    if kind == "body" and name == b"edges" and body.edges_start is None:
        body.edges_start = end
        return _Open("edges", start, body)
    if kind == "edges" and name == b"edge":
        body.add_edges([_edge(attributes(data, start, end))])
    elif kind == "layers" and name == b"layer":
        found = attributes(data, start, end)
        key = body.new_key(shortest(found.get(b"id", b"")), start)
        return _Open("layer", start, body, key, found.get(b"type", b""))
    elif kind == "layer" and name == b"data" and not parent.has_data:
        parent.has_data = True
        _note_constant(parent, attributes(data, start, end))
    elif kind == "layer" and b"body" in name:
        siblings = body.bodies.setdefault(parent.key, {})
        if _decoded(name) not in siblings:
            inner = siblings[_decoded(name)] = Body(_decoded(name), start)
            return _Open("body", start, inner)
    return _OTHER


def _note_constant(layer: _Open, found: dict[bytes, bytes]) -> None:
    """Enter what a Const declares, if its numbers are numbers."""
    if layer.type != b"Const" or b"\0" in layer.key or not found.keys() >= {*_DECLARED}:
        return
    type, shape, offset, size = (found[name] for name in _DECLARED)
    if _PLACE.fullmatch(offset) and _PLACE.fullmatch(size):
        layer.body.constants[layer.key] = type, shape, offset, size


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")
