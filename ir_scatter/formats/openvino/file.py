"""What the graphs of one IR share: the text, the weights, and what a Const declares."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ir_scatter.core.element_types import ElementType, from_element_type
from ir_scatter.core.model import Node
from ir_scatter.core.shapes import Shape, parse_shape, static
from ir_scatter.core.tensors import Constant, Weights, decode
from ir_scatter.formats.openvino.layers import LARGEST_RANK, LayerParser, LayerText
from ir_scatter.formats.openvino.xml_text import XmlText

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


CONST = b"const"
PARAMETER = b"parameter"


class IrFile:
    """What all graphs of one file share.

    Attributes:
        text: the `.xml`.
        weights: the `.bin`; None if there can be none.
        shapes: propagated shapes of the outputs of nodes, by scope.
        input_shapes: shapes of the main graph's inputs, by any of their names.
        scatter_types: operators whose output has the shape of their first input, in lower case.
        layers: parses layers.
    """

    def __init__(
        self,
        text: XmlText,
        weights: Weights | None,
        shapes: Mapping[str, tuple[Shape, ...]],
        input_shapes: Mapping[str, Shape],
        scatter_types: frozenset[str] = frozenset(),
    ) -> None:
        self.text = text
        self.weights = weights
        self.shapes = shapes
        self.input_shapes = input_shapes
        self.scatter_types = frozenset(type.lower().encode() for type in scatter_types)
        self.layers = LayerParser()
        self._declared: dict[tuple[bytes, bytes], _Declared] = {}

    def declared(self, type: bytes, text: bytes) -> "_Declared":
        """Return what `<data>` of a Const says: type, shape, and the shape again if it is static.

        Equal texts are read once.
        """
        known = self._declared.get((type, text))
        if known is None:
            element_type, shape = _declare(type.decode("utf-8", "replace"), text.decode("utf-8", "replace"))
            known = self._declared[type, text] = element_type, shape, static(shape)
        return known


_Declared = tuple[ElementType | None, Shape, tuple[int, ...] | None]


class IrConstant(Constant):
    """A Const of an IR: a place in the `.bin`."""

    __slots__ = ("_place", "_weights")

    def __init__(
        self,
        declared: Callable[[], Node],
        element_type: ElementType,
        shape: tuple[int, ...],
        weights: Weights | None,
        place: tuple[int, int] | None,
    ) -> None:
        self._declared = declared
        self._name = None
        self.element_type = element_type
        self.shape = shape
        self._weights = weights
        self._place = place

    def view(self) -> memoryview | None:
        """Return the bytes, None where they cannot be had."""
        if self._weights is None or self._place is None:
            return None
        return self._weights.view(*self._place)

    def load(self) -> "Array | None":
        """Return a read-only array, None where the bytes cannot be had."""
        view = self.view()
        if view is None or self.element_type is None:
            return None
        return decode(view, self.element_type, self.shape)


def byte_range(layer: LayerText) -> tuple[int, int] | None:
    """Return offset and size of a Const, None unless both are numbers."""
    offset, size = (layer.attributes.get(name, "").strip().removeprefix("+") for name in ("offset", "size"))
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in (offset, size)):
        return None
    return int(offset), int(size)


def declared_by(layer: LayerText) -> tuple[ElementType | None, Shape]:
    """Return the element type and the shape of a Const or Parameter, None for what is no such thing."""
    return _declare(layer.attributes.get("element_type", ""), layer.attributes.get("shape"))


def _declare(type: str, text: str | None) -> tuple[ElementType | None, Shape]:
    element_type = from_element_type(type.strip())
    try:
        shape = None if text is None else parse_shape(text)
    except ValueError:
        return element_type, None
    return element_type, None if shape is None or len(shape) > LARGEST_RANK else shape
