"""Tensors and attributes of an ONNX file as constants and Python values, and the way back.

The bytes of a tensor stand in the model, or in a file beside it that is mapped when they are asked for.
"""

import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from pathlib import Path, PurePath, PureWindowsPath
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import AttributeProto, TensorProto, helper, numpy_helper

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, from_onnx_number
from ir_scatter.core.model import Defect, Node
from ir_scatter.core.shapes import counted, with_article
from ir_scatter.core.tensors import Constant, Weights, decode
from ir_scatter.formats.onnx.index import kind_of, text

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

SEEN_BY_INFERENCE = 256
"""Elements of a constant up to which shape inference sees it: it reads shapes, axes and the like."""

_FIELDS = {
    "f32": "float_data", "complex64": "float_data", "f64": "double_data", "complex128": "double_data",
    "i64": "int64_data", "u32": "uint64_data", "u64": "uint64_data", "string": "string_data",
}  # fmt: skip
"""Where a tensor without raw data holds its elements; all other types in int32_data."""

_LISTED = {
    "int": ("i64", int, "int64"),
    "float": ("f32", float, "float32"),
    "string": ("string", str, "object"),
}


class Problem(NamedTuple):
    """Why the bytes of a tensor cannot be had: the kind of the defect and its sentence."""

    kind: str
    message: str


class Span(NamedTuple):
    """Where a tensor says that its bytes are; no length means as many as it needs."""

    location: str
    offset: int
    length: int | None


class _RawConstant(Constant):
    """A constant whose bytes stand in the file as they are."""

    __slots__ = ("raw",)
    raw: Callable[[], bytes]

    def view(self) -> memoryview | None:
        """Return the bytes, None if there are other ones than type and shape need."""
        data, type = self.raw(), self.element_type
        is_whole = type is not None and len(data) == type.byte_size(prod(self.shape))
        return memoryview(data) if is_whole else None


class Tensors:
    """Makes constants of the tensors of one model, and says what is wrong with them."""

    def __init__(self, path: str, *, has_folder: bool) -> None:
        self._location = Location(path)
        self._folders = _folders_of(path) if has_folder else ()
        self._files: dict[str, Weights | Problem] = {}
        self._uses: dict[tuple[str, bool], list[str]] = {}

    def constant(self, tensor: TensorProto, name: str, declared: Node | Location) -> Constant | None:
        """Return the constant that a tensor is, None if its dimensions are no shape."""
        shape, element_type = shape_of(tensor), from_onnx_number(tensor.data_type)
        if shape is None:
            return None
        load = partial(self._load, tensor, element_type, shape)
        if is_external(tensor) or not tensor.HasField("raw_data"):
            return Constant(declared, element_type, shape, load, name)
        constant = _RawConstant(declared, element_type, shape, load, name)
        constant.raw = lambda: tensor.raw_data
        return constant

    def problems(self, tensor: TensorProto, label: str) -> Iterator[Problem]:
        """Yield what is wrong with a tensor: a type, a dimension, its size or its place.

        A missing file and one that is too short are told once, by `defects`, for all its tensors.
        """
        element_type, shape = from_onnx_number(tensor.data_type), shape_of(tensor)
        if element_type is None:
            message = f"the element type of {label} is number {tensor.data_type}"
            yield Problem("bad-number", f"{message}, expected one that ONNX defines")
        if shape is None:
            dims = ", ".join(map(str, tensor.dims))
            yield Problem("bad-number", f"the dimensions of {label} are [{dims}], expected none below 0")
        if element_type is None or shape is None:
            return
        if is_external(tensor):
            problem = self._place_problem(tensor, element_type.byte_size(prod(shape)), label)
        else:
            problem = _size_problem(tensor, element_type, prod(shape), label)
        if problem is not None:
            yield problem

    def defects(self) -> Iterator[Defect]:
        """Yield what is wrong with the files that `problems` came across."""
        for (location, _), uses in self._uses.items():
            file = self.file(location)
            if isinstance(file, Problem):
                count = "1 tensor is" if len(uses) == 1 else f"{len(uses)} tensors are"
                message = f"{file.message}: the values of {count} unknown, the first is {uses[0]}"
                yield Defect(file.kind, message, self._location)
            else:
                more = f", the first of {len(uses)} tensors that end beyond it" if len(uses) > 1 else ""
                message = f"{location!r} has {counted(file.size or 0, 'byte')}, {uses[0]}{more}"
                yield Defect("weights-truncated", message, self._location)

    def file(self, location: str) -> Weights | Problem:
        """Return the file of weights that tensors name so; it is opened once."""
        if location not in self._files:
            self._files[location] = self._open(location)
        return self._files[location]

    def _load(
        self, tensor: TensorProto, element_type: ElementType | None, shape: tuple[int, ...]
    ) -> "Array | None":
        if element_type is None:
            return None
        if not is_external(tensor):
            return _embedded(tensor, element_type, shape)
        span, size = span_of(tensor), element_type.byte_size(prod(shape))
        if isinstance(span, Problem) or (span.length is not None and span.length < size):
            return None
        file = self.file(span.location)
        view = None if isinstance(file, Problem) else file.view(span.offset, size)
        return None if view is None else decode(view, element_type, shape)

    def _place_problem(self, tensor: TensorProto, size: int, label: str) -> Problem | None:
        span = span_of(tensor)
        if isinstance(span, Problem):
            return span
        if span.length is not None and span.length != size:
            message = (
                f"{label} has {counted(span.length, 'byte')} in {span.location!r}, its type and shape need"
            )
            return Problem("constant-size", f"{message} {_show_count(size)}")
        file = self.file(span.location)
        if isinstance(file, Problem):
            if file.kind != "weights-missing":
                return file
            self._uses.setdefault((span.location, False), []).append(label)
        elif file.size is not None and span.offset + size > file.size:
            wanted = f"{label} needs bytes {span.offset} to {_show_count(span.offset + size)}"
            self._uses.setdefault((span.location, True), []).append(wanted)
        return None

    def _open(self, location: str) -> Weights | Problem:
        if not location:
            return Problem("external-data-path", "the location of external data is empty, expected a file")
        if PurePath(location).is_absolute() or PureWindowsPath(location).anchor:
            message = f"external data is at {location!r}, expected a path relative to the model's folder"
            return Problem("external-data-path", message)
        if not self._folders:
            return Problem("weights-missing", f"there is no {location!r} beside standard input")
        try:
            found = os.path.realpath(os.path.join(self._folders[0], location))
            if not any(Path(found).is_relative_to(folder) and found != folder for folder in self._folders):
                message = f"external data at {location!r} is outside of the model's folder"
                return Problem("external-data-path", f"{message}, expected a file inside it")
            if not stat.S_ISREG(os.stat(found).st_mode):
                return Problem("weights-missing", f"{location!r} is no regular file")
            file = Weights(Path(found))
            reason = file.error
        except (OSError, ValueError) as error:
            file, reason = None, (getattr(error, "strerror", None) or str(error)).lower()
        if file is None or file.size is None:
            return Problem("weights-missing", f"{location!r} cannot be read ({reason})")
        return file


def is_external(tensor: TensorProto) -> bool:
    """Tell whether the bytes of a tensor stand in another file."""
    return tensor.data_location == TensorProto.EXTERNAL


def span_of(tensor: TensorProto) -> Span | Problem:
    """Return where a tensor says that its bytes are, or the number that is none."""
    entries = {text(entry.key): text(entry.value) for entry in tensor.external_data}
    for key in ("offset", "length"):
        written = entries.get(key, "0")
        if not (written.isascii() and written.isdigit() and len(written) < 20):
            message = f"the {key} of the external data of {text(tensor.name)!r} is {written!r}"
            return Problem("bad-number", f"{message}, expected a number of bytes")
    length = int(entries["length"]) if "length" in entries else None
    return Span(entries.get("location", ""), int(entries.get("offset", "0")), length)


def shape_of(tensor: TensorProto) -> tuple[int, ...] | None:
    """Return the dimensions of a tensor, None if one is negative."""
    dims = tuple(tensor.dims[:])
    return None if dims and min(dims) < 0 else dims


def is_small_and_sound(tensor: TensorProto) -> bool:
    """Tell whether a tensor may be copied and handed to native code."""
    shape, element_type = shape_of(tensor), from_onnx_number(tensor.data_type)
    if shape is None or element_type is None or is_external(tensor) or prod(shape) > SEEN_BY_INFERENCE:
        return False
    return _size_problem(tensor, element_type, prod(shape), "") is None


def attribute_value(attribute: AttributeProto, node: Node, tensors: Tensors) -> Any:
    """Return an attribute as Python sees it: its type tells which type was written.

    Returns:
        int, float, str, a list of them, a Constant or a list of those for tensors; the message
        itself for what has no such form.
    """
    match kind_of(attribute):
        case AttributeProto.INT:
            return attribute.i
        case AttributeProto.FLOAT:
            return attribute.f
        case AttributeProto.STRING:
            return attribute.s.decode("utf-8", errors="replace")
        case AttributeProto.INTS:
            return list(attribute.ints)
        case AttributeProto.FLOATS:
            return list(attribute.floats)
        case AttributeProto.STRINGS:
            return [data.decode("utf-8", errors="replace") for data in attribute.strings]
        case AttributeProto.TENSOR:
            return tensors.constant(attribute.t, text(attribute.t.name) or node.name, node)
        case AttributeProto.TENSORS:
            return [tensors.constant(tensor, text(tensor.name), node) for tensor in attribute.tensors]
    return attribute


def listed_constant(name: str, values: Any, node: Node) -> Constant | None:
    """Return the constant of a Constant node's attribute `value_ints` or the like; None for any other."""
    kind = name.removeprefix("value_")
    type_name, type, dtype = _LISTED.get(kind.removesuffix("s"), ("", None, ""))
    listed = values if kind.endswith("s") else [values]
    if type is None or not isinstance(listed, list) or not all(type is value.__class__ for value in listed):
        return None
    shape = (len(listed),) if kind.endswith("s") else ()

    def load() -> "Array":
        import numpy

        return _read_only(numpy.array(listed, dtype=dtype).reshape(shape))

    return Constant(node, ELEMENT_TYPES[type_name], shape, load)


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
    if type(value).__name__ == "ndarray":
        return helper.make_attribute(name, make_tensor(value))
    is_empty = isinstance(value, list | tuple) and not value
    try:
        return helper.make_attribute(name, value, attr_type=AttributeProto.INTS if is_empty else None)
    except (TypeError, ValueError) as error:
        found = with_article(type(value).__name__)
        expected = "expected numbers, text, lists of one of these, or an array"
        raise TypeError(f"attribute {name!r} is {found}, {expected}") from error


def _embedded(tensor: TensorProto, element_type: ElementType, shape: tuple[int, ...]) -> "Array | None":
    if _size_problem(tensor, element_type, prod(shape), "") is not None:
        return None
    try:
        array = numpy_helper.to_array(tensor)
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
        found, needed, unit = len(getattr(tensor, field)), count, f"entries in {field}"
        if element_type.kind == "complex":
            needed = 2 * count
        elif element_type.bits in (2, 4):
            needed = element_type.byte_size(count)
    if found == needed:
        return None
    dims = ", ".join(map(str, tensor.dims))
    message = f"{label} has {found} {unit}, its type {element_type.name} and shape [{dims}]"
    return Problem("constant-size", f"{message} need {_show_count(needed)}")


def _show_count(number: int) -> str:
    """Print a number of bytes; the product of hostile dimensions may have thousands of digits."""
    return str(number) if number < 2**64 else "more than 2**64"


def _folders_of(path: str) -> tuple[str, ...]:
    """Return the folder the model is named in and, if that is a link, the one it is kept in."""
    named = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    kept = os.path.dirname(os.path.realpath(path))
    return (named,) if named == kept else (named, kept)


def _read_only(array: "Array") -> "Array":
    array.flags.writeable = False
    return array
