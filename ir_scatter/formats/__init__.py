"""Detects the format of a model file, and reads the file into a `core.model.Model`.

A new format needs a folder here, whose `FORMAT` implements `base.Format`, and an entry in `_FOLDERS`.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.core.atomic_write import half_replaced, identity
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import SUFFIXES, expanded, is_lfs_pointer, open_regular, search
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import Model
from ir_scatter.core.suggestions import why_missing
from ir_scatter.formats import other_files
from ir_scatter.formats.base import IR, ONNX_FORMAT, Format, ReadOptions

if TYPE_CHECKING:
    from ir_scatter.core.dataflow import Dataflow

_FOLDERS = (
    "openvino",
    "onnx",
)  # fmt: skip
"""The folders of all formats. A file with unknown content and suffix counts as the last format."""

MOST_MODEL = (1 << 31) - 1
"""Limit of bytes of a model file: the limit of a protobuf message. Weights in other files do not count."""

FORMATS: Mapping[str, Format] = {
    format.name: format for format in (import_module(f"{__name__}.{folder}").FORMAT for folder in _FOLDERS)
}
"""All formats, by name."""

_HEAD = 1024
"""Number of bytes at the start of a file that suffice to detect its format."""
_DEFAULT_OPTIONS = ReadOptions()


def detect(path: str, data: bytes) -> str:
    """Return the name of a file's format, judged by content, else by suffix."""
    for format in FORMATS.values():
        if format.sniff(data[:_HEAD]):
            return format.name
    candidates = (name for name, format in FORMATS.items() if path.lower().endswith(format.suffix))
    return next(candidates, [*FORMATS][-1])


def format_of(path: str) -> str:
    """Return the name of a file's format after reading only the first bytes.

    If the file cannot be read, its suffix decides.
    """
    try:
        with open_regular(path) as file:  # a pipe is not opened: its content can be read only once
            return detect(path, file.read(_HEAD))
    except (OSError, ValueError):
        return detect(path, b"")


def read(
    path: str,
    data: bytes | None = None,
    *,
    format: str | None = None,
    options: ReadOptions = _DEFAULT_OPTIONS,
    has_folder: bool = False,
) -> Model:
    """Read a model file. Without `format` its content decides the format.

    `data`, if not None, replaces the content of the file `path`. Set `has_folder` if external weights of
    such a model may still be read from the folder of `path`.

    Raises:
        UnreadableModel: the file is damaged or not a model. The error has the reason and the place.
    """
    path = expanded(path) if data is None else path
    file_identity = identity(Path(path)) if data is None else None
    raw = _read_file(path) if data is None else data
    if not raw:
        raise UnreadableModel("empty-file", "the file is empty", Location(path))
    other = other_files.by_content(path, raw)
    if other is not None and not (format and FORMATS[format].sniff(raw[:_HEAD])):
        raise _error_for_other_file(path, other, raw)
    name = format or detect(path, raw)
    try:
        with collector_paused():
            model = FORMATS[name].read(path, raw, replace(options, has_folder=has_folder or data is None))
            return replace(model, identity=file_identity)
    except UnreadableModel as error:
        is_certain = format or FORMATS[name].sniff(raw[:_HEAD])
        file_path = path if data is None else ""
        mistake = None if is_certain else _suffix_mistake(file_path, raw, name, error.defect)
        other = None if mistake is None and not error.is_model else other_files.by_name(file_path)
        if other is not None and not is_certain:
            raise _error_for_other_file(path, other, raw) from None
        if mistake is not None:
            error = UnreadableModel(error.defect, mistake, Location(path))
            error.help = "pass the .xml or .onnx file, or fix the file extension"
            raise error from None
        error.format = name if error.is_model else None
        raise


def _error_for_other_file(path: str, other: other_files.Advice, data: bytes) -> UnreadableModel:
    """Return the error for a file that is not a model, such as an archive.

    When a folder is searched for models, the error is reported only if the file has the suffix of a model.
    """
    is_pointer, is_onnx = is_lfs_pointer(data), path.lower().endswith(FORMATS[ONNX_FORMAT].suffix)
    kind = "not-a-model"
    if is_pointer:
        kind = "malformed-xml" if path.lower().endswith(FORMATS[IR].suffix) else "malformed-protobuf"
    error = UnreadableModel(kind, other.message, Location(path), is_model=is_pointer or is_onnx)
    error.help = other.help
    return error


def _suffix_mistake(path: str, data: bytes, name: str, defect: str) -> str | None:
    """Return the message for a file whose suffix and content disagree; None if they agree."""
    file, suffix = Path(path), Path(path).suffix.lower()
    if suffix in {".bin", ".data"}:
        models = (file.with_suffix(format.suffix) for format in FORMATS.values())
        guess = next((f" (did you mean {model}?)" for model in models if model.is_file()), "")
        return f"a {suffix} contains weights, expected the model that they belong to{guess}"
    if suffix != FORMATS[name].suffix and defect == "malformed-protobuf":
        return "the file is neither XML nor protobuf, expected an OpenVINO IR or an ONNX model"
    for format in FORMATS.values():
        with suppress(UnreadableModel):
            if format.name != name and format.read(path, data, _DEFAULT_OPTIONS):
                message = f"the file contains a model of {format.title}"
                return f"{message}, expected a name that ends in {format.suffix}"
    return None


def dataflow_of(model: Model) -> "Dataflow":
    """Return the dataflow of a model: the producer and the consumers of each value.

    Raises:
        UnknownOperator: nested function calls expand to too many graphs.
    """
    return FORMATS[model.format].dataflow(model)


def _read_file(path: str) -> bytes:
    """Return the bytes of a model file.

    Raises an error if an interrupted conversion replaced only some of the model's files.
    """
    if not path:
        raise UnreadableModel("unreadable-file", "the path is empty", Location(path))
    try:
        problem = half_replaced(Path(path)) if "\0" not in path else None
        if problem is not None:
            raise UnreadableModel("half-replaced", problem, Location(path))
        if Path(path).is_char_device() or Path(path).is_block_device():
            raise OSError(0, "it is a device")
        is_of_shell = os.path.abspath(path).startswith(("/dev/", "/proc/"))  # `<(command)` of a shell
        if Path(path).is_fifo() and not is_of_shell:
            raise OSError(0, "it is a pipe, expected a file, or - for standard input")
        size = Path(path).stat().st_size
        if size > MOST_MODEL:
            raise OSError(0, f"it has {size} bytes, expected at most {MOST_MODEL}, without its weights")
        return Path(path).read_bytes()
    except MemoryError:
        message = f"cannot be read: there is not enough memory for its {Path(path).stat().st_size} bytes"
        raise UnreadableModel("unreadable-file", message, Location(path)) from None
    except (OSError, ValueError) as error:
        reason, help = (getattr(error, "strerror", None) or str(error)).lower(), ""
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            reason, help = other_files.not_a_path(path) or (why_missing(path, SUFFIXES), "")
        elif isinstance(error, IsADirectoryError):
            first = next(search(path), "")
            reason = "it is a folder, expected a model" + (f", such as {first}" if first else "")
        unreadable = UnreadableModel("unreadable-file", f"cannot be read: {reason}", Location(path))
        unreadable.help = help
        raise unreadable from None
