"""Runs models on the same inputs and compares: one model, two, or one with saved results."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.reachability import reachability_of
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.guard import Open, Reference, Sight, excused, open_once
from ir_scatter.compare.measure import (
    EXACT,
    PRECISION_BITS,
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
from ir_scatter.compare.pairing import Pairing, in_one_type, pair
from ir_scatter.compare.phases import Interrupted, begin
from ir_scatter.compare.result import (
    NEVER,
    NUMPY,
    SAVED,
    Compared,
    Comparison,
    Guarded,
    Level,
    ModelFacts,
    NotTapped,
    Outlier,
    Relation,
    Runs,
    Settings,
    act,
    short_names,
)
from ir_scatter.compare.snapshot import load
from ir_scatter.core.arrays import Array, are_equal
from ir_scatter.core.errors import BadFeed, Error, IllegalCase, NoInputs
from ir_scatter.core.files import sha256_of
from ir_scatter.core.model import Model
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.words import counted, listed
from ir_scatter.evaluate.certainty import detail
from ir_scatter.evaluate.model import case_of_node, check_feeds, make_sketch
from ir_scatter.formats import FORMATS, dataflow_of
from ir_scatter.inputs.coverage import REPEATED, Coverage, are_repeats_untried, draw_further
from ir_scatter.inputs.model import Drawn, draw_feeds
from ir_scatter.ops.general import find as find_general
from ir_scatter.ops.general import random_types
from ir_scatter.ops.lookup import find, scatter_types
from ir_scatter.portability import hidden_by_taps
from ir_scatter.reading import files_beside, read
from ir_scatter.runners.base import (
    OTHER_FORMAT,
    Availability,
    Execution,
    NodeFacts,
    Outcome,
    Runner,
    Status,
    Tap,
    Tapped,
    tap_of,
)

Feeds = Mapping[str, Array]

Finding = Comparison | Guarded | NotTapped | Outlier | str
"""What there is to say of outputs, nodes and runners; a string is a remark."""

_Kind = TypeVar("_Kind")

OpenOutputs = Callable[[], Mapping[str, Open]]
"""Gives the outputs of which the document leaves something open, by name; only asked if outputs differ."""

_HOPELESS = frozenset({Status.UNAVAILABLE, Status.TIMEOUT})
"""Whoever ends like this is not asked again."""

_FEW = 3
"""So many nodes are named in a remark, of more their number is."""

_CAMPS = 3
"""From so many runners on one can be the outlier."""

_NO_LATER_INFERENCES = "inferences after the first depend on states, and nothing else computes them"

_SUFFIX = re.compile(r"(?:\.\d+)+$")
"""What a plugin adds to the name of a node when it puts conversions around it; these get more of it."""


def compare(
    models: "Model | str | Path | Sequence[Model]",
    runners: Sequence[Runner],
    settings: Settings,
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
    models: Sequence[Model], runner: Runner, settings: Settings, cases: Iterable[Feeds]
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
            tuple(_compare_models(before, after, sides, both.pairing, runner, keeps_types=True)),
        )


def facts_about_model(model: Model) -> ModelFacts:
    """Return what tells a model from others; files that cannot be read are left out."""
    opsets = [f"{domain or 'ai.onnx'} {version}" for domain, version in model.opset_imports.items()]
    if not opsets:
        found = {str(node.opset) for node in model.walk() if node.opset is not None}
        opsets = sorted(found, key=lambda word: (len(word), word))
    files = list[tuple[str, int, str]]()
    for path in (model.path, *(beside for beside, _ in files_beside(model.path))):
        with suppress(OSError):
            files.append((path, os.path.getsize(path), sha256_of(path)))
    return ModelFacts(model.path, FORMATS[model.format].title, tuple(opsets), tuple(files))


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


# Scatter nodes, on the inputs that their runner gave them.


def is_one_node(model: Model) -> bool:
    """Tell whether a model is a scatter node and what feeds it, and nothing else."""
    with suppress(Error):
        flow = dataflow_of(model)
        links = [flow.link(output.key) for output in flow.outputs]
        if len(links) != 1 or links[0] is None or links[0].node.type not in scatter_types(model.domain):
            return False
        inputs = [key for key in links[0].inputs if key is not None]
        return all(flow.link(key) is None or flow.constant(key) is not None for key in inputs)
    return False


def nodes_by_tap(model: Model) -> dict[Tap, ScatterNode]:
    """Return the scatter nodes whose opset contains them, bodies included, by what asks for them."""
    facts, found = Facts(), {}
    for node in model.walk(scatter_types(model.domain)):
        lookup = find(node.domain, node.type, node.opset)
        if lookup is not None and lookup.spec is not None:
            found[tap_of(node, model.format)] = ScatterNode(node, lookup, facts)
    return found


def output_of(scatter: ScatterNode) -> str:
    named = scatter.node.outputs[0].name if scatter.node.outputs else ""
    return named or scatter.node.name


def has_states(model: Model) -> bool:
    """Tell whether a model keeps anything from one inference to the next."""
    ops = (find_general(node.domain, node.type) for node in model.graph.walk())
    return any(op is not None and op.state == "written" for op in ops)


def worst_inference(name: str, inferences: Sequence[Sequence[Comparison]]) -> Comparison:
    """Return the first of the worst comparisons of one output in several inferences."""
    found = [one for each in inferences for one in each if one.tensor == name]
    order = list(Verdict)
    worst = max(found, key=lambda one: order.index(one.measure.verdict))
    wrong = sum(one.measure.verdict is Verdict.MISMATCH for one in found)
    return replace(worst, wrong_runs=(wrong, len(found))) if 0 < wrong < len(found) else worst


def tolerance_names(scatter: ScatterNode) -> tuple[str, ...]:
    return output_of(scatter), scatter.node.name, scatter.node.scope


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


class _Side:
    """One model, its nodes, and what is known of those who ran it."""

    def __init__(self, model: Model, settings: Settings, *, is_single: bool) -> None:
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
class _Case:
    """What runners make of one model for one set of inputs."""

    side: _Side
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
    def settings(self) -> Settings:
        return self.side.settings

    @property
    def outcomes(self) -> list[Outcome]:
        """The runs without taps."""
        return [one.plain for one in self.runs]

    def run(self, runner: Runner, *, profile: bool = False) -> Outcome:
        """Run one runner without taps."""
        if runner.name in self.side.hopeless:
            return self.side.hopeless[runner.name]
        try:
            found = self._ask(runner, repeat=self.settings.repeat, keeps_states=True, profile=profile)
        except BadFeed as error:  # the feeds fit the model: this is between the runner and itself
            return Outcome(runner.name, Status.REFUSED, str(error))
        if found.status is Status.UNAVAILABLE:
            found = replace(
                found, message=Availability("", False, found.message, runner.remedy_of(found.message)).why_not
            )
        if found.status in _HOPELESS:
            self.side.hopeless[runner.name] = found
        return found

    def run_with_taps(self, runner: Runner, times: int) -> Iterator[Outcome]:
        """Run one runner with taps until it fails; of each tap there is an answer."""
        taps = tuple(self.side.nodes)
        for _ in range(times if taps else 0):
            found = self._ask(runner, taps=taps, tap_memory=self.settings.tap_memory)
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

    def _ask(self, runner: Runner, **wanted: Any) -> Outcome:
        with_taps = " with taps" if "taps" in wanted else ""
        begin(f"{runner.name}{with_taps}{_of(self.number, self.settings.cases)}")
        precision, timeout = self.settings.precision, self.settings.timeout
        return runner.run(self.side.model.path, self.feeds, precision=precision, timeout=timeout, **wanted)

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

    def open(self, tapper: Runner | None = None) -> Mapping[str, Open]:
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
        for tapped in () if tapper is None else apart.run_with_taps(tapper, 1):
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


class _Session:
    """What runners and NumPy make of one model, or of two that are paired, and what is said of it."""

    def __init__(
        self,
        models: Sequence[Model],
        runners: Sequence[Runner],
        settings: Settings,
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
        self.sides = [_Side(one, settings, is_single=self.pairing is None) for one in models]
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

    def cases(self, number: int, feeds: Feeds) -> list[_Case]:
        """Return the case of each model, with inputs of its own."""
        given = (feeds,) if self.pairing is None else self.pairing.feeds(feeds)
        return [_Case(side, number, own) for side, own in zip(self.sides, given, strict=True)]

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

    def _note_bodies(self, case: _Case, place: int) -> None:
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

    def _not_run(self) -> tuple[list[str], list[str]]:
        """Return the bodies that ran in no case, and those of which that is not known; as in a sentence."""
        judged = {one.node for one in comparisons_in(self.findings) if one.node is not None}
        judged |= {one.node for one in of_kind(Guarded, self.findings)}
        passed_by = {one.node for one in of_kind(NotTapped, self.findings) if one.reason == NEVER}
        absent, unclear = dict[str, None](), dict[str, None]()
        for place, side in enumerate(self.sides):
            bodies = side.reference.optional_bodies(has_scatter=self.pairing is None)
            bodies = [
                body
                for body in bodies
                if body.scope not in side.entered
                and (place, body.scope) not in self.coverage.never
                and not (self.pairing is None and any(node.startswith(body.scope) for node in judged))
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

    def ask(self, runner: Runner, cases: Sequence[_Case]) -> None:
        """Run one runner on each model, and if there is only one with taps as well."""
        is_single = self.pairing is None
        for case in cases:
            plain = case.run(runner, profile=is_single)
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
            case.take(plain, case.run_with_taps(runner, times))

    def _judge_saved(self, runs: Sequence[Runs], new: _Case) -> None:
        """Judge what was saved, and compare its outputs with those of today, or with each other."""
        case = replace(new, runs=[], findings=[])
        for one in runs:
            case.take(one.plain, one.tapped)
        if not new.runs:
            case.compare_all()
        self._finish(case)
        case.findings.clear()
        for subject, reference in _old_and_new(new.outcomes, case.outcomes) if new.runs else ():
            case.compare(subject, reference)
        self.findings += case.findings

    def _finish(self, case: _Case) -> None:
        case.blame_taps()
        case.find_outliers()
        case.explain_changes()
        self._enter(case)
        if self.settings.keeps_runs:
            self.runs[case.number] = self.runs.get(case.number) or tuple(case.runs)

    def _enter(self, case: _Case) -> None:
        for outcome in case.outcomes:
            _enter(self.outcomes, outcome)
        self.findings += case.findings

    def _judge_both(self, cases: Sequence[_Case], pairing: Pairing) -> None:
        runners = {runner.name: runner for runner in self.runners}
        cross = [
            one
            for before, after in zip(*(case.outcomes for case in cases), strict=True)
            for one in _compare_models(before, after, cases, pairing, runners.get(before.runner))
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
        for one in self._departures(cases[0].number, pairing, cross, of_sides, where):
            if (one.tensor, one.runners, one.model) not in known:  # of all cases the first
                self.findings.append(one)

    def _departures(
        self,
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
        short = short_names(*self.paths)
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
                yield make((), message, model=self.paths[1])
            groups: dict[tuple[int, ...], list[str]] = {}
            for runner in dict.fromkeys([*wrong[0], *wrong[1]]):
                places = tuple(place for place, side in enumerate(wrong) if runner in side)
                groups.setdefault(places, []).append(runner)
            for places, runners in groups.items():
                where = listed([short[place] for place in places])
                first = wrong[places[0]][runners[0]]
                who = act(runners, "departs", "depart")
                message = f"{who} from the document on {where}{_elements(first)}"
                yield make(tuple(runners), message, model=self.paths[places[0]] if len(places) == 1 else "")
            for known, other in ((0, 1), (1, 0)):
                right = [name for name in apart if name in told[known] and name not in wrong[known]]
                if right and not told[other]:
                    message = f"{act(right, 'is', 'are')} right on {short[known]} and another on "
                    message += f"{short[other]}, which NumPy cannot compute{_elements(apart[right[0]])}"
                    yield make(tuple(right), message, model=self.paths[other])

    def _idle(self) -> Iterator[str]:
        """Say who ran one model, and was held against nobody."""
        found = comparisons_in(self.findings)
        judged = {name for one in found for name in (one.subject, one.reference)}
        for side, name in zip(self.sides, short_names(*self.paths), strict=True):
            for outcome in side.outcomes.values():
                if found and outcome.status is Status.OK and outcome.runner not in judged:
                    others = Parameter("pairwise", True)
                    why = f"which NumPy does not compute: {others} compares it with others there"
                    yield f"{outcome.runner} ran {name} only, {why}"

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
        remarks = [*self.notes, *([] if self.pairing is None else self._idle())]
        remarks += self._unspecified() if comparisons else []
        remarks = list(dict.fromkeys([*remarks, *of_kind(str, self.findings)]))
        if not comparisons:
            remarks.append(f"nothing was compared: {_why_nothing(outcomes)}")
        models = [side.model for side in self.sides]
        not_run, unclear = self._not_run() if outcomes else ([], [])
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
            suspects=_suspects(models[0], comparisons),
        )


def _suspects(model: Model, comparisons: Iterable[Comparison]) -> dict[str, dict[str, str]]:
    """Return nodes that meet a defect which taps hide, of each runner whose outputs are not known right."""
    of_outputs = [one for one in comparisons if one.level is Level.MODEL]
    wrong = {one.subject for one in of_outputs if one.measure.verdict.is_difference}
    wrong |= {one.subject for one in comparisons} - {
        name for one in of_outputs for name in (one.subject, one.reference)
    }
    runners = sorted({name.removeprefix(SAVED) for name in wrong})
    return {runner: nodes for runner in runners if (nodes := hidden_by_taps(model, runner))}


def _compare_models(
    before: Outcome,
    after: Outcome,
    cases: Sequence[_Case],
    pairing: Pairing,
    tapper: Runner | None,
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


def _elements(one: Comparison) -> str:
    """Return ": [0, 1] is 2 in before.xml, 3 in after.xml", or "by the document [0, 1] is 2, not 3"."""
    if one.measure.worst is None:
        return f": {one.measure.remark}" if one.measure.remark else ""
    place, got, expected = one.measure.worst.words
    if one.relation is Relation.DOCUMENT:
        return f": {place} {expected}, not {got}"
    return f": {place} {one.both(got, expected)}"


def _of(number: int, total: int) -> str:
    total = max(total, number + 1)  # cases may be added to those that were asked for
    return f", case {number + 1} of {total}" if total > 1 else ""


def _enter(outcomes: dict[str, Outcome], found: Outcome) -> None:
    """Enter what is told of a runner: the first outcome that was not ok, without its arrays."""
    known = outcomes.get(found.runner)
    if known is None or (known.status is Status.OK and found.status is not Status.OK):
        outcomes[found.runner] = replace(found, runs=(), tapped=(), facts=())


def _why_nothing(outcomes: Sequence[Outcome]) -> str:
    ran = [one for one in outcomes if one.status is Status.OK]
    named = [one.runner for one in ran if not one.implicit]
    if len(ran) == 1 and named:
        return f"{named[0]} alone ran the model, and no scatter node of it could be held against NumPy"
    if named:
        return "the model has no outputs and no scatter nodes"
    if other := [one for one in outcomes if one.reason == OTHER_FORMAT]:
        return f"{', '.join(one.runner for one in other)}: {other[0].message}"
    return "no runner ran the model"


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


def of_kind(kind: type[_Kind], findings: Iterable[object]) -> list[_Kind]:
    return [one for one in findings if isinstance(one, kind)]


def comparisons_in(findings: Iterable[Finding]) -> list[Comparison]:
    """Return those of outputs, then those of nodes."""
    return sorted(of_kind(Comparison, findings), key=lambda one: one.level is Level.NODE)
