"""Which files are read, and that none of them is written over: a report in its place is a model less."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import click

from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import STANDARD_INPUT, Source, find_files
from ir_scatter.reading import files_beside
from ir_scatter.settings import find_settings


def find_sources(paths: Sequence[str], exclude: Sequence[str] = ()) -> tuple[Source, ...]:
    """Find the models that paths name, and say which folders have none."""
    found = find_files(tuple(paths), tuple(exclude))
    for folder in found.empty_folders:
        click.echo(f"ir-scatter: {folder}: no .xml or .onnx file in this folder", err=True)
    return found.sources


def demand_apart(
    outputs: Mapping[str, str | None], models: Iterable[str], others: Iterable[str | None] = ()
) -> None:
    """Demand that no file that is to be written, by option, is one that is read, however it is spelled.

    Raises:
        UsageError: one is, or two options name one file.
    """
    wanted = {option: (path, _identities(path)) for option, path in outputs.items() if path is not None}
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
