"""One layer of an IR, parsed from its own bytes.

Most layers are read with three regular expressions; what those do not take to the last byte is
read tag by tag. Both give the same.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ir_scatter.core.element_types import ElementType, from_precision
from ir_scatter.core.shapes import MAX_RANK, Bounds, Shape, parse_dim
from ir_scatter.formats.openvino.index import shortest
from ir_scatter.formats.openvino.xml_text import Element, parse_elements

_HEAD = re.compile(
    rb'<layer id="[^"]*" name="([^"&\t\r\n]*)" type="[^"&]*"(?: version="([^"&\t\r\n]*)")?'
    rb'(?: (?!version=)[\w:.-]+="[^"]*")*\s*>\s*'
)
_DATA = re.compile(rb'<data((?:\s+[\w:.-]+="[^"&<>\t\r\n]*")*)\s*/>\s*')
_ATTRIBUTE = re.compile(r'([\w:.-]+)="([^"&]*)"')
_SPACE = re.compile(rb"\s*")
_SECTIONS = tuple((b"<%b>" % name, b"</%b>" % name) for name in (b"rt_info", b"input", b"output"))
_PORT = re.compile(
    rb'<port id="([^"&\t\r\n]*)"(?: precision="([^"&\t\r\n]*)")?(?: names="[^"]*")?\s*'
    rb"(?:/>|>((?:\s*<dim>[^<&\r]*</dim>)*)\s*</port>)"
)
_DIM = re.compile(r"<dim>([^<]*)</dim>")
_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True, slots=True, eq=False)
class PortText:
    """A port as written; equal ones of a file are one object.

    Attributes:
        id: in its shortest form.
        element_type: None if the precision is missing or unknown.
        shape: None if no dimension is written (a scalar, or of unknown rank), if one is no number, or
            if there are too many.
        bad_dims: the texts that are no dimensions.
    """

    id: bytes
    element_type: ElementType | None
    shape: Shape
    bad_dims: tuple[str, ...] = ()


class LayerText(NamedTuple):
    """A layer as written, without its bodies."""

    name: str
    version: str | None
    attributes: dict[str, str]
    inputs: tuple[PortText, ...]
    outputs: tuple[PortText, ...]


_Rest: TypeAlias = tuple[dict[str, str], tuple[PortText, ...], tuple[PortText, ...]]


class LayerParser:
    """Parses layers, and remembers what repeats itself: ports, sections, all that follows a start tag."""

    def __init__(self) -> None:
        self._ports: dict[tuple[bytes, bytes, bytes], PortText] = {}
        self._rests: dict[bytes, _Rest | None] = {}
        self._sections: dict[bytes, tuple[PortText, ...] | None] = {}

    def parse(self, data: bytes, start: int, end: int) -> LayerText:
        """Parse the layer in `data[start:end]`, which holds no bodies."""
        head = _HEAD.match(data, start, end)
        if head is not None:
            rest = data[head.end() : end]
            if rest not in self._rests:
                self._rests[rest] = self._parse_rest(rest)
            known = self._rests[rest]
            if known is not None:
                return LayerText(_decoded(head[1]), None if head[2] is None else _decoded(head[2]), *known)
        return parse_tree(parse_elements(data[start:end]).children[0])

    def _parse_rest(self, text: bytes) -> _Rest | None:
        """Parse what follows a start tag; None if it is written in an unusual way."""
        data = _DATA.match(text)
        position = data.end() if data else 0
        sections = []
        for opening, closing in _SECTIONS:
            first, last = position, -1
            if text.startswith(opening, first):
                last = text.find(closing, first)
                space = _SPACE.match(text, last + len(closing))
                position = space.end() if space else first
            sections.append(text[first + len(opening) : last] if last >= 0 else b"")
        if text[position:] != b"</layer>":
            return None
        inputs, outputs = self._parse_ports(sections[1]), self._parse_ports(sections[2])
        attributes = dict(_ATTRIBUTE.findall(_decoded(data[1]))) if data else {}
        return None if inputs is None or outputs is None else (attributes, inputs, outputs)

    def _parse_ports(self, text: bytes) -> tuple[PortText, ...] | None:
        """Return the ports of a section; None if it is written in an unusual way."""
        if not text:
            return ()
        if text not in self._sections:
            found = _PORT.findall(text)
            is_usual = len(found) + text.count(b"</port>") + 2 * text.count(b"</dim>") == text.count(b"<")
            ports = [self._ports.get(key) or self._new_port(key) for key in found]
            self._sections[text] = tuple(ports) if is_usual else None
        return self._sections[text]

    def _new_port(self, key: tuple[bytes, bytes, bytes]) -> PortText:
        id, precision, dims = key
        port = self._ports[key] = _port(id, _decoded(precision), _DIM.findall(_decoded(dims)))
        return port


def parse_tree(layer: Element) -> LayerText:
    """Read a layer however it is written."""
    data = layer.find("data")
    inputs, outputs = _tree_ports(layer.find("input")), _tree_ports(layer.find("output"))
    attributes = {} if data is None else data.attributes
    return LayerText(layer.get("name"), layer.attributes.get("version"), attributes, inputs, outputs)


def _tree_ports(section: Element | None) -> tuple[PortText, ...]:
    found = []
    for port in section.iterfind("port") if section else ():
        dims = [dim.text or "" for dim in port.iterfind("dim")]
        found.append(_port(port.get("id").encode(), port.get("precision"), dims))
    return tuple(found)


def _port(id: bytes, precision: str, texts: list[str]) -> PortText:
    dims, bad = [], []
    for text in texts:
        try:
            dims.append(_stored_dim(text.strip()))
        except ValueError:
            bad.append(text)
    shape = tuple(dims) if dims and not bad and len(dims) <= MAX_RANK else None
    return PortText(shortest(id), from_precision(precision), shape, tuple(bad))


def _stored_dim(text: str) -> int | Bounds:
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) and text != "-1":
        raise ValueError(text)
    return parse_dim(digits if text != "-1" else text)


def split_names(text: str) -> list[str]:
    """Return the names of a tensor; a comma in one has a backslash before it."""
    return [name.replace("\\,", ",") for name in _COMMA.split(text) if name]


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")
