"""What a runner made of a case, held against the document."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ir_scatter.cases.case import Case
from ir_scatter.cases.twins import promised
from ir_scatter.compare.measure import Measure, Verdict, measure_node
from ir_scatter.core.arrays import Array, same_bits
from ir_scatter.core.shapes import show, show_numbers
from ir_scatter.core.shortage import names_shortage
from ir_scatter.defects.base import Symptom
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.evaluate.operator import CheckedCase
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.runners.base import Status, Streamed


class Judged(NamedTuple):
    """What is said of one case on one runner; no symptom where nothing is wrong, or where it was not run."""

    symptom: Symptom | None
    message: str = ""
    got: Array | None = None
    is_run: bool = True


_FAILED = {Status.CRASHED: Symptom.CRASHED, Status.TIMEOUT: Symptom.HUNG}


def reference(case: Case) -> DetailedResult:
    """Return what the document says of a legal case."""
    operation = case.operation()
    task, data, indices, updates = operation.task, operation.data, operation.indices, operation.updates
    values = scatter(task, data, indices, updates)
    return DetailedResult(values, CheckedCase(task, data, indices, updates, case.spec, data.dtype))


def judge(case: Case, answer: Streamed, again: Sequence[Array] = ()) -> Judged:
    """Hold an answer against the document.

    Args:
        case: legal, or one that breaks a rule.
        answer: whose outputs are that of the case alone.
        again: what the same runner gave for the same case at other times.
    """
    if answer.status is not Status.OK and names_shortage(answer.message):
        return Judged(None, answer.message, is_run=False)
    if answer.status in _FAILED:
        return Judged(_FAILED[answer.status], answer.message)
    if answer.status is Status.UNAVAILABLE:
        return Judged(None, answer.message, is_run=False)
    if answer.status is not Status.OK:
        return Judged(None if case.broken else Symptom.REFUSED, answer.message)
    got = answer.outputs[0]
    if case.broken:
        return Judged(Symptom.ACCEPTED_ILLEGAL, f"gives {show(got.shape)} and no error", got)
    for other in again:
        if other.shape != got.shape or not same_bits(other, got).all():
            return Judged(Symptom.NONDETERMINISTIC, "gives different results for the same inputs", got)
    expected = reference(case)
    is_alike = got.dtype == expected.values.dtype and got.shape == expected.values.shape
    if is_alike and not got.dtype.hasobject and got.tobytes() == expected.values.tobytes():
        return Judged(None, got=got)
    found = measure_node(expected, got, case.reduction)
    if found.verdict is not Verdict.MISMATCH:
        return Judged(None, got=got)
    return Judged(Symptom.WRONG_VALUE, worded(found), got)


def contradicted(case: Case, judged: Judged, of_the_other: Array | None) -> Judged:
    """Hold the answer to a twin against that to the other case, for which no reference is needed.

    Where reductions round, and where the document leaves elements open, the two may differ.
    """
    known = promised(case, of_the_other)
    if judged.got is None or known is None or not judged.got.shape == known.shape == case.data.shape:
        return judged
    expected = reference(case)
    found = measure_node(replace(expected, values=known), judged.got, case.reduction)
    if found.verdict is not Verdict.MISMATCH:
        return judged
    told = f"{worded(found).replace('the document says', 'its twin gives')}, {case.twin}"
    return Judged(Symptom.WRONG_VALUE, f"{judged.message}; {told}" if judged.message else told, judged.got)


def worded(found: Measure) -> str:
    """Say of a mismatch which element is what, and what the document says."""
    if found.worst is None:
        return f"the output {found.remark}"
    where = show_numbers(found.worst.index)
    count = "" if found.mismatched == 1 else f" ({found.mismatched} of {found.elements} elements)"
    return f"{where} is {found.worst.got}, the document says {found.worst.expected}{count}"
