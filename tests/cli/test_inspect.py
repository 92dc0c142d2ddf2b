"""`ir-scatter inspect`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLES, Cli


def test_a_table_for_each_file_and_the_totals(cli: Cli, clean: Path, warned: Path) -> None:
    result = cli("inspect", clean, warned)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "decoder.xml"
    assert "scatter_1.onnx" in lines
    assert lines[-1] == "3 scatter nodes in 2 files: 2 ScatterUpdate-3, 1 Scatter-9"
    row = next(line for line in lines if "value_cache/scatter" in line)
    assert "data f32[1, 2, 16, 4]" in row
    assert "indices i64[?]" in row
    assert row.endswith("2                not constant")


def test_lines_of_an_ir_are_those_of_validate(cli: Cli, broken: Path) -> None:
    shown = {line.split(":")[0] for line in cli("inspect", broken).out.splitlines() if ": " in line}
    found = {line.split(":")[1] for line in cli("validate", broken, "--format", "concise").out.splitlines()}
    assert found <= shown


def test_json(cli: Cli, clean: Path) -> None:
    result = cli("inspect", clean, "no.xml", "--format", "json")
    assert result.code == 3
    document = json.loads(result.out)
    assert document["schema"] == 1
    assert [file["path"] for file in document["files"]] == ["decoder.xml", "no.xml"]
    node = document["files"][0]["nodes"][0]
    assert node["operator"] == "ScatterUpdate-3"
    assert node["axis"] == 2
    assert node["inputs"]["data"] == "f32[1, 2, 16, 4]"
    assert "no.xml" in result.err


def test_exclude_and_passed_over(cli: Cli, clean: Path, warned: Path, elsewhere: Path) -> None:
    (elsewhere / "notes.xml").write_text("<notes/>")
    result = cli("inspect", ".", "--exclude", "*.onnx", "-v")
    assert result.code == 0
    assert "scatter_1.onnx" not in result.out
    assert "notes.xml: skipped" in result.err


def test_of_files_that_cannot_be_read_nothing_is_listed(cli: Cli, clean: Path) -> None:
    """Neither does "no scatter nodes in 1 file" hold of a file that nobody could read."""
    result = cli("inspect", "missing.xml")
    assert (result.code, result.out) == (3, "")
    assert cli("inspect", str(clean), "missing.xml").out.splitlines()[-1].count("in 1 file") == 1


@pytest.mark.parametrize("name", sorted(str(path.relative_to(SAMPLES)) for path in SAMPLES.glob("*/*.xml")))
def test_every_node_of_a_sample_is_listed(cli: Cli, name: str) -> None:
    nodes = json.loads(cli("inspect", SAMPLES / name, "--format", "json").out)["files"][0]["nodes"]
    counted = json.loads(cli("validate", SAMPLES / name, "--format", "json").out)["files"][0]["scatter_nodes"]
    assert len(nodes) == counted
