from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.request import find_sources
from ir_scatter.compare.result import Compared, Level, Settings
from ir_scatter.compare.run import compare_two
from ir_scatter.core.errors import BadFeed
from ir_scatter.reading import read
from ir_scatter.runners.base import Status
from tests.compare.models import Array, Inputs, floats
from tests.compare.planted import FakeRunner, wrong_at
from tests.models.onnx_text import save
from tests.rules.ir_text import IrText


def write(folder: Path, name: str, *, first: Sequence[int] = (2, 0), outputs: Sequence[str] = ("y",)) -> Path:
    """Write a model that stores two rows; its inputs have a name of the layer and one of the tensor."""
    ir = IrText()
    data = ir.parameter(f"{name}_data", shape=(3, 4), ports=' names="x,data"')
    updates, axis = ir.parameter("updates", shape=(2, 4)), ir.const("axis", "i64", 0)
    indices = ir.const("indices", "i64", first)
    for output in outputs:
        written = ir.add(
            output, "ScatterUpdate", "opset3", [data, indices, updates, axis], [("f32", (3, 4))],
            ports=f' names="{output}"',
        )  # fmt: skip
        ir.add(f"result_{output}", "Result", "opset1", [written], [])
    return Path(ir.write(folder, name))


FEEDS: Inputs = {"x": floats(3, 4), "updates": -floats(2, 4)}


def compared(before: Path, after: Path, *runners: Any, **options: Any) -> Compared:
    settings = Settings(**options.pop("settings", {}))
    return compare_two([read(before), read(after)], runners, settings, **options)


def test_each_runner_on_both(tmp_path: Path) -> None:
    before, after = write(tmp_path, "before"), write(tmp_path, "after", first=(2, 1))
    found = compared(before, after, feeds=FEEDS)
    (one,) = found.comparisons
    assert (one.subject, one.reference, one.tensor, one.level) == ("numpy", "numpy", "y", Level.MODEL)
    assert (one.subject_model, one.reference_model) == (str(after), str(before))
    assert (one.measure.verdict, one.measure.mismatched) == (Verdict.MISMATCH, 8)
    assert not compared(before, before).differs


def test_inputs_are_found_by_any_of_their_names(tmp_path: Path) -> None:
    before, after = write(tmp_path, "before"), write(tmp_path, "after")
    renamed = {"before_data": FEEDS["x"], "updates": FEEDS["updates"]}
    assert not compared(before, after, feeds=renamed).differs
    assert not compared(before, after, settings={"cases": 3}).differs


def test_outputs_that_one_of_them_lacks(tmp_path: Path) -> None:
    before, after = write(tmp_path, "before", outputs="ab"), write(tmp_path, "after", outputs="bc")
    found = {one.tensor: one.measure for one in compared(before, after, feeds=FEEDS).comparisons}
    assert {name: (one.verdict, one.remark) for name, one in found.items()} == {
        "a": (Verdict.MISMATCH, "is missing"),
        "b": (Verdict.EQUAL, ""),
        "c": (Verdict.MISMATCH, "is missing in the reference"),
    }


def test_other_inputs(tmp_path: Path) -> None:
    ir = IrText()
    ir.add("result", "Result", "opset1", [ir.parameter("other")], [])
    before, after = write(tmp_path, "before"), Path(ir.write(tmp_path, "after"))
    with pytest.raises(BadFeed, match=r"after\.xml, with the inputs of the first model: .* expected other"):
        compared(before, after)


def test_whoever_fails_on_one_of_them(tmp_path: Path) -> None:
    class Picky(FakeRunner):
        def run(self, model_path: Any, feeds: Any, **named: Any) -> Any:
            is_after = "after" in str(model_path)
            self.ending = lambda *_: Status.REFUSED if is_after else Status.OK
            self.message = "no" if is_after else ""
            return super().run(model_path, feeds, **named)

    before, after = write(tmp_path, "before"), write(tmp_path, "after")
    found = compared(before, after, Picky("a"), FakeRunner("b", ending=Status.UNAVAILABLE, message="gone"))
    assert [(one.runner, one.message) for one in found.failed] == [("a", f"{after}: no"), ("b", "gone")]
    assert {one.subject for one in found.comparisons} == {"numpy"}


def test_what_changes_from_run_to_run(tmp_path: Path) -> None:
    before, after = write(tmp_path, "before"), write(tmp_path, "after")
    found = compared(before, after, FakeRunner("a", np.copy, wrong_at(0)), settings={"repeat": 2})
    changing = [one for one in found.comparisons if one.measure.verdict is Verdict.NONDETERMINISTIC]
    assert [one.subject_model for one in changing] == [str(before), str(after)]


@pytest.mark.openvino
@pytest.mark.parametrize("runner", ["numpy", "CPU"])
def test_two_ways_to_resolve_repeated_indices(tmp_path: Path, runner: str) -> None:
    """The updates come in another order: both models may say what they say."""
    constants = "int64[1] c0 = {0}, int64[1] c1 = {1}, int64[1] c2 = {2}, int64[2, 1] indices = {1, 1}"
    made = [
        save(
            f"""<ir_version: 10, opset_import: ["" : 18]>
            model (float[4] data, float[2] new) => (float[4] y, float[4] z) <{constants}> {{
              one = Slice (new, c0, c1)
              two = Slice (new, c1, c2)
              turned = Concat <axis = 0> ({order})
              y = ScatterND (data, indices, turned)
              z = Relu (data)
            }}""",
            tmp_path / f"{name}.onnx",
        )
        for name, order in (("before", "one, two"), ("after", "two, one"))
    ]
    feeds: dict[str, Array] = {"data": floats(4), "new": np.array([8, 9], np.float32)}
    sources = find_sources([runner])
    found = compared(*made, *sources.runners, with_numpy=sources.with_numpy, feeds=feeds)
    for one in sources.runners:
        one.close()
    of_y, of_z = (one.measure.verdict for one in found.comparisons)
    assert of_z is Verdict.EQUAL
    assert of_y is Verdict.CONTESTED or (
        runner == "CPU" and of_y is Verdict.EQUAL
    )  # a race may end alike twice
