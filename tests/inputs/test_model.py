from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter.core.errors import BadFeed, NoInputs, UsageError
from ir_scatter.core.shapes import parse_shape
from ir_scatter.evaluate.model import Program, prepare
from ir_scatter.inputs.model import draw_feeds, make_feeds
from tests.models.ir_text import IrText
from tests.models.onnx_text import LEGAL, NESTED, NEVER_LEGAL, save

SEEDS = range(25)
OFTEN_REPEATED = {"looked_up"}
"""Where targets differ in most runs, but not in all."""

Prepare = Callable[[str], Program]


@pytest.fixture
def program(tmp_path: Path) -> Prepare:
    return lambda text: prepare(save(text, tmp_path / "model.onnx"))


@pytest.mark.parametrize("name", LEGAL)
def test_indices_are_legal_and_differ(name: str, program: Prepare) -> None:
    model = program(LEGAL[name])
    repeated = 0
    for seed in SEEDS:
        drawn = draw_feeds(model, seed)
        model.run(drawn.feeds)
        repeated += bool(drawn.repeated)
    assert repeated <= (len(SEEDS) // 4 if name in OFTEN_REPEATED else 0)


@pytest.mark.parametrize("name", NESTED)
def test_bodies_and_functions(name: str, program: Prepare) -> None:
    model = program(NESTED[name][0])
    for seed in SEEDS:
        model.run(make_feeds(model, seed))


def test_the_same_seed_gives_the_same_feeds(program: Prepare) -> None:
    model = program(LEGAL["pairs"])
    first, again, other = (make_feeds(model, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert any(not np.array_equal(first[name], other[name]) for name in first)


def test_the_whole_range_is_used(program: Prepare) -> None:
    model = program(LEGAL["direct"])
    seen = {int(index) for seed in SEEDS for index in make_feeds(model, seed)["at"].flat}
    assert seen == set(range(-7, 7))


def test_numbers_are_moderate_and_eighths(program: Prepare) -> None:
    data = make_feeds(program(LEGAL["direct"]))["data"]
    assert data.dtype == np.float32
    assert (np.abs(data) <= 8).all()
    assert (data * 8 == np.round(data * 8)).all()


def test_targets_repeat_where_there_is_no_room(program: Prepare) -> None:
    text = LEGAL["two_limits"].replace("[3]", "[5]")
    drawn = draw_feeds(program(text))
    assert "b" in drawn.repeated
    assert set(drawn.feeds["at"].tolist()) <= set(range(-4, 4))


def test_a_reduction_may_repeat_targets(program: Prepare) -> None:
    model = program(LEGAL["edges"])
    drawn = [draw_feeds(model, seed) for seed in SEEDS]
    assert not any(one.repeated for one in drawn)
    assert any(len(set(one.feeds["edge_index"][1])) < 7 for one in drawn)


def test_symbols_are_equal_and_shapes_fit(program: Prepare) -> None:
    feeds = make_feeds(program(LEGAL["dynamic"]))
    shapes = {name: array.shape for name, array in feeds.items()}
    assert shapes["data"] == shapes["more"]
    assert shapes["rows"] == (shapes["at"][0], 3)
    assert max(max(shape) for shape in shapes.values()) < 13


def test_a_cache_of_dynamic_sizes(program: Prepare) -> None:
    feeds = make_feeds(program(LEGAL["dynamic_cache"]))
    (batch, heads, length, size), (new,) = feeds["cache"].shape, feeds["positions"].shape
    assert feeds["new"].shape == (batch, heads, new, size)
    assert new <= length
    assert len({batch, heads, length}) == 3


def test_shapes_may_be_given(program: Prepare) -> None:
    shapes = {"data": parse_shape("9,?"), "at": parse_shape("4,1")}
    feeds = make_feeds(program(LEGAL["dynamic"]), input_shapes=shapes)
    assert [feeds[name].shape for name in ("data", "at", "rows")] == [(9, 3), (4, 1), (4, 3)]


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        ({"q": "1"}, "the model has no input 'q', expected one of data, at, rows, more"),
        ({"at": "2,2"}, r"at has shape \[M, 1\], which \[2, 2\] does not fit"),
        ({"data": "2"}, r"data has shape \[N, 3\], which \[2\] does not fit"),
    ],
)
def test_wrong_shapes(shapes: dict[str, str], sentence: str, program: Prepare) -> None:
    given = {name: parse_shape(text) for name, text in shapes.items()}
    with pytest.raises(BadFeed, match=sentence):
        make_feeds(program(LEGAL["dynamic"]), input_shapes=given)


def test_shapes_that_cannot_fit(program: Prepare) -> None:
    given = {"at": (4, 1), "rows": (5, 3)}
    with pytest.raises(
        NoInputs, match=r"no legal inputs were found: ScatterND written .*updates is \[5, 3\]"
    ):
        make_feeds(program(LEGAL["dynamic"]), input_shapes=given)


def test_indices_that_are_never_legal(program: Prepare) -> None:
    with pytest.raises(NoInputs, match="out: positions between 5 and 5, expected -3 to 2"):
        make_feeds(program(NEVER_LEGAL))


def test_what_is_written_has_no_room(program: Prepare) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 24]>
    caches (float[1, 4, 2] past, float[1, N, 2] tokens, int64[1] at) => (float[1, 4, 2] now) {
        now = TensorScatter <axis = 1> (past, tokens, at)
    }
    """
    with pytest.raises(NoInputs, match="now: no position is legal, as the dimension is too small"):
        make_feeds(program(text), input_shapes={"tokens": (1, 9, 2)})


def test_unknown_ranks(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 18]> ranks (float[] x) => (float[] y) { y = Relu (x) }'
    path = save(text, tmp_path / "model.onnx")
    program = prepare(path)
    for model in (path, program):
        program.run(make_feeds(model))
        assert make_feeds(model, input_shapes={"x": (2, 3)})["x"].shape == (2, 3)


def test_a_rank_that_cannot_be(program: Prepare) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    twice (float[7, 3] a, float[7, 5] b, int64[4, 1] at, float[] rows) => (float[7, 3] c, float[7, 5] d) {
      c = ScatterND (a, at, rows)
      d = ScatterND (b, at, rows)
    }"""
    model = program(text)
    assert [input.shape for input in model.inputs][-1] is None
    with pytest.raises(NoInputs, match="the rank of rows is not known; give its shape"):
        make_feeds(model)


def test_unknown_values(program: Prepare) -> None:
    with pytest.raises(UsageError, match="values is 'wild', expected plain"):
        make_feeds(program(LEGAL["direct"]), values="wild")


def _scatter_update(folder: Path, index_type: str, sizes: list[int | str]) -> Program:
    """Write a ScatterUpdate without symbols, whose axis is an input."""
    ir = IrText()
    data = ir.parameter("data", "f16", [sizes[0], 3])
    at, rows = ir.parameter("at", index_type, [sizes[1]]), ir.parameter("rows", "f16", [sizes[2], 3])
    axis = ir.const("axis", "i32", 0)
    out = ir.add("out", "ScatterUpdate", "opset3", [data, at, rows, axis], [("f16", ["?", 3])])
    ir.add("r", "Result", "opset1", [out], [])
    return prepare(ir.write(folder))


@pytest.mark.parametrize("index_type", ["i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64"])
def test_types_of_indices(index_type: str, tmp_path: Path) -> None:
    model = _scatter_update(tmp_path, index_type, [5, 4, 4])
    for seed in SEEDS:
        at = make_feeds(model, seed)["at"]
        assert len(set(at.tolist())) == 4
        assert set(at.tolist()) <= set(range(5))


@pytest.mark.parametrize(
    "sizes", [["?", "?", "?"], ["2..4", "?", "3.."], ["7..", 6, "?"], [4, "1..9", "1..2"]]
)
def test_bounds_are_kept(sizes: list[int | str], tmp_path: Path) -> None:
    model = _scatter_update(tmp_path, "i64", sizes)
    drawn = draw_feeds(model)
    model.run(drawn.feeds)
    assert drawn.repeated == ()


def test_every_type_is_drawn(tmp_path: Path) -> None:
    types = ["f64", "f16", "bf16", "f8e4m3", "f8e5m2", "i4", "u4", "i8", "u64", "boolean", "string"]
    ir = IrText()
    for type in types:
        same = ir.add(type, "Identity", "opset16", [ir.parameter(f"in_{type}", type, (20,))], [(type, (20,))])
        ir.add(f"r_{type}", "Result", "opset1", [same], [])
    model = prepare(ir.write(tmp_path))
    found: dict[str, npt.NDArray[Any]] = model.run(make_feeds(model))
    assert [found[type].shape for type in types] == [(20,)] * len(types)
    assert all(len(set(found[type].tolist())) > 1 for type in types)


@pytest.mark.parametrize("seed", range(8))
def test_a_new_shape_without_elements(seed: int, tmp_path: Path) -> None:
    """Reshape to a constant [0, 3, 2], where 0 copies nothing, wants data without elements."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
        g (float[N, 3] data, int64[M, 3] at, float[0] updates) => (float[N, 3] y)
        <int64[3] shape = {0, 3, 2}, int64[1] middle = {1}> {
            pairs = Concat <axis = 1> (at, at)
            wide = Reshape <allowzero = 1> (pairs, shape)
            rows = ReduceMin <keepdims = 0> (wide, middle)
            y = ScatterND (data, rows, updates)
        }"""
    feeds = make_feeds(save(text, tmp_path / "model.onnx"), seed)
    assert feeds["at"].shape == (0, 3)
