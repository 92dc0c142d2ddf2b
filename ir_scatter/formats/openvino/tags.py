"""The tags of well-formed XML with their places, for editing: nothing is read into a tree."""

import re
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

TOKEN = re.compile(
    rb"<(?:!--.*?--|!\[CDATA\[.*?\]\]|\?.*?\?"
    rb"""|(/?)([^\s/>]+)[^"'>]*+(?:(?:"[^"]*"|'[^']*')[^"'>]*+)*+)>""",
    re.DOTALL,
)
ATTRIBUTE = re.compile(rb"""([^\s=/"'<>]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_USUAL_LAYER = re.compile(rb'<layer id="[^"]*" name="([^"]*)" type="([^"]*)" version="([^"]*)">')
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
    | {space: f"&#{ord(space)};" for space in "\t\r\n"}
)


class Kind(IntEnum):
    """What a tag does: `</a>`, `<a/>`, `<a>`; the number is what it adds to the depth."""

    CLOSE = -1
    EMPTY = 0
    OPEN = 1


class Tag(NamedTuple):
    """A tag and its place."""

    kind: Kind
    name: bytes
    start: int
    end: int


class Element(NamedTuple):
    """An element, and its content from `inner` to `inner_end`."""

    name: bytes
    start: int
    inner: int
    inner_end: int
    end: int


class Attribute(NamedTuple):
    """The place of an attribute's value, without its quotation marks, and the value as written."""

    start: int
    end: int
    raw: bytes


class LayerTag(NamedTuple):
    """The start tag of a layer: its end, its quotation mark, and its attributes but the id."""

    end: int
    quote: bytes
    found: dict[bytes, Attribute]


def tags(data: bytes, start: int, end: int) -> Iterator[Tag]:
    """Yield the tags of a piece of XML; comments and the like are passed over."""
    for match in TOKEN.finditer(data, start, end):
        name = match[2]
        if name is not None:
            is_empty = data[match.end() - 2] == ord("/")
            kind = Kind.CLOSE if match[1] else Kind.EMPTY if is_empty else Kind.OPEN
            yield Tag(kind, name, match.start(), match.end())


def children(data: bytes, start: int, end: int) -> list[Element]:
    """Return the elements of a piece of XML, without those inside them.

    The piece may end with the end tag of what it is in. An element that does not end in it is left out.
    """
    found, depth, opening = [], 0, None
    for tag in tags(data, start, end):
        if depth == 0 and tag.kind is Kind.EMPTY:
            found.append(Element(tag.name, tag.start, tag.end, tag.end, tag.end))
        elif depth == 0 and tag.kind is Kind.OPEN:
            opening = tag
        depth += tag.kind
        if depth < 0:
            break
        if depth == 0 and opening is not None:
            found.append(Element(opening.name, opening.start, opening.end, tag.start, tag.end))
            opening = None
    return found


def start_tag(data: bytes, start: int) -> Tag:
    """Return the tag that begins at a place."""
    return next(tags(data, start, len(data)))


def attributes(data: bytes, tag: Tag) -> dict[bytes, Attribute]:
    """Return the attributes of a tag."""
    first = tag.start + 1 + len(tag.name)
    found = {}
    for match in ATTRIBUTE.finditer(data, first, tag.end):
        number = 3 if match[2] is None else 2
        found[match[1]] = Attribute(match.start(number), match.end(number), match[number])
    return found


def layer_tag(data: bytes, start: int) -> LayerTag:
    """Return the start tag of the layer that begins at a place."""
    match = _USUAL_LAYER.match(data, start)
    if match is None:
        tag = start_tag(data, start)
        found = attributes(data, tag)
        end = found[b"id"].end
        return LayerTag(tag.end, data[end : end + 1], found)
    places = [Attribute(*match.span(number), match[number]) for number in (1, 2, 3)]
    return LayerTag(match.end(), b'"', dict(zip((b"name", b"type", b"version"), places, strict=True)))


@lru_cache(1 << 8)
def escaped(text: str) -> bytes:
    """Return a text as the value of an attribute, between quotation marks of either kind."""
    return text.translate(_ESCAPES).encode()
