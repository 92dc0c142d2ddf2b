"""Runs models on the same inputs and compares: one model, two, or one with saved results."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ir_scatter.analysis.interpreter import dataflow_of
from ir_scatter.compare.contested import OpenOutput
from ir_scatter.compare.guard import Reference, Sight
from ir_scatter.compare.judge import (
    CaseJudge,
    NodeJudge,
    Note,
    compare_outputs,
    compare_runs,
    comparisons_in,
    nodes_by_tap,
    tolerance_names,
    without_equal,
)
from ir_scatter.compare.result import (
    NEVER,
    NUMPY,
    SAVED,
    Compared,
    Comparison,
    Guarded,
    NotTapped,
    Outlier,
    Runs,
    Settings,
)
from ir_scatter.compare.snapshot import load
from ir_scatter.compare.tolerance import PRECISION_BITS, coarser
from ir_scatter.core.errors import BadFeed, Error
from ir_scatter.core.model import Model, Node
from ir_scatter.evaluate.model import check_feeds
from ir_scatter.inputs.model import make_feeds
from ir_scatter.reading import read
from ir_scatter.runners.base import OTHER_FORMAT, NodeFacts, Outcome, Status, Tapped

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array
    from ir_scatter.runners.base import Availability, Runner

    Feeds = Mapping[str, Array]

UNANSWERED = "the runner gave no answer for it"
"""Why a node has no level of its own that was asked for, and of which nothing came."""

_HOPELESS = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})
"""Whoever ends like this is not asked again."""

_SUFFIX = re.compile(r"(?:\.\d+)+$")
"""What a plugin adds to the name of a node when it puts conversions around it; these get more of it."""


def compare(
    model: "Model | str | Path",
    runners: "Sequence[Runner]",
    settings: Settings,
    *,
    with_numpy: bool = True,
    feeds: "Feeds | None" = None,
) -> Compared:
    """Run a model on NumPy and on runners, compare outputs, and every scatter node for itself.

    The inputs of the first case may be given; those of the others are generated.

    Raises:
        UnreadableModel: the model cannot be read.
        BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
        NoInputs: no legal inputs were found.
    """
    known = model if isinstance(model, Model) else read(model)
    for runner in runners[:1]:
        runner.prepare(known.path, precision=settings.precision)
    cases = tuple(make_cases(known, settings, feeds))
    session = _Session(known, runners, settings, with_numpy=with_numpy)
    for number, case in enumerate(cases):
        session.run_case(number, case)
    return session.result(cases)


def compare_against(
    folder: "str | Path",
    model: Model,
    runners: "Sequence[Runner]",
    settings: Settings,
    *,
    with_numpy: bool = True,
) -> Compared:
    """Run a model on the inputs that were saved, and compare with what was saved.

    A runner is compared with the saved one of its name. Saved ones that nobody runs here are compared
    with NumPy, that of today or the saved one, or else with the first that runs. What was tapped
    then is judged again, so that tolerances can change without running anything.

    Without runners and NumPy what is saved is looked at alone.

    Raises:
        BadFeed: the folder holds no results, or the model does not take their inputs.
    """
    snapshot = load(folder)
    for feeds in snapshot.feeds:
        _demand_fit(feeds, model, f"with the inputs of {snapshot.model} that were saved")
    session = _Session(model, runners, settings, with_numpy=with_numpy)
    for number, (feeds, old) in enumerate(zip(snapshot.feeds, snapshot.runs, strict=True)):
        new = session.run_case(number, feeds) if runners or with_numpy else ()
        session.judge_saved(number, feeds, old, new)
    session.facts |= snapshot.facts
    session.remarks[f"saved results of {snapshot.model}, from {folder}"] = None
    return session.result(snapshot.feeds)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """What one runner makes of two models.

    Attributes:
        case: the number of the inputs.
        before: of the first model.
        after: of the second.
        comparisons: of the outputs of the second with those of the first, if it ran both, and of its
            runs of each model with each other.
    """

    case: int
    before: Outcome
    after: Outcome
    comparisons: tuple[Comparison, ...]


def run_both(
    models: Sequence[Model],
    runners: "Sequence[Runner]",
    settings: Settings,
    cases: "Iterable[Feeds]",
    *,
    with_numpy: bool = False,
) -> Iterator[Pair]:
    """Run two models on the same inputs and compare their outputs by name, on each runner for itself.

    Nothing is run before it is asked for.

    Args:
        models: the reference, and the subject, which must take the same inputs.
        runners: in the order in which they were named.
        settings: the tolerances, precision, repetitions and time limit.
        cases: inputs by the names of the first model.
        with_numpy: whether NumPy is asked first.

    Raises:
        BadFeed: the second model does not take the inputs of the first.
    """
    sides = [_Session(model, runners, settings, with_numpy=with_numpy) for model in models]
    asked: list[Runner | None] = [*([None] if with_numpy else ()), *runners]
    for number, case in enumerate(cases):
        feeds = case, _fitting(case, models)
        for runner in asked:
            before = sides[0].run(runner, number, feeds[0])
            after = before if before.status is Status.UNAVAILABLE else sides[1].run(runner, number, feeds[1])
            found: list[Comparison] = []
            if before.status is Status.OK and after.status is Status.OK:
                open_before, open = (partial(side.open_outputs, number, runner) for side in sides)
                for one in compare_outputs(after, before, number, settings.tolerances, open, open_before):
                    found.append(replace(one, subject_model=models[1].path, reference_model=models[0].path))
            for model, outcome in zip(models, (before, after), strict=True):
                for one in compare_runs(outcome, number):
                    found.append(replace(one, subject_model=model.path, reference_model=model.path))
            yield Pair(number, before, after, tuple(map(without_equal, found)))


def compare_two(
    models: Sequence[Model],
    runners: "Sequence[Runner]",
    settings: Settings,
    *,
    with_numpy: bool = True,
    feeds: "Feeds | None" = None,
) -> Compared:
    """Run two models on the same inputs and compare their outputs; see `run_both`.

    The inputs of the first case may be given, by the names of the first model.

    Raises:
        BadFeed: the second model does not take the inputs of the first.
        NoInputs: no legal inputs were found.
    """
    cases = tuple(make_cases(models[0], settings, feeds))
    outcomes: dict[str, Outcome] = {}
    comparisons: list[Comparison] = []
    remarks: dict[str, None] = {}
    for pair in run_both(models, runners, settings, cases, with_numpy=with_numpy):
        comparisons += pair.comparisons
        for model, outcome in zip(models, (pair.before, pair.after), strict=True):
            remarks |= dict.fromkeys(f"{outcome.runner}: {remark}" for remark in outcome.remarks)
            if outcome.status not in {Status.OK, Status.UNAVAILABLE}:
                outcome = replace(outcome, message=f"{model.path}: {outcome.message}".removesuffix(": "))
            outcomes[outcome.runner] = _worse(outcomes.get(outcome.runner), outcome)
    return _explained(
        Compared(
            models[0].path,
            settings,
            tuple(outcomes.values()),
            tuple(comparisons),
            remarks=tuple(remarks),
            feeds=cases,
            other=models[1].path,
        )
    )


def make_cases(model: Model, settings: Settings, given: "Feeds | None" = None) -> "Iterator[Feeds]":
    """Return the inputs of each case: those that were given are the first.

    Raises:
        BadFeed: they are not what the model asks for.
    """
    if given is not None:
        check_feeds(dataflow_of(model).inputs, given)
        yield given
    for number in range(0 if given is None else 1, settings.cases):
        yield make_feeds(model, settings.seed + number, settings.input_shapes, settings.values)


class _Session:
    """What runners and NumPy make of one model, and what is said of it."""

    def __init__(
        self, model: Model, runners: "Sequence[Runner]", settings: Settings, *, with_numpy: bool
    ) -> None:
        self.path, self.runners, self.settings, self.with_numpy = model.path, runners, settings, with_numpy
        self.reference = Reference(model)
        self.nodes = nodes_by_tap(model)
        self.judge = NodeJudge(self.nodes, settings.tolerances)
        self.outcomes: dict[str, Outcome] = {}
        self.outputs: list[Comparison] = []
        self.notes: list[Note] = []
        self.outliers: list[Outlier] = []
        self.remarks: dict[str, None] = {}
        self.facts: dict[str, tuple[NodeFacts, ...]] = {}
        self.devices: dict[str, Availability] = {}
        self.about: dict[str, tuple[str, ...]] = {}
        self.runs: dict[int, tuple[Runs, ...]] = {}
        self._feeds: dict[int, Feeds] = {}
        self._sights: dict[int, Sight] = {}
        self._open: dict[tuple[int, str], Mapping[str, OpenOutput]] = {}
        self._hopeless: dict[str, Outcome] = {}
        self._precisions: dict[str, str] = {}

    # What runs.

    def run(self, runner: "Runner | None", number: int, feeds: "Feeds", *, profile: bool = False) -> Outcome:
        """Run one runner without taps, or NumPy."""
        self._feeds[number] = feeds
        if runner is None:
            outcome, self._sights[number] = self.reference.start(feeds)(self.settings.timeout)
            return outcome
        if runner.name in self._hopeless:
            return self._hopeless[runner.name]
        try:
            found = runner.run(
                self.path, feeds, repeat=self.settings.repeat, profile=profile, **self._options
            )
        except BadFeed as error:  # the feeds fit the model: this is between the runner and itself
            return Outcome(runner.name, Status.REFUSED, str(error))
        if found.status is Status.UNAVAILABLE:
            remedy = getattr(runner, "remedy", lambda _: "")(found.message)
            found = replace(found, message=f"{found.message}; {remedy}" if remedy else found.message)
        if found.status in _HOPELESS:
            self._hopeless[runner.name] = found
        return found

    def _run_with_profile(self, runner: "Runner", number: int, feeds: "Feeds") -> Outcome:
        """Run one runner without taps, and learn what it is and what it made of the nodes."""
        plain = self.run(runner, number, feeds, profile=True)
        if plain.facts and runner.name not in self.facts:
            names = {
                name: scatter.node.scope
                for scatter in self.nodes.values()
                for name in tolerance_names(scatter)
            }
            self.facts[runner.name] = facts_about(plain.facts, names)
            self._precisions[runner.name] = computed_in(plain.facts)
        if plain.precision == "default":
            plain = replace(plain, precision=self._precisions.get(runner.name) or plain.precision)
        self._note(plain)
        if plain.status is Status.OK:
            if self.settings.describes and runner.name not in self.devices:
                self.devices[runner.name] = runner.availability()
            remarks: tuple[str, ...] = getattr(runner, "remarks", ())
            if remarks:
                self.about[runner.name] = remarks
        return plain

    def _run_with_taps(self, runner: "Runner", feeds: "Feeds", times: int) -> Iterator[Outcome]:
        """Run one runner with taps until it fails; of each tap there is an answer."""
        taps = tuple(self.nodes)
        for _ in range(times if taps else 0):
            found = runner.run(
                self.path, feeds, taps=taps, tap_memory=self.settings.tap_memory, **self._options
            )
            self._note(found)
            is_failed, reason = found.status is not Status.OK, UNANSWERED
            if is_failed:
                reason = f"the run with taps: {found.status} {found.message}".rstrip()
                found = replace(found, runs=(), tapped=())
            answered = {one.tap for one in found.tapped}
            silent = (Tapped(tap, problem=reason) for tap in taps if tap not in answered)
            yield replace(found, tapped=(*found.tapped, *silent))
            if is_failed:
                return

    @property
    def _options(self) -> dict[str, Any]:
        return {"precision": self.settings.precision, "timeout": self.settings.timeout}

    def _note(self, outcome: Outcome) -> None:
        for remark in outcome.remarks:
            self.remarks[f"{outcome.runner}: {remark}"] = None

    def open_outputs(self, number: int, runner: "Runner | None" = None) -> Mapping[str, OpenOutput]:
        """Return the outputs of which the document leaves something open for the inputs of a case.

        Args:
            number: of the case.
            runner: taps its nodes if NumPy cannot tell; None if what there is to see was seen.
        """
        key = number, "" if runner is None else runner.name
        if key not in self._open:
            self._open[key] = self._find_open(number, runner)
        return self._open[key]

    def _find_open(self, number: int, runner: "Runner | None") -> Mapping[str, OpenOutput]:
        feeds, timeout = self._feeds[number], self.settings.timeout
        if number not in self._sights and (runner is not None or number in self.judge.contested):
            with suppress(Error):
                _, self._sights[number] = self.reference.start(feeds)(timeout)
        sight = self._sights.get(number, Sight())
        if sight.open is not None:
            return sight.open
        for tapped in () if runner is None else self._run_with_taps(runner, feeds, 1):
            self.judge.judge(tapped, number)
        seeds = self.judge.contested.get(number, {})
        return self.reference.foresee(feeds, seeds, timeout) if seeds or sight.contested else {}

    # What is said of it.

    def run_case(self, number: int, feeds: "Feeds") -> list[Outcome]:
        """Run all on one set of inputs; NumPy computes and judges while the others run."""
        self._feeds[number] = feeds
        case = self._case(number)
        finish = self.reference.start(feeds) if self.with_numpy else None
        for runner in self.runners:
            plain = self._run_with_profile(runner, number, feeds)
            times = self.settings.repeat if plain.status is Status.OK else 0
            case.take(plain, self._run_with_taps(runner, feeds, times))
        case.judge_nodes()
        numpy = None
        if finish is None and (case.is_changed or _is_guard_wanted(case)):
            finish = self.reference.start(feeds)
        if finish is not None:
            numpy, self._sights[number] = finish(self.settings.timeout)
            case.notes[:0] = self._sights[number].in_case(number)
            if self.with_numpy:
                case.runs.insert(0, Runs(numpy))
        case.compare_all()
        self._enter(case, numpy)
        return case.outcomes

    def judge_saved(self, number: int, feeds: "Feeds", runs: Sequence[Runs], new: Sequence[Outcome]) -> None:
        """Judge what was saved, and compare its outputs with those of today, or with each other."""
        self._feeds[number] = feeds
        self._open.clear()  # runners may have seen more contested nodes then
        case = self._case(number)
        for one in runs:
            case.take(one.plain, one.tapped)
        case.judge_nodes()
        if not new:
            case.compare_all()
        numpy = next((one for one in case.outcomes if one.runner.endswith(NUMPY)), None)
        self._enter(case, numpy)
        if new:
            both = self._case(number)
            both.compare(_old_and_new(new, case.outcomes))
            self.outputs += map(without_equal, both.outputs)

    def _case(self, number: int) -> CaseJudge:
        return CaseJudge(number, self.judge, self.settings, partial(self.open_outputs, number))

    def _enter(self, case: CaseJudge, numpy: Outcome | None) -> None:
        for outcome in case.outcomes:
            self.outcomes[outcome.runner] = _worse(self.outcomes.get(outcome.runner), outcome)
        case.find_outliers()
        case.explain(numpy)
        self.outputs += map(without_equal, case.outputs)
        self.notes += case.notes
        if self.settings.keeps_runs:
            self.runs.setdefault(case.number, tuple(case.runs))
        self.outliers += case.outliers
        self.remarks |= dict.fromkeys(case.remarks)
        if any(isinstance(one, Guarded) and one.is_illegal for one in case.notes):
            for runner in self.runners:  # some plugins write outside of their memory then
                runner.close()

    def result(self, cases: "Sequence[Feeds]") -> Compared:
        nodes = comparisons_in(self.notes)
        judged = {(one.subject, one.node) for one in nodes}
        missing: dict[tuple[str, str], NotTapped] = {}
        for one in self.notes:
            if isinstance(one, NotTapped):
                missing.setdefault((one.runner, one.node), one)
        return _explained(
            Compared(
                self.path,
                self.settings,
                tuple(self.outcomes.values()),
                (*self.outputs, *nodes),
                tuple(dict.fromkeys(one for one in self.notes if isinstance(one, Guarded))),
                tuple(self.outliers),
                tuple(one for key, one in missing.items() if one.reason != NEVER or key not in judged),
                tuple(self.remarks),
                self.facts,
                tuple(cases),
                tuple(self.runs.values()),
                types={tap.scope: _type(scatter.node) for tap, scatter in self.nodes.items()},
                operators={tap.scope: str(scatter.spec.key) for tap, scatter in self.nodes.items()},
                devices=self.devices,
                about=self.about,
            )
        )


def _is_guard_wanted(case: CaseJudge) -> bool:
    """Tell whether NumPy must look at indices itself, as runners did not show all of them."""
    is_failed = any(
        one.status not in {Status.OK, Status.UNAVAILABLE} and one.reason != OTHER_FORMAT
        for one in case.outcomes
    )
    return is_failed or any(isinstance(one, NotTapped) and one.reason != NEVER for one in case.notes)


def _worse(known: Outcome | None, found: Outcome) -> Outcome:
    """Return the outcome that is told of a runner: the first that was not ok; without its arrays."""
    if known is not None and (known.status is not Status.OK or found.status is Status.OK):
        return known
    return replace(found, runs=(), tapped=(), facts=())


def _explained(found: Compared) -> Compared:
    """Say so if nothing was compared, and why."""
    if found.comparisons:
        return found
    reason = "no runner ran the model"
    if len(found.ran) == 1:
        reason = f"{found.ran[0]} alone ran the model, and no scatter node of it could be held against NumPy"
    elif found.ran:
        reason = "the model has no outputs and no scatter nodes"
    return replace(found, remarks=(*found.remarks, f"nothing was compared: {reason}"))


def _old_and_new(new: Sequence[Outcome], old: Sequence[Outcome]) -> Iterator[tuple[Outcome, Outcome]]:
    """Yield who is compared, saved ones and those of today: the subject, and what it is held against."""
    here = [one for one in new if one.status is Status.OK]
    then = {one.runner: one for one in old if one.status is Status.OK}
    for subject in here:
        if SAVED + subject.runner in then:
            yield subject, then[SAVED + subject.runner]
    numpy = [one for one in (*here, *then.values()) if one.runner in {NUMPY, SAVED + NUMPY}]
    reference = next(iter([*numpy, *here]), None)
    names = {SAVED + one.runner for one in here}
    for name, outcome in then.items():
        if reference is not None and outcome is not reference and name not in names:
            yield outcome, reference


def _fitting(feeds: "Feeds", models: Sequence[Model]) -> "Feeds":
    """Return the feeds of the first model by names that the second model knows."""
    first, second = (dataflow_of(model).inputs for model in models)
    known = {name for input in second for name in input.names}
    renamed = {}
    for name, array in feeds.items():
        own = next((input.names for input in first if name in input.names), (name,))
        renamed[next((other for other in (name, *own) if other in known), name)] = array
    _demand_fit(renamed, models[1], "with the inputs of the first model")
    return renamed


def _demand_fit(feeds: "Feeds", model: Model, whose: str) -> None:
    try:
        check_feeds(dataflow_of(model).inputs, feeds)
    except BadFeed as error:
        raise BadFeed(f"{model.path}, {whose}: {error}") from None


def _type(node: Node) -> str:
    found = node.outputs[0].element_type if node.outputs else None
    return "" if found is None else found.name


def computed_in(facts: Sequence[NodeFacts]) -> str:
    """Return the coarsest floating-point precision of any node; "" if nothing is known."""
    found = {one.precision.lower() for one in facts} & PRECISION_BITS.keys()
    return coarser(*sorted(found)) if found else ""


def facts_about(facts: Sequence[NodeFacts], scopes: Mapping[str, str]) -> tuple[NodeFacts, ...]:
    """Return what a runtime made of some nodes; in `originals` they have the names that they have here.

    `scopes` are these names by those that the runtime may have for them.
    """
    best: dict[str, tuple[int, int]] = {}
    for number, one in enumerate(facts):
        for name in one.originals:
            known = name if name in scopes else _SUFFIX.sub("", name)
            if known in scopes:
                rank = (len(name) - len(known), number)
                best[scopes[known]] = min(best.get(scopes[known], rank), rank)
    chosen: dict[int, list[str]] = {}
    for scope, (_, number) in best.items():
        chosen.setdefault(number, []).append(scope)
    return tuple(replace(facts[number], originals=tuple(chosen[number])) for number in sorted(chosen))
