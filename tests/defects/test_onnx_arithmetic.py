"""DEV401 and DEV402 of nodes of f16 that onnxruntime computes in f32 between casts, checked by running it."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.core.diagnostics import Severity
from ir_scatter.portability import diagnose, portability_to
from ir_scatter.reading import read
from ir_scatter.runners.base import Status
from tests.models.onnx_text import save

HEAD = (
    '<ir_version: 10, opset_import: ["" : 18]>\n'
    "g (float16[3, 2] x, int64[1, 1] tuples, int64[1, 2] elements, float16[1, 2] new, float[3] other, bool c) "
)
FEEDS = {
    "x": np.ones((3, 2), np.float16),
    "tuples": np.array([[1]]),
    "elements": np.array([[1, 0]]),
    "new": np.ones((1, 2), np.float16),
    "other": np.ones(3, np.float32),
    "c": np.array(True),
}
GRAPHS = {
    "output": "(y) {{ i = Abs ({at}) y = {scatter} (x, i, new) }}",
    "unread": "(o) {{ i = Abs ({at}) y = {scatter} (x, i, new) o = Identity (other) }}",
    "fed": "(o) {{ y = {scatter} (x, {at}, new) o = Abs (y) }}",
    "from a node": "(o) {{ i = Abs ({at}) y = {scatter} (x, i, new) o = Abs (y) }}",
    "between nodes": "(o) {{ a = Abs (x) y = {scatter} (a, {at}, new) o = Add (y, a) }}",
    "identity": "(o, p) {{ i = Abs ({at}) y = {scatter} (x, i, new) o = Abs (y) p = Identity (y) }}",
    "transpose": "(o) {{ i = Abs ({at}) y = {scatter} (x, i, new) o = Transpose (y) }}",
    "cast": "(o) {{ i = Abs ({at}) y = {scatter} (x, i, new) o = Cast <to = 1> (y) }}",
    "from a branch": "(o) {{ i = Abs ({at}) y = {scatter} (x, i, new) "
    "o = If (c) <then_branch = t () => (p) {{ p = Abs (y) }}, else_branch = b () => (q) {{ q = Abs (x) }}> }}",
    "in a branch": "(o) {{ o = If (c) <then_branch = t () => (p) {{ i = Abs ({at}) y = {scatter} (x, i, new) "
    "p = Abs (y) }}, else_branch = b () => (q) {{ q = Abs (x) }}> }}",
}
WORKS = {"unread", "from a node", "between nodes", "in a branch"}


@pytest.mark.onnxruntime
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    ("scatter", "at", "code"),
    [
        ('ScatterND <reduction = "min">', "tuples", "DEV402"),
        ('ScatterND <reduction = "add">', "tuples", "DEV401"),
        ('ScatterElements <reduction = "add">', "elements", "DEV401"),
    ],
)
def test_halves_between_casts(graph: str, scatter: str, at: str, code: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    text = f"{HEAD} => {GRAPHS[graph].format(at=at, scatter=scatter)}"
    path = save(text, tmp_path / "model.onnx")
    diagnostics = diagnose(read(path), portability_to(("onnxruntime",)))
    severities = {diagnostic.severity for diagnostic in diagnostics if diagnostic.code == code}
    assert severities == {Severity.WARNING if graph in WORKS else Severity.ERROR}
    outcome = runners.find("onnxruntime").run(Path(path), FEEDS, timeout=60)
    assert (outcome.status is Status.OK) is (graph in WORKS)
