"""The process that infers shapes: one for many models, and what goes wrong in it is survived."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from onnx import ModelProto

from ir_scatter.core.model import Model
from ir_scatter.core.shapes import show
from ir_scatter.formats.onnx import inference, inference_process
from tests.formats.onnx_patches import read

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def end_children() -> None:
    while inference_process._idle:
        inference_process._idle.pop().end()


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Give the processes that are forked from now on, and begin and end without one."""
    fork, found = os.fork, list[int]()

    def counted() -> int:
        child = fork()
        found.append(child)
        return child

    end_children()
    monkeypatch.setattr(os, "fork", counted)
    yield found
    end_children()


def model(rows: int, name: str = "y") -> Model:
    text = f"""
        <ir_version: 10, opset_import: ["" : 18]>
        main (float[{rows}, 3] x) => ({name}) {{ {name} = Transpose (x) }}
    """
    return read(text)


def shape(found: Model) -> str:
    (node,) = found.walk()
    return show(node.outputs[0].shape)


def infer_or(failure: Any, name: bytes) -> Any:
    """Return an inference that fails on models in which a name occurs."""
    infer = onnx.shape_inference.infer_shapes

    def work(data: bytes, **options: Any) -> ModelProto:
        if name in data:
            failure()
        return infer(data, **options)

    return work


def spin() -> None:
    while True:
        pass


def fill_memory() -> None:
    kept = []
    while True:
        kept.append(bytes(1 << 26))


def test_one_process_infers_many_models(forked: list[int]) -> None:
    assert [shape(model(rows)) for rows in (2, 5, 7)] == ["[3, 2]", "[3, 5]", "[3, 7]"]
    assert len(forked) == 1


@pytest.mark.parametrize("failure", [os.abort, spin, fill_memory, lambda: os._exit(0)])
def test_a_model_that_is_too_much_for_the_process(
    failure: Any, forked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "CPU_SECONDS", 1)
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", infer_or(failure, b"guilty"))
    names = ["first", "guilty", "last"]
    assert [shape(model(2, name)) for name in names] == ["[3, 2]", "[...]", "[3, 2]"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_that_ended_meanwhile_is_replaced(forked: list[int], number: int) -> None:
    """Whoever ended it: the next model is not to suffer."""
    assert shape(model(2)) == "[3, 2]"
    os.kill(forked[0], number)
    assert shape(model(5)) == "[3, 5]"


def test_it_keeps_no_file_open_that_others_wait_for(forked: list[int]) -> None:
    reader, writer = os.pipe()
    model(2).walk()
    assert shape(model(2)) == "[3, 2]"
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_forked_reader_has_a_process_of_its_own(forked: list[int]) -> None:
    assert shape(model(2)) == "[3, 2]"
    child = os.fork()
    if child == 0:
        found = [shape(model(rows)) for rows in (2, 7)]
        os._exit(found != ["[3, 2]", "[3, 7]"])
    assert [shape(model(rows)) for rows in (5, 11)] == ["[3, 5]", "[3, 11]"]
    assert os.waitpid(child, 0)[1] == 0


def test_threads_that_read_at_the_same_time(forked: list[int]) -> None:
    found: dict[int, str] = {}

    def work(rows: int) -> None:
        for _ in range(5):
            found[rows] = shape(model(rows))

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (2, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {2: "[3, 2]", 5: "[3, 5]", 7: "[3, 7]"}
