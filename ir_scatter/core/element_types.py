"""Element types with all their names and numbers: in OpenVINO, ONNX and NumPy."""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class ElementType:
    """One element type with all its names; there is only one object per type.

    Attributes:
        name: OpenVINO's name in `element_type`, "f32"; also the name used throughout this library.
        ir_name: OpenVINO's name in `<port precision>`, "FP32"; None where OpenVINO has none.
        onnx_name: the name inside ONNX's `tensor(...)`, "float"; None where ONNX has none.
        onnx_number: the number in `TensorProto.DataType`.
        dtype_name: the NumPy or ml_dtypes dtype, "float32"; None where neither has one.
        bits: bits of one element as stored; 0 for strings.
        kind: "float", "signed", "unsigned", "boolean", "string" or "complex".
    """

    name: str
    ir_name: str | None
    onnx_name: str | None
    onnx_number: int | None
    dtype_name: str | None
    bits: int
    kind: str

    def byte_size(self, elements: int) -> int:
        """Return the bytes that `elements` elements take; types below a byte are packed."""
        return (elements * self.bits + 7) // 8


_ROWS = (
    ElementType("f64", "FP64", "double", 11, "float64", 64, "float"),
    ElementType("f32", "FP32", "float", 1, "float32", 32, "float"),
    ElementType("f16", "FP16", "float16", 10, "float16", 16, "float"),
    ElementType("bf16", "BF16", "bfloat16", 16, "bfloat16", 16, "float"),
    ElementType("f8e4m3", "F8E4M3", "float8e4m3fn", 17, "float8_e4m3fn", 8, "float"),
    ElementType("f8e4m3fnuz", None, "float8e4m3fnuz", 18, "float8_e4m3fnuz", 8, "float"),
    ElementType("f8e5m2", "F8E5M2", "float8e5m2", 19, "float8_e5m2", 8, "float"),
    ElementType("f8e5m2fnuz", None, "float8e5m2fnuz", 20, "float8_e5m2fnuz", 8, "float"),
    ElementType("f8e8m0", "F8E8M0", "float8e8m0", 24, "float8_e8m0fnu", 8, "float"),
    ElementType("f6e2m3", None, "float6e2m3", 27, "float6_e2m3fn", 6, "float"),
    ElementType("f6e3m2", None, "float6e3m2", 28, "float6_e3m2fn", 6, "float"),
    ElementType("f4e2m1", "F4E2M1", "float4e2m1", 23, "float4_e2m1fn", 4, "float"),
    ElementType("nf4", "NF4", None, None, None, 4, "float"),
    ElementType("i64", "I64", "int64", 7, "int64", 64, "signed"),
    ElementType("i32", "I32", "int32", 6, "int32", 32, "signed"),
    ElementType("i16", "I16", "int16", 5, "int16", 16, "signed"),
    ElementType("i8", "I8", "int8", 3, "int8", 8, "signed"),
    ElementType("i4", "I4", "int4", 22, "int4", 4, "signed"),
    ElementType("i2", None, "int2", 26, "int2", 2, "signed"),
    ElementType("u64", "U64", "uint64", 13, "uint64", 64, "unsigned"),
    ElementType("u32", "U32", "uint32", 12, "uint32", 32, "unsigned"),
    ElementType("u16", "U16", "uint16", 4, "uint16", 16, "unsigned"),
    ElementType("u8", "U8", "uint8", 2, "uint8", 8, "unsigned"),
    ElementType("u6", "U6", None, None, None, 6, "unsigned"),
    ElementType("u4", "U4", "uint4", 21, "uint4", 4, "unsigned"),
    ElementType("u3", "U3", None, None, None, 3, "unsigned"),
    ElementType("u2", "U2", "uint2", 25, "uint2", 2, "unsigned"),
    ElementType("u1", "BIN", None, None, None, 1, "unsigned"),
    ElementType("boolean", "BOOL", "bool", 9, "bool", 8, "boolean"),
    ElementType("string", "STRING", "string", 8, None, 0, "string"),
    ElementType("complex64", None, "complex64", 14, "complex64", 64, "complex"),
    ElementType("complex128", None, "complex128", 15, "complex128", 128, "complex"),
)

ELEMENT_TYPES = {row.name: row for row in _ROWS}
_BY_IR_NAME = {row.ir_name.lower(): row for row in _ROWS if row.ir_name}
_BY_ONNX_NUMBER = {row.onnx_number: row for row in _ROWS if row.onnx_number is not None}
_BY_ONNX_NAME = {row.onnx_name: row for row in _ROWS if row.onnx_name is not None}
_BY_DTYPE_NAME = {row.dtype_name: row for row in _ROWS if row.dtype_name is not None}
_PRECISIONS = frozenset({"UNSPECIFIED", "dynamic", "undefined", "bin", "U1"}).union(
    *({row.name, row.ir_name} for row in _ROWS if row.ir_name)
)

NUMERIC = frozenset(r.name for r in _ROWS if r.kind in {"float", "signed", "unsigned"})
INTEGERS = frozenset(r.name for r in _ROWS if r.kind in {"signed", "unsigned"})
FLOATS = frozenset(r.name for r in _ROWS if r.kind == "float")
OPENVINO_TYPES = frozenset(row.name for row in _ROWS if row.ir_name is not None)


def onnx_types(*names: str) -> frozenset[str]:
    """Return the element types with these ONNX names: `onnx_types("float", "int64")`."""
    return frozenset(_BY_ONNX_NAME[name].name for name in names)


def from_element_type(text: str) -> ElementType | None:
    """Return the type of an `element_type` in an IR, in upper or lower case; None if "dynamic" or unknown."""
    return ELEMENT_TYPES.get(text) or ELEMENT_TYPES.get(text.lower())


def from_precision(text: str) -> ElementType | None:
    """Return the type of a `<port precision>` in an IR, in either case; None if unspecified or unknown."""
    return _BY_IR_NAME.get(text.lower()) or ELEMENT_TYPES.get(text.lower())


def meant_in_ir(text: str) -> ElementType | None:
    """Guess the type for a misspelt word in an IR, such as "fp32 ", "float" or "int64"; None if unknown."""
    word = text.strip().lower()
    element_type = from_precision(word) or _BY_ONNX_NAME.get(word) or _BY_DTYPE_NAME.get(word)
    return element_type if element_type is not None and element_type.ir_name is not None else None


def is_precision(text: str) -> bool:
    """Return whether OpenVINO accepts a `<port precision>`; each type has two spellings, "FP32" and "f32"."""
    return text in _PRECISIONS


def from_onnx_number(number: int) -> ElementType | None:
    """Return the type of an ONNX `TensorProto.DataType` number; None for 0 (undefined) or unknown ones."""
    return _BY_ONNX_NUMBER.get(number)


@cache
def from_dtype(array_dtype: "np.dtype[Any]") -> ElementType | None:
    """Return the element type of a NumPy dtype in any byte order; None if there is none."""
    return ELEMENT_TYPES["string"] if array_dtype.kind in "OUST" else _BY_DTYPE_NAME.get(array_dtype.name)


def as_bytes(value: Any) -> "tuple[str, np.ndarray[Any, Any]] | None":
    """Return the type name of an array, and the array in C order and native byte order.

    None for other objects, and for arrays of strings or objects, which are not plain bytes.
    """
    row = from_dtype(value.dtype) if type(value).__name__ == "ndarray" else None
    numpy_dtype = None if row is None or row.kind == "string" else dtype(row)
    return (
        None
        if row is None or numpy_dtype is None
        else (row.name, value.astype(numpy_dtype, order="C", copy=False))
    )


def is_element_type(text: str) -> bool:
    """Return whether OpenVINO accepts an `element_type`, in any case, including "dynamic" (unknown)."""
    element_type = from_element_type(text)
    return (
        text.lower() in {"dynamic", "undefined"} if element_type is None else element_type.ir_name is not None
    )


@cache
def dtype(element_type: ElementType) -> "np.dtype[np.generic] | None":
    """Return the NumPy dtype, or that of ml_dtypes for types such as bf16, f8 and i4; None without one."""
    import numpy

    if element_type.kind in {"string", "boolean"}:  # NumPy 1 has no numpy.bool
        return numpy.dtype(object if element_type.kind == "string" else bool)
    if element_type.dtype_name is None:
        return None
    if hasattr(numpy, element_type.dtype_name):
        return numpy.dtype(element_type.dtype_name)
    import ml_dtypes

    custom = getattr(ml_dtypes, element_type.dtype_name, None)
    return None if custom is None else numpy.dtype(custom)
