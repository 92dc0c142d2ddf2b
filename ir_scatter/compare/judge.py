"""Judges what runners gave: outputs by each other, scatter nodes by their document, and who is wrong."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.contested import OpenOutput, excused
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
from ir_scatter.core.errors import Error, IllegalCase
from ir_scatter.core.model import Model
from ir_scatter.evaluate.certainty import detail
from ir_scatter.evaluate.model import case_of_node
from ir_scatter.evaluate.operator import Case
from ir_scatter.ops.lookup import find, scatter_types
from ir_scatter.ops.spec import Reduction
from ir_scatter.runners.base import Execution, Outcome, Status, Tap, tap_of

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

Note = Comparison | Guarded | NotTapped
"""What there is to say of a tapped node."""

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

    Args:
        subject: the run that is judged.
        reference: the run that it is held against.
        case: the number of the inputs.
        tolerances: how far elements may be apart.
        open: what is open in the subject's model.
        open_in_reference: and in that of the reference, if it is another one.
    """
    precision = coarser(subject.precision, reference.precision)
    for name in dict.fromkeys((*reference.outputs, *subject.outputs)):
        got, expected = subject.outputs.get(name), reference.outputs.get(name)
        if expected is None:
            size = subject.outputs[name].size
            found = Measure(Verdict.MISMATCH, size, size, remark="is missing in the reference")
        else:
            found = _measured(name, got, expected, precision, tolerances, open, open_in_reference or open)
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
    name: str, got: "Array | None", expected: "Array", precision: str, tolerances: Tolerances, *open: Open
) -> Measure:
    """Return how an output differs from another, where it is not left open in the models of both."""
    if got is None:
        return Measure(Verdict.MISMATCH, expected.size, expected.size, remark="is missing")
    found = measure(got, expected, tolerances.find(name) or default_tolerance(expected, precision))
    if found.verdict is not Verdict.MISMATCH or not open:
        return found
    return excused(found, got, expected, open[0]().get(name), open[-1]().get(name))


def _of_output(
    name: str,
    case: int,
    subject: str,
    reference: str,
    found: Measure,
    got: "Array | None",
    expected: "Array | None",
    *,
    tapped: bool = False,
) -> Comparison:
    return Comparison(
        Level.MODEL, None, name, case, subject, reference, found, got=got, expected=expected, tapped=tapped
    )


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


class NodeJudge:
    """Holds what came out of taps against NumPy on the same inputs.

    Attributes:
        contested: by the number of the inputs, the nodes whose result the document leaves open: where
            that is in each of their computations.
    """

    def __init__(self, nodes: Mapping[Tap, ScatterNode], tolerances: Tolerances) -> None:
        self._nodes = {(tap.scope, tap.output, tap.callers): scatter for tap, scatter in nodes.items()}
        self._tolerances = tolerances
        self.contested: dict[int, dict[str, list[Array]]] = {}

    def judge(self, run: Outcome, case: int) -> list[Note]:
        """Return what is to be said of every computation of every node in a run with taps.

        One that NumPy has nothing to say of is a comparison of the runner with itself.
        """
        found: list[Note] = []
        for tapped in run.tapped:
            scatter = self._nodes.get((tapped.tap.scope, tapped.tap.output, tapped.tap.callers))
            if scatter is None:
                continue
            if tapped.problem or not tapped.executions:
                found.append(NotTapped(run.runner, tapped.tap.scope, tapped.problem or NEVER))
            for execution in tapped.executions:
                found += self._judged(scatter, execution, run, case)
        return found

    def _judged(self, scatter: ScatterNode, execution: Execution, run: Outcome, case: int) -> Iterator[Note]:
        scope, operator, runner = scatter.node.scope, str(scatter.spec.key), run.runner
        said = Comparison(
            Level.NODE,
            scope,
            output_of(scatter),
            case,
            runner,
            NUMPY,
            Measure(Verdict.NONDETERMINISTIC),
            execution.place,
            operator,
            execution.output,
            None,
            execution.inputs,
            caller=execution.caller,
        )
        try:
            computed = case_of_node(scatter, execution.inputs)
            found, expected, contested = self._measured(scatter, execution.output, computed, run.precision)
        except IllegalCase as error:
            yield Guarded.illegal(runner, scope, operator, case, error)
            return
        except Error as error:
            yield NotTapped(runner, scope, str(error))
            yield replace(said, reference=runner)
            return
        if contested is not None:
            self._keep(case, scope, contested)
            count = int(np.count_nonzero(contested))
            is_nan = scatter.reduction is not Reduction.NONE
            yield Guarded.contested(runner, scope, operator, case, count, expected.size, is_nan=is_nan)
        yield without_equal(replace(said, measure=found, expected=expected))

    def _keep(self, case: int, scope: str, contested: "Array") -> None:
        seen = self.contested.setdefault(case, {}).setdefault(scope, [])
        if not any(np.array_equal(contested, one) for one in seen):
            seen.append(contested)

    def _measured(
        self, scatter: ScatterNode, got: "Array", case: Case, precision: str
    ) -> "tuple[Measure, Array, Array | None]":
        """Return how an output differs, what was expected, and where it is contested, None for nowhere."""
        asked = self._tolerances.find(*tolerance_names(scatter))
        expected = detail(case)
        values = expected.values
        contested = expected.contested if expected.contested.any() else None
        tolerance = asked or default_tolerance(values, precision, is_node=True)
        if scatter.reduction is not Reduction.NONE and are_equal(got, values):
            return Measure(Verdict.EQUAL, values.size, tolerance=tolerance), values, contested
        is_comparable = got.shape == values.shape and got.dtype == values.dtype
        bits = FRACTION_BITS.get(values.dtype.name)
        rounding = 1.0 if bits is None else float(np.exp2(bits - computed_bits(bits, precision)))
        found = measure(
            got,
            values,
            tolerance,
            bound=None if asked else expected.bound_from_values(rounding),
            contested=expected.allows(got, tolerance.absolute, tolerance.relative) if is_comparable else None,
        )
        return found, values, contested


def without_equal(one: Comparison) -> Comparison:
    """Let go of arrays that are equal: nobody will look at them."""
    if one.measure.verdict is not Verdict.EQUAL:
        return one
    return replace(one, got=None, expected=None, inputs=())


def merge_repeats(runs: Sequence[Sequence[Note]]) -> list[Note]:
    """Say once what was found in several runs with taps: of each computation the worst.

    Results that NumPy has nothing to say of are held against each other.
    """
    rest: list[Note] = []
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
    for found in same.values():
        if found[0].subject == found[0].reference:
            rest += _changed(found)
        else:
            rest.append(_worst(found))
    return rest


def _worst(found: Sequence[Comparison]) -> Comparison:
    order = list(Verdict)
    worst = max(found, key=lambda one: (order.index(one.measure.verdict), one.measure.mismatched))
    wrong = sum(one.measure.verdict is Verdict.MISMATCH for one in found)
    return replace(worst, wrong_runs=(wrong, len(found))) if 0 < wrong < len(found) else worst


def _changed(found: Sequence[Comparison]) -> list[Comparison]:
    """Return how a result changes whose inputs do not."""
    first, expected = found[0], found[0].got
    assert expected is not None
    for one in found[1:]:
        both = zip(first.inputs, one.inputs, strict=False)
        if all(a is b or (a is not None and b is not None and are_equal(a, b)) for a, b in both):
            assert one.got is not None
            measured = measure(one.got, expected, default_tolerance(expected, is_node=True))
            if measured.verdict is Verdict.MISMATCH:
                measured = replace(measured, verdict=Verdict.NONDETERMINISTIC)
                return [replace(first, measure=measured, got=one.got, expected=expected)]
    return []


# All runs of one case, and who is wrong.


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """An output that is not the same with taps as without: the same runner on the same inputs.

    Attributes:
        plain: the run without taps.
        output: its name.
        without: what it is without taps.
        tapped: what it is with them; None if it is missing then.
    """

    plain: Outcome
    output: str
    without: "Array"
    tapped: "Array | None"


class CaseJudge:
    """Judges what runners make of one model for one set of inputs; tapped nodes while the next one runs.

    Attributes:
        number: of the inputs.
        runs: of each runner, those with taps only if they are to be kept.
        notes: what is said of nodes.
        outputs: the comparisons of outputs.
        outliers: who says something else than two others, or contradicts itself.
        remarks: what else there is to say.
    """

    def __init__(self, number: int, nodes: NodeJudge, settings: Settings, open: Open) -> None:
        self.number, self._nodes, self._settings, self._open = number, nodes, settings, open
        self.runs: list[Runs] = []
        self.notes: list[Note] = []
        self.outputs: list[Comparison] = []
        self.outliers: list[Outlier] = []
        self.remarks: list[str] = []
        self._changes: list[Changed] = []
        self._executor = ThreadPoolExecutor(1)
        self._judged: list[list[Future[list[Note]]]] = []

    def take(self, plain: Outcome, tapped: Iterable[Outcome]) -> None:
        """Take the runs of one runner as they come."""
        judged, kept = list[Future[list[Note]]](), list[Outcome]()
        for run in tapped:
            for name, without in plain.outputs.items() if run.runs else ():
                got = run.outputs.get(name)
                if got is None or not any(are_equal(got, one[name]) for one in plain.runs if name in one):
                    self._changes.append(Changed(plain, name, without, got))
            known = replace(run, precision=plain.precision)
            judged.append(self._executor.submit(self._nodes.judge, known, self.number))
            if self._settings.keeps_runs:
                kept.append(known)
        self._judged.append(judged)
        self.runs.append(Runs(plain, tuple(kept)))

    def judge_nodes(self) -> None:
        """Say of nodes what was found out meanwhile, once what holds of several runs."""
        for judged in self._judged:
            self.notes += merge_repeats([one.result() for one in judged])

    @property
    def outcomes(self) -> list[Outcome]:
        """Return the runs without taps."""
        return [one.plain for one in self.runs]

    @property
    def is_changed(self) -> bool:
        """Tell whether taps changed an output by more than rounding."""
        found = (self._measured(one, one.tapped, one.without) for one in self._changes)
        return any(one.verdict is Verdict.MISMATCH for one in found)

    def _measured(self, one: Changed, got: "Array | None", expected: "Array", *open: Open) -> Measure:
        return _measured(one.output, got, expected, one.plain.precision, self._settings.tolerances, *open)

    def compare_all(self) -> None:
        """Compare outputs: with NumPy if it computed the model, or else with the first that did."""
        ran = [one for one in self.outcomes if one.status is Status.OK]
        ran.sort(key=lambda one: not one.runner.endswith(NUMPY))
        self.compare(
            (subject, reference)
            for reference, subject in combinations(ran, 2)
            if self._settings.pairwise or reference is ran[0]
        )
        for outcome in self.outcomes:
            self.outputs += compare_runs(outcome, self.number)

    def compare(self, pairs: Iterable[tuple[Outcome, Outcome]]) -> None:
        for subject, reference in pairs:
            self.outputs += compare_outputs(
                subject, reference, self.number, self._settings.tolerances, self._open
            )

    def find_outliers(self) -> None:
        """Name the runner that says something else where three or more say something.

        With NumPy as the reference, runners that agree with each other against it are compared too: then
        NumPy, that is the document as it is read here, stands alone. Of the iterations of a loop, and the
        calls of a function, the first is named in which somebody does.
        """
        by_tensor: dict[tuple[object, ...], list[Comparison]] = {}
        for one in (*self.outputs, *comparisons_in(self.notes)):
            if one.subject != one.reference:
                place = (one.level, one.node, one.tensor, one.place, one.caller)
                by_tensor.setdefault(place, []).append(one)
        found: dict[tuple[object, ...], Outlier] = {}
        for key, same in by_tensor.items():
            outlier = self._outlier(same, {one.runner: one for one in self.outcomes})
            if outlier is not None:
                found.setdefault(key[:3], outlier)
        self.outliers += found.values()

    def _outlier(self, found: Sequence[Comparison], outcomes: Mapping[str, Outcome]) -> Outlier | None:
        first, reference = found[0], found[0].reference
        verdicts = {one.subject: one.measure.verdict for one in found if one.reference == reference}
        wrong = [name for name, verdict in verdicts.items() if verdict is Verdict.MISMATCH]
        if not wrong or len(verdicts) + 1 < _CAMPS:
            return None
        right = [name for name in verdicts if name not in wrong]
        runners, names = tuple(wrong), _listed(wrong)
        if right:
            verb = "departs" if len(wrong) == 1 else "depart"
            message = f"{names} {verb} from what {_listed([reference, *right])} say"
        elif first.level is Level.NODE:
            message = f"{names} all differ from {reference}"
        elif self._agree([outcomes[name] for name in wrong if name in outcomes], first.tensor):
            runners, message = (reference,), f"{names} agree with each other against {reference}"
        else:
            message = f"{names} differ from {reference}, and from each other"
        message += _by_document(found) if reference.endswith(NUMPY) else ""
        return Outlier(first.level, first.node, first.tensor, self.number, runners, message)

    def _agree(self, outcomes: Sequence[Outcome], tensor: str) -> bool:
        first = outcomes[0].outputs.get(tensor) if outcomes else None
        if first is None:
            return False
        precision = coarser(*(one.precision for one in outcomes))
        others = (one.outputs.get(tensor) for one in outcomes[1:])
        found = (_measured(tensor, got, first, precision, self._settings.tolerances) for got in others)
        return all(one.verdict is not Verdict.MISMATCH for one in found)

    def explain(self, numpy: Outcome | None) -> None:
        """Say of outputs that taps changed whether it is rounding, and if not, which of the two is wrong.

        NumPy tells, or else the nodes if all are right when they are tapped; of each output of a runner
        one thing is said.
        """
        document = {} if numpy is None or numpy.status is not Status.OK else numpy.outputs
        done: set[tuple[str, str]] = set()
        for one in self._changes:
            runner, name, without, tapped = one.plain.runner, one.output, one.without, one.tapped
            if (runner, name) in done:
                continue

            def told(got: "Array | None", expected: "Array", one: Changed = one) -> Measure:
                return self._measured(one, got, expected, self._open)

            found = told(tapped, without)
            if found.verdict is not Verdict.MISMATCH:
                self.remarks.append(_rounding(one, is_open=found.verdict is Verdict.CONTESTED))
                continue
            done.add((runner, name))
            if tapped is None:
                found = replace(found, remark="is missing when nodes are tapped")
            said = replace(found, verdict=Verdict.NONDETERMINISTIC)
            comparison = _of_output(name, self.number, runner, runner, said, tapped, without, tapped=True)
            right, end = document.get(name), ""
            if right is not None:
                of_tapped, of_plain = told(tapped, right), told(without, right)
                is_wrong = [each.verdict is Verdict.MISMATCH for each in (of_tapped, of_plain)]
                if not any(is_wrong):
                    self.remarks.append(_rounding(one, is_open=False))
                    continue
                if is_wrong[1]:
                    assert numpy is not None
                    comparison = _of_output(name, self.number, runner, numpy.runner, of_plain, without, right)
                if found.worst is not None and len(found.worst.index) == right.ndim:
                    end = f"; by the document it is {shown(plain(right[found.worst.index]))}"
                words = ["wrong" if wrong else "right" for wrong in is_wrong]
                end += f": {words[0]} with taps, {words[1]} without"
            elif tapped is not None and self._are_nodes_right(runner):
                said = told(without, tapped)
                comparison = _of_output(name, self.number, runner, runner, said, without, tapped, tapped=True)
                end = "; with taps every scatter node is right"
            self._contradicts(comparison, found, end)

    def _contradicts(self, comparison: Comparison, found: Measure, end: str) -> None:
        """Enter how a runner contradicts itself, unless the same is said already."""
        runner, name, reference = comparison.subject, comparison.tensor, comparison.reference
        known = {(one.subject, one.tensor, one.reference) for one in self.outputs}
        if reference == runner or (runner, name, reference) not in known:
            self.outputs.append(comparison)
        how = f": {found.remark}"
        if found.worst is not None:
            place = f"{list(found.worst.index)} is " if found.worst.index else "it is "
            how = f": {place}{shown(found.worst.got)} with taps and {shown(found.worst.expected)} without"
        message = f"{runner} contradicts itself when nodes are tapped{how}{end}"
        if any(one.node is None and one.tensor == name and runner in one.runners for one in self.outliers):
            self.remarks.append(message)
        else:
            self.outliers.append(Outlier(Level.MODEL, None, name, self.number, (runner,), message))

    def _are_nodes_right(self, runner: str) -> bool:
        """Tell whether every scatter node was judged when it was tapped, and none is wrong."""
        verdicts = [one.measure.verdict for one in comparisons_in(self.notes) if one.subject == runner]
        is_missing = any(
            isinstance(one, NotTapped) and one.runner == runner and one.reason != NEVER for one in self.notes
        )
        return bool(verdicts) and not is_missing and not any(one.is_difference for one in verdicts)


def comparisons_in(notes: Sequence[Note]) -> list[Comparison]:
    """Return the verdicts among what is said of nodes."""
    return [one for one in notes if isinstance(one, Comparison)]


def _by_document(found: Sequence[Comparison]) -> str:
    worst = next((one.measure.worst for one in found if one.measure.verdict is Verdict.MISMATCH), None)
    if worst is None:
        return ""
    is_open = worst.expected != worst.expected  # no document says what becomes of NaN in a reduction
    source = "as NumPy computes it" if is_open else "by the document"
    return f": {source} {list(worst.index)} is {shown(worst.expected)}, not {shown(worst.got)}"


def shown(element: object) -> str:
    return f"{element:.9g}" if isinstance(element, float) else str(element)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _rounding(one: Changed, *, is_open: bool) -> str:
    """Return what is said of a change that is no verdict."""
    assert one.tapped is not None
    found = measure(one.tapped, one.without, EXACT)
    why = "indices repeat before it" if is_open else "fusions differ"
    how = found.remark or f"by up to {found.max_abs:.3g}"
    return f"{one.plain.runner}: output {one.output} changes {how} when nodes are tapped: {why}"
