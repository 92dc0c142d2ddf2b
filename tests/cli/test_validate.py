"""`ir-scatter validate`: selection, exit codes, output files, processes, baselines."""

import json
import os
import shlex
from pathlib import Path

import pytest

from ir_scatter import read, validate
from ir_scatter.core.files import Source
from ir_scatter.core.parameters import spelled
from ir_scatter.jobs import TABLE
from ir_scatter.lint import FileResult, Options, check_file
from ir_scatter.report import phrases
from ir_scatter_cli.spelling import OptionSpelling
from tests.cli.conftest import SAMPLES, Cli, codes, copy_sample
from tests.rules.expectations import FOLDER, write_case

_OPSET_1 = 'name="twice" type="ScatterUpdate" version="opset1'
FORMATS = ["text", "concise", "json", "sarif", "junit", "github"]


@pytest.mark.parametrize("path", sorted((SAMPLES / "broken").glob("*.[xo][mn]*")), ids=lambda path: path.name)
def test_every_node_of_a_broken_sample_has_a_finding(cli: Cli, path: Path) -> None:
    names = cli("inspect", path, "--format", "json")
    result = cli("validate", path, "--format", "concise")
    assert result.code == 1
    for node in json.loads(names.out)["files"][0]["nodes"]:
        assert f"[{node['scope']}]" in result.out


@pytest.mark.parametrize("name", ["branch.xml", "branch.onnx", "loop.xml", "loop.onnx", "function.onnx"])
def test_one_defect_inside_of_a_body(cli: Cli, name: str) -> None:
    result = cli("validate", SAMPLES / "nested" / name, "--format", "concise")
    assert len(result.out.splitlines()) == 1
    assert result.code == 1


def test_text_has_every_part(cli: Cli, elsewhere: Path) -> None:
    result = cli("validate", copy_sample("nested/branch.xml", elsewhere))
    assert (result.code, result.err) == (1, "")
    lines = result.out.splitlines()
    source = Path("branch.xml").read_text().splitlines()
    port = next(number for number, line in enumerate(source[90:], 91) if '<port id="1"' in line)
    assert lines[0] == "error SCT302 index-out-of-range: indices[1] is 4, expected 0 to 3"
    assert lines[1] == f"  --> branch.xml:{port}:{len(source[port - 1]) - len(source[port - 1].lstrip()) + 1}"
    assert lines[3] == f"{port} | {source[port - 1].expandtabs(4)}"
    assert (
        lines[4]
        == f"   | {' ' * (lines[3].index('<') - 5)}{'^' * len(source[port - 1].strip())} expected 0 to 3"
    )
    assert lines[6] == f"76 | {source[75].expandtabs(4)}"
    assert lines[7].endswith('-- indices comes from Const "indices": 4 at [1], 1 in all')
    assert lines[9] == "   = in branch:then_body/scatter (ScatterUpdate-3), input 1, indices"
    assert lines[10].startswith("   = help: ")
    assert lines[-2:] == ["1 error in 1 file (2 scatter nodes)", "For more: ir-scatter explain SCT302"]


def test_quiet_and_nothing_found_is_no_output(cli: Cli, clean: Path) -> None:
    assert cli("validate", clean).out == (
        "no findings in 1 file (2 scatter nodes)\n"
        "for known defects of a device, such as GPU: ir-scatter validate decoder.xml --for GPU\n"
    )
    for flag in ("-q", "--quiet"):
        result = cli("validate", clean, flag)
        assert (result.code, result.out, result.err) == (0, "", "")


def test_quiet_keeps_findings(cli: Cli, broken: Path) -> None:
    loud, quiet = cli("validate", broken), cli("validate", broken, "-q")
    assert loud.code == quiet.code == 1
    assert loud.out.startswith(quiet.out)
    assert "5 errors" in loud.out
    assert "5 errors" not in quiet.out


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["--select", "sct2"], {"SCT203"}),
        (["--select", "SCT2, SCT4"], {"SCT203", "SCT402"}),
        (["--select", "SCT2", "--select", "SCT4"], {"SCT203", "SCT402"}),
        (["--select", "SCT3", "--ignore", "SCT304"], {"SCT301", "SCT302", "SCT303"}),
        (["--ignore", "SCT2,SCT3", "--ignore", "SCT4"], set()),
        (["--select", "SCT3", "--min-severity", "error"], {"SCT301", "SCT302", "SCT303"}),
    ],
)
def test_select_and_ignore(cli: Cli, broken: Path, arguments: list[str], left: set[str]) -> None:
    result = cli("validate", broken, "--format", "concise", *arguments)
    assert set(codes(result.out)) == left
    assert result.code == bool(left)


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("code", ["SCT777", "E501", "", ",", "203", "SCT2033", "SCT203;SCT204"])
def test_a_prefix_of_no_code_is_wrong_usage(cli: Cli, broken: Path, option: str, code: str) -> None:
    result = cli("validate", broken, option, code)
    assert (result.code, result.out) == (2, "")
    assert "SCT101 to SCT999" in result.err


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("names", "arguments", "code"),
    [
        (["kv_cache/decoder.xml"], [], 0),
        (["documented/scatter_1.onnx"], [], 0),
        (["documented/scatter_1.onnx"], ["--strict"], 1),
        (["broken/scatter_nd.onnx"], [], 1),
        (["broken/scatter_nd.onnx", "missing.onnx"], [], 3),
        (["missing.onnx"], ["--strict"], 3),
        (["broken"], ["--ignore", "SCT"], 0),
    ],
)
def test_no_format_changes_the_exit_code(
    cli: Cli, format: str, names: list[str], arguments: list[str], code: int
) -> None:
    paths = [SAMPLES / name for name in names]
    assert cli("validate", *paths, *arguments, "--format", format).code == code


@pytest.mark.parametrize("format", FORMATS)
def test_a_missing_file_has_an_entry_in_every_format(cli: Cli, clean: Path, format: str) -> None:
    result = cli("validate", clean, "no_such.xml", "--format", format)
    assert result.code == 3
    assert "no_such.xml" in result.out
    assert "SCT901" in result.out
    assert "no such file" in result.out
    assert "Traceback" not in result.err


@pytest.mark.parametrize("format", FORMATS)
def test_an_output_file(cli: Cli, broken: Path, format: str) -> None:
    shown = cli("validate", broken, "--format", format)
    result = cli("validate", broken, "--format", format, "-o", "report")
    assert (result.code, result.out, result.err) == (1, "", shown.err)
    assert Path("report").read_text(encoding="utf-8") == shown.out


def test_an_output_file_is_replaced_whole(cli: Cli, clean: Path) -> None:
    Path("report").write_text("x" * 10_000)
    Path("report").chmod(0o640)
    assert cli("validate", clean, "--output", "report", "--overwrite").code == 0
    assert Path("report").read_text().startswith("no findings in 1 file (2 scatter nodes)\nfor known")
    assert Path("report").stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir()) == ["decoder.bin", "decoder.xml", "report"]


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("no/such/folder/report", 3, "no/such/folder/report cannot be written: there is no folder no"),
        ("decoder.xml/report", 3, "decoder.xml/report cannot be written: there is no folder decoder.xml"),
        (".", 2, "-o: '.' is a folder, expected the name of a file"),
    ],
)
def test_an_output_file_that_cannot_be_written(
    cli: Cli, clean: Path, target: str, code: int, message: str
) -> None:
    result = cli("validate", clean, "-o", target)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert sorted(os.listdir()) == ["decoder.bin", "decoder.xml"]


MIXED = [SAMPLES / "nested", "no_such.xml", SAMPLES / "broken", SAMPLES / "kv_cache"]


@pytest.mark.parametrize("format", ["text", "json"])
def test_two_processes_say_what_one_says(script: Cli, elsewhere: Path, format: str) -> None:
    (elsewhere / "notes.xml").write_text("<notes/>")
    arguments = [*MIXED, ".", "-v", "--ignore", "SCT3", "--statistics", "--format", format]
    one, two = script("validate", *arguments), script("validate", *arguments, "-j", "2")
    assert one == two
    assert one.code == 3
    assert "notes.xml: skipped" in two.err


@pytest.fixture
def known(cli: Cli, broken: Path) -> Path:
    """A baseline of everything in the broken model."""
    assert cli("validate", broken, "--write-baseline", "known.json").code == 0
    return Path("known.json")


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_known_does_not_fail(cli: Cli, known: Path, broken: Path, format: str) -> None:
    result = cli("validate", broken, "--baseline", known, "--format", format, "--strict")
    assert result.code == 0
    assert "SCT203" not in result.out


def test_a_baseline_says_what_it_does(cli: Cli, broken: Path) -> None:
    written = cli("validate", broken, "--write-baseline", "known.json")
    assert written.err == "ir-scatter: 6 findings written to known.json\n"
    assert written.out.startswith("no new findings (6 known) in 1 file (6 scatter nodes)\n")
    assert cli("validate", broken, "--write-baseline", "known.json", "-q").err == ""
    broken.write_text(
        broken.read_text().replace('name="twice" type="ScatterUpdate" version="opset3', _OPSET_1)
    )
    Path("old.xml").write_text("")
    known = json.loads(Path("known.json").read_text())
    gone = {"code": "SCT203", "scope": "scatter", "node": "scatter"}
    known["findings"] += [
        {**gone, "path": "deleted.xml", "count": 2},  # the file does not exist
        {**gone, "path": broken.name},  # the node has no such finding
        {**gone, "path": "old.xml"},  # another file, which is not checked
        {**gone, "path": broken.name, "code": "DEV101"},  # not looked for without a device
    ]
    Path("known.json").write_text(json.dumps(known))
    result = cli("validate", broken, "--baseline", "known.json")
    summary = "1 new error (5 known, 4 of the baseline are gone) in 1 file (6 scatter nodes)"
    assert summary in result.out.splitlines()
    assert result.code == 1
    assert Path("known.json").read_text() == json.dumps(known)
    pruned = cli("validate", broken, "--baseline", "known.json", "--prune-baseline")
    assert pruned.err == "ir-scatter: 4 findings removed from known.json, 7 left\n"
    assert pruned.out == result.out
    left = {
        (entry["path"], entry["code"]) for entry in json.loads(Path("known.json").read_text())["findings"]
    }
    assert {("old.xml", "SCT203"), (broken.name, "DEV101")} < left
    again = cli("validate", broken, "--baseline", "known.json", "--prune-baseline")
    assert again.err == "ir-scatter: 0 findings removed from known.json, 7 left\n"
    assert "1 new error (5 known) in 1 file" in again.out


@pytest.mark.parametrize(
    "words", [["--select", "SCT2"], ["--ignore", "SCT203"], ["--min-severity", "error"]], ids=" ".join
)
def test_findings_that_are_not_looked_for_are_not_gone(cli: Cli, broken: Path, words: list[str]) -> None:
    cli("validate", broken, "--write-baseline", "known.json")
    before = Path("known.json").read_text()
    result = cli("validate", broken, "--baseline", "known.json", "--prune-baseline", *words)
    assert "gone" not in result.out
    assert Path("known.json").read_text() == before


def test_pruning_needs_a_baseline(cli: Cli, broken: Path) -> None:
    result = cli("validate", broken, "--prune-baseline")
    assert (result.code, result.err) == (2, "Error: --prune-baseline goes with --baseline FILE\n")


def test_concise_ends_with_a_summary_beside_the_findings(cli: Cli, broken: Path, clean: Path) -> None:
    result = cli("validate", broken, clean, "--format", "concise")
    assert result.err == "ir-scatter: 5 errors, 1 warning in 1 of 2 files (8 scatter nodes)\n"
    assert "5 errors" not in result.out
    assert cli("validate", broken, "--format", "concise", "-q").err == ""


@pytest.mark.parametrize("format", FORMATS)
def test_the_reason_of_exit_code_3_is_said(cli: Cli, broken: Path, format: str) -> None:
    result = cli("validate", "no.xml", broken, "nor.xml", "--format", format)
    assert result.code == 3
    assert result.err.endswith("ir-scatter: exit code 3, as a file cannot be read: no.xml and 1 more\n")


def test_an_interrupt_reports_what_is_finished(
    cli: Cli, broken: Path, clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = list[str]()

    def check(source: Source, options: Options) -> FileResult:
        checked.append(source.path)
        if len(checked) == 2:
            raise KeyboardInterrupt
        return check_file(source, options)

    monkeypatch.setitem(TABLE, "validate", check)
    result = cli("validate", broken, clean, "--write-baseline", "known.json", "--format", "json")
    assert result.code == 130
    assert [file["path"] for file in json.loads(result.out)["files"]] == [broken.name]
    assert result.err.splitlines() == [
        "ir-scatter: known.json is not written, as not all files were checked",
        "ir-scatter: interrupted: 1 of 2 files were checked",
    ]
    assert not Path("known.json").exists()


def test_a_model_without_findings_leads_to_devices(cli: Cli, clean: Path) -> None:
    line = "for known defects of a device, such as GPU: ir-scatter validate decoder.xml --for GPU"
    assert cli("validate", clean).out.splitlines()[-1] == line
    assert cli(*shlex.split(line.partition(": ir-scatter ")[2])).code == 0
    assert "for known defects" not in cli("validate", clean, "--for", "CPU").out
    assert cli("validate", clean, clean.with_suffix(".xml"), SAMPLES / "kv_cache").out.endswith(
        ": add --for GPU\n"
    )
    empty = Path("empty.xml")
    empty.write_text('<net name="m" version="11"><layers/><edges/></net>')
    assert "for known defects" not in cli("validate", empty).out


def test_a_new_finding_fails(cli: Cli, known: Path, broken: Path) -> None:
    broken.write_text(
        broken.read_text().replace('name="twice" type="ScatterUpdate" version="opset3', _OPSET_1)
    )
    result = cli("validate", broken, "--baseline", known, "--format", "concise")
    assert result.code == 1
    assert codes(result.out) == ["SCT402"]
    assert "[twice]" in result.out


def test_an_unreadable_file_is_never_known(cli: Cli) -> None:
    result = cli("validate", "no.xml", "--write-baseline", "known.json", "--format", "concise")
    assert result.code == 3
    assert cli("validate", "no.xml", "--baseline", "known.json").code == 3


@pytest.mark.parametrize(
    "name",
    [
        "SCT211_on_the_axis.xml",
        "SCT401_scatter_at_10.onnxtxt",
        "SCT401_scatter_at_11.onnxtxt",
        "SCT401_scatter_at_28.onnxtxt",
        "SCT214_mask.xml",
    ],
)
def test_the_command_that_is_given_mends_it(name: str, tmp_path: Path, cli: Cli) -> None:
    path = write_case(FOLDER / name, tmp_path)
    before = validate(read(path))
    for number, found in enumerate(before):
        with spelled(OptionSpelling("validate").spell):
            sentence, command = phrases.help_of(found)
        assert sentence
        if not command:
            continue
        new = tmp_path / f"new{number}{path.suffix}"
        program, *arguments = shlex.split(command.replace(f"NEW{path.suffix}", str(new)))
        assert program == "ir-scatter"
        assert cli(*arguments).code == 0
        node = found.node
        assert node is not None
        after = [one for one in validate(read(new)) if one.node and one.node.name == node.name]
        assert found.code not in {one.code for one in after}


def test_a_page_is_written_with_the_graph_around_each_node(cli: Cli, elsewhere: Path) -> None:
    result = cli(
        "validate", copy_sample("nested/branch.xml", elsewhere), "--format", "html", "-o", "page.html"
    )
    assert (result.code, result.out, result.err) == (1, "", "")
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 1
