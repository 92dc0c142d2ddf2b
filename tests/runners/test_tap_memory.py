"""What taps hold in the process of a runtime, and what is said where that is more than is allowed."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter import read, runners
from ir_scatter.compare.nodes import nodes_by_tap
from ir_scatter.runners.base import Runner, Status
from tests.models.onnx_text import save

NODES, SIDE = 12, 1024
BYTES = 4 * SIDE * SIDE
LIMIT = 16 * BYTES
SLACK = 12 * BYTES
"""For the model's own input and output, in each of their copies."""


def write_row(folder: Path, *, nodes: int, rows: int | None, side: int) -> tuple[Path, Any]:
    """Write nodes in a row, with a Relu between them, so that nothing is done in place; and their feeds."""
    feeds = {"data": np.ones((4, side), np.float32), "updates": np.full((1, side), 2, np.float32)}
    body = "x0 = Relu (data)\n"
    for number in range(nodes):
        body += f"i{number} = ConstantOfShape <value = int64[1] {{{number}}}> (size)\n"
        body += f"[node{number}] y{number} = ScatterElements (x{number}, i{number}, updates)\n"
        body += f"x{number + 1} = Relu (y{number})\n"
    text = f"""
<ir_version: 10, opset_import: ["" : 18]>
row (float[{rows or "N"}, {side}] data, float[1, {side}] updates) => (float[{rows or "N"}, {side}] x{nodes})
<int64[2] size = {{1, {side}}}> {{ {body} }}
"""
    return save(text, folder / "row.onnx"), feeds


def peak_of(runner: Runner) -> int:
    """Return the most memory that the process ever held, in bytes."""
    status = Path(f"/proc/{runner.child.process_id}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is told by /proc")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", ["CPU", "fold", "onnxruntime"])
def test_the_process_holds_no_more_than_is_allowed(name: str, dynamic: bool, tmp_path: Path) -> None:
    if name == "onnxruntime":
        pytest.importorskip("onnxruntime")
    path, feeds = write_row(tmp_path, nodes=NODES, rows=None if dynamic else SIDE, side=SIDE)
    feeds["data"] = np.ones((SIDE, SIDE), np.float32)
    runner = runners.find(name)
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
    path, feeds = write_row(tmp_path, nodes=2, rows=None, side=5)
    taps = tuple(nodes_by_tap(read(path)))
    outcome = runners.find(name).run(path, feeds, taps=taps, tap_memory=100)
    assert [tapped.problem for tapped in outcome.tapped] == ["", ""]
    (remark,) = outcome.remarks
    assert remark.startswith("reading the values of node0, node1 takes up to ")
    assert remark.endswith(" bytes, more than tap_memory allows (100)")
    assert not runners.find(name).run(path, feeds, taps=taps).remarks


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
