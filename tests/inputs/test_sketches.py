from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter import evaluate_model, read
from ir_scatter.core.errors import BrokenModel, NoInputs, UnknownOperator, UnreadableModel
from ir_scatter.evaluate.model import prepare
from ir_scatter.inputs.model import make_feeds
from tests.models.ir_text import IrText
from tests.models.onnx_text import CROWDED, GHOSTS, OPAQUE, SKETCHED, save
from tests.models.runtimes import run_all

SEEDS = range(24)
Feeds = dict[str, npt.NDArray[Any]]
Draw = Callable[..., Feeds]


@pytest.fixture
def drawn(tmp_path: Path) -> Draw:
    return lambda text, seed=0, **more: make_feeds(save(text, tmp_path / "model.onnx"), seed, **more)


def test_a_model_with_an_unknown_operator_is_not_computed(tmp_path: Path) -> None:
    program = prepare(save(SKETCHED["looped"], tmp_path / "model.onnx"))
    with pytest.raises(UnknownOperator, match=r"NumPy does not compute .*RandomNormalLike"):
        program.run(make_feeds(program))


def test_a_model_may_be_given_as_it_was_read(tmp_path: Path) -> None:
    path = save(SKETCHED["gathered"], tmp_path / "model.onnx")
    of_path, of_model = make_feeds(path, 3), make_feeds(read(path), 3)
    assert all(np.array_equal(of_path[name], of_model[name]) for name in of_path)


@pytest.mark.parametrize("name", SKETCHED)
def test_the_same_seed_gives_the_same_feeds(name: str, drawn: Draw) -> None:
    first, again = (drawn(SKETCHED[name], 5) for _ in range(2))
    assert all(np.array_equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize(
    ("name", "input", "positions"),
    [
        ("around_matmul", "at", range(-5, 5)),
        ("gathered", "at", range(3)),
        ("classes", "wanted", range(3)),
        ("chosen", "at", range(-3, 3)),
        ("looped", "at", range(-3, 3)),
    ],
)
def test_positions_behind_unknown_operators(name: str, input: str, positions: range, drawn: Draw) -> None:
    seen = [drawn(SKETCHED[name], seed)[input] for seed in SEEDS]
    assert {int(number) for array in seen for number in array.flat} == set(positions)
    if name not in {"gathered", "classes"}:
        assert all(len(np.unique(array)) == array.size for array in seen)


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_that_say_how_many(seed: int, drawn: Draw) -> None:
    assert 1 <= drawn(SKETCHED["top"], seed)["k"][0] <= 5
    hot = drawn(SKETCHED["hot"], seed)
    assert 0 <= hot["classes"].min() <= hot["classes"].max() < hot["depth"] <= 6
    lengths = drawn(SKETCHED["reversed"], seed)["lengths"]
    assert 1 <= lengths.min() <= lengths.max() <= 6
    numbers = drawn(SKETCHED["ranged"], seed)
    assert (int(numbers["start"]), int(numbers["delta"])) == (0, 1)
    assert 3 <= numbers["limit"] <= 6


@pytest.mark.parametrize("seed", SEEDS)
def test_shapes_that_are_inputs(seed: int, drawn: Draw) -> None:
    assert int(np.prod(drawn(SKETCHED["reshaped"], seed)["shape"])) == 24
    assert drawn(SKETCHED["reshaped_as_declared"], seed)["shape"].tolist() == [2, 4, 3]
    shape = drawn(SKETCHED["expanded"], seed)["shape"].tolist()
    assert shape[1] == 3
    assert {shape[0], shape[2]} <= {1, 2}
    assert drawn(SKETCHED["padded"], seed)["pads"].tolist() == [0, 0, 2, 2]
    assert drawn(SKETCHED["reduced"], seed)["axes"].tolist() == [1, 2]
    assert drawn(SKETCHED["split"], seed)["sizes"].sum() == 7
    assert drawn(SKETCHED["resized"], seed)["sizes"].tolist() == [1, 1, 6, 4]
    assert drawn(SKETCHED["tiled"], seed)["times"].tolist() == [2, 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_slices(seed: int, drawn: Draw) -> None:
    feeds = drawn(SKETCHED["sliced"], seed)
    assert sorted(feeds["axes"]) == [0, 1]
    for start, end, axis in zip(feeds["starts"], feeds["ends"], feeds["axes"], strict=True):
        assert 0 <= start < end == (6, 7)[axis]
    assert feeds["steps"].tolist() == [1, 1]


def test_sizes_fit_constants(drawn: Draw) -> None:
    feeds = drawn(SKETCHED["dynamic"])
    data, at, rows, more = (feeds[name].shape for name in ("data", "at", "rows", "more"))
    assert data[1] == 5
    assert at == rows
    assert more == (data[0], 2)
    channels, height, width = drawn(SKETCHED["convolved"])["picture"].shape[1:]
    assert channels == 3
    assert min(height, width) >= 5


def test_given_shapes_are_kept(drawn: Draw) -> None:
    feeds = drawn(SKETCHED["dynamic"], input_shapes={"data": (7, 5)})
    assert feeds["data"].shape == (7, 5)
    assert feeds["more"].shape == (7, 2)


def test_positions_in_data_of_unknown_shape_are_those_of_one(drawn: Draw) -> None:
    assert {int(number) for seed in SEEDS for number in drawn(OPAQUE, seed)["at"].flat} == {0, -1}


NO_SUCH_OPERATOR = (
    SKETCHED["gathered"]
    .replace('"" : 18', '"" : 7')
    .replace(
        "out = Gather (wide, at)",
        "places = Unsqueeze <axes = [1]> (at)\n out = ScatterND (wide, places, data)",
    )
)


@pytest.mark.parametrize(
    ("text", "code"), [(CROWDED, "SCT302"), (NO_SUCH_OPERATOR, "SCT402")], ids=["constant index", "opset"]
)
def test_what_else_is_wrong_stands_in_nobodys_way(text: str, code: str, drawn: Draw, tmp_path: Path) -> None:
    with pytest.raises(BrokenModel, match=code):
        prepare(save(text, tmp_path / "model.onnx"))
    at = drawn(text)["at"]
    assert 0 <= at.min() <= at.max() <= 2


@pytest.mark.parametrize("name", GHOSTS)
def test_values_that_nothing_produces_stand_in_nobodys_way(name: str, drawn: Draw, tmp_path: Path) -> None:
    with pytest.raises(BrokenModel, match=r"SCT921 .*'ghost'"):
        prepare(save(GHOSTS[name], tmp_path / "model.onnx"))
    feeds = drawn(GHOSTS[name])
    assert feeds["data"].shape == (4,)


def test_updates_that_do_not_fit_stand_in_nobodys_way(tmp_path: Path) -> None:
    ir = IrText()
    data, at = ir.parameter("data", "f32", [4, 3]), ir.parameter("at", "i64", [2])
    rows, axis = ir.parameter("rows", "f32", [5, 3]), ir.const("axis", "i32", 0)
    out = ir.add("out", "ScatterUpdate", "opset3", [data, at, rows, axis], [("f32", [4, 3])])
    ir.add("r", "Result", "opset1", [out], [])
    path = ir.write(tmp_path)
    with pytest.raises(BrokenModel, match="SCT203"):
        prepare(path)
    feeds = make_feeds(path)
    assert set(feeds["at"].tolist()) <= set(range(4))
    assert feeds["rows"].shape == (5, 3)


def test_weights_that_are_not_there(tmp_path: Path) -> None:
    ir = IrText()
    data, at = ir.parameter("data", "f32", ["?", "?"]), ir.parameter("at", "i64", [6])
    weights, axis = ir.const("w", "f32", np.zeros((5, 3))), ir.const("axis", "i32", 0)
    product = ir.add("m", "MatMul", "opset1", [data, weights], [("f32", ["?", 3])])
    out = ir.add("out", "Gather", "opset8", [product, at, axis], [("f32", [6, 3])], {"batch_dims": "0"})
    ir.add("r", "Result", "opset1", [out], [])
    path = Path(ir.write(tmp_path))
    whole = make_feeds(path)
    path.with_suffix(".bin").unlink()
    bare = make_feeds(path)
    assert whole["data"].shape == bare["data"].shape
    assert whole["data"].shape[1] == 5
    assert 0 <= bare["at"].min() <= bare["at"].max() < whole["data"].shape[0]


def test_constants_show_how_large_a_dimension_must_be(tmp_path: Path) -> None:
    ir = IrText()
    data, axis = ir.parameter("data", "f32", ["?", "?"]), ir.const("axis", "i32", 0)
    at = ir.const("at", "i64", [3, 41])
    out = ir.add("out", "Gather", "opset8", [data, at, axis], [("f32", [2, "?"])], {"batch_dims": "0"})
    ir.add("r", "Result", "opset1", [ir.add("e", "Exp", "opset1", [out], [("f32", [2, "?"])])], [])
    assert make_feeds(ir.write(tmp_path))["data"].shape[0] == 42


def test_the_port_of_a_node_tells_the_rank(tmp_path: Path) -> None:
    ir = IrText()
    data = replace(ir.parameter("data", "f32", None), dims=("?", 3, "?"))
    out = ir.add("e", "Exp", "opset1", [data], [("f32", ["?", 3, "?"])])
    ir.add("r", "Result", "opset1", [out], [])
    assert make_feeds(ir.write(tmp_path))["data"].shape[1] == 3


def test_a_rank_that_fits_is_found(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    ranks (float[] x) => (float[] y) <float[1, 2, 1, 1] w = {1, 2}> { y = Conv (x, w) }"""
    path = save(text, tmp_path / "model.onnx")
    shape = make_feeds(path)["x"].shape
    assert (len(shape), shape[1]) == (4, 2)


def test_an_input_that_is_no_tensor(tmp_path: Path) -> None:
    text = (
        SKETCHED["gathered"]
        .replace("float[3, 4] data", "seq(float[3, 4]) list")
        .replace("Exp (data)", "ConcatFromSequence <axis = 0> (list)")
    )
    with pytest.raises(NoInputs, match="input list is of type sequence, expected a tensor"):
        make_feeds(save(text, tmp_path / "model.onnx"))


def test_an_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"nothing")
    with pytest.raises(UnreadableModel):
        make_feeds(path)


def test_a_loop_that_never_ends_is_followed_once(drawn: Draw) -> None:
    text = SKETCHED["looped"].replace("Cast <to = 7> (high)", "Constant <value_int = 9223372036854775807> ()")
    at = drawn(text)["at"]
    assert set(at.tolist()) <= set(range(-3, 3))


LONG = """<ir_version: 10, opset_import: ["" : 18]>
main (float[S, 1] table, int64[2, 1] first, float[2, 1] new) => (float[S, 1] out, int64[2, 1] last) {
    trips = Constant <value = int64 {40}> ()
    yes = Constant <value = bool {1}> ()
    one = Constant <value = int64 {1}> ()
    most = Constant <value = int64 {MOST}> ()
    out, last = Loop (trips, yes, table, first) <
        body = body (int64 step, bool go, float[S, 1] old, int64[2, 1] at)
            => (bool on, float[S, 1] result, int64[2, 1] next) {
                on = Identity (go)
                used = Add (at, one)
                result = ScatterND <reduction = "mul"> (old, used, new)
                next = Mod (used, most)
            }
    >
}"""


@pytest.mark.parametrize("most", [3, 5])
def test_a_long_loop_leaves_time_for_larger_sizes(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ir_scatter.inputs.search._MOST_SKETCHED", 2_000)
    path = save(LONG.replace("MOST", str(most)), tmp_path / "model.onnx")
    feeds = make_feeds(path)
    evaluate_model(path, feeds)
    assert len(feeds["table"]) > most


def test_a_search_ends_where_sizes_do_not_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sizes grow as often as is allowed, and no position is ever in range."""
    monkeypatch.setattr("ir_scatter.inputs.search._MOST_SKETCHED", 2_000)
    text = LONG.replace(
        "used = Add (at, one)", "rows = Shape <start = 0, end = 1> (old) used = Add (at, rows)"
    )
    with pytest.raises(NoInputs, match="positions between"):
        make_feeds(save(text.replace("MOST", "1"), tmp_path / "model.onnx"))


@pytest.mark.onnxruntime
def test_onnxruntime_takes_them(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    jobs = {}
    for name, text in SKETCHED.items():
        path = save(text, tmp_path / f"{name}.onnx")
        for seed in range(3):
            jobs[f"{name} {seed}"] = (path, list(make_feeds(path, seed).values()))
    found = run_all("onnxruntime", jobs, tmp_path)
    assert {name: outcome.error for name, outcome in found.items() if outcome.error} == {}
