"""Which files are read, and that none of them is written over: a report in its place is a model less."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import click

from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import STANDARD_INPUT, Source, find_files
from ir_scatter.reading import files_beside
from ir_scatter.settings import find_settings

_SAVED = re.compile(r"results\.json|case_\d+\.npz")
_EXTRACTED = re.compile(r"model\.(xml|bin|onnx)|inputs\.npz|README\.txt")

_Identity = tuple[int, int] | str


def find_sources(paths: Sequence[str], exclude: Sequence[str] = ()) -> tuple[Source, ...]:
    """Find the models that paths name, and say which folders have none."""
    found = find_files(tuple(paths), tuple(exclude))
    for folder in found.empty_folders:
        click.echo(f"ir-scatter: {folder}: no .xml or .onnx file in this folder", err=True)
    return found.sources


def demand_apart(
    outputs: Mapping[str, str | None], models: Iterable[str], others: Iterable[str | None] = ()
) -> None:
    """Demand that no file that is to be written is one that is read, however it is spelled.

    Args:
        outputs: files to be written, by the option that names them.
        models: models that are read; their weights count as well.
        others: other files that are read.

    Raises:
        click.UsageError: one is, or two options name one file.
    """
    wanted = {option: (path, _identities(path)) for option, path in outputs.items() if path is not None}
    if not any(identities for _, identities in wanted.values()):
        return
    for (option, (path, one)), (other, (_, two)) in combinations(wanted.items(), 2):
        if one & two:
            raise click.UsageError(f"{other}: {path} is what {option} names, expected another file")
    for file, whose in _read_files(models, others):
        for option, (path, identities) in wanted.items():
            if identities & _identities(file):
                raise click.UsageError(f"{option}: {path} is {whose}, expected another file")


def demand_apart_from_folders(
    save: str | None, extract: str | None, models: Iterable[str], others: Iterable[str | None]
) -> None:
    """Demand the same of the files that `compare` writes into folders.

    Raises:
        click.UsageError: one of them is read.
    """
    folders = {"--save": (save, _SAVED, slice(0, 2)), "--extract": (extract, _EXTRACTED, slice(1, 3))}
    wanted = {option: told for option, told in folders.items() if told[0]}
    if not wanted:
        return
    for file, whose in _read_files(models, others):
        path = Path(os.path.realpath(file))
        for option, (folder, names, above) in wanted.items():
            assert folder is not None
            is_inside = Path(os.path.realpath(folder)) in [*path.parents][above]
            if is_inside and names.fullmatch(path.name):
                raise click.UsageError(
                    f"{option}: {path.name} in {folder} is {whose}, expected another folder"
                )


def _read_files(models: Iterable[str], others: Iterable[str | None]) -> Iterator[tuple[str, str]]:
    """Yield the files that are read, and what they are."""
    try:
        settings, _ = find_settings()
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    if settings is not None:
        yield str(settings), "where the settings are"
    for other in others:
        if other is not None:
            yield other, "read as well"
    for model in models:
        if model == STANDARD_INPUT:
            yield "/dev/stdin", "what is read from standard input"
            continue
        yield model, "the model itself"
        yield from files_beside(model)


def _identities(path: str) -> set[_Identity]:
    """Return what a regular file is known by: its number, and its place; none for devices and pipes."""
    found: set[_Identity] = {os.path.realpath(path)}
    try:
        told = os.stat(path)
    except (OSError, ValueError):
        return found
    return found | {(told.st_dev, told.st_ino)} if stat.S_ISREG(told.st_mode) else set()
