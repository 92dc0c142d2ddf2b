"""Networks whose logits tie up to rounding: what TopK, ArgMax and NonZero of them give is not blamed on a runtime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.compare.headline import State, headline
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import Compared, CompareSettings, Level
from ir_scatter.compare.run import compare
from ir_scatter.report.comparison_text import text as report
from tests.compare.planted import Planted
from tests.models.ir_text import IrText
from tests.models.onnx_text import save

Array = Any
HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
CLASSES, WIDTH, ROWS = 8, 64, 5
TIED = (2, 6)
"""Two classes with the largest logits, equal but for the order of the numbers that are added."""


def weights() -> tuple[Array, Array]:
    """Return inputs [rows, width] and weights [width, classes] whose columns `TIED` are tied in every row."""
    numbers = np.random.default_rng(3)
    x = numbers.normal(size=(ROWS, WIDTH // 2)).astype(np.float32)
    x = np.concatenate([x, x[:, ::-1]], axis=1)  # a mirrored column has the same products
    w = numbers.normal(size=(WIDTH, CLASSES)).astype(np.float32)
    w[:, TIED[1]] = w[::-1, TIED[0]]
    return x, w


TAILS = {
    "TopK": (
        "int64[5, 1] y, float[5, 1] best",
        "k = Constant <value_ints = [1]> () best, y = TopK <axis = 1> (logits, k)",
    ),
    "ArgMax": ("int64[5] y", "y = ArgMax <axis = 1, keepdims = 0> (logits)"),
    "NonZero": (
        "int64[2, n] y",
        "t = Constant <value_ints = [2]> () s = Gather <axis = 1> (logits, t) "
        "v = Constant <value_ints = [6]> () r = Gather <axis = 1> (logits, v) d = Sub (s, r) y = NonZero (d)",
    ),
}


def onnx_model(folder: Path, name: str) -> tuple[Path, dict[str, Array]]:
    outputs, tail = TAILS[name]
    text = f"{HEADER}n (float[5, 64] x, float[64, 8] w, float[8] bias) => ({outputs}) {{"
    text += f" m = MatMul (x, w) logits = Add (m, bias) {tail} }}"
    return save(text, folder / f"{name}.onnx"), _feeds()


def _feeds() -> dict[str, Array]:
    x, w = weights()
    bias = np.zeros(CLASSES, np.float32)
    bias[list(TIED)] = 50
    return {"x": x, "w": w, "bias": bias}


def ir_model(folder: Path, name: str) -> tuple[Path, dict[str, Array]]:
    ir = IrText()
    x, w = ir.parameter("x", shape=(ROWS, WIDTH)), ir.parameter("w", shape=(WIDTH, CLASSES))
    bias = ir.parameter("bias", shape=(CLASSES,))
    product = ir.add("m", "MatMul", "opset1", [x, w], [("f32", (ROWS, CLASSES))], {})
    logits = ir.add("logits", "Add", "opset1", [product, bias], [("f32", (ROWS, CLASSES))])
    if name == "NonZero":
        zero = ir.const("axis", "i64", 1)
        parts = [
            ir.add(
                f"part{number}",
                "Gather",
                "opset8",
                [logits, ir.const(f"class{number}", "i64", [number]), zero],
                [("f32", (ROWS, 1))],
                {"batch_dims": "0"},
            )
            for number in TIED
        ]
        difference = ir.add("d", "Subtract", "opset1", parts, [("f32", (ROWS, 1))])
        last = ir.add("top", "NonZero", "opset3", [difference], [("i64", (2, -1))], {"output_type": "i64"})
    else:
        data = {"axis": "1", "mode": "max", "sort": "value", "index_element_type": "i64", "stable": "true"}
        one = ir.const("k", "i64", 1)
        best = ir.add("top", "TopK", "opset11", [logits, one], [("f32", (ROWS, 1)), ("i64", (ROWS, 1))], data)
        last = type(best)(best.layer, best.port + 1, "i64", (ROWS, 1))
    ir.add("y", "Result", "opset1", [last], [])
    return Path(ir.write(folder, name)), _feeds()


MODELS: dict[str, Callable[[Path], tuple[Path, dict[str, Array]]]] = {
    **{f"onnx {name}": lambda folder, name=name: onnx_model(folder, name) for name in TAILS},  # type: ignore[misc]
    **{f"ir {name}": lambda folder, name=name: ir_model(folder, name) for name in ("TopK", "NonZero")},  # type: ignore[misc]
}


def judged(found: Compared) -> dict[str, Verdict]:
    return {each.tensor: each.measure.verdict for each in found.comparisons if each.level is Level.MODEL}


def positions(found: Compared) -> str:
    """Return the output that holds positions."""
    (name,) = [tensor for tensor in judged(found) if tensor != "best"]
    return name


def swapped(array: Array) -> Array:
    """Choose the other one of the two classes in the first row."""
    changed = array.copy()
    flat = changed.reshape(-1)
    flat[0] = sum(TIED) - flat[0]
    return changed


def wrong(array: Array) -> Array:
    """Choose a class in the first row that is far from the largest."""
    changed = array.copy()
    changed.reshape(-1)[0] = 4
    return changed


def changing(change: Callable[[Array], Array]) -> Planted:
    return Planted(output=lambda _, array, *__: change(array) if array.dtype.kind == "i" else array)


@pytest.mark.parametrize("name", [name for name in MODELS if "NonZero" not in name])
def test_the_order_of_equal_values_is_contested_and_no_other(name: str, tmp_path: Path) -> None:
    path, feeds = MODELS[name](tmp_path)
    found = compare(path, [changing(swapped)], CompareSettings(), feeds=feeds)
    assert judged(found)[positions(found)] is Verdict.CONTESTED
    assert "equal values, order not specified" in report(found)
    assert not found.differs
    found = compare(path, [changing(wrong)], CompareSettings(), feeds=feeds)
    assert judged(found)[positions(found)] is Verdict.CONTESTED  # of a tie, the element has no verdict


def far_row(feeds: dict[str, Array]) -> dict[str, Array]:
    """Untie the first row."""
    x = feeds["x"].copy()
    x[0] *= np.linspace(0.5, 1.5, WIDTH, dtype=np.float32)
    return feeds | {"x": x}


@pytest.mark.parametrize("name", [name for name in MODELS if "NonZero" not in name])
def test_a_wrong_class_of_a_row_without_a_tie_is_found(name: str, tmp_path: Path) -> None:
    path, feeds = MODELS[name](tmp_path)
    found = compare(path, [changing(wrong)], CompareSettings(), feeds=far_row(feeds))
    assert judged(found)[positions(found)] is Verdict.MISMATCH
    assert headline(found).state is State.DIFFERS


@pytest.mark.parametrize("name", ["onnx NonZero", "ir NonZero"])
def test_a_difference_of_equal_sums_is_zero_or_not(name: str, tmp_path: Path) -> None:
    path, feeds = MODELS[name](tmp_path)
    fewer = changing(lambda array: array[:, 1:] if array.shape[1] else np.zeros((2, 1), array.dtype))
    found = compare(path, [fewer], CompareSettings(), feeds=feeds)
    assert judged(found)[positions(found)] is Verdict.CONTESTED
    assert "rounding decides" in report(found)


RECTIFIED = """n (float[4, 6] x, float[6] w) => (int64[2, n] y) {
  r = Div (x, w) q = Relu (r) y = NonZero (q) }"""


def test_certain_zeros_are_counted(tmp_path: Path) -> None:
    """Relu gives many equal zeros: none of them is near another number, and a lost position is a defect."""
    numbers = np.random.default_rng(5)
    feeds = {
        "x": numbers.normal(size=(4, 6)).astype(np.float32),
        "w": numbers.normal(size=6).astype(np.float32),
    }
    path = save(HEADER + RECTIFIED, tmp_path / "model.onnx")
    found = compare(path, [changing(lambda array: array[:, 1:])], CompareSettings(), feeds=feeds)
    assert judged(found) == {"y": Verdict.MISMATCH}


UNIQUE = """n (float[4, 6] x, float[6] w) => (float[n] y) {
  r = Div (x, w) q = Relu (r) y = Unique <sorted = 1> (q) }"""


def test_unique_counts_certain_zeros_once(tmp_path: Path) -> None:
    numbers = np.random.default_rng(5)
    feeds = {
        "x": numbers.normal(size=(4, 6)).astype(np.float32),
        "w": numbers.normal(size=6).astype(np.float32),
    }
    path = save(HEADER + UNIQUE, tmp_path / "model.onnx")
    lost = Planted(output=lambda _, array, *__: array[1:])
    assert judged(compare(path, [lost], CompareSettings(), feeds=feeds)) == {"y": Verdict.MISMATCH}


SUPPRESSED = """n (float[1, 6, 4] b, float[4] w, float[1, 2, 6] s, float[6] v) => (int64[n, 3] y) {
  [boxes] q = Div (b, w) [scores] t = Div (s, v) m = Constant <value_ints = [6]> ()
  o = Constant <value_floats = [0.5]> () l = Constant <value_floats = [0.1]> ()
  y = NonMaxSuppression (q, t, m, o, l) }"""
BOXES = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 4, 1, 5], [0, 6, 1, 7], [0, 8, 1, 9]]


def suppressed(*, third: float = 0.7, edge: float = 0.0) -> dict[str, Array]:
    """Return inputs of `SUPPRESSED`: box 2 has the score `third`, box 4 one of 0.8; box 5 overlaps 0 from `edge`."""
    w, v = np.array([0.7, 0.9, 1.3, 1.1], np.float32), np.full(6, 0.7, np.float32)
    boxes = np.array(BOXES, np.float32)
    if edge:
        boxes[5] = [0, edge, 1, edge + 1]
    scores = np.array([[0.9, 0.75, third, 0.5, 0.8, 0.6], [0.3, 0.25, 0.2, 0.6, 0.4, 0.7]], np.float32)
    return {"b": (boxes * w)[None], "w": w, "s": (scores * v)[None], "v": v}


@pytest.mark.parametrize(
    ("feeds", "verdict"),
    [
        (suppressed(), Verdict.MISMATCH),  # coordinates are equal, and that is no tie
        (suppressed(third=0.8), Verdict.CONTESTED),
        (suppressed(third=0.1), Verdict.CONTESTED),
        (suppressed(edge=1 / 3), Verdict.CONTESTED),
    ],
)
def test_boxes_and_scores_near_a_threshold_are_contested(
    feeds: dict[str, Array], verdict: Verdict, tmp_path: Path
) -> None:
    path = save(HEADER + SUPPRESSED, tmp_path / "model.onnx")
    lost = Planted(output=lambda _, array, *__: array[1:])
    assert judged(compare(path, [lost], CompareSettings(), feeds=feeds)) == {"y": verdict}


QUANTIZED = "n (float[8] x, float s, uint8 z) => (uint8[8] y) { y = QuantizeLinear (x, s, z) }"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_near_ties_of_quantised_numbers_are_contested(place: int, tmp_path: Path) -> None:
    """1.5 and 2.5 scales are ties, 1.4 is none: nothing was rounded before, but the quotient is."""
    scale = np.array(0.03, np.float32)
    x = np.array([1.5, 2.5, 1.4, -3, 7, 9.2, 0, 4], np.float32) * scale
    path = save(HEADER + QUANTIZED, tmp_path / "model.onnx")

    def up(_: str, array: Array, *more: Any) -> Array:
        changed = array.copy()
        changed[place] = array[place] + (place > 0) - (place == 0)
        return changed

    feeds = {"x": x, "s": scale, "z": np.array(0, np.uint8)}
    found = compare(path, [Planted(output=up)], CompareSettings(), feeds=feeds)
    assert judged(found) == {"y": Verdict.CONTESTED if place < 2 else Verdict.MISMATCH}


@pytest.mark.long
@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", MODELS)
def test_runtimes_are_not_blamed(name: str, tmp_path: Path) -> None:
    path, feeds = MODELS[name](tmp_path)
    names = ("CPU", "onnxruntime") if name.startswith("onnx") else ("CPU",)
    devices = [runners.find(each) for each in names]
    try:
        for seed in range(6):
            numbers = np.random.default_rng(seed)
            x = numbers.normal(size=(ROWS, WIDTH // 2)).astype(np.float32)
            of_case = feeds | {"x": np.concatenate([x, x[:, ::-1]], axis=1)}
            found = compare(path, devices, CompareSettings(), feeds=of_case)
            assert not found.differs, (seed, headline(found).sentence)
            assert {outcome.status.value for outcome in found.outcomes} == {"ok"}
    finally:
        for device in devices:
            device.close()
