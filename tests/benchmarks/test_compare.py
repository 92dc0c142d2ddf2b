"""Comparing, against what compiling and running the same model takes in the same run.

    pytest tests/benchmarks/test_compare.py --benchmark-only -s

Nothing is asserted about seconds: machines differ, ratios say what matters.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.compare import run
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import CompareSettings, Level
from tests.benchmarks.networks import Network, Port
from tests.benchmarks.timing import medians

CPU = "openvino:CPU"


def caches(path: Path, scatters: int) -> Path:
    """Write a chain of four layers for each scatter node, whose inputs are all computed."""
    network = Network()
    data: Port = ("FP32", (16, 32, 8))
    updates: Port = ("FP32", (16, 7, 8))
    positions: Port = ("I64", (7,))
    value = network.layer("Parameter", "opset1", 'shape="16,32,8" element_type="f32"', output=data)
    new = network.layer("Parameter", "opset1", 'shape="16,7,8" element_type="f32"', output=updates)
    indices = network.layer("Parameter", "opset1", 'shape="7" element_type="i64"', output=positions)
    axis = network.constant(np.array(1))
    for _ in range(scatters):
        new = network.layer("ReLU", "opset1", "", [(new, updates)], updates)
        inputs = [(value, data), (indices, positions), (new, updates), (axis, ("I64", ()))]
        value = network.layer("ScatterUpdate", "opset3", "", inputs, data)
        value = network.layer("ReLU", "opset1", "", [(value, data)], data)
        new = network.layer("Abs", "opset1", "", [(new, updates)], updates)
    for source, port in ((value, data), (new, updates)):
        network.layer("Result", "opset1", "", [(source, port)])
    return network.write(path)


@pytest.mark.openvino
def test_a_thousand_taps(benchmark: Any, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    path = caches(tmp_path / "caches.xml", 1000)
    core = openvino.Core()
    model = core.read_model(path)
    feeds = [
        np.zeros(parameter.get_shape(), parameter.get_element_type().to_dtype())
        for parameter in model.get_parameters()
    ]
    runner = runners.find(CPU)
    assert runner.availability().is_available

    def plain() -> None:
        core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)

    def ours() -> None:
        path.touch()  # what the process kept is then no longer of use
        found = run.compare(path, [runner], CompareSettings())
        of_nodes = [one for one in found.comparisons if one.level is Level.NODE]
        assert len(of_nodes) == 1000
        assert all(one.measure.verdict is Verdict.EQUAL for one in found.comparisons)

    of_plain, of_ours = medians([plain, ours], rounds=5)
    starts = runner.child.starts
    runner.close()
    ratio = of_ours / of_plain
    print(f"\n4,000 nodes, 1,000 taps: {of_ours:.1f} s, {ratio:.2f} x compile and infer; processes: {starts}")
    benchmark.extra_info["ratio"] = ratio
    benchmark.pedantic(plain, rounds=1)
