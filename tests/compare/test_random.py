"""Models that draw random numbers: the operator is named, and nobody is blamed for what it gives."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.compare.headline import State, headline
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import Compared, CompareSettings, Level
from ir_scatter.compare.run import compare
from ir_scatter.reading import read
from tests.compare.models import run
from tests.models.ir_text import IrText
from tests.models.onnx_text import save

HEADER = '<ir_version: 10, opset_import: ["" : 18, "own" : 1]>\n'
SIGNATURE = "model (float[4, 64] data, int64[1, 1] rows, float[1, 64] x)"
HALF = "h = Constant <value_float = 0.5> ()"
SOURCES = {
    "RandomNormal u": ["u = RandomNormal <shape = [1, 64]> ()"],
    "RandomUniform u": ["u = RandomUniform <shape = [1, 64], seed = 3.0> ()"],
    "RandomNormalLike u": ["u = RandomNormalLike (x)"],
    "RandomUniformLike u": ["u = RandomUniformLike (x)"],
    "Bernoulli u": [HALF, "s = Shape (x)", "e = Expand (h, s)", "u = Bernoulli (e)"],
    "Dropout u": [HALF, "t = Constant <value = bool {1}> ()", "u = Dropout (x, h, t)"],
    "Multinomial m": [
        "m = Multinomial <sample_size = 64> (x)", "u = Cast <to = 1> (m)",
    ],
    "RandomNormal r": [
        "c = Constant <value = bool {1}> ()",
        "u = If (c) <then_branch = a () => (float[1, 64] r) { r = RandomNormal <shape = [1, 64]> () }, "
        "else_branch = b () => (float[1, 64] s) { s = Identity (x) }>",
    ],
}  # fmt: skip
FEEDS = {
    "data": np.arange(256, dtype=np.float32).reshape(4, 64),
    "rows": np.array([[2]]),
    "x": np.linspace(-1, 1, 64, dtype=np.float32)[None],
}


def write(folder: Path, lines: list[str], name: str = "model.onnx") -> Path:
    body = "\n".join([*lines, "y = ScatterND (data, rows, u)", "z = Neg (data)"])
    return save(f"{HEADER}{SIGNATURE} => (float[4, 64] y, float[4, 64] z) {{\n{body}\n}}", folder / name)


def of_output(found: Compared, name: str) -> set[Verdict]:
    same = [one for one in found.comparisons if one.level is Level.MODEL and one.tensor == name]
    return {one.measure.verdict for one in same}


@pytest.mark.parametrize("name", SOURCES)
def test_a_runner_differs_from_itself(name: str, tmp_path: Path) -> None:
    found = run(write(tmp_path, SOURCES[name]), ["onnxruntime"], FEEDS, repeat=2)
    head = headline(found)
    type, _, last = name.partition(" ")
    assert head.state is State.AGREES
    assert f"{type} " in head.sentence
    assert head.sentence.endswith(f"{last} draws random numbers: no verdict on output y")
    assert of_output(found, "y") == {Verdict.CONTESTED}
    assert not of_output(found, "z") & {Verdict.CONTESTED, Verdict.NONDETERMINISTIC}
    assert not found.outliers


def test_two_runners_and_what_is_not_random(tmp_path: Path) -> None:
    found = run(write(tmp_path, SOURCES["RandomNormal u"]), ["CPU", "onnxruntime"], FEEDS)
    head = headline(found)
    assert head.state is State.AGREES
    assert "agree on 1 node and 1 output, 1 case; RandomNormal u draws random numbers" in head.sentence
    (one,) = [
        c for c in found.comparisons if (c.tensor, c.subject) == ("y", "onnxruntime") and c.node is None
    ]
    assert one.measure.excuse is not None
    assert one.measure.excuse.elements == 64


@pytest.mark.parametrize("training", ["", "f = Constant <value = bool {0}> ()"])
def test_dropout_that_drops_nothing(training: str, tmp_path: Path) -> None:
    lines = [training, "u = Dropout (x)" if not training else f"{HALF}\nu = Dropout (x, h, f)"]
    found = run(write(tmp_path, lines), ["CPU", "onnxruntime"], FEEDS)
    assert "agree on 1 node and 2 outputs, 1 case" in headline(found).sentence


def test_two_models(tmp_path: Path) -> None:
    """No verdict is given on what is random in one of them; a difference elsewhere is one."""
    first = write(tmp_path, SOURCES["RandomNormal u"])
    second = write(tmp_path, ["u = Identity (x)"], "second.onnx")
    runner = runners.find("onnxruntime")
    try:
        found = compare(
            [read(first), read(second)],
            [runner],
            CompareSettings(reference=False),
            with_numpy=False,
            feeds=FEEDS,
        )
    finally:
        runner.close()
    head = headline(found)
    assert head.state is State.AGREES
    assert head.sentence.endswith("RandomNormal u draws random numbers: no verdict on output y")
    assert not found.outliers


def test_an_ir_that_draws(tmp_path: Path) -> None:
    ir = IrText()
    data, rows = ir.parameter("data", "f32", (4, 64)), ir.parameter("rows", "i64", (1, 1))
    inputs = [
        ir.const("shape", "i64", [1, 64]),
        ir.const("low", "f32", 0.0, ()),
        ir.const("high", "f32", 1.0, ()),
    ]
    words = {"output_type": "f32", "global_seed": "0", "op_seed": "0"}
    updates = ir.add("drawn", "RandomUniform", "opset8", inputs, [("f32", (1, 64))], words)
    scatter = ir.add("y", "ScatterNDUpdate", "opset4", [data, rows, updates], [("f32", (4, 64))])
    ir.add("result", "Result", "opset1", [scatter], [])
    feeds = {name: FEEDS[name] for name in ("data", "rows")}
    found = run(ir.write(tmp_path), ["CPU"], feeds, repeat=3)
    assert headline(found).sentence.endswith(
        "RandomUniform drawn draws random numbers: no verdict on output y"
    )
