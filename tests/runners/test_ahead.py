"""Models that are made ready while their inputs are still being drawn."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.runners.ahead import Ahead
from ir_scatter.runners.outcome import Status
from tests.rules.ir_text import IrText


def test_the_answer_comes_when_it_is_asked_for() -> None:
    gate = threading.Event()
    ahead = Ahead("this", lambda: {"status": "ok", "gate": gate.wait(9)})
    gate.set()
    assert ahead.wait() == {"status": "ok", "gate": True}
    assert ahead.about == "this"


def test_an_error_is_left_to_whoever_runs_the_model() -> None:
    def fail() -> dict[str, Any]:
        raise RuntimeError

    assert Ahead("this", fail).wait() is None


def test_stopping_goes_on_until_the_thread_gives_up() -> None:
    closed: list[int] = []

    def ask() -> dict[str, Any]:
        while len(closed) < 3:
            time.sleep(0.001)
        return {}

    Ahead("this", ask).stop(lambda: closed.append(1))
    assert len(closed) >= 3


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
    starts = runner.worker.starts
    runner.prepare(path)
    outcome = runner.run(path, FEEDS, profile=True)
    assert outcome.status is Status.OK
    assert outcome.outputs["node"].tolist() == [0, 2, 3]
    again = runner.run(path, FEEDS, profile=True)
    assert again.seconds < outcome.seconds, "what the first took has the compilation in it"
    assert runner.worker.starts == starts + 1


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
    runner.prepare(path, timeout=0.001)
    assert runner.run(path, FEEDS).status is Status.TIMEOUT
    assert runner.run(path, FEEDS).status is Status.OK


@pytest.mark.openvino
def test_closing_does_not_wait_and_leaves_no_process(tmp_path: Path, runner: Any) -> None:
    path = write(tmp_path)
    for _ in range(3):
        runner.prepare(path)
        runner.close()
        assert runner.worker.process_id is None
    assert runner.run(path, FEEDS).status is Status.OK
