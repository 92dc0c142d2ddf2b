"""Models that no runner runs on generated inputs: not refused, as other inputs may fit."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from ir_scatter import runners
from ir_scatter.compare.headline import State, headline
from ir_scatter.compare.result import Compared, CompareSettings, has_failed
from ir_scatter.compare.run import compare
from ir_scatter.runners.base import Outcome, Runner, Status
from ir_scatter.runners.defaults import NUMPY
from tests.models.onnx_text import save

COUNTED = """<ir_version: 10, opset_import: ["" : 18]>
g (float[3] x, int64[4] at) => (float[4] y) {
  noise = RandomUniformLike (x)
  distinct = Unique <sorted = 1> (noise)
  four = Constant <value = float[4] {1, 2, 3, 4}> ()
  sum = Add (distinct, four)
  y = ScatterElements <axis = 0> (sum, at, four)
}"""
"""Three random numbers are not four, so that Add always fails; NumPy draws no random numbers."""
FITTING = """<ir_version: 10, opset_import: ["" : 18]>
g (float[3] x, int64[3] at) => (float[3] y) { y = ScatterElements <axis = 0> (x, at, x) }"""


def write(text: str, folder: Path) -> Path:
    path = save(text, folder / "model.onnx")
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = f"{node.op_type}_5"
    onnx.save(model, path)
    return path


@dataclass(frozen=True)
class Answer(Runner):
    """A runner that always gives one outcome, or that of onnxruntime."""

    outcome: Outcome | None
    name: str = "fake"
    install = ""

    def start(self) -> None:
        pass

    def close(self) -> None:
        pass

    def run(self, model_path: Any, feeds: Any, **options: Any) -> Outcome:
        return replace(self.outcome or Outcome("", Status.OK, runs=({"y": feeds["x"]},)), runner=self.name)


def fails(status: Status = Status.REFUSED, *, at_inference: bool = True) -> Outcome:
    return Outcome("", status, "Reshape_5: no", at_inference=at_inference)


def statuses(found: Compared) -> dict[str, str]:
    return {outcome.runner: outcome.status.value for outcome in found.outcomes}


@pytest.mark.parametrize("name", ["onnxruntime", "CPU", "onnx-reference"])
def test_runtimes_say_where_inputs_do_not_fit(name: str, tmp_path: Path) -> None:
    runner = runners.HERE.find(name, ())
    found = compare(write(COUNTED, tmp_path), [runner], CompareSettings(cases=2))
    runner.close()
    line = headline(found)
    assert statuses(found)[runner.name] == "inputs-do-not-fit"
    assert line.state is State.NOTHING
    assert line.sentence.startswith("drawn inputs do not fit: ")
    assert line.sentence.endswith("; nothing was compared")
    assert "Add_5" in line.sentence or name != "onnxruntime"
    assert "inputs that fit are set by inputs, input_ranges or input_shapes" in found.remarks
    assert has_failed([found])
    assert not found.differs


@pytest.mark.parametrize(
    ("outcome", "other", "status"),
    [
        (fails(), fails(), "inputs-do-not-fit"),
        (fails(), fails(Status.UNSUPPORTED), "inputs-do-not-fit"),
        (fails(), fails(Status.UNAVAILABLE), "inputs-do-not-fit"),
        (fails(at_inference=False), fails(at_inference=False), "refused"),
        (fails(), fails(at_inference=False), "refused"),
        (fails(), fails(Status.CRASHED), "refused"),
        (fails(), fails(Status.TIMEOUT), "refused"),
        (fails(), None, "refused"),
    ],
)
def test_all_that_accept_the_model_must_fail(
    outcome: Outcome, other: Outcome | None, status: str, tmp_path: Path
) -> None:
    asked = [Answer(outcome), Answer(other, "other")]
    found = compare(write(COUNTED, tmp_path), asked, CompareSettings(reference=False), with_numpy=False)
    assert statuses(found)["fake"] == status


def test_numpy_that_computes_the_model_shows_that_the_inputs_fit(tmp_path: Path) -> None:
    found = compare(write(FITTING, tmp_path), [Answer(fails())], CompareSettings())
    assert statuses(found) == {NUMPY: "ok", "fake": "refused"}


def test_inputs_of_the_caller_are_no_drawn_inputs(tmp_path: Path) -> None:
    feeds = {"x": np.array([1, 2, 3], np.float32), "at": np.array([0, 1, 2, 3])}
    path = write(COUNTED, tmp_path)
    found = compare(path, [Answer(fails())], CompareSettings(), feeds=feeds)
    assert statuses(found)["fake"] == "refused"
    found = compare(path, [Answer(fails())], CompareSettings(cases=2), feeds=feeds)
    assert statuses(found)["fake"] == "refused"


NEVER = """<ir_version: 10, opset_import: ["" : 18]>
g (float[SIZE] x, int64[SIZE] at) => (float[SIZE] y) {
  left = Mod (x, x)
  y = ScatterElements <axis = 0> (left, at, x)
}"""
"""Mod of floating-point numbers needs `fmod`, whatever they are."""


@pytest.mark.parametrize(("size", "status"), [("3", "refused"), ("n", "inputs-do-not-fit")])
def test_a_refusal_while_loading_is_no_matter_of_inputs_whose_sizes_the_model_has(
    size: str, status: str, tmp_path: Path
) -> None:
    path = write(NEVER.replace("SIZE", size), tmp_path)
    loading = Answer(fails(at_inference=False), "loading")
    found = compare(path, [Answer(fails()), loading], CompareSettings())
    assert [statuses(found)[name] for name in ("fake", "loading")] == [status, status]
    assert ("drawn inputs" in headline(found).sentence) is (size == "n")
