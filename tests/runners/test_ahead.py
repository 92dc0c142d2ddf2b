"""Models that are made ready while their inputs are still being drawn."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.runners.base import Status
from tests.rules.ir_text import IrText


def write(folder: Path, type: str = "ReLU") -> str:
    ir = IrText()
    data = ir.parameter("data", shape=(3,))
    ir.add("result", "Result", "opset1", [ir.add("node", type, "opset1", [data], [("f32", (3,))])], [])
    return ir.write(folder, type)


FEEDS = {"data": np.array([-1, 2, 3], np.float32)}


@pytest.fixture
def runner() -> Any:
    pytest.importorskip("openvino")
    found = runners.find("CPU")
    found.close()
    yield found
    found.close()


@pytest.mark.openvino
def test_a_prepared_model_is_compiled_once(tmp_path: Path, runner: Any) -> None:
    path = write(tmp_path)
    starts = runner.transport.starts
    runner.prepare(path)
    outcome = runner.run(path, FEEDS, profile=True)
    assert outcome.status is Status.OK
    assert outcome.outputs["node"].tolist() == [0, 2, 3]
    again = runner.run(path, FEEDS, profile=True)
    assert again.seconds < outcome.seconds, "what the first took has the compilation in it"
    assert runner.transport.starts == starts + 1


@pytest.mark.openvino
def test_what_is_prepared_may_fail_or_be_another(tmp_path: Path, runner: Any) -> None:
    odd, good = write(tmp_path, "NoSuchThing"), write(tmp_path)
    runner.prepare(odd)
    failed = runner.run(odd, FEEDS)
    assert failed.status is Status.UNSUPPORTED
    assert "NoSuchThing" in failed.message
    runner.prepare(odd)
    runner.prepare(good)
    assert runner.run(good, FEEDS).status is Status.OK
    assert runner.run(odd, FEEDS).status is Status.UNSUPPORTED


@pytest.mark.openvino
def test_a_time_limit(tmp_path: Path, runner: Any) -> None:
    path = write(tmp_path)
    runner.prepare(path)
    assert runner.run(path, FEEDS, timeout=0.001).status is Status.TIMEOUT
    assert runner.run(path, FEEDS).status is Status.OK


@pytest.mark.openvino
def test_closing_does_not_wait_and_leaves_no_process(tmp_path: Path, runner: Any) -> None:
    path = write(tmp_path)
    for _ in range(3):
        runner.prepare(path)
        runner.close()
        assert runner.transport.process_id is None
    assert runner.run(path, FEEDS).status is Status.OK
