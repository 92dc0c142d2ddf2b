"""The file formats, how they are told apart, and how a file becomes a Model.

A new format is one folder here, whose `FORMAT` is what `base.Format` asks for, and one line below.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.core.atomic_write import half_replaced, identity
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import SUFFIXES, open_regular, search
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import Model
from ir_scatter.core.suggestions import why_missing
from ir_scatter.formats.base import Format, ReadOptions

if TYPE_CHECKING:
    from ir_scatter.core.dataflow import Dataflow

_FOLDERS = (
    "openvino",
    "onnx",
)  # fmt: skip
"""What no format claims by its content or by its name is of the last one."""

FORMATS: Mapping[str, Format] = {
    found.name: found for found in (import_module(f"{__name__}.{folder}").FORMAT for folder in _FOLDERS)
}
"""By name."""

_HEAD = 1024
"""So many bytes tell a format."""
_PLAINLY = ReadOptions()


def detect(path: str, data: bytes) -> str:
    """Return the format of a file by its content, and by its name where that says nothing."""
    for format in FORMATS.values():
        if format.sniff(data[:_HEAD]):
            return format.name
    named = (name for name, format in FORMATS.items() if path.lower().endswith(format.suffix))
    return next(named, [*FORMATS][-1])


def format_of(path: str) -> str:
    """Return the format of a file without reading more than its head; by its name if it cannot be read."""
    try:
        with open_regular(path) as file:  # what a pipe holds can be read only once
            return detect(path, file.read(_HEAD))
    except (OSError, ValueError):
        return detect(path, b"")


def read(
    path: str, data: bytes | None = None, *, format: str | None = None, options: ReadOptions = _PLAINLY
) -> Model:
    """Read a model file, whose format its content tells unless it is named.

    Its bytes may be given where they did not come from `path`, so that there is nothing beside them.

    Raises:
        UnreadableModel: with the reason and the place.
    """
    known = identity(Path(path)) if data is None else None
    raw = _read_file(path) if data is None else data
    if not raw:
        raise UnreadableModel("empty-file", "the file is empty", Location(path))
    name = format or detect(path, raw)
    try:
        with collector_paused():
            model = FORMATS[name].read(path, raw, replace(options, has_folder=data is None))
            return replace(model, identity=known)
    except UnreadableModel as error:
        is_told = format or FORMATS[name].sniff(raw[:_HEAD])
        named = path if data is None else ""
        mistaken = None if is_told else _mistaken(named, raw, name, error.defect)
        if mistaken is not None:
            error = UnreadableModel(error.defect, mistaken, Location(path))
            error.help = "name the right file, or this one rightly"
            raise error from None
        error.format = name if error.is_model else None
        raise


def _mistaken(path: str, data: bytes, name: str, defect: str) -> str | None:
    """Return what a file is that is no model of the format that its name tells; None if nobody knows."""
    found, suffix = Path(path), Path(path).suffix.lower()
    if suffix in {".bin", ".data"}:
        models = (found.with_suffix(format.suffix) for format in FORMATS.values())
        guess = next((f" (did you mean {one}?)" for one in models if one.is_file()), "")
        return f"a {suffix} holds weights, expected the model that they belong to{guess}"
    if suffix != FORMATS[name].suffix and defect == "malformed-protobuf":
        return "the file is neither XML nor a message of protobuf, expected an OpenVINO IR or an ONNX model"
    for other in FORMATS.values():
        with suppress(UnreadableModel):
            if other.name != name and other.read(path, data, _PLAINLY):
                return f"the file holds a model of {other.title}, expected a name that ends in {other.suffix}"
    return None


def dataflow_of(model: Model) -> "Dataflow":
    """Return how the values of a model flow.

    Raises:
        UnknownOperator: functions that call functions stand for more graphs than can be computed.
    """
    return FORMATS[model.format].dataflow(model)


def _read_file(path: str) -> bytes:
    """Return the bytes of a model, unless a killed conversion has replaced some of its files only."""
    if not path:
        raise UnreadableModel("unreadable-file", "the path is empty", Location(path))
    try:
        problem = half_replaced(Path(path)) if "\0" not in path else None
        if problem is not None:
            raise UnreadableModel("half-replaced", problem, Location(path))
        if Path(path).is_char_device() or Path(path).is_block_device():
            raise OSError(0, "is a device")
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            reason = why_missing(path, SUFFIXES)
        elif isinstance(error, IsADirectoryError):
            first = next(search(path), "")
            reason = "it is a folder, expected a model" + (f", such as {first}" if first else "")
        raise UnreadableModel("unreadable-file", f"cannot be read: {reason}", Location(path)) from None
