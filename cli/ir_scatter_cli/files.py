"""Which files are read, and that none of them is written over: a report in its place is a model less."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from ir_scatter.core.files import (
    STANDARD_INPUT,
    Source,
    demand_apart_from,
    demand_apart_from_folder,
    find_files,
)
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
    """Demand that no file that is to be written, by option, is one that is read."""
    demand_apart_from(outputs, _read_files(models, others))


def demand_apart_from_folders(
    save: str | None, extract: str | None, models: Iterable[str], others: Iterable[str | None]
) -> None:
    """Demand the same of the files that `compare` writes into folders."""
    read = [*_read_files(models, others)] if save or extract else []
    demand_apart_from_folder("--save", save, r"results\.json|case_\d+\.npz", slice(0, 2), read)
    names = r"model\.(xml|bin|onnx)|inputs\.npz|README\.txt"
    demand_apart_from_folder("--extract", extract, names, slice(1, 3), read)


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
