"""The GPU plugin without a GPU, as a runner."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter import evaluate_model, runners
from ir_scatter.runners import gpu_on_cpu
from ir_scatter.runners.base import Status, Tap
from tests.rules.ir_text import IrText
from tests.unit.nested_ir import floats

pytestmark = [
    pytest.mark.openvino,
    pytest.mark.skipif(gpu_on_cpu.problem() is not None, reason=gpu_on_cpu.problem() or ""),
]


def test_it_runs_models_and_says_what_it_is(tmp_path: Path) -> None:
    ir = IrText()
    data, indices = ir.parameter("data", shape=(4, 5)), ir.parameter("indices", "i32", (2,))
    updates, axis = ir.parameter("updates", shape=(2, 5)), ir.const("axis", "i64", 0)
    written = ir.add("written", "ScatterUpdate", "opset3", [data, indices, updates, axis], [("f32", (4, 5))])
    ir.add("result", "Result", "opset1", [written], [])
    path = ir.write(tmp_path)
    feeds = {"data": floats(4, 5), "indices": np.array([3, 1], np.int32), "updates": -floats(2, 5)}
    runner = runners.find("gpu@CPU")
    assert runner is runners.find("openvino:GPU@cpu") is not runners.find("GPU")
    outcome = runner.run(path, feeds, taps=[Tap("written")])
    assert (outcome.status, outcome.message, outcome.runner) == (Status.OK, "", "openvino:GPU@cpu")
    expected = evaluate_model(path, feeds)["written"]
    assert np.array_equal(outcome.outputs["written"], expected)
    assert np.array_equal(outcome.tapped[0].executions[0].output, expected)
    found = runner.availability()
    assert found.is_available
    assert found.full_name.startswith(gpu_on_cpu.NAME)
    assert found.remarks == gpu_on_cpu.FIDELITY
    assert set(found.versions) > {"openvino"}
    runner.close()
