"""Inputs of whole networks: sizes that agree, masks, positive numbers, pictures, and ranges of the caller."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.core.errors import BadFeed, NoInputs
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.runners.base import Status
from ir_scatter.runners.openvino.runner import export
from tests.inputs.networks import NETWORKS, network
from tests.models.onnx_text import LEGAL, save

SEEDS = range(3)
Feeds = Mapping[str, Any]


def write(name: str, folder: Path) -> Path:
    path = folder / f"{name}.onnx"
    path.write_bytes(network(name))
    return path


@pytest.mark.parametrize("name", NETWORKS)
def test_a_runtime_runs_on_what_is_drawn(name: str, tmp_path: Path) -> None:
    path, runner = write(name, tmp_path), runners.HERE.find("onnxruntime", ())
    for seed in SEEDS:
        outcome = runner.run(path, draw_feeds(path, seed).feeds)
        assert outcome.status is Status.OK, outcome.message
        if name != "suppressed":
            assert all(np.isfinite(array).all() for array in outcome.outputs.values())
    runner.close()


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
def test_an_ir_has_no_symbols(name: str, tmp_path: Path) -> None:
    """Without symbols, only nodes show which dimensions are equal."""
    path = write(name, tmp_path)
    assert export(str(path), str(tmp_path / "model.xml")) == ""
    runner = runners.HERE.find("CPU", ())
    for seed in SEEDS:
        outcome = runner.run(tmp_path / "model.xml", draw_feeds(tmp_path / "model.xml", seed).feeds)
        assert outcome.status is Status.OK, outcome.message
    runner.close()


@pytest.mark.parametrize("name", ["decoder", "masked", "counted"])
def test_masks(name: str, tmp_path: Path) -> None:
    path = write(name, tmp_path)
    masks = [draw_feeds(path, seed).feeds["mask"] for seed in SEEDS]
    for mask in masks:
        assert set(mask.flat) <= {0, 1}
        assert mask[:, 0].all()
        assert mask[:, -1].all()
    assert any((mask == 0).any() for mask in masks)


def test_tokens_are_within_their_table(tmp_path: Path) -> None:
    feeds = draw_feeds(write("decoder", tmp_path)).feeds
    assert feeds["ids"].min() >= 0
    assert 100 < feeds["ids"].max() < 1000
    assert feeds["positions"].min() >= 0
    assert feeds["positions"].max() < 64


def test_lengths_agree(tmp_path: Path) -> None:
    feeds = draw_feeds(write("deep_decoder", tmp_path)).feeds
    past, current = feeds["key0"].shape[2], feeds["ids"].shape[1]
    assert feeds["mask"].shape[1] == past + current
    assert past != current


def test_pictures_are_multiples_of_all_strides(tmp_path: Path) -> None:
    feeds = draw_feeds(write("strided", tmp_path)).feeds
    height, width = feeds["image"].shape[2:]
    assert height % 16 == width % 16 == 0
    assert height != width


def test_positive_numbers(tmp_path: Path) -> None:
    feeds = draw_feeds(write("positive", tmp_path)).feeds
    assert feeds["variance"].min() > 0
    assert feeds["a"].min() > 0
    assert feeds["b"].min() > 0
    assert feeds["x"].min() < 0


def test_data_of_scatter_nodes_have_no_role(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    g (int64[9] data, int64[2] at, float[9] x) => (int64[9] y, bool[9] z) {
      zero = Constant <value_int = 0> ()
      y = ScatterElements (data, at, at)
      z = Equal (data, zero)
    }"""
    feeds = draw_feeds(save(text, tmp_path / "model.onnx")).feeds
    assert set(feeds["data"].tolist()) - {0, 1}


@pytest.mark.parametrize(
    ("ranges", "lows_and_highs"),
    [
        ({"ids": (0, 31999)}, {"ids": (0, 999)}),
        ({"ids": (5, 6), "mask": (1, 1)}, {"ids": (5, 6), "mask": (1, 1)}),
        ({"key0": (0.25, 0.5)}, {"key0": (0.25, 0.5)}),
        ({"key0": (-1e30, 1e30)}, {"key0": (-1e30, 1e30)}),
    ],
)
def test_ranges_of_the_caller(ranges: Any, lows_and_highs: Any, tmp_path: Path) -> None:
    path = write("decoder", tmp_path)
    for seed in SEEDS:
        feeds = draw_feeds(path, seed, input_ranges=ranges).feeds
        for name, (low, high) in lows_and_highs.items():
            assert low <= feeds[name].min() <= feeds[name].max() <= high


@pytest.mark.parametrize(
    "type", ["int8", "uint8", "int64", "uint64", "bool", "float16", "bfloat16", "double"]
)
def test_ranges_of_every_type(type: str, tmp_path: Path) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 18]>
    g ({type}[40] x) => ({type}[40] y) {{ y = Identity (x) }}"""
    path = save(text, tmp_path / "model.onnx")
    for ends in ((0, 1), (-1000, 1000), (1, 2**63), (0.5, 1.25)):
        array = draw_feeds(path, input_ranges={"x": ends}).feeds["x"].astype(np.float64)
        assert ends[0] <= array.min()
        assert array.max() <= ends[1]
    array = draw_feeds(path, input_ranges={"x": (0, 1)}).feeds["x"].astype(np.float64)
    assert {0.0, 1.0} <= set(array.tolist()) or type not in {"int8", "uint8", "int64", "uint64", "bool"}


def test_ranges_that_do_not_fit(tmp_path: Path) -> None:
    path = save(LEGAL["direct"], tmp_path / "model.onnx")
    with pytest.raises(
        BadFeed, match=r"^the model has no input 'dat' \(did you mean data\?\), expected one of"
    ):
        draw_feeds(path, input_ranges={"dat": (0, 1)})
    with pytest.raises(BadFeed, match=r"^at is i64, which has no number in 0.1..0.9$"):
        draw_feeds(path, input_ranges={"at": (0.1, 0.9)})
    with pytest.raises(NoInputs, match=r"positions between 7 and 9"):
        draw_feeds(path, input_ranges={"at": (7, 9)})
