from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.evaluate.model import prepare
from ir_scatter.inputs.model import EDGE, draw_feeds, make_feeds
from ir_scatter.inputs.numbers import edge_values
from tests.models.onnx_text import LEGAL, NESTED, save

SEEDS = range(8)
HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
Feeds = dict[str, npt.NDArray[Any]]
Both = Callable[..., tuple[Feeds, Feeds]]


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """Draw plain and edge values of one seed."""

    def draw(text: str, seed: int = 0) -> tuple[Feeds, Feeds]:
        path = save(text, tmp_path / "model.onnx")
        return make_feeds(path, seed), make_feeds(path, seed, values=EDGE)

    return draw


def _changed(plain: Feeds, edge: Feeds) -> set[str]:
    assert [(one.dtype, one.shape) for one in plain.values()] == [
        (one.dtype, one.shape) for one in edge.values()
    ]
    return {name for name in plain if plain[name].tobytes() != edge[name].tobytes()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("direct", {"data", "rows"}),
        ("through_movement", {"data", "rows"}),
        ("edges", {"nodes"}),
        ("in_a_loop", {"data", "rows"}),
        ("in_a_branch", {"data", "values"}),
        ("divided", {"data", "values"}),
        ("moved_by_scatter", {"data", "values"}),
        ("dynamic", {"data", "rows"}),
    ],
)
def test_data_and_updates_get_them(name: str, expected: set[str], both: Both) -> None:
    found = [_changed(*both(LEGAL[name], seed)) for seed in SEEDS]
    assert set.union(*found) == expected


WITHOUT_SCATTER = {"captured_deep", "scan"}


@pytest.mark.parametrize("name", NESTED)
def test_conditions_and_trip_counts_do_not(name: str, tmp_path: Path) -> None:
    program, changed = prepare(save(NESTED[name][0], tmp_path / "model.onnx")), set[str]()
    for seed in SEEDS:
        plain, edge = make_feeds(program, seed), make_feeds(program, seed, values=EDGE)
        changed |= _changed(plain, edge)
        program.run(edge)
    assert not changed & {"flag", "trips", "start"}
    assert bool(changed) is (name not in WITHOUT_SCATTER)


@pytest.mark.parametrize("name", LEGAL)
def test_a_model_is_computed_with_them(name: str, tmp_path: Path) -> None:
    program, changed = prepare(save(LEGAL[name], tmp_path / "model.onnx")), set[str]()
    for seed in SEEDS:
        plain, edge = draw_feeds(program, seed), draw_feeds(program, seed, values=EDGE)
        changed |= _changed(plain.feeds, edge.feeds)
        assert plain.repeated == edge.repeated
        program.run(edge.feeds)
    assert changed


def test_the_same_seed_gives_the_same(both: Both) -> None:
    first, again, other = (both(LEGAL["direct"], seed)[1] for seed in (3, 3, 4))
    assert _changed(first, again) == set()
    assert _changed(first, other) != set()


CHOSEN = {
    "what flows through a matrix product stays plain": ({"data", "rows"}, """
    near (float[4, 3] data, float[2, 3] rows, int64[2, 1] at, float[2, 2] x) => (float[4, 3] out)
    <float[2, 3] weights = {1, 2, 3, 4, 5, 6}> {
      product = MatMul (x, weights)
      sum = Add (product, rows)
      out = ScatterND (data, at, sum)
    }"""),
    "unless nothing is nearer": ({"x", "y"}, """
    far (int64[2, 1] at, float[2, 2] x, float[4, 2] y) => (float[4, 3] out)
    <float[2, 3] weights = {1, 2, 3, 4, 5, 6}> {
      data = MatMul (y, weights)
      rows = MatMul (x, weights)
      out = ScatterND (data, at, rows)
    }"""),
    "positions behind an unknown operator stay plain": ({"data", "rows"}, """
    argued (float[4] data, float[2] rows, float[2, 4] scores) => (float[4] out) {
      at = ArgMax <axis = 1, keepdims = 0> (scores)
      out = ScatterElements <reduction = "add"> (data, at, rows)
    }"""),
    "numbers that become whole stay plain": ({"data"}, """
    rounded (int32[4] data, float[2] rows, int64[2] at) => (int32[4] out) {
      whole = Cast <to = 6> (rows)
      out = ScatterElements (data, at, whole)
    }"""),
    "a model without scatter operators has none": (
        set[str](), "sums (float[4] x) => (float[4] y) { y = Add (x, x) }"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_what_stays_plain(name: str, both: Both) -> None:
    expected, text = CHOSEN[name]
    assert _changed(*both(HEADER + text)) == expected


def test_floating_point_edges() -> None:
    values = edge_values(ELEMENT_TYPES["f32"])
    assert {2.0**31, 65504.0, 2.0**53, 2.0**-149, np.inf, np.finfo(np.float32).max} <= set(values.tolist())
    assert np.isnan(values).any()
    assert set(np.signbit(values[values == 0]).tolist()) == {False, True}


@pytest.mark.parametrize("type", ["i8", "u8", "i32", "u32", "i64", "u64", "i4", "u4"])
def test_whole_edges(type: str) -> None:
    values = [int(value) for value in edge_values(ELEMENT_TYPES[type])]
    bits, is_signed = ELEMENT_TYPES[type].bits, type.startswith("i")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    assert (min(values), max(values)) == (low, high)
    if bits == 64:
        assert {2**31 - 1, 2**31, 2**53, 2**53 + 1} <= set(values)


@pytest.mark.parametrize("type", [name for name, row in ELEMENT_TYPES.items() if row.dtype_name])
def test_every_type_has_edges_of_its_own_type_or_none(type: str) -> None:
    row = ELEMENT_TYPES[type]
    values = edge_values(row)
    assert (len(values) > 2) is (row.kind in {"float", "signed", "unsigned"})
    if len(values):
        assert values.dtype.name == row.dtype_name
