"""`ir-scatter validate`: selection, exit codes, output files, processes, baselines."""

import json
import os
import shlex
from pathlib import Path

import pytest

from ir_scatter import read, validate
from ir_scatter.core.parameters import spelled
from ir_scatter.report import phrases
from ir_scatter_cli.spelling import OptionSpelling
from tests.cli.conftest import SAMPLES, Cli, codes, copy_sample
from tests.rules.expectations import FOLDER, write_case

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
    assert cli("validate", clean).out == "no findings in 1 file (2 scatter nodes)\n"
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
    assert (result.code, result.out, result.err) == (1, "", "")
    assert Path("report").read_text(encoding="utf-8") == shown.out


def test_an_output_file_is_replaced_whole(cli: Cli, clean: Path) -> None:
    Path("report").write_text("x" * 10_000)
    Path("report").chmod(0o640)
    assert cli("validate", clean, "--output", "report", "--overwrite").code == 0
    assert Path("report").read_text() == "no findings in 1 file (2 scatter nodes)\n"
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


def test_a_new_finding_fails(cli: Cli, known: Path, broken: Path) -> None:
    twice = 'name="twice" type="ScatterUpdate" version="opset'
    broken.write_text(broken.read_text().replace(f"{twice}3", f"{twice}1"))
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
