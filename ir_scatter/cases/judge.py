"""Judges the results that runners give for cases: checks them against the specification."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ir_scatter.cases.case import Case
from ir_scatter.cases.twins import expected_of_twin
from ir_scatter.compare.measure import Measure, Verdict, measure_node
from ir_scatter.core.arrays import Array, same_bits
from ir_scatter.core.shapes import show, show_numbers
from ir_scatter.core.shortage import names_shortage
from ir_scatter.defects.base import Symptom
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.evaluate.operator import CheckedCase
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.runners.base import Status, Streamed


class Judgement(NamedTuple):
    """The result of checking a runner's answer to one case.

    Attributes:
        symptom: the kind of fault; None if there is none, or if the case was not run.
        message: the symptom in words, or why the case was refused or not run.
        got: the runner's output, if there is one.
        is_run: whether the runner ran the case.
    """

    symptom: Symptom | None
    message: str = ""
    got: Array | None = None
    is_run: bool = True


_SYMPTOM_OF_STATUS = {Status.CRASHED: Symptom.CRASHED, Status.TIMEOUT: Symptom.HUNG}


def reference(case: Case) -> DetailedResult:
    """Compute the output of a legal case with NumPy, as the specification requires."""
    operation = case.operation()
    task, data, indices, updates = operation.task, operation.data, operation.indices, operation.updates
    values = scatter(task, data, indices, updates)
    return DetailedResult(values, CheckedCase(task, data, indices, updates, case.spec, data.dtype))


def judge(case: Case, answer: Streamed, repeats: Sequence[Array] = ()) -> Judgement:
    """Check a runner's answer to a case against the specification.

    Args:
        case: a legal case, or one that breaks a rule.
        answer: the answer of the runner; its first output is that of the case.
        repeats: outputs of the same runner for the same case in other runs.
    """
    if answer.status is not Status.OK and names_shortage(answer.message):
        return Judgement(None, answer.message, is_run=False)
    if answer.status in _SYMPTOM_OF_STATUS:
        return Judgement(_SYMPTOM_OF_STATUS[answer.status], answer.message)
    if answer.status is Status.UNAVAILABLE:
        return Judgement(None, answer.message, is_run=False)
    if answer.status is not Status.OK:
        return Judgement(None if case.broken else Symptom.REFUSED, answer.message)
    output = answer.outputs[0]
    if case.broken:
        return Judgement(Symptom.ACCEPTED_ILLEGAL, f"gives {show(output.shape)} and no error", output)
    for repeat in repeats:
        if repeat.shape != output.shape or not same_bits(repeat, output).all():
            return Judgement(Symptom.NONDETERMINISTIC, "gives different results for the same inputs", output)
    expected = reference(case)
    is_alike = output.dtype == expected.values.dtype and output.shape == expected.values.shape
    if is_alike and not output.dtype.hasobject and output.tobytes() == expected.values.tobytes():
        return Judgement(None, got=output)
    measure = measure_node(expected, output, case.reduction)
    if measure.verdict is not Verdict.MISMATCH:
        return Judgement(None, got=output)
    return Judgement(Symptom.WRONG_VALUE, describe_mismatch(measure), output)


def compare_with_twin(case: Case, judgement: Judgement, output: Array | None) -> Judgement:
    """Check the runner's answer to a twin against its output for the original case.

    Return `judgement` if they agree, otherwise a wrong value. They may differ by the rounding of reductions,
    and in elements that the specification does not specify.
    """
    twin_output = expected_of_twin(case, output)
    if (
        judgement.got is None
        or twin_output is None
        or not judgement.got.shape == twin_output.shape == case.data.shape
    ):
        return judgement
    expected = reference(case)
    measure = measure_node(replace(expected, values=twin_output), judgement.got, case.reduction)
    if measure.verdict is not Verdict.MISMATCH:
        return judgement
    sentence = (
        f"{describe_mismatch(measure).replace('the specification requires', 'its twin gives')}, {case.twin}"
    )
    return Judgement(
        Symptom.WRONG_VALUE,
        f"{judgement.message}; {sentence}" if judgement.message else sentence,
        judgement.got,
    )


def describe_mismatch(measure: Measure) -> str:
    """Describe the worst element of a mismatch: "[1] is 4, the specification requires 3"."""
    if measure.worst is None:
        return f"the output {measure.remark}"
    where = show_numbers(measure.worst.index)
    count = "" if measure.mismatched == 1 else f" ({measure.mismatched} of {measure.elements} elements)"
    return f"{where} is {measure.worst.got}, the specification requires {measure.worst.expected}{count}"
