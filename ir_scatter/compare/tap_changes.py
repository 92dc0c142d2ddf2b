"""Outputs that are not the same when nodes are tapped: the same runner on the same inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ir_scatter.compare.contested import OpenOutput, excused
from ir_scatter.compare.odd import shown
from ir_scatter.compare.session import NEVER, NotTapped
from ir_scatter.compare.tensors import are_equal, measure
from ir_scatter.compare.tensors import plain as element
from ir_scatter.compare.tolerances import EXACT, Tolerances, default_tolerance
from ir_scatter.compare.verdicts import Comparison, Level, Measure, Odd, Verdict
from ir_scatter.runners.base import Outcome, Status

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

_Open = Callable[[], Mapping[str, OpenOutput]]


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """An output of a runner that is not the same with taps.

    Attributes:
        runner: whose output it is.
        output: its name.
        precision: what it was computed in.
        plain: what it is without taps.
        tapped: what it is with them; None if it is missing then.
    """

    runner: str
    output: str
    precision: str
    plain: "Array"
    tapped: "Array | None"

    def measured(self, tolerances: Tolerances) -> Measure:
        """Return how the two differ beyond rounding."""
        return _measured(self, self.tapped, self.plain, tolerances)


@dataclass(slots=True, eq=False)
class Told:
    """What is said of such outputs."""

    comparisons: list[Comparison] = field(default_factory=list)
    odd: list[Odd] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def changed_by_taps(plain: Outcome, tapped: Outcome) -> Iterator[Changed]:
    """Yield the outputs that taps have changed, if they are none of those of the runs without taps."""
    for name, expected in plain.outputs.items() if tapped.runs else ():
        got = tapped.outputs.get(name)
        if got is None or not any(are_equal(got, run[name]) for run in plain.runs if name in run):
            yield Changed(plain.runner, name, plain.precision, expected, got)


class TapChanges:
    """Tells whether taps changed outputs within rounding, and if not, which of the two is wrong."""

    def __init__(
        self,
        case: int,
        tolerances: Tolerances,
        numpy: Outcome | None,
        outputs: Sequence[Comparison],
        odd: Sequence[Odd],
        said: Sequence[object],
    ) -> None:
        """Take what is known of a case.

        Args:
            case: the number of the inputs.
            tolerances: how far elements may be apart.
            numpy: the document's outcome, if there is one.
            outputs: comparisons of outputs.
            odd: who is named already.
            said: what there is to say of nodes.
        """
        self._case, self._tolerances, self._said = case, tolerances, said
        self._numpy = numpy if numpy is not None and numpy.status is Status.OK else None
        self._named = {(runner, one.tensor) for one in odd if one.node is None for runner in one.runners}
        self._judged = {
            (one.subject, one.tensor)
            for one in outputs
            if self._numpy is not None and one.reference == self._numpy.runner
        }

    def tell(self, changes: Sequence[Changed], open: _Open) -> Told:
        """Return what is said of changed outputs, of each output of a runner one thing.

        Args:
            changes: what taps changed.
            open: gives the outputs of which the document leaves something open.
        """
        told = Told()
        done: set[tuple[str, str]] = set()
        for one in changes:
            key = (one.runner, one.output)
            if key in done:
                continue
            found, is_open = self._measured(one, one.tapped, one.plain, open)
            if found.verdict is not Verdict.MISMATCH:
                told.remarks.append(_remark(one, is_open=is_open))
                continue
            done.add(key)
            self._blame(one, found, open, told)
        return told

    def _blame(self, one: Changed, found: Measure, open: _Open, told: Told) -> None:
        """Say which of two results that differ is wrong, or that it cannot be told."""
        document = None if self._numpy is None else self._numpy.outputs.get(one.output)
        changed = replace(found, verdict=Verdict.NONDETERMINISTIC)
        comparison = replace(self._comparison(one, one.runner, changed, one.tapped, one.plain), tapped=True)
        end = ""
        if document is not None:
            assert self._numpy is not None
            plain, _ = self._measured(one, one.plain, document, open)
            tapped, _ = self._measured(one, one.tapped, document, open)
            is_plain_wrong, is_tapped_wrong = (each.verdict is Verdict.MISMATCH for each in (plain, tapped))
            if not is_plain_wrong and not is_tapped_wrong:
                told.remarks.append(_remark(one, is_open=False))
                return
            if is_plain_wrong:
                comparison = self._comparison(one, self._numpy.runner, plain, one.plain, document)
            words = {False: "right", True: "wrong"}
            end = _by_document(found, document)
            end += f": {words[is_tapped_wrong]} with taps, {words[is_plain_wrong]} without"
        elif self._are_nodes_right(one.runner) and one.tapped is not None:
            wrong, _ = self._measured(one, one.plain, one.tapped, open)
            comparison = self._comparison(one, one.runner, wrong, one.plain, one.tapped)
            comparison = replace(comparison, tapped=True)
            end = "; with taps every scatter node is right"
        if comparison.reference == one.runner or (one.runner, one.output) not in self._judged:
            told.comparisons.append(comparison)
        message = _contradiction(one, found, end)
        if (one.runner, one.output) in self._named:
            told.remarks.append(message)
        else:
            told.odd.append(Odd(Level.MODEL, None, one.output, self._case, (one.runner,), message))

    def _measured(
        self, one: Changed, got: "Array | None", expected: "Array", open: _Open
    ) -> tuple[Measure, bool]:
        """Return how two results differ beyond rounding, and whether the document leaves that open."""
        found = _measured(one, got, expected, self._tolerances)
        if found.verdict is Verdict.MISMATCH and got is not None:
            known = open().get(one.output)
            found = excused(found, got, expected, known, known)
        return found, found.verdict is Verdict.CONTESTED

    def _are_nodes_right(self, runner: str) -> bool:
        """Tell whether every scatter node was judged when it was tapped, and none is wrong."""
        verdicts = [
            one.measure.verdict for one in self._said if isinstance(one, Comparison) and one.subject == runner
        ]
        missing = any(
            isinstance(one, NotTapped) and one.runner == runner and one.reason != NEVER for one in self._said
        )
        return bool(verdicts) and not missing and not any(one.is_difference for one in verdicts)

    def _comparison(
        self, one: Changed, reference: str, found: Measure, got: "Array | None", expected: "Array | None"
    ) -> Comparison:
        return Comparison(
            Level.MODEL,
            None,
            one.output,
            self._case,
            one.runner,
            reference,
            found,
            got=got,
            expected=expected,
        )


def _contradiction(one: Changed, found: Measure, end: str) -> str:
    """Say how a runner contradicts itself."""
    how = f": {found.remark}"
    if found.worst is not None:
        place = f"{list(found.worst.index)} is " if found.worst.index else "it is "
        how = f": {place}{shown(found.worst.got)} with taps and {shown(found.worst.expected)} without"
    return f"{one.runner} contradicts itself when nodes are tapped{how}{end}"


def _measured(one: Changed, got: "Array | None", expected: "Array", tolerances: Tolerances) -> Measure:
    if got is None:
        remark = "is missing when nodes are tapped"
        return Measure(Verdict.MISMATCH, expected.size, expected.size, remark=remark)
    return measure(
        got, expected, tolerances.find((one.output,)) or default_tolerance(expected, one.precision)
    )


def _remark(one: Changed, *, is_open: bool) -> str:
    """Return what is said of a change that is no verdict."""
    assert one.tapped is not None
    found = measure(one.tapped, one.plain, EXACT)
    why = "indices repeat before it" if is_open else "fusions differ"
    how = found.remark or f"by up to {found.max_abs:.3g}"
    return f"{one.runner}: output {one.output} changes {how} when nodes are tapped: {why}"


def _by_document(found: Measure, document: "Array") -> str:
    """Return what NumPy computes for the worst element."""
    if found.worst is None or len(found.worst.index) != document.ndim:
        return ""
    return f"; by the document it is {shown(element(document[found.worst.index]))}"
