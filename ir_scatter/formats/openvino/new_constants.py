"""New constants of an IR: their bytes, behind the end of the `.bin`."""

from typing import TYPE_CHECKING

from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import NewConstant

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


class NewBytes:
    """What goes behind the end of a `.bin`; equal bytes are kept once.

    Attributes:
        first: the size of the `.bin` before.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self._size = first
        self._offsets: dict[bytes, int] = {}

    def place(self, constant: NewConstant) -> tuple[int, int]:
        """Return the offset and the size of a constant; an empty one takes a byte, as in `save_model`.

        Raises:
            NotEditable: constants of this type cannot be written.
        """
        data = encode(constant) or b"\0"
        offset = self._offsets.get(data)
        if offset is None:
            offset = self._offsets[data] = self._size
            self._size += len(data)
        return offset, len(data)

    def join(self) -> bytes:
        """Return all bytes."""
        return b"".join(self._offsets)


def encode(constant: NewConstant) -> bytes:
    """Return a constant as a `.bin` holds it; types below a byte are packed, the low bits first.

    Raises:
        NotEditable: constants of this type cannot be written.
    """
    element_type = constant.element_type
    wanted = None if element_type is None else dtype(element_type)
    if element_type is None or wanted is None or element_type.kind == "string":
        name = "unknown" if element_type is None else element_type.name
        raise NotEditable(f"the new constant '{constant.label}' is of type {name}, which cannot be written")
    array = constant.array.astype(wanted.newbyteorder("<"))
    return array.tobytes() if element_type.bits >= 8 else _packed(array, element_type)


def _packed(array: "Array", element_type: ElementType) -> bytes:
    import numpy

    bits = element_type.bits
    if bits not in (2, 4):
        raise NotEditable(f"a constant of type {element_type.name} cannot be written")
    per_byte = 8 // bits
    flat = numpy.zeros(element_type.byte_size(array.size) * per_byte, numpy.uint8)
    flat[: array.size] = array.reshape(-1).view(numpy.uint8) & ((1 << bits) - 1)
    shifts = numpy.arange(0, 8, bits, dtype=numpy.uint8)
    packed = numpy.bitwise_or.reduce(flat.reshape(-1, per_byte) << shifts, axis=1)
    return bytes(packed.astype(numpy.uint8))
