"""`ir-scatter validate -`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLES, Cli

EXIT_3 = "ir-scatter: exit code 3, as a file cannot be read: <stdin>\n"

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
    assert (result.code, result.err, file["readable"]) == (3, EXIT_3, False)
    assert file["diagnostics"]


@pytest.mark.parametrize(("name", "onnx"), [("scatter_1.onnx", True), ("scatter_update_2.xml", False)])
def test_inspect_and_run_read_it_too(script: Cli, name: str, onnx: bool) -> None:
    data = (SAMPLES / "documented" / name).read_bytes()
    listed = json.loads(script("inspect", "-", "--format", "json", data=data).out)
    (one,), (node,) = listed["files"], listed["files"][0]["nodes"]
    assert (one["path"], one["format"], node["name"]) == (
        "<stdin>",
        "onnx" if onnx else "openvino-ir",
        "scatter",
    )
    ran = script("run", "-", "--seed", "1", "--stdin-format", "onnx" if onnx else "ir", data=data)
    if onnx:
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.splitlines()[1].split() == ["scatter", "f32", "[3,", "3]", "-7.5", "6"]
    else:  # the weights stand in a file of their own, which nobody can name
        assert ran.code == 3
        assert "there is no file of weights beside standard input" in ran.err


@pytest.mark.parametrize("command", ["inspect", "run"])
@pytest.mark.parametrize("data", [b"", b"no model at all"])
def test_they_say_what_is_no_model(script: Cli, command: str, data: bytes) -> None:
    result = script(command, "-", "--stdin-format", "ir", data=data)
    assert result.code == 3
    assert result.err.startswith("ir-scatter: <stdin>: ")


def test_standard_input_is_alone(cli: Cli, broken: Path) -> None:
    result = cli("validate", "-", broken, "--stdin-format", "ir")
    assert (result.code, result.out) == (2, "")
    assert "- cannot be mixed" in result.err
    assert cli("inspect", "-", broken).code == 2
