"""What DESIGN calls one file or one row is one: each test adds it to a copy of the packages, and uses it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import onnx.parser
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
        "    from ir_scatter.inspect import inspect\n    from ir_scatter.reading import read\n\n"
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
        "from ir_scatter.core.diagnostics import Severity\n"
        "from ir_scatter.ops.spec import Role\n"
        "from ir_scatter.rules.base import Finding, Rule\n\n\n"
        '@Rule("SCT291", "square-data", Severity.WARNING)\n'
        "def square_data(node):\n"
        '    """Data is square.\n\n    Why: a test.\n    Fix: none.\n    """\n'
        "    shape = node.data_shape\n"
        "    if shape is not None and len(set(shape)) == 1:\n"
        '        yield Finding(f"data is {list(shape)}", role=Role.DATA)\n',
    )
    shown = house.cli("explain", "square-data")
    assert shown == "SCT291 square-data (warning)\n\nData is square.\n\nWhy: a test.\n\nFix: none.\n"
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


def test_a_general_operator_is_a_row_and_a_kernel(house: House) -> None:
    (house.root / "coded.onnx").write_bytes(
        onnx.parser.parse_model(
            """<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
            g (float[1, 5] data, float[1, 2] new) => (out) <int64[1, 2] codes = {7, 8}> {
              at = com.microsoft.LookUp <keys_int64s = [7, 8], values_int64s = [0, 5]> (codes)
              out = ScatterElements <axis = 1> (data, at, new)
            }"""
        ).SerializeToString()
    )
    house.cli("validate", "coded.onnx")
    house.insert(
        "ir_scatter/ops/general.py",
        "    # moving, copying and slicing\n",
        '    GeneralOp("/LookUp", "select.look_up", "keys_int64s values_int64s", domain="com.microsoft"),\n',
    )
    kernels = house.root / "ir_scatter" / "ops" / "general_kernels" / "select.py"
    kernels.write_text(
        kernels.read_text() + "\n\ndef look_up(case):\n"
        "    keys, values = (case.attributes.integers(name) for name in ('keys_int64s', 'values_int64s'))\n"
        "    return np.array(values)[np.searchsorted(keys, case.array(0))]\n"
    )
    assert "SCT302" in house.cli("validate", "coded.onnx", code=1)


def test_a_rewrite_is_a_file(house: House) -> None:
    house.add(
        "ir_scatter/rewrites/axis_written.py",
        '"""The axis is written as a constant, counted from the front."""\n\n'
        "from ir_scatter.ops.scatter_openvino import SCATTER_UPDATE\n"
        "from ir_scatter.rewrites.base import between\n\n\n"
        "def _written(view, build, target):\n"
        "    axis = view.scatter.axis\n"
        "    return build.scatter(target, view.data, view.indices, view.updates, axis=axis)\n\n\n"
        "def _is_known(view, target):\n"
        "    return view.scatter.axis is None\n\n\n"
        'REWRITES = between("axis-written", [(SCATTER_UPDATE, SCATTER_UPDATE)], _written,\n'
        '    is_done=_is_known, conditions="a known axis")\n',
    )
    assert "a known axis" in house.cli("routes")
    model = SAMPLES / "operators" / "scatter_update_3_axis_0.xml"
    found = json.loads(house.cli("convert", model, "--to", "ScatterUpdate", "--dry-run", "--format", "json"))
    assert [one["rewrites"] for one in found["converted"]] == [["axis-written"]]
    assert [one["cases"] for one in found["verified"]] == [8]


TOY = '''"""A toy format: a line for each node, with the types, shapes and values of its inputs."""

import json

from ir_scatter.core.tensors import Constant
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.model import OPENVINO, Graph, Input, Model, Node, Value


class ToyGraph(Graph):
    def __init__(self, path, lines):
        self.path = path
        self.nodes = [self._node(*each) for each in enumerate(lines, 2)]

    def _node(self, number, line):
        name, type, opset, *inputs = line.split()
        return Node(self, OPENVINO, type, opset, name, (number, inputs))

    def walk(self, types=None):
        return (node for node in self.nodes if types is None or node.type in types)

    def inputs_of(self, node):
        return tuple(Input(self._value(node, text)) for text in node.handle[1])

    def _value(self, node, text):
        import numpy

        type, shape, *values = json.loads(text)
        value = Value(None, ELEMENT_TYPES[type], tuple(shape))
        if values:
            array = numpy.array(values[0], type.replace("i", "int")).reshape(shape)
            value.constant = Constant(node, value.element_type, array.shape, lambda: array)
        return value

    def outputs_of(self, node):
        data = node.inputs[0].value
        return (Value(None, data.element_type, data.shape, node),)

    def attributes_of(self, node):
        return {}

    def bodies_of(self, node):
        return {}

    def location_of(self, node):
        return Location(self.path, node.handle[0], 1, node.scope)


class Toy:
    name, title, suffix = "toy", "Toy", ".toy"

    def sniff(self, head):
        return head.startswith(b"toy\\n")

    def read(self, path, data, options):
        return Model(path, self.name, OPENVINO, ToyGraph(path, data.decode().splitlines()[1:]))


FORMAT = Toy()
'''


def test_a_file_format_is_a_folder_and_a_line(house: House) -> None:
    house.add("ir_scatter/formats/toy/__init__.py", TOY)
    house.insert("ir_scatter/formats/__init__.py", '    "onnx",\n', '    "toy",\n')
    model = house.root / "model"
    indices = '["i64",[2],[3,5]]'
    model.write_text(
        f'toy\nscatter ScatterUpdate opset3 ["f32",[4,5]] {indices} ["f32",[2,5]] ["i64",[],0]\n'
    )
    found = json.loads(house.cli("validate", model, "--format", "json", code=1))["files"][0]
    assert found["format"] == "toy"
    (one,) = found["diagnostics"]
    assert (one["code"], one["line"]) == ("SCT302", 2)
    assert "scatter" in house.cli("inspect", model)


SYMPTOM = """    ROTATED = SymptomRow(
        word="rotated",
        verb="are rotated",
        does="rotates the output",
        result=Result.WRONG,
        group="rotations",
        style="rotated",
        meaning="The output is rotated by one element.",
    )

"""
ROTATED = '''"""A defect of a test."""

from ir_scatter.defects.base import Defect, Meeting, Probe, Symptom


@Defect(
    "DEV999",
    "rotated",
    ("onnx-reference",),
    Symptom.ROTATED,
    (Probe("4", "ScatterElements-18", [1, 2, 3], [2], [4], 0),),
)
def rotated(scatter):
    """It rotates the output."""
    return Meeting("there is an output")
'''
JUDGED = """
from types import SimpleNamespace as Any
import numpy as np
from ir_scatter.cases.from_probe import case_of
from ir_scatter.cases.judge import judge
from ir_scatter.defects import by_code
from ir_scatter.doctor import Diagnosis, check_row
from ir_scatter.defects.evidence import Row, Target, key_of
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.fuzz.conditions import FailureCondition
from ir_scatter.report import doctor_text, fuzz_html
from ir_scatter.runners.base import Availability, Status, Streamed

defect = by_code()["DEV999"]
case = case_of(defect.probes[0])
judged = judge(case, Streamed(Status.OK, [np.array([4, 1, 2], "f4")]))
print(judged.symptom)
print(FuzzFinding("s", "r", str(case.operator), judged.symptom, FailureCondition(), 3, 1, case, judged).when)
row = Row("onnx-reference", "1", "", {key_of(defect, defect.probes[0]): judged.symptom.result})
checked = check_row(defect, Target("onnx-reference", "1"), row, ())
print(doctor_text.render([Diagnosis(Availability("onnx-reference", True), "1", (checked,), row)], verbose=True))
finding = {
    "operator": "o", "runner": "r", "symptom": "rotated", "when": "", "message": "", "defects": [],
    "minimal": {}, "others": {}, "twins": {}, "path": "", "signature": "s",
}
found = {
    "findings": [finding], "cases": 1, "runners": ["r"], "illegal": False, "seconds": 1, "seed": 0,
    "rates": {"forms": 1, "batches": 1}, "coverage": {"pairs": 0, "features": {}}, "versions": {},
}
print(fuzz_html.render(Any(as_json=lambda: found)))
"""


def test_a_symptom_is_a_row_and_what_produces_it(house: House) -> None:
    house.insert("ir_scatter/defects/base.py", "    def __new__(cls, *row", SYMPTOM)
    producer = house.root / "ir_scatter" / "cases" / "judge.py"
    text = producer.read_text()
    assert "Symptom.WRONG_VALUE" in text
    producer.write_text(text.replace("Symptom.WRONG_VALUE", "Symptom.ROTATED"))
    house.add("ir_scatter/defects/rotated.py", ROTATED)
    told = house.python("-c", JUDGED)
    assert told.startswith("rotated\n")
    assert "3 of 4 are rotated" in told
    assert "  rotations\n    DEV999 rotated: present" in told
    assert 'class="badge rotated"' in told
    assert "The output is rotated by one element." in told


def test_a_known_defect_is_a_function(house: House) -> None:
    house.add("ir_scatter/defects/rotated.py", ROTATED.replace("Symptom.ROTATED", "Symptom.WRONG_VALUE"))
    house.add("ir_scatter/docs/defects/DEV999.md", "# DEV999 rotated\n\nIt rotates the output.\n")
    assert "It rotates the output." in house.cli("explain", "DEV999")
    model = SAMPLES / "broken" / "scatter_elements.onnx"
    code = (
        "from ir_scatter.defects.evidence import Row, Target\n"
        "from ir_scatter.defects.base import Result\n"
        "from ir_scatter.portability import Portability, diagnose\n"
        "from ir_scatter.reading import read\n"
        "row = Row('onnx-reference', '1', '', {'DEV999/4': Result.WRONG})\n"
        f"found = diagnose(read({str(model)!r}), Portability([Target('onnx-reference', '1')], [row], []))\n"
        "print(*(f'{one.code} {one.message}' for one in found if one.code == 'DEV999'), sep='\\n')\n"
    )
    assert "DEV999 there is an output: onnx-reference 1" in house.python("-c", code)
