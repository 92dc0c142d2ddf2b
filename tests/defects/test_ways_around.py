"""Each probe of legal input: `convert --for` fixes it on its device, refuses it, or reports the risk."""

from collections import Counter
from pathlib import Path

import pytest

from ir_scatter import runners
from ir_scatter.defects.evidence import history
from tests.defects.fixes import RUNNERS, Fate, fixes_on

LEAST = {"openvino:CPU": 41, "openvino:fold": 17, "openvino:GPU@cpu": 75, "onnxruntime": 26}
"""Fewest probes that are fixed on each device; the bound only rises."""


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [*RUNNERS, "onnxruntime"])
def test_a_probe_is_fixed_refused_or_at_risk(name: str, tmp_path: Path, figures: Counter[str]) -> None:
    runner = runners.find(name)
    release = next(iter(runner.versions.values()), "")
    rows = [row for row in history() if (row.runner, row.release) == (name, release)]
    if not rows or not runner.availability().is_available:
        pytest.skip(f"{name} {release} is not recorded, or does not run here")
    fixes = list(fixes_on(runner, tmp_path))
    runner.close()
    for fix in fixes:
        print(f"| {name} | {fix.probe} | {fix.fate} | {fix.detail} |")
        figures[f"{name}: {fix.fate}"] += 1
    assert [fix for fix in fixes if fix.fate is Fate.SILENT] == []
    assert sum(fix.fate is Fate.FIXED for fix in fixes) >= LEAST[name]
