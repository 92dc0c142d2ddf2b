"""What DESIGN calls one file or one row is one: each test adds it to a copy of the packages, and uses it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import ir_scatter
import ir_scatter_cli

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
LATER = 'type="ScatterUpdate" version="opset16"'
BROKEN = SAMPLES / "broken" / "scatter_update.xml"


@dataclass(frozen=True, slots=True)
class House:
    """A copy of the packages."""

    root: Path

    def add(self, path: str, text: str) -> None:
        """Add a file that is not there."""
        target = self.root / path
        assert not target.exists()
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)

    def insert(self, path: str, before: str, line: str) -> None:
        """Add a line to a file."""
        target = self.root / path
        text = target.read_text()
        assert text.count(before) == 1
        target.write_text(text.replace(before, line + before))

    def python(self, *arguments: str, code: int = 0) -> str:
        """Run Python with the copy, and return what it printed."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        return done.stdout

    def cli(self, *arguments: str | Path, code: int = 0) -> str:
        """Run the command line of the copy, and return what it printed."""
        return self.python("-m", "ir_scatter_cli", *map(str, arguments), code=code)


@pytest.fixture
def house(tmp_path: Path) -> House:
    for package in (ir_scatter, ir_scatter_cli):
        source = Path(str(package.__file__)).parent
        shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return House(tmp_path)


def test_an_output_format_is_a_file(house: House) -> None:
    house.add(
        "ir_scatter/report/findings_csv.py",
        '"""Findings for spreadsheets."""\n\n\n'
        "def render(report, *, statistics=False):\n"
        '    return "".join(f"{one.code},{one.location.path}\\n" for one in report.diagnostics())\n',
    )
    assert "csv" in house.cli("validate", "--help")
    shown = house.cli("validate", BROKEN, "--format", "csv", "--statistics", code=1)
    assert f"SCT203,{BROKEN}\n" in shown


def test_a_sub_command_is_a_file_and_a_line(house: House) -> None:
    house.add(
        "ir_scatter_cli/count.py",
        "import click\n\n\n"
        '@click.command("count")\n@click.argument("path")\n'
        "def command(path: str) -> int:\n"
        "    from ir_scatter.inspect import inspect\n    from ir_scatter.validate import read\n\n"
        "    click.echo(len(inspect(read(path))))\n    return 0\n",
    )
    house.insert(
        "ir_scatter_cli/main.py", '    "routes": ', '    "count": "Count the scatter nodes of a model.",\n'
    )
    assert "Count the scatter nodes" in house.cli("--help")
    assert int(house.cli("count", BROKEN)) > 1


def test_a_rule_is_a_file(house: House) -> None:
    house.add(
        "ir_scatter/rules/square_data.py",
        '"""Data is square.\n\nWhy: a test.\n\nFix: none.\n"""\n\n'
        "from ir_scatter.core.diagnostics import Severity\n"
        "from ir_scatter.ops.spec import Role\n"
        "from ir_scatter.rules.base import Finding, Rule\n\n\n"
        "def _check(node):\n"
        "    shape = node.data_shape\n"
        "    if shape is not None and len(set(shape)) == 1:\n"
        '        yield Finding(f"data is {list(shape)}", role=Role.DATA)\n\n\n'
        'RULE = Rule("SCT291", "square-data", Severity.WARNING, _check)\n',
    )
    assert "SCT291 square-data (warning)" in house.cli("explain", "square-data")
    model = SAMPLES / "documented" / "scatter_1.onnx"
    found = json.loads(house.cli("validate", model, "--format", "json", "--select", "SCT291"))
    assert [one["message"] for one in found["files"][0]["diagnostics"]] == ["data is [3, 3]"]


def test_an_operator_version_is_a_row(house: House) -> None:
    table = house.root / "ir_scatter" / "ops" / "scatter_openvino.py"
    text = table.read_text()
    assert text.count("opsets=_words(3, 16)") == 1
    table.write_text(text.replace("opsets=_words(3, 16)", "opsets=_words(3, 15)"))  # where the old one ends
    house.insert(
        "ir_scatter/ops/scatter_openvino.py",
        ")\nSCATTER_ELEMENTS_UPDATE = (",
        ' replace(SCATTER_UPDATE_3, key=OpKey(OPENVINO, "ScatterUpdate", 16), opsets=_words(16, 16)),',
    )
    assert house.cli("explain", "ScatterUpdate-16").startswith("ScatterUpdate-16")
    model = house.root / "later.xml"
    model.write_text(BROKEN.read_text().replace('type="ScatterUpdate" version="opset3"', LATER))
    shutil.copy(BROKEN.with_suffix(".bin"), model.with_suffix(".bin"))
    assert "(ScatterUpdate-16)" in house.cli("validate", model, code=1)
    assert "ScatterUpdate-3, -16" in house.cli("routes")
    code = (
        "import ir_scatter\n"
        "print(ir_scatter.evaluate('ScatterUpdate-16', data=[1, 2], indices=[1], updates=[3], axis=0))"
    )
    assert house.python("-c", code) == "[1 3]\n"


def test_a_rewrite_is_a_file(house: House) -> None:
    house.add(
        "ir_scatter/rewrites/axis_written.py",
        '"""The axis is written as a constant, counted from the front."""\n\n'
        "from ir_scatter.ops.scatter_openvino import SCATTER_UPDATE\n"
        "from ir_scatter.rewrites.base import between\n\n\n"
        "def _written(view, build, target):\n"
        "    axis = view.site.axis\n"
        "    return build.scatter(target, view.data, view.indices, view.updates, axis=axis)\n\n\n"
        "def _is_known(view, target):\n"
        "    return view.site.axis is None\n\n\n"
        'REWRITES = between("axis-written", [(SCATTER_UPDATE, SCATTER_UPDATE)], _written,\n'
        '    is_done=_is_known, conditions="a known axis")\n',
    )
    assert "a known axis" in house.cli("routes")
    model = SAMPLES / "operators" / "scatter_update_3_axis_0.xml"
    found = json.loads(house.cli("convert", model, "--to", "ScatterUpdate", "--dry-run", "--format", "json"))
    assert [one["rewrites"] for one in found["converted"]] == [["axis-written"]]
    assert [one["cases"] for one in found["verified"]] == [8]
