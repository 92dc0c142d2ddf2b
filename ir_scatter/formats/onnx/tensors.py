"""Constants of an ONNX file: tensors in it, and tensors in files beside it."""

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import onnx
from onnx import TensorProto

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, from_onnx_number
from ir_scatter.core.model import Node
from ir_scatter.core.tensors import Constant, decode
from ir_scatter.formats.onnx.external import ExternalFiles, Problem, is_external, show_count

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

COMPARED = 4096
"""Elements of a constant up to which two calls of a function are compared by its contents."""

SEEN_BY_INFERENCE = 256
"""Elements of a constant up to which shape inference sees it: it reads shapes, axes and the like."""

_FIELDS = {
    "f32": "float_data",
    "complex64": "float_data",
    "f64": "double_data",
    "complex128": "double_data",
    "i64": "int64_data",
    "u32": "uint64_data",
    "u64": "uint64_data",
    "string": "string_data",
}
_LISTED = {
    "value_int": ("i64", int),
    "value_ints": ("i64", int),
    "value_float": ("f32", float),
    "value_floats": ("f32", float),
    "value_string": ("string", str),
    "value_strings": ("string", str),
}


class _RawConstant(Constant):
    """A constant whose bytes stand in the file as they are."""

    __slots__ = ("_tensor",)

    def __init__(
        self,
        declared: "Node | Location",
        element_type: ElementType | None,
        shape: tuple[int, ...],
        load: "Callable[[], Array | None]",
        name: str,
        tensor: TensorProto,
    ) -> None:
        super().__init__(declared, element_type, shape, load, name)
        self._tensor = tensor

    def view(self) -> memoryview | None:
        """Return the bytes, None if there are other ones than type and shape need."""
        data, type = self._tensor.raw_data, self.element_type
        is_whole = type is not None and len(data) == type.byte_size(prod(self.shape))
        return memoryview(data) if is_whole else None


class Tensors:
    """Makes constants of the tensors of one file."""

    def __init__(self, files: ExternalFiles) -> None:
        self.files = files

    def constant(self, tensor: TensorProto, name: str, declared: Node | Location) -> Constant | None:
        """Return the constant that a tensor is, None if its dimensions are no shape."""
        shape = shape_of(tensor)
        if shape is None:
            return None
        element_type = from_onnx_number(tensor.data_type)
        load = self._loader(tensor, element_type, shape)
        if tensor.HasField("raw_data") and not is_external(tensor):
            return _RawConstant(declared, element_type, shape, load, name, tensor)
        return Constant(declared, element_type, shape, load, name)

    def problems(self, tensor: TensorProto, label: str) -> list[Problem]:
        """Return what is wrong with a tensor: a type, a dimension, its size or its place."""
        element_type, shape = from_onnx_number(tensor.data_type), shape_of(tensor)
        found = []
        if element_type is None:
            message = f"the element type of {label} is number {tensor.data_type}"
            found.append(Problem("bad-number", f"{message}, expected one that ONNX defines"))
        if shape is None:
            dims = ", ".join(map(str, tensor.dims))
            message = f"the dimensions of {label} are [{dims}], expected none below 0"
            found.append(Problem("bad-number", message))
        if element_type is None or shape is None:
            return found
        size = element_type.byte_size(prod(shape))
        if is_external(tensor):
            problem = self.files.problem(tensor, size, label)
        else:
            problem = _size_problem(tensor, element_type, prod(shape), label)
        return [problem] if problem is not None else []

    def _loader(
        self, tensor: TensorProto, element_type: ElementType | None, shape: tuple[int, ...]
    ) -> "Callable[[], Array | None]":
        def load() -> "Array | None":
            if element_type is None:
                return None
            if not is_external(tensor):
                return _embedded(tensor, element_type, shape)
            view = self.files.view(tensor, element_type.byte_size(prod(shape)))
            return None if view is None else decode(view, element_type, shape)

        return load


def listed_constant(name: str, values: Any, node: Node) -> Constant | None:
    """Return the constant of a Constant node's attribute `name`; None if it holds anything else."""
    type_name, kind = _LISTED.get(name, ("", object))
    is_list = name.endswith("s")
    listed = values if is_list else [values]
    if not isinstance(listed, list) or not all(type(value) is kind for value in listed):
        return None
    shape = (len(listed),) if is_list else ()

    def load() -> "Array":
        import numpy

        dtype = {"i64": "int64", "f32": "float32"}.get(type_name, "object")
        return _read_only(numpy.array(listed, dtype=dtype).reshape(shape))

    return Constant(node, ELEMENT_TYPES[type_name], shape, load)


def shape_of(tensor: TensorProto) -> tuple[int, ...] | None:
    """Return the dimensions of a tensor, None if one is negative."""
    dims = tuple(tensor.dims)
    return None if any(dim < 0 for dim in dims) else dims


def is_small_and_sound(tensor: TensorProto) -> bool:
    """Tell whether a tensor may be copied and handed to native code."""
    shape, element_type = shape_of(tensor), from_onnx_number(tensor.data_type)
    if shape is None or element_type is None or is_external(tensor) or prod(shape) > SEEN_BY_INFERENCE:
        return False
    return _size_problem(tensor, element_type, prod(shape), "") is None


def _embedded(tensor: TensorProto, element_type: ElementType, shape: tuple[int, ...]) -> "Array | None":
    if _size_problem(tensor, element_type, prod(shape), "") is not None:
        return None
    try:
        array = onnx.numpy_helper.to_array(tensor)
    except Exception:
        # Text that is not UTF-8, segments, types that this version of onnx or NumPy lacks.
        return None
    return _read_only(array) if array.shape == shape else None


def _size_problem(tensor: TensorProto, element_type: ElementType, count: int, label: str) -> Problem | None:
    """Compare what a tensor holds with what its type and shape need."""
    if tensor.HasField("raw_data") and element_type.kind != "string":
        found, needed, unit = len(tensor.raw_data), element_type.byte_size(count), "bytes"
    else:
        field = _FIELDS.get(element_type.name, "int32_data")
        found, needed = len(getattr(tensor, field)), _entries(element_type, count)
        unit = f"entries in {field}"
    if found == needed:
        return None
    dims = ", ".join(map(str, tensor.dims))
    message = f"{label} has {found} {unit}, its type {element_type.name} and shape [{dims}]"
    return Problem("constant-size", f"{message} need {show_count(needed)}")


def _entries(element_type: ElementType, count: int) -> int:
    """Return the entries of the typed field: complex numbers take two, 2 and 4 bits are packed."""
    if element_type.kind == "complex":
        return 2 * count
    if element_type.bits in (2, 4):
        return element_type.byte_size(count)
    return count


def _read_only(array: "Array") -> "Array":
    array.flags.writeable = False
    return array
