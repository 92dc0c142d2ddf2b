"""Runs models on the same inputs and compares the results: of one model, of two, or with saved ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ir_scatter.compare.case_inputs import check_saved_inputs, draw_inputs
from ir_scatter.compare.judge import (
    Judgement,
    ModelCase,
    ModelSide,
    Tapper,
    bodies_not_run,
    compare_models,
    comparisons_in,
    find_deviations,
    find_idle_runners,
    find_suspects,
    mark_unfit_inputs,
    of_kind,
    pairs_with_saved,
    unfit_inputs,
    why_nothing_compared,
)
from ir_scatter.compare.known import explain_results
from ir_scatter.compare.nodes import (
    facts_about,
    facts_about_model,
    inference_precision,
    is_one_node,
    tolerance_names,
)
from ir_scatter.compare.pairing import Pairing, pair
from ir_scatter.compare.phases import Interrupted, begin, case_of
from ir_scatter.compare.result import (
    NOT_COMPUTED,
    Compared,
    CompareSettings,
    Comparison,
    FirstDifference,
    Guarded,
    NotTapped,
    Outlier,
    Runs,
)
from ir_scatter.compare.snapshot import load
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.model import Model
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.words import counted, listed
from ir_scatter.inputs.coverage import Coverage
from ir_scatter.inputs.model import Drawn
from ir_scatter.reading import read
from ir_scatter.runners.base import Availability, NodeFacts, Outcome, Runner, Status, Tap, Tapped
from ir_scatter.runners.defaults import NUMPY

Feeds = Mapping[str, Array]

_FINAL = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})
"""Statuses after which a runner is not started again for the same model: it would only fail slowly again."""

_INPUTS, _RANGES = Parameter("inputs"), Parameter("input_ranges")
_SHAPES = Parameter("input_shapes")

_MOST_NAMES = 3
"""Maximum nodes named in a remark; further ones are only counted."""


def compare(
    models: "Model | str | Path | Sequence[Model]",
    runners: Sequence[Runner],
    settings: CompareSettings,
    *,
    with_numpy: bool = True,
    feeds: Feeds | Sequence[Feeds] | None = None,
    against: "str | Path | None" = None,
) -> Compared:
    """Run a model on NumPy and on runners; compare its outputs, and every scatter node separately.

    If NumPy computes the model it is the reference, unless the settings exclude it. With two models, each
    runner compares the second with the first. The outputs of each are also compared with NumPy's, which shows
    which runner deviates on which model. Outputs of two runners are compared only with the setting
    `pairwise`.

    Args:
        models: one, or two that were read; `pair` matches their inputs and outputs.
        runners: those that run the models beside NumPy.
        settings: options.
        with_numpy: whether the caller names NumPy among the runners.
        feeds: the inputs of the first case, or of the first cases, by names of either model; inputs of
            further cases are generated.
        against: a folder with saved inputs and results of one model. Each runner is compared with its saved
            result. A saved runner that does not run now is compared with NumPy's result (new or saved), or
            with the first runner. Saved taps are judged again, so that tolerances can change without
            running anything. Without runners and NumPy only the saved results are judged.
    """
    model = read(models) if isinstance(models, str | Path) else models
    sides = [model] if isinstance(model, Model) else model
    passed = [feeds] if isinstance(feeds, Mapping) else list(feeds or ())
    settings = replace(settings, cases=max(settings.cases, len(passed)))
    saved = None if against is None else load(against)
    session = _Session(sides, runners, settings, with_numpy=with_numpy, saved=saved)
    for runner in runners[:1]:
        runner.start()
    return session.run(session.inputs(passed))


def run_both(
    models: Sequence[Model], runner: Runner, settings: CompareSettings, cases: Iterable[Feeds]
) -> Iterator[tuple[Outcome, Outcome, tuple[Comparison, ...]]]:
    """Run two models on one runner; yield both outcomes and their comparisons for each case.

    The first model names the inputs; the outputs of the second must have the same types. `cases` is consumed
    lazily: a case runs when its result is requested.
    """
    session = _Session(models, (runner,), settings, with_numpy=False)
    assert session.pairing is not None
    for number, feeds in enumerate(cases):
        sides = session.cases(number, feeds)
        session.ask(runner, sides)
        before, after = (side.outcomes[0] for side in sides)
        comparisons = compare_models(before, after, sides, session.pairing, _tapper(runner), keeps_types=True)
        yield before, after, tuple(comparisons)


# One run of one case.


def _run(case: ModelCase, runner: Runner, *, profile: bool = False) -> Outcome:
    """Run one runner without taps."""
    if runner.name in case.side.final_outcomes:
        return case.side.final_outcomes[runner.name]
    try:
        outcome = _ask(case, runner, repeat=case.settings.repeat, keeps_states=True, profile=profile)
    except BadFeed as error:  # the feeds fit the model, so that the runner itself refuses them
        return Outcome(runner.name, Status.REFUSED, str(error))
    if outcome.status is Status.UNAVAILABLE:
        remedy = runner.remedy_of(outcome.message)
        outcome = replace(outcome, message=Availability("", False, outcome.message, remedy).why_not)
    if outcome.status in _FINAL:
        case.side.final_outcomes[runner.name] = outcome
    return outcome


def _run_with_taps(case: ModelCase, runner: Runner, times: int) -> Iterator[Outcome]:
    """Run one runner with taps until a run fails; each outcome has an entry for every tap."""
    taps = tuple(case.side.nodes)
    for _ in range(times if taps else 0):
        outcome = _ask(case, runner, taps=taps, tap_memory=case.settings.tap_memory)
        case.judgements += [f"{outcome.runner}: {remark}" for remark in outcome.remarks]
        is_failed, reason = outcome.status is not Status.OK, "the runner gave no answer for it"
        if is_failed:
            reason = f"the run with taps: {outcome.status} {outcome.message}".rstrip()
            outcome = replace(outcome, runs=(), tapped=())
        answered = {tapped.tap for tapped in outcome.tapped}
        unanswered = (Tapped(tap, problem=reason) for tap in taps if tap not in answered)
        yield replace(outcome, tapped=(*outcome.tapped, *unanswered))
        if is_failed:
            return


def _ask(case: ModelCase, runner: Runner, **options: Any) -> Outcome:
    with_taps = " with taps" if "taps" in options else ""
    begin(f"{runner.name}{with_taps}{case_of(case.number, case.settings.cases)}")
    precision, timeout = case.settings.precision, case.settings.timeout
    return runner.run(case.side.model.path, case.feeds, precision=precision, timeout=timeout, **options)


def _tapper(runner: Runner | None) -> Tapper | None:
    return None if runner is None else partial(_run_with_taps, runner=runner, times=1)


class _Session:
    """Collects the runs of one model, or of a pair, on all runners, and the judgements about them."""

    def __init__(
        self,
        models: Sequence[Model],
        runners: Sequence[Runner],
        settings: CompareSettings,
        *,
        with_numpy: bool,
        saved: Compared | None = None,
    ) -> None:
        self.runners, self.settings, self.with_numpy, self.saved = runners, settings, with_numpy, saved
        self.pairing: Pairing | None = None
        if len(models) == 2:
            self.pairing = pair(models[0], models[1], settings.map_inputs, settings.map_outputs)
        self.has_reference = with_numpy or (settings.reference and bool(runners))
        self.paths = [model.path for model in models]
        self.sides = [ModelSide(model, settings, is_single=self.pairing is None) for model in models]
        self.notes = [] if self.pairing is None else [*self.pairing.notes]
        """Remarks that precede those on runners."""
        self.outcomes: dict[str, Outcome] = {}
        self.judgements: list[Judgement] = []
        self.facts: dict[str, tuple[NodeFacts, ...]] = {}
        self.devices: dict[str, Availability] = {}
        self.about: dict[str, tuple[str, ...]] = {}
        self.runs: dict[int, tuple[Runs, ...]] = {}
        self.drawn: Sequence[Drawn] = ()
        """The generated cases; the first of them has the number `first_drawn`."""
        self.first_drawn, self.passed_cases, self.coverage = 0, 0, Coverage()
        self.finished = 0
        """Number of cases that all runners have run."""
        self.unfinished: list[str] = []
        """The runners that have not finished the current case."""

    def inputs(self, passed: Sequence[Feeds]) -> Sequence[Feeds]:
        """Return the inputs of each case: the saved ones, or the caller's followed by generated ones."""
        if self.saved is not None:
            return check_saved_inputs(self.saved, self.sides[0].model)
        inputs = draw_inputs(self.sides, self.pairing, self.settings, passed)
        self.passed_cases = len(passed)
        self.notes += inputs.notes
        self.drawn, self.first_drawn, self.coverage = inputs.drawn, inputs.first_drawn, inputs.coverage
        return inputs.cases

    def run(self, cases: Sequence[Feeds]) -> Compared:
        """Run all cases; after an interrupt, raise `Interrupted` with the finished part if there is any."""
        try:
            for number, feeds in enumerate(cases):
                self.run_case(number, feeds)
        except KeyboardInterrupt:
            if not self.outcomes:
                raise
            begun = min(self.finished + 1, len(cases))
            names = listed(self.unfinished or [NUMPY])
            missing = [f"{names} did not finish case {begun} of {len(cases)}"]
            if begun < len(cases):
                missing.append(f"{counted(len(cases) - begun, 'case')} did not begin")
            interrupted = f"interrupted: {', '.join(missing)}"
            raise Interrupted(replace(self.result(cases[:begun]), interrupted=interrupted)) from None
        if self.saved is not None:
            self.facts |= self.saved.facts
            self.judgements += self.saved.remarks
        return self.result(cases)

    def cases(self, number: int, feeds: Feeds) -> list[ModelCase]:
        """Return a `ModelCase` for each model, with the inputs in that model's names and types."""
        feeds_of_sides = (feeds,) if self.pairing is None else self.pairing.feeds(feeds)
        return [ModelCase(side, number, each) for side, each in zip(self.sides, feeds_of_sides, strict=True)]

    def run_case(self, number: int, feeds: Feeds) -> None:
        """Run all runners on one set of inputs, while NumPy computes in a thread."""
        cases, judged_before = self.cases(number, feeds), len(self.judgements)
        times, starts = self.settings.repeat, cases if self.has_reference else ()
        pending = [case.side.reference.start(case.feeds, times, self.settings.timeout) for case in starts]
        self.unfinished = [runner.name for runner in self.runners]
        try:
            for runner in self.runners:
                self.ask(runner, cases)
                del self.unfinished[0]
            if pending:
                begin(f"NumPy{case_of(number, self.settings.cases)}")
            numpy_results = [finish(self.settings.timeout) for finish in pending]
        except KeyboardInterrupt:
            if self.pairing is None:
                self._enter(cases[0])
            raise
        for case, (numpy, observations) in zip(cases, numpy_results, strict=False):
            case.runs.insert(0, Runs(replace(numpy, implicit=not self.with_numpy)))
            case.observations, model = observations, case.side.name
            case.judgements[:0] = [
                replace(remark, case=number, model=model) for remark in observations.guarded.values()
            ]
        if self.saved is None and number >= self.passed_cases:
            mark_unfit_inputs(cases)
        if self.pairing is None:
            cases[0].compare_all()
            self._finish(cases[0])
        else:
            self._judge_both(cases, self.pairing)
        for place, case in enumerate(cases):
            self._note_bodies(case, place)
        self.finished += 1
        if self.saved is not None:
            self._judge_saved(self.saved.runs[number], cases[0])
        is_illegal = any(remark.is_illegal for remark in of_kind(Guarded, self.judgements[judged_before:]))
        if is_illegal or any(case.has_blamed_taps for case in cases):
            for runner in self.runners:  # some plugins write outside of their memory for illegal indices
                runner.close()

    def _note_bodies(self, case: ModelCase, place: int) -> None:
        """Record which branches and bodies ran in a case.

        These are the ones that NumPy entered. If NumPy failed, those that the input generator computed are
        added; for inputs that were not generated, all bodies become uncertain.
        """
        side, number = case.side, case.number - self.first_drawn
        run = self.drawn[number].run if 0 <= number < len(self.drawn) else None
        numpy = next((outcome for outcome in case.outcomes if outcome.runner == NUMPY), None)
        if case.observations is not None:
            side.entered |= case.observations.entered
        if numpy is not None and numpy.status is Status.OK:
            side.uncertain |= set() if case.observations is None else case.observations.unsure
            return
        if run is None or place >= len(run.uses_of_models):
            side.uncertain.add("")
            return
        side.entered |= {scope for model, scope in run.entered if model == place}
        side.uncertain |= {scope for model, scope in run.unsure if model == place}

    def ask(self, runner: Runner, cases: Sequence[ModelCase]) -> None:
        """Run one runner on each model; for a single model, also with taps."""
        is_single = self.pairing is None
        for case in cases:
            plain = _run(case, runner, profile=is_single)
            if plain.status is Status.UNAVAILABLE:  # for all models alike
                for side in self.sides:
                    side.final_outcomes[runner.name] = plain
            case.judgements += [f"{plain.runner}: {remark}" for remark in plain.remarks]
            is_ok = plain.status is Status.OK
            if is_ok and self.settings.describes and runner.name not in self.devices:
                self.devices[runner.name] = runner.availability()
            if is_ok and is_single and (remarks := getattr(runner, "remarks", ())):
                self.about[runner.name] = remarks
            if plain.facts and runner.name not in self.facts:
                scatters = case.side.nodes.values()
                scopes = {
                    name: scatter.node.scope for scatter in scatters for name in tolerance_names(scatter)
                }
                self.facts[runner.name] = facts_about(plain.facts, scopes)
            if plain.precision == "default":
                plain = replace(plain, precision=inference_precision(plain.facts) or plain.precision)
            times = self.settings.repeat if is_ok and is_single else 0
            case.add_runs(plain, _run_with_taps(case, runner, times))

    def _judge_saved(self, runs: Sequence[Runs], new: ModelCase) -> None:
        """Judge saved runs; compare their outputs with the new ones or, without those, with each other."""
        saved = replace(new, runs=[], judgements=[])
        for runs_of_runner in runs:
            saved.add_runs(runs_of_runner.plain, runs_of_runner.tapped)
        if not new.runs:
            saved.compare_all()
        self._finish(saved)
        saved.judgements.clear()
        for subject, reference in pairs_with_saved(new.outcomes, saved.outcomes) if new.runs else ():
            saved.compare(subject, reference)
        self.judgements += saved.judgements

    def _finish(self, case: ModelCase) -> None:
        case.blame_taps()
        case.find_outliers()
        case.explain_changes()
        case.find_first_differences(self._read_values)
        self._enter(case)
        if self.settings.keeps_runs:
            self.runs[case.number] = self.runs.get(case.number) or tuple(case.runs)

    def _read_values(self, case: ModelCase, runner_name: str, taps: Sequence[Tap]) -> Outcome | None:
        """Run one runner once more, with taps."""
        runner = next((each for each in self.runners if each.name == runner_name), None)
        if runner is None or runner_name in case.side.final_outcomes:
            return None
        return _ask(case, runner, taps=tuple(taps), tap_memory=case.settings.tap_memory)

    def _enter(self, case: ModelCase) -> None:
        for outcome in case.outcomes:
            _enter_outcome(self.outcomes, outcome)
        self.judgements += case.judgements

    def _judge_both(self, cases: Sequence[ModelCase], pairing: Pairing) -> None:
        """On each runner, compare the second model with the first; compare both models with NumPy."""
        runners = {runner.name: runner for runner in self.runners}
        between_models = [
            comparison
            for before, after in zip(*(case.outcomes for case in cases), strict=True)
            for comparison in compare_models(
                before, after, cases, pairing, _tapper(runners.get(before.runner))
            )
        ]
        self.judgements += between_models
        of_sides: list[list[Comparison]] = []
        for case, path in zip(cases, self.paths, strict=True):
            has_numpy = any(
                outcome.runner == NUMPY and outcome.status is Status.OK for outcome in case.outcomes
            )
            if has_numpy or self.settings.pairwise:
                case.compare_all(repeats=False)
            of_sides.append(comparisons_in(case.judgements))
            self.judgements += case.judgements
            outcomes_of_side = self.sides[self.paths.index(path)].outcomes
            for outcome in case.outcomes:
                _enter_outcome(outcomes_of_side, outcome)
                if outcome.status not in {Status.OK, Status.UNAVAILABLE}:
                    outcome = replace(outcome, message=f"{path}: {outcome.message}".removesuffix(": "))
                _enter_outcome(self.outcomes, outcome)
        earlier = {
            (outlier.tensor, outlier.runners, outlier.model) for outlier in of_kind(Outlier, self.judgements)
        }
        kinds = {
            remark.kind
            for case in cases
            if case.observations is not None
            for remark in case.observations.guarded.values()
        }
        place = "where NaN meets numbers" if kinds == {"nan"} else "where an index is repeated"
        for outlier in find_deviations(cases[0].number, pairing, between_models, of_sides, place):
            if (outlier.tensor, outlier.runners, outlier.model) not in earlier:  # only of the first case
                self.judgements.append(outlier)

    def _remark_on_unrepeated(self) -> Iterator[str]:
        """Yield a remark on nodes without a reduction for which no case repeated an index."""
        if names := self.coverage.unspecified:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            verb = "has" if len(names) == 1 else "have"
            yield f"repeated indices were not tried: {listed(names[:_MOST_NAMES])}{more} {verb} no reduction"

    def result(self, cases: Sequence[Feeds]) -> Compared:
        """Return the result of all cases so far; if nothing was compared, a remark gives the reason."""
        comparisons, outcomes = comparisons_in(self.judgements), tuple(self.outcomes.values())
        judged = {(comparison.subject, comparison.node) for comparison in comparisons}
        missing: dict[tuple[str, str], NotTapped] = {}
        for failure in of_kind(NotTapped, self.judgements):
            missing.setdefault((failure.runner, failure.node), failure)
        remarks = [*self.notes]
        remarks += [] if self.pairing is None else find_idle_runners(self.sides, self.judgements)
        remarks += self._remark_on_unrepeated() if comparisons else []
        remarks = list(dict.fromkeys([*remarks, *of_kind(str, self.judgements)]))
        if not comparisons:
            remarks.append(f"nothing was compared: {why_nothing_compared(outcomes)}")
        if unfit_inputs(outcomes):
            remarks.append(f"inputs that fit are set by {_INPUTS}, {_RANGES} or {_SHAPES}")
        models = [side.model for side in self.sides]
        not_run, uncertain = list[str](), list[str]()
        if outcomes:
            not_run, uncertain = bodies_not_run(self.sides, self.judgements, self.coverage.never)
        not_tried = [f"whether {name} runs is unknown" for name in uncertain] + self.coverage.not_tried
        compared = Compared(
            self.paths[0],
            self.settings,
            outcomes,
            tuple(comparisons),
            tuple(dict.fromkeys(of_kind(Guarded, self.judgements))),
            tuple(of_kind(Outlier, self.judgements)),
            tuple(of_kind(FirstDifference, self.judgements)),
            tuple(
                failure
                for key, failure in missing.items()
                if failure.reason != NOT_COMPUTED or key not in judged
            ),
            tuple(remarks),
            self.facts,
            tuple(cases),
            self.passed_cases,
            tuple(self.runs.values()),
            devices=self.devices,
            about=self.about,
            model_facts=tuple(map(facts_about_model, models)) if self.settings.describes else (),
            not_run=tuple(not_run),
            not_tried=tuple(not_tried),
        )
        if self.pairing is not None:
            of_sides = [side.outcomes for side in self.sides if side.outcomes]
            by_model = {name: tuple(outcomes[name] for outcomes in of_sides) for name in self.outcomes}
            compared = replace(compared, other=self.paths[1], pairing=self.pairing, by_model=by_model)
            return explain_results(compared, models)
        scatters = self.sides[0].nodes.values()
        outputs = {
            scatter.node.scope: scatter.node.outputs[0] for scatter in scatters if scatter.node.outputs
        }
        compared = replace(
            compared,
            types={scope: value.element_type.name for scope, value in outputs.items() if value.element_type},
            operators={scatter.node.scope: str(scatter.spec.key) for scatter in scatters},
            is_one_node=is_one_node(models[0]),
            suspects=find_suspects(models[0], comparisons),
        )
        return explain_results(compared, models)


def _enter_outcome(outcomes: dict[str, Outcome], outcome: Outcome) -> None:
    """Store a runner's outcome without arrays; a later failure replaces an earlier success."""
    earlier = outcomes.get(outcome.runner)
    if earlier is None or (earlier.status is Status.OK and outcome.status is not Status.OK):
        outcomes[outcome.runner] = replace(outcome, runs=(), tapped=(), facts=())
