"""The exact way to the index of an IR: expat with handlers, for every well-formed file."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from xml.parsers import expat

from ir_scatter.formats.openvino.index import EDGE_ATTRIBUTES, Body, Edge
from ir_scatter.formats.openvino.tags import attributes as written_attributes
from ir_scatter.formats.openvino.tags import start_tag
from ir_scatter.formats.openvino.xml_characters import unescaped, well_formed

_TAG_END = re.compile(rb"""[^"'>]*+(?:(?:"[^"]*"|'[^']*')[^"'>]*+)*+>""")
_NUMBER = re.compile(r"\s*\+?0*([0-9]+)\s*")
_PLACE = re.compile(r"[0-9]{1,19}")
_CHUNK = 1 << 16


def exact_index(data: bytes) -> Body:
    """Index well-formed XML whose root is `<net>`."""
    return _Exact(data).run()


def edge_places(data: bytes, body: Body) -> dict[Edge, int]:
    """Return where the edges of a body begin, the first one's place for equal edges.

    Those behind a name that expat does not take, as libxml2 does, are left out.
    """
    found: dict[Edge, int] = {}
    path: list[str] = []
    text = well_formed(data)

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(path) == 2 and path[1] == "edges" and name == "edge":
            place = body.start + parser.CurrentByteIndex
            found.setdefault(_ends(attributes if text is data else _attributes(data, place)), place)
        path.append(name)

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    with suppress(expat.ExpatError):
        parser.Parse(text[body.start : body.end], True)
    return found


def _attributes(data: bytes, start: int) -> dict[str, str]:
    """Return what the attributes of a tag mean, where expat was shown fillers."""
    found = written_attributes(data, start_tag(data, start))
    return {
        name.decode("utf-8", "replace"): unescaped(value.raw).decode("utf-8", "replace")
        for name, value in found.items()
    }


def _ends(attributes: Mapping[str, str]) -> Edge:
    origin, port, to, to_port = (shortest(attributes.get(key, "")) for key in EDGE_ATTRIBUTES)
    return origin, port, to, to_port


def shortest(text: str) -> bytes:
    """Return an id in its shortest decimal form; other text as it is."""
    match = _NUMBER.fullmatch(text)
    return (match[1] if match else text).encode("utf-8", "replace")


@dataclass(slots=True)
class _Layer:
    """A layer that is open: its key in the body, type and first byte."""

    key: bytes
    type: bytes
    start: int
    has_data: bool = False


class _Exact:
    """Handlers of expat, which is shown `text`, and what is open at the moment.

    `path` holds one word per open element: "body" (the net's or a layer's), "layers", "layer",
    "edges", or "" for anything else, inside which nothing counts.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.text = well_formed(data)
        self.net: Body | None = None
        self.path: list[str] = []
        self.bodies: list[Body] = []
        self.layers: list[_Layer] = []
        self.edges: list[list[Edge] | None] = []
        self.tag_end = 0
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def run(self) -> Body:
        """Parse the file and return the index."""
        for start in range(0, len(self.text), _CHUNK):
            self.parser.Parse(self.text[start : start + _CHUNK], False)
        self.parser.Parse(b"", True)
        assert self.net is not None
        return self.net

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self.text is not self.data:
            attributes = _attributes(self.data, self.parser.CurrentByteIndex)
        parent = self.path[-1] if self.path else None
        kind = ""
        if parent is None:
            kind = "body"
            self._open_body(Body(name, self.parser.CurrentByteIndex))
            self.net = self.bodies[-1]
        elif parent == "body" and name == "layers" and not self.bodies[-1].has_layers:
            kind = "layers"
            self.bodies[-1].has_layers = True
        elif parent == "body" and name == "edges" and self.edges[-1] is None:
            kind = "edges"
            self.edges[-1] = []
        elif parent == "layers" and name == "layer":
            kind = "layer"
            self._open_layer(attributes)
        elif parent == "layer" and name == "data":
            self._note_constant(self.layers[-1], attributes)
        elif parent == "layer" and "body" in name:
            kind = self._start_body(name)
        elif parent == "edges" and name == "edge":
            edges = self.edges[-1]
            assert edges is not None
            edges.append(_ends(attributes))
        self.path.append(kind)

    def _tag_end(self) -> int:
        """Return the end of the tag at the parser's place."""
        match = _TAG_END.match(self.data, self.parser.CurrentByteIndex)
        return match.end() if match else len(self.data)

    def _open_layer(self, attributes: dict[str, str]) -> None:
        start = self.parser.CurrentByteIndex
        key = self.bodies[-1].new_key(shortest(attributes.get("id", "")), start)
        self.layers.append(_Layer(key, attributes.get("type", "").encode("utf-8", "replace"), start))
        self.tag_end = self._tag_end()

    def _note_constant(self, layer: _Layer, attributes: dict[str, str]) -> None:
        """Enter what a Const declares in its first `<data>`, if its numbers are numbers."""
        is_first, layer.has_data = not layer.has_data, True
        names = ("element_type", "shape", "offset", "size")
        texts = [attributes[name] for name in names if name in attributes]
        if layer.type != b"Const" or b"\0" in layer.key or not is_first or len(texts) < len(names):
            return
        if all(map(_PLACE.fullmatch, texts[2:])):
            type, shape, offset, size = (text.encode("utf-8", "replace") for text in texts)
            self.bodies[-1].constants[layer.key] = type, shape, offset, size

    def _start_body(self, name: str) -> str:
        siblings = self.bodies[-1].bodies.setdefault(self.layers[-1].key, {})
        if name in siblings:
            return ""
        siblings[name] = Body(name, self.parser.CurrentByteIndex)
        self._open_body(siblings[name])
        self.tag_end = self._tag_end()
        return "body"

    def _open_body(self, body: Body) -> None:
        self.bodies.append(body)
        self.edges.append(None)

    def _end(self, name: str) -> None:
        kind = self.path.pop()
        if kind == "body":
            body = self.bodies.pop()
            body.end = self._element_end(body.start)
            body.add_edges(self.edges.pop() or [])
        elif kind == "layer":
            layer = self.layers.pop()
            self.bodies[-1].add_layer(layer.key, (layer.type, layer.start, self._element_end(layer.start)))

    def _element_end(self, start: int) -> int:
        """Return the end of the layer or body that ends here.

        Of an empty element expat gives the place behind the tag.
        """
        is_empty = self.tag_end > start and self.data[self.tag_end - 2 : self.tag_end] == b"/>"
        end = self.tag_end if is_empty else self._tag_end()
        self.tag_end = 0
        return end
