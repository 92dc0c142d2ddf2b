"""Indices without dimensions, and data that the CPU plugin folds before it looks at them; all was measured."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter import read, runners
from ir_scatter.portability import diagnose, portability_to
from ir_scatter.runners.base import Status
from tests.models.ir_text import IrText

_MADE = {
    "Const": ("", []),
    "Reshape": ("opset1", [[2, 0]]),
    "Abs": ("opset1", []),
    "Sin": ("opset1", []),
    "Roll": ("opset7", [[1], [0]]),
    "fed": ("", []),
    "Sin of fed": ("opset1", []),
    "Convert of fed": ("opset1", []),
    "Reshape of fed": ("opset1", [[2, 0]]),
}
"""What makes data: the opset and whole numbers of operators."""


@pytest.mark.openvino
@pytest.mark.parametrize("made", _MADE)
def test_data_without_elements(made: str, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    ir, (opset, numbers) = IrText(), _MADE[made]
    is_fed, is_kept = "fed" in made, made in {"fed", "Convert of fed", "Reshape of fed"}
    data = ir.parameter("data", "f32", (2, 0)) if is_fed else ir.const("data", "f32", [], (2, 0))
    if opset:
        more = [ir.const(f"more{place}", "i64", content) for place, content in enumerate(numbers)]
        words = {"Reshape": {"special_zero": "false"}, "Convert": {"destination_type": "f32"}}
        type = made.split()[0]
        data = ir.add("made", type, opset, [data, *more], [("f32", (2, 0))], words.get(type))
    indices, updates = ir.parameter("indices", "i64", ()), ir.parameter("updates", "f32", (0,))
    inputs = [data, indices, updates, ir.const("axis", "i64", 0)]
    made_by = ir.add("node", "ScatterUpdate", "opset3", inputs, [("f32", (2, 0))])
    ir.add("result", "Result", "opset1", [made_by], [])
    path = ir.write(tmp_path)
    found = diagnose(read(path), portability_to(("openvino:CPU@2026.4.1",)))
    assert [one.code for one in found if one.code == "DEV101"] == ["DEV101"] * is_kept
    runner = runners.find("CPU")
    feeds = {"indices": np.array(1), "updates": np.zeros(0, np.float32)}
    if is_fed:
        feeds["data"] = np.zeros((2, 0), np.float32)
    try:
        outcome = runner.run(path, feeds, timeout=60)
    finally:
        runner.close()
    assert outcome.status is (Status.REFUSED if is_kept else Status.OK)
