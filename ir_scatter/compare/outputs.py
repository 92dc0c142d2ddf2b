"""The outputs of a model as several runners give them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from ir_scatter.compare.tensors import measure
from ir_scatter.compare.tolerances import Tolerances
from ir_scatter.compare.verdicts import Comparison, Level, Measure, Odd, Verdict
from ir_scatter.compare.voices import NUMPY
from ir_scatter.runners.outcome import Outcome, Status

if TYPE_CHECKING:
    from ir_scatter.constants import Array

_VOICES = 3
"""From so many voices on one can be odd."""


def compare_outputs(
    outcomes: Sequence[Outcome],
    case: int,
    tolerances: Tolerances,
    *,
    contested: Collection[str] = (),
    pairwise: bool = False,
) -> Iterator[Comparison]:
    """Yield a comparison for each output and each runner that is not the reference.

    The reference is NumPy if it computed the model, otherwise the first that did.

    Args:
        outcomes: in the order in which runners were named.
        case: the number of the inputs.
        tolerances: how far elements may be apart.
        contested: outputs that depend on a node whose result the document leaves open.
        pairwise: whether every pair is compared.
    """
    ran = (one for one in outcomes if one.status is Status.OK)
    voices = sorted(ran, key=lambda one: not one.runner.endswith(NUMPY))
    pairs = combinations(voices, 2) if pairwise else ((voices[0], other) for other in voices[1:])
    for reference, subject in pairs:
        for name, expected in reference.outputs.items():
            found = _measured(name, subject, expected, tolerances)
            if found.verdict is Verdict.MISMATCH and name in contested and not found.remark:
                found = replace(found, verdict=Verdict.CONTESTED)
            got = subject.outputs.get(name)
            yield Comparison(
                Level.MODEL,
                None,
                name,
                case,
                subject.runner,
                reference.runner,
                found,
                got=got,
                expected=expected,
            )
    for voice in voices:
        yield from _repeated(voice, case)


def _measured(name: str, subject: Outcome, expected: "Array", tolerances: Tolerances) -> Measure:
    got = subject.outputs.get(name)
    if got is None:
        return Measure(Verdict.MISMATCH, expected.size, expected.size, remark="is no output there")
    return measure(got, expected, tolerances.find((name,), expected, subject.precision))


def _repeated(voice: Outcome, case: int) -> Iterator[Comparison]:
    """Yield a comparison of a runner with itself for each output that changes from run to run."""
    for name, first in voice.outputs.items():
        for run in voice.runs[1:]:
            found = measure(run[name], first, Tolerances().find((), first))
            if found.verdict is not Verdict.EQUAL:
                found = replace(found, verdict=Verdict.NONDETERMINISTIC)
                yield Comparison(
                    Level.MODEL,
                    None,
                    name,
                    case,
                    voice.runner,
                    voice.runner,
                    found,
                    got=run[name],
                    expected=first,
                )
                break


def find_odd(comparisons: Sequence[Comparison], outcomes: Sequence[Outcome]) -> list[Odd]:
    """Name the voice that says something else where three or more speak.

    With NumPy as the reference, runners that agree with each other against it are compared too: then
    NumPy, that is the document as it is read here, stands alone.
    """
    by_tensor: dict[tuple[Level, str | None, str, int], list[Comparison]] = {}
    for one in comparisons:
        if one.subject != one.reference:
            by_tensor.setdefault((one.level, one.node, one.tensor, one.case), []).append(one)
    return [odd for key, found in by_tensor.items() if (odd := _odd(key, found, outcomes)) is not None]


def _odd(
    key: tuple[Level, str | None, str, int], found: Sequence[Comparison], outcomes: Sequence[Outcome]
) -> Odd | None:
    reference = found[0].reference
    verdicts = {one.subject: one.measure.verdict for one in found if one.reference == reference}
    wrong = [name for name, verdict in verdicts.items() if verdict.is_difference]
    if not wrong or len(verdicts) + 1 < _VOICES:
        return None
    right = [name for name in verdicts if name not in wrong]
    value = _document(found, reference)
    if right:
        names = ", ".join(wrong)
        agree = f"{reference} and {', '.join(right)}"
        verb = "departs" if len(wrong) == 1 else "depart"
        return Odd(*key, tuple(wrong), f"{names} {verb} from what {agree} say{value}")
    if key[0] is Level.MODEL and _agree(wrong, key, outcomes):
        return Odd(*key, (reference,), f"{', '.join(wrong)} agree with each other against {reference}{value}")
    return Odd(*key, tuple(wrong), f"{', '.join(wrong)} all differ from {reference}{value}")


def _agree(
    names: Sequence[str], key: tuple[Level, str | None, str, int], outcomes: Sequence[Outcome]
) -> bool:
    """Tell whether runners give the same output."""
    known: Mapping[str, Outcome] = {one.runner: one for one in outcomes}
    arrays = [known[name].outputs.get(key[2]) for name in names if name in known]
    first = arrays[0] if arrays else None
    if first is None:
        return False
    tolerance = Tolerances().find((), first)
    return all(
        other is not None and measure(other, first, tolerance).verdict is not Verdict.MISMATCH
        for other in arrays[1:]
    )


def _document(found: Sequence[Comparison], reference: str) -> str:
    """Return the value that the document demands, where NumPy computed it."""
    worst = next((one.measure.worst for one in found if one.measure.verdict.is_difference), None)
    if worst is None or reference != NUMPY:
        return ""
    return f": by the document {list(worst.index)} is {worst.expected}, not {worst.got}"
