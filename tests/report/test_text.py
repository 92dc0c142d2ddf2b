from dataclasses import replace

from ir_scatter.lint import Report
from ir_scatter.report.findings_text import render
from tests.report.reports import (
    AXIS,
    BROKEN,
    EMPTY,
    HOSTILE_REPORT,
    LINES,
    ONNX,
    REPORT,
    SHAPE,
    report_of,
)

SHAPE_TEXT = """\
decoder.xml:412:3: error SCT203 updates-shape-mismatch
    updates is [3, 5], expected [2, 5] = data[:axis] + indices + data[axis+1:]
 412 |         <layer id="41" name="cache/scatter" type="ScatterUpdate" version="opset3">
     |         ^
   in If_23:then_body/cache/scatter (ScatterUpdate-3), input 2, updates
   note: updates comes from Const "new_rows", decoder.xml:397:3
   help: ir-scatter explain SCT203
"""
AXIS_TEXT = """\
decoder.xml:420:3: error SCT301 axis-out-of-range
    axis is 7, expected -2 to 1
 420 |         <layer id="43" name="plain" type="ScatterUpdate" version="opset3">
     |         ^
   in plain (ScatterUpdate-3), input 3, axis
   help: ir-scatter explain SCT301
"""
REPEATED_TEXT = """\
decoder.xml:420:3: warning SCT305 repeated-targets
    2 updates write data[1]
 420 |         <layer id="43" name="plain" type="ScatterUpdate" version="opset3">
     |         ^
   in plain (ScatterUpdate-3)
   help: ir-scatter explain SCT305
"""
TABLE = """\
1  SCT203  error    updates-shape-mismatch
1  SCT301  error    axis-out-of-range
1  SCT305  warning  repeated-targets
"""
SUMMARY = "2 errors, 1 warning in 1 of 3 files (71 scatter nodes)\n"


def test_findings_and_summary() -> None:
    assert render(REPORT) == "\n".join([SHAPE_TEXT, AXIS_TEXT, REPEATED_TEXT, SUMMARY])


def test_quiet_leaves_the_summary_out() -> None:
    assert render(REPORT, quiet=True) == "\n".join([SHAPE_TEXT, AXIS_TEXT, REPEATED_TEXT])
    assert render(report_of(), quiet=True, statistics=True) == ""


def test_statistics_stand_between_findings_and_summary() -> None:
    text = render(REPORT, statistics=True)
    assert text.endswith("\n".join(["", TABLE, SUMMARY]))
    assert render(REPORT, statistics=True, quiet=True).endswith("\n\n" + TABLE)


def test_nothing_found() -> None:
    assert render(report_of()) == "no findings in 1 file (3 scatter nodes)\n"
    assert render(report_of(), statistics=True) == "no findings in 1 file (3 scatter nodes)\n"
    assert render(EMPTY) == "no files were checked\n"


def test_a_file_without_lines_is_named_by_its_path() -> None:
    assert render(report_of(ONNX), quiet=True) == (
        "model.onnx: note SCT402 deprecated-operator\n"
        "    Scatter is deprecated, expected ScatterElements\n"
        "   in old (Scatter)\n"
        "   note: called here, in main/call\n"
        "   note: stored there, weights.bin\n"
        "   help: ir-scatter explain SCT402\n"
    )


def test_a_line_without_column_has_no_caret() -> None:
    assert render(report_of(BROKEN, lines={5: "  <layer   \n"}), quiet=True) == (
        "broken.xml:5: error SCT901 malformed-xml\n"
        "    the file ends inside <layer>\n"
        " 5 |   <layer\n"
        "   help: ir-scatter explain SCT901\n"
    )


def test_without_the_text_of_the_line_there_is_no_excerpt() -> None:
    elsewhere = replace(AXIS, location=replace(AXIS.location, path="other.xml"))
    for report in (report_of(AXIS), Report((replace(REPORT.files[1], diagnostics=(elsewhere,)),))):
        assert "|" not in render(report)


def test_colors() -> None:
    text = render(REPORT, color=True)
    assert "\x1b[1mdecoder.xml:412:3:\x1b[0m \x1b[31merror SCT203\x1b[0m updates-shape" in text
    assert "\n     |         \x1b[31m^\x1b[0m\n" in text
    assert "\x1b[33mwarning SCT305\x1b[0m" in text
    assert '   \x1b[36mnote:\x1b[0m updates comes from Const "new_rows"' in text
    assert "\x1b[36mnote SCT402\x1b[0m" in render(report_of(ONNX), color=True)
    plain = text
    for code in ("1", "31", "33", "36", "0"):
        plain = plain.replace(f"\x1b[{code}m", "")
    assert plain == render(REPORT)


def test_a_hostile_file_sends_nothing_to_the_terminal() -> None:
    text = render(HOSTILE_REPORT)
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.encode("utf-8")
    assert len(text.splitlines()) == 10
    caret = " " * len("    \\x1b]0;x\\x07") + "^"
    assert f" 1 |     \\x1b]0;x\\x07<\\x9b32m\n   | {caret}\n" in text
    assert text.startswith("a,b:c%\\x07 é\\xff.xml:1:8: warning SCT203 updates-shape-mismatch\n")


def test_a_line_of_megabytes_is_cut() -> None:
    found = replace(SHAPE, location=replace(SHAPE.location, line=1, column=2_000_000))
    line = "x" * 1_999_999 + LINES[412].strip()
    text = render(report_of(found, lines={1: line}))
    shown, caret = text.splitlines()[2:4]
    assert len(shown) < 120
    assert shown[caret.index("^")] == "<"
