"""The files that a conversion writes, model and weights, and checks of their destination."""

import filecmp
import os
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ir_scatter.core.atomic_write import Output, already_exists, replace_files
from ir_scatter.core.errors import CannotWrite, UsageError, explained
from ir_scatter.core.model import Model
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.suggestions import why_missing
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import IR
from ir_scatter.formats.other_files import is_other_suffix

_IR_SUFFIX = FORMATS[IR].suffix


class Files(NamedTuple):
    """Files to write, the model last, and the folders to create for them, outer ones first."""

    outputs: tuple[Output, ...]
    folders: tuple[Path, ...] = ()
    remarks: tuple[str, ...] = ()


def make_files(model: Model, content: bytes | None, appended: bytes, path: Path) -> Files:
    """Return the files to write, except those whose source and destination are the same file.

    Without `content` the model's file is copied unchanged. `appended` bytes are added to the end of its
    weights.
    """
    source = Path(model.path)
    outputs, folders, remarks = list[Output](), dict[Path, None](), list[str]()
    files = FORMATS[model.format].files_beside(model, path)
    copies = [path.parent / os.path.normpath(file.location) for file in files]
    if path in copies:
        raise UsageError(f"{path} is the name of the model's weights, expected another one")
    sources = ((source, model.identity), *((file.path, file.identity) for file in files))
    is_in_place = _is_same(source.parent, path.parent)
    for file, copy in zip(files, copies, strict=True):
        is_there = file.problem is None
        if appended or (is_there and not _is_same(file.path, copy)):
            outputs.append(Output(copy, appended, file.path if is_there else None, file.size, sources))
            folder = path.parent
            for part in Path(file.location).parent.parts:  # resolving `a/..` needs the folder `a`
                folder = folder / part
                folders |= {} if part == os.pardir else {folder: None}
        if file.problem and not (is_in_place and file.path == source.parent / file.location):
            remarks.append(file.problem)
    if content is not None or not _is_same(source, path):
        outputs.append(Output(path, content or b"", None if content else source, sources=sources))
    return Files(tuple(outputs), tuple(folders), tuple(remarks))


def commit(files: Files, path: Path, *, overwrite: bool) -> tuple[str, ...]:
    """Write the files; return a sentence for each interrupted earlier run that was completed first."""
    outputs = []
    for output in files.outputs:
        if overwrite or not os.path.lexists(output.path):
            outputs.append(replace(output, is_new=not overwrite))
        elif output.path == path or not _is_copy(output):
            raise UsageError(f"{output.path} exists, expected a path that is free, or to overwrite it")
    with ExitStack() as new_folders:  # remove new folders again if a file in them cannot be written
        for folder in files.folders:
            if not folder.is_dir():
                with explained(f"the folder {folder}", "made"):
                    folder.mkdir()
                new_folders.callback(_remove, folder)
        finished = replace_files(outputs)
        new_folders.pop_all()
    return finished


def _remove(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _is_copy(output: Output) -> bool:
    if output.copied is None or output.content or not output.path.is_file():
        return False
    filecmp.clear_cache()  # its cache compares only size and time
    try:
        return filecmp.cmp(output.copied, output.path, shallow=False)
    except OSError:
        return False


def source_files(model: Model) -> list[Path]:
    """Return the files that a model was read from.

    Raises UnreadableModel if a file is outside of the model's folder.
    """
    source = Path(model.path)
    return [source, *(file.path for file in FORMATS[model.format].files_beside(model, source))]


def is_ir_path(output: str) -> bool:
    return output.lower().endswith(_IR_SUFFIX)


def demand_destination(model: Model, output: str, *, is_ir: bool, overwrite: bool) -> None:
    """Check that an output can be written, before any other work."""
    path = Path(output)
    if is_ir and not is_ir_path(output):
        was = (
            "an IR cannot become an ONNX model"
            if output.lower().endswith(".onnx")
            else f"the output is {output!r}"
        )
        raise UsageError(f"{was}, expected an output that ends in {_IR_SUFFIX}")
    if not is_ir and is_other_suffix(output):
        suffixes = " or ".join(format.suffix for format in FORMATS.values())
        raise UsageError(f"the output is {output!r}, expected a name that ends in {suffixes}")
    if not output or output.endswith(os.sep) or path.is_dir():
        raise UsageError(f"{output!r} is a folder, expected the name of a file")
    sources = source_files(model)
    for written in [path, path.with_suffix(".bin")] if is_ir else [path]:
        if any(_is_same(written, source) for source in sources):
            in_place = Parameter("in_place", True)
            raise UsageError(f"{written} is a file of the model itself, expected another one or {in_place}")
        if os.path.lexists(written) and not overwrite:
            raise UsageError(already_exists(written))
    if not path.parent.is_dir():
        raise CannotWrite(f"{path} cannot be written: {why_missing(path)}")


def _is_same(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return False
