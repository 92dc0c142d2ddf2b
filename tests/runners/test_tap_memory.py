"""What taps hold in the process of a runtime, and what is said where that is more than is allowed."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from ir_scatter import read, runners
from ir_scatter.compare.judge import nodes_by_tap
from ir_scatter.runners.base import Status
from ir_scatter.runners.child_runner import ChildRunner
from tests.rules.ir_text import IrText
from tests.unit.nested_onnx import save

NODES, SIDE = 12, 1024
BYTES = 4 * SIDE * SIDE
LIMIT = 16 * BYTES
SLACK = 12 * BYTES
"""For the model's own input and output, in each of their copies."""


def write_ir(folder: Path, *, dynamic: bool) -> str:
    """Write nodes in a row, with a Relu between them, so that nothing is done in place."""
    ir = IrText()
    rows = "?" if dynamic else SIDE
    value = ir.parameter("data", shape=(rows, SIDE))
    updates, axis = ir.parameter("updates", shape=(1, SIDE)), ir.const("axis", "i32", 0)
    for number in range(NODES):
        indices = ir.const(f"indices{number}", "i64", [number])
        inputs = [value, indices, updates, axis]
        value = ir.add(f"node{number}", "ScatterUpdate", "opset3", inputs, [("f32", (rows, SIDE))])
        value = ir.add(f"relu{number}", "ReLU", "opset1", [value], [("f32", (rows, SIDE))])
    ir.add("result", "Result", "opset1", [value], [])
    return str(ir.write(folder, "row"))


def write_onnx(folder: Path, *, dynamic: bool) -> str:
    rows = "rows" if dynamic else SIDE
    nodes = []
    for number in range(NODES):
        nodes.append(helper.make_node("Constant", [], [f"i{number}"], value_ints=[number] * SIDE))
        nodes.append(helper.make_node("Constant", [], [f"s{number}"], value_ints=[1, SIDE]))
        nodes.append(helper.make_node("Reshape", [f"i{number}", f"s{number}"], [f"j{number}"]))
        inputs = [f"x{number}", f"j{number}", "updates"]
        nodes.append(helper.make_node("ScatterElements", inputs, [f"y{number}"], axis=0))
        nodes.append(helper.make_node("Relu", [f"y{number}"], [f"x{number + 1}"]))
    graph = helper.make_graph(
        nodes,
        "row",
        [
            helper.make_tensor_value_info("x0", TensorProto.FLOAT, [rows, SIDE]),
            helper.make_tensor_value_info("updates", TensorProto.FLOAT, [1, SIDE]),
        ],
        [helper.make_tensor_value_info(f"x{NODES}", TensorProto.FLOAT, [rows, SIDE])],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])
    path = folder / "row.onnx"
    onnx.save(model, path)
    return str(path)


def peak_of(runner: ChildRunner) -> int:
    """Return the most memory that the process ever held, in bytes."""
    status = Path(f"/proc/{runner.child.process_id}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is told by /proc")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", ["CPU", "fold", "onnxruntime"])
def test_the_process_holds_no_more_than_is_allowed(name: str, dynamic: bool, tmp_path: Path) -> None:
    if name == "onnxruntime":
        pytest.importorskip("onnxruntime")
    is_onnx = name == "onnxruntime"
    path = (write_onnx if is_onnx else write_ir)(tmp_path, dynamic=dynamic)
    feeds = {"x0" if is_onnx else "data": np.ones((SIDE, SIDE), np.float32)}
    feeds["updates"] = np.full((1, SIDE), 2, np.float32)
    runner = runners.find(name)
    assert isinstance(runner, ChildRunner)
    runner.close()
    try:
        assert runner.run(path, feeds).status is Status.OK
        before = peak_of(runner)
        taps = tuple(nodes_by_tap(read(path)))
        outcome = runner.run(path, feeds, taps=taps, tap_memory=LIMIT)
        assert peak_of(runner) - before < LIMIT + SLACK < 3 * 2 * NODES * BYTES
        assert outcome.remarks == ()
        assert [tapped.problem for tapped in outcome.tapped] == [""] * NODES
        for number, tapped in enumerate(outcome.tapped):
            (execution,) = tapped.executions
            assert (execution.output[: number + 1] == 2).all()
            assert (execution.output[number + 1 :] == 1).all()
    finally:
        runner.close()


@pytest.mark.parametrize("name", ["CPU", "fold", "onnxruntime", "onnx-reference"])
def test_what_cannot_be_held_is_tapped_alone_and_said(name: str, tmp_path: Path) -> None:
    if name == "onnxruntime":
        pytest.importorskip("onnxruntime")
    path, feeds = _small(name, tmp_path)
    taps = tuple(nodes_by_tap(read(path)))
    outcome = runners.find(name).run(path, feeds, taps=taps, tap_memory=100)
    assert [tapped.problem for tapped in outcome.tapped] == ["", ""]
    (remark,) = outcome.remarks
    assert remark.startswith("tapping first, second takes up to ")
    assert remark.endswith(" bytes, more than --tap-memory allows (100)")
    assert not runners.find(name).run(path, feeds, taps=taps).remarks


def _small(name: str, folder: Path) -> tuple[str, dict[str, npt.NDArray[Any]]]:
    feeds = {"data": np.ones((4, 5), np.float32), "updates": np.full((1, 5), 2, np.float32)}
    if name.startswith("onnx"):
        text = """
<ir_version: 10, opset_import: ["" : 18]>
small (float[N, 5] data, float[1, 5] updates) => (float[N, 5] out)
<int64[1, 5] indices = {1, 1, 1, 1, 1}> {
  [first] one = ScatterElements (data, indices, updates)
  two = Relu (one)
  [second] three = ScatterElements (two, indices, updates)
  out = Relu (three)
}
"""
        return str(save(text, folder / "small.onnx")), feeds
    ir = IrText()
    value, updates = ir.parameter("data", shape=("?", 5)), ir.parameter("updates", shape=(1, 5))
    indices, axis = ir.const("indices", "i64", [1]), ir.const("axis", "i32", 0)
    for node in ("first", "second"):
        inputs = [value, indices, updates, axis]
        value = ir.add(node, "ScatterUpdate", "opset3", inputs, [("f32", ("?", 5))])
        value = ir.add(f"{node}_relu", "ReLU", "opset1", [value], [("f32", ("?", 5))])
    ir.add("result", "Result", "opset1", [value], [])
    return str(ir.write(folder, "small")), feeds


@pytest.mark.parametrize("name", ["CPU", "fold", "onnxruntime", "onnx-reference"])
def test_outputs_share_no_memory_with_feeds_or_with_later_runs(name: str, tmp_path: Path) -> None:
    """Inputs that are outputs too, as they are and behind nodes that do nothing."""
    if name == "onnxruntime":
        pytest.importorskip("onnxruntime")
    text = """
<ir_version: 10, opset_import: ["" : 18]>
through (float[3, 5] data, int64[1, 5] indices, float[1, 5] updates) => (float[3, 5] data, float[5, 3] same, float[3, 5] out)
<int64[2] shape = {5, 3}> {
  same = Reshape (data, shape)
  out = ScatterElements (data, indices, updates)
}
"""
    path = save(text, tmp_path / "through.onnx")
    feeds: dict[str, npt.NDArray[Any]] = {
        "data": np.ones((3, 5), np.float32),
        "indices": np.zeros((1, 5), np.int64),
        "updates": np.full((1, 5), 2, np.float32),
    }
    runner = runners.find(name)
    first = runner.run(path, feeds, repeat=2, taps=tuple(nodes_by_tap(read(path))))
    assert (first.status, first.message) == (Status.OK, "")
    arrays = [array for run in first.runs for array in run.values()]
    arrays += [execution.output for tapped in first.tapped for execution in tapped.executions]
    kept = [array.copy() for array in arrays]
    assert not any(np.shares_memory(array, feed) for array in arrays for feed in feeds.values())
    assert not any(np.shares_memory(one, two) for n, one in enumerate(arrays) for two in arrays[:n])
    for feed in feeds.values():
        feed *= 0
    runner.run(path, feeds)
    assert all(np.array_equal(array, old) for array, old in zip(arrays, kept, strict=True))
    arrays[0][...] = 7
    assert all(np.array_equal(array, old) for array, old in zip(arrays[1:], kept[1:], strict=True))
