"""Loops in NumPy against onnxruntime, in the same run.

    pytest tests/benchmarks/test_loops.py --benchmark-only -s

Nothing is asserted about seconds: machines differ, ratios say what matters.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.guard import Observations, Watcher
from ir_scatter.evaluate.model import prepare
from ir_scatter.inputs.model import draw_feeds
from tests.benchmarks.timing import medians
from tests.models.onnx_text import save

ITERATIONS = 20_000

MATVEC = """<ir_version: 8, opset_import: ["" : 16]>
matvec (float[200] x, float[100, 200] A) => (float[100] y)
<int64 trips = {20000}, float[100] zeros = {ZEROS}, int64[1] last = {-1}> {
  y = Loop (trips, , zeros) <
    body = body (int64 step, bool again, float[100] old) => (bool goes_on, float[100] new) {
      columns = Constant <value = int64 {200}> ()
      first = Constant <value = int64[1] {0}> ()
      row = Div (step, columns)
      column = Mod (step, columns)
      at_row = Unsqueeze (row, first)
      at_column = Unsqueeze (column, first)
      matrix_row = Gather (A, at_row)
      flat = Reshape (matrix_row, last)
      left = Gather (flat, at_column)
      right = Gather (x, at_column)
      product = Mul (left, right)
      before = GatherElements (old, at_row)
      sum = Add (before, product)
      new = ScatterElements (old, at_row, sum)
      goes_on = Identity (again)
    }
  >
}
""".replace("ZEROS", ", ".join(["0"] * 100))
"""A product of a matrix and a vector, one element in each iteration, as compilers of networks write it."""


def test_a_loop_of_20000_iterations(benchmark: Any, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path = save(MATVEC, tmp_path / "model.onnx")
    program = prepare(path)
    feeds = draw_feeds(program).feeds
    arrays = [feeds[input.names[0]] for input in program.inputs]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, feeds)
    assert np.array_equal(program.run(feeds)["y"], theirs)

    def watch() -> object:
        return Watcher(program.plans, Observations()).watch(program.plan, arrays)

    works = {
        "run": lambda: program.run(feeds),
        "run with observations (compare)": watch,
        "draw inputs": lambda: draw_feeds(program),
    }
    reference, *times = medians([lambda: session.run(None, feeds), *works.values()], rounds=5)
    print(f"\n{'20,000 iterations':34}{'NumPy':>10}{'NumPy / onnxruntime':>22}")
    for name, taken in zip(works, times, strict=True):
        print(f"{name:34}{taken * 1000:>7.0f} ms{taken / reference:>22.1f}")
    benchmark.pedantic(works["run"], rounds=3)
