"""Finds input files, and checks that no output overwrites an input or an existing file."""

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path

from ir_scatter.core.errors import CannotWrite, UsageError
from ir_scatter.core.files import STANDARD_INPUT, STDIN_NAME, Source, find_files
from ir_scatter.core.model import Model
from ir_scatter.core.suggestions import why_missing
from ir_scatter.formats.other_files import in_folder
from ir_scatter.reading import files_beside, read
from ir_scatter.settings import find_settings
from ir_scatter_cli.output import is_device, say


def find_sources(paths: Sequence[str], exclude: Sequence[str] = ()) -> tuple[Source, ...]:
    """Find the models that paths name; print folders without models."""
    if STANDARD_INPUT in paths and len(paths) > 1:
        raise UsageError(f"{STANDARD_INPUT} cannot be mixed with other paths")
    files = find_files(tuple(paths), tuple(exclude))
    for folder in files.empty_folders:
        other_file = in_folder(folder)
        say(f"{folder}: no .xml or .onnx file in this folder{other_file and f'; {other_file}'}")
    return files.sources


def read_model(path: str, stdin_format: str | None) -> Model:
    """Read a model from a file or, for "-", from standard input in the given format (None: detect it)."""
    if path != STANDARD_INPUT:
        return read(path)
    return read(STDIN_NAME, sys.stdin.buffer.read(), format=stdin_format)


def demand_free(option: str, path: str | None, *, overwrite: bool) -> None:
    """Raise UsageError if the path exists, unless it may be overwritten or is a device."""
    if path is not None and os.path.lexists(path) and not is_device(path) and not overwrite:
        raise UsageError(f"{option}: {path} exists, expected a path that is free or --overwrite")


def demand_free_baseline(path: str | None, *, overwrite: bool) -> bool:
    """Raise UsageError if a new baseline would replace anything other than a baseline.

    Returns:
        Whether the path must not exist when the baseline is written.
    """
    from ir_scatter.lint import read_baseline

    if path is None or not os.path.lexists(path) or is_device(path):
        return not overwrite
    try:
        read_baseline(path)
    except UsageError:
        demand_free("--write-baseline", path, overwrite=overwrite)
    return False


def demand_no_models(folder: str | None, *, overwrite: bool) -> None:
    """Raise UsageError if `compare --extract` would replace models that it did not extract itself."""
    for path in sorted(Path(folder).glob("*/model.*")) if folder is not None and not overwrite else ():
        if not path.with_name("README.txt").is_file():
            raise UsageError(
                f"--extract: {path} exists, expected a folder without such models or --overwrite"
            )


def demand_free_folder(folder: str | None, *, each: bool, overwrite: bool) -> None:
    """Raise UsageError if a folder (with `each`: a folder in it) holds saved results of `compare`."""
    if folder is None:
        return
    from ir_scatter.compare.snapshot import MANIFEST

    manifest = next(Path(folder).glob(f"*/{MANIFEST}" if each else MANIFEST), None)
    if manifest is not None and not overwrite:
        raise UsageError(f"--save: {manifest} exists, expected a folder without results or --overwrite")


def demand_apart(
    outputs: Mapping[str, str | None], models: Iterable[str], other_inputs: Iterable[str | None] = ()
) -> None:
    """Check that outputs (paths by option) are writable, distinct, and not among the inputs."""
    paths = {option: path for option, path in outputs.items() if path is not None}
    for option, path in paths.items():
        if not path or path.endswith(os.sep) or os.path.isdir(path):
            raise UsageError(f"{option}: {path!r} is a folder, expected the name of a file")
        if not Path(path).parent.is_dir():
            raise CannotWrite(f"{path} cannot be written: {why_missing(path)}")
    files = {option: (path, _identities(path)) for option, path in paths.items()}
    for (first, (path, identities)), (second, (_, second_identities)) in combinations(files.items(), 2):
        if identities & second_identities:
            raise UsageError(f"{second}: {path} is also the file of {first}, expected another file")
    for file, whose in _read_files(models, other_inputs) if files else ():
        for option, (path, identities) in files.items():
            if identities & _identities(file):
                raise UsageError(f"{option}: {path} is {whose}, expected another file")


def demand_apart_from_folders(
    save: str | None, extract: str | None, models: Iterable[str], other_inputs: Iterable[str | None]
) -> None:
    """Check that no file that `compare` writes into the folders of --save and --extract is an input.

    An input clashes if its name is one that is written, and the folder is among its parents at the right
    depth: the slice selects parents, innermost first.
    """
    names = r"model\.(xml|bin|onnx)|inputs\.npz|README\.txt"
    folders = [
        ("--save", save, r"results\.json|case_\d+\.npz", slice(0, 2)),
        ("--extract", extract, names, slice(1, 3)),
    ]
    for file, whose in _read_files(models, other_inputs) if save or extract else ():
        path = Path(os.path.realpath(file))
        for option, folder, written, around in folders:
            is_inside = folder and Path(os.path.realpath(folder)) in [*path.parents][around]
            if is_inside and re.fullmatch(written, path.name):
                raise UsageError(f"{option}: {path.name} in {folder} is {whose}, expected another folder")


def _identities(path: str) -> set[tuple[int, int] | str]:
    """Return all identities of a file: its real path and, for a regular file, device and inode."""
    identities: set[tuple[int, int] | str] = {os.path.realpath(path)}
    with suppress(OSError, ValueError):
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            identities.add((status.st_dev, status.st_ino))
    return identities


def _read_files(models: Iterable[str], other_inputs: Iterable[str | None]) -> Iterator[tuple[str, str]]:
    """Yield (path, description) of each input file."""
    settings, _ = find_settings()
    if settings is not None:
        yield str(settings), "the file of the settings"
    yield from ((path, "an input, too") for path in other_inputs if path is not None)
    for model in models:
        if model == STANDARD_INPUT:
            yield "/dev/stdin", "the standard input that is read"
        else:
            yield model, "the model itself"
            yield from files_beside(model)
