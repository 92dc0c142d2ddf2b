"""`ir-scatter fuzz`: what it is asked for, what it writes, and findings that are run again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ir_scatter import runners
from ir_scatter.cases.case import Case
from ir_scatter.cases.judge import Judgement
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.conditions import FailureCondition
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.fuzz.findings import write_finding
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Reduction
from ir_scatter.runners.base import Availability
from ir_scatter_cli.main import group
from tests.cli.conftest import ROOT, Cli
from tests.fuzz.test_campaign import Planted

Fuzz = Callable[..., Result]


class Here(Planted):
    def availability(self) -> Availability:
        return Availability(self.name, True)


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch) -> Fuzz:
    found = {"planted": Here(), "right": Here()}
    found["right"].name = "right"

    def find(name: str, also: Sequence[str] = ()) -> Planted:
        return found[name]

    monkeypatch.setattr(runners, "find", find)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(group, ["fuzz", *arguments], standalone_mode=False)

    return run


FIELDS = {
    "schema", "versions", "seed", "seconds", "cases", "rates", "coverage", "findings", "rounds", "runners",
    "illegal", "not_run", "unexplained", "answers",
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--on", "openvino:NPU.7"], 4, "openvino:NPU.7 cannot run here: "),
        (
            ["--on", "CPU", "--operator", "ScaterND"],
            2,
            "operator is 'ScaterND' (did you mean ScatterND?), expected one of ",
        ),
        (["--on", "nothing"], 2, "there is no runner 'nothing'"),
        (["--resume"], 2, "resume needs the folder of an earlier run"),
        (
            ["--replay", "nowhere"],
            2,
            "nowhere holds no findings, expected a folder that `fuzz -o` wrote, with fuzz.json",
        ),
        (["--run-scripts", "--on", "CPU"], 2, "--run-scripts goes with --replay"),
        (["--replay", "nowhere", "--on", "CPU"], 2, "--replay goes with no other options"),
        (["--cases", "0"], 2, "0 is not in the range"),
        (["--seconds", "nan"], 2, "'nan' is not a number of seconds"),
    ],
)
def test_wrong_usage_is_a_sentence(
    cli: Cli, arguments: list[str], code: int, sentence: str, tmp_path: Path
) -> None:
    done = cli("fuzz", *arguments)
    assert done.code == code
    assert sentence in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_report_has_the_documented_fields(fuzz: Fuzz) -> None:
    done = fuzz("--on", "planted", "--operator", "ScatterUpdate-3", "--cases", "200", "--format", "json")
    told = json.loads(done.stdout)
    assert told.keys() == FIELDS
    assert told["cases"] == 200
    assert told["seed"] == 0
    assert told["findings"] == []
    assert told["rates"].keys() == {"forms", "batches"}
    assert done.return_value == 0


@pytest.mark.long
def test_findings_are_written_go_on_and_are_run_again(fuzz: Fuzz, tmp_path: Path) -> None:
    folder = tmp_path / "findings"
    arguments = ("--on", "planted", "--operator", "ScatterElementsUpdate-12", "--cases", "1500", "--values")
    done = fuzz(*arguments, "plain", "-o", str(folder))
    assert done.return_value == 1
    told = json.loads((folder / "fuzz.json").read_text())
    assert {one["symptom"] for one in told["findings"]} == {"wrong-value", "refused", "crashed"}
    for one in told["findings"]:
        place = Path(one["path"])
        assert place == folder / one["signature"]
        names = {path.name for path in place.iterdir()}
        assert {
            "model.xml",
            "model.bin",
            "inputs.npz",
            "expected.npz",
            "repro.py",
            "report.md",
            "case.json",
        } <= names
        assert set(one["signature"]) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")
        assert one["minimal"]["elements"] <= 8
    assert "<h1>planted</h1>" in (folder / "index.html").read_text()
    refused = fuzz(*arguments, "plain", "-o", str(folder))
    assert "continue with --resume" in str(refused.exception) + refused.stderr
    again = fuzz(
        *arguments[:-2], "2500", "--values", "plain", "-o", str(folder), "--resume", "--format", "json"
    )
    assert [one["signature"] for one in json.loads(again.stdout)["findings"]] == [
        one["signature"] for one in told["findings"]
    ]


@pytest.mark.long
def test_a_defect_of_a_real_plugin_is_found_and_shown_by_its_program(tmp_path: Path) -> None:
    """CPU takes no 0-D indices of ScatterUpdate, which the document allows."""
    pytest.importorskip("openvino")
    folder = tmp_path / "findings"
    command = [sys.executable, "-m", "ir_scatter", "fuzz"]
    more = [
        "--on",
        "CPU",
        "--operator",
        "ScatterUpdate-3",
        "--values",
        "plain",
        "--cases",  # a number of seconds would find what a busy machine has time for
        "300",
        "-o",
        str(folder),
    ]
    done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=500)
    assert done.returncode == 1, done.stderr
    found = json.loads((folder / "fuzz.json").read_text())["findings"]
    scalar = [one for one in found if "rank(indices) < 1" in one["when"] and one["symptom"] == "refused"]
    assert len(scalar) == 1
    assert scalar[0]["failing"] > 9 * scalar[0]["passing"]
    assert scalar[0]["minimal"]["shapes"]["indices"] == []
    program = Path(scalar[0]["path"]) / "repro.py"
    shown = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=100)
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert shown.stdout.strip().splitlines()[-1].startswith("refused: ")
    replayed = subprocess.run(
        [*command, "--replay", str(folder), "--format", "json"], capture_output=True, text=True, timeout=300
    )
    assert replayed.returncode == 1
    told = {one["signature"]: one["outcome"] for one in json.loads(replayed.stdout)["findings"]}
    assert told[scalar[0]["signature"]] == "still there"  # another one may be a race


def test_a_program_feeds_inputs_whose_names_a_runtime_loses(tmp_path: Path) -> None:
    """OpenVINO replaces ONNX inputs without elements, and knows no tensor of their names any more."""
    pytest.importorskip("openvino")
    spec, nothing = (
        {str(key): row for key, row in SPECS.items()}["ScatterElements-13"],
        np.empty(0, np.float32),
    )
    case = Case(
        spec, nothing, np.empty(0, np.int64), nothing, 0, {}, ELEMENT_TYPES["f32"], ELEMENT_TYPES["i64"],
        Reduction.NONE, decisions=(1,),
    )  # fmt: skip
    wrong = Judgement(Symptom.WRONG_VALUE)
    finding = FuzzFinding(
        "s", "openvino:CPU", case.operator, Symptom.WRONG_VALUE, FailureCondition(), 1, 0, case, wrong
    )
    write_finding(finding, tmp_path, {})
    command = [sys.executable, str(tmp_path / "s" / "repro.py")]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert shown.stdout.strip().splitlines()[-1] == "gone: as specified"
    assert shown.returncode == 0


_CARELESS = """
import sys
from ir_scatter import runners
from ir_scatter.runners.base import Availability
from ir_scatter_cli.main import group
from tests.fuzz.test_campaign import Careless
Careless.availability = lambda self: Availability(self.name, True)
runners.find = lambda name, also=(): Careless()
sys.exit(group(["fuzz", "--on", "planted", "--illegal", *sys.argv[1:]], standalone_mode=False))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.long
def test_a_run_that_is_ended_keeps_what_it_found_and_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    """Killed between a finding and the report of all, it goes on from the finding's own folder."""
    report = tmp_path / "fuzz.json"
    more = ("--operator", "ScatterElementsUpdate-12", "-o", str(tmp_path), "--seconds")
    command = [sys.executable, "-c", _CARELESS, *more]
    before = latest = ""
    surroundings: dict[str, Any] = {"cwd": ROOT, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "text": True}
    with subprocess.Popen([*command, "60"], stdout=subprocess.PIPE, **surroundings) as process:
        while not list(tmp_path.glob("*/finding.json")):
            before, latest = latest, report.read_text() if report.exists() else ""
            assert process.poll() is None
        process.send_signal(number)
        told, _ = process.communicate(timeout=30)
    written = {path.parent.name for path in tmp_path.glob("*/finding.json")}
    if number is signal.SIGINT:
        assert process.returncode == 130
        assert {one["signature"] for one in json.loads(report.read_text())["findings"]} == written
        assert "1 finding in " in told or f"{len(written)} findings in " in told
    else:
        assert json.loads(before)["findings"] == []
        report.write_text(before)
    done = subprocess.run([*command, "1", "--resume"], capture_output=True, timeout=60, **surroundings)
    signatures = [one["signature"] for one in json.loads(report.read_text())["findings"]]
    assert len(set(signatures)) == len(signatures)
    assert written <= set(signatures)
    assert not [name for name in written if name in done.stdout]
    assert done.returncode == 1
