"""What reports of the fuzzer say: the same on the terminal and in files, short programs, few values."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ir_scatter.cases.case import Case
from ir_scatter.cases.judge import Judgement
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.words import counted
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.campaign import Campaign, FuzzPlan, operators
from ir_scatter.fuzz.conditions import FailureCondition
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.fuzz.findings import write_finding
from ir_scatter.fuzz.job import FuzzRequest, run
from ir_scatter.fuzz.replay import replay
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Reduction
from ir_scatter.report.fuzz_text import render
from tests.fuzz.test_campaign import Planted

SCREEN = 50
"""Lines of a program that fits a screen."""
ROWS = {str(key): row for key, row in SPECS.items()}


def case_of(operator: str, shape: tuple[int, ...] = (3,)) -> Case:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    indices = np.zeros((1,) * len(shape), np.int64)
    return Case(
        ROWS[operator], values, indices, np.ones(indices.shape, np.float32), 0, {}, ELEMENT_TYPES["f32"],
        ELEMENT_TYPES["i64"], Reduction.NONE, decisions=(1,),
    )  # fmt: skip


def finding_of(case: Case, runner: str, symptom: Symptom = Symptom.WRONG_VALUE) -> FuzzFinding:
    return FuzzFinding(
        "one", runner, case.operator, symptom, FailureCondition(), 1, 0, case, Judgement(symptom),
        fresh={symptom.value: 2},
    )  # fmt: skip


def lines_of(program: Path) -> int:
    return len(program.read_text().splitlines())


def output_of(program: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=100)
    return done.returncode, (done.stdout.strip() or done.stderr).splitlines()[-1]


RUNTIMES = [
    pytest.param("openvino:CPU", "ScatterElementsUpdate-12", marks=pytest.mark.openvino),
    pytest.param("onnxruntime", "ScatterElements-18", marks=pytest.mark.onnxruntime),
]


@pytest.mark.parametrize(("runner", "operator"), RUNTIMES)
def test_a_program_of_a_static_case_fits_a_screen_and_judges(
    runner: str, operator: str, tmp_path: Path
) -> None:
    pytest.importorskip(runner.partition(":")[0])
    finding = finding_of(case_of(operator), runner)
    write_finding(finding, tmp_path, {})
    program = tmp_path / "one" / "repro.py"
    assert lines_of(program) <= SCREEN
    assert output_of(program) == (0, "gone: as specified")
    with np.load(tmp_path / "one" / "expected.npz") as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "one" / "expected.npz", **{**arrays, "expected": arrays["expected"] + 1})
    assert output_of(program) == (1, "wrong-value: got [1.0, 1.0, 2.0], expected [2.0, 2.0, 3.0]")
    np.savez(tmp_path / "one" / "expected.npz", **{**arrays, "expected": arrays["expected"][:2]})
    assert output_of(program) == (1, "wrong-value: the shape is (3,), expected (2,)")
    np.savez(tmp_path / "one" / "expected.npz", **arrays)
    (tmp_path / "fuzz.json").write_text(json.dumps({"schema": 1, "findings": [finding.as_json()]}))
    assert [each.outcome for each in replay(tmp_path, run_scripts=True)] == ["gone"]
    assert [each.outcome for each in replay(tmp_path)] == ["gone"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    import no_such_package\n", (2, "cannot run: No module named 'no_such_package'")),
        ("    raise RuntimeError('not\\nhere')\n", (1, "refused: not here")),
        ("    import os\n    os.kill(os.getpid(), 11)\n", (1, "crashed: the process ended with signal 11")),
    ],
)
@pytest.mark.parametrize(("runner", "operator"), RUNTIMES)
def test_a_short_program_names_every_end(
    runner: str, operator: str, body: str, expected: tuple[int, str], tmp_path: Path
) -> None:
    pytest.importorskip(runner.partition(":")[0])
    write_finding(finding_of(case_of(operator), runner), tmp_path, {})
    program = tmp_path / "one" / "repro.py"
    program.write_text(program.read_text().replace("def run():\n", f"def run():\n{body}", 1))
    assert output_of(program) == expected


@pytest.mark.parametrize(
    "change",
    [{"shapes": "dynamic"}, {"element_type": ELEMENT_TYPES["bf16"]}, {"element_type": ELEMENT_TYPES["i4"]}],
    ids=str,
)
def test_other_cases_have_the_long_program(change: dict[str, object], tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    case = replace(case_of("ScatterElementsUpdate-12"), **change)  # type: ignore[arg-type]
    if "element_type" in change:
        type = dtype(case.element_type)
        case = replace(case, data=case.data.astype(type), updates=case.updates.astype(type))
    write_finding(finding_of(case, "openvino:CPU"), tmp_path, {})
    assert lines_of(tmp_path / "one" / "repro.py") > SCREEN


@pytest.mark.parametrize("shape", [(7, 100), (3,) * 7], ids=str)
def test_a_report_of_a_large_case_shows_few_values(shape: tuple[int, ...], tmp_path: Path) -> None:
    write_finding(finding_of(case_of("ScatterElements-18", shape), "onnx-reference"), tmp_path, {})
    report = (tmp_path / "one" / "report.md").read_text()
    assert len(report) < 3_000
    size = int(np.prod(shape))
    assert (
        f"0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, ... ({size} values in all)"
        in report
    )
    assert "20.0" not in report


@pytest.fixture
def campaign() -> Campaign:
    """A campaign with one new finding and one that a known defect explains."""
    campaign = Campaign(FuzzPlan(operators(["ScatterElementsUpdate-12"]), None, 10), [Planted()])
    new, old = (finding_of(case_of("ScatterElementsUpdate-12"), "planted") for _ in range(2))
    new.signature, old.signature, old.defects = "new", "old", ("DEV101",)
    campaign.findings = [new, old]
    return campaign


def test_terminal_and_report_have_one_condition(campaign: Campaign) -> None:
    """The counts of a finding grow after it was found: both say what is known at the end."""
    campaign.findings[0].failing = 77
    shown, report = render(campaign), campaign.as_json()
    for finding in report["findings"]:
        assert finding["when"] in shown
    assert "77 of 77 are wrong" in shown
    assert "\n2 findings in 0 cases and " in shown


def test_known_defects_are_left_out(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign.plan = replace(campaign.plan, is_new_only=True)
    assert [finding["signature"] for finding in campaign.as_json()["findings"]] == ["new"]
    shown = render(campaign)
    assert "DEV101" not in shown
    assert "1 finding in 0 cases" in shown
    assert "1 finding more explained by known defects, which are left out" in shown
    findings = campaign.findings
    monkeypatch.setattr(Campaign, "run", lambda self: (finding for finding in findings))
    assert [finding.signature for finding in run(FuzzRequest(folder=tmp_path), campaign)] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize("count", [0, 1, 34])
def test_an_interrupt_says_how_many_failures_were_not_examined(
    campaign: Campaign, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Campaign, "unexplained", property(lambda self: count))
    campaign.is_interrupted = True
    assert f"{counted(count, 'failure')} more not examined: interrupted" in render(campaign)
    campaign.is_interrupted = False
    assert ("more not examined: time limit reached" in render(campaign)) is bool(count)
