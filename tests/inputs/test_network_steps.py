"""A draw computes no numbers of a network that decide about no position, size or body."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter.evaluate.model import make_sketch
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.inputs.search import idle_steps
from ir_scatter.reading import read
from tests.models.onnx_text import save

HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
CACHE = """n (float[8, 4] cache, int64[2, 1] at, float[2, 6] x, float[6, 4] w) => (float[8, 4] y, float[8, 3] z) {
  [product] p = MatMul (x, w) [active] u = Sigmoid (p) [place] at1 = Abs (at)
  [store] c = ScatterND (cache, at1, u) [square] y = Mul (c, c)
  k = Constant <value_ints = [3]> () [best] z, t = TopK (y, k) }"""
CHOSEN = """n (float[8, 4] cache, float[2, 6] x, float[6, 4] w, float[2, 4] u) => (float[8, 4] y) {
  [product] p = MatMul (x, w) [active] a = Sigmoid (p) [best] i = ArgMax <axis = 1> (a)
  [store] y = ScatterND (cache, i, u) }"""


def idle(text: str, folder: Path) -> set[str]:
    sketch = make_sketch(read(save(HEADER + text, folder / "model.onnx")))
    return {step.node.scope for step in idle_steps(sketch.plan)}


def test_numbers_behind_no_constraint_are_not_needed(tmp_path: Path) -> None:
    assert idle(CACHE, tmp_path) == {"product", "active", "square"}


def test_numbers_that_become_positions_are_needed(tmp_path: Path) -> None:
    assert idle(CHOSEN, tmp_path) == set()


def test_a_network_that_does_not_fit_is_still_seen(tmp_path: Path) -> None:
    wrong = CACHE.replace("float[6, 4] w", "float[n, 4] w")
    sketch = make_sketch(read(save(HEADER + wrong, tmp_path / "model.onnx")))
    drawn = draw_feeds(sketch)
    assert drawn.feeds["w"].shape == (6, 4)
    assert drawn.run is not None
    assert not drawn.run.stuck


@pytest.mark.parametrize("text", [CACHE, CHOSEN])
def test_the_same_inputs_are_drawn(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = read(save(HEADER + text, tmp_path / "model.onnx"))
    drawn = [draw_feeds(make_sketch(model), seed).feeds for seed in range(4)]
    monkeypatch.setattr("ir_scatter.inputs.search.idle_steps", lambda plan: frozenset())
    for seed, feeds in enumerate(drawn):
        for name, array in draw_feeds(make_sketch(model), seed).feeds.items():
            assert np.array_equal(feeds[name], array), (seed, name)
