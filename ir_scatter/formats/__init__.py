"""How files are read: bytes to a Model. Knows no operator but those that hold the format together."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Model, collector_paused
from ir_scatter.core.shapes import Shape

IR = "openvino-ir"
ONNX_FORMAT = "onnx"
NAMES = {IR: "OpenVINO IR", ONNX_FORMAT: "ONNX"}
"""What people call the formats."""

_HEAD = 1024
"""So many bytes tell a format."""


class Operators(NamedTuple):
    """What a reader is told of operators, because it knows none itself.

    Attributes:
        scatter: their one output has the element type and the shape of their first input.
        keepers: those of ONNX whose one output has them, of scatter too.
        broadcasters: those of ONNX that have the former, and the shape of their two inputs together.
    """

    scatter: frozenset[str] = frozenset()
    keepers: frozenset[str] = frozenset()
    broadcasters: frozenset[str] = frozenset()


UNKNOWN_OPERATORS = Operators()


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file.

    Raises:
        UnreadableModel: it does not exist, is no file, may not be read, or is empty.
    """
    if not path:
        raise UnreadableModel("unreadable-file", "the path is empty", Location(path))
    try:
        if Path(path).is_char_device() or Path(path).is_block_device():
            raise OSError(0, "is a device")
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableModel(
            "unreadable-file", f"cannot be read: {reason.lower()}", Location(path)
        ) from None
    return _not_empty(path, data)


def _read_whole(path: str) -> bytes:
    """Return the bytes of a model, unless a killed conversion has replaced some of its files only."""
    from ir_scatter.core.replacement_journal import half_replaced

    problem = half_replaced(Path(path)) if "\0" not in path else None
    if problem is not None:
        raise UnreadableModel("half-replaced", problem, Location(path))
    return read_bytes(path)


def _not_empty(path: str, data: bytes) -> bytes:
    if not data:
        raise UnreadableModel("empty-file", "the file is empty", Location(path))
    return data


def detect(path: str, data: bytes) -> str:
    """Return the format of a file by its content, and by its name where that says nothing."""
    if looks_like_xml(data):
        return IR
    return IR if path.lower().endswith(".xml") else ONNX_FORMAT


def format_of(path: str) -> str:
    """Return the format of a file without reading more than its head; by its name if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return detect(path, file.read(_HEAD))
    except (OSError, ValueError):
        return detect(path, b"")


def looks_like_xml(data: bytes) -> bool:
    """Tell whether the content begins like XML, whatever the file is called."""
    head = data[:_HEAD]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")


def read(
    path: str,
    data: bytes | None = None,
    *,
    format: str | None = None,
    types: frozenset[str] | None = None,
    operators: Operators = UNKNOWN_OPERATORS,
    input_shapes: Mapping[str, Shape] | None = None,
    shapes: Mapping[str, tuple[Shape, ...]] | None = None,
) -> Model:
    """Read a model file.

    Args:
        path: the file, as it is to be named in findings.
        data: its bytes where they did not come from `path`.
        format: "openvino-ir" or "onnx"; by content if None.
        types: the types of nodes the caller is interested in; None for all.
        operators: what is known of them.
        input_shapes: shapes of the model's inputs, by name.
        shapes: shapes of the outputs of nodes as a runtime propagated them, by scope (IR only).

    Raises:
        UnreadableModel: with the reason and the place.
    """
    from ir_scatter.core.replacement_journal import identity_behind

    known = identity_behind(Path(path)) if data is None else None
    raw = _read_whole(path) if data is None else _not_empty(path, data)
    format, has_folder = format or detect(path, raw), data is None
    try:
        with collector_paused():
            if format == IR:
                from ir_scatter.formats.openvino.reader import read as read_ir

                model = read_ir(
                    path, raw, operators, has_folder=has_folder, shapes=shapes, input_shapes=input_shapes
                )
                return replace(model, identity=known)
            try:
                from ir_scatter.formats.onnx.reader import read as read_onnx
            except Exception as error:  # a broken package may raise anything
                reason = f"the package onnx cannot be imported: {type(error).__name__}: {error}"
                raise UnreadableModel("unreadable-file", reason, Location(path)) from None
            model = read_onnx(path, raw, types, operators, has_folder=has_folder, input_shapes=input_shapes)
            return replace(model, identity=known)
    except UnreadableModel as error:
        error.format = format if error.is_model else None
        raise
