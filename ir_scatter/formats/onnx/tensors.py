"""Converts tensors and attributes of an ONNX file to constants and Python values, and back.

The bytes of a tensor are in the model or in an external file, which is mapped on first access.
"""

import os
import stat
from collections.abc import Iterator
from functools import partial
from math import prod
from pathlib import Path, PurePath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message
from onnx import AttributeProto, ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType, from_onnx_number
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import FileDefect, Node
from ir_scatter.core.tensors import Constant, Weights, decode
from ir_scatter.core.words import counted, with_article
from ir_scatter.formats.base import FileBeside
from ir_scatter.formats.onnx.index import FIELDS, kind_of, text

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_FIELDS = {
    "f32": "float_data", "complex64": "float_data", "f64": "double_data", "complex128": "double_data",
    "i64": "int64_data", "u32": "uint64_data", "u64": "uint64_data", "string": "string_data",
}  # fmt: skip
"""The field with the elements of a tensor without raw data, by element type; int32_data for other types."""


class Tensors:
    """Converts the tensors of one model to constants, and finds their defects."""

    def __init__(self, path: str, *, has_folder: bool) -> None:
        self._location = Location(path)
        # folder of the given path, and folder of the file after resolving links
        self._folders: list[str] = []
        if has_folder:
            folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
            self._folders = [folder, os.path.dirname(os.path.realpath(path))]
        self._files: dict[str, Weights | UnreadableModel] = {}
        self._uses: dict[tuple[str, bool], list[str]] = {}
        self._external: list[TensorProto] | None = None

    def constant(self, tensor: TensorProto, name: str, declared: Node | Location) -> Constant | None:
        """Return a tensor as a constant; None if a dimension is negative."""
        shape, element_type = shape_of(tensor), from_onnx_number(tensor.data_type)
        if shape is None:
            return None
        load = partial(self._load, tensor, element_type, shape)
        stores_data = 0 not in shape or tensor.HasField("raw_data") or is_external(tensor)
        return Constant(declared, element_type, shape, load, name, stores_data=stores_data)

    def sparse_constant(
        self, sparse: SparseTensorProto, name: str, declared: Node | Location
    ) -> Constant | None:
        """Return a sparse tensor as a dense constant; None if a dimension is negative."""
        shape, element_type = shape_of(sparse), from_onnx_number(sparse.values.data_type)
        if shape is None:
            return None
        return Constant(declared, element_type, shape, partial(self._load_sparse, sparse, shape), name)

    def sparse_problems(self, sparse: SparseTensorProto, label: str) -> Iterator[tuple[str, str]]:
        """Yield (kind of defect, sentence) for each problem of a sparse tensor.

        Values must have rank 1. Indices must be i64, one for each value: a flat position, or a row with one
        coordinate for each dimension. They must be ascending and unique.
        """
        if shape_of(sparse) is None:
            yield "bad-number", f"the dimensions of {label} are {[*sparse.dims]}, expected numbers >= 0"
        problems = [*self.problems(sparse.values, f"the values of {label}")]
        if sparse.HasField("indices"):
            problems += self.problems(sparse.indices, f"the indices of {label}")
        yield from problems
        if not problems and shape_of(sparse) is not None:
            yield from (
                ("constant-size", f"{problem} of {label}{rest}") for problem, rest in _malformed_parts(sparse)
            )
            if not [*_malformed_parts(sparse)]:
                places = self._places(sparse)
                wrong = None if places is None else _first_wrong_index(places, tuple(sparse.dims))
                if wrong is not None:
                    yield "bad-number", f"{label} has {wrong}"

    def _places(self, sparse: SparseTensorProto) -> "Array | None":
        """Return the indices of a sparse tensor as [values, rank]; None if they cannot be read."""
        import numpy

        if not sparse.HasField("indices"):
            return numpy.empty((0, 1), numpy.int64)
        shape = shape_of(sparse.indices)
        array = None if shape is None else self._load(sparse.indices, _I64, shape)
        return array if array is None or array.ndim == _COORDINATES else array.reshape(-1, 1)

    def _load_sparse(self, sparse: SparseTensorProto, shape: tuple[int, ...]) -> "Array | None":
        """Return the dense array; None if the tensor cannot be read, is malformed, or would be too large."""
        import numpy

        element_type, listed = from_onnx_number(sparse.values.data_type), shape_of(sparse.values)
        if listed is None or prod(shape) > _MOST_DENSE or [*_malformed_parts(sparse)]:
            return None
        values, places = self._load(sparse.values, element_type, listed), self._places(sparse)
        if values is None or places is None or _first_wrong_index(places, shape) is not None:
            return None
        default = "" if values.dtype == object else 0
        flat = numpy.full(prod(shape), default, values.dtype)
        is_flat = places.shape[1] == 1
        flat[places[:, 0] if is_flat else numpy.ravel_multi_index(tuple(places.T), shape)] = values
        flat.flags.writeable = False
        try:
            return flat.reshape(shape)
        except ValueError:
            return None  # NumPy arrays cannot have that many dimensions

    def problems(self, tensor: TensorProto, label: str) -> Iterator[tuple[str, str]]:
        """Yield (kind of defect, sentence) for each problem of a tensor.

        A missing or truncated external file is reported once for all its tensors, by `defects`.
        """
        element_type, shape = from_onnx_number(tensor.data_type), shape_of(tensor)
        if element_type is None:
            message = f"the element type of {label} is number {tensor.data_type}"
            yield "bad-number", f"{message}, expected one that ONNX defines"
        if shape is None:
            dims = ", ".join(map(str, tensor.dims))
            yield "bad-number", f"the dimensions of {label} are [{dims}], expected numbers >= 0"
        if element_type is None or shape is None:
            return
        size = element_type.byte_size(prod(shape))
        if not is_external(tensor):
            wrong = _size_mismatch(tensor, element_type, prod(shape))
            if wrong is not None:
                dims = ", ".join(map(str, tensor.dims))
                message = f"{label} has {wrong[0]}, its type {element_type.name} and shape [{dims}] need"
                yield "constant-size", f"{message} {wrong[1]}"
            return
        try:
            location, offset, length = self._span(tensor)
            if length is not None and length != size:
                fact = f"{label} has {counted(length, 'byte')} in {location!r}"
                yield "constant-size", f"{fact}, its type and shape need {_show_count(size)}"
            elif offset + size > (self._file(location).size or 0):
                use = f"{label} needs bytes {offset} to {_show_count(offset + size)}"
                self._uses.setdefault((location, True), []).append(use)
        except UnreadableModel as error:
            if error.defect == "weights-missing":
                self._uses.setdefault((location, False), []).append(label)
            else:
                yield error.defect, error.message

    def defects(self) -> Iterator[FileDefect]:
        """Yield the defects of external files; raises UnreadableModel if a file has changed."""
        for file in self._files.values():
            if isinstance(file, Weights):
                file.demand_unchanged()
        for (location, _), uses in self._uses.items():
            try:
                file = self._file(location)
            except UnreadableModel as error:
                effect = f"the values of {counted(len(uses), 'tensor')} are unknown; the first is {uses[0]}"
                is_refused = bool(self._folders)  # whether the file exists is unknown for a stream
                message = f"{error.message}: {effect}"
                yield FileDefect(error.defect, message, self._location, is_refused=is_refused)
            else:
                more = f", the first of {len(uses)} tensors that end beyond it" if len(uses) > 1 else ""
                message = f"{location!r} has {counted(file.size or 0, 'byte')}, {uses[0]}{more}"
                yield FileDefect("weights-truncated", message, self._location)

    def files_beside(self, model: ModelProto) -> list[FileBeside]:
        """Return the external files of a model, in the order of first use.

        Raises:
            UnreadableModel: a file is outside of the model's folder, a tensor has no location, or two files
                would have the same name in a copy of the model.
        """
        files: dict[str, FileBeside] = {}
        by_name: dict[str, FileBeside] = {}
        if self._external is None:  # cached: a model never changes, and writing calls this twice
            self._external = _external_in(model)
        for tensor in self._external:
            location = self._span(tensor)[0]
            if location in files:
                continue
            try:
                weights = self._file(location)
            except UnreadableModel as error:
                if error.defect != "weights-missing":
                    raise
                path = Path(self._location.path).parent / location
                files[location] = FileBeside(path, location, problem=error.message)
                continue
            file = files[location] = FileBeside(weights.path, location, weights.identity)
            name = os.path.normpath(location)
            if name.split(os.sep)[0] == os.pardir or by_name.setdefault(name, file).path != file.path:
                # `link/../weights.bin` is another file if `link` is a link to a folder.
                message = f"external data is at {location!r}, which leads through a link and back"
                raise self._unreadable("external-data-path", f"{message}, expected a path without '..'")
        return [*files.values()]

    def _load(
        self, tensor: TensorProto, element_type: ElementType | None, shape: tuple[int, ...]
    ) -> "Array | None":
        if element_type is None:
            return None
        if is_external(tensor):
            try:
                location, offset, length = self._span(tensor)
                size = element_type.byte_size(prod(shape))
                is_short = length is not None and length < size
                file = self._file(location)
            except UnreadableModel:
                return None  # `defects` reports the missing file
            view = None if is_short else file.view(offset, size)
            return None if view is None else decode(view, element_type, shape)
        if _size_mismatch(tensor, element_type, prod(shape)) is not None:
            return None
        try:
            array = numpy_helper.to_array(tensor)
        except Exception:
            # Text that is not UTF-8, segments, or types that this version of onnx or NumPy lacks.
            return None
        array.flags.writeable = False
        return array if array.shape == shape else None

    def _span(self, tensor: TensorProto) -> tuple[str, int, int | None]:
        """Return (location, offset, length) of a tensor's external data; the length is None if not stored."""
        entries = {text(entry.key): text(entry.value) for entry in tensor.external_data}
        for key in ("offset", "length"):
            written = entries.get(key, "0")
            if not (written.isascii() and written.isdigit() and len(written) < 20):
                message = f"the {key} of the external data of {text(tensor.name)!r} is {written!r}"
                raise self._unreadable("bad-number", f"{message}, expected a number of bytes")
        length = int(entries["length"]) if "length" in entries else None
        return entries.get("location", ""), int(entries.get("offset", "0")), length

    def _file(self, location: str) -> Weights:
        """Return the external file at a location, opened once; raises UnreadableModel if that fails."""
        if location not in self._files:
            try:
                self._files[location] = self._open(location)
            except UnreadableModel as error:
                self._files[location] = error
        file = self._files[location]
        if isinstance(file, UnreadableModel):
            raise file
        return file

    def _open(self, location: str) -> Weights:
        kind = "external-data-path"
        if not location:
            raise self._unreadable(kind, "the location of external data is empty, expected a file")
        if PurePath(location).is_absolute() or PureWindowsPath(location).anchor:
            message = f"external data is at {location!r}, expected a path relative to the model's folder"
            raise self._unreadable(kind, message)
        if not self._folders:
            raise self._unreadable("weights-missing", f"there is no {location!r} beside standard input")
        try:
            joined = os.path.join(self._folders[0], location)
            real = os.path.realpath(joined)
            if not any(Path(real).is_relative_to(folder) and real != folder for folder in self._folders):
                message = f"external data at {location!r} is outside of the model's folder"
                raise self._unreadable(kind, f"{message}, expected a file inside it")
            if not stat.S_ISREG(os.stat(joined).st_mode):  # realpath drops the slash of "w.bin/", not a file
                raise self._unreadable("weights-missing", f"{location!r} is not a regular file")
            file = Weights(Path(real))
            reason = file.error
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
        if reason:
            raise self._unreadable("weights-missing", f"{location!r} cannot be read ({reason})")
        return file

    def _unreadable(self, kind: str, message: str) -> UnreadableModel:
        return UnreadableModel(kind, message, self._location)


_I64 = from_onnx_number(TensorProto.INT64)
_COORDINATES = 2
"""Rank of indices that contain a row of coordinates for each value; flat positions have rank 1."""

_MOST_DENSE = 1 << 27
"""Limit of elements of a sparse tensor that is converted to a dense one: 1 GB of i64."""


def _malformed_parts(sparse: SparseTensorProto) -> Iterator[tuple[str, str]]:
    """Yield (faulty part, rest of a sentence about it) for each malformed part of a sparse tensor."""
    values, rank = [*sparse.values.dims], len(sparse.dims)
    if len(values) != 1:
        yield "the values", f" have shape {values}, expected rank 1"
        return
    if not sparse.HasField("indices") and not values[0]:
        return
    if not sparse.HasField("indices"):
        yield "the indices", f" are missing, expected {values[0]}"
        return
    indices, type = [*sparse.indices.dims], from_onnx_number(sparse.indices.data_type)
    if type is not _I64:
        yield "the indices", f" are {type.name if type else 'of no type'}, expected i64"
    shapes = [values, [*values, rank]] if rank else [values]
    if indices not in shapes:
        yield "the indices", f" have shape {indices}, expected {' or '.join(map(str, shapes))}"


def _first_wrong_index(places: "Array", shape: tuple[int, ...]) -> str | None:
    """Return a text about the first index that is out of range or not ascending; None without one."""
    import numpy

    is_flat = places.shape[1] == 1
    sizes = [prod(shape)] if is_flat else [*shape]
    limits = numpy.array([min(size, 2**63 - 1) for size in sizes], numpy.int64)
    outside = numpy.flatnonzero(((places < 0) | (places >= limits)).any(axis=1))
    if outside.size:
        number = int(outside[0])
        return f"index {places[number].tolist()} for value {number}, expected one within {sizes}"
    steps = numpy.diff(places, axis=0)
    first = (steps != 0).argmax(axis=1) if steps.size else numpy.empty(0, numpy.int64)
    falling = numpy.flatnonzero(steps[numpy.arange(len(first)), first] <= 0)
    if falling.size:
        number = int(falling[0]) + 1
        before, after = places[number - 1].tolist(), places[number].tolist()
        return f"index {after} for value {number} after {before}, expected ascending indices"
    return None


_WITHOUT_TENSORS = frozenset({"ValueInfoProto", "TypeProto", "StringStringEntryProto"})


def _external_in(message: Message) -> list[TensorProto]:
    tensors = list[TensorProto]()
    for field, value in message.ListFields():
        values = [value] if isinstance(value, Message) else value
        if field.message_type is TensorProto.DESCRIPTOR:
            tensors += filter(is_external, values)
        elif field.message_type is not None and field.message_type.name not in _WITHOUT_TENSORS:
            for part in values:
                tensors += _external_in(part)
    return tensors


def parse_tensor(data: bytes) -> "tuple[str, Array]":
    """Return the name and the array of a serialized tensor.

    Raises:
        ValueError: the bytes are not a tensor, or its data is missing or external.
    """
    tensor = TensorProto()
    try:
        tensor.ParseFromString(data)
    except Exception as error:  # protobuf raises other types in other releases
        raise ValueError("not a tensor of ONNX") from error
    reader = Tensors("", has_folder=False)
    if is_external(tensor):
        raise ValueError("its data is in another file, expected a tensor with data")
    for _, problem in reader.problems(tensor, "the tensor"):
        raise ValueError(f"not a tensor of ONNX: {problem}")
    constant = reader.constant(tensor, "", Location(""))
    array = None if constant is None else constant.load()
    if array is None:
        raise ValueError("not a tensor of ONNX that NumPy has a type for")
    return text(tensor.name), array


def is_external(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def shape_of(tensor: TensorProto | SparseTensorProto) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None if a dimension is negative."""
    dims = tuple(tensor.dims)
    return None if dims and min(dims) < 0 else dims


def held_type(tensor: TensorProto) -> tuple[ElementType, tuple[int, ...]] | None:
    """Return (element type, shape) of a tensor whose data is complete in the model; None for any other."""
    shape, element_type = shape_of(tensor), from_onnx_number(tensor.data_type)
    if shape is None or element_type is None or is_external(tensor):
        return None
    return (element_type, shape) if _size_mismatch(tensor, element_type, prod(shape)) is None else None


def attribute_value(attribute: AttributeProto, node: Node, tensors: Tensors) -> Any:
    """Return an attribute as a Python value: int, float, str, a list of these, or constants for tensors.

    An attribute of any other type is returned as its protobuf message.
    """
    field = FIELDS.get(kind_of(attribute))
    match field:
        case "f" | "i":
            return getattr(attribute, field)
        case "floats" | "ints":
            return list(getattr(attribute, field))
        case "s":
            return attribute.s.decode("utf-8", errors="replace")
        case "strings":
            return [data.decode("utf-8", errors="replace") for data in attribute.strings]
        case "t":
            return tensors.constant(attribute.t, text(attribute.t.name) or node.name, node)
        case "tensors":
            return [tensors.constant(tensor, text(tensor.name), node) for tensor in attribute.tensors]
    return attribute


def make_tensor(array: "Array", element_type: ElementType | None = None) -> TensorProto:
    """Return a tensor with little-endian raw data.

    Raises:
        TypeError: the array does not have the element type, or ONNX lacks the type.
    """
    try:
        tensor = numpy_helper.from_array(array.astype(array.dtype.newbyteorder("="), copy=False))
    except (ValueError, NotImplementedError) as error:
        raise TypeError(f"an array of {array.dtype}, expected a type that ONNX has") from error
    if element_type is not None and tensor.data_type != element_type.onnx_number:
        raise TypeError(f"an array of {array.dtype}, expected one of {element_type.name}")
    return tensor


def make_attribute(name: str, value: Any) -> AttributeProto:
    """Return an attribute of the type of a Python value; an empty list becomes a list of integers.

    Raises:
        TypeError: no attribute type holds such a value.
    """
    if type(value).__name__ == "ndarray":
        return helper.make_attribute(name, make_tensor(value))
    is_empty = isinstance(value, list | tuple) and not value
    try:
        return helper.make_attribute(name, value, attr_type=AttributeProto.INTS if is_empty else None)
    except (TypeError, ValueError) as error:
        actual = with_article(type(value).__name__)
        expected = "expected numbers, text, lists of one of these, or an array"
        raise TypeError(f"attribute {name!r} is {actual}, {expected}") from error


def _size_mismatch(tensor: TensorProto, element_type: ElementType, count: int) -> tuple[str, str] | None:
    """Return (actual, needed) size of a tensor's data in the model, as texts; None if they are equal."""
    if tensor.HasField("raw_data") and element_type.kind != "string":
        size, needed, unit = len(tensor.raw_data), element_type.byte_size(count), "bytes"
    else:
        field = _FIELDS.get(element_type.name, "int32_data")
        size, needed, unit = len(getattr(tensor, field)), count, f"entries in {field}"
        if element_type.kind == "complex":
            needed = 2 * count
        elif element_type.bits in (2, 4):
            needed = element_type.byte_size(count)
    return None if size == needed else (f"{size} {unit}", _show_count(needed))


def _show_count(number: int) -> str:
    """Format a number of bytes. The product of hostile dimensions may have thousands of digits."""
    return str(number) if number < 2**64 else "more than 2**64"
