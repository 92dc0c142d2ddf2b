"""Drawn nodes on a device: none that it computes right is an error of `validate --for`."""

from collections import Counter
from pathlib import Path

import pytest

from ir_scatter import runners
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import scatter_nodes
from ir_scatter.cases.case import Case, Limits
from ir_scatter.cases.draw import Draws, draw_case, draw_form
from ir_scatter.cases.judge import judge
from ir_scatter.cases.workshop import Workshop
from ir_scatter.core.model import ONNX
from ir_scatter.defects import all_defects
from ir_scatter.defects.evidence import Row, Target
from ir_scatter.doctor import probe_defects
from ir_scatter.formats import FORMATS
from ir_scatter.ops.lookup import SPECS
from ir_scatter.portability import Portability
from ir_scatter.reading import read

CASES = 40
LIMITS = Limits(shapes=("static", "dynamic", "bounded"))


def drawn() -> list[list[Case]]:
    """Return cases of each row."""
    found = []
    for spec in SPECS.values():
        cases = []
        for seed in range(CASES):
            draws = Draws(seed)
            cases.append(draw_case(draws, draw_form(draws, spec, LIMITS)))
        found.append(cases)
    return found


def is_met(portability: Portability, case: Case, folder: Path) -> bool:
    """Tell whether some defect meets the node of a case for certain."""
    files = FORMATS[case.format].nodes([case.node()])
    for suffix, data in files.items():
        (folder / f"model{suffix}").write_bytes(data)
    model = read(folder / f"model{next(iter(files))}")
    (scatter,) = scatter_nodes(model.graph, Facts(model=model))
    return any(met.is_certain for met in portability.met(scatter))


@pytest.mark.long
@pytest.mark.parametrize("name", ["openvino:CPU", "openvino:fold", "onnxruntime"])
def test_nodes_that_are_computed_right_are_no_errors(
    name: str, tmp_path: Path, figures: Counter[str]
) -> None:
    names = {name, "openvino:fold"} if name.startswith("openvino") else {name}
    release, rows = next(iter(runners.find(name).versions.values()), ""), list[Row]()
    if not release:
        pytest.skip(f"{name} is not installed")
    for one in names:
        runtime, _, device = one.partition(":")
        concerned = [defect for defect in all_defects() if one in defect.runners]
        rows.append(Row(runtime, release, device, probe_defects(runners.find(one), concerned)))
    portability = Portability([Target(name, release)], rows, [])
    workshop, wrong = Workshop(str(tmp_path), 60.0), list[Case]()
    for cases in drawn():
        if name == "onnxruntime" and cases[0].spec.key.domain != ONNX:
            continue
        for case, answer in zip(cases, workshop.batch(runners.find(name), cases), strict=True):
            judged = judge(case, answer)
            if not judged.is_run:
                continue
            met = is_met(portability, case, tmp_path)
            figures["right"] += judged.symptom is None
            figures["bad and told"] += judged.symptom is not None and met
            if judged.symptom is None and met:
                wrong.append(case)
    assert figures["right"] > CASES
    assert wrong == []
