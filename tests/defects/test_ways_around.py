"""Each probe of legal input: `validate --for` tells of it, and `convert --for` goes around it or says why not."""

from collections import Counter
from pathlib import Path

import pytest

from ir_scatter import convert, runners
from ir_scatter.cases.case import Case
from ir_scatter.cases.from_probe import case_of
from ir_scatter.cases.judge import judge
from ir_scatter.core.diagnostics import Severity
from ir_scatter.defects import all_defects
from ir_scatter.defects.base import Probe, Result
from ir_scatter.defects.evidence import Target, history, key_of, result_of
from ir_scatter.formats import FORMATS
from ir_scatter.portability import concerns, diagnose, portability_to
from ir_scatter.reading import read
from ir_scatter.runners.base import Runner, Streamed

RUNNERS = ("openvino:CPU", "openvino:fold", "openvino:GPU@cpu", "onnxruntime")


def written(probe: Probe, folder: Path) -> tuple[Case, Path]:
    case = case_of(probe)
    files = FORMATS[case.format].nodes([case.node()])
    for suffix, data in files.items():
        (folder / f"model{suffix}").write_bytes(data)
    return case, folder / f"model{next(iter(files))}"


def became(case: Case, path: Path, runner: Runner) -> str:
    """Return what `convert --for` makes of a model, and whether the device computes that right."""
    found = convert(path, targets=[runner.name], verify=1)
    if found.refused:
        return f"refused: {found.refused[0].code}"
    if not found.converted:
        return "not converted"
    found.write(after := path.with_stem("after"))
    outcome = runner.run(after, case.feeds(), timeout=120)
    outputs = list(outcome.runs[0].values()) if outcome.runs else []
    judged = judge(case, Streamed(outcome.status, outputs, outcome.message))
    (one,) = {str(one.target) for one in found.converted}
    return f"{one}: {judged.symptom or 'right'}"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", RUNNERS)
def test_a_probe_is_told_and_gone_around(name: str, tmp_path: Path, figures: Counter[str]) -> None:
    runner = runners.find(name)
    release = next(iter(runner.versions.values()), "")
    rows = [row for row in history() if (row.runner, row.release) == (name, release)]
    if not rows or not runner.availability().is_available:
        pytest.skip(f"{name} {release} is not recorded, or does not run here")
    portability, wrong = portability_to((name,)), list[tuple[str, str]]()
    for defect in all_defects():
        if not concerns(Target(name, release), defect):
            continue
        for probe in defect.probes:
            if probe.breaks or result_of(defect, rows[0], [probe.name]) in {None, Result.RIGHT}:
                continue
            folder = tmp_path / key_of(defect, probe)
            folder.mkdir(parents=True)
            case, path = written(probe, folder)
            told = {one.severity for one in diagnose(read(path), portability) if one.code == defect.code}
            way = became(case, path, runner) if Severity.ERROR in told else "told only"
            print(f"| {name} | {key_of(defect, probe)} | {', '.join(sorted(told)) or 'nothing'} | {way} |")
            figures[f"{name}: {way.rpartition(': ')[2]}"] += 1
            if not told or (
                Severity.ERROR in told and not way.startswith("refused") and not way.endswith("right")
            ):
                wrong.append((key_of(defect, probe), way))
    runner.close()
    assert wrong == []
