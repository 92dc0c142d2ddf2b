"""Arrays as tensors of OpenVINO and back; runs in the process of the runtime."""

from typing import Any

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.weights import decode
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.service import Failure

_STRING = "string"


def type_name(element_type: Any) -> str:
    """Return our name of an element type of OpenVINO."""
    return str(element_type.get_type_name())


def to_tensor(array: Array, name: str) -> Any:
    """Return a tensor of an array; it may use the memory of the array, which must then live on.

    Args:
        array: of the NumPy type that `elements` has for the element type.
        name: of the element type.
    """
    import openvino

    if name == _STRING:
        return openvino.Tensor(array.astype(np.str_) if array.size else np.empty(array.shape, np.str_))
    type, shape = getattr(openvino.Type, name), openvino.Shape(list(array.shape))
    if not array.size:
        return openvino.Tensor(type, shape)
    row = ELEMENT_TYPES[name]
    flat = np.ascontiguousarray(array).reshape(-1)
    if row.bits >= 8 and array.flags.c_contiguous:
        return openvino.Tensor(flat.view(np.uint8), shape, type)
    tensor = openvino.Tensor(type, shape)
    tensor.data.reshape(-1).view(np.uint8)[:] = flat.view(np.uint8) if row.bits >= 8 else _pack(flat, row)
    return tensor


def to_array(tensor: Any, name: str = "", *, is_constant: bool = False) -> Array:
    """Return a copy of a tensor.

    Args:
        tensor: of OpenVINO.
        is_constant: whether it never changes, so that its own memory will do.
        name: of the element type, if it is not the tensor's own.

    Raises:
        Failure: NumPy has no such type.
    """
    name = name or type_name(tensor.get_element_type())
    shape = tuple(tensor.get_shape())
    row = ELEMENT_TYPES.get(name)
    if name == _STRING:
        return np.array(tensor.str_data, object).reshape(shape)
    if row is None or dtype(row) is None:
        raise Failure("unsupported", f"an output is {name}, which NumPy has no type for")
    if tensor.get_size() == 0:
        return np.empty(shape, dtype(row))
    raw = np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8)
    array = decode(raw.data, row, shape)
    if array is None:
        raise Failure("unsupported", f"an output is {name}, which NumPy has no type for")
    return array if is_constant else array.copy()


def _pack(flat: Array, row: ElementType) -> Array:
    """Put elements of less than a byte together, the first in the low bits."""
    count = 8 // row.bits
    bits = flat.view(np.uint8) & np.uint8((1 << row.bits) - 1)
    padded = np.zeros(-(-len(bits) // count) * count, np.uint8)
    padded[: len(bits)] = bits
    packed = np.zeros(len(padded) // count, np.uint8)
    for number in range(count):
        packed |= padded[number::count] << np.uint8(number * row.bits)
    return packed
