"""Tensors whose bytes stand in files beside the model."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PureWindowsPath

from onnx import TensorProto

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.model import Defect
from ir_scatter.core.shapes import counted
from ir_scatter.core.tensors import Weights
from ir_scatter.formats.onnx.types import text


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the bytes of a tensor cannot be had: the kind of the defect and its sentence."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Span:
    """Where a tensor says that its bytes are; no length means as many as it needs."""

    location: str
    offset: int
    length: int | None


class ExternalFiles:
    """The files of weights beside one model, each opened once however many tensors it holds."""

    def __init__(self, path: str, *, has_folder: bool) -> None:
        self._location = Location(path)
        self._folders = _folders_of(path) if has_folder else ()
        self._files: dict[str, Weights | Problem] = {}
        self._uses: dict[tuple[str, str], list[str]] = {}

    def view(self, tensor: TensorProto, size: int) -> memoryview | None:
        """Return the first `size` bytes of a tensor, None if they cannot be had."""
        span = span_of(tensor)
        if isinstance(span, Problem) or (span.length is not None and span.length < size):
            return None
        file = self._file(span.location)
        return None if isinstance(file, Problem) else file.view(span.offset, size)

    def problem(self, tensor: TensorProto, size: int, label: str) -> Problem | None:
        """Return what is wrong with the place of one tensor.

        A missing file and one that is too short are told once, by `defects`, for all its tensors.
        """
        span = span_of(tensor)
        if isinstance(span, Problem):
            return span
        if span.length is not None and span.length != size:
            return Problem(
                "constant-size",
                f"{label} has {counted(span.length, 'byte')} in {span.location!r}, "
                f"its type and shape need {show_count(size)}",
            )
        file = self._file(span.location)
        if isinstance(file, Problem):
            if file.kind != "weights-missing":
                return file
            self._uses.setdefault((span.location, ""), []).append(label)
        elif file.size is not None and span.offset + size > file.size:
            wanted = f"{label} needs bytes {span.offset} to {show_count(span.offset + size)}"
            self._uses.setdefault((span.location, "short"), []).append(wanted)
        return None

    def defects(self) -> Iterator[Defect]:
        """Yield what is wrong with the files that `problem` was asked about."""
        for (location, _), uses in self._uses.items():
            file = self._file(location)
            if isinstance(file, Problem):
                count = "1 tensor is" if len(uses) == 1 else f"{len(uses)} tensors are"
                message = f"{file.message}: the values of {count} unknown, the first is {uses[0]}"
                yield Defect(file.kind, message, self._location)
            else:
                more = f", the first of {len(uses)} tensors that end beyond it" if len(uses) > 1 else ""
                message = f"{location!r} has {counted(file.size or 0, 'byte')}, {uses[0]}{more}"
                yield Defect("weights-truncated", message, self._location)

    def _file(self, location: str) -> Weights | Problem:
        if location not in self._files:
            self._files[location] = self._open(location)
        return self._files[location]

    def _open(self, location: str) -> Weights | Problem:
        if not location:
            return Problem("external-data-path", "the location of external data is empty, expected a file")
        if PurePath(location).is_absolute() or PureWindowsPath(location).anchor:
            return Problem(
                "external-data-path",
                f"external data is at {location!r}, expected a path relative to the model's folder",
            )
        if not self._folders:
            return Problem("weights-missing", f"there is no {location!r} beside standard input")
        try:
            return self._open_inside(location)
        except (OSError, ValueError) as error:
            return _missing(location, error)

    def _open_inside(self, location: str) -> Weights | Problem:
        found = os.path.realpath(os.path.join(self._folders[0], location))
        if not any(_is_inside(found, folder) for folder in self._folders):
            return Problem(
                "external-data-path",
                f"external data at {location!r} is outside of the model's folder, expected a file inside it",
            )
        if not stat.S_ISREG(os.stat(found).st_mode):
            return Problem("weights-missing", f"{location!r} is no regular file")
        file = Weights(Path(found))
        if file.size is None:
            return Problem("weights-missing", f"{location!r} cannot be read ({file.error})")
        return file


def is_external(tensor: TensorProto) -> bool:
    """Tell whether the bytes of a tensor stand in another file."""
    return tensor.data_location == TensorProto.EXTERNAL


def show_count(number: int) -> str:
    """Print a number of bytes; the product of hostile dimensions may have thousands of digits."""
    return str(number) if number < 2**64 else "more than 2**64"


def span_of(tensor: TensorProto) -> Span | Problem:
    """Return where a tensor says that its bytes are, or the number that is none."""
    entries = {text(entry.key): text(entry.value) for entry in tensor.external_data}
    numbers: dict[str, int | None] = {"offset": 0, "length": None}
    for key in numbers:
        written = entries.get(key)
        if written is None:
            continue
        if not (written.isascii() and written.isdigit() and len(written) < 20):
            name = text(tensor.name)
            return Problem(
                "bad-number",
                f"the {key} of the external data of {name!r} is {written!r}, expected a number of bytes",
            )
        numbers[key] = int(written)
    return Span(entries.get("location", ""), numbers["offset"] or 0, numbers["length"])


def _folders_of(path: str) -> tuple[str, ...]:
    """Return the folder the model is named in and, if that is a link, the one it is kept in."""
    named = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    kept = os.path.dirname(os.path.realpath(path))
    return (named,) if named == kept else (named, kept)


def _is_inside(path: str, folder: str) -> bool:
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def _missing(location: str, error: OSError | ValueError) -> Problem:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return Problem("weights-missing", f"{location!r} cannot be read ({reason})")
