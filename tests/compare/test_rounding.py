"""What rounding explains: measured by NumPy in two types, and no excuse for anything else."""

import importlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare import rounding
from ir_scatter.compare.headline import State, headline
from ir_scatter.compare.measure import EXACT, Measure, Tolerances, Verdict
from ir_scatter.compare.result import Compared, CompareSettings, Level, Relation
from ir_scatter.compare.rounding_judge import RoundedSide, RoundingJudge
from ir_scatter.compare.run import compare
from ir_scatter.core.model import Model
from ir_scatter.evaluate.model import prepare
from ir_scatter.reading import read
from ir_scatter.report.comparison_json import document
from ir_scatter.report.comparison_text import rounding_text
from ir_scatter.report.comparison_text import text as report
from tests.compare.planted import Change, Planted, at, elsewhere
from tests.models.ir_text import IrText
from tests.models.onnx_text import save
from tests.scale import cases, generator, in_part_and_whole

Array = Any
HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
DIVIDED = "n (float[64, 16] x) => (float[64] y) { a = Constant <value_ints = [1]> () "
DIVIDED += "r = Abs (x) q = Sqrt (r) d = Div (x, q) y = ReduceSum <keepdims = 0> (d, a) }"
CACHED = """n (float[8, 4] cache, int64[2, 1] i, float[2, 4] x, float[4] w) => (float[8, 4] y) {
  r = Abs (x) q = Sqrt (r) u = Div (q, w) y = ScatterND (cache, i, u) }"""
GENERATOR = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return GENERATOR.normal(size=shape).astype(np.float32)


def feeds_of(text: str) -> dict[str, Array]:
    if text == CACHED:
        i = np.array([[2], [5]])
        return {"cache": normal(8, 4), "i": i, "x": normal(2, 4), "w": np.abs(normal(4)) + 1}
    return {"x": normal(64, 16)}


def compared(folder: Path, text: str, *runners: Any, feeds: Any = None, **settings: Any) -> Compared:
    path = save(HEADER + text, folder / "model.onnx")
    return compare(path, runners, CompareSettings(**settings), feeds=feeds or feeds_of(text))


def measure_of(found: Compared, tensor: str = "y") -> Measure:
    (comparison,) = [
        each for each in found.comparisons if each.level is Level.MODEL and each.tensor == tensor
    ]
    return comparison.measure


def off(number: int, by: float) -> Planted:
    """Return a runner with a difference in one element of each output."""
    return Planted(output=lambda name, array, *_: _moved(array, number, by))


def _moved(array: Array, number: int, by: float) -> Array:
    moved = array.copy()
    moved.reshape(-1)[number] += np.asarray(by, array.dtype)
    return moved


TINY = "n (float[64, 16] x, float s) => (float[64] y) { a = Constant <value_ints = [1]> () r = Abs (x) "
TINY += "q = Sqrt (r) d = Div (x, q) t = ReduceSum <keepdims = 0> (d, a) z = Sub (t, t) e = Mul (d, s) "
TINY += "l = ReduceSum <keepdims = 0> (e, a) m = Add (t, l) y = Sub (m, t) }"
"""The output is about 1e-4, as the difference of two sums of about 10: f32 keeps few of its digits."""


def test_rounding_of_large_sums_explains_differences_of_small_results(tmp_path: Path) -> None:
    """What a text-to-speech model and its IR differed by: 3e-9 of silence, in 1 of 810 elements."""
    feeds = {"x": normal(64, 16), "s": np.float32(1e-5).reshape(())}
    found = compared(tmp_path, TINY, off(3, 2e-6), feeds=feeds)
    difference = measure_of(found)
    assert difference.explanation is not None
    assert (difference.explanation.precision, difference.explanation.differing) == ("f32", 1)
    assert difference.explanation.difference == pytest.approx(2e-6, rel=0.1)
    assert difference.verdict is Verdict.UNKNOWN  # a tenth of the output and more
    assert "too much for a verdict" in report(found)
    assert "no verdict" in headline(found).sentence
    assert headline(found).state is State.AGREES
    assert not found.differs


def test_within_the_bound_is_close_and_the_line_says_the_bound(tmp_path: Path) -> None:
    text = "n (float[64, 16] x) => (float[64] y) { a = Constant <value_ints = [1]> () r = Abs (x) "
    text += "q = Sqrt (r) d = Div (x, q) t = ReduceSum <keepdims = 0> (d, a) "
    text += "c = Constant <value_float = 1000.0> () m = Add (t, c) y = Sub (m, c) }"
    feeds = {"x": normal(64, 16)}
    found = compared(tmp_path, text, off(7, 5e-4), feeds=feeds)
    difference = measure_of(found)
    assert (difference.verdict, difference.mismatched) == (Verdict.CLOSE, 0)
    assert difference.explanation is not None
    assert 1e-4 < difference.explanation.bound < 2e-3
    (line,) = [line for line in report(found).splitlines() if line.startswith("close: y")]
    assert "1 of 64 elements differ by at most 0.0005, f32 explains 0.00" in line
    (written,) = [each for each in document(found)["comparisons"] if each["tensor"] == "y"]
    assert written["rounding"] == {"precision": "f32", "differing": 1, "bound": difference.explanation.bound}


@pytest.mark.parametrize("text", [DIVIDED, CACHED])
def test_beyond_the_bound_is_a_mismatch(text: str, tmp_path: Path) -> None:
    found = compared(tmp_path, text, off(9, 0.01))
    assert measure_of(found).verdict is Verdict.MISMATCH
    assert "f32 explains" in report(found)
    assert found.differs


def test_elements_that_were_only_moved_must_be_equal(tmp_path: Path) -> None:
    """Rows of a cache beside rows that were computed, with large errors."""
    text = """n (float[8, 4] cache, int64[2, 1] i, float[2, 4] x) => (float[8, 4] y) {
      c = Constant <value_float = 10000.0> () r = Abs (x) q = Sqrt (r) m = Add (q, c) u = Sub (m, c)
      y = ScatterND (cache, i, u) }"""
    feeds = {"cache": normal(8, 4), "i": np.array([[2], [5]]), "x": normal(2, 4)}
    verdicts = [measure_of(compared(tmp_path, text, off(at, 2e-3), feeds=feeds)).verdict for at in (9, 0)]
    assert verdicts == [Verdict.CLOSE, Verdict.MISMATCH]


class Coarse(Planted):
    """Computes Sqrt in f16, and says that it does so where asked for that."""

    def __init__(self, says: str = "") -> None:
        super().__init__("coarse", output=lambda _, array, *__: array)
        self.says = says

    def run(self, *arguments: Any, **named: Any) -> Any:
        feeds = arguments[1]
        outcome = super().run(*arguments, **named)
        x = np.sqrt(np.abs(feeds["x"]).astype(np.float16)).astype(np.float16)
        y = (x * x).astype(np.float16).astype(np.float32)
        return replace(outcome, runs=({"y": y},), precision=self.says or outcome.precision)


SQUARED = "n (float[64, 16] x) => (float[64, 16] y) { r = Abs (x) q = Sqrt (r) y = Mul (q, q) }"


def test_f16_explains_a_difference_only_where_it_is_computed_in(tmp_path: Path) -> None:
    honoured = compared(tmp_path, SQUARED, Coarse())
    assert measure_of(honoured).verdict is Verdict.MISMATCH
    coarse = compared(tmp_path, SQUARED, Coarse("f16"))
    difference = measure_of(coarse)
    assert difference.verdict is Verdict.PRECISION
    assert difference.explanation is not None
    assert difference.explanation.precision == "f16"
    assert not coarse.differs
    assert "1 output differs on coarse within the rounding of f16" in headline(coarse).sentence
    assert document(coarse)["summary"] == {"precision": 1}


def test_a_lost_element_is_no_precision(tmp_path: Path) -> None:
    class Lost(Coarse):
        def run(self, *arguments: Any, **named: Any) -> Any:
            outcome = super().run(*arguments, **named)
            outcome.outputs["y"][3, 5] = 0
            return outcome

    found = compared(tmp_path, SQUARED, Lost("f16"))
    assert measure_of(found).verdict is Verdict.MISMATCH
    assert measure_of(found).mismatched == 1


def test_verdicts_from_best_to_worst() -> None:
    order = ["equal", "close", "contested", "precision", "unknown", "nondeterministic", "mismatch"]
    assert [verdict.value for verdict in Verdict] == order
    assert [verdict.value for verdict in Verdict if verdict.is_difference] == order[-2:]


NEAR_TIES = {
    "Less": ("bool[4]", "k = Constant <value_floats = [1.0, 0.5, 7.0, 9.0]> () y = Less (q, k)"),
    "Cast": ("int32[4]", "y = Cast <to = 6> (q)"),
    "Floor": ("float[4]", "y = Floor (q)"),
    "Where": (
        "float[4]",
        "k = Constant <value_floats = [1.0, 0.5, 7.0, 9.0]> () b = Less (q, k) y = Where (b, x, k)",
    ),
}


@pytest.mark.parametrize("name", NEAR_TIES)
def test_near_ties_decide_about_what_follows(name: str, tmp_path: Path) -> None:
    """The first element is 1 up to rounding, on both sides of it; the others are not near anything."""
    shape, lines = NEAR_TIES[name]
    text = f"n (float[4] x, float[4] w) => ({shape} y) {{ r = Div (x, w) q = Div (r, w) {lines} }}"
    w = np.array([0.7, 0.7, 0.9, 1.1], np.float32)
    x = (np.array([1, 5.6, 3.4, 2.7], np.float32) * w * w).astype(np.float32)
    feeds = {"x": x, "w": w}
    near = compared(tmp_path, text, Planted(output=at(0)), feeds=feeds)
    assert measure_of(near).verdict is Verdict.CONTESTED, name
    assert f"{name if name != 'Where' else 'Less'}" in report(near)
    far = compared(tmp_path, text, Planted(output=at(2)), feeds=feeds)
    assert measure_of(far).verdict is Verdict.MISMATCH


def test_without_rounding_a_tie_is_no_excuse(tmp_path: Path) -> None:
    text = "n (float[4] x) => (bool[4] y) { z = Abs (x) y = Less (z, x) }"
    feeds = {"x": np.array([1, 2, 3, 4], np.float32)}
    assert (
        measure_of(compared(tmp_path, text, Planted(output=at(0)), feeds=feeds)).verdict is Verdict.MISMATCH
    )


def test_two_models_differ_by_their_rounding(tmp_path: Path) -> None:
    lines = "a = Constant <value_ints = [1]> () c = Constant <value_float = 500.0> () "
    by_hand = "n (float[64, 16] x) => (float[64] y) { " + lines
    by_hand += "m = Add (x, c) q = Div (m, c) s = ReduceSum <keepdims = 0> (q, a) k = Constant <value_float = 16.0> () "
    by_hand += "y = Sub (s, k) }"
    in_one = "n (float[64, 16] x) => (float[64] y) { " + lines
    in_one += "q = Div (x, c) y = ReduceSum <keepdims = 0> (q, a) }"
    models = [
        read(save(HEADER + text, tmp_path / f"{name}.onnx")) for name, text in (("a", by_hand), ("b", in_one))
    ]
    found = compare(models, [], CompareSettings(), feeds={"x": normal(64, 16)})
    (comparison,) = [each for each in found.comparisons if each.relation is Relation.MODELS]
    assert comparison.measure.verdict is Verdict.CLOSE
    assert comparison.measure.explanation is not None
    other = in_one.replace("500.0", "510.0")
    models[1] = read(save(HEADER + other, tmp_path / "c.onnx"))
    found = compare(models, [], CompareSettings(), feeds={"x": normal(64, 16)})
    assert found.differs


def test_nothing_is_measured_unless_something_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[Any]()
    measure = rounding.measure_rounding

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return measure(*arguments)

    source = importlib.import_module("ir_scatter.compare.numpy_source")
    monkeypatch.setattr(source, "measure_rounding", counted)
    for runner in (Planted(), off(3, 1e-7)):
        assert not compared(tmp_path, DIVIDED, runner).differs
    assert not calls
    assert not compared(tmp_path, DIVIDED, off(3, 1.0), tolerances=Tolerances(["y=2"])).differs
    assert not calls
    assert compared(tmp_path, DIVIDED, off(3, 1.0)).differs
    assert len(calls) == 1  # a difference of 1 needs no further computation


def bounds(model: Model, feeds: Any, **options: Any) -> dict[str, Any]:
    (run,) = rounding.measure_rounding(prepare(model), feeds, **options)
    return dict(run)


def test_the_bound_holds_for_other_orders_of_a_sum(tmp_path: Path) -> None:
    """Errors of sums of 16 quotients in drawn orders are within the bound, and the bound is not loose."""
    model = read(save(HEADER + DIVIDED, tmp_path / "model.onnx"))
    x = normal(64, 16)
    bound = bounds(model, {"x": x})["y"].bound
    quotients = x / np.sqrt(np.abs(x))
    exact = (x.astype(np.float64) / np.sqrt(np.abs(x.astype(np.float64)))).sum(axis=1)
    chance = np.random.default_rng(1)
    for _ in range(20):
        total = np.zeros(64, np.float32)
        for column in chance.permutation(16):
            total += quotients[:, column]
        assert (np.abs(total - exact) <= bound).all()
    assert (bound < 1e-4).all()


def test_an_ir_is_followed_as_well(tmp_path: Path) -> None:
    ir = IrText()
    x = ir.parameter("x", shape=(4,))
    thousand = ir.const("thousand", "f32", [1000.0])
    total = ir.add(
        "sum",
        "Add",
        "opset1",
        [ir.add("root", "Sqrt", "opset1", [x], [("f32", (4,))]), thousand],
        [("f32", (4,))],
    )
    done = ir.add("y", "Subtract", "opset1", [total, thousand], [("f32", (4,))])
    ir.add("result", "Result", "opset1", [done], [])
    path = ir.write(tmp_path, "model")
    feeds = {"x": np.array([1.1, 2.2, 3.3, 4.4], np.float32)}
    found = compare(path, [off(1, 3e-4)], CompareSettings(), feeds=feeds)
    assert measure_of(found).verdict is Verdict.CLOSE


FLOAT_NETWORK = """n (float[12, 8] data, int64[7, 1] i, float[7, 8] x, float[8] w) => (float[12] y) {{
  r = Abs (x) q = Sqrt (r) u = Div (q, w) s = ScatterND <reduction = "{reduction}"> (data, i, u)
  p = Abs (s) o = Constant <value_float = 1.0> () g = Add (p, o) t = Sqrt (g) d = Div (s, t)
  a = Constant <value_ints = [1]> () y = ReduceSum <keepdims = 0> (d, a) }}"""
"""A scatter node with float operators before and behind it."""


@in_part_and_whole
def test_faults_behind_a_float_network_are_found(is_whole: bool, tmp_path: Path) -> None:
    """One wrong element, a lost update, or one ulp too much in an exact sum: at the node, and no output hides it."""
    for number in cases(60, is_whole):
        chance = generator("faults behind a float network", number)
        numbers = np.random.default_rng(chance.randrange(1 << 30))
        reduction = chance.choice(["none", "add", "max", "mul"])
        count = 7
        targets = numbers.permutation(12)[:count] if reduction == "none" else numbers.integers(0, 12, count)
        feeds: dict[str, Array] = {
            "data": numbers.normal(size=(12, 8)).astype(np.float32),
            "i": targets.reshape(count, 1),
            "x": numbers.normal(size=(count, 8)).astype(np.float32),
            "w": (1 + np.abs(numbers.normal(size=8))).astype(np.float32),
        }
        row, column = int(targets[chance.randrange(count)]), chance.randrange(8)

        def wrong(scope: str, array: Array, *_: Any, row: int = row, column: int = column) -> Array:
            changed = array.copy()
            changed[row, column] = elsewhere(changed[row, column], 1.0)
            return changed

        def lost(scope: str, array: Array, *_: Any, row: int = row, feeds: Any = feeds) -> Array:
            changed = array.copy()
            changed[row] = feeds["data"][row]
            return changed

        fault: Change = wrong if chance.random() < 0.5 else lost
        silent = ["s"] if number % 2 else []
        text = FLOAT_NETWORK.format(reduction=reduction)
        runner = Planted(node=fault, silent=silent)
        found = compared(tmp_path, text, runner, feeds=feeds)
        level = Level.MODEL if silent else Level.NODE
        verdicts = {each.measure.verdict for each in found.comparisons if each.level is level}
        assert Verdict.MISMATCH in verdicts, (number, reduction, fault)
        right = compared(tmp_path, text, Planted(sums="reversed"), feeds=feeds)
        assert not right.differs, (number, reduction)


EXACT_NETWORK = """n (float[12, 8] data, int64[64, 1] i, float[64, 8] x, float[8] w) => (float[12] y) {{
  u = Abs (x) s = ScatterND <reduction = "{reduction}"> (data, i, u)
  p = Abs (s) o = Constant <value_float = 1.0> () g = Add (p, o) t = Sqrt (g) d = Div (s, w) e = Mul (d, t)
  a = Constant <value_ints = [1]> () y = ReduceSum <keepdims = 0> (e, a) }}"""
"""A scatter node with exact updates, upstream of a float network that hides its errors at the output."""


@in_part_and_whole
def test_faults_of_arithmetic_before_a_float_network_are_found(is_whole: bool, tmp_path: Path) -> None:
    """The largest of 64 updates computed in f16, or one ulp too many in an exact sum: mismatches at the node."""
    for number in cases(30, is_whole):
        chance = generator("faults of arithmetic", number)
        numbers = np.random.default_rng(chance.randrange(1 << 30))
        is_sum = number % 2 == 0
        targets = numbers.integers(0, 12, 64)
        if not is_sum:
            targets[:] = chance.randrange(12)
        drawn = numbers.integers(-99, 99, (64, 8)) if is_sum else numbers.normal(size=(64, 8))
        feeds: dict[str, Array] = {
            "data": numbers.integers(-9, 9, (12, 8)).astype(np.float32),
            "i": targets.reshape(64, 1),
            "x": drawn.astype(np.float32),
            "w": (1 + np.abs(numbers.normal(size=8))).astype(np.float32),
        }
        if not is_sum:
            feeds["data"] -= 100  # the largest is an update
        row, column = int(targets[0]), chance.randrange(8)

        def one_ulp(scope: str, array: Array, *_: Any, row: int = row, column: int = column) -> Array:
            changed = array.copy()
            changed[row, column] = np.nextafter(changed[row, column], np.float32(np.inf))
            return changed

        def in_f16(scope: str, array: Array, *_: Any, row: int = row) -> Array:
            changed = array.copy()
            changed[row] = changed[row].astype(np.float16).astype(np.float32)
            return changed

        text = EXACT_NETWORK.format(reduction="add" if is_sum else "max")
        found = compared(tmp_path, text, Planted(node=one_ulp if is_sum else in_f16), feeds=feeds)
        (node,) = [each for each in found.comparisons if each.level is Level.NODE]
        assert node.measure.verdict is Verdict.MISMATCH, (number, is_sum)
        assert node.measure.mismatched == (1 if is_sum else 8), (number, is_sum)
        assert found.differs
        right = compared(tmp_path, text, Planted(sums="reversed"), feeds=feeds)
        assert not right.differs, (number, is_sum)


CHAIN = """n (float[6, 4] data, int64[2, 1] i, float[2, 4] x, float[4] w) => (float[6] y) {
  [root] r = Sqrt (x) [quotient] q = Div (r, w) [store] s = ScatterND (data, i, q)
  [size] p = Abs (s) [again] g = Sqrt (p) [scaled] d = Mul (g, w)
  a = Constant <value_ints = [1]> () [total] y = ReduceSum <keepdims = 0> (d, a) }"""


def chain_feeds() -> dict[str, Array]:
    positive = {"data": normal(6, 4), "x": np.abs(normal(2, 4)) + 1, "w": np.abs(normal(4)) + 1}
    return positive | {"i": np.array([[1], [4]])}


def wrong_from(node: str, by: float) -> Planted:
    def change(scope: str, array: Array, *_: Any) -> Array:
        return _moved(array, 0, by) if scope == node else array

    return Planted(general=change)


@pytest.mark.parametrize(
    ("node", "found"),
    [
        ("root", "one of the 2 nodes from root to quotient adds the difference"),
        ("quotient", "one of the 2 nodes from root to quotient adds the difference"),
        ("again", "one of the 4 nodes from size to total adds the difference"),
    ],
)
def test_taps_of_scatter_nodes_name_the_part(node: str, found: str, tmp_path: Path) -> None:
    result = compared(tmp_path, CHAIN, wrong_from(node, 0.5), feeds=chain_feeds())
    (first,) = result.first_differences
    assert first.message.startswith(found)
    assert node in first.nodes
    assert found in headline(result).sentence
    assert "taps" in first.message


@pytest.mark.parametrize("node", ["root", "quotient", "size", "again", "scaled", "total"])
@pytest.mark.parametrize("by", [0.5, 0.01])
def test_taps_of_all_nodes_name_the_first_node(node: str, by: float, tmp_path: Path) -> None:
    result = compared(tmp_path, CHAIN, wrong_from(node, by), feeds=chain_feeds(), taps="all")
    (first,) = result.first_differences
    assert (first.nodes, first.message) == ((node,), f"{node} adds the difference")
    sentence = headline(result).sentence
    assert sentence.endswith(f"{node} adds the difference; all scatter nodes agree")
    assert document(result)["first_differences"] == [
        {
            "runner": "planted",
            "case": 0,
            "nodes": (node,),
            "operators": first.operators,
            "message": first.message,
        }
    ]


def test_a_node_that_only_moves_elements_is_named(tmp_path: Path) -> None:
    text = CHAIN.replace(
        "[again] g = Sqrt (p)", "[turned] o = Transpose (p) [back] b = Transpose (o) [again] g = Sqrt (b)"
    )
    for taps, named in (("all", ("turned",)), ("scatter", ("size", "again", "scaled", "total"))):
        result = compared(tmp_path, text, wrong_from("turned", 0.5), feeds=chain_feeds(), taps=taps)
        assert [first.nodes for first in result.first_differences] == [named]


def test_a_wrong_scatter_node_is_named_and_no_other(tmp_path: Path) -> None:
    result = compared(tmp_path, CHAIN, Planted(node=at(4)), feeds=chain_feeds(), taps="all")
    assert result.first_differences == ()
    assert "is wrong at store" in headline(result).sentence


def test_a_difference_that_taps_remove(tmp_path: Path) -> None:
    result = compared(tmp_path, CHAIN, Planted(output=at(4, tapped=False)), feeds=chain_feeds(), taps="all")
    (first,) = result.first_differences
    assert first.nodes == ()
    assert first.message == "no node adds a difference when its output is read"


def test_nothing_more_is_run_without_a_difference(tmp_path: Path) -> None:
    runner = Planted()
    compared(tmp_path, CHAIN, runner, feeds=chain_feeds(), taps="all")
    assert len(runner.asked) == 2  # plain, and with taps of scatter nodes


def test_a_wrong_first_model_is_no_precision_of_the_second(tmp_path: Path) -> None:
    """The second model is exactly what f16 gives as well, and the first one is far off."""
    text = "n (float[4] x, int64[1] i, float[1] u) => (float[4] y) { y = ScatterElements (x, i, u) }"
    feeds = {"x": np.arange(4, dtype=np.float32), "i": np.array([1]), "u": np.array([7], np.float32)}
    models = [read(save(HEADER + text, tmp_path / f"{name}.onnx")) for name in "ab"]
    for name in ("planted", "openvino:GPU"):
        runner = Planted(name, output=lambda name, array, *_: array)
        run = runner.run

        def off_in_first(path: Any, *arguments: Any, run: Any = run, **named: Any) -> Any:
            outcome = run(path, *arguments, **named)
            if str(path).endswith("a.onnx"):
                outcome.outputs["y"][2] = 9
            return outcome

        setattr(runner, "run", off_in_first)  # noqa: B010
        found = compare(models, [runner], CompareSettings(precision="f16"), feeds=feeds)
        between = [each for each in found.comparisons if each.relation is Relation.MODELS]
        assert Verdict.MISMATCH in {each.measure.verdict for each in between}, name


def test_a_bound_that_is_not_measured_in_time_is_no_verdict(tmp_path: Path) -> None:
    model = read(save(HEADER + DIVIDED, tmp_path / "model.onnx"))
    x = normal(64, 16)
    runs = rounding.measure_rounding(prepare(model), {"x": x})
    output = runs[0]["y"]
    expected = output.values

    def measured(precision: Any, seeds: Any) -> Any:
        return [] if seeds else runs

    def verdict(share: float) -> Verdict:
        got = _moved(expected, 5, share * output.bound[5])
        judge = RoundingJudge((RoundedSide(measured),))
        explained = judge.explain("y", got, expected, EXACT)
        assert explained is not None
        assert explained.explanation is not None
        is_cut = explained.verdict is Verdict.UNKNOWN
        assert explained.explanation.is_complete is not is_cut
        assert ("within the time limit" in rounding_text(explained, explained.explanation)) is is_cut
        return explained.verdict

    assert verdict(0.5) is Verdict.CLOSE
    assert verdict(2) is Verdict.UNKNOWN  # further computations may raise the bound
    assert verdict(1000) is Verdict.MISMATCH


def test_all_computations_of_bounds_have_the_time_of_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """7 seconds are spent on a bound in the types of the model, and 3 are left for one of f16."""
    source = importlib.import_module("ir_scatter.compare.numpy_source")
    judge = importlib.import_module("ir_scatter.compare.judge")
    clock, limits, measure = [0.0], list[float](), source.Reference.measure_rounding

    def slow(self: Any, feeds: Any, times: int, timeout: float, *arguments: Any) -> Any:
        limits.append(timeout)
        clock[0] += 7
        return measure(self, feeds, times, 600, *arguments)

    monkeypatch.setattr(source.Reference, "measure_rounding", slow)
    monkeypatch.setattr(judge, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    found = compared(tmp_path, SQUARED, Coarse("f16"), timeout=10)
    assert limits == [10, 3]
    assert measure_of(found).verdict is Verdict.PRECISION
    clock[0], limits[:] = 0.0, []
    cut = compared(tmp_path, SQUARED, Coarse("f16"), timeout=5)
    assert limits == [5]
    assert measure_of(cut).verdict is Verdict.UNKNOWN
    assert "the time limit is too short to measure rounding of output y: no verdict" in headline(cut).sentence
