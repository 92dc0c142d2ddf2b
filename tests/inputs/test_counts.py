"""Inputs for models whose sizes depend on how many elements a mask chooses."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter.core.errors import NoInputs
from ir_scatter.evaluate.model import prepare
from ir_scatter.inputs.model import make_feeds
from tests.models.ir_text import IrText
from tests.models.onnx_text import save

SEEDS = range(50)
_HEADER = '<ir_version: 9, opset_import: ["" : 18]>\n'
_STORE = (
    "places = NonZero (mask) tuples = Transpose <perm = [1, 0]> (places) out = ScatterND (data, tuples, rows)"
)

MODELS = {
    "none": "g (bool[6] mask, float[6] data, float[0] rows) => (float[6] out) { STORE }",
    "one": "g (bool[6] mask, float[6] data, float[1] rows) => (float[6] out) { STORE }",
    "three": "g (bool[6] mask, float[6] data, float[3] rows) => (float[6] out) { STORE }",
    "all": "g (bool[6] mask, float[6] data, float[6] rows) => (float[6] out) { STORE }",
    "as many as are fed": "g (bool[M] mask, float[M] data, float[N] rows) => (float[M] out) { STORE }",
    "two dimensions": "g (bool[3, 4] mask, float[3, 4] data, float[5] rows) => (float[3, 4] out) { STORE }",
    "negated": "g (bool[6] kept, float[6] data, float[2] rows) => (float[6] out) { mask = Not (kept) STORE }",
    "numbers above 0": "g (float[6] x, float[6] data, float[2] rows) => (float[6] out) <float zero = {0}>"
    " { mask = Greater (x, zero) STORE }",
    "a word of a vocabulary": "g (int64[1, S] ids, float[1, S, 4] data, float[9, 4] rows)"
    " => (float[1, S, 4] out) <int64 image = {151655}> { mask = Equal (ids, image) STORE }",
    "for each channel": "g (bool[4, 1] few, float[4, 3] data, float[2, 3] source) => (float[4, 3] out)"
    " <int64[2] whole = {4, 3}, int64[1] flat = {-1}>"
    " { mask = Expand (few, whole) rows = Reshape (source, flat) STORE }",
}


@pytest.mark.parametrize("name", MODELS)
def test_masks_of_an_onnx_model(name: str, tmp_path: Path) -> None:
    path = save(_HEADER + MODELS[name].replace("STORE", _STORE), tmp_path / "model.onnx")
    program, masks = prepare(path), set[bytes]()
    for seed in SEEDS:
        feeds = make_feeds(program, seed)
        assert program.run(feeds)["out"].shape == feeds["data"].shape
        masks.add(next(iter(feeds.values())).tobytes())
    fixed = {"none", "all"}
    assert (len(masks) == 1) if name in fixed else len(masks) > 3


@pytest.mark.parametrize("count", [0, 1, 4])
def test_masks_of_an_ir(count: int, tmp_path: Path) -> None:
    ir = IrText()
    data, mask = ir.parameter("data", "f32", [4, 3]), ir.parameter("mask", "boolean", [4])
    rows, order = ir.parameter("rows", "f32", [count, 3]), ir.const("order", "i64", [1, 0])
    places = ir.add("places", "NonZero", "opset3", [mask], [("i64", [1, -1])], {"output_type": "i64"})
    tuples = ir.add("tuples", "Transpose", "opset1", [places, order], [("i64", [-1, 1])])
    out = ir.add("out", "ScatterNDUpdate", "opset4", [data, tuples, rows], [("f32", [4, 3])])
    ir.add("result", "Result", "opset1", [out], [])
    program = prepare(ir.write(tmp_path))
    for seed in SEEDS:
        feeds = make_feeds(program, seed)
        assert int(np.count_nonzero(feeds["mask"])) == count
        program.run(feeds)


def test_a_count_that_no_mask_has(tmp_path: Path) -> None:
    text = "g (bool[3] mask, float[6] data, float[5] rows) => (float[6] out) { STORE }"
    program = prepare(save(_HEADER + text.replace("STORE", _STORE), tmp_path / "model.onnx"))
    with pytest.raises(NoInputs, match="no legal inputs were found: ScatterND"):
        make_feeds(program)
