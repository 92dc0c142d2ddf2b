from pathlib import Path

import numpy as np
import pytest

from ir_scatter.compare.contested import Sight, foresee
from ir_scatter.compare.result import Level, Verdict
from ir_scatter.core.element_types import dtype
from ir_scatter.core.model import Model
from ir_scatter.evaluate.model import make_sketch
from ir_scatter.reading import read
from tests.compare.models import floats, run, verdicts
from tests.unit.nested_ir import write_loop
from tests.unit.nested_onnx import save

HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'

CHAIN = """
chain (float[4] data, int64[2, 1] indices, float[2] new, float[4] other)
  => (float[4] written, float[4] after, float[4] beside, float[4] both) {
  written = ScatterND (data, indices, new)
  after = Relu (written)
  beside = Relu (other)
  both = Add (beside, after)
}
"""

BRANCH = """
branch (bool flag, float[4] data, int64[2, 1] indices, float[2] new)
  => (float[4] out, float[4] plain, float[4] never) {
  never = Relu (data)
  out, plain = If (flag) <
    then_branch = then () => (float[4] a, float[4] b) {
      a = ScatterND (data, indices, new)
      b = Relu (data)
    },
    else_branch = other () => (float[4] c, float[4] d) { c = Relu (data)  d = Neg (data) }
  >
}
"""

CONDITION = """
condition (float[4] data, int64[2, 1] indices, float[2] new) => (float[4] out) {
  written = ScatterND (data, indices, new)
  total = ReduceSum <keepdims = 0> (written)
  flag = Cast <to = 9> (total)
  out = If (flag) <
    then_branch = then () => (float[4] a) { a = Relu (data) },
    else_branch = other () => (float[4] b) { b = Neg (data) }
  >
}
"""

CAPTURED = """
captured (bool flag, float[4] data, int64[2, 1] indices, float[2] new) => (float[4] out, float[4] plain) {
  written = ScatterND (data, indices, new)
  out, plain = If (flag) <
    then_branch = then () => (float[4] a, float[4] c) { a = Relu (written)  c = Neg (data) },
    else_branch = other () => (float[4] b, float[4] d) { b = Neg (data)  d = Neg (data) }
  >
}
"""

LOOP = """
looped (int64 trips, bool go, float[4] first, float[4] second, float[4] third, int64[2, 1] indices, float[2] new)
  => (float[4] a, float[4] b, float[4] c) {
  a, b, c = Loop (trips, go, first, second, third) <
    body = body (int64 step, bool again, float[4] x, float[4] y, float[4] z)
        => (bool on, float[4] x1, float[4] y1, float[4] z1) {
      on = Identity (again)
      x1 = ScatterND (x, indices, new)
      y1 = Add (y, x)
      z1 = Relu (z)
    }
  >
}
"""

FUNCTIONS = """
<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
calls (float[4] data, int64[2, 1] indices, float[2] new) => (float[4] out, float[4] plain) {
  out, plain = own.Store (data, indices, new)
}
<domain: "own", opset_import: ["" : 18]>
Store (table, places, rows) => (stored, other) {
  stored = ScatterND (table, places, rows)
  other = Relu (table)
}
"""


def open_outputs(model: Model, scopes: set[str]) -> set[str]:
    """The outputs of which something is open if runners found nodes contested, and nothing is computed."""
    sketch, sight = make_sketch(model), Sight(scopes)
    feeds = {
        input.names[0]: np.zeros([dim if isinstance(dim, int) else 1 for dim in input.shape or ()], type)
        for input in sketch.inputs
        if input.element_type is not None and (type := dtype(input.element_type)) is not None
    }
    foresee(sketch, feeds, sight, {scope: [np.ones(4, np.bool_)] for scope in scopes}, computes=False)
    return set(sight.open or ())


def scatter_scopes(path: Path) -> set[str]:
    return {node.scope for node in read(path).walk(frozenset({"ScatterND"}))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEADER + CHAIN, {"written", "after", "both"}),
        (HEADER + BRANCH, {"out"}),
        (HEADER + CONDITION, {"out"}),
        (HEADER + CAPTURED, {"out"}),
        (HEADER + LOOP, {"a", "b"}),
        (FUNCTIONS, {"out"}),
    ],
    ids=["chain", "branch", "condition", "captured", "loop", "function"],
)
def test_exactly_what_depends_on_the_node(tmp_path: Path, text: str, expected: set[str]) -> None:
    path = save(text, tmp_path / "model.onnx")
    scopes = scatter_scopes(path)
    assert len(scopes) == 1
    assert open_outputs(read(path), scopes) == expected
    assert open_outputs(read(path), set()) == set()
    assert open_outputs(read(path), {"nowhere"}) == set()


def test_a_loop_of_an_ir(tmp_path: Path) -> None:
    model = read(write_loop(tmp_path, 3))
    assert open_outputs(model, {"loop:body/written"}) == {"loop.0"}


@pytest.mark.onnxruntime
def test_a_contested_node_in_a_body_and_in_a_function(tmp_path: Path) -> None:
    twice, new = np.array([[1], [1]]), np.array([8, 9], np.float32)
    branch = save(HEADER + BRANCH, tmp_path / "branch.onnx")
    feeds = {"flag": np.array(True), "data": floats(4), "indices": twice, "new": new}
    found = run(branch, ["onnxruntime"], feeds)
    assert verdicts(found, Level.NODE) == {("out:then_branch/a", "onnxruntime"): Verdict.CONTESTED}
    del feeds["flag"]
    calls = save(FUNCTIONS, tmp_path / "calls.onnx")
    found = run(calls, ["onnxruntime"], feeds)
    assert set(verdicts(found, Level.NODE).values()) == {Verdict.CONTESTED}
    assert {one.caller for one in found.comparisons if one.level is Level.NODE} != {""}


@pytest.mark.onnxruntime
def test_a_branch_that_is_not_taken_has_no_level_of_its_own(tmp_path: Path) -> None:
    path = save(HEADER + BRANCH, tmp_path / "branch.onnx")
    feeds = {"flag": np.array(False), "data": floats(4), "indices": np.array([[1], [2]]), "new": floats(2)}
    found = run(path, ["onnxruntime"], feeds)
    assert [(one.node, one.reason) for one in found.not_tapped] == [
        ("out:then_branch/a", "it is not computed with these inputs")
    ]
    assert not found.differs
