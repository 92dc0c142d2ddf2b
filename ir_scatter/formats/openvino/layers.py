"""Parses a single layer of an IR, and finds the places of its parts in the file."""

import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ir_scatter.core.diagnostics import Part, Side
from ir_scatter.core.element_types import ElementType, from_precision
from ir_scatter.core.shapes import MAX_RANK, Shape, parse_dim
from ir_scatter.formats.openvino.xml_text import XmlElement, attribute_place, decoded, parse_elements, tag_end

_HEAD = re.compile(
    rb'<layer id="[^"]*" name="([^"&\t\r\n]*)" type="[^"&]*"(?: version="([^"&\t\r\n]*)")?'
    rb'(?: (?!version=)[\w:.-]+="[^"]*")*\s*>'
)
_NAMES = re.compile(rb'(<port id="[^"]*" precision="[^"]*") names="[^"]*"')
_WORDS = {"opset": b"version", "type": b"type", "id": b"id", "name": b"name"}
_OF_PORTS = {"type": b"precision", "id": b"id"}
_DECLARED = {"type": "element_type", "shape": "shape"}
_COMMA = re.compile(r"(?<!\\),")


class PortText(NamedTuple):
    """A port as stored in the file, with its id in the shortest decimal form.

    The shape is None without dimensions (a scalar or an unknown rank), with too many dimensions, or with a
    dimension that is not a number. `bad_dims` lists the latter as (axis, text).
    """

    id: bytes
    element_type: ElementType | None
    shape: Shape
    bad_dims: tuple[tuple[int, str], ...] = ()
    precision: str = ""


_Rest: TypeAlias = tuple[dict[str, str], tuple[PortText, ...], tuple[PortText, ...]]


class LayerText(NamedTuple):
    """A layer as stored in the file, without its bodies."""

    name: str | None
    version: str | None
    attributes: dict[str, str]
    inputs: tuple[PortText, ...]
    outputs: tuple[PortText, ...]


def parse_layer(text: bytes) -> LayerText:
    """Parse the text of a layer without bodies."""
    head = _HEAD.match(text)
    if head is None:
        layer = parse_elements(text).children[0]
        return LayerText(layer.attributes.get("name"), layer.attributes.get("version"), *_rest(layer))
    rest = text[head.end() :]
    if b" names=" in rest:
        rest = _NAMES.sub(rb"\1", rest)
    version = None if head[2] is None else decoded(head[2])
    return LayerText(decoded(head[1]), version, *_parse_rest(rest))


@lru_cache(1 << 11)
def _parse_rest(text: bytes) -> _Rest:
    """Parse the text after a layer's start tag, without tensor names.

    Cached, since many layers have the same text.
    """
    return _rest(parse_elements(text))


def _rest(layer: XmlElement) -> _Rest:
    data = layer.find("data")
    inputs, outputs = (
        tuple([_port(port) for port in (section.iterfind("port") if section else ())])
        for section in (layer.find("input"), layer.find("output"))
    )
    return {} if data is None else data.attributes, inputs, outputs


def _port(port: XmlElement) -> PortText:
    dims, bad = [], []
    for number, dim in enumerate(port.iterfind("dim")):
        text = dim.text or ""
        digits = text.strip().removeprefix("+")
        try:
            if not (digits.isascii() and digits.isdigit()) and text.strip() != "-1":
                raise ValueError
            dims.append(parse_dim(digits))
        except ValueError:
            bad.append((number, text))
    shape = tuple(dims) if dims and not bad and len(dims) <= MAX_RANK else None
    precision = port.get("precision")
    return PortText(port.id("id"), from_precision(precision), shape, tuple(bad), precision)


def split_names(text: str) -> list[str]:
    """Split a list of tensor names at commas; a comma in a name is escaped with a backslash."""
    return [name.replace("\\,", ",") for name in _COMMA.split(text) if name]


class LayerPlaces:
    """Finds the places of parts in the text of a layer without its bodies."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.layer = parse_elements(text).children[0]
        self._ports = {
            side: [*self.layer.iterfind(f"{side.value}/port")] for side in (Side.INPUT, Side.OUTPUT)
        }

    def find(self, part: Part, *, is_declaring: bool = False) -> tuple[int, int]:
        """Return the (start, end) of a part; if it is missing, of the element that should contain it.

        With `is_declaring` (a Const or Parameter), type and shape of the output are those in `<data>`.
        """
        if is_declaring and part.side is Side.OUTPUT and (part.name in _DECLARED or part.dim is not None):
            return self.find(Part(Side.ATTRIBUTE, name=_DECLARED.get(part.name, "shape")))
        if part.side is Side.NODE:
            return self.attribute(self.layer, _WORDS.get(part.name, b""))
        if part.side is Side.ATTRIBUTE:
            return self.attribute(self.layer.find("data") or self.layer, part.name.encode())
        ports = self._ports[part.side]
        if part.number >= len(ports):
            return self.tag(self.layer.find(part.side.value) or self.layer)
        port = ports[part.number]
        if part.name in _OF_PORTS:
            return self.attribute(port, _OF_PORTS[part.name])
        dims = [*port.iterfind("dim")]
        if part.dim is not None and part.dim < len(dims):
            port = dims[part.dim]
        is_one_line = b"\n" not in self.text[port.start : port.end]
        return (port.start, port.end) if is_one_line else self.tag(port)

    def tag(self, element: XmlElement) -> tuple[int, int]:
        return element.start, tag_end(self.text, element.start)

    def attribute(self, element: XmlElement, name: bytes) -> tuple[int, int]:
        """Return the place of an attribute with its value; that of the tag if it is missing."""
        return attribute_place(self.text, *self.tag(element), name)
