from ir_scatter.report.findings_concise import render
from tests.report.reports import BROKEN, EMPTY, HOSTILE_REPORT, ONNX, REPORT, report_of

LINES = (
    "decoder.xml:412:3: error SCT203 updates is [3, 5], expected [2, 5] = data[:axis] + indices"
    " + data[axis+1:] [If_23:then_body/cache/scatter]\n"
    "decoder.xml:420:3: error SCT301 axis is 7, expected -2 to 1 [plain]\n"
    "decoder.xml:420:3: warning SCT305 2 updates write data[1] [plain]\n"
)


def test_one_line_per_finding() -> None:
    assert render(REPORT) == LINES


def test_what_is_not_known_is_left_out() -> None:
    assert render(report_of(ONNX)) == (
        "model.onnx: note SCT402 Scatter is deprecated, expected ScatterElements [old]\n"
    )
    assert render(report_of(BROKEN)) == "broken.xml:5: error SCT901 the file ends inside <layer>\n"


def test_statistics_follow() -> None:
    assert render(REPORT, statistics=True) == LINES + (
        "\n"
        "1  SCT203  error    updates-shape-mismatch\n"
        "1  SCT301  error    axis-out-of-range\n"
        "1  SCT305  warning  repeated-targets\n"
    )


def test_nothing_found() -> None:
    assert render(EMPTY) == render(report_of(), statistics=True) == ""


def test_a_hostile_name_stays_on_its_line() -> None:
    text = render(HOSTILE_REPORT)
    assert text.count("\n") == 1
    assert text[:-1].isprintable()
    assert "name is e\\x1b[31m\\n::error::x%0A" in text
