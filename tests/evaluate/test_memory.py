"""Memory of a run: values are freed after their last reader, and large constants stay mapped."""

import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ir_scatter.analysis.interpreter import OutOfTime
from ir_scatter.core.errors import Error
from ir_scatter.evaluate.model import ForwardArrays, prepare
from ir_scatter.ops.general_kernels import REFUSALS
from tests.models.onnx_text import save

HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
MEGABYTE = 1 << 20


def peak_of(path: Path, feeds: dict[str, Any]) -> int:
    program = prepare(path)
    program.run({name: array[:1] for name, array in feeds.items()})  # what is imported once
    tracemalloc.start()
    try:
        program.run(feeds)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_values_are_freed_after_their_last_reader(tmp_path: Path) -> None:
    """Sixty tensors of 4 MB in a row, and one that is read at the end."""
    steps = " ".join(f"x{number + 1} = Neg (x{number})" for number in range(60))
    text = f"n (float[r, 1048576] x0) => (float[r, 1048576] y) {{ {steps} y = Add (x1, x60) }}"
    path = save(HEADER + text, tmp_path / "model.onnx")
    x = np.ones((1, MEGABYTE), np.float32)
    assert peak_of(path, {"x0": x}) < 5 * x.nbytes


def test_large_constants_stay_mapped(tmp_path: Path) -> None:
    """A matrix of 64 MB in a file of its own is read where it lies."""
    matrix = np.ones((4096, 4096), np.float32)
    (tmp_path / "weights.bin").write_bytes(matrix.tobytes())
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=matrix.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "n", [value("x", TensorProto.FLOAT, ["r", 4096])],
        [value("y", TensorProto.FLOAT, ["r", 4096])], [tensor],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, tmp_path / "model.onnx")
    assert peak_of(tmp_path / "model.onnx", {"x": np.ones((2, 4096), np.float32)}) < MEGABYTE


def test_a_run_ends_between_nodes_after_its_deadline(tmp_path: Path) -> None:
    text = "n (float[2] x) => (float[2] y) { a = Neg (x) b = Neg (a) y = Neg (b) }"
    program = prepare(save(HEADER + text, tmp_path / "model.onnx"))
    forward = ForwardArrays(program.plans)
    forward.deadline = time.monotonic() - 1
    with pytest.raises(OutOfTime, match="after 0 of 3 nodes, before"):
        forward.run(program.plan, [np.zeros(2, np.float32)])
    assert issubclass(OutOfTime, Error)
    assert not issubclass(OutOfTime, REFUSALS)
