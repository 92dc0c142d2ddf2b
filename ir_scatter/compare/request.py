"""The entry of `compare` for the command line: resolves runner names, runs the comparison, writes files."""

from collections.abc import Iterator, Mapping, Sequence
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
from ir_scatter.compare.result import Compared, CompareSettings, Relation
from ir_scatter.compare.run import compare
from ir_scatter.compare.snapshot import save
from ir_scatter.core.arrays import Array
from ir_scatter.core.display import record
from ir_scatter.core.errors import CannotWrite, Error, UnreadableModel, UsageError
from ir_scatter.core.files import STANDARD_INPUT, Source, find_files
from ir_scatter.core.fragment import free_name
from ir_scatter.core.model import Model
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.words import counted
from ir_scatter.evaluate import archive
from ir_scatter.evaluate.input_files import read_cases
from ir_scatter.formats import dataflow_of
from ir_scatter.jobs import Executor, Gone, Job, NotDone, register
from ir_scatter.jobs.local import local
from ir_scatter.reading import read
from ir_scatter.runners.base import Availability, Runner
from ir_scatter.runners.defaults import NUMPY
from ir_scatter.version import versions

if TYPE_CHECKING:
    from ir_scatter.jobs.machine import Machine

_USED = WeakSet[Runner]()
"""Runners whose processes have run a model before; memory errors of that model may have damaged the
processes."""

_SAVED = "saved"
"""The runner name "saved": no runtime runs, only saved results are judged."""

_INPUTS, _AGAINST, _EACH = Parameter("inputs"), Parameter("against"), Parameter("each", True)
_SAVE, _EXTRACT, _CASES = Parameter("save"), Parameter("extract"), Parameter("cases")
_MAP_INPUTS, _MAP_OUTPUTS = Parameter("map_inputs"), Parameter("map_outputs")


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """The runners of a comparison, and whether the caller named NumPy.

    Attributes:
        skipped: (name, reason) of runners that are not available here.
    """

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
    """Return the runners of these names; without names, NumPy and all default runners that are available.

    Args:
        names: as users write them: "CPU" or "numpy".
        format: default runners are limited to those that read this format.
        skip_missing: whether to skip a named runner that is not available, instead of raising an error.
        directory: resolves the names.
    """
    runner_names = [name for name in names if name.strip().lower() != NUMPY]
    if not names:
        runner_names = runners.default_runners(format, directory)
    available: dict[str, Runner] = {}
    skipped = []
    for name in runner_names:
        runner = directory.find(name, (NUMPY,))
        availability = runner.availability() if skip_missing or not names else None
        if availability is None or availability.is_available:
            available[runner.name] = runner
        else:
            skipped.append((runner.name, availability.why_not))
    with_numpy = not names or len(runner_names) < len(names)
    return Sources(tuple(available.values()), with_numpy, tuple(skipped))


def survey() -> list[Availability]:
    """Return whether NumPy and every other known runner are available here."""
    numpy = Availability(
        NUMPY,
        is_available=True,
        full_name="the evaluator of ir-scatter, which follows the specifications",
        default_precision="model",
        versions={name: version for name, version in versions().items() if name in {"ir-scatter", "numpy"}},
    )
    return [numpy, *runners.survey()]


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """The arguments of a comparison; `save`, `against` and `extract` are folders."""

    models: tuple[str, ...]
    """Paths: of one model; of two to compare with each other; with `each`, of any number of files and
    folders."""
    names: tuple[str, ...] = ()
    """The names of the runners; empty for NumPy and all default runners that are available."""
    settings: CompareSettings = field(default_factory=CompareSettings)
    each: bool = False
    """Whether each model is compared on its own, instead of two models with each other."""
    inputs: str | Mapping[str, Array] | None = None
    """Inputs of the first cases: a path that `read_cases` reads, or arrays by name; None to generate all."""
    skip_missing: bool = False
    """Whether to skip runners that are not available here."""
    save: str | None = None
    """The folder in which to save the results; None to save nothing."""
    against: str | None = None
    """A folder with saved results to compare with."""
    extract: str | None = None
    """The folder in which to write a one-node model of each node that differs."""
    overwrite: bool = True
    """Whether earlier results and models in these folders are replaced."""
    loaded: tuple[Model | None, ...] = ()
    """Models already in memory, in the order of `models`; None for files still to be read."""


@record(eq=False, is_brief=True)
class NotCompared:
    """A model that could not be compared, and why."""

    model: str
    message: str
    is_unreadable: bool


@record(eq=False)
class ComparedModels:
    """The results of a `CompareRequest`.

    Attributes:
        found: one result per model; a single result if two models were compared with each other.
    """

    found: tuple[Compared, ...]
    failures: tuple[NotCompared, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    """(name, reason) of runners that were skipped."""
    written: tuple[str, ...] = ()
    """Lines of text about the saved results and extracted models."""
    unwritten: tuple[str, ...] = ()
    """Lines of text about files that could not be written."""
    interrupted: str = ""
    """What is missing because the user interrupted the comparison; "" if it is complete."""
    machines: "tuple[Machine, ...]" = ()
    """The machines of the fleet that made the comparison."""


def run_job(
    request: CompareRequest, executor: Executor | None = None, directory: runners.Directory = runners.HERE
) -> ComparedModels:
    """Compare models, save results and write one-node models as requested.

    Args:
        request: the arguments.
        executor: runs the comparisons of a request with `each`; None for this process.
        directory: resolves the names of runners.

    Raises:
        Interrupted: by the user; it holds the `ComparedModels` of the finished part. An unfinished model is
            not saved.
        UsageError: a name does not exist, options exclude each other, or inputs do not fit a model.
        UnreadableModel: a model cannot be read.
        NoInputs: no legal inputs were found.
    """
    _check(request)
    request = replace(request, settings=replace(request.settings, keeps_runs=bool(request.save)))
    begin("reading")
    pairs = () if request.each else zip_longest(request.models, request.loaded)
    models = [read(path) if model is None else model for path, model in pairs]
    names = tuple(name for name in request.names if name.strip().lower() != _SAVED or not request.against)
    sources = Sources((), False)
    if names or not request.names:
        format = models[0].format if models else None
        begin("looking for devices")
        sources = find_sources(names, format=format, skip_missing=request.skip_missing, directory=directory)
    machines: tuple[Machine, ...] = tuple(getattr(executor, "machines", ()))
    results, failures = list[Compared](), list[NotCompared]()
    written, unwritten = list[str](), list[str]()
    try:
        for result, folder in (
            _compare_each(request, sources, executor)
            if request.each
            else [(_compare_models(request, models, sources), "")]
        ):
            if isinstance(result, NotCompared):
                failures.append(result)
                continue
            try:
                if request.save:
                    place = Path(request.save) / folder
                    written.append(save(result, place, overwrite=request.overwrite))
                if request.extract:
                    place = Path(request.extract) / folder
                    written.extend(extract(result, place, overwrite=request.overwrite))
            except (CannotWrite, UsageError) as error:
                unwritten.append(str(error))
            results.append(replace(result, runs=(), apart=_explain_machines(result, machines)))
    except KeyboardInterrupt as interrupt:
        partial = interrupt.found if isinstance(interrupt, Interrupted) else None
        if partial is not None:
            results.append(replace(partial, runs=()))
        if not results:
            raise
        missing = "" if partial is None else partial.interrupted
        if request.each:
            total = len(find_files(request.models, ()).sources)
            finished = len(results) + len(failures) - (partial is not None)
            missing = f"interrupted: {total - finished} of {counted(total, 'model')} were not finished"
        finished_part = ComparedModels(
            tuple(results), tuple(failures), sources.skipped, tuple(written), tuple(unwritten), missing
        )
        raise Interrupted(finished_part) from None
    finally:
        _close(sources)
    return ComparedModels(
        tuple(results), tuple(failures), sources.skipped, tuple(written), tuple(unwritten), machines=machines
    )


def _check(request: CompareRequest) -> None:
    """Raise UsageError if arguments of the request exclude each other."""
    is_one_or_two = 1 <= len(request.models) <= 2
    if STANDARD_INPUT in request.models:
        raise UsageError("standard input cannot be compared, expected the path of a model")
    if request.each and (request.inputs is not None or request.against):
        raise UsageError(f"{_INPUTS} and {_AGAINST} are for one model, not for {_EACH}")
    if not request.each and not is_one_or_two:
        raise UsageError(f"there are {len(request.models)} models, expected one or two, or {_EACH}")
    for path in () if request.each else request.models:
        if Path(path).is_dir():
            raise UsageError(f"{path} is a folder; with {_EACH} every model in it is compared separately")
    is_pair = not request.each and len(request.models) == 2
    if is_pair and (request.against or request.extract or request.save):
        raise UsageError(f"{_SAVE}, {_AGAINST} and {_EXTRACT} are for one model, not two")
    if (request.settings.map_inputs or request.settings.map_outputs) and not is_pair:
        raise UsageError(f"{_MAP_INPUTS} and {_MAP_OUTPUTS} are for two models")
    if request.against and (request.inputs is not None or request.settings.cases > 1):
        raise UsageError(f"{_AGAINST} goes without {_INPUTS} and {_CASES}: it uses the saved inputs")


def _explain_machines(compared: Compared, machines: "Sequence[Machine]") -> str:
    """Describe how two machines differ that gave different results on the same device; "" if none did."""
    results: dict[str, dict[str, object]] = {}
    for outcome in compared.outcomes:
        machine, _, device = outcome.runner.rpartition("/")
        measures = [
            (comparison.node, comparison.tensor, comparison.case, comparison.place, comparison.measure)
            for comparison in compared.comparisons
            if outcome.runner == comparison.subject and comparison.relation is Relation.DOCUMENT
        ]
        if machine:
            results.setdefault(device, {})[machine] = outcome.status, measures
    by_name = {machine.name: machine for machine in machines}
    for device, of_machines in results.items():
        (first, first_result), *rest = of_machines.items()
        second = next((name for name, result in rest if result != first_result), None)
        if second is not None:
            from ir_scatter.jobs.machine import differences

            facts = "; ".join(differences(by_name[first], by_name[second]))
            known = f"they also differ in {facts}" if facts else "the machines report no difference"
            return f"{first} and {second} behave differently on {device}; {known}"
    return ""


def _compare_models(request: CompareRequest, models: list[Model], sources: Sources) -> Compared:
    settings = request.settings
    if settings.tolerances.named:
        names = {output.name for model in models for output in dataflow_of(model).outputs}
        scatters = [scatter for model in models for scatter in nodes_by_tap(model).values()]
        settings.tolerances.demand_known(names.union(*map(tolerance_names, scatters)))
    feeds = None
    if request.inputs is not None:
        ends = dataflow_of(models[0]).inputs
        begin("reading inputs")
        feeds = (
            read_cases(request.inputs, ends, settings.timeout)
            if isinstance(request.inputs, str)
            else [archive.fit_types(request.inputs, ends)]
        )
    with_numpy, against = sources.with_numpy, request.against
    return compare(models, sources.runners, settings, with_numpy=with_numpy, feeds=feeds, against=against)


def _compare_each(
    request: CompareRequest, sources: Sources, executor: Executor | None
) -> Iterator[tuple[Compared | NotCompared, str]]:
    """Yield the result of each model, and the name of the folder for its files.

    The folder is named after the model file, preceded by parent folders if that name is taken. After an
    interrupt, results of finished models are yielded before the interrupt is raised.
    """
    folder_names, interrupt = set[str](), None
    models = find_files(request.models, ()).sources
    needs = tuple(runner.name for runner in sources.runners)
    names = (NUMPY, *needs) if sources.with_numpy else needs
    with local() if executor is None else nullcontext(executor) as pool:
        futures = [
            pool.submit(Job("compare", (source, names, request.settings), source.path), needs)
            for source in models
        ]
        for number, (source, future) in enumerate(zip(models, futures, strict=True)):
            if interrupt is not None and not future.done():
                continue
            with within(f"{number + 1} of {len(models)}, {source.path}"):
                try:
                    result = future.result()
                except Gone:
                    continue
                except KeyboardInterrupt as error:
                    interrupt = error
                    continue
                except NotDone as error:
                    result = NotCompared(source.path, str(error), is_unreadable=False)
            if isinstance(result, NotCompared):
                yield result, ""
            elif result is not None:
                path = Path(source.path).with_suffix("")
                parts = [part for part in path.parts if part not in {"/", "..", "."}]
                tails = ["__".join(parts[-count:]) for count in range(1, len(parts) + 1)]
                name = next((tail for tail in tails if tail not in folder_names), tails[-1])
                yield replace(result, machine=future.machine), free_name(name, folder_names)
        if interrupt is not None:
            raise interrupt


@register("compare")
def compare_file(
    source: Source, names: Sequence[str], settings: CompareSettings
) -> Compared | NotCompared | None:
    """Compare one of many models on runners that stay alive; None if the file is not a model.

    A plugin that wrote out of bounds on an earlier model may fail on later ones. So a difference counts only
    if it also occurs in fresh processes.
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
        is_no_model = not (source.is_named or error.is_model)
        return None if is_no_model else NotCompared(source.path, error.advice, is_unreadable=True)
    except Error as error:
        message = str(error).removeprefix(f"{source.path}: ")
        return NotCompared(source.path, message, is_unreadable=False)
    _USED.update(sources.runners)
    if second.differs:
        return second
    remark = "results differed in processes that had run other models, and do not in fresh ones"
    # results that change within one process are differences in any case
    changing = [comparison for comparison in first.comparisons if comparison.subject == comparison.reference]
    subjects = {(comparison.subject,) for comparison in changing}
    outliers = [outlier for outlier in first.outliers if outlier.runners in subjects]
    return replace(
        second,
        remarks=(*second.remarks, remark),
        comparisons=(*second.comparisons, *changing),
        outliers=(*second.outliers, *outliers),
    )


def _close(sources: Sources) -> None:
    for runner in sources.runners:
        runner.close()
        _USED.discard(runner)
