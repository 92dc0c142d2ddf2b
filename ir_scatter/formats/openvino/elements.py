"""New elements of an IR as text (layers, ports, edges), and the bytes of new constants; for writers."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import NewConstant
from ir_scatter.core.model import Value

_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
    | {space: f"&#{ord(space)};" for space in "\t\r\n"}
)


class NewElement(NamedTuple):
    """A new XML element: its name, attributes, and child elements or text."""

    name: str
    attributes: Mapping[str, str]
    inside: "Sequence[NewElement] | str" = ()


class Style(NamedTuple):
    """The formatting of an XML file, which new elements follow.

    Attributes:
        lead: line break and indentation before a layer; empty if a layer does not begin a line.
        step: additional indentation of child elements; None if they are on the same line.
        quote: the quotation mark.
        closing: the text before `/>`.
    """

    lead: bytes
    step: bytes | None
    quote: bytes
    closing: bytes

    def attribute(self, name: str, text: str) -> bytes:
        return b" %b=%b%b%b" % (name.encode(), self.quote, escape(text), self.quote)

    def inner(self, lead: bytes) -> bytes:
        """Return the whitespace before each child of an element that follows the whitespace `lead`."""
        return b"" if not lead or self.step is None else lead + self.step

    def text(self, new: NewElement, lead: bytes) -> bytes:
        """Return the text of an element. `lead` is the whitespace before it, which is not included."""
        name = new.name.encode()
        tag = name + b"".join(self.attribute(*pair) for pair in new.attributes.items())
        if not new.inside:
            return b"<%b%b/>" % (tag, self.closing)
        if isinstance(new.inside, str):
            return b"<%b>%b</%b>" % (tag, new.inside.encode(), name)
        inner = self.inner(lead)
        inside = b"".join(inner + self.text(child, inner) for child in new.inside)
        return b"<%b>%b%b</%b>" % (tag, inside, lead if inner else b"", name)


@lru_cache(1 << 8)
def escape(text: str) -> bytes:
    return text.translate(_ESCAPES).encode()


def new_port(id: str, value: Value, names: str = "") -> NewElement:
    type = value.element_type
    precision = "UNSPECIFIED" if type is None else type.ir_name or type.name.upper()
    dims = [NewElement("dim", {}, str(dim if isinstance(dim, int) else -1)) for dim in value.shape or ()]
    return NewElement("port", {"id": id, "precision": precision} | ({"names": names} if names else {}), dims)


def new_layer(
    id: str, name: str, type: str, version: object, data: Mapping[str, str],
    inputs: Sequence[Value], output: Value | None, names: str = "",
) -> NewElement:  # fmt: skip
    """Return a layer element. Its ports are numbered from 0, inputs first."""
    inside = [NewElement("data", data)] if data else []
    if inputs:
        inside.append(
            NewElement("input", {}, [new_port(str(port), value) for port, value in enumerate(inputs)])
        )
    if output is not None:
        inside.append(NewElement("output", {}, [new_port(str(len(inputs)), output, names)]))
    return NewElement("layer", {"id": id, "name": name, "type": type, "version": str(version)}, inside)


def new_edge(origin: tuple[str, str], to: tuple[str, str]) -> NewElement:
    ends = ("from-layer", "from-port", "to-layer", "to-port")
    return NewElement("edge", dict(zip(ends, origin + to, strict=True)))


class NewBytes:
    """The bytes to append to a `.bin` of `size` bytes. Equal contents are stored once."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._offsets: dict[bytes, int] = {}

    def layer(self, id: str, name: str, constant: NewConstant) -> NewElement:
        """Return a Const layer and store its bytes.

        Element types below one byte are packed. An empty constant gets one byte.

        Raises:
            NotEditable: constants of this element type cannot be written.
        """
        from ir_scatter.core.arrays import pack

        type = constant.element_type
        target = None if type is None or type.kind == "string" else dtype(type)
        if type is None or target is None or (type.bits < 8 and type.bits not in (2, 4)):
            type_name = "unknown" if type is None else type.name
            raise NotEditable(
                f"the new constant '{constant.label}' has element type {type_name}, which cannot be written"
            )
        array = constant.array.astype(target.newbyteorder("<"))
        bytes = (array if type.bits >= 8 else pack(array.reshape(-1), type.bits)).tobytes() or b"\0"
        if bytes not in self._offsets:
            self._offsets[bytes] = self._size
            self._size += len(bytes)
        shape, offset, size = ", ".join(map(str, constant.shape)), self._offsets[bytes], len(bytes)
        data = {"element_type": type.name, "shape": shape, "offset": str(offset), "size": str(size)}
        return new_layer(id, name, "Const", "opset1", data, [], Value("", type, constant.shape))

    def join(self) -> bytes:
        return b"".join(self._offsets)
