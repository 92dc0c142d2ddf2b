"""Runs models on the same inputs and compares: one model, two, or one with saved results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ir_scatter.compare.judge import (
    Finding,
    ModelCase,
    ModelSide,
    Tapper,
    bodies_not_run,
    compare_models,
    comparisons_in,
    departures,
    idle_runners,
    of_kind,
    old_and_new,
    suspects,
    why_nothing,
)
from ir_scatter.compare.nodes import computed_in, facts_about, facts_about_model, is_one_node, tolerance_names
from ir_scatter.compare.pairing import Pairing, pair
from ir_scatter.compare.phases import Interrupted, begin
from ir_scatter.compare.result import (
    NEVER,
    NUMPY,
    Compared,
    CompareSettings,
    Comparison,
    Guarded,
    NotTapped,
    Outlier,
    Runs,
)
from ir_scatter.compare.snapshot import load
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import BadFeed, Error, NoInputs
from ir_scatter.core.model import Model
from ir_scatter.core.words import counted, listed
from ir_scatter.evaluate.model import check_feeds, make_sketch
from ir_scatter.formats import dataflow_of
from ir_scatter.inputs.coverage import REPEATED, Coverage, are_repeats_untried, draw_further
from ir_scatter.inputs.model import Drawn, draw_feeds
from ir_scatter.reading import read
from ir_scatter.runners.base import Availability, NodeFacts, Outcome, Runner, Status, Tapped

Feeds = Mapping[str, Array]

_HOPELESS = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})
"""Whoever ends like this is not asked again."""

_FEW = 3
"""So many nodes are named in a remark, of more their number is."""


def compare(
    models: "Model | str | Path | Sequence[Model]",
    runners: Sequence[Runner],
    settings: CompareSettings,
    *,
    with_numpy: bool = True,
    feeds: Feeds | None = None,
    against: "str | Path | None" = None,
) -> Compared:
    """Run a model on NumPy and on runners, and compare outputs, and every scatter node for itself.

    Where NumPy computes the model it is the reference, `with_numpy` or without, if settings do not forbid it.

    Of two models each runner compares its second with its first. The outputs of either are compared with
    what NumPy computes for it, too, which tells who departs; those of two runners are if that is asked for.
    Inputs and outputs belong together as `pair` finds.

    Args:
        models: one, or two that were read.
        runners: who computes, beside NumPy.
        settings: what is wanted.
        with_numpy: whether somebody named NumPy.
        feeds: the inputs of the first case, by names of either model; those of the others are generated.
        against: the folder where the inputs of one model, and results for them, were saved. A runner is
            compared with the saved one of its name. Saved ones that nobody runs here are compared with
            NumPy, that of today or the saved one, or else with the first that runs. What was tapped then is
            judged again, so that tolerances can change without running anything. Without runners and NumPy
            what is saved is looked at alone.
    """
    known = read(models) if isinstance(models, str | Path) else models
    both = [known] if isinstance(known, Model) else known
    saved = None if against is None else load(against)
    session = _Session(both, runners, settings, with_numpy=with_numpy, saved=saved)
    for runner in runners[:1]:
        runner.start()
    return session.run(session.inputs(feeds))


def run_both(
    models: Sequence[Model], runner: Runner, settings: CompareSettings, cases: Iterable[Feeds]
) -> Iterator[tuple[Outcome, Outcome, tuple[Comparison, ...]]]:
    """Yield for each case what a runner makes of two models, and comparisons of the second with the first.

    The first model names the inputs; the other one's outputs must be of the same types. Nothing is run
    before it is asked for.
    """
    both = _Session(models, (runner,), settings, with_numpy=False)
    assert both.pairing is not None
    for number, feeds in enumerate(cases):
        sides = both.cases(number, feeds)
        both.ask(runner, sides)
        before, after = (side.outcomes[0] for side in sides)
        yield (
            before,
            after,
            tuple(compare_models(before, after, sides, both.pairing, _tapper(runner), keeps_types=True)),
        )


# One run of one case.


def _run(case: ModelCase, runner: Runner, *, profile: bool = False) -> Outcome:
    """Run one runner without taps."""
    if runner.name in case.side.hopeless:
        return case.side.hopeless[runner.name]
    try:
        found = _ask(case, runner, repeat=case.settings.repeat, keeps_states=True, profile=profile)
    except BadFeed as error:  # the feeds fit the model: this is between the runner and itself
        return Outcome(runner.name, Status.REFUSED, str(error))
    if found.status is Status.UNAVAILABLE:
        found = replace(
            found, message=Availability("", False, found.message, runner.remedy_of(found.message)).why_not
        )
    if found.status in _HOPELESS:
        case.side.hopeless[runner.name] = found
    return found


def _run_with_taps(case: ModelCase, runner: Runner, times: int) -> Iterator[Outcome]:
    """Run one runner with taps until it fails; of each tap there is an answer."""
    taps = tuple(case.side.nodes)
    for _ in range(times if taps else 0):
        found = _ask(case, runner, taps=taps, tap_memory=case.settings.tap_memory)
        case.findings += [f"{found.runner}: {remark}" for remark in found.remarks]
        is_failed, reason = found.status is not Status.OK, "the runner gave no answer for it"
        if is_failed:
            reason = f"the run with taps: {found.status} {found.message}".rstrip()
            found = replace(found, runs=(), tapped=())
        answered = {one.tap for one in found.tapped}
        silent = (Tapped(tap, problem=reason) for tap in taps if tap not in answered)
        yield replace(found, tapped=(*found.tapped, *silent))
        if is_failed:
            return


def _ask(case: ModelCase, runner: Runner, **wanted: Any) -> Outcome:
    with_taps = " with taps" if "taps" in wanted else ""
    begin(f"{runner.name}{with_taps}{_of(case.number, case.settings.cases)}")
    precision, timeout = case.settings.precision, case.settings.timeout
    return runner.run(case.side.model.path, case.feeds, precision=precision, timeout=timeout, **wanted)


def _tapper(runner: Runner | None) -> Tapper | None:
    return None if runner is None else partial(_run_with_taps, runner=runner, times=1)


class _Session:
    """What runners and NumPy make of one model, or of two that are paired, and what is said of it."""

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
        self.paths = [one.path for one in models]
        self.sides = [ModelSide(one, settings, is_single=self.pairing is None) for one in models]
        self.notes = [] if self.pairing is None else [*self.pairing.notes]
        """Remarks that come before those on runners."""
        self.outcomes: dict[str, Outcome] = {}
        self.findings: list[Finding] = []
        self.facts: dict[str, tuple[NodeFacts, ...]] = {}
        self.devices: dict[str, Availability] = {}
        self.about: dict[str, tuple[str, ...]] = {}
        self.runs: dict[int, tuple[Runs, ...]] = {}
        self.drawn: Sequence[Drawn] = ()
        """The cases that were drawn, the first of which is that of number `first_drawn`."""
        self.first_drawn, self.coverage = 0, Coverage()
        self.finished = 0
        """Cases that all runners have run."""
        self.unfinished: list[str] = []
        """The runners that have not finished the case at work."""

    def inputs(self, given: Feeds | None) -> Sequence[Feeds]:
        """Return the inputs of each case: those that were saved, or given and then drawn.

        Of two models they are legal for both, by names of the first and in its types.
        """
        model, pairing, settings, saved = self.sides[0].model, self.pairing, self.settings, self.saved
        if saved is not None:
            for feeds in saved.feeds:
                try:
                    check_feeds(dataflow_of(model).inputs, feeds)
                except BadFeed as error:
                    place = f"{model.path}, with the inputs of {saved.model} that were saved"
                    raise BadFeed(f"{place}: {error}") from None
            return saved.feeds
        found, shapes = list[Feeds](), settings.input_shapes
        if given is not None:
            if pairing is not None:
                given, notes = pairing.given(given)
                self.notes += notes
            check_feeds(dataflow_of(model).inputs, given)
            found.append(given)
        if pairing is not None:
            shapes = pairing.shapes(shapes)
        numbers = range(len(found), settings.cases)
        twin = None if pairing is None or not numbers else pairing.twin()
        program = make_sketch(model) if numbers else model
        drawn = list[Drawn]()

        def draw(seed: int, **more: Any) -> Drawn:
            return draw_feeds(program, seed, shapes, settings.values, twin=twin, **more)

        for number in numbers:
            begin(f"drawing inputs{_of(number, settings.cases)}")
            try:
                case = draw(settings.seed + number)
            except NoInputs as error:
                if twin is None:
                    raise
                twin, what = None, "inputs that are legal for both models were found"
                self.notes.append(f"no {what}, these are for the first: {error}")
                case = draw(settings.seed + number)
            drawn.append(case)
        if drawn:
            self.first_drawn = len(found)
            drawn += self._further(draw, drawn, numbers.stop)
        elif given is not None and pairing is not None:
            begin("looking for repeated indices")
            if self._are_repeats_untried(given, pairing):
                self.coverage.not_tried.append(REPEATED)
        self.drawn = drawn
        return [*found, *(case.feeds if pairing is None else pairing.feeds(case.feeds)[0] for case in drawn)]

    def _are_repeats_untried(self, given: Feeds, pairing: Pairing) -> bool:
        """Tell of inputs whether targets do not repeat in them that only one of two models lets repeat."""
        model, fixed = self.sides[0].model, dict[int, Array]()
        for number, input in enumerate(dataflow_of(model).inputs):
            name = next((name for name in input.names if name in given), None)
            if name is not None:
                fixed[number] = given[name]
        with suppress(Error):
            program, twin = make_sketch(model), pairing.twin()
            shapes = {name: array.shape for name, array in given.items()}
            drawn = draw_feeds(program, input_shapes=shapes, twin=twin).run
            own = draw_feeds(program, input_shapes=shapes, twin=twin, fixed=fixed).run
            return drawn is not None and own is not None and are_repeats_untried(drawn, own)
        return False

    def _further(self, draw: Callable[..., Drawn], drawn: Sequence[Drawn], number: int) -> Sequence[Drawn]:
        """Return cases in which further bodies run, and one with indices that one of two models forbids."""
        is_single = self.pairing is None
        begin("drawing inputs for all bodies")
        bodies = [
            (place, body.scope)
            for place, side in enumerate(self.sides)
            for body in side.reference.optional_bodies(has_scatter=is_single)
        ]
        self.coverage = draw_further(draw, drawn, bodies, self.settings.seed + number)
        return self.coverage.cases

    def run(self, cases: Sequence[Feeds]) -> Compared:
        """Run all cases; an interrupt becomes one that holds what was finished, if that is anything."""
        try:
            for number, feeds in enumerate(cases):
                self.run_case(number, feeds)
        except KeyboardInterrupt:
            if not self.outcomes:
                raise
            begun = min(self.finished + 1, len(cases))
            who = listed(self.unfinished or [NUMPY])
            missing = [f"{who} did not finish case {begun} of {len(cases)}"]
            if begun < len(cases):
                missing.append(f"{counted(len(cases) - begun, 'case')} did not begin")
            found = replace(self.result(cases[:begun]), interrupted=f"interrupted: {', '.join(missing)}")
            raise Interrupted(found) from None
        if self.saved is not None:
            self.facts |= self.saved.facts
            self.findings += self.saved.remarks
        return self.result(cases)

    def cases(self, number: int, feeds: Feeds) -> list[ModelCase]:
        """Return the case of each model, with inputs of its own."""
        given = (feeds,) if self.pairing is None else self.pairing.feeds(feeds)
        return [ModelCase(side, number, own) for side, own in zip(self.sides, given, strict=True)]

    def run_case(self, number: int, feeds: Feeds) -> None:
        """Run all on one set of inputs; NumPy computes while the others run."""
        cases, known = self.cases(number, feeds), len(self.findings)
        times, starts = self.settings.repeat, cases if self.has_reference else ()
        pending = [case.side.reference.start(case.feeds, times) for case in starts]
        self.unfinished = [runner.name for runner in self.runners]
        try:
            for runner in self.runners:
                self.ask(runner, cases)
                del self.unfinished[0]
            if pending:
                begin(f"NumPy{_of(number, self.settings.cases)}")
            ended = [finish(self.settings.timeout) for finish in pending]
        except KeyboardInterrupt:
            if self.pairing is None:
                self._enter(cases[0])
            raise
        for case, (numpy, sight) in zip(cases, ended, strict=False):
            case.runs.insert(0, Runs(replace(numpy, implicit=not self.with_numpy)))
            case.sight, model = sight, case.side.name
            case.findings[:0] = [replace(one, case=number, model=model) for one in sight.seen.values()]
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
        is_illegal = any(one.is_illegal for one in of_kind(Guarded, self.findings[known:]))
        if is_illegal or any(case.has_blamed_taps for case in cases):
            for runner in self.runners:  # some plugins write outside of their memory then
                runner.close()

    def _note_bodies(self, case: ModelCase, place: int) -> None:
        """Note which bodies ran in a case: as NumPy computed it, or else as its inputs were drawn."""
        side, number = case.side, case.number - self.first_drawn
        run = self.drawn[number].run if 0 <= number < len(self.drawn) else None
        numpy = next((one for one in case.outcomes if one.runner == NUMPY), None)
        if case.sight is not None:
            side.entered |= case.sight.entered
        if numpy is not None and numpy.status is Status.OK:
            return
        if run is None or place >= len(run.uses_of_models):
            side.uncertain.add("")
            return
        side.entered |= {scope for model, scope in run.entered if model == place}
        side.uncertain |= {scope for model, scope in run.unsure if model == place}

    def ask(self, runner: Runner, cases: Sequence[ModelCase]) -> None:
        """Run one runner on each model, and if there is only one with taps as well."""
        is_single = self.pairing is None
        for case in cases:
            plain = _run(case, runner, profile=is_single)
            if plain.status is Status.UNAVAILABLE:  # which is asked once
                for side in self.sides:
                    side.hopeless[runner.name] = plain
            case.findings += [f"{plain.runner}: {remark}" for remark in plain.remarks]
            is_ok = plain.status is Status.OK
            if is_ok and self.settings.describes and runner.name not in self.devices:
                self.devices[runner.name] = runner.availability()
            if is_ok and is_single and (remarks := getattr(runner, "remarks", ())):
                self.about[runner.name] = remarks
            if plain.facts and runner.name not in self.facts:
                scatters = case.side.nodes.values()
                scopes = {name: one.node.scope for one in scatters for name in tolerance_names(one)}
                self.facts[runner.name] = facts_about(plain.facts, scopes)
            if plain.precision == "default":
                plain = replace(plain, precision=computed_in(plain.facts) or plain.precision)
            times = self.settings.repeat if is_ok and is_single else 0
            case.take(plain, _run_with_taps(case, runner, times))

    def _judge_saved(self, runs: Sequence[Runs], new: ModelCase) -> None:
        """Judge what was saved, and compare its outputs with those of today, or with each other."""
        case = replace(new, runs=[], findings=[])
        for one in runs:
            case.take(one.plain, one.tapped)
        if not new.runs:
            case.compare_all()
        self._finish(case)
        case.findings.clear()
        for subject, reference in old_and_new(new.outcomes, case.outcomes) if new.runs else ():
            case.compare(subject, reference)
        self.findings += case.findings

    def _finish(self, case: ModelCase) -> None:
        case.blame_taps()
        case.find_outliers()
        case.explain_changes()
        self._enter(case)
        if self.settings.keeps_runs:
            self.runs[case.number] = self.runs.get(case.number) or tuple(case.runs)

    def _enter(self, case: ModelCase) -> None:
        for outcome in case.outcomes:
            _enter(self.outcomes, outcome)
        self.findings += case.findings

    def _judge_both(self, cases: Sequence[ModelCase], pairing: Pairing) -> None:
        runners = {runner.name: runner for runner in self.runners}
        cross = [
            one
            for before, after in zip(*(case.outcomes for case in cases), strict=True)
            for one in compare_models(before, after, cases, pairing, _tapper(runners.get(before.runner)))
        ]
        self.findings += cross
        of_sides: list[list[Comparison]] = []
        for case, path in zip(cases, self.paths, strict=True):
            has_numpy = any(one.runner == NUMPY and one.status is Status.OK for one in case.outcomes)
            if has_numpy or self.settings.pairwise:
                case.compare_all(repeats=False)
            of_sides.append(comparisons_in(case.findings))
            self.findings += case.findings
            own = self.sides[self.paths.index(path)].outcomes
            for outcome in case.outcomes:
                _enter(own, outcome)
                if outcome.status not in {Status.OK, Status.UNAVAILABLE}:
                    outcome = replace(outcome, message=f"{path}: {outcome.message}".removesuffix(": "))
                _enter(self.outcomes, outcome)
        known = {(one.tensor, one.runners, one.model) for one in of_kind(Outlier, self.findings)}
        seen = [one.kind for case in cases if case.sight is not None for one in case.sight.seen.values()]
        where = "where NaN meets numbers" if {*seen} == {"nan"} else "where an index is repeated"
        for one in departures(cases[0].number, pairing, cross, of_sides, where):
            if (one.tensor, one.runners, one.model) not in known:  # of all cases the first
                self.findings.append(one)

    def _unspecified(self) -> Iterator[str]:
        """Say of which nodes no indices repeat."""
        if names := self.coverage.unspecified:
            more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
            verb = "has" if len(names) == 1 else "have"
            yield f"repeated indices were not tried: {listed(names[:_FEW])}{more} {verb} no reduction"

    def result(self, cases: Sequence[Feeds]) -> Compared:
        """Return what was found, and say so if nothing was compared, and why."""
        comparisons, outcomes = comparisons_in(self.findings), tuple(self.outcomes.values())
        judged = {(one.subject, one.node) for one in comparisons}
        missing: dict[tuple[str, str], NotTapped] = {}
        for one in of_kind(NotTapped, self.findings):
            missing.setdefault((one.runner, one.node), one)
        remarks = [*self.notes, *([] if self.pairing is None else idle_runners(self.sides, self.findings))]
        remarks += self._unspecified() if comparisons else []
        remarks = list(dict.fromkeys([*remarks, *of_kind(str, self.findings)]))
        if not comparisons:
            remarks.append(f"nothing was compared: {why_nothing(outcomes)}")
        models = [side.model for side in self.sides]
        not_run, unclear = (
            bodies_not_run(self.sides, self.findings, self.coverage.never) if outcomes else ([], [])
        )
        not_tried = [f"whether {name} runs is not known" for name in unclear] + self.coverage.not_tried
        found = Compared(
            self.paths[0],
            self.settings,
            outcomes,
            tuple(comparisons),
            tuple(dict.fromkeys(of_kind(Guarded, self.findings))),
            tuple(of_kind(Outlier, self.findings)),
            tuple(one for key, one in missing.items() if one.reason != NEVER or key not in judged),
            tuple(remarks),
            self.facts,
            tuple(cases),
            tuple(self.runs.values()),
            devices=self.devices,
            about=self.about,
            model_facts=tuple(map(facts_about_model, models)) if self.settings.describes else (),
            not_run=tuple(not_run),
            not_tried=tuple(not_tried),
        )
        if self.pairing is not None:
            each = [side.outcomes for side in self.sides if side.outcomes]
            by_model = {name: tuple(side[name] for side in each) for name in self.outcomes}
            return replace(found, other=self.paths[1], pairing=self.pairing, by_model=by_model)
        scatters = self.sides[0].nodes.values()
        outputs = {one.node.scope: one.node.outputs[0] for one in scatters if one.node.outputs}
        return replace(
            found,
            types={scope: one.element_type.name for scope, one in outputs.items() if one.element_type},
            operators={one.node.scope: str(one.spec.key) for one in scatters},
            is_one_node=is_one_node(models[0]),
            suspects=suspects(models[0], comparisons),
        )


def _of(number: int, total: int) -> str:
    total = max(total, number + 1)  # cases may be added to those that were asked for
    return f", case {number + 1} of {total}" if total > 1 else ""


def _enter(outcomes: dict[str, Outcome], found: Outcome) -> None:
    """Enter what is told of a runner: the first outcome that was not ok, without its arrays."""
    known = outcomes.get(found.runner)
    if known is None or (known.status is Status.OK and found.status is not Status.OK):
        outcomes[found.runner] = replace(found, runs=(), tapped=(), facts=())
