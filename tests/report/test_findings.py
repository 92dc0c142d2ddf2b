"""The formats of findings; what they look like is in `golden`."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ir_scatter.core.diagnostics import Diagnostic, Excerpt, Location, Severity, Span
from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import Source
from ir_scatter.core.parameters import Parameter, spelled
from ir_scatter.lint import FileResult, Options, Report, check_file
from ir_scatter.report import findings_github, phrases
from ir_scatter.report.characters import cells, fold, visible
from ir_scatter.report.findings_text import window
from ir_scatter.report.registry import RenderOptions, formats, render
from ir_scatter_cli.spelling import OptionSpelling
from tests.report.golden import assert_golden
from tests.report.reports import AXIS, BROKEN, EMPTY, HOSTILE_REPORT, ONNX, REPEATED, REPORT, SHAPE, report_of
from tests.rules.expectations import FOLDER, write_weights


@pytest.fixture(autouse=True)
def as_the_command_line_does() -> Iterator[None]:
    with spelled(OptionSpelling("validate").spell):
        yield


FORMATS = ("text", "concise", "json", "sarif", "junit", "github")
# Print the modules that rendering adds to those of a report.
_PROBE = """
import sys
import ir_scatter.report.registry
from ir_scatter.core.diagnostics import Diagnostic, Excerpt, Location, Severity
from ir_scatter.lint import FileResult, Report
found = Diagnostic("SCT203", "rule", Severity.ERROR, "message", Location("m.xml", 1, 2))
excerpts = {(1, 2): Excerpt("\\t<layer>")}
report = Report((FileResult("m.xml", "openvino-ir", True, 1, (found,), excerpts),))
before = set(sys.modules)
ir_scatter.report.registry.render("findings", sys.argv[1], report, statistics=True, color=True)
print(*sorted(set(sys.modules) - before))
"""


def test_formats_are_found_by_the_names_of_modules() -> None:
    assert formats("findings") == (*FORMATS, "html")
    assert formats("comparison") == ("text", "json", "html")
    for result in ("conversion", "devices", "inspection", "outputs", "routes"):
        assert formats(result) == ("text", "json")
    with pytest.raises(UsageError, match="the format is 'yaml', expected one of text, concise,"):
        render("findings", "yaml", REPORT)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("name", "report"), [("findings", REPORT), ("hostile", HOSTILE_REPORT)])
def test_what_it_looks_like(request: pytest.FixtureRequest, name: str, report: Report, format: str) -> None:
    text = render("findings", format, report, docs_url="https://models.example")
    assert_golden(request, f"{name}.{format}", text)
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.encode("utf-8")


@pytest.mark.parametrize("format", FORMATS)
def test_options_of_other_formats_change_nothing(format: str) -> None:
    taken = {"text": {"color", "quiet", "statistics", "width"}, "concise": {"statistics"}}
    taken |= {"junit": {"strict"}, "sarif": {"docs_url"}}
    options: tuple[RenderOptions, ...] = (
        {"docs_url": "https://models.example"},
        {"color": True},
        {"quiet": True},
        {"statistics": True},
        {"strict": True},
        {"width": 7},
    )
    for option in options:
        changed = render("findings", format, REPORT, **option) != render("findings", format, REPORT)
        assert changed == (option.keys() <= taken.get(format, set())), option


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("text", {"characters", "phrases", "findings_text"}),
        ("concise", {"characters", "findings_concise", "phrases"}),
        ("github", {"characters", "findings_github"}),
    ],
)
def test_a_format_for_people_imports_its_own_modules_only(format: str, expected: set[str]) -> None:
    command = [sys.executable, "-c", _PROBE, format]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=root)
    assert set(done.stdout.split()) == {f"ir_scatter.report.{module}" for module in expected}


def test_statistics_put_the_most_frequent_first() -> None:
    found = [AXIS, SHAPE, replace(SHAPE, severity=Severity.WARNING), *[ONNX] * 10, AXIS]
    table = (
        "10  SCT401  note     deprecated-operator\n"
        " 2  SCT301  error    axis-out-of-range\n"
        " 1  SCT203  error    updates-shape-mismatch\n"
        " 1  SCT203  warning  updates-shape-mismatch\n"
    )
    report = report_of(*found)
    concise = render("findings", "concise", report)
    assert render("findings", "concise", report, statistics=True) == f"{concise}\n{table}"
    text = render("findings", "text", report, quiet=True)
    assert render("findings", "text", report, quiet=True, statistics=True) == f"{text}\n{table}"
    closing = f"{phrases.summary(report)}\nFor more: ir-scatter explain SCT301 (or SCT203, SCT401)\n"
    assert render("findings", "text", report, statistics=True) == f"{text}\n{table}\n{closing}"


def test_nothing_found() -> None:
    assert render("findings", "text", report_of(), statistics=True) == (
        "no findings in 1 file (3 scatter nodes)\n"
    )
    assert render("findings", "text", EMPTY) == "no files were checked\n"
    assert render("findings", "text", report_of(), quiet=True, statistics=True) == ""
    for format in ("concise", "github"):
        assert render("findings", format, EMPTY) == render("findings", format, report_of()) == ""


def test_without_the_text_of_the_line_there_is_no_excerpt() -> None:
    elsewhere = replace(AXIS, location=replace(AXIS.location, path="other.xml"))
    for report in (report_of(AXIS), Report((replace(REPORT.files[1], diagnostics=(elsewhere,)),))):
        assert "|" not in render("findings", "text", report)


def test_colors(request: pytest.FixtureRequest) -> None:
    text = render("findings", "text", REPORT, color=True)
    assert_golden(request, "colors.text", text)
    assert re.sub(r"\x1b\[[\d;]+m", "", text) == render("findings", "text", REPORT)


def _file(nodes: int, *found: Diagnostic, is_readable: bool = True) -> FileResult:
    return FileResult("m.xml", "openvino-ir", is_readable, nodes, found)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((_file(0), _file(70), _file(1)), "no findings in 3 files (71 scatter nodes)"),
        ((_file(2, SHAPE),), "1 error in 1 file (2 scatter nodes)"),
        ((_file(0, ONNX), _file(2, ONNX)), "2 notes in 2 of 2 files (2 scatter nodes)"),
        (
            (_file(1, REPEATED, REPEATED, ONNX), _file(0)),
            "2 warnings, 1 note in 1 of 2 files (1 scatter node)",
        ),
        (
            (_file(0, BROKEN, is_readable=False), _file(5)),
            "1 error in 1 of 2 files (5 scatter nodes), 1 file could not be read",
        ),
    ],
)
def test_the_summary_counts(files: tuple[FileResult, ...], expected: str) -> None:
    assert phrases.summary(Report(files)) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (SHAPE, "If_23:then_body/cache/scatter (ScatterUpdate-3), input 2, updates"),
        (replace(ONNX, node=None), "old"),
        (replace(AXIS, port_index=None), "plain (ScatterUpdate-3), axis"),
        (replace(AXIS, port=None), "plain (ScatterUpdate-3), input 3"),
        (BROKEN, ""),
    ],
)
def test_the_subject_of_a_finding(found: Diagnostic, expected: str) -> None:
    assert phrases.subject(found) == expected


@pytest.mark.parametrize(
    ("line", "columns", "shown", "below"),
    [
        ("<layer/>", (1, 9), "<layer/>", "^^^^^^^^"),
        ("\t\t<layer/>", (3, 7), "        <layer/>", "        ^^^^"),
        ("a\tb", (1, 3), "a    b", "^^^^^"),
        ("层é<layer/>", (3, 4), "层é<layer/>", "   ^"),
        ("<层é/>", (2, 4), "<层é/>", " ^^^"),
        ("e\u0301<layer/>", (3, 4), "e\u0301<layer/>", " ^"),
        ("\x1b[1m<layer/>", (5, 6), "\\x1b[1m<layer/>", "       ^"),
        ("short", (99, 100), "short", "     ^"),
        ("short", (0, 1), "short", "^"),
        ("short", (3, None), "short", "  ^^^"),
        ("", (1, 2), "", "^"),
        ("x" * 1000, (1000, 1001), "x" * 1000, " " * 999 + "^"),
    ],
)
def test_carets_stand_below_the_columns(
    line: str, columns: tuple[int, int | None], shown: str, below: str
) -> None:
    text, before, marked = window(Excerpt(line), *columns, None)
    assert (text, " " * before + "^" * marked) == (shown, below)


@pytest.mark.parametrize(("unit", "wide"), [("b", 1), ("层", 2)])
def test_a_long_line_is_cut_around_the_columns(unit: str, wide: int) -> None:
    for room, marked, column in product((34, 73, 120), (1, 12, 67, 68, 73, 300), (1, 2, 30, 60, 90, 700)):
        left, right = "a" * (column - 1), "c" * (1000 - column)
        text, before, width = window(Excerpt(left + unit * marked + right), column, column + marked, room)
        assert cells(text) <= room
        below = text[before : before + width // wide]
        assert below == unit * len(below)
        assert len(below) * wide == width
        assert len(below) >= min(marked, (room - 7) // wide)
        assert text[:before] in (left, "..." + left[: before - 3])
        assert text.endswith("...")


def test_a_line_loses_its_indentation_first() -> None:
    line = " " * 60 + '<data axis="1"/>'
    assert window(Excerpt(line), 67, 75, 40) == ('<data axis="1"/>', 6, 8)
    text, before, marked = window(Excerpt(line, first=500, goes_on=True), 566, 574, 60)
    assert text[before : before + marked] == 'axis="1"'
    assert (text[:3], text[-3:], len(text)) == ("...", "...", 60)


def test_nothing_is_wider_than_the_terminal() -> None:
    far = Location(f"{'folder/' * 30}model.xml", 1, 1, "body/" * 40 + "scatter")
    place = replace(
        SHAPE,
        location=far,
        span=Span(1, 4000, 1, 4030),
        message="word " * 40 + "x" * 300,
        fixed_by=(Parameter("sources", "ScatterElementsUpdate"), Parameter("to", "ScatterElementsUpdate")),
        related=(replace(SHAPE.related[0], span=None, message="y" * 200),),
    )
    report = report_of(place, excerpts={(1, 4000): Excerpt("é" * 2000, 3000, goes_on=True)})
    for width in (80, 81, 50, 120):
        lines = render("findings", "text", report, width=width).splitlines()
        assert max(map(cells, lines)) <= width
        assert any(line.endswith("model.xml:1:4000") for line in lines)
    whole = render("findings", "text", report)
    assert "x" * 300 in whole
    assert far.path in whole
    assert "é" * 2000 in whole


def test_a_command_is_broken_as_a_shell_reads_it() -> None:
    found = replace(ONNX, location=replace(ONNX.location, path="a/" * 20 + "m.onnx"))
    lines = render("findings", "text", report_of(found), width=60).splitlines()
    at = lines.index("  = help: replace it by ScatterElements:")
    assert lines[at + 1].endswith(" \\")
    assert " ".join("".join(lines[at + 1 : at + 4]).replace("\\", "").split()).startswith(
        f"ir-scatter convert {found.location.path} -o NEW.onnx"
    )


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two three", 8, ["one two", "  three"]),
        ("one two three", 80, ["one two three"]),
        ("updates is [3, 5, 7]", 18, ["updates is", "  [3, 5, 7]"]),
        ("aaaaaaaaaa b", 6, ["aaaaaa", "  aaaa", "  b"]),
        ("层层层层 b", 6, ["层层层", "  层 b"]),
        ("", 6, [""]),
    ],
)
def test_texts_are_folded_between_words(text: str, width: int, expected: list[str]) -> None:
    assert fold(text, width, "", "  ") == expected


def test_codes_are_explained_once() -> None:
    def closing(*found: Diagnostic) -> str:
        return render("findings", "text", report_of(*found)).splitlines()[-1]

    assert closing(SHAPE, SHAPE) == "For more: ir-scatter explain SCT203"
    assert closing(AXIS, SHAPE, AXIS) == "For more: ir-scatter explain SCT301 (or SCT203)"
    many = [replace(SHAPE, code=f"SCT{number}") for number in range(201, 208)]
    assert closing(*many) == "For more: ir-scatter explain SCT201 (or SCT202, SCT203, SCT204, SCT205, ...)"
    assert "explain" not in render("findings", "text", report_of(SHAPE), quiet=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("layer é 层 🙂", "layer é 层 🙂"),
        ("C:\\models", "C:\\models"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\r\n\tb", "a\\r\\n\\tb"),
        ("\x7f\x9b", "\\x7f\\x9b"),
        ("\u202eabc\u2028", "\\u202eabc\\u2028"),
        ("m\udcff.xml", "m\\xff.xml"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, expected: str) -> None:
    assert visible(text) == expected
    assert visible(f"{text}\n", keep="\n\r\t").endswith("\n")


def test_documented_escapes_of_workflow_commands() -> None:
    location = replace(SHAPE.location, path="a,b:c%\r\n.xml", scope="")
    found = replace(SHAPE, message="50%, a:b::c\r\nd", rule="x:y", location=location)
    assert findings_github.render(report_of(found)) == (
        "::error file=a%2Cb%3Ac%25%0D%0A.xml,line=412,col=3,title=SCT203 x%3Ay::50%25, a:b::c%0D%0Ad\n"
    )
    assert "col=" not in findings_github.render(
        report_of(replace(SHAPE, location=replace(location, line=None)))
    )


def _cases(report: Report, *, strict: bool = False) -> list[tuple[str, str]]:
    """Return the name of each test case of JUnit and the tag below it, "" if there is none."""
    root = ElementTree.fromstring(render("findings", "junit", report, strict=strict).encode("utf-8"))
    return [(case.get("name", ""), case[0].tag if len(case) else "") for case in root.iter("testcase")]


def test_outcomes_of_junit() -> None:
    def tags(*found: Diagnostic, is_readable: bool = True, strict: bool = False) -> list[str]:
        report = Report((FileResult("x", None, is_readable, 0, found),))
        return [tag for _, tag in _cases(report, strict=strict)]

    assert tags(AXIS, REPEATED, ONNX) == ["failure", "system-out", "system-out"]
    assert tags(AXIS, REPEATED, ONNX, strict=True) == ["failure", "failure", "system-out"]
    assert tags(REPEATED, is_readable=False) == ["system-out", "error"]
    assert tags(REPEATED, BROKEN, is_readable=False, strict=True) == ["failure", "error"]
    name = "SCT301 axis-out-of-range: plain, axis"
    again = report_of(AXIS, replace(AXIS, message="another"), AXIS)
    assert [case for case, _ in _cases(again)] == [name, f"{name} (2)", f"{name} (3)"]


@pytest.mark.parametrize("width", [None, 80, 50])
@pytest.mark.parametrize("written", ["\n", "\r\n", "", "utf-16"])
def test_the_caret_of_a_file(written: str, width: int | None, tmp_path: Path) -> None:
    """Behind wide characters and tabs, with line ends of Windows, and in a file of one line."""
    text = (FOLDER / "SCT105_word_of_onnx.xml").read_text()
    text = text.replace('name="scatter"', 'name="层/é́"').replace("    ", "\t")
    if written == "":
        text = re.sub(r">\s+<", ">\t<", text)
    path = tmp_path / "m.xml"
    data = text.replace("\n", written) if written in ("", "\r\n") else text
    path.write_bytes(data.encode("utf-16" if written == "utf-16" else "utf-8"))
    write_weights((FOLDER / "SCT105_word_of_onnx.xml").read_text(), path.with_suffix(".bin"))
    result = check_file(Source(str(path)), Options())
    lines = render("findings", "text", Report((result,)), width=width).splitlines()
    below = next(number for number, line in enumerate(lines) if "^" in line)
    start, end = lines[below].index("^"), lines[below].rindex("^") + 1
    shown = "".join(one + "\0" * (cells(one) - 1) if cells(one) else "" for one in lines[below - 1])
    assert shown[start:end] == 'reduction="add"'


@pytest.mark.timeout(20)
def test_many_findings_in_a_line_of_megabytes(tmp_path: Path) -> None:
    """What is shown of the line is small, however long it is."""
    layers = "".join(
        f'<layer id="{id}" name="层{id}{"x" * 3000}" type="Parameter" version="opset1">'
        f'<data element_type="f32" shape="{id}!"/><output><port id="0" precision="FP32"/></output></layer>'
        for id in range(500)
    )
    path = tmp_path / "m.xml"
    path.write_text(f'<net name="m" version="11"><layers>{layers}</layers><edges/></net>', encoding="utf-8")
    result = check_file(Source(str(path)), Options())
    assert [found.code for found in result.diagnostics] == ["SCT928"] * 500
    lines = render("findings", "text", Report((result,))).splitlines()
    assert max(map(len, lines)) < 2100
    for number, line in enumerate(lines):
        if "^" in line:
            start, end = line.index("^"), line.rindex("^") + 1
            above = "".join(one + "\0" * (cells(one) - 1) for one in lines[number - 1])
            assert re.fullmatch(r'shape="\d+!"', above[start:end])
