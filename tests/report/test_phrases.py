from dataclasses import replace

import pytest

from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.lint import FileResult, Report
from ir_scatter.report import phrases
from tests.report.reports import AXIS, BROKEN, EMPTY, ONNX, REPEATED, REPORT, SHAPE


def _file(nodes: int, *found: Diagnostic, is_readable: bool = True) -> FileResult:
    return FileResult("m.xml", "openvino-ir", is_readable, nodes, found)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (EMPTY, "no files were checked"),
        (REPORT, "2 errors, 1 warning in 1 of 3 files (71 scatter nodes)"),
        (Report((_file(1),)), "no findings in 1 file (1 scatter node)"),
        (Report((_file(0), _file(70), _file(1))), "no findings in 3 files (71 scatter nodes)"),
        (Report((_file(2, SHAPE),)), "1 error in 1 file (2 scatter nodes)"),
        (Report((_file(0, ONNX), _file(2, ONNX))), "2 notes in 2 of 2 files (2 scatter nodes)"),
        (
            Report((_file(1, REPEATED, REPEATED, ONNX), _file(0))),
            "2 warnings, 1 note in 1 of 2 files (1 scatter node)",
        ),
        (
            Report((_file(0, BROKEN, is_readable=False), _file(5))),
            "1 error in 1 of 2 files (5 scatter nodes), 1 file could not be read",
        ),
        (
            Report((_file(0, is_readable=False), _file(0, is_readable=False))),
            "no findings in 2 files (0 scatter nodes), 2 files could not be read",
        ),
    ],
)
def test_the_summary_counts(report: Report, expected: str) -> None:
    assert phrases.summary(report) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (SHAPE, "If_23:then_body/cache/scatter (ScatterUpdate-3), input 2, updates"),
        (REPEATED, "plain (ScatterUpdate-3)"),
        (ONNX, "old (Scatter)"),
        (replace(ONNX, node=None), "old"),
        (replace(AXIS, port_index=None), "plain (ScatterUpdate-3), axis"),
        (replace(AXIS, port=None), "plain (ScatterUpdate-3), input 3"),
        (BROKEN, ""),
    ],
)
def test_the_subject_of_a_finding(found: Diagnostic, expected: str) -> None:
    assert phrases.subject(found) == expected


def test_statistics_put_the_most_frequent_first() -> None:
    tolerated = replace(SHAPE, severity=Severity.WARNING)
    found = [AXIS, SHAPE, tolerated, *[ONNX] * 10, AXIS]
    assert phrases.statistics(found) == [
        "10  SCT402  note     deprecated-operator",
        " 2  SCT301  error    axis-out-of-range",
        " 1  SCT203  error    updates-shape-mismatch",
        " 1  SCT203  warning  updates-shape-mismatch",
    ]
    assert phrases.statistics([]) == []
