"""One layer of an IR, parsed from its own bytes.

Most layers are read with regular expressions; what those do not take to the last byte is read tag by tag.
Both give the same.
"""

import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ir_scatter.core.element_types import ElementType, from_precision
from ir_scatter.core.shapes import MAX_RANK, Shape, parse_dim
from ir_scatter.formats.openvino.index import shortest
from ir_scatter.formats.openvino.xml_text import Element, parse_elements

_HEAD = re.compile(
    rb'<layer id="[^"]*" name="([^"&\t\r\n]*)" type="[^"&]*"(?: version="([^"&\t\r\n]*)")?'
    rb'(?: (?!version=)[\w:.-]+="[^"]*")*\s*>\s*'
)
_PORT = (
    rb'<port id="([^"&\t\r\n]*)"(?: precision="([^"&\t\r\n]*)")?(?: names="[^"]*")?\s*'
    rb"(?:/>|>((?:\s*<dim>[^<&\r]*</dim>)*)\s*</port>)\s*"
)
_SECTION = rb"((?:" + re.sub(rb"\((?!\?)", rb"(?:", _PORT) + rb")*+)"
_PORTS = re.compile(_PORT)
_REST = re.compile(
    rb'(?:<data((?:\s+[\w:.-]+="[^"&<>\t\r\n]*")*)\s*/>\s*)?(?><rt_info>.*?</rt_info>\s*)?'
    rb"(?:<input>\s*" + _SECTION + rb"</input>\s*)?(?:<output>\s*" + _SECTION + rb"</output>\s*)?</layer>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r'([\w:.-]+)="([^"&]*)"')
_DIM = re.compile(r"<dim>([^<]*)</dim>")
_COMMA = re.compile(r"(?<!\\),")


class PortText(NamedTuple):
    """A port as written.

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


def parse_layer(text: bytes) -> LayerText:
    """Parse a layer that holds no bodies."""
    head = _HEAD.match(text)
    rest = _parse_rest(text[head.end() :]) if head else None
    if head is None or rest is None:
        return parse_tree(parse_elements(text).children[0])
    return LayerText(_decoded(head[1]), None if head[2] is None else _decoded(head[2]), *rest)


@lru_cache(1 << 11)
def _parse_rest(text: bytes) -> _Rest | None:
    """Parse what follows a start tag, which is often the same; None if it is written in an unusual way."""
    found = _REST.fullmatch(text)
    if found is None:
        return None
    attributes = dict(_ATTRIBUTE.findall(_decoded(found[1] or b"")))
    inputs, outputs = (
        tuple([
            _port(id, _decoded(precision), tuple(_DIM.findall(_decoded(dims))))
            for id, precision, dims in _PORTS.findall(section or b"")
        ])
        for section in found.group(2, 3)
    )  # fmt: skip
    return attributes, inputs, outputs


def parse_tree(layer: Element) -> LayerText:
    """Read a layer however it is written."""
    data = layer.find("data")
    inputs, outputs = (
        tuple(
            _port(
                port.get("id").encode(),
                port.get("precision"),
                tuple(dim.text or "" for dim in port.iterfind("dim")),
            )
            for port in (section.iterfind("port") if section else ())
        )
        for section in (layer.find("input"), layer.find("output"))
    )
    attributes = {} if data is None else data.attributes
    return LayerText(layer.get("name"), layer.attributes.get("version"), attributes, inputs, outputs)


@lru_cache(1 << 11)
def _port(id: bytes, precision: str, texts: tuple[str, ...]) -> PortText:
    dims, bad = [], []
    for text in texts:
        digits = text.strip().removeprefix("+")
        try:
            if not (digits.isascii() and digits.isdigit()) and text.strip() != "-1":
                raise ValueError
            dims.append(parse_dim(digits))
        except ValueError:
            bad.append(text)
    shape = tuple(dims) if dims and not bad and len(dims) <= MAX_RANK else None
    return PortText(shortest(id), from_precision(precision), shape, tuple(bad))


def split_names(text: str) -> list[str]:
    """Return the names of a tensor; a comma in one has a backslash before it."""
    return [name.replace("\\,", ",") for name in _COMMA.split(text) if name]


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")
