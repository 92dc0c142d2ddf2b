"""What contested elements excuse: those that they can reach, and no other."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.guard import Observations, watch_partially
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import Compared, CompareSettings, Comparison, Level, Relation
from ir_scatter.compare.run import compare
from ir_scatter.compare.snapshot import save
from ir_scatter.core.element_types import dtype
from ir_scatter.core.model import Model
from ir_scatter.evaluate.model import make_sketch
from ir_scatter.reading import read
from ir_scatter.report.comparison_json import document
from ir_scatter.report.comparison_text import text as report
from ir_scatter.runners.base import Status
from tests.compare.models import floats, run, verdicts
from tests.compare.planted import FakeRunner, Planted, at, unchanged, wrong_at
from tests.models.ir_text import IrText
from tests.models.nested_ir import write_loop
from tests.models.onnx_text import save as save_onnx

HEADER = '<ir_version: 10, opset_import: ["" : 18, "own" : 1]>\n'
SIGNATURE = "model (int32[6] data, int64[3, 1] indices, int32[3] new, int32[6] other)"
FEEDS: dict[str, Any] = {
    "data": np.arange(10, 16, dtype=np.int32),
    "indices": np.array([[2], [2], [4]]),
    "new": np.array([7, 8, 9], np.int32),
    "other": np.arange(100, 106, dtype=np.int32),
}
"""Element 2 is contested, and may be 7 or 8."""


def write(folder: Path, shape: str, *lines: str, signature: str = SIGNATURE) -> Path:
    body = "\n".join(lines)
    text = f"{HEADER}{signature} => ({shape} out) {{\n{body}\n}}"
    return save_onnx(text, folder / "model.onnx")


def compared(
    path: Path, *runners: Planted, feeds: Any = None, numpy: bool = True, **settings: Any
) -> Compared:
    return compare(
        path, runners, CompareSettings(reference=numpy, **settings), with_numpy=numpy, feeds=feeds or FEEDS
    )


def of_outputs(found: Compared, subject: str = "planted") -> list[Comparison]:
    return [one for one in found.comparisons if one.level is Level.MODEL and one.subject == subject]


SCATTER = "s = ScatterND (data, indices, new)"
BY_ELEMENT = {
    "itself": ("int32[6]", ["out = ScatterND (data, indices, new)"], {2}),
    "added": ("int32[6]", [SCATTER, "out = Add (s, other)"], {2}),
    "converted": ("float[6]", [SCATTER, "out = Cast <to = 1> (s)"], {2}),
    "joined": ("int32[12]", [SCATTER, "out = Concat <axis = 0> (other, s)"], {8}),
    "a condition": (
        "int32[6]",
        [SCATTER, "c = Constant <value_int = 0> ()", "i = Cast <to = 6> (c)", "b = Greater (s, i)", "out = Where (b, data, other)"],
        {2},
    ),
    "scattered as data": (
        "int32[6]",
        [SCATTER, "c = Constant <value_ints = [0, 5, 3]> ()", "out = ScatterElements (s, c, new)"],
        {2},
    ),
    "overwritten": (
        "int32[6]",
        [SCATTER, "c = Constant <value_ints = [0, 2, 3]> ()", "out = ScatterElements (s, c, new)"],
        set(),
    ),
    "scattered as updates": (
        "int32[6]",
        [SCATTER, "c = Constant <value_ints = [5, 4, 3, 2, 1, 0]> ()", "out = ScatterElements (other, c, s)"],
        {3},
    ),
    "added as updates": (
        "int32[6]",
        [SCATTER, "c = Constant <value_ints = [5, 4, 3, 3, 1, 0]> ()", 'out = ScatterElements <reduction = "add"> (other, c, s)'],
        {3},
    ),
    "added beside it": (
        "int32[6]",
        [SCATTER, "c = Constant <value_ints = [0, 5, 3]> ()", 'out = ScatterElements <reduction = "add"> (s, c, new)'],
        {2},
    ),
    "a sum of what it was not picked for": (
        "int32[1]",
        [SCATTER, "c = Constant <value_ints = [5, 3, 3, 0]> ()", "g = Gather (s, c)", "out = ReduceSum (g)"],
        set(),
    ),
    "its shape": ("int64[1]", [SCATTER, "out = Shape (s)"], set()),
}  # fmt: skip
WHOLE = {
    "a sum": ("int32[1]", [SCATTER, "out = ReduceSum (s)"], "downstream of ReduceSum out every element may depend"),
    "a running sum": (
        "int32[6]", [SCATTER, "c = Constant <value_int = 0> ()", "out = CumSum (s, c)"],
        "downstream of CumSum out every element may depend",
    ),
    "indices": (
        "int32[6]",
        [
            SCATTER, "c = Constant <value_int = 7> ()", "seven = Cast <to = 6> (c)", "i = Sub (s, seven)",
            "six = Constant <value_int = 6> ()", "six2 = Cast <to = 6> (six)", "m = Mod (i, six2)",
            "out = Gather (other, m)",
        ],
        "downstream of Gather out every element may depend",
    ),
    "indices of a scatter node": (
        "int32[6]",
        [
            SCATTER, "c = Constant <value_int = 6> ()", "six = Cast <to = 6> (c)", "m = Mod (s, six)",
            "out = ScatterElements (other, m, data)",
        ],
        "indices of ScatterElements out depend on a contested element",
    ),
    "a condition of a body": (
        "int32[6]",
        [
            SCATTER, "c = Constant <value_ints = [2]> ()", "two = Gather (s, c)",
            "e = Constant <value_ints = [8]> ()", "eight = Cast <to = 6> (e)", "b = Equal (two, eight)",
            "out = If (b) <then_branch = t () => (int32[6] x) { x = Neg (data) }, "
            "else_branch = e () => (int32[6] y) { y = Abs (data) }>",
        ],
        "the condition of If out depends on a contested element",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_ELEMENT)
def test_exactly_the_elements_that_are_reached_are_excused(tmp_path: Path, name: str) -> None:
    shape, lines, reached = BY_ELEMENT[name]
    path = write(tmp_path, shape, *lines)
    size = compared(path, Planted(order="first")).comparisons[0].measure.elements
    (right,) = of_outputs(compared(path, Planted(order="first")))
    assert not right.measure.verdict.is_difference
    if right.measure.verdict is Verdict.CONTESTED:
        assert right.measure.excuse is not None
        assert (right.measure.contested, right.measure.excuse.elements) == (len(reached), len(reached))
        assert not right.measure.excuse.is_whole
    for place in range(size):
        found = compared(path, Planted(order="first", output=at(place)))
        (one,) = of_outputs(found)
        # one of the candidates does not come out of such a change, so even what only moves is found
        is_computed = name in {"added", "converted", "a condition", "added as updates"}
        assert one.measure.verdict is (
            Verdict.CONTESTED if place in reached and is_computed else Verdict.MISMATCH
        ), place
        if place not in reached:
            assert one.measure.worst is not None
            assert one.measure.mismatched == 1
            assert np.ravel_multi_index(one.measure.worst.index, one.got.shape) == place  # type: ignore[union-attr]


@pytest.mark.parametrize("name", WHOLE)
def test_behind_other_operators_a_tensor_is_excused_as_a_whole_and_the_report_says_so(
    tmp_path: Path, name: str
) -> None:
    shape, lines, why = WHOLE[name]
    path = write(tmp_path, shape, *lines)
    right = compared(path, Planted(order="first"))
    assert not right.differs
    found = compared(path, Planted(output=at(0)))
    (one,) = of_outputs(found)
    assert one.measure.verdict is Verdict.CONTESTED
    assert not found.differs
    told = next(row for row in document(found)["comparisons"] if row["level"] == "model")
    assert told["excuse"]["whole"] is True
    assert told["excuse"]["reason"].startswith(why)
    assert f": {why}" in report(found)


def test_the_report_says_that_single_elements_are_excused(tmp_path: Path) -> None:
    shape, lines, _ = BY_ELEMENT["added"]
    path = write(tmp_path, shape, *lines)
    reason = "contested elements of an upstream node were propagated there"
    excuse = {"whole": False, "elements": 1, "reason": reason}
    found = compared(path, Planted(order="first"))
    assert document(found)["comparisons"][0]["excuse"] == excuse
    assert "1 element unspecified by an upstream node" in report(found)
    wrong = document(compared(path, Planted(order="first", output=at(5))))["comparisons"][0]
    assert (wrong["verdict"], wrong["mismatched"], wrong["contested"]) == ("mismatch", 1, 1)
    assert wrong["worst"]["index"] == [5]
    none = document(compared(path, Planted()))["comparisons"][0]
    assert (none["verdict"], none["excuse"]) == ("equal", None)


def test_a_shape_that_depends_on_a_contested_element_is_open(tmp_path: Path) -> None:
    eight = ["c = Constant <value_int = 8> ()", "eight = Cast <to = 6> (c)"]
    path = write(tmp_path, "int64[1, N]", SCATTER, *eight, "b = Sub (s, eight)", "out = NonZero (b)")
    found = compared(path, Planted(order="first"))
    (one,) = of_outputs(found)
    assert one.measure.verdict is Verdict.CONTESTED
    assert document(found)["comparisons"][0]["excuse"]["elements"] is None
    assert "unspecified by an upstream node, even its shape" in report(found)


def test_loops_and_branches_are_followed(tmp_path: Path) -> None:
    loop = write(
        tmp_path,
        "int32[6]",
        "n = Constant <value_int = 2> ()",
        "go = Constant <value_int = 1> ()",
        "start = Cast <to = 9> (go)",
        "out = Loop (n, start, data) <body = body (int64 step, bool again, int32[6] old)"
        " => (bool on, int32[6] next) {",
        "on = Identity (again) s = ScatterND (old, indices, new) next = Add (s, other) }>",
    )
    for place in range(6):
        (one,) = of_outputs(compared(loop, Planted(order="first", output=at(place))))
        assert one.measure.verdict is (Verdict.CONTESTED if place == 2 else Verdict.MISMATCH), place
    branch = write(
        tmp_path,
        "int32[6]",
        "b = Cast <to = 9> (flag)",
        "out = If (b) <then_branch = t () => (int32[6] x) { x = ScatterND (data, indices, new) }, "
        "else_branch = e () => (int32[6] y) { y = Abs (data) }>",
        signature=SIGNATURE.replace("other)", "other, int32[1] flag)"),
    )
    for flag in (0, 1):
        feeds = {**FEEDS, "flag": np.array([flag], np.int32)}
        (one,) = of_outputs(compared(branch, Planted(order="first"), feeds=feeds))
        assert one.measure.verdict is (Verdict.CONTESTED if flag else Verdict.EQUAL)
        (one,) = of_outputs(compared(branch, Planted(order="first", output=at(1)), feeds=feeds))
        assert one.measure.verdict is Verdict.MISMATCH


STORE = "float[4] data, int64[2, 1] indices, float[2] new"
BRANCH = f"""{HEADER} branch (bool flag, {STORE}) => (float[4] out, float[4] plain, float[4] never) {{
  never = Relu (data)
  out, plain = If (flag) <
    then_branch = then () => (float[4] a, float[4] b) {{ a = ScatterND (data, indices, new)  b = Relu (data) }},
    else_branch = other () => (float[4] c, float[4] d) {{ c = Relu (data)  d = Neg (data) }}
  >
}}"""
FUNCTIONS = f"""<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
calls ({STORE}) => (float[4] out, float[4] plain) {{ out, plain = own.Store (data, indices, new) }}
<domain: "own", opset_import: ["" : 18]>
Store (table, places, rows) => (stored, other) {{
  stored = ScatterND (table, places, rows)
  other = Relu (table)
}}"""
BODIES = {
    "branch": (BRANCH, {"out"}),
    "condition": (f"""{HEADER} condition ({STORE}) => (float[4] out) {{
      written = ScatterND (data, indices, new)
      total = ReduceSum <keepdims = 0> (written)
      flag = Cast <to = 9> (total)
      out = If (flag) <
        then_branch = then () => (float[4] a) {{ a = Relu (data) }},
        else_branch = other () => (float[4] b) {{ b = Neg (data) }}
      >
    }}""", {"out"}),
    "captured": (f"""{HEADER} captured (bool flag, {STORE}) => (float[4] out, float[4] plain) {{
      written = ScatterND (data, indices, new)
      out, plain = If (flag) <
        then_branch = then () => (float[4] a, float[4] c) {{ a = Relu (written)  c = Neg (data) }},
        else_branch = other () => (float[4] b, float[4] d) {{ b = Neg (data)  d = Neg (data) }}
      >
    }}""", {"out"}),
    "loop": (f"""{HEADER} looped (int64 trips, bool go, float[4] second, float[4] third, {STORE})
      => (float[4] a, float[4] b, float[4] c) {{
      a, b, c = Loop (trips, go, data, second, third) <
        body = body (int64 step, bool again, float[4] x, float[4] y, float[4] z)
          => (bool on, float[4] x1, float[4] y1, float[4] z1) {{
          on = Identity (again)
          x1 = ScatterND (x, indices, new)
          y1 = Add (y, x)
          z1 = Relu (z)
        }}
      >
    }}""", {"a", "b"}),
    "function": (FUNCTIONS, {"out"}),
}  # fmt: skip


def open_outputs(model: Model, *scopes: str) -> set[str]:
    """Return the outputs of which something is open if runners found nodes contested, and nothing is computed."""
    sketch, observations = make_sketch(model), Observations(scopes)
    feeds = {
        input.names[0]: np.zeros([dim if isinstance(dim, int) else 1 for dim in input.shape or ()], type)
        for input in sketch.inputs
        if input.element_type is not None and (type := dtype(input.element_type)) is not None
    }
    watch_partially(
        sketch, feeds, observations, {scope: [np.ones(4, np.bool_)] for scope in scopes}, computes=False
    )
    return set(observations.unspecified or ())


@pytest.mark.parametrize("name", BODIES)
def test_exactly_what_depends_on_the_node(tmp_path: Path, name: str) -> None:
    text, expected = BODIES[name]
    model = read(save_onnx(text, tmp_path / "model.onnx"))
    (node,) = model.walk(frozenset({"ScatterND"}))
    assert open_outputs(model, node.scope) == expected
    assert open_outputs(model) == open_outputs(model, "nowhere") == set()


def test_a_loop_of_an_ir(tmp_path: Path) -> None:
    assert open_outputs(read(write_loop(tmp_path, 3)), "loop:body/written") == {"loop.0"}


@pytest.mark.onnxruntime
def test_a_contested_node_in_a_body_and_in_a_function(tmp_path: Path) -> None:
    feeds = {"data": floats(4), "indices": np.array([[1], [1]]), "new": floats(2)}
    branch = save_onnx(BRANCH, tmp_path / "branch.onnx")
    found = run(branch, ["onnxruntime"], {**feeds, "flag": np.array(True)})
    assert verdicts(found, Level.NODE) == {("out:then_branch/a", "onnxruntime"): Verdict.CONTESTED}
    found = run(branch, ["onnxruntime"], {**feeds, "flag": np.array(False)})
    reason = "it is not computed with these inputs"
    assert [(one.node, one.reason) for one in found.not_tapped] == [("out:then_branch/a", reason)]
    assert not found.differs
    found = run(save_onnx(FUNCTIONS, tmp_path / "calls.onnx"), ["onnxruntime"], feeds)
    assert set(verdicts(found, Level.NODE).values()) == {Verdict.CONTESTED}
    assert {one.caller for one in found.comparisons if one.level is Level.NODE} != {""}


def test_where_numpy_cannot_compute_the_model(tmp_path: Path) -> None:
    """What runners saw of a node, and what is known of the operators behind it."""

    def model(*, indices: str) -> str:
        ir, floats = IrText(), ("f32", (6,))
        raw, given = ir.parameter("data", shape=(6,)), ir.parameter("indices", "i64", (3, 1))
        new, places = ir.parameter("updates", shape=(3,)), given
        if indices != "known":
            places = ir.add("places", "Unheard", "extension", [given], [("i64", (3, 1))])
        before = ir.add("before", "Unheard", "extension", [raw], [floats])
        written = ir.add("s", "ScatterNDUpdate", "opset4", [before, places, new], [floats])
        for name, type in (("near", "Sigmoid"), ("far", "Softmax")):
            ir.add(
                f"result_{name}", "Result", "opset1", [ir.add(name, type, "opset1", [written], [floats])], []
            )
        return ir.write(tmp_path)

    data = np.arange(6, dtype=np.float32)
    feeds = {"data": data, "indices": FEEDS["indices"], "updates": np.array([7, 8, 9], np.float32)}

    class Elsewhere(FakeRunner):
        def run(self, *arguments: Any, **named: Any) -> Any:
            found = super().run(*arguments, **named)
            changed = self.changes[0](data)
            return replace(found, runs=({"near": changed, "far": changed},) * len(found.runs))

    for known in ("known", "unknown"):
        path = model(indices=known)
        for place in range(6):
            runners = [Elsewhere(name, wrong_at(at, by=20)) for name, at in (("a", 2), ("b", place))]
            found = compare(path, runners, CompareSettings(), feeds=feeds)
            assert found.outcomes[0].status is Status.UNSUPPORTED
            of = {one.tensor: one.measure.verdict for one in of_outputs(found, "b")}
            assert of["near"] is (Verdict.EQUAL if place == 2 else Verdict.MISMATCH), (known, place)
            assert of["far"] is (Verdict.EQUAL if place == 2 else Verdict.CONTESTED)


def test_two_models_and_saved_results(tmp_path: Path) -> None:
    shape, lines, _ = BY_ELEMENT["joined"]
    path = write(tmp_path, shape, *lines)

    class Changing(Planted):
        """Resolves one way in the first model, the other way in the second."""

        def run(self, *arguments: Any, **named: Any) -> Any:
            self.order = "first" if str(arguments[0]).endswith("other.onnx") else "last"
            return super().run(*arguments, **named)

    models = [read(path), read(shutil.copy(path, tmp_path / "other.onnx"))]
    for place, verdict in ((None, Verdict.CONTESTED), (1, Verdict.MISMATCH), (9, Verdict.MISMATCH)):
        runner = Changing() if place is None else Changing(output=at(place, runs=[1]))
        found = compare(models, [runner], CompareSettings(), with_numpy=False, feeds=FEEDS)
        between = [one for one in found.comparisons if one.relation is Relation.MODELS]
        assert {one.subject: one.measure.verdict for one in between} == {
            "numpy": Verdict.EQUAL, "planted": verdict,
        }  # fmt: skip
        change = unchanged if place is None else at(place)
        save(compared(path, Planted(order="first", output=change), keeps_runs=True), tmp_path / "results")
        again = compare(models[0], (), CompareSettings(), with_numpy=False, against=tmp_path / "results")
        (one,) = of_outputs(again, "saved:planted")
        assert one.measure.verdict is verdict


def test_equal_updates_excuse_nothing(tmp_path: Path) -> None:
    """Whichever of the equal updates stays, the number is known: another one is wrong."""
    path = write(tmp_path, "int32[6]", "out = ScatterND (data, indices, new)")
    feeds = FEEDS | {"new": np.array([7, 7, 9], np.int32)}
    right, wrong = Planted("right", order="first"), Planted("wrong", output=at(2))
    found = compared(path, right, wrong, feeds=feeds)
    assert not found.guarded
    (first,), (second,) = (of_outputs(found, name) for name in ("right", "wrong"))
    assert first.measure.verdict is Verdict.EQUAL
    assert second.measure.verdict is Verdict.MISMATCH


def test_updates_that_are_equal_by_chance_are_open(tmp_path: Path) -> None:
    """One of two equal updates is a contested element: another run may write another number."""
    lines = ["u = ScatterND (data, indices, new)", "i = Constant <value = int64[6, 1] {0, 1, 3, 3, 4, 5}> ()"]
    path = write(tmp_path, "int32[6]", *lines, "out = ScatterND (other, i, u)")
    data = FEEDS["data"].copy()
    data[3] = 8
    seen = Observations()
    sketch = make_sketch(read(path))
    watch_partially(sketch, FEEDS | {"data": data}, seen, {})
    assert seen.unspecified is not None
    origins = seen.unspecified["out"].origins
    assert origins is not None
    assert np.flatnonzero(origins).tolist() == [3]


@pytest.mark.parametrize(("source", "is_open"), [("own.Thing (x)", True), ("Expand (e, s)", False)])
def test_updates_that_are_not_computed(source: str, is_open: bool, tmp_path: Path) -> None:
    """NumPy knows no own.Thing: what it gives may be different numbers, and that of one element is one."""
    signature = "model (float[6] data, int64[3, 1] indices, float[3] x, float[1] x1)"
    lines = ["e = own.Thing (x1)", "s = Constant <value_ints = [3]> ()", f"u = {source}"]
    body = "\n".join([*lines, "out = ScatterND (data, indices, u)"])
    text = f"{HEADER}{signature} => (float[6] out) <float[3] u, float[1] e> {{\n{body}\n}}"
    path = save_onnx(text, tmp_path / "model.onnx")
    feeds = {
        "data": np.zeros(6, np.float32), "indices": FEEDS["indices"],
        "x": np.ones(3, np.float32), "x1": np.ones(1, np.float32),
    }  # fmt: skip
    seen = Observations()
    watch_partially(make_sketch(read(path)), feeds, seen, {})
    assert bool(seen.unspecified) == is_open
