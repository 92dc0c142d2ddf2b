"""Layers, ports and edges of an IR as text, in the style of those around them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.shapes import Shape
from ir_scatter.formats.openvino.tags import escaped

UNKNOWN = b"UNSPECIFIED"


class Style(NamedTuple):
    """How a file is written.

    Attributes:
        lead: line break and indentation of a layer; nothing if it does not begin a line.
        step: what its content is indented by beyond that; None if it stands on the same line.
        quote: the quotation mark.
        closing: what stands before `/>`.
    """

    lead: bytes
    step: bytes | None
    quote: bytes
    closing: bytes

    def deeper(self, lead: bytes) -> bytes:
        """Return the lead of what is inside an element with this lead."""
        return b"" if not lead or self.step is None else lead + self.step

    def attributes(self, pairs: Iterable[tuple[str, bytes]]) -> bytes:
        """Write attributes whose values are escaped already."""
        quote = self.quote
        return b"".join(b" %b=%b%b%b" % (name.encode(), quote, value, quote) for name, value in pairs)

    def data(self, pairs: Mapping[str, str]) -> bytes:
        """Write `<data>`."""
        written = self.attributes((name, escaped(value)) for name, value in pairs.items())
        return b"<data%b%b/>" % (written, self.closing)

    def port(self, id: bytes, element_type: ElementType | None, shape: Shape, lead: bytes) -> bytes:
        """Write a port with its dimensions; `lead` is what stands before it."""
        written = self.attributes([("id", id), ("precision", _precision(element_type))])
        if not shape:
            return b"<port%b%b/>" % (written, self.closing)
        inner = self.deeper(lead)
        dims = b"".join(
            b"%b<dim>%d</dim>" % (inner, dim if isinstance(dim, int) else -1) for dim in shape
        )  # fmt: skip
        return b"<port%b>%b%b</port>" % (written, dims, lead if inner else b"")

    def edge(self, values: Sequence[bytes]) -> bytes:
        """Write an edge."""
        names = ("from-layer", "from-port", "to-layer", "to-port")
        return b"<edge%b%b/>" % (self.attributes(zip(names, values, strict=True)), self.closing)

    def layer(self, attributes: bytes, parts: Sequence[bytes]) -> bytes:
        """Write a layer from what is in it."""
        inner = self.deeper(self.lead)
        end = self.lead if inner else b""
        return b"<layer%b>%b%b</layer>" % (attributes, b"".join(inner + part for part in parts), end)

    def ports(self, name: bytes, values: Sequence[tuple[bytes, ElementType | None, Shape]]) -> bytes:
        """Write `<input>` or `<output>`, as it stands in a layer."""
        outer = self.deeper(self.lead)
        inner = self.deeper(outer)
        written = b"".join(inner + self.port(*value, inner) for value in values)
        return b"<%b>%b%b</%b>" % (name, written, outer, name)


def _precision(element_type: ElementType | None) -> bytes:
    if element_type is None:
        return UNKNOWN
    return (element_type.ir_name or element_type.name.upper()).encode()
