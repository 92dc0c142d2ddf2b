"""What OpenVINO folds of constant ScatterUpdate nodes, and what is certain of it."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter import evaluate_model, runners
from ir_scatter.core.arrays import Array
from ir_scatter.core.diagnostics import Severity
from ir_scatter.portability import diagnose, portability_to
from ir_scatter.reading import read
from tests.models.ir_text import IrText

_DIFFERENT = np.arange(1, 5).reshape(2, 2, 1)


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("updates", "is_spread", "severity", "is_right"),
    [
        (_DIFFERENT, False, Severity.ERROR, False),
        (0 * _DIFFERENT + 9, False, None, True),
        (np.array([9]), True, None, True),
        (np.array([[[1], [1]], [[2], [2]]]), False, Severity.WARNING, False),
    ],
)
def test_equal_updates_are_folded_right(
    updates: Array, is_spread: bool, severity: Severity | None, is_right: bool, tmp_path: Path
) -> None:
    """Updates of other positions are written, which shows if they differ."""
    ir = IrText()
    fed = ir.parameter("x", "f32", (3, 2, 1))
    data, at, axis = (
        ir.const("data", "f32", np.zeros((3, 2, 1))),
        ir.const("at", "i64", [2, 0]),
        ir.const("axis", "i64", 0),
    )
    new = ir.const("new", "f32", updates)
    if is_spread:
        shape = ir.const("shape", "i64", [2, 2, 1])
        new = ir.add("spread", "Broadcast", "opset3", [new, shape], [("f32", (2, 2, 1))], {"mode": "numpy"})
    node = ir.add("node", "ScatterUpdate", "opset3", [data, at, new, axis], [("f32", (3, 2, 1))])
    total = ir.add("sum", "Add", "opset1", [fed, node], [("f32", (3, 2, 1))], {"auto_broadcast": "numpy"})
    ir.add("result", "Result", "opset1", [total], [])
    path = ir.write(tmp_path)
    found = [one.severity for one in diagnose(read(path), portability_to(("CPU",))) if one.code == "DEV201"]
    assert found == ([] if severity is None else [severity])
    feeds = {"x": np.zeros((3, 2, 1), np.float32)}
    runner = runners.find("CPU")
    (output,) = runner.run(path, feeds, timeout=60).outputs.values()
    runner.close()
    (expected,) = evaluate_model(path, feeds).values()
    assert np.array_equal(output, expected) is is_right
