"""Writes a conversion: the model, and the files of weights beside it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.errors import UsageError
from ir_scatter.formats import IR
from ir_scatter.formats.replace_files import Output, replace_files
from ir_scatter.memory import collector_paused

if TYPE_CHECKING:
    from onnx import ModelProto

    from ir_scatter.convert.conversion import Conversion
    from ir_scatter.model import Model


def write(conversion: "Conversion", path: Path, *, overwrite: bool, partial: bool) -> None:
    """Write a conversion; see `Conversion.write`."""
    if conversion.refused and not partial:
        raise UsageError(f"{len(conversion.refused)} nodes were refused, expected none or partial=True")
    with collector_paused():
        outputs = list(make_outputs(conversion, path))
    if not overwrite:
        for output in outputs:
            if os.path.lexists(output.path):
                raise UsageError(f"{output.path} exists, expected a path that is free, or to overwrite it")
    replace_files(outputs)


def make_outputs(conversion: "Conversion", path: Path) -> Iterator[Output]:
    """Yield the files to write, the model last: it is complete once it is there.

    Files that would be copied over themselves are left out.

    Raises:
        UnreadableModel: a file of weights is not where the model says, or outside of its folder.
        NotEditable: the file is written in a way that cannot be edited in place.
        UsageError: two different files would get the same name.
    """
    if conversion.model.format == IR:
        yield from _ir_outputs(conversion, path)
    else:
        yield from _onnx_outputs(conversion, path)


def _ir_outputs(conversion: "Conversion", path: Path) -> Iterator[Output]:
    from ir_scatter.formats.openvino_ir_writer import write_ir

    source = Path(conversion.model.path)
    weights, copy = source.with_suffix(".bin"), path.with_suffix(".bin")
    if copy == path:
        raise UsageError(f"{path} is the name of the weights, expected one that ends in .xml")
    patches = conversion.patches
    text = write_ir(conversion.model, patches) if patches else None
    appended = text.appended if text else b""
    is_there = weights.is_file()
    if (appended or not _is_same(weights, copy)) and (is_there or appended):
        known = conversion.model.graph.file.weights  # type: ignore[attr-defined]  # that of an IR
        size = known.size if known is not None and is_there else None
        yield Output(copy, appended, weights if is_there else None, size)
    if text is not None:
        yield Output(path, text.xml)
    elif not _is_same(source, path):
        yield Output(path, copied=source)


def _onnx_outputs(conversion: "Conversion", path: Path) -> Iterator[Output]:
    from ir_scatter.formats.onnx_beside import external_files

    model = conversion.model
    for file in external_files(model):
        copy = path.parent / file.name
        if copy == path:
            raise UsageError(f"{path} is the name of the model's external data, expected another one")
        if not _is_same(file.path, copy):
            yield Output(copy, copied=file.path)
    data = onnx_bytes(conversion)
    if data is not None:
        yield Output(path, data)
    elif not _is_same(Path(model.path), path):
        yield Output(path, copied=Path(model.path))


def onnx_bytes(conversion: "Conversion") -> bytes | None:
    """Return the converted model as bytes, None if nothing changes.

    Raises:
        NotEditable: the model cannot be written.
    """
    from ir_scatter.formats.onnx_writer import write_onnx

    move = conversion.move
    if not conversion.patches and move is None:
        return None

    def change(proto: "ModelProto") -> None:
        if move is not None:
            move.apply(proto)

    return write_onnx(conversion.model, conversion.patches, change).data


def source_files(model: "Model") -> list[Path]:
    """Return the files that a model was read from."""
    source = Path(model.path)
    if model.format == IR:
        return [source, source.with_suffix(".bin")]
    from ir_scatter.formats.onnx_beside import external_files

    return [source, *(file.path for file in external_files(model))]


def _is_same(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return False
