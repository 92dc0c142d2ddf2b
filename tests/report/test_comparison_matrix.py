"""The table of operators and runners over many models."""

from collections.abc import Sequence

from ir_scatter.compare.request import Done
from ir_scatter.compare.result import Compared, Comparison, Level, Measure, Settings, Verdict
from ir_scatter.report.comparison_text import render
from ir_scatter.report.matrices import operator_matrix
from ir_scatter.runners.base import Outcome, Status

CPU, ORT = "openvino:CPU", "onnxruntime"


def node(subject: str, verdict: Verdict, name: str = "scatter", case: int = 0) -> Comparison:
    return Comparison(
        Level.NODE, name, "out", case, subject, "numpy", Measure(verdict), operator="ScatterUpdate-3"
    )


def compared(
    comparisons: Sequence[Comparison], outcomes: Sequence[Outcome], model: str = "m.xml"
) -> Compared:
    return Compared(
        model, Settings(), tuple(outcomes), tuple(comparisons), operators={"scatter": "ScatterUpdate-3"}
    )


def cells(*found: Compared) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in operator_matrix(found).rows]


def test_a_node_counts_once_and_by_its_worst_case() -> None:
    ok = [Outcome("numpy", Status.OK), Outcome(CPU, Status.OK)]
    good = compared([node(CPU, Verdict.EQUAL), node(CPU, Verdict.CLOSE, case=1)], ok)
    bad = compared([node(CPU, Verdict.EQUAL), node(CPU, Verdict.MISMATCH, case=1)], ok)
    contested = compared([node(CPU, Verdict.CONTESTED)], ok)
    assert cells(good, bad, contested) == [["ScatterUpdate-3", "works 2, differs 1"]]


def test_whoever_does_not_run_a_model_refuses_its_nodes() -> None:
    for status in (Status.REFUSED, Status.UNSUPPORTED, Status.CRASHED, Status.TIMEOUT):
        found = compared([], [Outcome(CPU, status)])
        assert cells(found) == [["ScatterUpdate-3", "refuses 1"]]


def test_an_ir_says_nothing_of_a_runner_that_reads_none() -> None:
    outcomes = [Outcome(CPU, Status.OK), Outcome(ORT, Status.UNSUPPORTED, reason="format")]
    found = compared([node(CPU, Verdict.EQUAL)], outcomes)
    assert cells(found) == [["ScatterUpdate-3", "works 1", "n/a"]]
    onnx = compared([], [Outcome(CPU, Status.OK), Outcome(ORT, Status.UNSUPPORTED)], "m.onnx")
    assert cells(found, onnx) == [["ScatterUpdate-3", "works 1", "refuses 1"]]


def test_as_text() -> None:
    found = compared([node(CPU, Verdict.EQUAL)], [Outcome(CPU, Status.OK)])
    shown = render(Done((found,)), each=True).splitlines()[-2:]
    assert [line.split() for line in shown] == [["operator", CPU], ["ScatterUpdate-3", "works", "1"]]
