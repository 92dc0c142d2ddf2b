"""Real models and our samples: every runner gives an outcome, and what NumPy gives where that computes them."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ir_scatter
from ir_scatter import runners
from ir_scatter.core.errors import Error
from ir_scatter.inputs.model import make_feeds
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.runners.base import Status, tap_of

pytestmark = pytest.mark.openvino
pytest.importorskip("openvino")

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT.parent / "shared" / "models"
TOLERANCE = 1e-4


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in {".xml", ".onnx"})


def close(found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> bool:
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return False
    if expected.dtype.kind in "biuO":
        return np.array_equal(found, expected)
    return np.allclose(found.astype(float), expected.astype(float), TOLERANCE, TOLERANCE, equal_nan=True)


def check(names: Iterable[str], path: Path) -> dict[str, str]:
    """Run a model that NumPy computes, with taps, and return the status of each runner; none for another."""
    try:
        feeds = make_feeds(path, seed=1)
        expected = ir_scatter.evaluate_model(path, feeds)
    except Error:
        return {}
    model = ir_scatter.read(path)
    taps = [tap_of(node, model.format) for node in model.walk(scatter_types(model.domain))]
    found = {}
    for name in names:
        outcome = runners.find(name).run(path, feeds, taps=taps)
        found[name] = str(outcome.status)
        if outcome.status is not Status.OK:
            assert outcome.message, path
            continue
        assert list(outcome.outputs) == list(expected), path
        for output, array in expected.items():
            assert close(outcome.outputs[output], array) or (path.name, output) in OTHERWISE, (path, output)
        for tapped in outcome.tapped:
            assert tapped.problem == "", (path, tapped.tap)
    return found


@pytest.mark.parametrize("name", ["scatter_1.onnx", "scatter_2.onnx", "scatter_update_2.xml"])
def test_samples_that_numpy_computes_run(name: str) -> None:
    assert check(["CPU"], ROOT / "samples" / "documented" / name) == {"CPU": "ok"}


OTHERWISE = {("opset_11.onnx", f"{name}_output") for name in ("softmax", "hardmax", "logsoftmax")}
"""Outputs that a runtime reads otherwise: OpenVINO does not flatten dimensions of Softmax-11 and its kin."""

BROKEN = [*files(ROOT / "samples" / "broken"), *files(ROOT / "samples" / "nested")]


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.name)
@pytest.mark.parametrize("runner", ["CPU", "fold", "onnxruntime", "onnx-reference"])
def test_broken_samples_end_no_process_of_ours(runner: str, path: Path) -> None:
    try:
        outcome = runners.find(runner).run(path, {})
    except ir_scatter.BadFeed:
        return  # it was read, and would have run
    assert outcome.status in {Status.REFUSED, Status.UNSUPPORTED}
    assert outcome.message
    assert str(ROOT) not in outcome.message


@pytest.mark.models
@pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
def test_real_models_give_what_numpy_gives() -> None:
    least = {"CPU": 60, "fold": 60, "onnxruntime": 45, "onnx-reference": 40}
    found = Counter[tuple[str, str]]()
    for path in files(MODELS):
        names = [name for name in least if path.suffix == ".onnx" or not name.startswith("onnx")]
        found.update(check(names, path).items())
    assert {name: found[name, "ok"] for name in least if found[name, "ok"] < least[name]} == {}
    assert {status for _, status in found} <= {"ok", "unsupported"}
