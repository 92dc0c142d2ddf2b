"""One layer of an IR, parsed from its own bytes.

Most layers are read with three regular expressions; what those do not take to the last byte is
read tag by tag. Both give the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ir_scatter.core.element_types import ElementType, from_precision
from ir_scatter.core.shapes import Bounds, Shape, parse_dim
from ir_scatter.formats.openvino.tags import ATTRIBUTE, TOKEN
from ir_scatter.formats.openvino.xml_characters import unescaped
from ir_scatter.formats.openvino.xml_exact import shortest

LARGEST_RANK = 64
"""NumPy has no arrays of more dimensions, and Python prints no numbers of more than 4,300 digits."""

_ATTRIBUTE = re.compile(r'([\w:.-]+)="([^"&]*)"')
_HEAD = re.compile(
    rb'<layer id="[^"]*" name="([^"&\t\r\n]*)" type="[^"&]*"(?: version="([^"&\t\r\n]*)")?'
    rb'(?: (?!version=)[\w:.-]+="[^"]*")*\s*>\s*'
)
_DATA = re.compile(rb'<data((?:\s+[\w:.-]+="[^"&<>\t\r\n]*")*)\s*/>\s*')
_SPACE = re.compile(rb"\s*")
_PORT = re.compile(
    rb'<port id="([^"&\t\r\n]*)"(?: precision="([^"&\t\r\n]*)")?(?: names="[^"]*")?\s*'
    rb"(?:/>|>((?:\s*<dim>[^<&\r]*</dim>)*)\s*</port>)"
)
_OUTPUT, _OUTPUT_END, _LAYER_END = b"<output>", b"</output>", b"</layer>"
_DIM = re.compile(r"<dim>([^<]*)</dim>")
_CDATA = b"<![CDATA["


@dataclass(frozen=True, slots=True, eq=False)
class PortText:
    """A port as written.

    Attributes:
        id: in its shortest form.
        element_type: None if the precision is missing or unknown.
        shape: None if no dimension is written (a scalar, or of unknown rank), if one is no number, or
            if there are more than `LARGEST_RANK`.
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


@dataclass(slots=True, eq=False)
class Element:
    """An element of a layer.

    Attributes:
        name: with its prefix, which means nothing.
        attributes: by name.
        text: the first text in it that is more than space, which is all that OpenVINO reads.
        children: the elements in it.
    """

    name: str
    attributes: dict[str, str]
    text: str | None = None
    children: "list[Element]" = field(default_factory=list)

    def get(self, name: str, default: str = "") -> str:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def find(self, name: str) -> "Element | None":
        """Return the first child of a name."""
        return next((child for child in self.children if child.name == name), None)

    def iterfind(self, path: str) -> "Iterator[Element]":
        """Yield the elements at a path, "input/port"."""
        name, _, rest = path.partition("/")
        for child in self.children:
            if child.name == name:
                if rest:
                    yield from child.iterfind(rest)
                else:
                    yield child


def layer_tree(text: bytes) -> Element:
    """Parse a layer of a file that is known to be well-formed."""
    root = Element("", {})
    opened, position = [root], 0
    for match in TOKEN.finditer(text):
        current = opened[-1]
        if current.text is None and text[position : match.start()].strip():
            current.text = _decoded(unescaped(text[position : match.start()]))
        position = match.end()
        token = match[0]
        if match[2] is None:
            if current.text is None and token.startswith(_CDATA):
                current.text = _decoded(token[len(_CDATA) : -len(b"]]>")])
        elif match[1]:
            opened.pop()
        else:
            found = ATTRIBUTE.findall(token, 1 + len(match[2]))
            attributes = {_decoded(name): _decoded(unescaped(one or other)) for name, one, other in found}
            current.children.append(Element(_decoded(match[2]), attributes))
            if not token.endswith(b"/>"):
                opened.append(current.children[-1])
    return root.children[0]


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def tensor_names(text: bytes) -> tuple[str, ...]:
    """Return the names of the tensors at the output ports; a comma in one has a backslash before it."""
    if b"names=" not in text:
        return ()
    layer = layer_tree(text)
    found = [port.get("names") for port in layer.iterfind("output/port")]
    names = [name for text in found for name in re.split(r"(?<!\\),", text)]
    return tuple(name.replace("\\,", ",") for name in names if name)


_PortKey = tuple[bytes, bytes, bytes]


_Rest = tuple[dict[str, str], tuple[PortText, ...], tuple[PortText, ...]]


class LayerParser:
    """Parses layers, and remembers the texts of ports, which repeat themselves."""

    def __init__(self) -> None:
        self._ports: dict[_PortKey, PortText] = {}
        self._sections: dict[bytes, tuple[PortText, ...] | None] = {}
        self._rests: dict[bytes, _Rest | None] = {}

    def parse(self, data: bytes, start: int, end: int) -> LayerText:
        """Parse the layer in `data[start:end]`, which holds no bodies."""
        layer = self._quick_parse(data, start, end)
        return self._parse_tree(data[start:end]) if layer is None else layer

    def head(self, data: bytes, start: int, end: int) -> tuple[str, str | None] | None:
        """Return the layer's name and version, None if they are written in an unusual way."""
        match = _HEAD.match(data, start, end)
        return _name_and_version(match) if match else None

    def _quick_parse(self, data: bytes, start: int, end: int) -> LayerText | None:
        match = _HEAD.match(data, start, end)
        if match is None:
            return None
        text = data[match.end() : end]
        if text in self._rests:
            rest = self._rests[text]
        else:
            rest = self._rests[text] = self._quick_rest(text)
        if rest is None:
            return None
        name, version = _name_and_version(match)
        attributes, inputs, outputs = rest
        return LayerText(name, version, attributes, inputs, outputs)

    def _quick_rest(self, text: bytes) -> _Rest | None:
        """Parse what follows the start tag; None if it is written in an unusual way."""
        position, attributes = 0, {}
        found = _DATA.match(text)
        if found is not None:
            position = found.end()
            attributes = dict(_ATTRIBUTE.findall(found[1].decode("utf-8", "replace")))
        position = _skip(text, position, b"<rt_info>", b"</rt_info>")
        if b"put>" in text[:position]:
            return None
        first = position
        position = _skip(text, position, b"<input>", b"</input>")
        inputs = self._quick_ports(text[first:position])
        first = position
        position = _skip(text, position, _OUTPUT, _OUTPUT_END)
        outputs = self._quick_ports(text[first:position])
        if inputs is None or outputs is None or text[position:] != _LAYER_END:
            return None
        return attributes, inputs, outputs

    def outputs(self, data: bytes, start: int, end: int) -> tuple[PortText, ...]:
        """Parse the output ports only of the layer in `data[start:end]`, which holds no bodies."""
        first = data.find(_OUTPUT, start, end)
        last = data.find(_OUTPUT_END, first, end) + len(_OUTPUT_END) if first >= 0 else end
        ports = self._quick_ports(data[first:last]) if data[last:end].strip() == _LAYER_END else None
        return self.parse(data, start, end).outputs if ports is None else ports

    def _quick_ports(self, text: bytes | None) -> tuple[PortText, ...] | None:
        """Return the ports of a section; None if it is written in an unusual way."""
        if not text:
            return ()
        if text in self._sections:
            return self._sections[text]
        found = _PORT.findall(text)
        ports: tuple[PortText, ...] | None = None
        others = text.count(b"</port>") + 2 * text.count(b"</dim>") + len((_OUTPUT, _OUTPUT_END))
        if len(found) + others == text.count(b"<"):
            ports = tuple([self._ports.get(key) or self._new_port(key) for key in found])
        self._sections[text] = ports
        return ports

    def _new_port(self, key: _PortKey) -> PortText:
        id, precision, dims = (part.decode("utf-8", "replace") for part in key)
        port = _port(id, precision, _DIM.findall(dims))
        self._ports[key] = port
        return port

    def _parse_tree(self, text: bytes) -> LayerText:
        layer = layer_tree(text)
        data = layer.find("data")
        return LayerText(
            layer.get("name"),
            layer.attributes.get("version"),
            {} if data is None else data.attributes,
            _tree_ports(layer.find("input")),
            _tree_ports(layer.find("output")),
        )


def _name_and_version(match: re.Match[bytes]) -> tuple[str, str | None]:
    version = None if match[2] is None else match[2].decode("utf-8", "replace")
    return match[1].decode("utf-8", "replace"), version


def _skip(text: bytes, position: int, opening: bytes, closing: bytes) -> int:
    """Return the first byte behind an element and the space after it, if it starts here."""
    if not text.startswith(opening, position):
        return position
    last = text.find(closing, position)
    match = _SPACE.match(text, last + len(closing)) if last >= 0 else None
    return match.end() if match else position


def _tree_ports(parent: Element | None) -> tuple[PortText, ...]:
    return tuple(
        [
            _port(port.get("id"), port.get("precision"), [dim.text or "" for dim in port.iterfind("dim")])
            for port in (parent.iterfind("port") if parent else ())
        ]
    )


def _port(id: str, precision: str, texts: list[str]) -> PortText:
    dims, bad = [], []
    for text in texts:
        try:
            dims.append(_stored_dim(text.strip()))
        except ValueError:
            bad.append(text)
    shape = tuple(dims) if dims and not bad and len(dims) <= LARGEST_RANK else None
    return PortText(shortest(id), from_precision(precision), shape, tuple(bad))


def _stored_dim(text: str) -> int | Bounds:
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) and text != "-1":
        raise ValueError(text)
    return parse_dim(digits if text != "-1" else text)
