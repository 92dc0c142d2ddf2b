import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.measure import Tolerances, Verdict
from ir_scatter.compare.numpy_source import Reference
from ir_scatter.compare.request import find_sources
from ir_scatter.compare.result import Compared, CompareSettings, Level, Relation, has_failed
from ir_scatter.compare.run import compare
from ir_scatter.reading import read
from ir_scatter.report.comparison_json import document
from ir_scatter.report.comparison_text import text
from ir_scatter.runners.base import OTHER_FORMAT, Outcome, Status
from tests.compare.models import Array, Inputs, floats, write_node
from tests.compare.planted import FakeRunner, wrong_at
from tests.models.ir_text import IrText
from tests.models.onnx_text import save


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
    settings = CompareSettings(**options.pop("settings", {}))
    return compare([read(before), read(after)], runners, settings, **options)


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
    more, less = write(tmp_path, "more", outputs="ab"), write(tmp_path, "less", outputs="b")
    for models, remark in (
        ((more, less), "is missing in less.xml"),
        ((less, more), "is missing in less.xml"),
    ):
        found = {one.tensor: one.measure for one in compared(*models, feeds=FEEDS).comparisons}
        assert {name: (one.verdict, one.remark) for name, one in found.items()} == {
            "a": (Verdict.MISMATCH, remark),
            "b": (Verdict.EQUAL, ""),
        }


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
    told = {(one.subject, one.reference, one.relation, one.subject_model) for one in found.comparisons}
    assert told == {
        ("numpy", "numpy", Relation.MODELS, str(after)),
        ("a", "numpy", Relation.DOCUMENT, str(before)),
    }


class WrongAt(FakeRunner):
    """Changes outputs of models whose names begin with some letters."""

    def __init__(self, name: str, *models: str) -> None:
        super().__init__(name)
        self.models = models

    def run(self, model_path: Any, feeds: Any, **named: Any) -> Any:
        self.changes = (wrong_at(5) if Path(model_path).stem in self.models else np.copy,)
        if "onnx" in self.name and Path(model_path).suffix != ".onnx":
            return Outcome(self.name, Status.UNSUPPORTED, "an IR", reason=OTHER_FORMAT)
        return super().run(model_path, feeds, **named)


@pytest.mark.parametrize(
    ("runner", "second", "runners", "message"),
    [
        (WrongAt("a"), (2, 0), None, ""),
        (WrongAt("a", "after"), (2, 0), "a", "a deviates from the specification on after.xml: [1, 1] is 2.5, expected 1.5"),
        (WrongAt("a", "after", "before"), (2, 0), "a", "a deviates from the specification on before.xml and after.xml: [1, 1]"),
        (
            WrongAt("a"), (2, 1), "",
            "numpy and a agree that after.xml and before.xml give different results: [1, 3] is -2 in after.xml, 2",
        ),
        (WrongAt("a", "before"), (2, 1), "", "according to the specification after.xml and before.xml give different results"),
    ],
)  # fmt: skip
def test_numpy_says_who_departs(
    tmp_path: Path, runner: WrongAt, second: Sequence[int], runners: str | None, message: str
) -> None:
    before, after = write(tmp_path, "before"), write(tmp_path, "after", first=second)
    found = compare(
        [read(before), read(after)], [runner], CompareSettings(cases=1), with_numpy=False, feeds=FEEDS
    )
    assert found.differs is (runners is not None)
    if runners is None:
        assert found.outliers == ()
        return
    one = found.outliers[0]
    assert one.runners == tuple(runners)
    assert one.message.startswith(message)
    assert one.model == ("" if "before.xml and" in message else str(after))
    told = {(one.subject, one.relation) for one in found.comparisons}
    assert told == {("numpy", Relation.MODELS), ("a", Relation.MODELS), ("a", Relation.DOCUMENT)}


def test_numpy_knows_the_first_model_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the second model is wrong or what a runner makes of it, nobody can tell."""
    before, after = write(tmp_path, "before"), write(tmp_path, "after")
    real = Reference._compute

    def compute(self: Reference, *arguments: Any) -> Outcome:
        if "after" in self._model.path:
            return Outcome("numpy", Status.UNSUPPORTED, "NumPy does not compute it")
        return real(self, *arguments)

    monkeypatch.setattr(Reference, "_compute", compute)
    found = compared(before, after, WrongAt("a", "after"), with_numpy=False, feeds=FEEDS)
    (one,) = found.outliers
    assert (one.runners, one.model) == (("a",), str(after))
    assert one.message == (
        "a is right on before.xml, and different on after.xml, which NumPy cannot compute: "
        "[1, 1] is 2.5 in after.xml, 1.5 in before.xml"
    )
    assert found.failed == ()


def test_two_runtimes_and_no_numpy(tmp_path: Path) -> None:
    before, after = write(tmp_path, "before"), write(tmp_path, "after")
    found = compared(
        before, after, WrongAt("a"), WrongAt("b", "after"),
        with_numpy=False, feeds=FEEDS, settings={"reference": False, "pairwise": True},
    )  # fmt: skip
    told = {
        (one.subject, one.reference, one.relation, Path(one.subject_model).stem): one.measure.verdict
        for one in found.comparisons
    }
    assert told == {
        ("a", "a", Relation.MODELS, "after"): Verdict.EQUAL,
        ("b", "b", Relation.MODELS, "after"): Verdict.MISMATCH,
        ("b", "a", Relation.RUNNERS, "before"): Verdict.EQUAL,
        ("b", "a", Relation.RUNNERS, "after"): Verdict.MISMATCH,
    }
    assert found.outliers == ()
    assert "expected" not in text(found)


def onnx(folder: Path) -> Path:
    """Write what `write` writes, in the other format and with other names."""
    return save(
        """<ir_version: 10, opset_import: ["" : 18]>
        model (float[3, 4] a, float[2, 4] b) => (float[3, 4] c) <int64[2, 1] where = {2, 0}> {
          c = ScatterND (a, where, b)
        }""",
        folder / "before.onnx",
    )


def test_a_runner_that_reads_one_of_the_formats(tmp_path: Path) -> None:
    before, after = onnx(tmp_path), write(tmp_path, "after")
    found = compared(before, after, WrongAt("onnx"), WrongAt("a"), with_numpy=False)
    assert not found.differs
    assert found.failed == ()
    assert {one.runner: [each.status for each in found.by_model[one.runner]] for one in found.outcomes} == {
        "numpy": [Status.OK] * 2, "a": [Status.OK] * 2, "onnx": [Status.OK, Status.UNSUPPORTED],
    }  # fmt: skip
    assert {one.relation for one in found.comparisons if one.subject == "onnx"} == {Relation.DOCUMENT}
    written = document(found)
    outcome = next(one for one in written["outcomes"] if one["runner"] == "onnx")
    assert (outcome["status"], outcome["reason"]) == ("unsupported", "format")
    assert [one["status"] for one in outcome["models"]] == ["ok", "unsupported"]
    assert written["matching"]["inputs"] == [
        {"first": "a", "second": "data", "by": "order", "element_types": None},
        {"first": "b", "second": "updates", "by": "order", "element_types": None},
    ]
    assert written["matching"]["outputs"][0]["second"] == "y"
    assert re.search(r"^onnx +ok, n/a", text(found), re.MULTILINE)
    alone = compared(before, after, WrongAt("onnx"), with_numpy=False)
    assert has_failed([alone])  # nobody who was named read both
    wrong = compared(before, after, WrongAt("onnx", "before"), with_numpy=False)
    assert wrong.outliers[0].message.startswith("onnx deviates from the specification on before.onnx: ")


def test_inputs_that_are_legal_for_one_of_them(tmp_path: Path) -> None:
    negative = save(
        """<ir_version: 10, opset_import: ["" : 18]>
        model (float[3] data, int64[2] indices, float[2] updates) => (float[3] y) {
          y = ScatterElements (data, indices, updates)
        }""",
        tmp_path / "before.onnx",
    )
    inputs = [floats(3), np.array([1, 2], np.int64), -floats(2), np.array(0)]
    after, feeds = write_node(tmp_path, "ScatterElementsUpdate", "opset3", inputs)
    found = compared(negative, after, WrongAt("a"), feeds={**feeds, "indices": np.array([-1, 0])})
    assert {(one.runner, one.kind, one.model) for one in found.guarded} == {("numpy", "negative", str(after))}
    assert found.differs
    assert document(found)["guard"][0]["model"] == str(after)
    assert not compared(negative, after, WrongAt("a"), settings={"cases": 4}).guarded


def test_outputs_of_two_element_types(tmp_path: Path) -> None:
    """What f16 holds of a number is close enough, and 1 % off is not."""
    wide = IrText()
    one = wide.add("y", "Relu", "opset1", [wide.parameter("x", shape=(3,))], [("f32", (3,))])
    wide.add("result", "Result", "opset1", [one], [])
    for factor, verdict in ((1.0, Verdict.CLOSE), (1.05, Verdict.MISMATCH)):
        narrow = IrText()
        scaled = narrow.add(
            "scaled", "Multiply", "opset1",
            [narrow.parameter("x", shape=(3,)), narrow.const("factor", "f32", factor, ())], [("f32", (3,))],
        )  # fmt: skip
        cast = narrow.add("y", "Convert", "opset1", [scaled], [("f16", (3,))], {"destination_type": "f16"})
        narrow.add("result", "Result", "opset1", [cast], [])
        before, after = wide.write(tmp_path, "before"), narrow.write(tmp_path, "after")
        found = compared(Path(before), Path(after), feeds={"x": np.array([0.1, 0.3, 7.7], np.float32)})
        assert [one.measure.verdict for one in found.comparisons] == [verdict]
        assert any("output y is f32 in" in remark for remark in found.remarks)
    exact = compared(Path(before), Path(before), feeds={"x": np.array([0.1, 0.3, 7.7], np.float32)})
    assert exact.comparisons[0].measure.verdict is Verdict.EQUAL


def test_weights_that_were_narrowed(tmp_path: Path) -> None:
    def model(name: str, type: str) -> Path:
        ir = IrText()
        weights = ir.const("weights", type, [0.1, 0.2, 0.3])
        if type != "f32":
            weights = ir.add(
                "wide", "Convert", "opset1", [weights], [("f32", (3,))], {"destination_type": "f32"}
            )
        done = ir.add("y", "Multiply", "opset1", [ir.parameter("x", shape=(3,)), weights], [("f32", (3,))])
        ir.add("result", "Result", "opset1", [done], [])
        return Path(ir.write(tmp_path, name))

    before, after = model("before", "f32"), model("after", "f16")
    found = compared(before, after)
    assert [one.measure.verdict for one in found.comparisons] == [Verdict.CLOSE]
    assert f"{after} stores numbers as f16, which the tolerance allows for" in found.remarks
    strict = compared(before, after, settings={"tolerances": Tolerances(["0,0.00001"])})
    assert [one.measure.verdict for one in strict.comparisons] == [Verdict.MISMATCH]


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
    subject = sources.runners[0].name if sources.runners else "numpy"
    own = [one for one in found.comparisons if (one.subject, one.relation) == (subject, Relation.MODELS)]
    of_y, of_z = (one.measure.verdict for one in own)
    assert of_z is Verdict.EQUAL
    assert of_y is Verdict.CONTESTED or (
        runner == "CPU" and of_y is Verdict.EQUAL
    )  # a race may end alike twice
