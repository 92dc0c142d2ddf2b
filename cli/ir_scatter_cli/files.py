"""Which files are read, and that none of them is written over: a report in its place is a model less."""

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
from ir_scatter.reading import files_beside, read
from ir_scatter.settings import find_settings
from ir_scatter_cli.output import is_device, say


def find_sources(paths: Sequence[str], exclude: Sequence[str] = ()) -> tuple[Source, ...]:
    """Find the models that paths name, and say which folders have none."""
    if STANDARD_INPUT in paths and len(paths) > 1:
        raise UsageError(f"{STANDARD_INPUT} cannot be mixed with other paths")
    found = find_files(tuple(paths), tuple(exclude))
    for folder in found.empty_folders:
        say(f"{folder}: no .xml or .onnx file in this folder")
    return found.sources


def read_model(path: str, stdin_format: str | None) -> Model:
    """Read a model from a file or, for "-", from standard input, in a format if that is known."""
    if path != STANDARD_INPUT:
        return read(path)
    return read(STDIN_NAME, sys.stdin.buffer.read(), format=stdin_format)


def demand_free(option: str, path: str | None, *, overwrite: bool) -> None:
    """Demand that nothing is replaced unasked; a device is there to be written."""
    if path is not None and os.path.lexists(path) and not is_device(path) and not overwrite:
        raise UsageError(f"{option}: {path} exists, expected a path that is free or --overwrite")


def demand_free_baseline(path: str | None, *, overwrite: bool) -> None:
    """Demand that a new baseline replaces nothing but an earlier one, which is brought up to date."""
    from ir_scatter.lint import read_baseline

    if path is not None and os.path.lexists(path) and not is_device(path):
        try:
            read_baseline(path)
        except UsageError:
            demand_free("--write-baseline", path, overwrite=overwrite)


def demand_no_models(folder: str | None, *, overwrite: bool) -> None:
    """Demand that `compare --extract` replaces no models but those that it extracted before."""
    for path in sorted(Path(folder).glob("*/model.*")) if folder is not None and not overwrite else ():
        if not path.with_name("README.txt").is_file():
            raise UsageError(
                f"--extract: {path} exists, expected a folder without such models or --overwrite"
            )


def demand_free_folder(folder: str | None, *, each: bool, overwrite: bool) -> None:
    """Demand that a folder has no results of `compare`, nor with `each` a folder in it."""
    if folder is None:
        return
    from ir_scatter.compare.snapshot import MANIFEST

    found = next(Path(folder).glob(f"*/{MANIFEST}" if each else MANIFEST), None)
    if found is not None and not overwrite:
        raise UsageError(f"--save: {found} exists, expected a folder without results or --overwrite")


def demand_apart(
    outputs: Mapping[str, str | None], models: Iterable[str], others: Iterable[str | None] = ()
) -> None:
    """Demand that files can be written, by option, and that none is another one's or one that is read."""
    given = {option: path for option, path in outputs.items() if path is not None}
    for option, path in given.items():
        if not path or path.endswith(os.sep) or os.path.isdir(path):
            raise UsageError(f"{option}: {path!r} is a folder, expected the name of a file")
        if not Path(path).parent.is_dir():
            raise CannotWrite(f"{path} cannot be written: {why_missing(path)}")
    wanted = {option: (path, _identities(path)) for option, path in given.items()}
    for (option, (path, one)), (other, (_, two)) in combinations(wanted.items(), 2):
        if one & two:
            raise UsageError(f"{other}: {path} is what {option} names, expected another file")
    for file, whose in _read_files(models, others) if wanted else ():
        for option, (path, identities) in wanted.items():
            if identities & _identities(file):
                raise UsageError(f"{option}: {path} is {whose}, expected another file")


def demand_apart_from_folders(
    save: str | None, extract: str | None, models: Iterable[str], others: Iterable[str | None]
) -> None:
    """Demand the same of the files that `compare` writes into folders.

    Which folders around such a file may be the one that is named is told by their number, from inside out.
    """
    names = r"model\.(xml|bin|onnx)|inputs\.npz|README\.txt"
    folders = [
        ("--save", save, r"results\.json|case_\d+\.npz", slice(0, 2)),
        ("--extract", extract, names, slice(1, 3)),
    ]
    for file, whose in _read_files(models, others) if save or extract else ():
        path = Path(os.path.realpath(file))
        for option, folder, written, around in folders:
            is_inside = folder and Path(os.path.realpath(folder)) in [*path.parents][around]
            if is_inside and re.fullmatch(written, path.name):
                raise UsageError(f"{option}: {path.name} in {folder} is {whose}, expected another folder")


def _identities(path: str) -> set[tuple[int, int] | str]:
    """What a file is known by: its place and, of a regular file, its number."""
    found: set[tuple[int, int] | str] = {os.path.realpath(path)}
    with suppress(OSError, ValueError):
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            found.add((status.st_dev, status.st_ino))
    return found


def _read_files(models: Iterable[str], others: Iterable[str | None]) -> Iterator[tuple[str, str]]:
    """Yield the files that are read, and what they are."""
    settings, _ = find_settings()
    if settings is not None:
        yield str(settings), "where the settings are"
    yield from ((other, "read as well") for other in others if other is not None)
    for model in models:
        if model == STANDARD_INPUT:
            yield "/dev/stdin", "what is read from standard input"
        else:
            yield model, "the model itself"
            yield from files_beside(model)
