"""The logic of a comparison, with runners that do what they are told, and NumPy beside them."""

import threading
import time
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.measure import Tolerances, Verdict
from ir_scatter.compare.nodes import facts_about, inference_precision, is_one_node
from ir_scatter.compare.numpy_source import Reference
from ir_scatter.compare.result import Compared, CompareSettings, Guarded, Level, ModelFacts, Relation
from ir_scatter.compare.run import compare
from ir_scatter.core.errors import BadFeed
from ir_scatter.reading import read
from ir_scatter.report import comparison_text
from ir_scatter.runners.base import NodeFacts, Outcome, Status
from tests.compare.models import Array, Inputs, floats, only, write_node
from tests.compare.planted import FakeRunner, wrong_at
from tests.compare.test_contested import FUNCTIONS, HEADER, STORE
from tests.models.ir_text import IrText
from tests.models.onnx_text import save

Model = tuple[Path, Inputs]
SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture
def model(tmp_path: Path) -> Model:
    inputs = [floats(3, 4), np.array([2, 0]), -floats(2, 4), np.array(0)]
    return write_node(tmp_path, "ScatterUpdate", "opset3", inputs)


def compared(model: Model, *runners: FakeRunner, with_numpy: bool = True, **settings: Any) -> Compared:
    path, feeds = model
    return compare(
        path, runners, CompareSettings(reference=with_numpy, **settings), with_numpy=with_numpy, feeds=feeds
    )


def test_both_levels_and_the_references(model: Model) -> None:
    found = compared(model, FakeRunner("a"), FakeRunner("b", wrong_at(5)), cases=2)
    assert {(one.level, one.subject, one.reference) for one in found.comparisons} == {
        (level, subject, "numpy") for level in Level for subject in "ab"
    }
    of_nodes = [one for one in found.comparisons if one.level is Level.NODE]
    assert {(one.subject, one.measure.verdict, one.tensor) for one in of_nodes} == {
        ("a", Verdict.EQUAL, "node"), ("b", Verdict.MISMATCH, "node"),
    }  # fmt: skip
    assert found.differs
    assert found.operators == {"node": "ScatterUpdate-3"}
    for one in found.comparisons:  # what is equal is not kept
        assert (one.got is None) is (one.measure.verdict is Verdict.EQUAL)
    assert all(outcome.runs == () and outcome.tapped == () for outcome in found.outcomes)
    assert found.runs == ()


def test_what_a_model_is(model: Model) -> None:
    (facts,) = compared(model, describes=True).model_facts
    digests = [(name, Path(name).stat().st_size, sha256(Path(name).read_bytes()).hexdigest()) for name in
               (str(model[0]), str(model[0].with_suffix(".bin")))]  # fmt: skip
    assert facts == ModelFacts(str(model[0]), "OpenVINO IR", ("opset1", "opset3"), tuple(digests))
    assert compared(model).model_facts == ()
    (onnx,) = compare(SAMPLES / "kv_cache/decoder.onnx", (), CompareSettings(describes=True)).model_facts
    assert (onnx.format, onnx.opsets, len(onnx.files)) == ("ONNX", ("ai.onnx 18",), 1)


def test_whether_a_model_is_one_node(model: Model) -> None:
    one = [model[0], SAMPLES / "plugins/one_behind_the_axis.xml", SAMPLES / "operators/scatter_9.onnx"]
    more = [SAMPLES / "kv_cache/decoder.xml", SAMPLES / "nested/loop.onnx", SAMPLES / "nested/function.onnx"]
    assert [is_one_node(read(path)) for path in (*one, *more)] == [True] * 3 + [False] * 3


def test_a_node_is_not_blamed_for_what_comes_after_it(model: Model) -> None:
    found = compared(model, FakeRunner("a", wrong_at(1), tapped_change=np.copy))
    assert only(found, Level.MODEL, "a").measure.verdict is Verdict.MISMATCH
    assert only(found, Level.NODE, "a").measure.verdict is Verdict.EQUAL


@pytest.mark.parametrize(
    ("places", "runners", "message"),
    [
        ((None, 5, None), "b", "b disagrees with numpy, a and c: [1, 1] is 2.5, the specification requires 1.5"),
        ((None, 5, 5), "bc", "b and c disagree with numpy and a"),
        ((5, 5), ("numpy",), "a and b agree with each other against numpy"),
        ((5, 6), "ab", "a and b differ from numpy, and from each other"),
    ],
)  # fmt: skip
def test_the_odd_one_out(model: Model, places: Any, runners: Any, message: str) -> None:
    changes = [np.copy if place is None else wrong_at(place) for place in places]
    found = compared(model, *(FakeRunner(name, each) for name, each in zip("abc", changes, strict=False)))
    assert len(found.outliers) == len(Level)
    assert found.outliers[0].runners == tuple(runners)
    assert found.outliers[0].message.startswith(message)
    assert compared(model, FakeRunner("b", wrong_at(5))).outliers == ()


def test_without_numpy_the_first_is_the_reference_of_outputs_only(model: Model) -> None:
    found = compared(model, FakeRunner("a"), FakeRunner("b"), FakeRunner("c", wrong_at(0)), with_numpy=False)
    assert [one.runner for one in found.outcomes] == ["a", "b", "c"]
    pairs = {(one.subject, one.reference) for one in found.comparisons if one.level is Level.MODEL}
    assert pairs == {("b", "a"), ("c", "a")}
    assert {one.reference for one in found.comparisons if one.level is Level.NODE} == {"numpy"}
    assert found.outliers[0].message == "c disagrees with a and b"


def test_numpy_is_the_reference_though_nobody_named_it(model: Model) -> None:
    found = compare(
        model[0], [FakeRunner("a"), FakeRunner("b", wrong_at(5))], CompareSettings(), with_numpy=False
    )
    assert [(one.runner, one.implicit) for one in found.outcomes] == [
        ("numpy", True), ("a", False), ("b", False),
    ]  # fmt: skip
    assert {(one.subject, one.reference, one.relation) for one in found.comparisons} == {
        (name, "numpy", Relation.DOCUMENT) for name in "ab"
    }


@pytest.mark.parametrize("ending", ["unknown", "slow"])
def test_two_runtimes_where_numpy_cannot_tell(
    tmp_path: Path, model: Model, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They differ, and nobody says what would be right; that NumPy fails is no failure, as nobody named it."""

    def compute(self: Reference, feeds: Inputs, observations: object, *_: object) -> Outcome:
        if ending == "slow":
            time.sleep(2)
        return Outcome("numpy", Status.UNSUPPORTED, "NumPy does not compute Einsum at somewhere")

    monkeypatch.setattr(Reference, "_compute", compute)
    runners = [FakeRunner("a"), FakeRunner("b", wrong_at(5))]
    found = compare(model[0], runners, CompareSettings(timeout=0.2), with_numpy=False, feeds=model[1])
    assert found.outcomes[0].implicit
    assert found.failed == ()
    one = only(found, Level.MODEL, "b")
    assert (one.reference, one.relation, one.sides) == ("a", Relation.RUNNERS, ("on b", "on a"))
    shown = next(
        line
        for line in comparison_text.text(replace(found, is_one_node=False)).splitlines()
        if line.startswith("mismatch: output on b")
    )
    assert "[1, 1] is 2.5 on b, 1.5 on a" in shown
    assert "expected" not in shown
    assert {one.level for one in found.outliers} == {Level.NODE}  # of a node NumPy can tell


def test_every_pair_if_it_is_asked_for(model: Model) -> None:
    found = compared(model, FakeRunner("a"), FakeRunner("b"), pairwise=True)
    pairs = [(one.subject, one.reference) for one in found.comparisons if one.level is Level.MODEL]
    assert pairs == [("a", "numpy"), ("b", "numpy"), ("b", "a")]


def test_what_changes_from_run_to_run(model: Model) -> None:
    found = compared(model, FakeRunner("a", np.copy, np.copy, wrong_at(3)), repeat=4)
    assert [one.measure.verdict for one in found.comparisons if one.subject == one.reference] == [
        Verdict.NONDETERMINISTIC
    ]
    assert found.differs
    assert not compared(model, FakeRunner("a"), repeat=4).differs


def test_taps_that_change_an_output(model: Model) -> None:
    class Fusing(FakeRunner):
        def run(self, *arguments: Any, **named: Any) -> Any:
            self.changes = (wrong_at(0, by=1e-7),) if named.get("taps") else (np.copy,)
            return super().run(*arguments, **named)

    found = compared(model, Fusing("a", tapped_change=np.copy))
    assert found.remarks == (
        "a: output output changes by up to 1.19e-07 when nodes are tapped: fusions differ",
    )
    assert not found.differs


_ENDINGS = [one for one in Status if one not in {Status.OK, Status.INPUTS_DO_NOT_FIT}]
"""The endings of one runner; the last one follows from those of all."""


@pytest.mark.parametrize("ending", _ENDINGS)
def test_every_ending_is_a_result(model: Model, ending: Status) -> None:
    found = compared(model, FakeRunner("a", ending=ending, message="why"), FakeRunner("b"), cases=2)
    assert [(one.runner, one.status) for one in found.outcomes[1:]] == [("a", ending), ("b", Status.OK)]
    assert found.outcomes[1].message.startswith("why")
    assert [one.runner for one in found.failed] == ["a"]
    assert {one.subject for one in found.comparisons} == {"b"}


def test_whoever_is_not_there_or_too_slow_is_not_asked_again(model: Model) -> None:
    for ending, questions in ((Status.UNAVAILABLE, 1), (Status.TIMEOUT, 1), (Status.CRASHED, 3)):
        runner = FakeRunner("a", ending=ending)
        compared(model, runner, cases=3)
        assert len(runner.asked) == questions


def test_given_inputs_are_the_first_case(model: Model) -> None:
    found = compared(model, FakeRunner("a", problem="it is inside a body"), cases=3, seed=5)
    assert [(one.runner, one.node, one.reason) for one in found.not_tapped] == [
        ("a", "node", "it is inside a body")
    ]
    assert not found.differs
    assert len(found.feeds) == 3
    assert found.feeds[0] is model[1]
    again = compare(model[0], [FakeRunner("a")], CompareSettings(cases=1, seed=7))
    assert np.array_equal(again.feeds[0]["data"], found.feeds[2]["data"])
    assert {one.case for one in found.comparisons} == {0, 1, 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.zeros((3, 5), np.float32)}, r"data has shape \[3, 5\], expected \[3, 4\]"),
        ({"data": np.zeros((3, 4))}, "data is float64, expected float32"),
        ({"extra": np.zeros(1)}, "the model has no input 'extra', expected data, indices, updates"),
        ({"data": None}, "no array is given for data"),
    ],
)
def test_feeds_that_do_not_fit(model: Model, change: Any, message: str) -> None:
    feeds = {name: array for name, array in {**model[1], **change}.items() if array is not None}
    runner = FakeRunner("a")
    with pytest.raises(BadFeed, match=message):
        compare(model[0], [runner], CompareSettings(), feeds=feeds)
    assert runner.asked == []


def test_tolerances_of_a_node_and_of_an_output(model: Model) -> None:
    for text, verdict in (("node=1,0", Verdict.CLOSE), ("0.5,0", Verdict.MISMATCH), ("1,0", Verdict.CLOSE)):
        found = compared(model, FakeRunner("a", wrong_at(5)), tolerances=Tolerances([text]))
        assert only(found, Level.NODE, "a").measure.verdict is verdict
    output = compared(model, FakeRunner("a", wrong_at(5)), tolerances=Tolerances(["output=1,0"]))
    assert only(output, Level.MODEL, "a").measure.verdict is Verdict.CLOSE
    assert only(output, Level.NODE, "a").measure.verdict is Verdict.MISMATCH


def test_an_asked_tolerance_is_not_widened_by_rounding(tmp_path: Path) -> None:
    ones, tenths = np.ones(1, np.float32), np.full(999, 0.1, np.float32)
    inputs: list[Array] = [ones, np.zeros(999, np.int64), tenths, np.array(0)]
    model = write_node(tmp_path, "ScatterElementsUpdate", "opset12", inputs, reduction="sum")
    runner = FakeRunner("a", wrong_at(0, by=2**-12))
    assert only(compared(model, runner), Level.NODE, "a").measure.verdict is Verdict.CLOSE
    exact = compared(model, runner, tolerances=Tolerances(["0,0"]))
    assert only(exact, Level.NODE, "a").measure.verdict is Verdict.MISMATCH


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("precision", ["f32", ""])
def test_lost_updates_are_no_rounding(kind: Any, precision: str, tmp_path: Path) -> None:
    """Of 20,000 in f32 twenty, of 16 in f16, which may be cut off after each step, the largest."""
    generator, count = np.random.default_rng(3), 20_000 if kind is np.float32 else 16
    updates = generator.random(count).astype(kind)
    inputs: list[Array] = [np.ones(1, kind), np.zeros(count, np.int64), updates, np.array(0)]
    model = write_node(tmp_path, "ScatterElementsUpdate", "opset12", inputs, reduction="sum")
    lost = kind(updates[:20].sum() if kind is np.float32 else updates.max())
    for change, verdict in (
        (lambda array: array - lost, Verdict.MISMATCH),
        (lambda array: np.array([1 + updates.astype(np.float64).sum()]).astype(kind), None),
        (lambda array: np.add.accumulate(np.append(updates[::-1], kind(1)))[-1:], None),
    ):
        runner = FakeRunner("a", change)
        found = only(compared(model, runner, precision=precision), Level.NODE, "a").measure
        assert found.verdict is verdict or (verdict is None and not found.verdict.is_difference), found


@pytest.mark.parametrize("word", ["min", "max"])
def test_nan_in_an_extreme_is_left_open(word: str, tmp_path: Path) -> None:
    data = np.array([1, np.nan, 3, 4], np.float32)
    inputs: list[Array] = [data, np.arange(4), np.array([np.nan, 2, 5, 0], np.float32), np.array(0)]
    model = write_node(tmp_path, "ScatterElementsUpdate", "opset12", inputs, reduction=word)

    def ignoring(array: Array) -> Array:
        return np.append(np.array([1, 2], np.float32), array[2:])

    def both(place: int, array: Array) -> Array:
        return wrong_at(place, by=7)(ignoring(array))

    found = compared(model, FakeRunner("a", ignoring))
    assert {only(found, level, "a").measure.verdict for level in Level} == {Verdict.CONTESTED}
    assert {(one.kind, one.is_illegal) for one in found.guarded} == {("nan", False)}
    assert only(compared(model, FakeRunner("a")), Level.NODE, "a").measure.verdict is Verdict.EQUAL
    for place in (0, 2):
        wrong = compared(model, FakeRunner("a", partial(both, place)))
        assert only(wrong, Level.NODE, "a").measure.verdict is Verdict.MISMATCH


def test_the_precision_that_was_really_used(model: Model) -> None:
    facts = [NodeFacts("node.0", ("node.0",), "X", "kernel", "f16", ("f16",), 1.0)]
    off = FakeRunner("a", lambda array: array * np.float32(1 + 2**-12), facts=facts)
    found = compared(model, off, precision="default")
    assert found.outcomes[1].precision == "f16"
    assert only(found, Level.NODE, "a").measure.verdict is Verdict.CLOSE
    assert found.facts["a"][0].originals == ("node",)
    assert only(compared(model, off, precision="f32"), Level.NODE, "a").measure.verdict is Verdict.MISMATCH


def test_illegal_indices_and_a_process_that_may_be_damaged(tmp_path: Path) -> None:
    inputs = [floats(3, 4), np.array([7]), floats(1, 4), np.array(0)]
    model = write_node(tmp_path, "ScatterUpdate", "opset3", inputs)
    runner, legal = FakeRunner("a"), FakeRunner("a")
    found = compared(model, runner)
    assert {(one.runner, one.kind) for one in found.guarded} == {
        (name, "out-of-range") for name in ("numpy", "a")
    }
    assert runner.closed == 1
    assert found.differs
    assert {one.level for one in found.comparisons} <= {Level.MODEL}
    compared((model[0], {**model[1], "indices": np.array([1])}), legal)
    assert legal.closed == 0
    crashing = FakeRunner("a", ending=Status.CRASHED, message="the process crashed (SIGSEGV)")
    bad = {**model[1], "indices": np.array([-1])}
    untapped = compare(model[0], [crashing], CompareSettings(), with_numpy=False, feeds=bad)
    assert [(one.runner, one.kind) for one in untapped.guarded] == [("numpy", "negative")]
    assert [(one.runner, one.implicit) for one in untapped.outcomes] == [("numpy", True), ("a", False)]
    assert compared((model[0], bad), crashing, with_numpy=False).guarded == ()


def test_numpy_has_a_time_limit_too(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(Reference, "_compute", lambda *_: ended.wait())
    found = compared(model, FakeRunner("a"), FakeRunner("b"), timeout=0.2, cases=3)
    ended.set()
    assert found.outcomes[0].status is Status.TIMEOUT
    assert found.outcomes[0].message == "no answer within 0.2 seconds"
    pairs = {(one.subject, one.reference) for one in found.comparisons if one.level is Level.MODEL}
    assert pairs == {("b", "a")}


def facts(*originals: str, precision: str = "f32", kind: str = "X") -> NodeFacts:
    return NodeFacts(originals[0], originals, kind, "kernel", precision, (precision,), 1.0)


def test_the_coarsest_precision_of_any_node() -> None:
    assert (
        inference_precision([facts("a"), facts("b", precision="BF16"), facts("c", precision="i32")]) == "bf16"
    )
    assert inference_precision([facts("c", precision="i32")]) == inference_precision([]) == ""


def test_what_a_plugin_renamed() -> None:
    other = [facts("other"), facts("node.0.0", kind="Convert"), facts("node.0", precision="i32")]
    scopes = {"node": "body/node", "second": "second", "absent": "absent"}
    found = facts_about([*other, facts("fused", "second")], scopes)
    assert [(one.name, *one.originals) for one in found] == [("node.0", "body/node"), ("fused", "second")]
    exact = facts_about([facts("node.0"), facts("node")], {"node": "node", "node.0": "node.0"})
    assert [one.originals for one in exact] == [("node.0",), ("node",)]


# Illegal indices that NumPy sees, also in models that it cannot compute as a whole.

REPEATED = {"data": floats(4), "indices": np.array([[1], [1]]), "new": floats(2)}


def watched(path: Path | str, feeds: Inputs) -> tuple[Outcome, dict[str, Guarded]]:
    reference = Reference(read(path))
    outcome, observations = reference.start(feeds)(60)
    return outcome, observations.guarded


def test_a_model_that_numpy_computes(tmp_path: Path) -> None:
    text = f"""{HEADER} model ({STORE}, int64[2, 1] second) => (float[4] out) {{
      one = ScatterND (data, indices, new)
      two = ScatterND <reduction = "add"> (one, indices, new)
      out = ScatterND (two, second, new)
    }}"""
    path = save(text, tmp_path / "model.onnx")
    outcome, seen = watched(path, {**REPEATED, "second": np.array([[0], [2]])})
    assert outcome.status is Status.OK
    assert [(one.node, one.message, one.is_illegal) for one in seen.values()] == [
        ("one", "several updates target 1 element of 4 without a reduction", False)
    ]
    outcome, seen = watched(path, {**REPEATED, "second": np.array([[0], [4]])})
    assert (outcome.status, outcome.message) == (
        Status.REFUSED,
        "ScatterND out: indices[1, 0] is 4, expected -4 to 3",
    )
    assert [one.message for one in seen.values() if one.is_illegal] == [
        "indices[1, 0] is 4, expected -4 to 3"
    ]


def unknown_model(folder: Path, sizes: tuple[int, int] = (3, 4)) -> str:
    """Write a model whose data and updates come from an operator that nobody knows."""
    ir = IrText()
    raw, indices = ir.parameter("raw", shape=(3, 4)), ir.parameter("indices", "i64", (2,))
    axis, one = ir.const("axis", "i64", 0), ir.const("one", "i64", [1])
    data = ir.add("data", "NoSuchThing", "extension", [raw], [("f32", sizes)])
    updates = ir.add("updates", "NoSuchThing", "extension", [raw], [("f32", (2, 4))])
    shifted = ir.add("shifted", "Add", "opset1", [indices, one], [("i64", (2,))])
    written = ir.add("written", "ScatterUpdate", "opset3", [data, shifted, updates, axis], [("f32", sizes)])
    ir.add("result", "Result", "opset1", [written], [])
    return ir.write(folder)


def test_indices_are_computed_though_data_are_not_known(tmp_path: Path) -> None:
    path, crashing = unknown_model(tmp_path), FakeRunner("a", ending=Status.CRASHED)
    found = compare(
        path, [crashing], CompareSettings(), feeds={"raw": floats(3, 4), "indices": np.array([1, 2])}
    )
    assert [(one.runner, one.node, one.kind) for one in found.guarded] == [
        ("numpy", "written", "out-of-range")
    ]
    assert [one.runner for one in found.failed] == ["a"]  # that NumPy does not know an operator is no failure
    outcome, seen = watched(path, {"raw": floats(3, 4), "indices": np.array([1, 2])})
    what = "NumPy computes nothing after data (NoSuchThing): output written is judged by node only"
    assert (outcome.status, outcome.message) == (Status.UNSUPPORTED, what)
    assert seen["written"].message == "indices[1] is 3, expected 0 to 2"
    assert watched(path, {"raw": floats(3, 4), "indices": np.array([0, 1])})[1] == {}
    repeated = watched(path, {"raw": floats(3, 4), "indices": np.array([0, 0])})[1]
    assert repeated["written"].message == "several updates target 4 elements of 12 without a reduction"
    with pytest.raises(BadFeed):
        watched(path, {"raw": floats(3, 4)})
    unknown = unknown_model(tmp_path, (-1, 4))
    assert watched(unknown, {"raw": floats(3, 4), "indices": np.array([1, 90])})[1] == {}


def test_a_model_that_breaks_rules_is_looked_at_all_the_same(tmp_path: Path) -> None:
    text = f"{HEADER} m ({STORE}) => (float[4] out) {{ out = ScatterND <reduction = 'sum'> (data, indices, new) }}"
    path = save(text.replace("'", '"'), tmp_path / "model.onnx")
    outcome, seen = watched(path, REPEATED)
    assert outcome.status is Status.REFUSED
    assert "reduction is 'sum'" in outcome.message
    assert "reduction is 'sum'" in seen["out"].message


def test_a_node_of_a_function_has_the_name_that_validate_prints(tmp_path: Path) -> None:
    path = save(FUNCTIONS, tmp_path / "model.onnx")
    (node,) = read(path).walk(frozenset({"ScatterND"}))
    assert list(watched(path, REPEATED)[1]) == [node.scope] == ["own::Store/stored"]
    twice = "first, plain = own.Store (data, indices, new) out, more = own.Store (first, second, new)"
    text = FUNCTIONS.replace("out, plain = own.Store (data, indices, new)", twice)
    path = save(text.replace(STORE, f"{STORE}, int64[2, 1] second"), tmp_path / "twice.onnx")
    _, seen = watched(path, {**REPEATED, "second": np.array([[0], [9]])})
    assert [one.kind for one in seen.values()] == ["out-of-range"]  # worse than the repeated ones before
