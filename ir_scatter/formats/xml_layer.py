"""One layer of an IR, parsed from its own bytes.

Most layers are read with three regular expressions; what those do not take to the last byte is
given to lxml. Both give the same.
"""

import re
from dataclasses import dataclass

from lxml import etree

from ir_scatter.elements import ElementType, from_precision
from ir_scatter.formats.xml_exact import shortest
from ir_scatter.shapes import Bounds, Shape, parse_dim

_ATTRIBUTE = re.compile(r'([\w:.-]+)="([^"&]*)"')
_LAYER = re.compile(
    rb'<layer id="[^"]*" name="([^"&]*)" type="[^"&]*"(?: version="([^"&]*)")?'
    rb'(?: [\w:.-]+="[^"]*")*\s*>\s*'
    rb'(?:<data((?:\s+[\w:.-]+="[^"&<>]*")*)\s*/>\s*)?'
    rb"(?:<rt_info>(?:(?!<input>|<output>|</layer>).)*</rt_info>\s*)?"
    rb"(?:<input>(.*?)</input>\s*)?(?:<output>(.*?)</output>\s*)?</layer>",
    re.DOTALL,
)
_PORT = re.compile(
    rb'<port id="([^"&]*)"(?: precision="([^"&]*)")?(?: names="[^"]*")?\s*'
    rb"(?:/>|>((?:\s*<dim>[^<&]*</dim>)*)\s*</port>)"
)
_DIM = re.compile(r"<dim>([^<]*)</dim>")


@dataclass(frozen=True, slots=True, eq=False)
class PortText:
    """A port as written.

    Attributes:
        id: in its shortest form.
        element_type: None if the precision is missing or unknown.
        shape: None if no dimension is written (a scalar, or of unknown rank) or one is no number.
        bad_dims: the texts that are no dimensions.
    """

    id: bytes
    element_type: ElementType | None
    shape: Shape
    bad_dims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class LayerText:
    """A layer as written, without its bodies."""

    name: str
    version: str | None
    attributes: dict[str, str]
    inputs: tuple[PortText, ...]
    outputs: tuple[PortText, ...]


def tensor_names(text: bytes) -> tuple[str, ...]:
    """Return the names of the tensors at the output ports of a layer; a comma in one is `\\,`."""
    if b"names=" not in text:
        return ()
    layer = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
    found = [port.get("names", "") for port in layer.findall("output/port")]
    names = [name for text in found for name in re.split(r"(?<!\\),", text)]
    return tuple(name.replace("\\,", ",") for name in names if name)


_PortKey = tuple[bytes, bytes, bytes]


class LayerParser:
    """Parses layers, and remembers ports, which repeat themselves."""

    def __init__(self) -> None:
        self._ports: dict[_PortKey, PortText] = {}

    def parse(self, data: bytes, start: int, end: int) -> LayerText:
        """Parse the layer in `data[start:end]`, which holds no bodies."""
        match = _LAYER.fullmatch(data, start, end)
        if match is None:
            return self._parse_tree(data[start:end])
        name, version, attributes, inputs, outputs = match.groups()
        input_ports, output_ports = self._quick_ports(inputs), self._quick_ports(outputs)
        if input_ports is None or output_ports is None:
            return self._parse_tree(data[start:end])
        return LayerText(
            name.decode("utf-8", "replace"),
            None if version is None else version.decode("utf-8", "replace"),
            dict(_ATTRIBUTE.findall(attributes.decode("utf-8", "replace"))) if attributes else {},
            input_ports,
            output_ports,
        )

    def _quick_ports(self, text: bytes | None) -> tuple[PortText, ...] | None:
        if not text:
            return ()
        found = _PORT.findall(text)
        if len(found) != text.count(b"<port") or b"<!" in text:
            return None
        return tuple([self._ports.get(key) or self._new_port(key) for key in found])

    def _new_port(self, key: _PortKey) -> PortText:
        id, precision, dims = (part.decode("utf-8", "replace") for part in key)
        port = _port(id, precision, _DIM.findall(dims))
        self._ports[key] = port
        return port

    def _parse_tree(self, text: bytes) -> LayerText:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        layer = etree.fromstring(text, parser)
        data = layer.find("data")
        return LayerText(
            layer.get("name", ""),
            layer.get("version"),
            {} if data is None else {str(key): str(value) for key, value in data.attrib.items()},
            _tree_ports(layer.find("input")),
            _tree_ports(layer.find("output")),
        )


def _tree_ports(parent: "etree._Element | None") -> tuple[PortText, ...]:
    if parent is None:
        return ()
    return tuple(
        _port(
            port.get("id", ""),
            port.get("precision", ""),
            [(dim.text or "") for dim in port.findall("dim")],
        )
        for port in parent.findall("port")
    )


def _port(id: str, precision: str, texts: list[str]) -> PortText:
    dims, bad = [], []
    for text in texts:
        try:
            dims.append(_stored_dim(text.strip()))
        except ValueError:
            bad.append(text)
    shape = tuple(dims) if dims and not bad else None
    return PortText(shortest(id), from_precision(precision), shape, tuple(bad))


def _stored_dim(text: str) -> int | Bounds:
    if not (text.isascii() and text.isdigit()) and text != "-1":
        raise ValueError(text)
    return parse_dim(text)
