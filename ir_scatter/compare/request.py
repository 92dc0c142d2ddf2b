"""One call of `compare`: models, who runs them by the names that users write, inputs, and what is written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from ir_scatter import runners
from ir_scatter.compare.extract import extract
from ir_scatter.compare.nodes import nodes_by_tap, tolerance_names
from ir_scatter.compare.phases import Interrupted, begin, within
from ir_scatter.compare.result import NUMPY, Compared, CompareSettings, Relation
from ir_scatter.compare.run import compare
from ir_scatter.compare.snapshot import save
from ir_scatter.core.arrays import Array
from ir_scatter.core.display import record
from ir_scatter.core.errors import CannotWrite, Error, UnreadableModel, UsageError
from ir_scatter.core.files import STANDARD_INPUT, Source, find_files
from ir_scatter.core.fragment import free_name
from ir_scatter.core.model import Model
from ir_scatter.core.words import counted
from ir_scatter.evaluate import archive
from ir_scatter.formats import dataflow_of
from ir_scatter.jobs import Executor, Gone, Job, NotDone, register
from ir_scatter.jobs.local import local
from ir_scatter.reading import read
from ir_scatter.runners.base import Availability, Runner
from ir_scatter.version import versions

if TYPE_CHECKING:
    from ir_scatter.jobs.machine import Machine

_USED = WeakSet[Runner]()
"""Runners whose processes have run a model of many."""

_SAVED = "saved"
"""The runner that is named when nothing is to run, and only what was saved is to be looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Who computes: NumPy or not, and runners; and runners that cannot run here, and why."""

    runners: tuple[Runner, ...]
    with_numpy: bool
    skipped: tuple[tuple[str, str], ...] = ()


def find_sources(
    names: Sequence[str],
    *,
    format: str | None = None,
    skip_missing: bool = False,
    directory: runners.Directory = runners.HERE,
) -> Sources:
    """Return who computes.

    Without names that is NumPy and everything found here that takes a model of this format: OpenVINO's
    devices, and onnxruntime for ONNX.
    """
    others = [name for name in names if name.strip().lower() != NUMPY]
    if not names:
        others = runners.default_runners(format, directory)
    found: dict[str, Runner] = {}
    skipped = []
    for name in others:
        runner = directory.find(name, (NUMPY,))
        here = runner.availability() if skip_missing or not names else None
        if here is None or here.is_available:
            found[runner.name] = runner
        else:
            skipped.append((runner.name, here.why_not))
    return Sources(tuple(found.values()), not names or len(others) < len(names), tuple(skipped))


def survey() -> list[Availability]:
    """Return of every known runner whether it can run here: NumPy first."""
    numpy = Availability(
        NUMPY,
        is_available=True,
        full_name="the evaluator of ir-scatter: what the documents say",
        default_precision="model",
        versions={name: version for name, version in versions().items() if name in {"ir-scatter", "numpy"}},
    )
    return [numpy, *runners.survey()]


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """What the caller wants; the last three are folders."""

    models: tuple[str, ...]
    """One, or two that are compared with each other; any number of files and folders with `each`."""
    names: tuple[str, ...] = ()
    """The runners that are asked; empty for NumPy and every device found."""
    settings: CompareSettings = field(default_factory=CompareSettings)
    each: bool = False
    inputs: str | Mapping[str, Array] | None = None
    """The inputs of the first case: the path of an npz, or arrays by name; None to generate them."""
    skip_missing: bool = False
    save: str | None = None
    against: str | None = None
    """Results of another time or place."""
    extract: str | None = None
    """Models of single nodes that differ."""
    overwrite: bool = True
    """Whether results and models that stand in these folders already are replaced."""
    loaded: tuple[Model | None, ...] = ()
    """The models in the order of `models`, None for a model that is still to be read; or empty."""


@record(eq=False, is_brief=True)
class NotCompared:
    """A model that was not compared, and why."""

    model: str
    message: str
    is_unreadable: bool


@record(eq=False)
class ComparedModels:
    """What came of it: of each model one that was `found`, or with `each` a failure."""

    found: tuple[Compared, ...]
    failures: tuple[NotCompared, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    """Runners that were passed over, and why."""
    written: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    interrupted: str = ""
    """What is missing because somebody did not want to wait; "" if nothing is."""
    machines: "tuple[Machine, ...]" = ()
    """Of the fleet that did it."""


def run_job(
    job: CompareRequest,
    seen: Callable[[object], None] | None = None,
    executor: Executor | None = None,
    directory: runners.Directory = runners.HERE,
) -> ComparedModels:
    """Compare, and write what is to be written; `seen` is called with the path of each model that is done.

    With `each` an executor may do it, elsewhere. The directory resolves the names of runners.

    Raises:
        Interrupted: by the user, with a `ComparedModels` of what was finished; an
            unfinished model is not saved.
        UsageError: a name does not exist, options do not fit each other, or feeds do not fit a model.
        UnreadableModel: a model cannot be read.
        NoInputs: no legal inputs were found.
    """
    if STANDARD_INPUT in job.models:
        raise UsageError("standard input cannot be compared, expected the path of a model")
    if job.each and (job.inputs is not None or job.against):
        raise UsageError("--inputs and --against are for one model, not for --each")
    if not job.each and not 1 <= len(job.models) <= 2:
        raise UsageError(f"there are {len(job.models)} models, expected one or two, or --each")
    for path in () if job.each else job.models:
        if Path(path).is_dir():
            raise UsageError(f"{path} is a folder; with --each every model in it is compared for itself")
    if not job.each and len(job.models) == 2 and (job.against or job.extract or job.save):
        raise UsageError("--save, --against and --extract are for one model, not two")
    if (job.settings.map_inputs or job.settings.map_outputs) and (job.each or len(job.models) != 2):
        raise UsageError("--map-input and --map-output are for two models")
    if job.against and (job.inputs is not None or job.settings.cases > 1):
        raise UsageError("--against goes without --inputs and --cases: the inputs are those that were saved")
    job = replace(job, settings=replace(job.settings, keeps_runs=bool(job.save)))
    begin("reading")
    pairs = () if job.each else zip_longest(job.models, job.loaded)
    models = [read(path) if model is None else model for path, model in pairs]
    names = tuple(name for name in job.names if name.strip().lower() != _SAVED or not job.against)
    sources = Sources((), False)
    if names or not job.names:
        format = models[0].format if models else None
        begin("looking for devices")
        sources = find_sources(names, format=format, skip_missing=job.skip_missing, directory=directory)
    machines: tuple[Machine, ...] = tuple(getattr(executor, "machines", ()))
    found, failures = list[Compared](), list[NotCompared]()
    written, unwritten = list[str](), list[str]()
    try:
        for one, folder in (
            _each(job, sources, seen, executor) if job.each else [(_one(job, models, sources), "")]
        ):
            if isinstance(one, NotCompared):
                failures.append(one)
                continue
            try:
                if job.save:
                    written.append(save(one, Path(job.save) / folder, overwrite=job.overwrite))
                if job.extract:
                    written.extend(extract(one, Path(job.extract) / folder, overwrite=job.overwrite))
            except (CannotWrite, UsageError) as error:
                unwritten.append(str(error))
            found.append(replace(one, runs=(), apart=_apart(one, machines)))
    except KeyboardInterrupt as interrupt:
        part = interrupt.found if isinstance(interrupt, Interrupted) else None
        found += [replace(one, runs=()) for one in (part,) if one is not None]
        if not found:
            raise
        missing = "" if part is None else part.interrupted
        if job.each:
            total = len(find_files(job.models, ()).sources)
            finished = len(found) + len(failures) - (part is not None)
            missing = f"interrupted: {total - finished} of {counted(total, 'model')} were not finished"
        what = tuple(failures), sources.skipped, tuple(written), tuple(unwritten), missing
        raise Interrupted(ComparedModels(tuple(found), *what)) from None
    finally:
        _close(sources)
    done = ComparedModels(tuple(found), tuple(failures), sources.skipped, tuple(written), tuple(unwritten))
    return replace(done, machines=machines)


def _apart(found: Compared, machines: "Sequence[Machine]") -> str:
    """Say what differs between two machines that gave different results on a device; "" if none did."""
    results: dict[str, dict[str, object]] = {}
    for outcome in found.outcomes:
        machine, _, device = outcome.runner.rpartition("/")
        told = [
            (one.node, one.tensor, one.case, one.place, one.measure)
            for one in found.comparisons
            if outcome.runner == one.subject and one.relation is Relation.DOCUMENT
        ]
        if machine:
            results.setdefault(device, {})[machine] = outcome.status, told
    by_name = {one.name: one for one in machines}
    for device, each in results.items():
        (first, result), *others = each.items()
        other = next((name for name, told in others if told != result), None)
        if other is not None:
            from ir_scatter.jobs.machine import differences

            what = "; ".join(differences(by_name[first], by_name[other]))
            what = what or "nothing that they say of themselves"
            return f"{first} and {other} differ on {device}, and in {what}"
    return ""


def _one(job: CompareRequest, models: list[Model], sources: Sources) -> Compared:
    settings = job.settings
    if settings.tolerances.named:
        names = {output.name for model in models for output in dataflow_of(model).outputs}
        scatters = [scatter for model in models for scatter in nodes_by_tap(model).values()]
        settings.tolerances.demand_known(names.union(*map(tolerance_names, scatters)))
    feeds = None
    if job.inputs is not None:
        feeds = archive.read_arrays(job.inputs) if isinstance(job.inputs, str) else job.inputs
        feeds = archive.fit_types(feeds, dataflow_of(models[0]).inputs)
    with_numpy, against = sources.with_numpy, job.against
    return compare(models, sources.runners, settings, with_numpy=with_numpy, feeds=feeds, against=against)


def _each(
    job: CompareRequest, sources: Sources, seen: Callable[[object], None] | None, executor: Executor | None
) -> Iterator[tuple[Compared | NotCompared, str]]:
    """Yield what came of each model, and the folder for what is written of it.

    That has the name of the model, with folders before it if the name is taken. Who interrupts gets what is
    finished behind the one that was waited for, too.
    """
    taken, interrupt = set[str](), None
    models = find_files(job.models, ()).sources
    needs = tuple(runner.name for runner in sources.runners)
    names = (NUMPY, *needs) if sources.with_numpy else needs
    with local() if executor is None else nullcontext(executor) as used:
        futures = [used.submit(Job("compare", (one, names, job.settings), one.path), needs) for one in models]
        for number, (source, future) in enumerate(zip(models, futures, strict=True)):
            if interrupt is not None and not future.done():
                continue
            with within(f"{number + 1} of {len(models)}, {source.path}"):
                try:
                    found = future.result()
                except Gone:
                    continue
                except KeyboardInterrupt as error:
                    interrupt = error
                    continue
                except NotDone as error:
                    found = NotCompared(source.path, str(error), is_unreadable=False)
            if isinstance(found, NotCompared):
                yield found, ""
            elif found is not None:
                path = Path(source.path).with_suffix("")
                parts = [part for part in path.parts if part not in {"/", "..", "."}]
                tails = ["__".join(parts[-count:]) for count in range(1, len(parts) + 1)]
                found = replace(found, machine=future.machine)
                yield found, free_name(next((one for one in tails if one not in taken), tails[-1]), taken)
            if seen is not None:
                seen(source.path)
        if interrupt is not None:
            raise interrupt


@register("compare")
def compare_file(
    source: Source, names: Sequence[str], settings: CompareSettings
) -> Compared | NotCompared | None:
    """Compare one of many models, on runners that keep their processes; None if it is no model.

    A difference counts if processes of its own show it as well: a plugin that wrote outside of its memory
    for an earlier model spoils what comes after it.
    """
    try:
        sources = find_sources(names)
        are_fresh = _USED.isdisjoint(sources.runners)
        first = compare(source.path, sources.runners, settings, with_numpy=sources.with_numpy)
        _USED.update(sources.runners)
        if are_fresh or not first.differs:
            return first
        _close(sources)
        second = compare(source.path, sources.runners, settings, with_numpy=sources.with_numpy)
    except Gone:
        raise
    except UnreadableModel as error:
        is_passed_over = not (source.is_named or error.is_model)
        return None if is_passed_over else NotCompared(source.path, error.message, is_unreadable=True)
    except Error as error:
        message = str(error).removeprefix(f"{source.path}: ")
        return NotCompared(source.path, message, is_unreadable=False)
    _USED.update(sources.runners)
    if second.differs:
        return second
    remark = "results differed in processes that had run other models, and do not in fresh ones"
    changed = [one for one in first.comparisons if one.subject == one.reference]  # one process, two results
    outliers = [one for one in first.outliers if one.runners in {(each.subject,) for each in changed}]
    return replace(
        second,
        remarks=(*second.remarks, remark),
        comparisons=(*second.comparisons, *changed),
        outliers=(*second.outliers, *outliers),
    )


def _close(sources: Sources) -> None:
    for runner in sources.runners:
        runner.close()
        _USED.discard(runner)
