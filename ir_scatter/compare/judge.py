"""Judges what runners gave: outputs by each other, scatter nodes by their document, and who is wrong."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.contested import OpenOutput, Sight, excused
from ir_scatter.compare.guard import Reference
from ir_scatter.compare.measure import are_equal, measure, plain
from ir_scatter.compare.result import (
    NEVER,
    NUMPY,
    Comparison,
    Guarded,
    Level,
    Measure,
    NotTapped,
    Outlier,
    Runs,
    Settings,
    Verdict,
)
from ir_scatter.compare.tolerance import (
    EXACT,
    FRACTION_BITS,
    Tolerances,
    coarser,
    computed_bits,
    default_tolerance,
)
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import Error, IllegalCase
from ir_scatter.core.model import Model
from ir_scatter.evaluate.certainty import DetailedResult, detail
from ir_scatter.evaluate.model import case_of_node
from ir_scatter.ops.lookup import find, scatter_types
from ir_scatter.ops.spec import Reduction
from ir_scatter.runners.base import OTHER_FORMAT, Execution, Outcome, Status, Tap, tap_of

Finding = Comparison | Guarded | NotTapped | Outlier | str
"""What there is to say of outputs, nodes and runners; a string is a remark."""

_Kind = TypeVar("_Kind")

Open = Callable[[], Mapping[str, OpenOutput]]
"""Gives the outputs of which the document leaves something open, by name; only asked if outputs differ."""

_CAMPS = 3
"""From so many runners on one can be the outlier."""


# Outputs of models.


def compare_outputs(
    subject: Outcome,
    reference: Outcome,
    case: int,
    tolerances: Tolerances,
    open: Open = dict,
    open_in_reference: Open | None = None,
) -> Iterator[Comparison]:
    """Yield a comparison for each output of two runs.

    What is open is asked of the subject's model, and of that of the reference, if it is another one.
    """
    precision = coarser(subject.precision, reference.precision)
    for name in dict.fromkeys((*reference.outputs, *subject.outputs)):
        got, expected = subject.outputs.get(name), reference.outputs.get(name)
        found = _measured(name, got, expected, precision, tolerances, open, open_in_reference)
        yield _of_output(name, case, subject.runner, reference.runner, found, got, expected)


def compare_runs(outcome: Outcome, case: int) -> Iterator[Comparison]:
    """Yield a comparison of a runner with itself for each output that changes from run to run."""
    for name, first in outcome.outputs.items():
        got = None
        found = Measure(Verdict.MISMATCH, first.size, first.size, remark="is missing in some runs")
        if all(name in run for run in outcome.runs):
            got = next((run[name] for run in outcome.runs[1:] if not are_equal(run[name], first)), None)
            if got is None:
                continue
            found = measure(got, first, default_tolerance(first))
        found = replace(found, verdict=Verdict.NONDETERMINISTIC)
        yield _of_output(name, case, outcome.runner, outcome.runner, found, got, first)


def _measured(
    name: str,
    got: Array | None,
    expected: Array | None,
    precision: str,
    tolerances: Tolerances,
    open: Open = dict,
    open_in_reference: Open | None = None,
) -> Measure:
    """Return how an output differs from another, where it is not left open in the models of both."""
    if got is None or expected is None:
        size = sum(0 if one is None else one.size for one in (got, expected))
        remark = "is missing" if got is None else "is missing in the reference"
        return Measure(Verdict.MISMATCH, size, size, remark=remark)
    found = measure(got, expected, tolerances.find(name) or default_tolerance(expected, precision))
    if found.verdict is not Verdict.MISMATCH:
        return found
    return excused(found, got, expected, open().get(name), (open_in_reference or open)().get(name))


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
) -> Comparison:
    one = Comparison(Level.MODEL, None, name, case, subject, reference, found, tapped=tapped)
    return one if found.verdict is Verdict.EQUAL else replace(one, got=got, expected=expected)


# Scatter nodes, on the inputs that their runner gave them.


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


def tolerance_names(scatter: ScatterNode) -> tuple[str, ...]:
    """Return the names that a tolerance may be given for."""
    return output_of(scatter), scatter.node.name, scatter.node.scope


def _measured_node(
    expected: DetailedResult, got: Array, scatter: ScatterNode, precision: str, tolerances: Tolerances
) -> Measure:
    """Return how the output of a node differs from its document, which may allow more than one value."""
    asked, values = tolerances.find(*tolerance_names(scatter)), expected.values
    tolerance = asked or default_tolerance(values, precision, is_node=True)
    if scatter.reduction is not Reduction.NONE and are_equal(got, values):
        return Measure(Verdict.EQUAL, values.size, tolerance=tolerance)
    is_comparable = got.shape == values.shape and got.dtype == values.dtype
    bits = FRACTION_BITS.get(values.dtype.name)
    rounding = 1.0 if bits is None else float(np.exp2(bits - computed_bits(bits, precision)))
    return measure(
        got,
        values,
        tolerance,
        bound=None if asked else expected.bound_from_values(rounding),
        contested=expected.allows(got, tolerance.absolute, tolerance.relative) if is_comparable else None,
    )


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


class _Change(NamedTuple):
    """An output that is not the same with taps as without: the same runner on the same inputs."""

    plain: Outcome
    output: str
    without: Array
    tapped: Array | None


@dataclass(eq=False)
class Case:
    """What runners make of one model for one set of inputs.

    Attributes:
        sight: what NumPy saw of these inputs; None if it was not asked.
        contested: the nodes whose result the document leaves open: where, in each of their computations.
        tap: taps the nodes of a runner, to see what is contested where NumPy cannot tell.
        runs: of each runner, those with taps only if they are to be kept.
    """

    number: int
    feeds: Mapping[str, Array]
    nodes: Mapping[Tap, ScatterNode]
    reference: Reference
    settings: Settings
    sight: Sight | None = None
    contested: dict[str, list[Array]] = field(default_factory=dict)
    tap: Callable[[], Iterable[Outcome]] | None = None
    runs: list[Runs] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._nodes = {(tap.scope, tap.output, tap.callers): scatter for tap, scatter in self.nodes.items()}
        self._changes: list[_Change] = []

    @property
    def outcomes(self) -> list[Outcome]:
        """The runs without taps."""
        return [one.plain for one in self.runs]

    def take(self, plain: Outcome, tapped: Iterable[Outcome]) -> None:
        """Take the runs of one runner as they come."""
        judged, kept = list[list[Finding]](), list[Outcome]()
        for run in tapped:
            for name, without in plain.outputs.items() if run.runs else ():
                got = run.outputs.get(name)
                if got is None or not any(are_equal(got, one[name]) for one in plain.runs if name in one):
                    self._changes.append(_Change(plain, name, without, got))
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
            scatter = self._nodes.get((tapped.tap.scope, tapped.tap.output, tapped.tap.callers))
            if scatter is None:
                continue
            if tapped.problem or not tapped.executions:
                found.append(NotTapped(run.runner, tapped.tap.scope, tapped.problem or NEVER))
            for execution in tapped.executions:
                found += self._judged_node(scatter, execution, run)
        return found

    def _judged_node(self, scatter: ScatterNode, execution: Execution, run: Outcome) -> Iterator[Finding]:
        scope, runner, got = scatter.node.scope, run.runner, execution.output
        one = Comparison(
            Level.NODE,
            scope,
            output_of(scatter),
            self.number,
            runner,
            NUMPY,
            Measure(Verdict.NONDETERMINISTIC),
            execution.place,
            str(scatter.spec.key),
            caller=execution.caller,
        )
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
        found = _measured_node(expected, got, scatter, run.precision, self.settings.tolerances)
        one = replace(one, measure=found)
        is_equal = found.verdict is Verdict.EQUAL
        yield one if is_equal else replace(one, got=got, expected=expected.values, inputs=execution.inputs)

    @property
    def lacks_numpy(self) -> bool:
        """Tell whether NumPy must look though nobody named it.

        It must where taps changed an output by more than rounding, and at indices that runners did not show.
        """
        for one in self.outcomes:
            if one.status not in {Status.OK, Status.UNAVAILABLE} and one.reason != OTHER_FORMAT:
                return True
        if any(one.reason != NEVER for one in of_kind(NotTapped, self.findings)):
            return True
        found = (self._measured(one, one.tapped, one.without) for one in self._changes)
        return any(one.verdict is Verdict.MISMATCH for one in found)

    @cached_property
    def open(self) -> Mapping[str, OpenOutput]:
        """The outputs of which the document leaves something open, by name."""
        if self.sight is None and (self.tap is not None or self.contested):
            with suppress(Error):
                _, self.sight = self.reference.start(self.feeds)(self.settings.timeout)
        sight = self.sight or Sight()
        if sight.open is not None:
            return sight.open
        for tapped in () if self.tap is None else self.tap():
            self.judge(tapped)
        if not self.contested and not sight.contested:
            return {}
        return self.reference.foresee(self.feeds, self.contested, self.settings.timeout)

    def _measured(self, one: _Change, got: Array | None, expected: Array, open: Open = dict) -> Measure:
        return _measured(one.output, got, expected, one.plain.precision, self.settings.tolerances, open)

    def compare_all(self) -> None:
        """Compare outputs: with NumPy if it computed the model, or else with the first that did."""
        ran = [one for one in self.outcomes if one.status is Status.OK]
        ran.sort(key=lambda one: not one.runner.endswith(NUMPY))
        for reference, subject in combinations(ran, 2):
            if self.settings.pairwise or reference is ran[0]:
                self.compare(subject, reference)
        for outcome in self.outcomes:
            self.findings += compare_runs(outcome, self.number)

    def compare(self, subject: Outcome, reference: Outcome) -> None:
        tolerances = self.settings.tolerances
        self.findings += compare_outputs(subject, reference, self.number, tolerances, lambda: self.open)

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
        first, reference, tolerances = found[0], found[0].reference, self.settings.tolerances
        verdicts = {one.subject: one.measure.verdict for one in found if one.reference == reference}
        wrong = [name for name, verdict in verdicts.items() if verdict is Verdict.MISMATCH]
        if not wrong or len(verdicts) + 1 < _CAMPS:
            return None
        right = [name for name in verdicts if name not in wrong]
        ran = [one for one in self.outcomes if one.runner in wrong and first.tensor in one.outputs]
        precision = coarser(*(one.precision for one in ran)) if ran else ""
        arrays = [one.outputs[first.tensor] for one in ran]
        among = (_measured(first.tensor, one, arrays[0], precision, tolerances) for one in arrays[1:])
        runners, names = tuple(wrong), _listed(wrong)
        if right:
            verb = "departs" if len(wrong) == 1 else "depart"
            message = f"{names} {verb} from what {_listed([reference, *right])} say"
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

    def explain_changes(self, numpy: Outcome | None) -> None:
        """Say of outputs that taps changed whether it is rounding, and if not, which of the two is wrong.

        NumPy tells, or else the nodes if all are right when they are tapped; of each output of a runner
        one thing is said.
        """
        document = {} if numpy is None or numpy.status is not Status.OK else numpy.outputs
        compared = comparisons_in(self.findings)
        known = {(one.subject, one.tensor, one.reference) for one in compared if one.level is Level.MODEL}
        of_nodes = [one for one in compared if one.level is Level.NODE]
        hidden = {one.runner for one in of_kind(NotTapped, self.findings) if one.reason != NEVER}
        wrong_somewhere = {one.subject for one in of_nodes if one.measure.verdict.is_difference}
        are_right = {one.subject for one in of_nodes} - hidden - wrong_somewhere
        done: set[tuple[str, str]] = set()
        for change in self._changes:
            ran, name, without, tapped = change
            runner, right = ran.runner, document.get(name)
            if (runner, name) in done:
                continue
            tell = partial(self._measured, change, open=lambda: self.open)
            found = tell(tapped, without)
            against_document = [] if right is None else [tell(tapped, right), tell(without, right)]
            is_wrong = [one.verdict is Verdict.MISMATCH for one in against_document]
            if found.verdict is not Verdict.MISMATCH or (is_wrong and not any(is_wrong)):
                assert tapped is not None
                exact = measure(tapped, without, EXACT)
                how = exact.remark or f"by up to {exact.max_abs:.3g}"
                why = "indices repeat before it" if found.verdict is Verdict.CONTESTED else "fusions differ"
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
                comparison = make(runner, tell(without, tapped), without, tapped, tapped=True)
                end = "; with taps every scatter node is right"
            if comparison.reference == runner or (runner, name, comparison.reference) not in known:
                self.findings.append(comparison)
            how = f": {found.remark}"
            if found.worst is not None:
                place = f"{list(found.worst.index)} is " if found.worst.index else "it is "
                how = f": {place}{shown(found.worst.got)} with taps and {shown(found.worst.expected)} without"
            message = f"{runner} contradicts itself when nodes are tapped{how}{end}"
            odd = (one for one in of_kind(Outlier, self.findings) if (one.node, one.tensor) == (None, name))
            is_named = any(runner in one.runners for one in odd)
            outlier = Outlier(Level.MODEL, None, name, self.number, (runner,), message)
            self.findings.append(message if is_named else outlier)


def of_kind(kind: type[_Kind], findings: Iterable[object]) -> list[_Kind]:
    return [one for one in findings if isinstance(one, kind)]


def comparisons_in(findings: Iterable[Finding]) -> list[Comparison]:
    """Return those of outputs, then those of nodes."""
    return sorted(of_kind(Comparison, findings), key=lambda one: one.level is Level.NODE)


def shown(element: object) -> str:
    return f"{element:.9g}" if isinstance(element, float) else str(element)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
