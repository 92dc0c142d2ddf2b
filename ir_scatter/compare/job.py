"""One call of `compare`: models, voices, inputs, and what is written."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.compare.one_model import compare, names_of
from ir_scatter.compare.request import Voices, find_voices
from ir_scatter.compare.session import Compared, Settings, with_nothing_said
from ir_scatter.compare.two_models import compare_two
from ir_scatter.core.errors import CannotWrite, Error, UnreadableModel, UsageError
from ir_scatter.core.files import find_files
from ir_scatter.core.model import Model
from ir_scatter.reading import read

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

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
        inputs: an npz with the inputs of the first case, None to generate them.
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
        unwritten: what could not be, and why.
    """

    found: tuple[Compared, ...]
    failures: tuple[Failure, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    written: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()


def run_job(job: Job, seen: Callable[[object], None] | None = None) -> Done:
    """Compare, and write what is to be written.

    Args:
        job: what is wanted.
        seen: called with the path of each model when it is done.

    Raises:
        UsageError: a name does not exist, options do not fit each other, or feeds do not fit a model.
        UnreadableModel: a model cannot be read.
        NoInputs: no legal inputs were found.
    """
    _demand_sense(job)
    job = replace(job, settings=replace(job.settings, keeps_runs=bool(job.save)))
    models = [] if job.each else [read(path) for path in job.models]
    voices = _voices(job, models)
    try:
        return _each(job, voices, seen) if job.each else _one(job, models, voices)
    finally:
        for runner in voices.runners:
            runner.close()


def _demand_sense(job: Job) -> None:
    """Do nothing if the options fit each other.

    Raises:
        UsageError: they do not.
    """
    if job.each:
        if job.inputs or job.against:
            raise UsageError("--inputs and --against are for one model, not for --each")
        return
    if not 1 <= len(job.models) <= 2:
        raise UsageError(f"there are {len(job.models)} models, expected one or two, or --each")
    if len(job.models) == 2 and (job.against or job.extract or job.save):
        raise UsageError("--save, --against and --extract are for one model, not two")
    if job.against and (job.inputs or job.settings.cases > 1):
        raise UsageError("--against goes without --inputs and --cases: the inputs are those that were saved")


def _voices(job: Job, models: list[Model]) -> Voices:
    names = tuple(name for name in job.names if name.strip().lower() != SAVED or not job.against)
    if job.names and not names:
        return Voices((), False)
    format = models[0].format if models else None
    return find_voices(names, format=format, skip_missing=job.skip_missing)


def _one(job: Job, models: list[Model], voices: Voices) -> Done:
    settings, with_numpy = job.settings, voices.with_numpy
    if settings.tolerances.named:
        settings.tolerances.demand_known({name for model in models for name in names_of(model)})
    feeds = None if job.inputs is None else _feeds(job.inputs, models[0])
    if len(models) == 2:
        found = compare_two(models, voices.runners, settings, with_numpy=with_numpy, feeds=feeds)
    elif job.against:
        from ir_scatter.compare.against import compare_against

        found = compare_against(job.against, models[0], voices, settings)
    else:
        path = job.models[0]
        found = compare(path, voices.runners, settings, with_numpy=with_numpy, feeds=feeds, model=models[0])
    found = with_nothing_said(found)
    writing = _Writing(job)
    writing.write(found, "")
    return Done((found,), (), voices.skipped, tuple(writing.written), tuple(writing.failed))


def _each(job: Job, voices: Voices, seen: Callable[[object], None] | None) -> Done:
    found, failures, writing = list[Compared](), list[Failure](), _Writing(job)
    folders: set[str] = set()
    for source in find_files(job.models, ()).sources:
        try:
            one = with_nothing_said(_compare_one(source.path, job, voices, is_first=not found))
        except UnreadableModel as error:
            if source.is_named or error.is_model:
                failures.append(Failure(source.path, error.message, is_unreadable=True))
        except Error as error:
            message = str(error).removeprefix(f"{source.path}: ")
            failures.append(Failure(source.path, message, is_unreadable=False))
        else:
            writing.write(one, _folder(source.path, folders))
            found.append(replace(one, runs=()))
        if seen is not None:
            seen(source.path)
    written, failed = tuple(writing.written), tuple(writing.failed)
    return Done(tuple(found), tuple(failures), voices.skipped, written, failed)


def _compare_one(path: str, job: Job, voices: Voices, *, is_first: bool) -> Compared:
    """Compare one of many models; a difference counts if processes of its own show it as well.

    A plugin that wrote outside of its memory for an earlier model spoils what comes after it.
    """
    first = compare(path, voices.runners, job.settings, with_numpy=voices.with_numpy)
    if is_first or not first.differs:
        return first
    for runner in voices.runners:
        runner.close()
    second = compare(path, voices.runners, job.settings, with_numpy=voices.with_numpy)
    if second.differs:
        return second
    remark = "results differed in processes that had run other models, and do not in fresh ones"
    found = replace(second, remarks=(*second.remarks, remark))
    changed = [one for one in first.comparisons if one.subject == one.reference]  # one process, two results
    odd = [one for one in first.odd if one.runners in {(each.subject,) for each in changed}]
    return replace(found, comparisons=(*found.comparisons, *changed), odd=(*found.odd, *odd))


def _folder(path: str, taken: set[str]) -> str:
    """Return a name for what belongs to a model: its own, with folders before it if that is taken."""
    parts = [part for part in Path(path).with_suffix("").parts if part not in {"/", "..", "."}]
    for count in range(1, len(parts) + 1):
        name = "__".join(parts[-count:])
        if name not in taken:
            break
    number, base = 2, name
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


def _feeds(path: str, model: Model) -> "Mapping[str, Array]":
    from ir_scatter.analysis.interpreter import wire
    from ir_scatter.evaluate import archive

    return archive.fit_types(archive.read_arrays(path), wire(model).inputs)


class _Writing:
    """Writes what is to be written, and says so; what was found is not lost if it cannot be."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.written: list[str] = []
        self.failed: list[str] = []

    def write(self, found: Compared, folder: str) -> None:
        """Write what belongs to a model."""
        try:
            self.written += self._lines(found, folder)
        except CannotWrite as error:
            self.failed.append(str(error))

    def _lines(self, found: Compared, folder: str) -> Iterator[str]:
        if self._job.save:
            from ir_scatter.compare.saved import save

            yield save(found, Path(self._job.save) / folder)
        if self._job.extract:
            from ir_scatter.compare.extract import extract

            yield from extract(found, Path(self._job.extract) / folder)
