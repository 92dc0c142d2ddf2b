"""Constants without elements, which OpenVINO's ONNX frontend reads without dimensions; all of it was measured."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper, save

from ir_scatter import read, runners
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import scatter_nodes
from ir_scatter.core.arrays import Array
from ir_scatter.defects import by_code
from ir_scatter.portability import diagnose, portability_to
from ir_scatter.runners.base import Runner, Status
from tests.models.onnx_graph import OnnxGraph

INT64 = np.int64


def source(name: str, array: np.ndarray, view: str) -> tuple[list[NodeProto], list[TensorProto]]:
    """Return the nodes and initializers that make an input of an array in some way."""
    tensor, numbers = numpy_helper.from_array(array, f"{name}_0"), f"{name}_numbers"
    if view == "initializer":
        return [], [numpy_helper.from_array(array, name)]
    if view == "Constant":
        return [helper.make_node("Constant", [], [name], value=tensor)], []
    if view == "Constant, Identity":
        constant = helper.make_node("Constant", [], [f"{name}_0"], value=tensor)
        return [constant, helper.make_node("Identity", [f"{name}_0"], [name])], []
    if view == "ConstantOfShape":
        shape = numpy_helper.from_array(np.array(array.shape, INT64), numbers)
        value = numpy_helper.from_array(np.zeros(1, array.dtype))
        return [helper.make_node(view, [numbers], [name], value=value)], [shape]
    more: list[TensorProto] = []
    if view in {"Reshape", "Unsqueeze, Squeeze"}:
        content = array.shape if view == "Reshape" else (0,)
        more = [numpy_helper.from_array(np.array(content, INT64), numbers)]
    if view == "Unsqueeze, Squeeze":
        first, second = view.split(", ")
        longer = helper.make_node(first, [f"{name}_0", numbers], [f"{name}_1"])
        return [longer, helper.make_node(second, [f"{name}_1", numbers], [name])], [tensor, *more]
    every: dict[str, dict[str, Any]] = {
        "Cast": {"to": tensor.data_type},
        "Reshape": {"allowzero": 1},
        "Transpose": {"perm": [*range(array.ndim)]},
    }
    inputs = [f"{name}_0", *(one.name for one in more)]
    return [helper.make_node(view, inputs, [name], **every.get(view, {}))], [tensor, *more]


def model(operator: str, views: Sequence[str], folder: Path) -> Path:
    """Write a scatter node of data of shape [2, 0]; the view "" is an input of the model."""
    shapes: list[tuple[int, ...]] = [(2, 0), (1, 0), (1, 0)]
    if operator == "ScatterND":
        shapes = [(2, 0), (0, 1), (0, 0)]
    names = ("data", "indices", "updates")
    nodes, initializers, inputs = list[NodeProto](), list[TensorProto](), []
    for name, shape, view in zip(names, shapes, views, strict=True):
        array = np.zeros(shape, INT64 if name == "indices" else np.float32)
        if not view:
            type = TensorProto.INT64 if name == "indices" else TensorProto.FLOAT
            inputs.append(helper.make_tensor_value_info(name, type, shape))
            continue
        more, constants = source(name, array, view)
        nodes += more
        initializers += constants
    nodes.append(helper.make_node(operator, names, ["y"], name="node"))
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 0])
    graph = helper.make_graph(nodes, "g", inputs, [output], initializers)
    path = folder / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def codes(operator: str, views: Sequence[str], folder: Path) -> list[str]:
    loaded = read(model(operator, views, folder))
    (node,) = scatter_nodes(loaded.graph, Facts(model=loaded))
    found = []
    for code in ("DEV134", "DEV135"):
        affects = by_code()[code].affects
        assert affects is not None
        meeting = affects(node)
        if meeting is not None:
            assert meeting.when == ""
            found.append(code)
    return found


AS_SCALARS = (
    "initializer", "Constant", "Constant, Identity", "Identity", "Cast", "Abs", "Unsqueeze, Squeeze",
)  # fmt: skip


@pytest.mark.parametrize("view", AS_SCALARS)
def test_a_constant_without_elements_that_is_read_as_a_scalar(view: str, tmp_path: Path) -> None:
    assert codes("ScatterElements", (view, view, view), tmp_path) == ["DEV135"]
    assert codes("ScatterElements", ("initializer", view, "Identity"), tmp_path) == ["DEV135"]
    assert codes("ScatterElements", (view, "", ""), tmp_path) == ["DEV134"]
    assert codes("ScatterElements", (view, view, "ConstantOfShape"), tmp_path) == ["DEV134"]
    assert codes("ScatterND", (view, view, view), tmp_path) == ["DEV134"]
    assert codes("ScatterND", ("", "", view), tmp_path) == ["DEV134"]


@pytest.mark.parametrize("view", ["Reshape", "Transpose"])
def test_an_operator_that_is_refused_where_its_input_is_read_as_a_scalar(view: str, tmp_path: Path) -> None:
    assert codes("ScatterElements", (view, view, view), tmp_path) == ["DEV134"]
    assert codes("ScatterND", ("", view, ""), tmp_path) == ["DEV134"]


def test_an_operator_without_a_kernel_is_followed_too(tmp_path: Path) -> None:
    assert codes("ScatterElements", ("Sin", "", ""), tmp_path) == ["DEV134"]
    assert codes("ScatterND", ("Sin", "", "ConstantOfShape"), tmp_path) == ["DEV134"]


def test_what_is_made_without_a_constant_of_no_elements(tmp_path: Path) -> None:
    for operator in ("ScatterElements", "ScatterND"):
        assert codes(operator, ["ConstantOfShape"] * 3, tmp_path) == []
        assert codes(operator, [""] * 3, tmp_path) == []


def test_the_initializers_of_a_model_behind_identity(tmp_path: Path) -> None:
    loaded = read(model("ScatterElements", ["Identity"] * 3, tmp_path))
    found = diagnose(loaded, portability_to(("openvino:CPU@2026.4.1",)))
    assert [one.code for one in found if one.code.startswith("DEV13")] == ["DEV135"]


def folded(folder: Path, indices: Sequence[int | None], constants: Sequence[str]) -> Path:
    """Write a scatter node of data of shape [4, 5, 1, 1] without updates; some inputs are initializers."""
    given = {"data": (4, 5, 1, 1), "indices": indices, "updates": (0, 3, 1, 1)}
    graph = OnnxGraph()
    for name, shape in given.items():
        if name in constants:
            graph.constant(name, np.ones([size or 0 for size in shape], np.float32))
        else:
            graph.input(name, "i64" if name == "indices" else "f32", shape)
    graph.output(graph.add("ScatterND", [*given], "y", "node"), shape=given["data"])
    return graph.write(folder / "folded.onnx")


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("indices", "constants", "is_refused"),
    [
        ((0, 3, None), ("data", "updates"), False),
        ((0, 3, None), ("updates",), True),
        ((0, 3, 2), ("data", "updates"), True),
        ((None, 3, None), ("data", "updates"), True),
        ((None, 3, 2), ("data", "updates"), True),
    ],
)
def test_a_node_that_is_replaced_by_constant_data(
    indices: Sequence[int | None], constants: Sequence[str], is_refused: bool, tmp_path: Path
) -> None:
    pytest.importorskip("openvino")
    path = folded(tmp_path, indices, constants)
    found = [one.code for one in diagnose(read(path), portability_to(("openvino:CPU@2026.4.1",)))]
    assert ("DEV134" in found) == is_refused
    feeds: dict[str, Array] = {
        "indices": np.zeros((0, 3, 2), INT64), "data": np.ones((4, 5, 1, 1), np.float32)
    }  # fmt: skip
    runner = runners.find("CPU")
    try:
        fed = {name: feeds[name] for name in feeds if name not in constants}
        outcome = runner.run(path, fed, timeout=60)
    finally:
        runner.close()
    assert (outcome.status is not Status.OK) == is_refused
    if not is_refused:
        np.testing.assert_array_equal(outcome.outputs["y"], feeds["data"])


_HEAD = """<ir_version: 10, opset_import: ["": 18]>
g (bool flag, int64[3, 0] at, float[3, 0] fed, float[2, 3, 0] parts) => (float[3, 0] z)
<float[3, 0] empty = {}, float[2, 3, 0] empties = {}, float[3, 0] bare = {}> {
  three = Constant <value = int64 {3}> () go = Constant <value = bool {1}> ()
  node = Constant <value = float[3, 0] {}> ()
  shape = Constant <value_ints = [3, 0]> () made = ConstantOfShape (shape) """
_IN_LOOP = """%s = Loop (three, go, {}) <body = body (int64 step, bool again, float[3, 0] old) =>
  (bool on, float[3, 0] new) {{ on = Identity (again) {} }}>"""
_LOOP, _MIDDLE = _IN_LOOP % "z", _IN_LOOP % "q"
_INNER = """new = Loop (three, go, old) <body = inner (int64 step_1, bool again_1, float[3, 0] old_1) =>
  (bool on_1, float[3, 0] new_1) {{ on_1 = Identity (again_1) {} }}>"""
_IF = """{} = If (flag) <then_branch = yes () => (float[3, 0] one) {{ {} }},
  else_branch = no () => (float[3, 0] other) {{ {} }}>"""
_SCAN = """z, there, all = Scan ({}, at, {}) <num_scan_inputs = 1,
  body = body (float[3, 0] old, int64[3, 0] here, float[3, 0] part) =>
    (float[3, 0] new, int64[3, 0] next, float[3, 0] row) {{
    new = ScatterElements <axis = 1> (old, here, part) row = Identity (old) next = Identity (here) }}>"""


def scatter(data: str, updates: str, out: str = "new") -> str:
    return f" {out} = ScatterElements <axis = 1> ({data}, at, {updates}) "


_OTHER = "other = Identity (fed)"
_BODIES = {
    "carried": (_LOOP.format("empty", scatter("old", "fed")), True),
    "carried, from a node": (_LOOP.format("node", scatter("old", "fed")), True),
    "carried, updates": (_LOOP.format("empty", scatter("fed", "old")), True),
    "carried, computed": (_LOOP.format("empty", "w = Relu (old)" + scatter("w", "fed")), True),
    "replaced": (_LOOP.format("empty", f"{scatter('old', 'fed', 'q')} w = Add (q, fed) new = Relu (w)"), True),
    "unread": (_LOOP.format("empty", f"{scatter('old', 'fed', 'unread')} new = Identity (fed)"), False),
    "named in a loop": (_LOOP.format("fed", scatter("old", "empty")), True),
    "named in a loop, computed": (_LOOP.format("fed", "w = Neg (node)" + scatter("old", "w")), True),
    "fed to a loop": (_LOOP.format("fed", scatter("old", "fed")), False),
    "made of a shape": (_LOOP.format("made", scatter("old", "fed")), False),
    "named in a branch": (_IF.format("z", scatter("empty", "fed", "one"), _OTHER), True),
    "from both branches": (
        _IF.format("q", "one = Identity (empty)", "other = Neg (node)") + scatter("q", "fed", "z"), True
    ),
    "from a loop": (_MIDDLE.format("empty", "new = Relu (old)") + scatter("q", "fed", "z"), True),
    "from a loop that replaces it": (
        _MIDDLE.format("empty", "new = Relu (fed)") + scatter("q", "fed", "z"), False
    ),
    "carried in a loop in a loop": (
        _LOOP.format("empty", _INNER.format(scatter("old_1", "fed", "new_1"))), True
    ),
    "named in a loop in a loop": (
        _LOOP.format("fed", _INNER.format(scatter("old_1", "empty", "new_1"))), True
    ),
    "carried, in a branch of a loop": (
        _LOOP.format("empty", _IF.format("new", scatter("old", "fed", "one"), _OTHER)), True
    ),
    "state of a Scan": (_SCAN.format("empty", "parts"), True),
    "parts of a Scan": (_SCAN.format("fed", "empties"), True),
    "nothing in a Scan": (_SCAN.format("fed", "parts"), False),
}  # fmt: skip
"""Models whose scatter node is in a body, or after one, and whether OpenVINO 2026.4.1 refuses to read it."""


_EMPTY = np.zeros((3, 0), np.float32)
FEEDS: dict[str, Array] = {
    "flag": np.array(True), "at": _EMPTY.astype(INT64), "fed": _EMPTY, "parts": np.stack([_EMPTY] * 2)
}  # fmt: skip


def in_bodies(text: str, folder: Path) -> Path:
    model = onnx.parser.parse_model(_HEAD + text + " }")
    for tensor in model.graph.initializer:
        if tensor.name != "bare":
            tensor.raw_data = b""  # as numpy_helper.from_array does
    used = {name for node in walk(model.graph) for name in node.input}
    kept = [one for one in model.graph.initializer if one.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    path = folder / "model.onnx"
    save(model, path)
    return path


def walk(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph and of its bodies."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from walk(attribute.g)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    pytest.importorskip("openvino")
    runner = runners.find("CPU")
    yield runner
    runner.close()


@pytest.mark.openvino
@pytest.mark.parametrize("place", _BODIES)
def test_a_constant_that_enters_or_leaves_a_body(place: str, tmp_path: Path, runner: Runner) -> None:
    body, is_refused = _BODIES[place]
    path = in_bodies(body, tmp_path)
    found = diagnose(read(path), portability_to(("openvino:CPU@2026.4.1",)))
    told = [(one.code, one.severity) for one in found if one.code in {"DEV134", "DEV135"}]
    assert told == [("DEV134", "error")] * is_refused
    outcome = runner.run(path, FEEDS, timeout=60)
    assert (outcome.status is not Status.OK) == is_refused, outcome.message


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (scatter("bare", "fed", "z"), "no array is given for bare"),
        (f"w = Relu (bare) {scatter('fed', 'w', 'z')}", "no array is given for bare"),
        (_LOOP.format("bare", scatter("old", "fed")), "no array is given for bare"),
        (_LOOP.format("fed", scatter("old", "bare")), "canonical inputs size"),
        (_IF.format("z", scatter("fed", "bare", "one"), _OTHER), "Non-existent connection"),
        ("i = Cast <to = 7> (bare) z = ScatterElements <axis = 1> (bare, i, bare)", "no array is given for bare"),
    ],
)  # fmt: skip
def test_an_initializer_without_a_field_of_data(
    text: str, message: str, tmp_path: Path, runner: Runner
) -> None:
    path = in_bodies(text, tmp_path)
    found = diagnose(read(path), portability_to(("openvino:CPU@2026.4.1",)))
    assert [one.code for one in found if one.code in {"DEV134", "DEV135"}] == ["DEV134"]
    outcome = runner.run(path, FEEDS, timeout=60)
    assert outcome.status is Status.REFUSED
    assert message in outcome.message


_NAMED = _IF.format("z", "one = ScatterElements <axis = %d> (empty, none, node)", _OTHER)
_ALL_CARRIED = """z, j, v = Loop (three, go, empty, none, node) <
  body = body (int64 step, bool again, float[3, 0] a, int64[3, 0] b, float[3, 0] c) =>
    (bool on, float[3, 0] d, int64[3, 0] e, float[3, 0] f) {
    on = Identity (again) d = ScatterElements <axis = %d> (a, b, c) e = Identity (b) f = Identity (c) }>"""
_ONE_CARRIED = _LOOP.format("empty", "new = ScatterElements <axis = %d> (old, none, node)")


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("text", "axis", "code", "status"),
    [
        ("z = ScatterElements <axis = %d> (empty, none, node)", 0, "DEV135", Status.CRASHED),
        ("z = ScatterElements <axis = %d> (empty, none, node)", 1, "DEV134", Status.REFUSED),
        ("z = ScatterElements <axis = %d> (empty, none, node)", -2, "DEV134", Status.REFUSED),
        (_NAMED, -1, "DEV135", Status.CRASHED),
        (_NAMED, 1, "DEV134", Status.REFUSED),
        (_ONE_CARRIED, 0, "DEV134", Status.REFUSED),
        (_ONE_CARRIED, 1, "DEV134", Status.REFUSED),
        (_ALL_CARRIED, 0, "DEV134", Status.REFUSED),
        (_ALL_CARRIED, 1, "DEV134", Status.REFUSED),
    ],
)
def test_three_constants(
    text: str, axis: int, code: str, status: Status, tmp_path: Path, runner: Runner
) -> None:
    path = in_bodies(f"none = Constant <value = int64[3, 0] {{}}> () {text % axis}", tmp_path)
    found = diagnose(read(path), portability_to(("openvino:CPU@2026.4.1",)))
    assert [one.code for one in found if one.code in {"DEV134", "DEV135"}] == [code]
    assert runner.run(path, FEEDS, timeout=60).status is status


def test_a_long_chain_of_branches_is_followed_once(tmp_path: Path) -> None:
    """Each of them gives what the one before gives, by two ways."""
    names = ["empty", *(f"q{number}" for number in range(40))]
    steps = [
        _IF.format(after, f"one = Identity ({before})", f"other = Neg ({before})")
        for before, after in pairwise(names)
    ]
    text = " ".join(steps) + scatter(names[-1], "fed", "z")
    loaded = read(in_bodies(text, tmp_path))
    assert "DEV134" in {one.code for one in diagnose(loaded, portability_to(("openvino:CPU@2026.4.1",)))}
