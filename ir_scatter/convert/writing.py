"""Writes a conversion: the model, and the files of weights beside it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.core.errors import CannotWrite, NotEditable, UsageError
from ir_scatter.core.model import collector_paused
from ir_scatter.core.replace_files import Output, replace_files
from ir_scatter.core.shapes import counted
from ir_scatter.formats import IR

if TYPE_CHECKING:
    from onnx import ModelProto

    from ir_scatter.convert.conversion import Conversion
    from ir_scatter.core.model import Model

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Files:
    """What is to be written.

    Attributes:
        outputs: the files, the model last: it is complete once it is there.
        folders: what must exist for them, outer ones first.
        remarks: files of the source that are not there, one sentence each.
    """

    outputs: tuple[Output, ...]
    folders: tuple[Path, ...] = ()
    remarks: tuple[str, ...] = ()


def write(conversion: "Conversion", path: Path, *, overwrite: bool, partial: bool) -> tuple[str, ...]:
    """Write a conversion, and return what else there is to say; see `Conversion.write`."""
    if conversion.refused and not partial:
        count = len(conversion.refused)
        said = f"{counted(count, 'node')} {'was' if count == 1 else 'were'} refused"
        raise UsageError(f"{said}, expected none or partial=True")
    files = make_files(conversion, path)
    return files.remarks + commit(files, path, overwrite=overwrite)


def commit(files: Files, path: Path, *, overwrite: bool) -> tuple[str, ...]:
    """Write files, and say which of those that a killed run left half replaced were finished before.

    Args:
        files: what `make_files` gives.
        path: of the model.
        overwrite: whether files that exist may be replaced.

    Raises:
        UsageError: a file exists.
        CannotWrite: a file cannot be written; nothing was changed.
    """
    outputs = files.outputs if overwrite else _demand_free(files.outputs, path)
    with _folders(files.folders):
        return replace_files(outputs)


def _demand_free(outputs: Sequence[Output], path: Path) -> list[Output]:
    """Return the files that are to be written: those beside the model may be there if they are the same.

    Raises:
        UsageError: another file is in the way.
    """
    wanted = []
    for output in outputs:
        if os.path.lexists(output.path):
            if output.path == path or not _is_copy(output):
                raise UsageError(f"{output.path} exists, expected a path that is free, or to overwrite it")
        else:
            wanted.append(output)
    return wanted


def _is_copy(output: Output) -> bool:
    """Tell whether a file holds already what is to be written."""
    if output.copied is None or output.content or not output.path.is_file():
        return False
    try:
        with output.copied.open("rb") as left, output.path.open("rb") as right:
            if os.fstat(left.fileno()).st_size != os.fstat(right.fileno()).st_size:
                return False
            while piece := left.read(_CHUNK):
                if piece != right.read(_CHUNK):
                    return False
    except OSError:
        return False
    return True


@contextmanager
def _folders(wanted: Sequence[Path]) -> Iterator[None]:
    """Make folders, and remove them again if what is to stand in them cannot be written."""
    made: list[Path] = []
    try:
        for folder in wanted:
            if not folder.is_dir():
                try:
                    folder.mkdir()
                except OSError as error:
                    reason = (error.strerror or str(error)).lower()
                    raise CannotWrite(f"the folder {folder} cannot be made: {reason}") from None
                made.append(folder)
        yield
    except CannotWrite:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        raise


def make_files(conversion: "Conversion", path: Path) -> Files:
    """Return what is to be written; files that would be copied over themselves are left out.

    Raises:
        UnreadableModel: a file of weights is outside of the model's folder.
        NotEditable: the model is written in a way that cannot be edited in place.
        UsageError: two different files would get the same name.
    """
    with collector_paused():
        return (_ir_files if conversion.model.format == IR else _onnx_files)(conversion, path)


def _ir_files(conversion: "Conversion", path: Path) -> Files:
    from ir_scatter.formats.openvino.writer import write_ir

    source = Path(conversion.model.path)
    weights, copy = source.with_suffix(".bin"), path.with_suffix(".bin")
    if copy == path:
        raise UsageError(f"{path} is the name of the weights, expected one that ends in .xml")
    patches = conversion.patches
    text = write_ir(conversion.model, patches) if patches else None
    appended = text.appended if text else b""
    is_there = weights.is_file()
    known = conversion.model.graph.file.weights  # type: ignore[attr-defined]  # that of an IR
    sources = ((source, conversion.model.identity), (weights, None if known is None else known.identity))
    outputs = []
    if (appended or not _is_same(weights, copy)) and (is_there or appended):
        size = known.size if known is not None and is_there else None
        outputs.append(Output(copy, appended, weights if is_there else None, size, sources))
    if text is not None:
        outputs.append(Output(path, text.xml, sources=sources))
    elif not _is_same(source, path):
        outputs.append(Output(path, copied=source, sources=sources))
    is_missed = not is_there and not _is_same(source, path) and _has_constants(conversion.model)
    return Files(tuple(outputs), (), (f"there is no {weights}, so none was written",) if is_missed else ())


def _has_constants(model: "Model") -> bool:
    """Tell of an IR without a `.bin` whether it should have one."""
    from ir_scatter.formats.openvino.editable import check_weights
    from ir_scatter.formats.openvino.graph import IrGraph

    assert isinstance(model.graph, IrGraph)
    try:
        check_weights(model.graph)
    except NotEditable:
        return True
    return False


def _onnx_files(conversion: "Conversion", path: Path) -> Files:
    from ir_scatter.formats.onnx.beside import external_files

    model = conversion.model
    outputs: list[Output] = []
    folders: dict[Path, None] = {}
    missing: list[str] = []
    files = external_files(model, missing)
    sources = ((Path(model.path), model.identity), *((file.path, file.identity) for file in files))
    for file in files:
        copy = path.parent / file.name
        if copy == path:
            raise UsageError(f"{path} is the name of the model's external data, expected another one")
        if not _is_same(file.path, copy):
            outputs.append(Output(copy, copied=file.path, sources=sources))
            folders |= dict.fromkeys(_way(path.parent, Path(file.location).parent))
    data = onnx_bytes(conversion)
    if data is not None:
        outputs.append(Output(path, data, sources=sources))
    elif not _is_same(Path(model.path), path):
        outputs.append(Output(path, copied=Path(model.path), sources=sources))
    is_beside = _is_same(Path(model.path).parent, path.parent)
    return Files(tuple(outputs), tuple(folders), () if is_beside else tuple(missing))


def _way(folder: Path, inside: Path) -> Iterator[Path]:
    """Yield the folders on the way to one inside of another; `a/..` leads through `a`."""
    for part in inside.parts:
        folder = folder / part
        if part != os.pardir:
            yield folder


def onnx_bytes(conversion: "Conversion") -> bytes | None:
    """Return the converted model as bytes, None if nothing changes.

    Raises:
        NotEditable: the model cannot be written.
    """
    from ir_scatter.formats.onnx.writer import write_onnx

    move = conversion.move
    if conversion.is_empty:
        return None

    def change(proto: "ModelProto") -> None:
        if move is not None:
            move.apply(proto)

    return write_onnx(conversion.model, conversion.patches, change).data


def source_files(model: "Model") -> list[Path]:
    """Return the files that a model was read from.

    Raises:
        UnreadableModel: its external data is outside of its folder.
    """
    source = Path(model.path)
    if model.format == IR:
        return [source, source.with_suffix(".bin")]
    from ir_scatter.formats.onnx.beside import external_files

    return [source, *(file.path for file in external_files(model, []))]


def _is_same(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return False
