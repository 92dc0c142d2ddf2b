"""Where the parts of a layer stand in its text, for carets."""

from ir_scatter.core.diagnostics import Part, Side
from ir_scatter.formats.openvino.xml_text import Element, attribute_place, parse_elements, tag_end

_WORDS = {"opset": b"version", "type": b"type", "id": b"id", "name": b"name"}
_OF_PORTS = {"type": b"precision", "id": b"id"}
_DECLARED = {"type": "element_type", "shape": "shape"}

Place = tuple[int, int]
"""The first byte and the end, in the text of the layer."""


class LayerPlaces:
    """The places in the text of a layer without its bodies."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.layer = parse_elements(text).children[0]
        self._ports = {
            side: [*self.layer.iterfind(f"{side.value}/port")] for side in (Side.INPUT, Side.OUTPUT)
        }

    def find(self, part: Part, *, is_declaring: bool = False) -> Place:
        """Return where a part stands, or what it would be in.

        Of a layer that declares type and shape of its output, that is where it does so.
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

    def tag(self, element: Element) -> Place:
        return element.start, tag_end(self.text, element.start)

    def attribute(self, element: Element, name: bytes) -> Place:
        """Return where an attribute and its value stand; without it the tag."""
        return attribute_place(self.text, *self.tag(element), name)
