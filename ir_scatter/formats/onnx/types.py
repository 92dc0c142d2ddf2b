"""Types as ONNX writes them: element types, dimensions, text that may not be UTF-8."""

import re
from functools import cache
from typing import NamedTuple

import onnx
from onnx import TensorShapeProto, TypeProto, ValueInfoProto

from ir_scatter.core.element_types import ElementType, from_onnx_number
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim, Shape, agree, narrow

DEFAULT_DOMAINS = frozenset({"", "ai.onnx"})

_LARGEST_OPSET = 2**31 - 1
"""onnx counts in 32 bits, what is written in a file has 64."""

_INVENTED_SYMBOL = re.compile(r"unk__\d+")


class TensorType(NamedTuple):
    """What is known of a value: None where nothing is."""

    element_type: ElementType | None
    shape: Shape


UNKNOWN = TensorType(None, None)


def text(name: str | bytes) -> str:
    """Return a name that can be printed: protobuf hands out bytes where it is not UTF-8."""
    return name if isinstance(name, str) else name.decode("utf-8", errors="backslashreplace")


def normal_domain(domain: str) -> str:
    """Return "" for both spellings of the default domain."""
    return "" if domain in DEFAULT_DOMAINS else domain


def tensor_message(type: TypeProto) -> "TypeProto.Tensor | TypeProto.SparseTensor | None":
    """Return the part of a type that holds dimensions; None for a sequence, a map and the like."""
    kind = type.WhichOneof("value")
    if kind == "tensor_type":
        return type.tensor_type
    return type.sparse_tensor_type if kind == "sparse_tensor_type" else None


def declared(value_info: ValueInfoProto | None) -> TensorType:
    """Return what a value_info, an input or an output says, word for word."""
    return UNKNOWN if value_info is None else described(value_info.type)


def described(type: TypeProto) -> TensorType:
    """Return the element type and the shape that a type names."""
    message = tensor_message(type)
    if message is None:
        return UNKNOWN
    shape = None
    if message.HasField("shape"):
        shape = tuple(_dim(dim) for dim in message.shape.dim)
    return TensorType(from_onnx_number(message.elem_type), shape)


def inferred(type: TypeProto) -> TensorType:
    """Return what inference says; a symbol that it made up is an unknown dimension."""
    element_type, shape = described(type)
    if shape is not None:
        shape = tuple(UNKNOWN_DIM if _is_invented(dim) else dim for dim in shape)
    return TensorType(element_type, shape)


def best_of(found: TensorType, stored: TensorType) -> TensorType:
    """Return what is known when inference and the file both speak; inference wins a dispute."""
    shape = narrow(found.shape, stored.shape) if agree(found.shape, stored.shape) else found.shape
    return TensorType(found.element_type or stored.element_type, shape)


def write_type(target: TypeProto, onnx_number: int | None, shape: Shape) -> None:
    """Write a tensor's type; nothing if its element type is not known."""
    if onnx_number is None:
        return
    target.Clear()
    target.tensor_type.elem_type = onnx_number
    if shape is None:
        return
    dims = target.tensor_type.shape
    dims.SetInParent()
    for dim in shape:
        written = dims.dim.add()
        if isinstance(dim, int):
            written.dim_value = dim
        elif dim.symbol is not None:
            written.dim_param = dim.symbol


def _dim(dim: TensorShapeProto.Dimension) -> Dim:
    size = dim.dim_value
    if size > 0 or (size == 0 and dim.HasField("dim_value")):
        return size
    symbol = text(dim.dim_param)
    return Bounds(symbol=symbol) if symbol else UNKNOWN_DIM


def _is_invented(dim: Dim) -> bool:
    return (
        isinstance(dim, Bounds)
        and dim.symbol is not None
        and _INVENTED_SYMBOL.fullmatch(dim.symbol) is not None
    )


@cache
def schema_of(type: str, opset: int, domain: str = "") -> "onnx.defs.OpSchema | None":
    """Return what onnx itself says of an operator; None if it does not know it in that opset."""
    if not 0 < opset <= _LARGEST_OPSET:
        return None
    try:
        return onnx.defs.get_schema(type, opset, domain)
    except onnx.defs.SchemaError:
        return None
