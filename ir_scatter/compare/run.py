"""Runs models on the same inputs and compares: one model, two, or one with saved results."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ir_scatter.analysis.interpreter import dataflow_of
from ir_scatter.compare.guard import Reference
from ir_scatter.compare.judge import (
    Case,
    Finding,
    compare_outputs,
    compare_runs,
    comparisons_in,
    nodes_by_tap,
    of_kind,
    tolerance_names,
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
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.model import Model
from ir_scatter.evaluate.model import check_feeds
from ir_scatter.inputs.model import make_feeds
from ir_scatter.reading import read
from ir_scatter.runners.base import Availability, NodeFacts, Outcome, Runner, Status, Tapped

Feeds = Mapping[str, Array]

_HOPELESS = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})
"""Whoever ends like this is not asked again."""

_SUFFIX = re.compile(r"(?:\.\d+)+$")
"""What a plugin adds to the name of a node when it puts conversions around it; these get more of it."""


def compare(
    model: "Model | str | Path",
    runners: Sequence[Runner],
    settings: Settings,
    *,
    with_numpy: bool = True,
    feeds: Feeds | None = None,
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
    runners: Sequence[Runner],
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
        session.judge_saved(old, session.run_case(number, feeds))
    session.facts |= snapshot.facts
    session.findings.append(f"saved results of {snapshot.model}, from {folder}")
    return session.result(snapshot.feeds)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """What one runner makes of two models: the second is compared with the first, and each with itself."""

    case: int
    before: Outcome
    after: Outcome
    comparisons: tuple[Comparison, ...]


def run_both(
    models: Sequence[Model],
    runners: Sequence[Runner],
    settings: Settings,
    cases: Iterable[Feeds],
    *,
    with_numpy: bool = False,
) -> Iterator[Pair]:
    """Run two models on the same inputs and compare their outputs by name, on each runner for itself.

    The first model is the reference, and names the inputs. Nothing is run before it is asked for.

    Raises:
        BadFeed: the second model does not take the inputs of the first.
    """
    sessions = [_Session(model, runners, settings, with_numpy=with_numpy) for model in models]
    asked: list[Runner | None] = [*([None] if with_numpy else ()), *runners]
    paths = [model.path for model in models]
    for number, feeds in enumerate(cases):
        given = feeds, _fitting(feeds, models)
        sides = [session.case(number, own) for session, own in zip(sessions, given, strict=True)]
        for runner in asked:
            outcomes: list[Outcome] = []
            for place, session in enumerate(sessions):
                tap = None if runner is None else partial(session.run_with_taps, runner, sides[place], 1)
                sides[place] = replace(sides[place], tap=tap)
                is_missing = outcomes and outcomes[0].status is Status.UNAVAILABLE
                outcomes.append(outcomes[0] if is_missing else session.run(runner, sides[place]))
            before, after = outcomes
            found: list[Comparison] = []
            if before.status is Status.OK and after.status is Status.OK:
                opens = [partial(getattr, side, "open") for side in reversed(sides)]
                for one in compare_outputs(after, before, number, settings.tolerances, *opens):
                    found.append(replace(one, subject_model=paths[1], reference_model=paths[0]))
            for path, outcome in zip(paths, outcomes, strict=True):
                for one in compare_runs(outcome, number):
                    found.append(replace(one, subject_model=path, reference_model=path))
            yield Pair(number, before, after, tuple(found))


def compare_two(
    models: Sequence[Model],
    runners: Sequence[Runner],
    settings: Settings,
    *,
    with_numpy: bool = True,
    feeds: Feeds | None = None,
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
            _enter(outcomes, outcome)
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


def make_cases(model: Model, settings: Settings, given: Feeds | None = None) -> Iterator[Feeds]:
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
        self, model: Model, runners: Sequence[Runner], settings: Settings, *, with_numpy: bool
    ) -> None:
        self.path, self.runners, self.settings, self.with_numpy = model.path, runners, settings, with_numpy
        self.reference, self.nodes = Reference(model), nodes_by_tap(model)
        self.outcomes: dict[str, Outcome] = {}
        self.findings: list[Finding] = []
        self.facts: dict[str, tuple[NodeFacts, ...]] = {}
        self.devices: dict[str, Availability] = {}
        self.about: dict[str, tuple[str, ...]] = {}
        self.runs: dict[int, tuple[Runs, ...]] = {}
        self._hopeless: dict[str, Outcome] = {}

    def case(self, number: int, feeds: Feeds) -> Case:
        return Case(number, feeds, self.nodes, self.reference, self.settings)

    def run(self, runner: Runner | None, case: Case, *, profile: bool = False) -> Outcome:
        """Run one runner without taps, or NumPy."""
        if runner is None:
            outcome, case.sight = self.reference.start(case.feeds)(self.settings.timeout)
            return outcome
        if runner.name in self._hopeless:
            return self._hopeless[runner.name]
        try:
            found = self._ask(runner, case, repeat=self.settings.repeat, profile=profile)
        except BadFeed as error:  # the feeds fit the model: this is between the runner and itself
            return Outcome(runner.name, Status.REFUSED, str(error))
        if found.status is Status.UNAVAILABLE:
            remedy = runner.remedy()
            found = replace(found, message=f"{found.message}; {remedy}" if remedy else found.message)
        if found.status in _HOPELESS:
            self._hopeless[runner.name] = found
        return found

    def run_with_taps(self, runner: Runner, case: Case, times: int) -> Iterator[Outcome]:
        """Run one runner with taps until it fails; of each tap there is an answer."""
        taps = tuple(self.nodes)
        for _ in range(times if taps else 0):
            found = self._ask(runner, case, taps=taps, tap_memory=self.settings.tap_memory)
            self.findings += [f"{found.runner}: {remark}" for remark in found.remarks]
            is_failed, reason = found.status is not Status.OK, "the runner gave no answer for it"
            if is_failed:
                reason = f"the run with taps: {found.status} {found.message}".rstrip()
                found = replace(found, runs=(), tapped=())
            answered = {one.tap for one in found.tapped}
            silent = (Tapped(tap, problem=reason) for tap in taps if tap not in answered)
            yield replace(found, tapped=(*found.tapped, *silent))
            if is_failed:
                return

    def _ask(self, runner: Runner, case: Case, **wanted: Any) -> Outcome:
        precision, timeout = self.settings.precision, self.settings.timeout
        return runner.run(self.path, case.feeds, precision=precision, timeout=timeout, **wanted)

    def run_case(self, number: int, feeds: Feeds) -> Case:
        """Run all on one set of inputs; NumPy computes while the others run."""
        case = self.case(number, feeds)
        finish = self.reference.start(feeds) if self.with_numpy else None
        for runner in self.runners:
            plain = self.run(runner, case, profile=True)
            self.findings += [f"{plain.runner}: {remark}" for remark in plain.remarks]
            if plain.facts and runner.name not in self.facts:
                scatters = self.nodes.values()
                scopes = {name: one.node.scope for one in scatters for name in tolerance_names(one)}
                self.facts[runner.name] = facts_about(plain.facts, scopes)
            if plain.status is Status.OK:
                if self.settings.describes and runner.name not in self.devices:
                    self.devices[runner.name] = runner.availability()
                if remarks := getattr(runner, "remarks", ()):
                    self.about[runner.name] = remarks
            if plain.precision == "default":
                plain = replace(plain, precision=computed_in(plain.facts) or plain.precision)
            times = self.settings.repeat if plain.status is Status.OK else 0
            case.take(plain, self.run_with_taps(runner, case, times))
        numpy = None
        if finish is None and case.lacks_numpy:
            finish = self.reference.start(feeds)
        if finish is not None:
            numpy, case.sight = finish(self.settings.timeout)
            case.findings[:0] = [replace(one, case=number) for one in case.sight.seen.values()]
            if self.with_numpy:
                case.runs.insert(0, Runs(numpy))
        case.compare_all()
        self._enter(case, numpy)
        return case

    def judge_saved(self, runs: Sequence[Runs], new: Case) -> None:
        """Judge what was saved, and compare its outputs with those of today, or with each other."""
        case = replace(new, runs=[], findings=[])
        for one in runs:
            case.take(one.plain, one.tapped)
        if not new.runs:
            case.compare_all()
        self._enter(case, next((one for one in case.outcomes if one.runner.endswith(NUMPY)), None))
        case.findings.clear()
        for subject, reference in _old_and_new(new.outcomes, case.outcomes) if new.runs else ():
            case.compare(subject, reference)
        self.findings += case.findings

    def _enter(self, case: Case, numpy: Outcome | None) -> None:
        case.find_outliers()
        case.explain_changes(numpy)
        for outcome in case.outcomes:
            _enter(self.outcomes, outcome)
        self.findings += case.findings
        if self.settings.keeps_runs and case.runs:
            self.runs.setdefault(case.number, tuple(case.runs))
        if any(one.is_illegal for one in of_kind(Guarded, case.findings)):
            for runner in self.runners:  # some plugins write outside of their memory then
                runner.close()

    def result(self, cases: Sequence[Feeds]) -> Compared:
        comparisons = comparisons_in(self.findings)
        judged = {(one.subject, one.node) for one in comparisons}
        missing: dict[tuple[str, str], NotTapped] = {}
        for one in of_kind(NotTapped, self.findings):
            missing.setdefault((one.runner, one.node), one)
        scatters = {scatter.node.scope: scatter for scatter in self.nodes.values()}
        types = {}
        for scope, scatter in scatters.items():
            known = scatter.node.outputs[0].element_type if scatter.node.outputs else None
            types[scope] = "" if known is None else known.name
        return _explained(
            Compared(
                self.path,
                self.settings,
                tuple(self.outcomes.values()),
                tuple(comparisons),
                tuple(dict.fromkeys(of_kind(Guarded, self.findings))),
                tuple(of_kind(Outlier, self.findings)),
                tuple(one for key, one in missing.items() if one.reason != NEVER or key not in judged),
                tuple(dict.fromkeys(of_kind(str, self.findings))),
                self.facts,
                tuple(cases),
                tuple(self.runs.values()),
                types=types,
                operators={scope: str(scatter.spec.key) for scope, scatter in scatters.items()},
                devices=self.devices,
                about=self.about,
            )
        )


def _enter(outcomes: dict[str, Outcome], found: Outcome) -> None:
    """Enter what is told of a runner: the first outcome that was not ok, without its arrays."""
    known = outcomes.get(found.runner)
    if known is None or (known.status is Status.OK and found.status is not Status.OK):
        outcomes[found.runner] = replace(found, runs=(), tapped=(), facts=())


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


def _fitting(feeds: Feeds, models: Sequence[Model]) -> Feeds:
    """Return the feeds of the first model by names that the second model knows."""
    first, second = (dataflow_of(model).inputs for model in models)
    known = {name for input in second for name in input.names}
    renamed = {}
    for name, array in feeds.items():
        own = next((input.names for input in first if name in input.names), (name,))
        renamed[next((other for other in (name, *own) if other in known), name)] = array
    _demand_fit(renamed, models[1], "with the inputs of the first model")
    return renamed


def _demand_fit(feeds: Feeds, model: Model, whose: str) -> None:
    try:
        check_feeds(dataflow_of(model).inputs, feeds)
    except BadFeed as error:
        raise BadFeed(f"{model.path}, {whose}: {error}") from None


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
