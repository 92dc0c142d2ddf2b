"""The exact way to the index of an IR: expat with handlers, for every well-formed file."""

import re
from xml.parsers import expat

from ir_scatter.formats.xml_index import EDGE_ATTRIBUTES, Body, Edge

_TAG_END = re.compile(rb"""[^"'>]*(?:"[^"]*"[^"'>]*|'[^']*'[^"'>]*)*>""")
_NUMBER = re.compile(r"\s*\+?0*([0-9]+)\s*")
_PLACE = re.compile(r"[0-9]{1,19}")
_CHUNK = 1 << 16


def exact_index(data: bytes) -> Body:
    """Index well-formed XML whose root is `<net>`."""
    return _Exact(data).run()


def shortest(text: str) -> bytes:
    """Return an id in its shortest decimal form; other text as it is."""
    match = _NUMBER.fullmatch(text)
    return (match[1] if match else text).encode("utf-8", "replace")


class _Exact:
    """Handlers of expat, and what is open at the moment.

    `path` holds one word per open element: "body" (the net's or a layer's), "layers", "layer",
    "edges", or "" for anything else, inside which nothing counts.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.net: Body | None = None
        self.path: list[str] = []
        self.bodies: list[Body] = []
        self.layers: list[tuple[bytes, bytes, int]] = []
        self.edges: list[list[Edge]] = []
        self.tag_end = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def run(self) -> Body:
        """Parse the file and return the index."""
        for start in range(0, len(self.data), _CHUNK):
            self.parser.Parse(self.data[start : start + _CHUNK], False)
        self.parser.Parse(b"", True)
        assert self.net is not None
        return self.net

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self.path[-1] if self.path else None
        kind = ""
        if parent is None:
            kind = "body"
            self._open_body(Body(name, self.parser.CurrentByteIndex))
            self.net = self.bodies[-1]
        elif parent == "body" and name == "layers" and not self.bodies[-1].has_layers:
            kind = "layers"
            self.bodies[-1].has_layers = True
        elif parent == "body" and name == "edges":
            kind = "edges"
        elif parent == "layers" and name == "layer":
            kind = "layer"
            id = shortest(attributes.get("id", ""))
            type = attributes.get("type", "").encode("utf-8", "replace")
            self.layers.append((id, type, self.parser.CurrentByteIndex))
            self.tag_end = self._tag_end()
        elif parent == "layer" and name == "data":
            self._note_constant(attributes)
        elif parent == "layer" and "body" in name:
            kind = self._start_body(name)
        elif parent == "edges" and name == "edge":
            ends = [shortest(attributes.get(key, "")) for key in EDGE_ATTRIBUTES]
            self.edges[-1].append((ends[0], ends[1], ends[2], ends[3]))
        self.path.append(kind)

    def _tag_end(self) -> int:
        """Return the end of the tag at the parser's place."""
        match = _TAG_END.match(self.data, self.parser.CurrentByteIndex)
        return match.end() if match else len(self.data)

    def _note_constant(self, attributes: dict[str, str]) -> None:
        """Enter what a Const declares, if its numbers are numbers."""
        texts = [attributes.get(key, "") for key in ("element_type", "shape", "offset", "size")]
        id, type, _ = self.layers[-1]
        body = self.bodies[-1]
        if type == b"Const" and id not in body.layers and all(map(_PLACE.fullmatch, texts[2:])):
            declared = [text.encode("utf-8", "replace") for text in texts]
            body.constants[id] = declared[0], declared[1], declared[2], declared[3]

    def _start_body(self, name: str) -> str:
        siblings = self.bodies[-1].bodies.setdefault(self.layers[-1][0], {})
        if name in siblings:
            return ""
        siblings[name] = Body(name, self.parser.CurrentByteIndex)
        self._open_body(siblings[name])
        return "body"

    def _open_body(self, body: Body) -> None:
        self.bodies.append(body)
        self.edges.append([])

    def _end(self, name: str) -> None:
        kind = self.path.pop()
        if kind == "body":
            body = self.bodies.pop()
            body.end = self.parser.CurrentByteIndex
            body.add_edges(self.edges.pop())
        elif kind == "layer":
            id, type, start = self.layers.pop()
            is_empty = self.tag_end > start and self.data[self.tag_end - 2 : self.tag_end] == b"/>"
            end = self.tag_end if is_empty else self._tag_end()
            self.tag_end = 0
            self.bodies[-1].add_layer(id, (type, start, end))
