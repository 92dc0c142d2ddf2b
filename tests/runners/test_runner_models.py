"""Real models and our samples: every runner gives an outcome, and what NumPy gives where that computes them."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ir_scatter
from ir_scatter import runners
from ir_scatter.core.errors import Error
from ir_scatter.inputs.model import make_feeds
from ir_scatter.ops import scatter_types
from ir_scatter.runners.outcome import Status, tap_of

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


def check(runner: str, path: Path) -> str:
    """Run a model that NumPy computes, with taps, and return the status; "skipped" for another."""
    try:
        feeds = make_feeds(path, seed=1)
        expected = ir_scatter.evaluate_model(path, feeds)
    except Error:
        return "skipped"
    model = ir_scatter.read(path)
    taps = [tap_of(node, model.format) for node in model.walk(scatter_types(model.domain))]
    outcome = runners.find(runner).run(path, feeds, taps=taps)
    if outcome.status is not Status.OK:
        assert outcome.message, path
        return str(outcome.status)
    assert list(outcome.outputs) == list(expected), path
    for name, array in expected.items():
        assert close(outcome.outputs[name], array), (path, name)
    for tapped in outcome.tapped:
        assert tapped.problem == "", (path, tapped.tap)
    return "ok"


@pytest.mark.parametrize("name", ["scatter_1.onnx", "scatter_2.onnx", "scatter_update_2.xml"])
def test_samples_that_numpy_computes_run(name: str) -> None:
    assert check("CPU", ROOT / "samples" / "documented" / name) == "ok"


BROKEN = [*files(ROOT / "samples" / "broken"), *files(ROOT / "samples" / "nested")]


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.name)
@pytest.mark.parametrize("runner", ["CPU", "fold", "onnxruntime", "onnx-reference"])
def test_broken_samples_end_no_process_of_ours(runner: str, path: Path) -> None:
    if runner.startswith("onnx") and path.suffix != ".onnx":
        pytest.skip("an IR is none of its models")
    try:
        outcome = runners.find(runner).run(path, {})
    except ir_scatter.BadFeed:
        return  # it was read, and would have run
    assert outcome.status in {Status.REFUSED, Status.UNSUPPORTED}
    assert outcome.message
    assert str(ROOT) not in outcome.message


@pytest.mark.models
@pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
@pytest.mark.parametrize(
    ("runner", "least"), [("CPU", 60), ("onnxruntime", 45), ("onnx-reference", 40), ("fold", 60)]
)
def test_real_models_give_what_numpy_gives(runner: str, least: int) -> None:
    paths = [path for path in files(MODELS) if path.suffix == ".onnx" or not runner.startswith("onnx")]
    found = [check(runner, path) for path in paths]
    assert found.count("ok") >= least
    assert set(found) <= {"ok", "skipped", "unsupported"}
