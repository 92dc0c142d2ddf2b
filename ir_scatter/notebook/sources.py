"""Reads models from any source: paths, bytes, protobuf messages, OpenVINO models, open files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from ir_scatter import reading
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel, UsageError
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import Shape, parse_dim, parse_shape
from ir_scatter.core.value_ranges import ValueRange, make_range, parse_range
from ir_scatter.core.words import with_article
from ir_scatter.notebook.shown import ShownModel

if TYPE_CHECKING:

    class BinaryFile(Protocol):
        """A file that is open in binary mode."""

        def read(self) -> bytes: ...

    class ModelProto(Protocol):
        """The protocol of `onnx.ModelProto` (several packages define that class)."""

        def SerializeToString(self) -> bytes: ...

    class OpenVinoModel(Protocol):
        """The protocol of `openvino.Model`."""

        def get_friendly_name(self) -> str: ...


Readable: TypeAlias = (
    "Model | str | PathLike[str] | bytes | bytearray | memoryview | BinaryFile | ModelProto | OpenVinoModel"
)
"""Types of sources that `read` accepts, and every function with a model argument."""

InputShapes: TypeAlias = "Mapping[str, str | Sequence[int] | Shape]"
"""Shapes of inputs by name: as text ("2,?,1..5"), or as numbers with -1 for an unknown dimension."""
InputRanges: TypeAlias = "Mapping[str, str | Sequence[float]]"
"""Ranges of input values by name, both ends included: (0, 31999) or "0..31999"."""

_EXPECTED = "a path, bytes, an onnx.ModelProto, an openvino.Model or a file that is open in binary mode"


def read(
    path: "Readable",
    data: bytes | None = None,
    *,
    format: str | None = None,
    input_shapes: "InputShapes | None" = None,
) -> ShownModel:
    """Read an OpenVINO IR (`.xml` with `.bin`) or an ONNX model; weights are not loaded into memory.

    Args:
        path: the `.xml` or `.onnx` file; or the model itself as bytes, an `onnx.ModelProto`, an
            `openvino.Model` (which is written to a temporary folder) or a file that is open in binary mode.
        data: the content of the file as bytes, if it is not to be read from disk; `path` then only names it.
        format: "openvino-ir" or "onnx"; None to detect it from the content.
        input_shapes: shapes for inputs of the model by name: "2,?,1..5" or numbers; for ONNX they are
            propagated.

    Returns:
        The model; `.scatter_nodes` is the result of `inspect`.

    Raises:
        UnreadableModel: the source is no model, or cannot be read.
        TypeError: the source has another type.

    Example:
        >>> import ir_scatter as irs
        >>> irs.read("samples/kv_cache/decoder.xml")
        <Model decoder.xml: openvino-ir, opset8, 35 nodes, 2 scatter nodes>
        >>> with open("samples/kv_cache/decoder.onnx", "rb") as file:
        ...     irs.read(file.read())
        <Model <bytes>: onnx, opset18, 18 nodes, 2 scatter nodes>
    """
    shapes = {name: input_shape(name, shape) for name, shape in (input_shapes or {}).items()}
    source: tuple[str, bytes | None]
    if data is not None:
        if not isinstance(path, str | PathLike):
            raise TypeError(f"data goes with the path of a file, not with {type_with_article(path)}")
        source = fspath(path), _bytes(data, "data is")
    elif isinstance(path, Model):
        return path if isinstance(path, ShownModel) else _as_model(path)
    elif isinstance(path, str | PathLike) and isinstance(fspath(path), str):
        source = fspath(path), None
    elif isinstance(path, bytes | bytearray | memoryview):
        source = "<bytes>", bytes(path)
    elif getattr(getattr(path, "DESCRIPTOR", None), "full_name", "") == "onnx.ModelProto":
        source = _serialized(path)
    elif callable(getattr(path, "read", None)) and not isinstance(path, type | ModuleType):
        source = _opened(path)
    else:
        return _from_openvino(path, shapes)
    return _as_model(reading.read(*source, format=format, input_shapes=shapes))


def _from_openvino(model: Any, shapes: Mapping[str, Shape]) -> ShownModel:
    """Read an `openvino.Model` through a temporary folder, which is removed together with the model."""
    import shutil
    import weakref

    from ir_scatter.core.temporary import new_folder
    from ir_scatter.runners.openvino.memory import is_model, write_model

    if not is_model(model):
        raise TypeError(f"the model is {type_with_article(model)}, expected {_EXPECTED}")
    folder = new_folder()
    try:
        bare = reading.read(write_model(model, Path(folder)), input_shapes=shapes)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(bare.graph, shutil.rmtree, folder, ignore_errors=True)
    return _as_model(bare)


def _as_model(bare: Model) -> ShownModel:
    return ShownModel(**{field.name: getattr(bare, field.name) for field in fields(bare)})


def type_with_article(value: object) -> str:
    """Return the type of a value with an article: "an int", "a numpy.ndarray"."""
    return with_article(_kind(value))


def _kind(value: object) -> str:
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def _bytes(data: object, noun: str, hint: str = "") -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"{noun} {type_with_article(data)}, expected bytes{hint}")
    return bytes(data)


def input_shape(name: str, shape: "str | Sequence[int] | Shape") -> Shape:
    try:
        if isinstance(shape, str):
            return parse_shape(shape)
        if shape is None:
            return None
        return tuple(
            dim if isinstance(dim, tuple) else parse_dim("?" if dim == -1 else str(dim)) for dim in shape
        )
    except ValueError as error:
        raise UsageError(f"the shape of {name!r} is {shape!r}: {error}") from None


def input_range(name: str, ends: "str | Sequence[float]") -> ValueRange:
    try:
        return parse_range(ends) if isinstance(ends, str) else make_range(ends)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the range of {name!r} is {ends!r}: {error}") from None


def _serialized(proto: Any) -> tuple[str, bytes]:
    """Return a name for a protobuf message, and its bytes."""
    name = f"<onnx.ModelProto {proto.graph.name}>" if proto.graph.name else "<onnx.ModelProto>"
    try:
        return name, proto.SerializeToString()
    except Exception as error:  # EncodeError or ValueError: larger than 2 GiB, or a required field is missing
        message = f"protobuf cannot write the model: {error}"
        raise UnreadableModel("unreadable-file", message, Location(name)) from error


def _opened(file: Any) -> tuple[str, bytes | None]:
    """Return the name and content of an open file.

    For a file on disk the content is None: it is then read by its path, so that weights beside it are found.
    """
    name = getattr(file, "name", None)
    name = name if isinstance(name, str) and name else "file"
    if _is_plain(file, name):
        return name, None
    label = name if name.startswith("<") else f"<{name}>"
    try:
        content = file.read()
    except (OSError, ValueError) as error:
        raise UnreadableModel("unreadable-file", f"cannot be read: {error}", Location(label)) from None
    return label, _bytes(content, "the file gives", ": open it in binary mode")


def _is_plain(file: Any, name: str) -> bool:
    """Return whether an open file is at its start, and the path in its name leads to this very file."""
    import io
    import os

    try:
        is_file = isinstance(getattr(file, "raw", file), io.FileIO) and file.tell() == 0
        return is_file and os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    except (OSError, ValueError):  # a pipe, or a file that is closed or deleted
        return False


class ModelFile(NamedTuple):
    """The file of a model.

    Attributes:
        name: the name of the model in results.
        model: None if the caller passed a path: that file is not read here.
    """

    path: str
    name: str
    model: Model | None


@contextmanager
def in_a_file(model: "Readable") -> "Iterator[ModelFile]":
    """Yield the file of a model in this block; a model from memory gets a temporary file."""
    if isinstance(model, str | PathLike):
        yield ModelFile(fspath(model), fspath(model), None)
        return
    opened = read(model)
    if Path(opened.path).is_file():
        is_own = isinstance(model, Model)
        name = opened.path if is_own else f"<{_kind(model)} {Path(opened.path).stem}>"
        yield ModelFile(opened.path, name, opened)
        return
    from ir_scatter.core.temporary import temporary_folder
    from ir_scatter.formats import FORMATS

    with temporary_folder() as folder:
        path = Path(folder) / f"model{FORMATS[opened.format].suffix}"
        path.write_bytes(FORMATS[opened.format].write(opened, ()).content)
        yield ModelFile(str(path), opened.path, replace(opened, path=str(path)))
