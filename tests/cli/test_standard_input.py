"""`ir-scatter validate -`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLES, Cli

IR = (SAMPLES / "nested" / "branch.xml").read_bytes()
ONNX = (SAMPLES / "nested" / "branch.onnx").read_bytes()


@pytest.mark.parametrize(("data", "format", "code"), [(ONNX, "onnx", "SCT204"), (IR, "ir", "SCT930")])
def test_the_format_is_said(script: Cli, data: bytes, format: str, code: str) -> None:
    result = script("validate", "-", "--stdin-format", format, "--format", "json", data=data)
    (file,) = json.loads(result.out)["files"]
    assert (file["path"], file["readable"], file["scatter_nodes"]) == ("<stdin>", True, 2)
    assert code in [found["code"] for found in file["diagnostics"]]
    assert result.code == (1 if any(one["severity"] == "error" for one in file["diagnostics"]) else 0)


def test_an_ir_without_weights_is_still_checked(script: Cli) -> None:
    data = (SAMPLES / "broken" / "scatter_elements_update.xml").read_bytes()
    result = script("validate", "-", "--stdin-format", "ir", "--format", "concise", data=data)
    assert result.code == 1
    assert "<stdin>:" in result.out
    assert "SCT105" in result.out


@pytest.mark.parametrize(
    ("data", "format"),
    [
        *(
            (data, format)
            for data in (b"", b"no model at all", b"\x00\xff" * 100)
            for format in ("ir", "onnx")
        ),
        (IR, "onnx"),
        (ONNX, "ir"),
    ],
)
def test_what_is_no_model(script: Cli, data: bytes, format: str) -> None:
    result = script("validate", "-", "--stdin-format", format, "--format", "json", data=data)
    (file,) = json.loads(result.out)["files"]
    assert (result.code, result.err, file["readable"]) == (3, "", False)
    assert file["diagnostics"]


@pytest.mark.parametrize(("name", "format"), [("scatter_1.onnx", "onnx"), ("scatter_update_2.xml", "ir")])
def test_inspect_and_run_read_it_too(script: Cli, name: str, format: str) -> None:
    path = SAMPLES / "documented" / name
    for options in ([], ["--stdin-format", format]):
        listed = json.loads(script("inspect", "-", "--format", "json", *options, data=path.read_bytes()).out)
        of_file = json.loads(script("inspect", path, "--format", "json").out)
        (one,), (same,) = listed["files"], of_file["files"]
        assert (one["path"], one["format"]) == ("<stdin>", same["format"])
        assert [node["operator"] for node in one["nodes"]] == [node["operator"] for node in same["nodes"]]
        ran = script("run", "-", "--seed", "1", *options, data=path.read_bytes())
        if format == "onnx":
            assert ran == script("run", path, "--seed", "1")
        else:  # the weights stand in a file of their own, which nobody can name
            assert ran.code == 3
            assert "there is no file of weights beside standard input" in ran.err


@pytest.mark.parametrize("command", ["inspect", "run"])
@pytest.mark.parametrize("data", [b"", b"no model at all", b"<net"])
def test_they_say_what_is_no_model(script: Cli, command: str, data: bytes) -> None:
    result = script(command, "-", "--stdin-format", "ir", data=data)
    assert result.code == 3
    assert result.err.startswith("ir-scatter: <stdin>: ")


def test_standard_input_is_alone(cli: Cli, broken: Path) -> None:
    result = cli("validate", "-", broken, "--stdin-format", "ir")
    assert (result.code, result.out) == (2, "")
    assert "- cannot be mixed" in result.err
    assert cli("inspect", "-", broken).code == 2
