"""Python values as ONNX messages: tensors and attributes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from onnx import AttributeProto, TensorProto, numpy_helper

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.shapes import with_article

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


def make_tensor(array: "Array", element_type: ElementType | None = None) -> TensorProto:
    """Make a tensor that holds its bytes in the file, low byte first.

    Args:
        array: its content.
        element_type: what it is to be; that of the array if None.

    Raises:
        TypeError: the array is of another type, or of one that ONNX has not.
    """
    try:
        tensor = numpy_helper.from_array(array.astype(array.dtype.newbyteorder("="), copy=False))
    except (ValueError, NotImplementedError) as error:
        raise TypeError(f"an array of {array.dtype}, expected a type that ONNX has") from error
    if element_type is not None and tensor.data_type != element_type.onnx_number:
        raise TypeError(f"an array of {array.dtype}, expected one of {element_type.name}")
    return tensor


def make_attribute(name: str, value: Any) -> AttributeProto:
    """Make an attribute whose type is that of a Python value; an empty list is one of whole numbers.

    Raises:
        TypeError: the value is of a type that attributes are not made of.
    """
    attribute = AttributeProto(name=name)
    if isinstance(value, np.ndarray):
        attribute.type = AttributeProto.TENSOR
        attribute.t.CopyFrom(make_tensor(value))
    elif isinstance(value, list | tuple):
        _write_list(attribute, value)
    else:
        for types, kind, field, convert in _PLAIN:
            if isinstance(value, types):
                attribute.type = kind
                setattr(attribute, field, convert(value))
                break
        else:
            raise TypeError(
                f"attribute {name!r} is {with_article(type(value).__name__)}, expected {_EXPECTED}"
            )
    return attribute


def _write_list(attribute: AttributeProto, values: Sequence[Any]) -> None:
    for types, kind, field, convert in _LISTS:
        if all(isinstance(value, types) for value in values):
            attribute.type = kind
            getattr(attribute, field).extend(map(convert, values))
            return
    found = ", ".join(sorted({type(value).__name__ for value in values}))
    raise TypeError(f"attribute {attribute.name!r} is a list of {found}, expected {_EXPECTED}")


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


_EXPECTED = "numbers, text, lists of one of these, or an array"
_WHOLE = (int, np.integer, np.bool_)
_NUMBER = (int, np.integer, float, np.floating)
_TEXT = (str, bytes)

_Row: TypeAlias = tuple[tuple[type, ...], AttributeProto.AttributeType, str, Callable[[Any], Any]]
_PLAIN: tuple[_Row, ...] = (
    (_WHOLE, AttributeProto.INT, "i", int),
    (_NUMBER, AttributeProto.FLOAT, "f", float),
    (_TEXT, AttributeProto.STRING, "s", _bytes),
)
_LISTS: tuple[_Row, ...] = (
    (_WHOLE, AttributeProto.INTS, "ints", int),
    (_NUMBER, AttributeProto.FLOATS, "floats", float),
    (_TEXT, AttributeProto.STRINGS, "strings", _bytes),
)
