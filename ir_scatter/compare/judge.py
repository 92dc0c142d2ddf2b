"""Judges what runners computed: compares outputs and nodes, and names the runner that is wrong.

A run with taps returns intermediate tensors of scatter nodes as extra outputs. A mark records which elements
of a tensor the specification does not determine (`guard`).
"""

import time
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
from ir_scatter.compare.first_difference import PartDifference, taps_of_all, values_of_taps
from ir_scatter.compare.guard import Observations, Unspecified, excuse_unspecified, find_one_sided
from ir_scatter.compare.measure import (
    EXACT,
    SUBJECT,
    Measure,
    Tolerance,
    Tolerances,
    Verdict,
    coarsest,
    default_tolerance,
    format_element,
    measure,
    measure_node,
    to_python,
)
from ir_scatter.compare.nodes import has_states, nodes_by_tap, output_name, tolerance_names
from ir_scatter.compare.numpy_source import Reference
from ir_scatter.compare.pairing import Pairing, in_one_type
from ir_scatter.compare.phases import begin, case_of
from ir_scatter.compare.result import (
    NOT_COMPUTED,
    SAVED,
    CompareSettings,
    Comparison,
    FirstDifference,
    Guarded,
    Level,
    NotTapped,
    Outlier,
    Relation,
    Runs,
    short_names,
    with_verb,
)
from ir_scatter.compare.rounding import MODEL_TYPES, Precision, Roundings
from ir_scatter.compare.rounding_judge import RoundedSide, RoundingJudge, precisions_of
from ir_scatter.core.arrays import Array, are_equal
from ir_scatter.core.errors import Error, IllegalCase
from ir_scatter.core.model import Model
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import is_static
from ir_scatter.core.words import listed
from ir_scatter.evaluate.certainty import detail
from ir_scatter.evaluate.model import case_of_node
from ir_scatter.formats import dataflow_of
from ir_scatter.ops.general import random_types
from ir_scatter.portability import hidden_by_taps
from ir_scatter.runners.base import OTHER_FORMAT, Execution, Outcome, Status, Tap
from ir_scatter.runners.defaults import NUMPY, TAPS

Feeds = Mapping[str, Array]

Judgement = Comparison | FirstDifference | Guarded | NotTapped | Outlier | str
"""A result of judging one case; a plain string is a remark for the user."""

_Kind = TypeVar("_Kind")

FindUnspecified = Callable[[], Mapping[str, Unspecified]]
"""Returns the marks of outputs with unspecified elements, by name; slow, so called only if outputs differ."""

Tapper = Callable[["ModelCase"], Iterable[Outcome]]
"""Runs a case again with taps, that is, with intermediate tensors of scatter nodes as extra outputs."""

ReadValues = Callable[["ModelCase", str, Sequence[Tap]], Outcome | None]
"""Runs a case again on the named runner with these taps; returns None if that runner is not available
here."""

_FEWEST_RUNNERS = 3
"""Minimum results needed to call one of them an outlier: two that differ have no majority."""

_SILENT = frozenset({Status.UNSUPPORTED, Status.UNAVAILABLE})
"""Statuses of runners that never ran the model, so that they say nothing about its inputs."""

_NO_LATER_INFERENCES = "inferences after the first depend on states, and no other runner computes them"


# Outputs of models.


def compare_outputs(
    subject: Outcome,
    reference: Outcome,
    case: int,
    tolerances: Tolerances,
    *unspecified: FindUnspecified,
    pairing: Pairing | None = None,
    model: str = "",
    is_settled: bool = False,
    rounding_judge: RoundingJudge | None = None,
) -> Iterator[Comparison]:
    """Yield a comparison for each output of two runs.

    Args:
        subject: the run that is judged; if two models are compared, that of the second model, with its
            outputs renamed to those of the first.
        reference: the run that it is compared with.
        case: the number of the case.
        tolerances: those that the user sets.
        unspecified: one function that finds the marks of the subject's model; a second one for the
            reference's model, if that is another model.
        pairing: the matching outputs of two models.
        model: the path of the model if two models are compared, but both runs are of this one.
        is_settled: whether all marks are known; then an element that only one model specifies is a mismatch.
        rounding_judge: decides what rounding explains; only called if outputs differ.
    """
    precision, models = coarsest(subject.precision, reference.precision), (model, model)
    second_names: dict[str, str] = {}
    if pairing is not None:
        precision = coarsest(precision, pairing.precision)
        models = pairing.models[1].path, pairing.models[0].path
        second_names = {match.first.name: match.second.name for match in pairing.outputs}
    not_computed = {*subject.not_computed, *reference.not_computed}
    for name in dict.fromkeys((*reference.outputs, *subject.outputs)):
        got, expected = subject.outputs.get(name), reference.outputs.get(name)
        if name in not_computed and (got is None or expected is None):
            continue
        tolerance = tolerances.find(name, second_names.get(name))
        if pairing is not None and got is not None and expected is not None and got.dtype != expected.dtype:
            got, expected, of_narrower = in_one_type(got, expected, precision)
            tolerance = tolerance or of_narrower
        difference = _measure_output(
            name,
            got,
            expected,
            tolerance,
            precision,
            *unspecified,
            is_settled=is_settled,
            rounding_judge=rounding_judge,
            stored="" if pairing is None else pairing.precision,
        )
        yield _comparison_of_output(
            name, case, subject.runner, reference.runner, difference, got, expected, models=models
        )


def compare_runs(
    outcome: Outcome, case: int, model: str, unspecified: FindUnspecified
) -> Iterator[Comparison]:
    """Compare repeated runs of a runner on the same inputs; yield a comparison per output that changes.

    Outputs that depend on random numbers are expected to change and are left out.
    """
    for name, first in outcome.outputs.items():
        got = None
        difference = Measure(Verdict.MISMATCH, first.size, first.size, remark="is missing in some runs")
        if all(name in run for run in outcome.runs):
            got = next((run[name] for run in outcome.runs[1:] if not are_equal(run[name], first)), None)
            if got is None:
                continue
            difference = measure(got, first, default_tolerance(first))
            mark = unspecified().get(name)
            if mark is not None and mark.excuse.is_random:
                difference = excuse_unspecified(difference, got, first, mark, mark)
        if difference.verdict is not Verdict.CONTESTED:
            difference = replace(difference, verdict=Verdict.NONDETERMINISTIC)
        runner, models = outcome.runner, (model, model)
        yield _comparison_of_output(name, case, runner, runner, difference, got, first, models=models)


def _measure_output(
    name: str,
    got: Array | None,
    expected: Array | None,
    tolerance: Tolerance | None,
    precision: str,
    *unspecified: FindUnspecified,
    is_settled: bool = False,
    rounding_judge: RoundingJudge | None = None,
    stored: str = "",
) -> Measure:
    """Compare two outputs, except for elements that the compared models do not specify.

    A difference beyond the tolerance of f32 is a mismatch unless rounding explains it. If rounding was not
    measured, the tolerance of the precision decides. `stored` is the coarser precision of one model's
    weights: it allows a further difference, which no computation of either model reveals.
    """
    if got is None or expected is None:
        size = sum(0 if array is None else array.size for array in (got, expected))
        remark = "is missing" if got is None else "is missing in the reference"
        return Measure(Verdict.MISMATCH, size, size, remark=remark)
    difference = measure(got, expected, tolerance or default_tolerance(expected, precision))
    allowed, marks = default_tolerance(expected, stored), list[Unspecified | None]()
    is_wrong = difference.verdict is Verdict.MISMATCH
    if is_wrong and unspecified:
        marks = [find().get(name) for find in unspecified]
    bound = None
    is_comparable = rounding_judge is not None and tolerance is None and not difference.remark
    if is_comparable and Verdict.MISMATCH in {difference.verdict, measure(got, expected, allowed).verdict}:
        assert rounding_judge is not None
        bound = rounding_judge.bound(name, expected.shape)
    if is_settled and marks:
        one_sided = find_one_sided(difference, got, expected, marks[0], marks[-1], bound)
        if one_sided is not None:
            return one_sided
    if bound is not None:
        assert rounding_judge is not None
        explained = rounding_judge.explain(name, got, expected, allowed)
        if explained is not None:
            return explained
    if is_wrong and marks and rounding_judge is not None and (ties := rounding_judge.marks(name)) is not None:
        marks = ties
    return excuse_unspecified(difference, got, expected, marks[0], marks[-1]) if marks else difference


def _comparison_of_output(
    name: str,
    case: int,
    subject: str,
    reference: str,
    difference: Measure,
    got: Array | None,
    expected: Array | None,
    *,
    tapped: bool = False,
    models: tuple[str, str] = ("", ""),
) -> Comparison:
    comparison = Comparison(Level.MODEL, None, name, case, subject, reference, difference, tapped=tapped)
    comparison = replace(comparison, subject_model=models[0], reference_model=models[1])
    if difference.verdict is Verdict.EQUAL:
        return comparison
    if comparison.relation is not Relation.DOCUMENT:  # the reference is not the expected result
        remark = difference.remark.replace(", expected ", ", the other ")
        if comparison.relation is not Relation.REPEAT and (got is None or expected is None):
            remark = f"is missing {comparison.sides[expected is None]}"
        difference = replace(difference, remark=remark)
    return replace(comparison, measure=difference, got=got, expected=expected)


def worst_inference(name: str, inferences: Sequence[Sequence[Comparison]]) -> Comparison:
    """Return the worst comparison of one output over several inferences; the first of equally bad ones."""
    comparisons = [comparison for each in inferences for comparison in each if comparison.tensor == name]
    order = list(Verdict)
    worst = max(comparisons, key=lambda comparison: order.index(comparison.measure.verdict))
    return _count_wrong_runs(worst, comparisons)


def _count_wrong_runs(worst: Comparison, comparisons: Sequence[Comparison]) -> Comparison:
    """Set the number of runs in which a tensor is wrong; unchanged if all runs have the same verdict."""
    wrong = sum(comparison.measure.verdict is Verdict.MISMATCH for comparison in comparisons)
    if 0 < wrong < len(comparisons):
        return replace(worst, wrong_runs=(wrong, len(comparisons)))
    return worst


def merge_repeats(runs: Sequence[Sequence[Judgement]]) -> list[Judgement]:
    """Merge the judgements of repeated runs with taps: keep the worst comparison of each node computation.

    If NumPy cannot judge a computation, the results of runs with equal inputs are compared instead.
    """
    merged: list[Judgement] = []
    computations: dict[tuple[object, ...], list[Comparison]] = {}
    for run in runs:
        count = Counter[tuple[object, ...]]()
        for judgement in run:
            if not isinstance(judgement, Comparison):
                merged.append(judgement)
                continue
            key = (judgement.reference, judgement.node, judgement.tensor, judgement.place, judgement.caller)
            computations.setdefault((*key, count[key]), []).append(judgement)
            count[key] += 1
    order = list(Verdict)
    for comparisons in computations.values():
        first, expected = comparisons[0], comparisons[0].got
        if first.subject != first.reference:
            worst = max(
                comparisons, key=lambda each: (order.index(each.measure.verdict), each.measure.mismatched)
            )
            merged.append(_count_wrong_runs(worst, comparisons))
            continue
        for comparison in comparisons[1:]:
            assert comparison.got is not None
            assert expected is not None
            if _have_equal_inputs(first, comparison):
                difference = measure(comparison.got, expected, default_tolerance(expected, is_node=True))
                if difference.verdict is Verdict.MISMATCH:
                    difference = replace(difference, verdict=Verdict.NONDETERMINISTIC)
                    merged.append(replace(first, measure=difference, got=comparison.got, expected=expected))
                    break
    return merged


def _have_equal_inputs(first: Comparison, second: Comparison) -> bool:
    return all(
        a is b or (a is not None and b is not None and are_equal(a, b))
        for a, b in zip(first.inputs, second.inputs, strict=False)
    )


# All runs of one case.


class ModelSide:
    """One of the compared models: its nodes, its NumPy reference, and its results so far."""

    def __init__(self, model: Model, settings: CompareSettings, *, is_single: bool) -> None:
        self.model, self.settings, self.name = model, settings, "" if is_single else model.path
        self.reference, self.nodes = Reference(model, has_taps=is_single), nodes_by_tap(model)
        self.has_states = has_states(model)
        self.by_name = {(tap.scope, tap.output, tap.callers): node for tap, node in self.nodes.items()}
        """Scatter nodes by (scope, output, callers) of their tap, the part of a tap that is saved on disk."""
        self.may_draw = any(True for _ in model.walk(random_types(model.domain)))
        """Whether an operator of the model may draw random numbers."""
        self.outcomes: dict[str, Outcome] = {}
        """If two models are compared: the reported outcome of each runner for this model."""
        self.final_outcomes: dict[str, Outcome] = {}
        """Outcomes of runners that timed out or are unavailable, and so are not started again for this model.
        """
        self.entered: set[str] = set()
        """The scopes of branches and bodies that ran in some case."""
        self.uncertain: set[str] = set()
        """The scopes of branches and bodies that may have run in some case; "" stands for all."""


@dataclass(eq=False)
class ModelCase:
    """The runs of one model on one set of inputs, and the judgements about them."""

    side: ModelSide
    number: int
    feeds: Feeds
    observations: Observations | None = None
    """What NumPy observed on these inputs; None if it did not compute them."""
    contested: dict[str, list[Array]] = field(default_factory=dict)
    """Masks of contested elements in tapped nodes, by scope of the node; equal masks are stored once."""
    runs: list[Runs] = field(default_factory=list)
    """The runs of each runner; runs with taps are stored only if the settings ask for it."""
    judgements: list[Judgement] = field(default_factory=list)
    changes: list[tuple[Outcome, str, Array | None]] = field(default_factory=list, init=False)
    """Outputs that change when taps are added: (plain run, output name, array of the run with taps)."""
    rounding_seconds: float = field(default=0.0, init=False)
    """Seconds spent on measuring rounding errors."""
    has_blamed_taps: bool = field(default=False, init=False)
    """Whether a runner computed illegal indices only because of taps."""
    roundings: dict[object, Sequence[Roundings]] = field(default_factory=dict, init=False)
    """Cache of measured rounding errors, by precision and seeds; filled when two outputs differ."""

    @property
    def settings(self) -> CompareSettings:
        return self.side.settings

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of the runs without taps."""
        return [runs.plain for runs in self.runs]

    @property
    def numpy_outcome(self) -> Outcome | None:
        """The outcome of NumPy, computed now or loaded from disk; None if NumPy did not compute the model."""
        return next((outcome for outcome in self.outcomes if outcome.runner.endswith(NUMPY)), None)

    def add_runs(self, plain: Outcome, tapped: Iterable[Outcome]) -> None:
        """Store the runs of a runner; judge the tapped nodes."""
        judgements, kept_runs = list[list[Judgement]](), list[Outcome]()
        for run in tapped:
            for name in plain.outputs if run.runs else ():
                got = run.outputs.get(name)
                plain_arrays = [outputs[name] for outputs in plain.runs if name in outputs]
                if got is None or not any(are_equal(got, array) for array in plain_arrays):
                    self.changes.append((plain, name, got))
            tapped_run = replace(run, precision=plain.precision)
            judgements.append(self.judge_taps(tapped_run))
            if self.settings.keeps_runs:
                kept_runs.append(tapped_run)
        self.judgements += merge_repeats(judgements)
        self.runs.append(Runs(plain, tuple(kept_runs)))

    def judge_taps(self, run: Outcome) -> list[Judgement]:
        """Judge every computation of every tapped node in a run.

        A computation that NumPy cannot judge becomes a comparison of the runner with itself.
        """
        judgements: list[Judgement] = []
        for tapped in run.tapped:
            tap = tapped.tap
            scatter = self.side.by_name.get((tap.scope, tap.output, tap.callers))
            if scatter is None:
                continue
            if tapped.problem or not tapped.executions:
                judgements.append(NotTapped(run.runner, tap.scope, tapped.problem or NOT_COMPUTED))
            for execution in tapped.executions:
                judgements += self._judge_execution(scatter, execution, run)
        return judgements

    def _judge_execution(
        self, scatter: ScatterNode, execution: Execution, run: Outcome
    ) -> Iterator[Judgement]:
        scope, runner, got = scatter.node.scope, run.runner, execution.output
        unknown, operator = Measure(Verdict.NONDETERMINISTIC), str(scatter.spec.key)
        tensor = output_name(scatter)
        comparison = Comparison(Level.NODE, scope, tensor, self.number, runner, NUMPY, unknown)
        comparison = replace(comparison, place=execution.place, operator=operator, caller=execution.caller)
        try:
            expected = detail(case_of_node(scatter, execution.inputs))
        except IllegalCase as error:
            yield Guarded.illegal(runner, scatter, self.number, error)
            return
        except Error as error:
            yield NotTapped(runner, scope, str(error))
            yield replace(comparison, reference=runner, got=got, inputs=execution.inputs)
            return
        if guarded := Guarded.contested(runner, scatter, self.number, expected):
            yield guarded
            masks = self.contested.setdefault(scope, [])
            if not any(np.array_equal(expected.contested, mask) for mask in masks):
                masks.append(expected.contested)
        tolerance = self.settings.tolerances.find(*tolerance_names(scatter))
        difference = measure_node(expected, got, scatter.reduction, run.precision, tolerance)
        comparison = replace(comparison, measure=difference)
        if difference.verdict is Verdict.EQUAL:
            yield comparison
        else:
            yield replace(comparison, got=got, expected=expected.values, inputs=execution.inputs)

    def find_unspecified(self, tapper: Tapper | None = None) -> Mapping[str, Unspecified]:
        """Return the marks of the outputs with unspecified elements, by name.

        If NumPy cannot compute the model up to some scatter node, `tapper` reads the tensors of that node
        from a runner; its contested elements are computed from these.
        """
        if self.observations is None and (tapper is not None or self.contested):
            with suppress(Error):
                timeout = self.settings.timeout
                _, self.observations = self.side.reference.start(self.feeds, timeout=timeout)(timeout)
        observations = self.observations or Observations()
        known = observations.unspecified
        if known is not None and not observations.not_computed:
            return known
        separate = replace(self, judgements=[])
        for tapped in () if tapper is None else tapper(separate):
            self.judge_taps(tapped)
        if not self.contested and not observations.contested and not self.side.may_draw:
            return known or {}
        in_part = self.side.reference.find_unspecified(self.feeds, self.contested, self.settings.timeout)
        if known is None:
            return in_part
        behind = {name: mark for name, mark in in_part.items() if name in observations.not_computed}
        return {**known, **behind}

    @cached_property
    def _unspecified(self) -> Mapping[str, Unspecified]:
        return self.find_unspecified()

    def measure_rounding(self, precision: Precision, seeds: Sequence[int] = ()) -> Sequence[Roundings]:
        """Return the rounding errors of all outputs, one mapping per inference.

        Empty if NumPy cannot compute the model. All measurements of a case share the time limit of one run.
        """
        key = precision, tuple(seeds)
        if key not in self.roundings:
            begin(f"rounding{case_of(self.number, self.settings.cases)}")
            left, started = self.settings.timeout - self.rounding_seconds, time.monotonic()
            self.roundings[key] = (
                self.side.reference.measure_rounding(self.feeds, self.settings.repeat, left, precision, seeds)
                if left > 0
                else []
            )
            self.rounding_seconds += time.monotonic() - started
        return self.roundings[key]

    def rounding_judge(self, subject: Outcome, reference: Outcome, number: int = 0) -> RoundingJudge:
        """Return a judge of rounding for two runs of this case."""
        side = RoundedSide(self.measure_rounding, number)
        is_numpy = reference.runner.removeprefix(SAVED) == NUMPY
        return RoundingJudge((side,) if is_numpy else (side, side), precisions_of(subject, reference))

    def compare_all(self, *, repeats: bool = True) -> None:
        """Compare the outputs of all runs with NumPy's, or with the first runner's if NumPy has none.

        With `repeats`, repeated runs of each runner are also compared with each other.
        """
        completed = [outcome for outcome in self.outcomes if outcome.status is Status.OK]
        completed.sort(key=lambda outcome: not outcome.runner.endswith(NUMPY))
        for reference, subject in combinations(completed, 2):
            if self.settings.pairwise or reference is completed[0]:
                self.compare(subject, reference)
            elif reference is completed[1]:  # for outputs that NumPy does not compute
                self.compare(subject, reference, completed[0].not_computed)
        for outcome in self.outcomes if repeats else ():
            if not self.side.has_states:
                self.judgements += compare_runs(
                    outcome, self.number, self.side.name, lambda: self._unspecified
                )
            elif len(outcome.runs) > 1 and len(completed) == 1:
                self.judgements.append(f"{outcome.runner}: {_NO_LATER_INFERENCES}")

    def compare(self, subject: Outcome, reference: Outcome, only: Collection[str] | None = None) -> None:
        """Compare the outputs of two runs, or only those named in `only`.

        If the model has states, the worst of all inferences counts.
        """
        inferences = list[list[Comparison]]()
        count = min(len(subject.runs), len(reference.runs)) if self.side.has_states else 1
        for number in range(max(count, 1)):
            comparisons = compare_outputs(
                _select_inference(subject, number),
                _select_inference(reference, number),
                self.number,
                self.settings.tolerances,
                lambda: self._unspecified,
                model=self.side.name,
                rounding_judge=self.rounding_judge(subject, reference, number),
            )
            inferences.append([each for each in comparisons if only is None or each.tensor in only])
        names = dict.fromkeys(comparison.tensor for comparison in inferences[0])
        self.judgements += [worst_inference(name, inferences) for name in names]

    def blame_taps(self) -> None:
        """Withdraw remarks on illegal indices that a runner computes only because of taps.

        Taps may change how a plugin computes the nodes upstream of the tapped one. If NumPy computes the
        model, taps are to blame if NumPy finds the indices legal and the plain run has the right outputs. If
        NumPy does not, they are to blame if some output of the plain run differs from the run with taps.
        """
        numpy = self.numpy_outcome
        is_computed = numpy is not None and numpy.status is Status.OK and not numpy.not_computed
        of_numpy = {} if self.observations is None else self.observations.guarded
        plain_runs = {outcome.runner: outcome for outcome in self.outcomes}
        for place, remark in enumerate(self.judgements):
            if not isinstance(remark, Guarded) or not remark.is_illegal or remark.runner not in plain_runs:
                continue
            plain = plain_runs[remark.runner]
            is_illegal_in_numpy = remark.node in of_numpy and of_numpy[remark.node].is_illegal
            if plain is numpy or plain.status is not Status.OK or is_illegal_in_numpy:
                continue
            if is_computed:
                assert numpy is not None
                is_plain_right = bool(plain.outputs) and all(
                    self._agree(plain, array, numpy.outputs.get(name))
                    for name, array in plain.outputs.items()
                )
            else:
                changes = [change for change in self.changes if change[0] is plain]
                is_plain_right = any(
                    not self._agree(plain, plain.outputs[name], with_taps) for _, name, with_taps in changes
                )
            if is_plain_right:
                self.has_blamed_taps = True
                reason = f"with taps it computes different indices, which are illegal ({remark.message})"
                self.judgements[place] = NotTapped(remark.runner, remark.node, reason)

    def _agree(self, run: Outcome, got: Array, expected: Array | None) -> bool:
        if expected is None:
            return False
        tolerance = default_tolerance(expected, run.precision)
        return measure(got, expected, tolerance).verdict is not Verdict.MISMATCH

    def find_outliers(self) -> None:
        """Name the runner that disagrees with the others, for tensors with at least three results.

        If several runners disagree with NumPy but agree with each other, NumPy is the outlier: it may misread
        the specification. For nodes in loops and functions, only the first computation with an outlier is
        named.
        """
        by_tensor: dict[tuple[object, ...], list[Comparison]] = {}
        key: tuple[object, ...]
        for comparison in comparisons_in(self.judgements):
            if comparison.subject != comparison.reference:
                key = (
                    comparison.level,
                    comparison.node,
                    comparison.tensor,
                    comparison.place,
                    comparison.caller,
                )
                by_tensor.setdefault(key, []).append(comparison)
        outliers: dict[tuple[object, ...], Outlier] = {}
        for key, comparisons in by_tensor.items():
            if outlier := self._find_outlier(comparisons):
                outliers.setdefault(key[:3], outlier)
        self.judgements += outliers.values()

    def _find_outlier(self, comparisons: Sequence[Comparison]) -> Outlier | None:
        """Return the outlier among the results for one tensor; None if there is none."""
        first, reference = comparisons[0], comparisons[0].reference
        verdicts = {
            comparison.subject: comparison.measure.verdict
            for comparison in comparisons
            if comparison.reference == reference
        }
        wrong = [name for name, verdict in verdicts.items() if verdict is Verdict.MISMATCH]
        if not wrong or len(verdicts) + 1 < _FEWEST_RUNNERS:
            return None
        right = [name for name in verdicts if name not in wrong]
        outcomes = [
            outcome
            for outcome in self.outcomes
            if outcome.runner in wrong and first.tensor in outcome.outputs
        ]
        precision = coarsest(*(outcome.precision for outcome in outcomes)) if outcomes else ""
        arrays = [outcome.outputs[first.tensor] for outcome in outcomes]
        tolerance = self.settings.tolerances.find(first.tensor)
        among_wrong = (
            _measure_output(first.tensor, array, arrays[0], tolerance, precision) for array in arrays[1:]
        )
        runners, names = tuple(wrong), listed(wrong)
        if right:
            message = f"{with_verb(wrong, 'disagrees', 'disagree')} with {listed([reference, *right])}"
        elif first.level is Level.NODE:
            message = f"{names} all differ from {reference}"
        elif len(outcomes) == len(wrong) and all(
            difference.verdict is not Verdict.MISMATCH for difference in among_wrong
        ):
            runners, message = (reference,), f"{names} agree with each other against {reference}"
        else:
            message = f"{names} differ from {reference}, and from each other"
        worst = next(
            (
                comparison.measure.worst
                for comparison in comparisons
                if comparison.measure.verdict is Verdict.MISMATCH
            ),
            None,
        )
        if reference.endswith(NUMPY) and worst is not None:
            is_nan = worst.expected != worst.expected  # no specification covers NaN in a reduction
            source = "NumPy computes" if is_nan else "the specification requires"
            place, got, expected = worst.words
            message += f": {place} {got}, {source} {expected}"
        return Outlier(first.level, first.node, first.tensor, self.number, runners, message)

    def explain_changes(self) -> None:
        """Explain outputs that differ between a runner's run with taps and its plain run.

        Such a change is either rounding, or one of the two runs is wrong. NumPy decides which. Without
        NumPy's result, the plain run is wrong if all tapped nodes are right. Each output of a runner is
        explained once.
        """
        numpy = self.numpy_outcome
        expected_outputs = {} if numpy is None or numpy.status is not Status.OK else numpy.outputs
        comparisons = comparisons_in(self.judgements)
        compared = {
            (comparison.subject, comparison.tensor, comparison.reference)
            for comparison in comparisons
            if comparison.level is Level.MODEL
        }
        right_at_nodes = _runners_right_at_all_nodes(self.judgements)
        explained: set[tuple[str, str]] = set()
        for plain, name, with_taps in self.changes:
            runner, without, expected = plain.runner, plain.outputs[name], expected_outputs.get(name)
            if (runner, name) in explained:
                continue
            rules = self.settings.tolerances.find(name), plain.precision, lambda: self._unspecified
            twice = self.rounding_judge(plain, plain)
            once = twice if numpy is None else self.rounding_judge(plain, numpy)
            change = _measure_output(name, with_taps, without, *rules, rounding_judge=twice)
            against_numpy = [
                _measure_output(name, got, expected, *rules, rounding_judge=once)
                for got in (with_taps, without)
                if expected is not None
            ]
            are_wrong = [difference.verdict is Verdict.MISMATCH for difference in against_numpy]
            if change.verdict is not Verdict.MISMATCH or (are_wrong and not any(are_wrong)):
                assert with_taps is not None
                self.judgements.append(_describe_harmless_change(runner, name, with_taps, without, change))
                continue
            explained.add((runner, name))
            if with_taps is None:
                change = replace(change, remark="is missing when nodes are tapped")
            make = partial(_comparison_of_output, name, self.number, runner)
            with_itself = replace(change, verdict=Verdict.NONDETERMINISTIC)
            comparison, end = make(runner, with_itself, with_taps, without, tapped=True), ""
            if expected is not None:
                if are_wrong[1]:
                    assert numpy is not None
                    comparison = make(numpy.runner, against_numpy[1], without, expected)
                if change.worst is not None and len(change.worst.index) == expected.ndim:
                    required = format_element(to_python(expected[change.worst.index]))
                    end = f"; the specification requires {required}"
                words = ["wrong" if is_wrong else "right" for is_wrong in are_wrong]
                end += f": {words[0]} with taps, {words[1]} without"
            elif with_taps is not None and runner in right_at_nodes:
                untapped = _measure_output(name, without, with_taps, *rules, rounding_judge=twice)
                comparison = make(runner, untapped, without, with_taps, tapped=True)
                end = "; with taps every scatter node is right"
            if comparison.reference == runner or (runner, name, comparison.reference) not in compared:
                self.judgements.append(comparison)
            how = f": {change.remark}"
            if change.worst is not None:
                place, got_text, plain_text = change.worst.words
                how = f": {place} {got_text} with taps and {plain_text} without"
            message = f"{runner} contradicts itself when nodes are tapped{how}{end}"
            is_named = any(
                outlier.node is None and outlier.tensor == name and runner in outlier.runners
                for outlier in of_kind(Outlier, self.judgements)
            )
            outlier = Outlier(Level.MODEL, None, name, self.number, (runner,), message, tapped=True)
            self.judgements.append(message if is_named else outlier)

    def find_first_differences(self, read_values: ReadValues) -> None:
        """Find the node at which the wrong output of each runner begins to differ from NumPy.

        Each such runner runs the case once more with taps. Without taps of all nodes, a runner with a wrong
        scatter node is skipped: its first difference is known.
        """
        program, takes_all = self.side.reference.program, self.settings.taps != TAPS[0]
        if program is None:
            return
        comparisons = comparisons_in(self.judgements)
        wanted = {Verdict.MISMATCH, *([Verdict.PRECISION] if takes_all else [])}
        of_all = taps_of_all(program, self.side.model.format) if takes_all else {}
        for outcome in self.outcomes:
            verdicts = {
                level: {
                    comparison.measure.verdict
                    for comparison in comparisons
                    if comparison.level is level
                    and comparison.subject == outcome.runner
                    and comparison.reference != outcome.runner
                }
                for level in Level
            }
            is_wrong_node = Verdict.MISMATCH in verdicts[Level.NODE] and not takes_all
            is_mismatch, coarse = Verdict.MISMATCH in verdicts[Level.MODEL], precisions_of(outcome)
            if is_wrong_node or not verdicts[Level.MODEL] & wanted:
                continue
            if not is_mismatch:  # what computes more coarsely than the others, unless all operators do
                if any(each.operators is None for each in coarse):
                    continue
                coarse = ()
            run = read_values(self, outcome.runner, (*self.side.nodes, *of_all))
            if run is None:
                continue
            if run.status is not Status.OK:
                self.judgements.append(
                    f"{run.runner}: the run with taps: {run.status} {run.message}".rstrip()
                )
                continue
            part = self.side.reference.find_first_difference(
                self.feeds,
                values_of_taps(program, run, of_all),
                coarse[0] if coarse else MODEL_TYPES,
                self.settings.timeout,
            )
            if part is not None or Verdict.MISMATCH not in verdicts[Level.NODE]:
                self.judgements += _word_part(outcome.runner, self.number, part, takes_all=takes_all)


def _word_part(
    runner: str, case: int, part: PartDifference | None, *, takes_all: bool
) -> Iterator[FirstDifference]:
    hint = "" if takes_all else f"; {Parameter('taps', TAPS[1])} reads the values between them"
    if part is None or not part.nodes:
        if takes_all:
            message = "no node adds a difference when its output is read"
            yield FirstDifference(runner, case, (), (), message)
        return
    message = f"{part.nodes[-1]} adds the difference"
    if len(part.nodes) > 1:
        message = f"one of the {len(part.nodes)} nodes from {part.nodes[0]} to {part.nodes[-1]} adds the "
        message += f"difference{hint}"
    yield FirstDifference(runner, case, part.nodes, part.types, message)


def _select_inference(outcome: Outcome, number: int) -> Outcome:
    return replace(outcome, runs=outcome.runs[number : number + 1])


def _runners_right_at_all_nodes(judgements: Sequence[Judgement]) -> set[str]:
    """Return the runners with right results at all scatter nodes, if every executed node could be tapped."""
    of_nodes = [comparison for comparison in comparisons_in(judgements) if comparison.level is Level.NODE]
    hidden = {failure.runner for failure in of_kind(NotTapped, judgements) if failure.reason != NOT_COMPUTED}
    wrong = {comparison.subject for comparison in of_nodes if comparison.measure.verdict.is_difference}
    return {comparison.subject for comparison in of_nodes} - hidden - wrong


def _describe_harmless_change(
    runner: str, name: str, with_taps: Array, without: Array, change: Measure
) -> str:
    exact = measure(with_taps, without, EXACT)
    how = exact.remark or f"by up to {exact.max_abs:.3g}"
    why = "an upstream node has repeated indices" if change.verdict is Verdict.CONTESTED else "fusions differ"
    if change.excuse is not None and change.excuse.is_random:
        why = change.excuse.why
    return f"{runner}: output {name} changes {how} when nodes are tapped: {why}"


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
    """Yield comparisons of the second model with the first, then of repeated runs of each model.

    If a model has states, each inference is compared, and the worst comparison of each output is yielded.
    """
    finders = [cache(partial(case.find_unspecified, tapper)) for case in cases]
    if before.status is Status.OK and after.status is Status.OK:
        inferences = list[list[Comparison]]()
        has_states = any(case.side.has_states for case in cases)
        count = min(len(after.runs), len(before.runs)) if has_states else 1
        is_settled = all(
            case.observations is not None
            and case.observations.unspecified is not None
            and not case.observations.not_computed
            for case in cases
        )
        for number in range(max(count, 1)):
            second = _select_inference(after, number)
            comparisons = compare_outputs(
                replace(second, runs=tuple(map(pairing.by_first, second.runs))),
                _select_inference(before, number),
                cases[0].number,
                cases[0].settings.tolerances,
                lambda: pairing.by_first(finders[1]()),
                finders[0],
                pairing=None if keeps_types else pairing,
                is_settled=is_settled,
                rounding_judge=rounding_judge_of_models(before, after, cases, pairing, number),
            )
            inferences.append([*comparisons])
        names = dict.fromkeys(comparison.tensor for comparison in inferences[0])
        yield from (worst_inference(name, inferences) for name in names)
    for case, outcome, find_unspecified in zip(cases, (before, after), finders, strict=True):
        if not case.side.has_states:
            yield from compare_runs(outcome, case.number, case.side.name, find_unspecified)


def rounding_judge_of_models(
    before: Outcome, after: Outcome, cases: Sequence[ModelCase], pairing: Pairing, number: int
) -> RoundingJudge:
    """Return a judge of rounding for runs of two models; it expects output names of the first."""
    second_names = {match.first.name: match.second.name for match in pairing.outputs}
    sides = (
        RoundedSide(cases[1].measure_rounding, number, lambda name: second_names.get(name, name)),
        RoundedSide(cases[0].measure_rounding, number),
    )
    return RoundingJudge(sides, precisions_of(after, before))


def find_deviations(
    number: int,
    pairing: Pairing,
    between_models: Sequence[Comparison],
    of_sides: Sequence[Sequence[Comparison]],
    unspecified_place: str,
) -> Iterator[Outlier]:
    """Yield a remark for each output that differs: a runner deviates from NumPy, or the two models differ.

    If NumPy computes only one of the models, a runner that is right there serves as reference for the other.

    Args:
        number: the case.
        pairing: the matching outputs.
        between_models: comparisons of the second model with the first.
        of_sides: for each model, its comparisons with NumPy.
        unspecified_place: text for elements that one model may not specify: "where an index is repeated".
    """
    second_names = {match.first.name: match.second.name for match in pairing.outputs}
    paths = [model.path for model in pairing.models]
    short = short_names(*paths)
    for tensor in dict.fromkeys(comparison.tensor for comparison in between_models):
        against_numpy = [
            {
                comparison.subject: comparison
                for comparison in side
                if comparison.tensor == name and comparison.relation is Relation.DOCUMENT
            }
            for side, name in zip(of_sides, (tensor, second_names.get(tensor, tensor)), strict=True)
        ]
        wrong = [
            {
                runner: comparison
                for runner, comparison in side.items()
                if comparison.measure.verdict is Verdict.MISMATCH
            }
            for side in against_numpy
        ]
        different = {
            comparison.subject: comparison
            for comparison in between_models
            if comparison.tensor == tensor
            and comparison.relation is Relation.MODELS
            and comparison.measure.verdict is Verdict.MISMATCH
        }
        make = partial(Outlier, Level.MODEL, None, tensor, number)
        if NUMPY in different:
            right = [name for name in different if name != NUMPY and not any(name in side for side in wrong)]
            source = f"{listed([NUMPY, *right])} agree that" if right else "according to the specification"
            sentence = f"{short[1]} and {short[0]} give different results"
            if side := different[NUMPY].measure.unspecified_in:
                sentence = f"{short[1]} and {short[0]} differ only {unspecified_place}, which "
                sentence += f"{short[side == SUBJECT]} does not specify"
            message = f"{source} {sentence}{_describe_worst(different[NUMPY])}"
            yield make((), message, model=paths[1])
        groups: dict[tuple[int, ...], list[str]] = {}
        for runner in dict.fromkeys([*wrong[0], *wrong[1]]):
            places = tuple(place for place, side in enumerate(wrong) if runner in side)
            groups.setdefault(places, []).append(runner)
        for places, runners in groups.items():
            names = listed([short[place] for place in places])
            subject = with_verb(runners, "deviates", "deviate")
            first = wrong[places[0]][runners[0]]
            message = f"{subject} from the specification on {names}{_describe_worst(first)}"
            yield make(tuple(runners), message, model=paths[places[0]] if len(places) == 1 else "")
        for computed, uncomputed in ((0, 1), (1, 0)):
            right = [
                name for name in different if name in against_numpy[computed] and name not in wrong[computed]
            ]
            if right and not against_numpy[uncomputed]:
                message = f"{with_verb(right, 'is', 'are')} right on {short[computed]}, and different on "
                message += f"{short[uncomputed]}, which NumPy cannot compute"
                message += _describe_worst(different[right[0]])
                yield make(tuple(right), message, model=paths[uncomputed])


def _describe_worst(comparison: Comparison) -> str:
    """Return ": [0, 1] is 2 in before.xml, 3 in after.xml", or ": [0, 1] is 3, expected 2"."""
    if comparison.measure.worst is None:
        return f": {comparison.measure.remark}" if comparison.measure.remark else ""
    place, got, expected = comparison.measure.worst.words
    return f": {place} {comparison.describe_pair(got, expected)}"


def find_idle_runners(sides: Sequence[ModelSide], judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield a remark for each runner that ran a model, but whose results were compared with nothing."""
    comparisons = comparisons_in(judgements)
    judged = {name for comparison in comparisons for name in (comparison.subject, comparison.reference)}
    for side, name in zip(sides, short_names(*(side.name for side in sides)), strict=True):
        for outcome in side.outcomes.values():
            if comparisons and outcome.status is Status.OK and outcome.runner not in judged:
                hint = f"use {Parameter('pairwise', True)} to compare it with other runners there"
                yield f"{outcome.runner} ran only {name}, which NumPy cannot compute; {hint}"


# All cases.


def bodies_not_run(
    sides: Sequence[ModelSide], judgements: Sequence[Judgement], never: Collection[tuple[int, str]]
) -> tuple[list[str], list[str]]:
    """Return two lists of body names: bodies that ran in no case, and bodies for which this is unknown.

    Args:
        sides: the models.
        judgements: about the nodes of a single model: the body around a judged node has run.
        never: (number of the model, scope) of bodies that can never run.
    """
    is_single = len(sides) == 1
    judged = {comparison.node for comparison in comparisons_in(judgements) if comparison.node is not None}
    judged |= {remark.node for remark in of_kind(Guarded, judgements)}
    not_computed = {
        failure.node for failure in of_kind(NotTapped, judgements) if failure.reason == NOT_COMPUTED
    }
    not_run, uncertain = dict[str, None](), dict[str, None]()
    for place, side in enumerate(sides):
        bodies = [
            body
            for body in side.reference.optional_bodies(has_scatter=is_single)
            if body.scope not in side.entered
            and (place, body.scope) not in never
            and not (is_single and any(node.startswith(body.scope) for node in judged))
        ]
        reachability = reachability_of(Facts(model=side.model)) if bodies else None
        for body in bodies:
            node = body.plan.steps[0].node if body.plan.steps else None
            if node is not None and reachability is not None:
                skippable = reachability.reach(node).skippable
                if any(body.reason.is_certain for body in skippable):
                    continue
            is_uncertain = any(body.scope.startswith(scope) for scope in side.uncertain)
            is_uncertain = is_uncertain and not any(node.startswith(body.scope) for node in not_computed)
            (uncertain if is_uncertain else not_run)[body.name] = None
    return list(not_run), list(uncertain)


def find_suspects(model: Model, comparisons: Iterable[Comparison]) -> dict[str, dict[str, str]]:
    """Return nodes with a known defect that disappears under taps: for each runner, code by node scope.

    Only for runners with an output that differs, or whose outputs were compared with nothing.
    """
    comparisons = list(comparisons)
    of_outputs = [comparison for comparison in comparisons if comparison.level is Level.MODEL]
    suspect = {comparison.subject for comparison in of_outputs if comparison.measure.verdict.is_difference}
    suspect |= {comparison.subject for comparison in comparisons} - {
        name for comparison in of_outputs for name in (comparison.subject, comparison.reference)
    }
    runners = sorted({name.removeprefix(SAVED) for name in suspect})
    return {runner: nodes for runner in runners if (nodes := hidden_by_taps(model, runner))}


def mark_unfit_inputs(cases: Sequence[ModelCase]) -> None:
    """Set the status `INPUTS_DO_NOT_FIT` if generated inputs, not the runners, are to blame for the failures.

    That is the case if no runner ran the model, and all that loaded it failed on these inputs. A runtime may
    compute nodes while it loads the model. So a refusal at that time counts too if NumPy fails on these
    inputs, unless the model states the sizes of all inputs. Illegal indices are reported separately.
    """
    inputs = [input for case in cases for input in dataflow_of(case.side.model).inputs]
    has_own_sizes = all(is_static(input.shape) for input in inputs)
    outcomes = [outcome for case in cases for outcome in case.outcomes]
    does_numpy_fail = any(outcome.runner == NUMPY and outcome.at_inference for outcome in outcomes)
    failed = [
        outcome
        for outcome in outcomes
        if outcome.status not in _SILENT and not (outcome.at_inference and outcome.status is Status.OK)
    ]
    is_refusal = all(
        outcome.status is Status.REFUSED and (outcome.at_inference or (does_numpy_fail and not has_own_sizes))
        for outcome in failed
    )
    is_illegal = any(remark.is_illegal for case in cases for remark in of_kind(Guarded, case.judgements))
    if not failed or not is_refusal or is_illegal or not any(outcome.at_inference for outcome in outcomes):
        return
    for case in cases:
        case.runs = [
            replace(runs, plain=replace(runs.plain, status=Status.INPUTS_DO_NOT_FIT))
            if runs.plain in failed
            else runs
            for runs in case.runs
        ]


def why_nothing_compared(outcomes: Sequence[Outcome]) -> str:
    completed = [outcome for outcome in outcomes if outcome.status is Status.OK]
    named = [outcome.runner for outcome in completed if not outcome.implicit]
    if len(completed) == 1 and named:
        return f"only {named[0]} ran the model, and no scatter node of it could be compared with NumPy"
    if named:
        return "the model has no outputs and no scatter nodes"
    if other_format := [outcome for outcome in outcomes if outcome.reason == OTHER_FORMAT]:
        return f"{', '.join(outcome.runner for outcome in other_format)}: {other_format[0].message}"
    if unfit := unfit_inputs(outcomes):
        return unfit
    return "no runner ran the model"


def unfit_inputs(outcomes: Sequence[Outcome]) -> str:
    """Return a sentence with the error that generated inputs caused; "" if there was none."""
    unfit = [outcome for outcome in outcomes if outcome.status is Status.INPUTS_DO_NOT_FIT]
    unfit.sort(key=lambda outcome: (not outcome.at_inference, outcome.runner == NUMPY))
    return f"drawn inputs do not fit: {unfit[0].message}" if unfit else ""


def pairs_with_saved(new: Sequence[Outcome], saved: Sequence[Outcome]) -> Iterator[tuple[Outcome, Outcome]]:
    """Yield the pairs (subject, reference) of new and saved outcomes to compare.

    A new outcome is compared with the saved one of its runner. A saved outcome whose runner does not run now
    is compared with NumPy's result (new or saved), or with the first runner's if NumPy has none.
    """
    completed = [outcome for outcome in new if outcome.status is Status.OK]
    by_name = {outcome.runner: outcome for outcome in saved if outcome.status is Status.OK}
    for subject in completed:
        if SAVED + subject.runner in by_name:
            yield subject, by_name[SAVED + subject.runner]
    numpy = [
        outcome for outcome in (*completed, *by_name.values()) if outcome.runner in {NUMPY, SAVED + NUMPY}
    ]
    reference = next(iter([*numpy, *completed]), None)
    run_again = {SAVED + outcome.runner for outcome in completed}
    for name, outcome in by_name.items():
        if reference is not None and outcome is not reference and name not in run_again:
            yield outcome, reference


def of_kind(kind: type[_Kind], judgements: Iterable[object]) -> list[_Kind]:
    return [judgement for judgement in judgements if isinstance(judgement, kind)]


def comparisons_in(judgements: Iterable[Judgement]) -> list[Comparison]:
    """Return the comparisons among these judgements: first those of model outputs, then those of nodes."""
    comparisons = of_kind(Comparison, judgements)
    return sorted(comparisons, key=lambda comparison: comparison.level is Level.NODE)
