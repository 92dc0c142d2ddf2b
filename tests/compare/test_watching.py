"""Illegal indices that NumPy sees, in models that it cannot compute as a whole."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter.compare.guard import Reference
from ir_scatter.compare.result import Guarded
from ir_scatter.core.errors import BadFeed
from ir_scatter.reading import read
from ir_scatter.runners.base import Outcome, Status
from tests.compare.models import Inputs, floats
from tests.rules.ir_text import IrText
from tests.unit.nested_onnx import save


def watched(path: Path | str, feeds: Inputs) -> tuple[Outcome, dict[str, Guarded]]:
    reference = Reference(read(path))
    outcome, sight = reference.start(feeds)(60)
    return outcome, sight.seen


def test_a_model_that_numpy_computes(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    model (float[4] data, int64[2, 1] first, int64[2, 1] second, float[2] new) => (float[4] out) {
      one = ScatterND (data, first, new)
      two = ScatterND <reduction = "add"> (one, first, new)
      out = ScatterND (two, second, new)
    }"""
    path = save(text, tmp_path / "model.onnx")
    first, second = np.array([[1], [1]]), np.array([[0], [2]])
    feeds = {"data": floats(4), "first": first, "second": second, "new": floats(2)}
    outcome, seen = watched(path, feeds)
    assert outcome.status is Status.OK
    assert [(one.node, one.message, one.is_illegal) for one in seen.values()] == [
        ("one", "several updates meet in 1 element of 4 without a reduction", False)
    ]
    outcome, seen = watched(path, {**feeds, "second": np.array([[0], [4]])})
    assert outcome.status is Status.REFUSED
    assert outcome.message == "ScatterND out: indices[1, 0] is 4, expected -4 to 3"
    assert [one.message for one in seen.values() if one.is_illegal] == [
        "indices[1, 0] is 4, expected -4 to 3"
    ]


def odd_model(folder: Path, sizes: tuple[int, int] = (3, 4)) -> str:
    """Write a model whose data and updates come from an operator that nobody knows."""
    ir = IrText()
    raw, indices = ir.parameter("raw", shape=(3, 4)), ir.parameter("indices", "i64", (2,))
    axis, one = ir.const("axis", "i64", 0), ir.const("one", "i64", [1])
    data = ir.add("data", "NoSuchThing", "opset1", [raw], [("f32", sizes)])
    updates = ir.add("updates", "NoSuchThing", "opset1", [raw], [("f32", (2, 4))])
    shifted = ir.add("shifted", "Add", "opset1", [indices, one], [("i64", (2,))])
    written = ir.add("written", "ScatterUpdate", "opset3", [data, shifted, updates, axis], [("f32", sizes)])
    ir.add("result", "Result", "opset1", [written], [])
    return ir.write(folder)


def test_indices_are_computed_though_data_are_not_known(tmp_path: Path) -> None:
    path = odd_model(tmp_path)
    outcome, seen = watched(path, {"raw": floats(3, 4), "indices": np.array([1, 2])})
    assert (outcome.status, outcome.message) == (
        Status.UNSUPPORTED,
        "NumPy does not compute NoSuchThing at data",
    )
    assert seen["written"].message == "indices[1] is 3, expected 0 to 2"
    assert watched(path, {"raw": floats(3, 4), "indices": np.array([0, 1])})[1] == {}
    repeated = watched(path, {"raw": floats(3, 4), "indices": np.array([0, 0])})[1]
    assert repeated["written"].message == "several updates meet in 4 elements of 12 without a reduction"
    with pytest.raises(BadFeed):
        watched(path, {"raw": floats(3, 4)})
    unknown = odd_model(tmp_path, (-1, 4))
    assert watched(unknown, {"raw": floats(3, 4), "indices": np.array([1, 90])})[1] == {}


def test_a_model_that_breaks_rules_is_looked_at_all_the_same(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    model (float[4] data, int64[2, 1] indices, float[2] new) => (float[4] out) {
      out = ScatterND <reduction = "sum"> (data, indices, new)
    }"""
    path = save(text, tmp_path / "model.onnx")
    outcome, seen = watched(path, {"data": floats(4), "indices": np.array([[1], [1]]), "new": floats(2)})
    assert outcome.status is Status.REFUSED
    assert "reduction is 'sum'" in outcome.message
    assert "reduction is 'sum'" in seen["out"].message


def test_a_node_of_a_function_has_the_name_that_validate_prints(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    model (float[4] data, int64[2, 1] indices, float[2] new) => (float[4] out) {
      first = own.Store (data, indices, new)
      out = own.Store (first, indices, new)
    }
    <domain: "own", opset_import: ["" : 18]>
    Store (table, places, rows) => (stored) { stored = ScatterND (table, places, rows) }"""
    path = save(text, tmp_path / "model.onnx")
    (node,) = read(path).walk(frozenset({"ScatterND"}))
    feeds = {"data": floats(4), "indices": np.array([[1], [1]]), "new": floats(2)}
    assert list(watched(path, feeds)[1]) == [node.scope] == ["own::Store/stored"]
