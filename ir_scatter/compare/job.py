"""One call of `compare`: models, voices, inputs, and what is written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.compare.request import Voices, find_voices
from ir_scatter.compare.session import Compared, Settings, compare
from ir_scatter.compare.two_models import compare_two
from ir_scatter.errors import Error, UnreadableModel, UsageError
from ir_scatter.files import find_files

if TYPE_CHECKING:
    from ir_scatter.constants import Array


SAVED = "saved"
"""The runner that is named when nothing is to run, and only what was saved is to be looked at."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the caller wants.

    Attributes:
        models: one, or two that are compared with each other; any number of files and folders with `each`.
        names: the runners that are asked; empty for NumPy and every device found.
        settings: of the comparison.
        each: whether every model is compared for itself.
        inputs: an npz with the inputs, None to generate them.
        skip_missing: pass over runners that cannot run here.
        save: the folder to save results in.
        against: the folder with results of another time or place.
        extract: the folder for models of single nodes that differ.
    """

    models: tuple[str, ...]
    names: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    each: bool = False
    inputs: str | None = None
    skip_missing: bool = False
    save: str | None = None
    against: str | None = None
    extract: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A model that was not compared, and why."""

    model: str
    message: str
    is_unreadable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What came of it.

    Attributes:
        found: one for each model that was compared.
        failures: the others; only with `each`.
        skipped: runners that were passed over, and why.
        written: what was saved and extracted, in words.
    """

    found: tuple[Compared, ...]
    failures: tuple[Failure, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    written: tuple[str, ...] = ()


def run_job(job: Job, seen: Callable[[object], None] | None = None) -> Done:
    """Compare, and write what is to be written.

    Args:
        job: what is wanted.
        seen: called with the path of each model when it is done.

    Raises:
        UsageError: a name does not exist, or options do not fit each other.
        UnreadableModel: a model cannot be read.
        NoInputs: no legal inputs were found.
    """
    if not job.each and not 1 <= len(job.models) <= 2:
        raise UsageError(f"there are {len(job.models)} models, expected one or two, or --each")
    names = tuple(name for name in job.names if name.strip().lower() != SAVED or not job.against)
    if job.against and job.names and not names:
        voices = Voices((), False)
    else:
        voices = find_voices(names, format=_format(job), skip_missing=job.skip_missing)
    try:
        return _each(job, voices, seen) if job.each else _one(job, voices)
    finally:
        for runner in voices.runners:
            runner.close()


def _format(job: Job) -> str | None:
    """Return the format of the model, told by its name; None for several."""
    if job.each:
        return None
    return "openvino-ir" if job.models[0].lower().endswith(".xml") else "onnx"


def _one(job: Job, voices: Voices) -> Done:
    feeds = _feeds(job)
    if len(job.models) == 2:
        if job.against or job.extract:
            raise UsageError("--against and --extract are for one model, not two")
        found = compare_two(
            *job.models, voices.runners, job.settings, with_numpy=voices.with_numpy, feeds=feeds
        )
    elif job.against:
        from ir_scatter.compare.against import compare_against

        found = compare_against(job.against, job.models[0], voices, job.settings)
    else:
        found = compare(
            job.models[0], voices.runners, job.settings, with_numpy=voices.with_numpy, feeds=feeds
        )
    return Done((found,), (), voices.skipped, tuple(_written(job, found)))


def _each(job: Job, voices: Voices, seen: Callable[[object], None] | None) -> Done:
    found, failures, written = list[Compared](), list[Failure](), list[str]()
    if job.inputs or job.against:
        raise UsageError("--inputs and --against are for one model, not for --each")
    for source in find_files(job.models, ()).sources:
        try:
            one = compare(source.path, voices.runners, job.settings, with_numpy=voices.with_numpy)
        except UnreadableModel as error:
            if source.is_named or error.is_model:
                failures.append(Failure(source.path, error.message, is_unreadable=True))
        except Error as error:
            failures.append(Failure(source.path, str(error), is_unreadable=False))
        else:
            written += _written(job, one)
            found.append(one)
        if seen is not None:
            seen(source.path)
    return Done(tuple(found), tuple(failures), voices.skipped, tuple(written))


def _feeds(job: Job) -> "Sequence[Mapping[str, Array]] | None":
    if job.inputs is None:
        return None
    from ir_scatter.graphs import archive
    from ir_scatter.graphs.plan import wire
    from ir_scatter.validate import read

    arrays = archive.read_arrays(job.inputs)
    return [archive.fit_types(arrays, wire(read(job.models[0])).inputs)]


def _written(job: Job, found: Compared) -> Iterator[str]:
    """Write what is to be written, and say so."""
    folder = Path(found.model).stem if job.each else ""
    if job.save:
        from ir_scatter.compare.saved import save

        yield save(found, Path(job.save) / folder)
    if job.extract:
        from ir_scatter.compare.extract import extract

        yield from extract(found, Path(job.extract) / folder)
