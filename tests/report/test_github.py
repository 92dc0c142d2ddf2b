from dataclasses import replace

from ir_scatter.report.findings_github import render
from tests.report.reports import (
    BROKEN,
    EMPTY,
    HOSTILE_REPORT,
    ONNX,
    REPEATED,
    REPORT,
    SHAPE,
    report_of,
)


def test_one_command_per_finding() -> None:
    assert render(REPORT) == (
        "::error file=decoder.xml,line=412,col=3,title=SCT203 updates-shape-mismatch::updates is"
        " [3, 5], expected [2, 5] = data[:axis] + indices + data[axis+1:]"
        " [If_23:then_body/cache/scatter]\n"
        "::error file=decoder.xml,line=420,col=3,title=SCT301 axis-out-of-range::axis is 7,"
        " expected -2 to 1 [plain]\n"
        "::warning file=decoder.xml,line=420,col=3,title=SCT305 repeated-targets::2 updates write"
        " data[1] [plain]\n"
    )


def test_what_is_not_known_is_left_out() -> None:
    assert render(report_of(ONNX)) == (
        "::notice file=model.onnx,title=SCT402 deprecated-operator::Scatter is deprecated,"
        " expected ScatterElements [old]\n"
    )
    assert render(report_of(BROKEN)) == (
        "::error file=broken.xml,line=5,title=SCT901 malformed-xml::the file ends inside <layer>\n"
    )
    without_line = replace(REPEATED, location=replace(REPEATED.location, line=None))
    assert "col=" not in render(report_of(without_line))


def test_nothing_found() -> None:
    assert render(EMPTY) == render(report_of()) == ""


def test_documented_escapes() -> None:
    location = replace(SHAPE.location, path="a,b:c%\r\n.xml", scope="")
    found = replace(SHAPE, message="50%, a:b::c\r\nd", rule="x:y", location=location)
    assert render(report_of(found)) == (
        "::error file=a%2Cb%3Ac%25%0D%0A.xml,line=412,col=3,title=SCT203 x%3Ay::50%25, a:b::c%0D%0Ad\n"
    )


def test_a_hostile_name_starts_no_command() -> None:
    text = render(HOSTILE_REPORT)
    assert text.count("\n") == 1
    assert text[:-1].isprintable()
    assert "name is e\\x1b[31m%0A::error::x%250A" in text
