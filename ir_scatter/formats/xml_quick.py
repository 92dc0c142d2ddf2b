"""The quick way to the index of an IR: a few regular expressions over the bytes."""

import re

from ir_scatter.formats.xml_index import Body

_ID = rb'"(0|[1-9]\d*)"'
_NET = re.compile(rb"<net[^<>]*>\s*(?=<layers>)")
_LAYER = re.compile(
    rb"\s*<layer id=" + _ID + rb' name="[^"]*" type="([^"&]*)"(?: [\w:.-]+="[^"]*")*\s*(/?)>'
    rb'(?:\s*<data element_type="([^"&]*)" shape="([^"&]*)"'
    rb' offset="(\d{1,19})" size="(\d{1,19})"\s*/>)?'
)
_BODY = re.compile(rb"<(\w+)>\s*")
_LAYERS_END = re.compile(rb"\s*</layers>\s*<edges\s*(/?)>")
_EDGE = re.compile(
    rb"<edge from-layer=" + _ID + rb" from-port=" + _ID
    + rb" to-layer=" + _ID + rb" to-port=" + _ID + rb"\s*/>"
)  # fmt: skip
_LAYER_END = b"</layer>"
_LAYERS = b"<layers>"


class _Unusual(Exception):
    """Something that `save_model` does not write."""


def quick_index(data: bytes, root_start: int) -> Body | None:
    """Index well-formed XML as `save_model` writes it; None if anything is unusual."""
    if (b"!" in data and (b"<!--" in data or b"<![" in data)) or data.count(b"<?", root_start):
        return None
    match = _NET.match(data, root_start)
    if match is None:
        return None
    net = Body("net", root_start)
    try:
        _Quick(data).fill(net, match.end())
    except _Unusual:
        return None
    net.end = len(data)
    return net


class _Quick:
    """One pass over one file.

    A layer ends at the next `</layer>` unless a `<layers>` comes before it: then it has bodies.
    Whatever stands between two layers, or is written in another way, ends the pass.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.types: dict[bytes, bytes] = {}
        self.next_layers = 0

    def fill(self, body: Body, position: int) -> int:
        """Enter the layers and edges that start with `<layers>` at `position`; return their end."""
        data, types = self.data, self.types
        layers, constants = body.layers, body.constants
        body.has_layers = True
        position += len(_LAYERS)
        self._look_ahead(position)
        while (match := _LAYER.match(data, position)) is not None:
            id, type, is_closed = match.group(1, 2, 3)
            start, position = match.start(1) - len(b'<layer id="'), match.end()
            if not is_closed:
                end = data.find(_LAYER_END, position)
                if end < 0:
                    raise _Unusual
                if self.next_layers < end:
                    end = self._bodies(body, id, position)
                position = end + len(_LAYER_END)
            if id in layers:
                body.add_layer(id, (type, start, position))
                continue
            layers[id] = (types.setdefault(type, type), start, position)
            if type == b"Const" and match[4] is not None:
                constants[id] = match.group(4, 5, 6, 7)
        return self._edges(body, position)

    def _look_ahead(self, position: int) -> None:
        found = self.data.find(_LAYERS, position)
        self.next_layers = len(self.data) if found < 0 else found

    def _bodies(self, body: Body, id: bytes, position: int) -> int:
        """Enter the bodies inside a layer; return the first byte of its end tag."""
        data = self.data
        while True:
            end, layers = data.find(_LAYER_END, position), self.next_layers
            if layers > end:
                return end
            start = data.rfind(b"<", position, layers)
            match = _BODY.match(data, start) if start >= 0 else None
            if match is None or match.end() != layers or b"body" not in match[1]:
                raise _Unusual
            inner = Body(match[1].decode(), start)
            if body.bodies.setdefault(id, {}).setdefault(inner.name, inner) is not inner:
                raise _Unusual
            position = self.fill(inner, layers)
            position = data.find(b"</" + match[1] + b">", position)
            if position < 0:
                raise _Unusual
            inner.end = position

    def _edges(self, body: Body, position: int) -> int:
        match = _LAYERS_END.match(self.data, position)
        if match is None:
            raise _Unusual
        start = match.end()
        end = start if match[1] else self.data.find(b"</edges>", start)
        edges = _EDGE.findall(self.data, start, end)
        if self.data.count(b"<", start, end) != len(edges):
            raise _Unusual
        body.add_edges(edges)
        return end
