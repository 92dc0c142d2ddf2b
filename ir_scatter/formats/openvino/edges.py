"""Where the edges of an IR stand, for editing."""

import re
from collections.abc import Iterator, Set
from typing import NamedTuple

from ir_scatter.formats.openvino.index import EDGE_ATTRIBUTES, Body, Edge
from ir_scatter.formats.openvino.tags import Kind, Tag, attributes, tags
from ir_scatter.formats.openvino.xml_characters import unescaped
from ir_scatter.formats.openvino.xml_exact import shortest

_USUAL = re.compile(
    rb'<edge from-layer="(0|[1-9]\d*)" from-port="(0|[1-9]\d*)"'
    rb' to-layer="(0|[1-9]\d*)" to-port="(0|[1-9]\d*)"\s*/>'
)
_NAMES = tuple(name.encode() for name in EDGE_ATTRIBUTES)


class EdgePlace(NamedTuple):
    """An edge and its place."""

    start: int
    end: int
    edge: Edge


def edges_into(data: bytes, body: Body, layers: Set[bytes]) -> dict[bytes, list[EdgePlace]]:
    """Return the edges into some layers of a body, by the layer they go to, in the order of the file."""
    found: dict[bytes, list[EdgePlace]] = {layer: [] for layer in layers}
    opening = _edges_tag(data, body)
    if opening is None or opening.kind is Kind.EMPTY:
        return found
    for place in _usual(data, opening.end, layers) or _any(data, opening.end, body.end):
        if place.edge[2] in layers:
            found[place.edge[2]].append(place)
    return found


def _edges_tag(data: bytes, body: Body) -> Tag | None:
    """Return the first `<edges>` of a body, which stands before or behind its layers."""
    spans = list(body.layers.values())
    depth = 0
    for start, end in ((body.start, spans[0][1]), (spans[-1][2], body.end)):
        for tag in tags(data, start, end):
            if depth == 1 and tag.name == b"edges" and tag.kind is not Kind.CLOSE:
                return tag
            depth += tag.kind
    return None


def _usual(data: bytes, start: int, layers: Set[bytes]) -> list[EdgePlace]:
    """Return the edges into some layers; nothing if anything is written in an unusual way."""
    end = data.find(b"</edges", start)
    count, found = 0, []
    for match in _USUAL.finditer(data, start, end):
        count += 1
        if match[3] in layers:
            edge = match[1], match[2], match[3], match[4]
            found.append(EdgePlace(match.start(), match.end(), edge))
    return found if data.count(b"<", start, end) == count else []


def _any(data: bytes, start: int, end: int) -> Iterator[EdgePlace]:
    """Yield the edges up to the end tag of what they are in."""
    depth, opening = 0, None
    for tag in tags(data, start, end):
        if depth == 0 and tag.name == b"edge" and tag.kind is not Kind.CLOSE:
            opening = tag
        depth += tag.kind
        if depth < 0:
            return
        if depth == 0 and opening is not None:
            yield EdgePlace(opening.start, tag.end, _ends(data, opening))
            opening = None


def _ends(data: bytes, tag: Tag) -> Edge:
    found = attributes(data, tag)
    raws = (found[name].raw if name in found else b"" for name in _NAMES)
    origin, port, to, to_port = (shortest(unescaped(raw).decode()) for raw in raws)
    return origin, port, to, to_port
