"""Judges what runners computed: compares outputs and nodes, and says who is wrong."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import combinations
from typing import TypeVar

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.reachability import reachability_of
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.guard import Open, Sight, excused, open_once
from ir_scatter.compare.measure import (
    EXACT,
    SUBJECT,
    Measure,
    Tolerance,
    Tolerances,
    Verdict,
    coarser,
    default_tolerance,
    measure,
    measure_node,
    plain,
    shown,
)
from ir_scatter.compare.nodes import has_states, nodes_by_tap, output_of, tolerance_names
from ir_scatter.compare.numpy_source import Reference
from ir_scatter.compare.pairing import Pairing, in_one_type
from ir_scatter.compare.result import (
    NEVER,
    NUMPY,
    SAVED,
    CompareSettings,
    Comparison,
    Guarded,
    Level,
    NotTapped,
    Outlier,
    Relation,
    Runs,
    act,
    short_names,
)
from ir_scatter.core.arrays import Array, are_equal
from ir_scatter.core.errors import Error, IllegalCase
from ir_scatter.core.model import Model
from ir_scatter.core.words import listed
from ir_scatter.evaluate.certainty import detail
from ir_scatter.evaluate.model import case_of_node
from ir_scatter.ops.general import random_types
from ir_scatter.portability import hidden_by_taps
from ir_scatter.runners.base import OTHER_FORMAT, Execution, Outcome, Status

Feeds = Mapping[str, Array]

Finding = Comparison | Guarded | NotTapped | Outlier | str
"""What there is to say of outputs, nodes and runners; a string is a remark."""

_Kind = TypeVar("_Kind")


OpenOutputs = Callable[[], Mapping[str, Open]]
"""Gives the outputs of which the document leaves something open, by name; only asked if outputs differ."""

Tapper = Callable[["ModelCase"], Iterable[Outcome]]
"""Runs a case once more with taps."""


_CAMPS = 3
"""From so many runners on one can be the outlier."""

_NO_LATER_INFERENCES = "inferences after the first depend on states, and nothing else computes them"


# Outputs of models.


def compare_outputs(
    subject: Outcome,
    reference: Outcome,
    case: int,
    tolerances: Tolerances,
    *open: OpenOutputs,
    pairing: Pairing | None = None,
    model: str = "",
    is_settled: bool = False,
) -> Iterator[Comparison]:
    """Yield a comparison for each output of two runs.

    What is open is requested of the subject's model, and of that of the reference, if it is another one. The
    pairing says of two models how their outputs belong together; the subject's have the other names already.
    If it `is_settled` that nothing else is open in either, what one of them leaves open alone counts.
    """
    precision, models = coarser(subject.precision, reference.precision), (model, model)
    others: dict[str, str] = {}
    if pairing is not None:
        precision = coarser(precision, pairing.precision)
        models = pairing.models[1].path, pairing.models[0].path
        others = {match.first.name: match.second.name for match in pairing.outputs}
    for name in dict.fromkeys((*reference.outputs, *subject.outputs)):
        got, expected = subject.outputs.get(name), reference.outputs.get(name)
        allowed = tolerances.find(name, others.get(name))
        if pairing is not None and got is not None and expected is not None and got.dtype != expected.dtype:
            got, expected, narrow = in_one_type(got, expected, precision)
            allowed = allowed or narrow
        found = _measured(name, got, expected, allowed, precision, *open, is_settled=is_settled)
        yield _of_output(name, case, subject.runner, reference.runner, found, got, expected, models=models)


def compare_runs(outcome: Outcome, case: int, model: str, open: OpenOutputs) -> Iterator[Comparison]:
    """Yield a comparison of a runner with itself for each output that changes from run to run.

    Random numbers are expected to change.
    """
    for name, first in outcome.outputs.items():
        got = None
        found = Measure(Verdict.MISMATCH, first.size, first.size, remark="is missing in some runs")
        if all(name in run for run in outcome.runs):
            got = next((run[name] for run in outcome.runs[1:] if not are_equal(run[name], first)), None)
            if got is None:
                continue
            found = measure(got, first, default_tolerance(first))
            known = open().get(name)
            if known is not None and known.excuse.is_random:
                found = excused(found, got, first, known, known)
        if found.verdict is not Verdict.CONTESTED:
            found = replace(found, verdict=Verdict.NONDETERMINISTIC)
        runner, models = outcome.runner, (model, model)
        yield _of_output(name, case, runner, runner, found, got, first, models=models)


def _measured(
    name: str,
    got: Array | None,
    expected: Array | None,
    requested: Tolerance | None,
    precision: str,
    *open: OpenOutputs,
    is_settled: bool = False,
) -> Measure:
    """Return how an output differs from another, where it is not left open in the models of both."""
    if got is None or expected is None:
        size = sum(0 if one is None else one.size for one in (got, expected))
        remark = "is missing" if got is None else "is missing in the reference"
        return Measure(Verdict.MISMATCH, size, size, remark=remark)
    found = measure(got, expected, requested or default_tolerance(expected, precision))
    if found.verdict is not Verdict.MISMATCH or not open:
        return found
    sides = [known().get(name) for known in open]
    if is_settled and (apart := open_once(found, got, expected, sides[0], sides[-1])):
        return apart
    return excused(found, got, expected, sides[0], sides[-1])


def _of_output(
    name: str,
    case: int,
    subject: str,
    reference: str,
    found: Measure,
    got: Array | None,
    expected: Array | None,
    *,
    tapped: bool = False,
    models: tuple[str, str] = ("", ""),
) -> Comparison:
    one = Comparison(Level.MODEL, None, name, case, subject, reference, found, tapped=tapped)
    one = replace(one, subject_model=models[0], reference_model=models[1])
    if found.verdict is Verdict.EQUAL:
        return one
    if one.relation is not Relation.DOCUMENT:  # then neither of the two is what is expected
        remark = found.remark.replace(", expected ", ", the other ")
        if one.relation is not Relation.REPEAT and (got is None or expected is None):
            remark = f"is missing {one.sides[expected is None]}"
        found = replace(found, remark=remark)
    return replace(one, measure=found, got=got, expected=expected)


def worst_inference(name: str, inferences: Sequence[Sequence[Comparison]]) -> Comparison:
    """Return the first of the worst comparisons of one output in several inferences."""
    found = [one for each in inferences for one in each if one.tensor == name]
    order = list(Verdict)
    worst = max(found, key=lambda one: order.index(one.measure.verdict))
    wrong = sum(one.measure.verdict is Verdict.MISMATCH for one in found)
    return replace(worst, wrong_runs=(wrong, len(found))) if 0 < wrong < len(found) else worst


def merge_repeats(runs: Sequence[Sequence[Finding]]) -> list[Finding]:
    """Say once what was found in several runs with taps: of each computation the worst.

    Results that NumPy has nothing to say of are held against each other, where their inputs are the same.
    """
    rest: list[Finding] = []
    same: dict[tuple[object, ...], list[Comparison]] = {}
    for run in runs:
        count = Counter[tuple[object, ...]]()
        for one in run:
            if not isinstance(one, Comparison):
                rest.append(one)
                continue
            key = (one.reference, one.node, one.tensor, one.place, one.caller)
            same.setdefault((*key, count[key]), []).append(one)
            count[key] += 1
    order = list(Verdict)
    for found in same.values():
        first, expected = found[0], found[0].got
        if first.subject != first.reference:
            worst = max(found, key=lambda one: (order.index(one.measure.verdict), one.measure.mismatched))
            wrong = sum(one.measure.verdict is Verdict.MISMATCH for one in found)
            rest.append(replace(worst, wrong_runs=(wrong, len(found))) if 0 < wrong < len(found) else worst)
            continue
        for one in found[1:]:
            assert one.got is not None
            assert expected is not None
            both = zip(first.inputs, one.inputs, strict=False)
            if all(a is b or (a is not None and b is not None and are_equal(a, b)) for a, b in both):
                measured = measure(one.got, expected, default_tolerance(expected, is_node=True))
                if measured.verdict is Verdict.MISMATCH:
                    measured = replace(measured, verdict=Verdict.NONDETERMINISTIC)
                    rest.append(replace(first, measure=measured, got=one.got, expected=expected))
                    break
    return rest


# All runs of one case, and who is wrong.


class ModelSide:
    """One model, its nodes, and what is known of those who ran it."""

    def __init__(self, model: Model, settings: CompareSettings, *, is_single: bool) -> None:
        self.model, self.settings, self.name = model, settings, "" if is_single else model.path
        self.reference, self.nodes = Reference(model), nodes_by_tap(model)
        self.has_states = has_states(model)
        # what was saved does not say all of a tap
        self.by_name = {(tap.scope, tap.output, tap.callers): node for tap, node in self.nodes.items()}
        self.may_draw = any(True for _ in model.walk(random_types(model.domain)))
        """Whether an operator of the model draws random numbers, or may."""
        self.outcomes: dict[str, Outcome] = {}
        """Of one of two models, what is told of each runner."""
        self.hopeless: dict[str, Outcome] = {}
        """Of runners that are not asked again, how they ended."""
        self.entered: set[str] = set()
        """The scopes of bodies that ran in some case."""
        self.uncertain: set[str] = set()
        """Those of bodies of which that is not known for some case; "" stands for all."""


@dataclass(eq=False)
class ModelCase:
    """What runners make of one model for one set of inputs."""

    side: ModelSide
    number: int
    feeds: Feeds
    sight: Sight | None = None
    """What NumPy saw of these inputs; None if it was not asked."""
    contested: dict[str, list[Array]] = field(default_factory=dict)
    """The nodes whose result the document leaves open: where, in each of their computations."""
    runs: list[Runs] = field(default_factory=list)
    """Of each runner, those with taps only if they are to be kept."""
    findings: list[Finding] = field(default_factory=list)
    changes: list[tuple[Outcome, str, Array | None]] = field(default_factory=list, init=False)
    """Of runs without taps the outputs that are not the same with taps, and what these are then."""
    has_blamed_taps: bool = field(default=False, init=False)
    """Whether a node got illegal indices with taps only."""

    @property
    def settings(self) -> CompareSettings:
        return self.side.settings

    @property
    def outcomes(self) -> list[Outcome]:
        """The runs without taps."""
        return [one.plain for one in self.runs]

    def take(self, plain: Outcome, tapped: Iterable[Outcome]) -> None:
        judged, kept = list[list[Finding]](), list[Outcome]()
        for run in tapped:
            for name in plain.outputs if run.runs else ():
                got = run.outputs.get(name)
                if got is None or not any(are_equal(got, one[name]) for one in plain.runs if name in one):
                    self.changes.append((plain, name, got))
            known = replace(run, precision=plain.precision)
            judged.append(self.judge(known))
            if self.settings.keeps_runs:
                kept.append(known)
        self.findings += merge_repeats(judged)
        self.runs.append(Runs(plain, tuple(kept)))

    def judge(self, run: Outcome) -> list[Finding]:
        """Return what is to be said of every computation of every node in a run with taps.

        One that NumPy has nothing to say of is a comparison of the runner with itself.
        """
        found: list[Finding] = []
        for tapped in run.tapped:
            tap = tapped.tap
            scatter = self.side.by_name.get((tap.scope, tap.output, tap.callers))
            if scatter is None:
                continue
            if tapped.problem or not tapped.executions:
                found.append(NotTapped(run.runner, tap.scope, tapped.problem or NEVER))
            for execution in tapped.executions:
                found += self._judged_node(scatter, execution, run)
        return found

    def _judged_node(self, scatter: ScatterNode, execution: Execution, run: Outcome) -> Iterator[Finding]:
        scope, runner, got = scatter.node.scope, run.runner, execution.output
        unknown, operator = Measure(Verdict.NONDETERMINISTIC), str(scatter.spec.key)
        one = Comparison(Level.NODE, scope, output_of(scatter), self.number, runner, NUMPY, unknown)
        one = replace(one, place=execution.place, operator=operator, caller=execution.caller)
        try:
            expected = detail(case_of_node(scatter, execution.inputs))
        except IllegalCase as error:
            yield Guarded.illegal(runner, scatter, self.number, error)
            return
        except Error as error:
            yield NotTapped(runner, scope, str(error))
            yield replace(one, reference=runner, got=got, inputs=execution.inputs)
            return
        if guarded := Guarded.contested(runner, scatter, self.number, expected):
            yield guarded
            seen = self.contested.setdefault(scope, [])
            if not any(np.array_equal(expected.contested, other) for other in seen):
                seen.append(expected.contested)
        requested = self.settings.tolerances.find(*tolerance_names(scatter))
        found = measure_node(expected, got, scatter.reduction, run.precision, requested)
        one = replace(one, measure=found)
        is_equal = found.verdict is Verdict.EQUAL
        yield one if is_equal else replace(one, got=got, expected=expected.values, inputs=execution.inputs)

    def open(self, tapper: "Tapper | None" = None) -> Mapping[str, Open]:
        """Return the outputs of which the document leaves something open, by name.

        The tapper taps the nodes, to see what is contested where NumPy cannot tell.
        """
        if self.sight is None and (tapper is not None or self.contested):
            with suppress(Error):
                _, self.sight = self.side.reference.start(self.feeds)(self.settings.timeout)
        sight = self.sight or Sight()
        if sight.open is not None:
            return sight.open
        apart = replace(self, findings=[])
        for tapped in () if tapper is None else tapper(apart):
            self.judge(tapped)
        if not self.contested and not sight.contested and not self.side.may_draw:
            return {}
        return self.side.reference.foresee(self.feeds, self.contested, self.settings.timeout)

    @cached_property
    def _open(self) -> Mapping[str, Open]:
        return self.open()

    def compare_all(self, *, repeats: bool = True) -> None:
        """Compare outputs: with NumPy if it computed the model, or else with the first that did.

        Those of `repeats` as well, that a runner was asked for.
        """
        ran = [one for one in self.outcomes if one.status is Status.OK]
        ran.sort(key=lambda one: not one.runner.endswith(NUMPY))
        for reference, subject in combinations(ran, 2):
            if self.settings.pairwise or reference is ran[0]:
                self.compare(subject, reference)
        for outcome in self.outcomes if repeats else ():
            if not self.side.has_states:
                self.findings += compare_runs(outcome, self.number, self.side.name, lambda: self._open)
            elif len(outcome.runs) > 1 and len(ran) == 1:
                self.findings.append(f"{outcome.runner}: {_NO_LATER_INFERENCES}")

    def compare(self, subject: Outcome, reference: Outcome) -> None:
        """Compare the outputs of two runs; of a model with states in each inference."""
        inferences = list[list[Comparison]]()
        count = min(len(subject.runs), len(reference.runs)) if self.side.has_states else 1
        for number in range(max(count, 1)):
            first, second = (replace(one, runs=one.runs[number : number + 1]) for one in (subject, reference))
            given = first, second, self.number, self.settings.tolerances, lambda: self._open
            inferences.append([*compare_outputs(*given, model=self.side.name)])
        names = dict.fromkeys(one.tensor for one in inferences[0])
        self.findings += [worst_inference(name, inferences) for name in names]

    def blame_taps(self) -> None:
        """Take back illegal indices that a runner computes with taps only: the run without them decides.

        Taps may change how a plugin computes what is before a node. Where NumPy computes the model, the
        inputs are legal by the document and the outputs without taps are right; elsewhere an output is
        another one without taps.
        """
        numpy = next((one for one in self.outcomes if one.runner.endswith(NUMPY)), None)
        is_computed = numpy is not None and numpy.status is Status.OK
        seen = {} if self.sight is None else self.sight.seen
        plain = {one.runner: one for one in self.outcomes}
        for place, one in enumerate(self.findings):
            if not isinstance(one, Guarded) or not one.is_illegal or one.runner not in plain:
                continue
            ran = plain[one.runner]
            if (
                ran is numpy
                or ran.status is not Status.OK
                or (one.node in seen and seen[one.node].is_illegal)
            ):
                continue
            if is_computed:
                assert numpy is not None
                are_right = bool(ran.outputs) and all(
                    self._agree(ran, array, numpy.outputs.get(name)) for name, array in ran.outputs.items()
                )
            else:
                changed = [change for change in self.changes if change[0] is ran]
                are_right = any(not self._agree(ran, ran.outputs[name], got) for _, name, got in changed)
            if are_right:
                self.has_blamed_taps = True
                reason = f"with taps it computes other indices, illegal ones ({one.message})"
                self.findings[place] = NotTapped(one.runner, one.node, reason)

    def _agree(self, ran: Outcome, got: Array, expected: Array | None) -> bool:
        if expected is None:
            return False
        allowed = default_tolerance(expected, ran.precision)
        return measure(got, expected, allowed).verdict is not Verdict.MISMATCH

    def find_outliers(self) -> None:
        """Name the runner that says something else where three or more say something.

        With NumPy as the reference, runners that agree with each other against it are compared too: then
        NumPy, that is the document as it is read here, stands alone. Of the iterations of a loop, and the
        calls of a function, the first is named in which somebody does.
        """
        by_tensor: dict[tuple[object, ...], list[Comparison]] = {}
        for one in comparisons_in(self.findings):
            if one.subject != one.reference:
                place = (one.level, one.node, one.tensor, one.place, one.caller)
                by_tensor.setdefault(place, []).append(one)
        found: dict[tuple[object, ...], Outlier] = {}
        for key, same in by_tensor.items():
            if outlier := self._outlier(same):
                found.setdefault(key[:3], outlier)
        self.findings += found.values()

    def _outlier(self, found: Sequence[Comparison]) -> Outlier | None:
        first, reference = found[0], found[0].reference
        verdicts = {one.subject: one.measure.verdict for one in found if one.reference == reference}
        wrong = [name for name, verdict in verdicts.items() if verdict is Verdict.MISMATCH]
        if not wrong or len(verdicts) + 1 < _CAMPS:
            return None
        right = [name for name in verdicts if name not in wrong]
        ran = [one for one in self.outcomes if one.runner in wrong and first.tensor in one.outputs]
        precision = coarser(*(one.precision for one in ran)) if ran else ""
        arrays = [one.outputs[first.tensor] for one in ran]
        allowed = self.settings.tolerances.find(first.tensor)
        among = (_measured(first.tensor, one, arrays[0], allowed, precision) for one in arrays[1:])
        runners, names = tuple(wrong), listed(wrong)
        if right:
            message = f"{act(wrong, 'departs', 'depart')} from what {listed([reference, *right])} say"
        elif first.level is Level.NODE:
            message = f"{names} all differ from {reference}"
        elif len(ran) == len(wrong) and all(one.verdict is not Verdict.MISMATCH for one in among):
            runners, message = (reference,), f"{names} agree with each other against {reference}"
        else:
            message = f"{names} differ from {reference}, and from each other"
        worst = next((one.measure.worst for one in found if one.measure.verdict is Verdict.MISMATCH), None)
        if reference.endswith(NUMPY) and worst is not None:
            is_open = worst.expected != worst.expected  # no document says what becomes of NaN in a reduction
            source = "as NumPy computes it" if is_open else "by the document"
            message += f": {source} {list(worst.index)} is {shown(worst.expected)}, not {shown(worst.got)}"
        return Outlier(first.level, first.node, first.tensor, self.number, runners, message)

    def explain_changes(self) -> None:
        """Say of outputs that taps changed whether it is rounding, and if not, which of the two is wrong.

        NumPy tells, or else the nodes if all are right when they are tapped; of each output of a runner
        one thing is said.
        """
        numpy = next((one for one in self.outcomes if one.runner.endswith(NUMPY)), None)
        document = {} if numpy is None or numpy.status is not Status.OK else numpy.outputs
        compared = comparisons_in(self.findings)
        known = {(one.subject, one.tensor, one.reference) for one in compared if one.level is Level.MODEL}
        of_nodes = [one for one in compared if one.level is Level.NODE]
        hidden = {one.runner for one in of_kind(NotTapped, self.findings) if one.reason != NEVER}
        wrong_somewhere = {one.subject for one in of_nodes if one.measure.verdict.is_difference}
        are_right = {one.subject for one in of_nodes} - hidden - wrong_somewhere
        done: set[tuple[str, str]] = set()
        for ran, name, tapped in self.changes:
            runner, without, right = ran.runner, ran.outputs[name], document.get(name)
            if (runner, name) in done:
                continue
            allowed = self.settings.tolerances.find(name), ran.precision, lambda: self._open
            found = _measured(name, tapped, without, *allowed)
            against_document = [
                _measured(name, got, right, *allowed) for got in (tapped, without) if right is not None
            ]
            is_wrong = [one.verdict is Verdict.MISMATCH for one in against_document]
            if found.verdict is not Verdict.MISMATCH or (is_wrong and not any(is_wrong)):
                assert tapped is not None
                exact = measure(tapped, without, EXACT)
                how = exact.remark or f"by up to {exact.max_abs:.3g}"
                why = "indices repeat before it" if found.verdict is Verdict.CONTESTED else "fusions differ"
                why = found.excuse.why if found.excuse is not None and found.excuse.is_random else why
                self.findings.append(f"{runner}: output {name} changes {how} when nodes are tapped: {why}")
                continue
            done.add((runner, name))
            if tapped is None:
                found = replace(found, remark="is missing when nodes are tapped")
            make = partial(_of_output, name, self.number, runner)
            itself = replace(found, verdict=Verdict.NONDETERMINISTIC)
            comparison, end = make(runner, itself, tapped, without, tapped=True), ""
            if right is not None:
                if is_wrong[1]:
                    assert numpy is not None
                    comparison = make(numpy.runner, against_document[1], without, right)
                if found.worst is not None and len(found.worst.index) == right.ndim:
                    end = f"; by the document it is {shown(plain(right[found.worst.index]))}"
                words = ["wrong" if wrong else "right" for wrong in is_wrong]
                end += f": {words[0]} with taps, {words[1]} without"
            elif tapped is not None and runner in are_right:
                untapped = _measured(name, without, tapped, *allowed)
                comparison = make(runner, untapped, without, tapped, tapped=True)
                end = "; with taps every scatter node is right"
            if comparison.reference == runner or (runner, name, comparison.reference) not in known:
                self.findings.append(comparison)
            how = f": {found.remark}"
            if found.worst is not None:
                place, got, expected = found.worst.words
                how = f": {place} {got} with taps and {expected} without"
            message = f"{runner} contradicts itself when nodes are tapped{how}{end}"
            outliers = [one for one in of_kind(Outlier, self.findings) if one.node is None]
            is_named = any(one.tensor == name and runner in one.runners for one in outliers)
            outlier = Outlier(Level.MODEL, None, name, self.number, (runner,), message, tapped=True)
            self.findings.append(message if is_named else outlier)


# All runs of two models.


def compare_models(
    before: Outcome,
    after: Outcome,
    cases: Sequence[ModelCase],
    pairing: Pairing,
    tapper: Tapper | None,
    *,
    keeps_types: bool = False,
) -> Iterator[Comparison]:
    """Yield comparisons of the second of two models with the first, then of each with itself.

    Of models with states each inference is compared, and the worst of each output counts.
    """
    known = [cache(partial(case.open, tapper)) for case in cases]
    if before.status is Status.OK and after.status is Status.OK:
        inferences = list[list[Comparison]]()
        has_states = any(case.side.has_states for case in cases)
        count = min(len(after.runs), len(before.runs)) if has_states else 1
        for number in range(max(count, 1)):
            second, first = (replace(one, runs=one.runs[number : number + 1]) for one in (after, before))
            inferences.append([
                *compare_outputs(
                    replace(second, runs=tuple(map(pairing.by_first, second.runs))),
                    first,
                    cases[0].number,
                    cases[0].settings.tolerances,
                    lambda: pairing.by_first(known[1]()),
                    known[0],
                    pairing=None if keeps_types else pairing,
                    is_settled=all(case.sight is not None and case.sight.open is not None for case in cases),
                )
            ])  # fmt: skip
        names = dict.fromkeys(one.tensor for one in inferences[0])
        yield from (worst_inference(name, inferences) for name in names)
    for case, outcome, open in zip(cases, (before, after), known, strict=True):
        if not case.side.has_states:
            yield from compare_runs(outcome, case.number, case.side.name, open)


def departures(
    number: int,
    pairing: Pairing,
    cross: Sequence[Comparison],
    of_sides: Sequence[Sequence[Comparison]],
    where_open: str,
) -> Iterator[Outlier]:
    """Say of each output whether the models differ by the document, and which runners depart from it.

    Models may differ only where one of them leaves the result open, which `where_open` says. Where NumPy
    computes one of the models only, a runner that is right there speaks for the other.
    """
    names = {match.first.name: match.second.name for match in pairing.outputs}
    paths = [model.path for model in pairing.models]
    short = short_names(*paths)
    for tensor in dict.fromkeys(one.tensor for one in cross):
        own = (tensor, names.get(tensor, tensor))
        told = [
            {one.subject: one for one in side if one.tensor == name and one.relation is Relation.DOCUMENT}
            for side, name in zip(of_sides, own, strict=True)
        ]
        wrong = [
            {name: one for name, one in side.items() if one.measure.verdict is Verdict.MISMATCH}
            for side in told
        ]
        apart = {
            one.subject: one
            for one in cross
            if one.tensor == tensor
            and one.relation is Relation.MODELS
            and one.measure.verdict is Verdict.MISMATCH
        }
        make = partial(Outlier, Level.MODEL, None, tensor, number)
        if NUMPY in apart:
            agree = [name for name in apart if name != NUMPY and not any(name in side for side in wrong)]
            by = f"{listed([NUMPY, *agree])} agree that " if agree else "by the document "
            what = f"{short[1]} computes something else than {short[0]}"
            if side := apart[NUMPY].measure.open_once:
                what = f"{short[1]} and {short[0]} differ only {where_open}, which "
                what += f"{short[side == SUBJECT]} does not specify"
            message = f"{by}{what}{_elements(apart[NUMPY])}"
            yield make((), message, model=paths[1])
        groups: dict[tuple[int, ...], list[str]] = {}
        for runner in dict.fromkeys([*wrong[0], *wrong[1]]):
            places = tuple(place for place, side in enumerate(wrong) if runner in side)
            groups.setdefault(places, []).append(runner)
        for places, runners in groups.items():
            where = listed([short[place] for place in places])
            first = wrong[places[0]][runners[0]]
            who = act(runners, "departs", "depart")
            message = f"{who} from the document on {where}{_elements(first)}"
            yield make(tuple(runners), message, model=paths[places[0]] if len(places) == 1 else "")
        for known, other in ((0, 1), (1, 0)):
            right = [name for name in apart if name in told[known] and name not in wrong[known]]
            if right and not told[other]:
                message = f"{act(right, 'is', 'are')} right on {short[known]} and another on "
                message += f"{short[other]}, which NumPy cannot compute{_elements(apart[right[0]])}"
                yield make(tuple(right), message, model=paths[other])


def _elements(one: Comparison) -> str:
    """Return ": [0, 1] is 2 in before.xml, 3 in after.xml", or "by the document [0, 1] is 2, not 3"."""
    if one.measure.worst is None:
        return f": {one.measure.remark}" if one.measure.remark else ""
    place, got, expected = one.measure.worst.words
    if one.relation is Relation.DOCUMENT:
        return f": {place} {expected}, not {got}"
    return f": {place} {one.both(got, expected)}"


def idle_runners(sides: Sequence[ModelSide], findings: Sequence[Finding]) -> Iterator[str]:
    """Say who ran one model, and was held against nobody."""
    found = comparisons_in(findings)
    judged = {name for one in found for name in (one.subject, one.reference)}
    for side, name in zip(sides, short_names(*(side.name for side in sides)), strict=True):
        for outcome in side.outcomes.values():
            if found and outcome.status is Status.OK and outcome.runner not in judged:
                why = "which NumPy does not compute: --pairwise compares it with others there"
                yield f"{outcome.runner} ran {name} only, {why}"


# What is said of all cases.


def bodies_not_run(
    sides: Sequence[ModelSide], findings: Sequence[Finding], never: Collection[tuple[int, str]]
) -> tuple[list[str], list[str]]:
    """Return the bodies that ran in no case, and those of which that is not known; as in a sentence."""
    is_single = len(sides) == 1
    judged = {one.node for one in comparisons_in(findings) if one.node is not None}
    judged |= {one.node for one in of_kind(Guarded, findings)}
    passed_by = {one.node for one in of_kind(NotTapped, findings) if one.reason == NEVER}
    absent, unclear = dict[str, None](), dict[str, None]()
    for place, side in enumerate(sides):
        bodies = side.reference.optional_bodies(has_scatter=is_single)
        bodies = [
            body
            for body in bodies
            if body.scope not in side.entered
            and (place, body.scope) not in never
            and not (is_single and any(node.startswith(body.scope) for node in judged))
        ]
        reachability = reachability_of(Facts(model=side.model)) if bodies else None
        for body in bodies:
            node = body.plan.steps[0].node if body.plan.steps else None
            if node is not None and reachability is not None:
                barriers = reachability.reach(node).barriers
                if any(barrier.kind.is_certain for barrier in barriers):
                    continue
            is_unclear = any(body.scope.startswith(scope) for scope in side.uncertain)
            is_unclear = is_unclear and not any(node.startswith(body.scope) for node in passed_by)
            (unclear if is_unclear else absent)[body.name] = None
    return list(absent), list(unclear)


def suspects(model: Model, comparisons: Iterable[Comparison]) -> dict[str, dict[str, str]]:
    """Return nodes that meet a defect which taps hide, of each runner whose outputs are not known right."""
    of_outputs = [one for one in comparisons if one.level is Level.MODEL]
    wrong = {one.subject for one in of_outputs if one.measure.verdict.is_difference}
    wrong |= {one.subject for one in comparisons} - {
        name for one in of_outputs for name in (one.subject, one.reference)
    }
    runners = sorted({name.removeprefix(SAVED) for name in wrong})
    return {runner: nodes for runner in runners if (nodes := hidden_by_taps(model, runner))}


def why_nothing(outcomes: Sequence[Outcome]) -> str:
    ran = [one for one in outcomes if one.status is Status.OK]
    named = [one.runner for one in ran if not one.implicit]
    if len(ran) == 1 and named:
        return f"{named[0]} alone ran the model, and no scatter node of it could be held against NumPy"
    if named:
        return "the model has no outputs and no scatter nodes"
    if other := [one for one in outcomes if one.reason == OTHER_FORMAT]:
        return f"{', '.join(one.runner for one in other)}: {other[0].message}"
    return "no runner ran the model"


def old_and_new(new: Sequence[Outcome], old: Sequence[Outcome]) -> Iterator[tuple[Outcome, Outcome]]:
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


def of_kind(kind: type[_Kind], findings: Iterable[object]) -> list[_Kind]:
    return [one for one in findings if isinstance(one, kind)]


def comparisons_in(findings: Iterable[Finding]) -> list[Comparison]:
    """Return those of outputs, then those of nodes."""
    return sorted(of_kind(Comparison, findings), key=lambda one: one.level is Level.NODE)
