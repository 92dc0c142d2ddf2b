from dataclasses import replace
from xml.etree import ElementTree

from ir_scatter.core.diagnostics import Diagnostic
from ir_scatter.lint import FileResult, Report
from ir_scatter.report.findings_junit import render
from tests.report.reports import (
    AXIS,
    BROKEN,
    EMPTY,
    HOSTILE_REPORT,
    ONNX,
    REPEATED,
    REPORT,
    report_of,
)

MIXED = Report(
    (
        FileResult("clean.xml", "openvino-ir", True, 1, ()),
        FileResult("decoder.xml", "openvino-ir", True, 2, (AXIS, REPEATED)),
        FileResult("broken.xml", None, False, 0, (BROKEN,)),
    )
)
EXPECTED = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="ir-scatter" tests="4" failures="1" errors="1" time="0">
  <testsuite name="clean.xml" tests="1" failures="0" errors="0" time="0">
    <testcase classname="clean.xml" name="no findings" file="clean.xml" time="0" />
  </testsuite>
  <testsuite name="decoder.xml" tests="2" failures="1" errors="0" time="0">
    <testcase classname="decoder.xml" name="SCT301 axis-out-of-range: plain, axis" \
file="decoder.xml" time="0" line="420">
      <failure message="axis is 7, expected -2 to 1" type="SCT301">\
decoder.xml:420:3: error SCT301 axis is 7, expected -2 to 1 [plain]
in plain (ScatterUpdate-3), input 3, axis</failure>
    </testcase>
    <testcase classname="decoder.xml" name="SCT305 repeated-targets: plain" \
file="decoder.xml" time="0" line="420">
      <system-out>decoder.xml:420:3: warning SCT305 2 updates write data[1] [plain]
in plain (ScatterUpdate-3)</system-out>
    </testcase>
  </testsuite>
  <testsuite name="broken.xml" tests="1" failures="0" errors="1" time="0">
    <testcase classname="broken.xml" name="SCT901 malformed-xml" file="broken.xml" time="0" \
line="5">
      <error message="the file ends inside &lt;layer&gt;" type="SCT901">\
broken.xml:5: error SCT901 the file ends inside &lt;layer&gt;</error>
    </testcase>
  </testsuite>
</testsuites>
"""


def _outcomes(report: Report, *, strict: bool = False) -> list[str]:
    """Return the tag below each test case, "" if there is none."""
    root = ElementTree.fromstring(render(report, strict=strict).encode("utf-8"))
    return [case[0].tag if len(case) else "" for case in root.iter("testcase")]


def test_a_suite_per_file_and_a_case_per_finding() -> None:
    assert render(MIXED) == EXPECTED


def test_strict_fails_warnings_but_not_notes() -> None:
    report = report_of(AXIS, REPEATED, ONNX)
    assert _outcomes(report) == ["failure", "system-out", "system-out"]
    assert _outcomes(report, strict=True) == ["failure", "failure", "system-out"]


def test_an_unreadable_file_is_an_error_whatever_was_found() -> None:
    def unreadable(*found: Diagnostic) -> Report:
        return Report((FileResult("x", None, False, 0, found),))

    assert _outcomes(unreadable()) == ["error"]
    assert _outcomes(unreadable(REPEATED)) == ["system-out", "error"]
    assert _outcomes(unreadable(REPEATED, BROKEN), strict=True) == ["failure", "error"]


def test_totals_equal_the_cases() -> None:
    root = ElementTree.fromstring(render(REPORT))
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "5",
        "failures": "2",
        "errors": "0",
    }
    assert ElementTree.fromstring(render(EMPTY)).get("tests") == "0"


def test_names_are_unique_within_a_file() -> None:
    again = replace(AXIS, message="another")
    root = ElementTree.fromstring(render(report_of(AXIS, again, again)))
    name = "SCT301 axis-out-of-range: plain, axis"
    assert [case.get("name") for case in root.iter("testcase")] == [
        name,
        f"{name} (2)",
        f"{name} (3)",
    ]


def test_hostile_names_leave_legal_xml() -> None:
    text = render(HOSTILE_REPORT)
    root = ElementTree.fromstring(text.encode("utf-8"))
    [suite] = root
    assert suite.get("name") == "a,b:c%\\x07 é\\xff.xml"
    assert "name is e\\x1b[31m\\n::error" in (suite[0][0].text or "")
    assert all(line.isprintable() for line in text.split("\n"))
