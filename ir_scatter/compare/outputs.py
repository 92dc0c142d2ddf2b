"""The outputs of a model as several runners give them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from ir_scatter.compare.contested import OpenOutput, excused
from ir_scatter.compare.tensors import are_equal, measure
from ir_scatter.compare.tolerances import Tolerances, coarser, default_tolerance
from ir_scatter.compare.verdicts import Comparison, Level, Measure, Verdict
from ir_scatter.compare.voices import NUMPY
from ir_scatter.runners.base import Outcome, Status

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


def compare_outputs(
    outcomes: Sequence[Outcome],
    case: int,
    tolerances: Tolerances,
    *,
    open: Mapping[str, OpenOutput] | None = None,
    pairwise: bool = False,
) -> Iterator[Comparison]:
    """Yield a comparison for each output and each runner that is not the reference.

    The reference is NumPy if it computed the model, otherwise the first that did.

    Args:
        outcomes: in the order in which runners were named.
        case: the number of the inputs.
        tolerances: how far elements may be apart.
        open: the outputs of which the document leaves something open, by name.
        pairwise: whether every pair is compared.
    """
    ran = (one for one in outcomes if one.status is Status.OK)
    voices = sorted(ran, key=lambda one: not one.runner.endswith(NUMPY))
    pairs = combinations(voices, 2) if pairwise else ((voices[0], other) for other in voices[1:])
    for reference, subject in pairs:
        yield from compare_pair(subject, reference, case, tolerances, open or {}, open or {})


def compare_pair(
    subject: Outcome,
    reference: Outcome,
    case: int,
    tolerances: Tolerances,
    open: Mapping[str, OpenOutput],
    open_in_reference: Mapping[str, OpenOutput],
) -> Iterator[Comparison]:
    """Yield a comparison for each output of the reference, and for each that it lacks.

    Args:
        subject: the runner that is judged.
        reference: the runner that it is held against.
        case: the number of the inputs.
        tolerances: how far elements may be apart.
        open: the outputs of which the document leaves something open, by name, in the subject's model.
        open_in_reference: the same in the reference's model.
    """
    for name, expected in reference.outputs.items():
        got = subject.outputs.get(name)
        if got is None:
            found = Measure(Verdict.MISMATCH, expected.size, expected.size, remark="is missing")
        else:
            precision = coarser(subject.precision, reference.precision)
            allowed = tolerances.find((name,)) or default_tolerance(expected, precision)
            found = measure(got, expected, allowed)
            found = excused(found, got, expected, open.get(name), open_in_reference.get(name))
        yield _comparison(name, case, subject, reference, found, got, expected)
    for name, extra in subject.outputs.items():
        if name not in reference.outputs:
            found = Measure(Verdict.MISMATCH, extra.size, extra.size, remark="is missing in the reference")
            yield _comparison(name, case, subject, reference, found, extra, None)


def compare_runs(voice: Outcome, case: int) -> Iterator[Comparison]:
    """Yield a comparison of a runner with itself for each output that changes from run to run."""
    for name, first in voice.outputs.items():
        if any(name not in run for run in voice.runs):
            found = Measure(
                Verdict.NONDETERMINISTIC, first.size, first.size, remark="is missing in some runs"
            )
            yield _comparison(name, case, voice, voice, found, None, first)
            continue
        changed = next((run[name] for run in voice.runs[1:] if not are_equal(run[name], first)), None)
        if changed is not None:
            found = measure(changed, first, default_tolerance(first))
            found = replace(found, verdict=Verdict.NONDETERMINISTIC)
            yield _comparison(name, case, voice, voice, found, changed, first)


def _comparison(
    name: str,
    case: int,
    subject: Outcome,
    reference: Outcome,
    found: Measure,
    got: "Array | None",
    expected: "Array | None",
) -> Comparison:
    return Comparison(
        Level.MODEL, None, name, case, subject.runner, reference.runner, found, got=got, expected=expected
    )
