"""Shapes behind loops, scans and branches: what their bodies tell, held against what OpenVINO infers."""

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

import ir_scatter
from ir_scatter.core.diagnostics import Severity
from tests.analysis.partial_shapes import OpenvinoShapes
from tests.models.ir_text import IrText
from tests.models.nested_ir import CONDITION, ITERATION, PARTS, carried, put_in, put_out, result

BODY = "<body = b (int64 it, bool ci, float[] s) => (bool co, so) {{ co = {go} so = {step} }}>"
STACK = "<body = b (int64 it, bool ci) => (bool co, so) {{ co = {go} so = Neg (w) }}>"


def loop(start: str, step: str, go: str = "Identity (ci)", trips: str = "n") -> str:
    return f"u = Loop ({trips}, t, {start}) " + BODY.format(go=go, step=step)


def stacked(go: str = "Identity (ci)", trips: str = "n") -> str:
    """Return a loop that gives a row [4] for each iteration."""
    return f"u = Loop ({trips}, t) " + STACK.format(go=go)


PUT = "y = ScatterND (x, k, u)"
MODELS = {  # k is [2, 1], so that u must be [2, 4]
    "carried": (loop("w", "Neg (s)"), "updates is [4], expected [2, 4]"),
    "carried and what it is added to": (loop("three", "Add (s, w)"), "updates is [3, 4], expected [2, 4]"),
    "carried, broadcast": (loop("three_1", "Add (s, w)"), "updates is [3, ?], expected [2, 4]"),
    "carried, as it must be": (loop("two", "Neg (s)"), ""),
    "carried and growing": (loop("w_row", "Concat <axis = 0> (s, w_row)"), ""),
    "carried and growing on the other axis": (
        loop("three", "Concat <axis = 1> (s, three)"), "updates is [3, ?], expected [2, 4]",
    ),
    "carried with another rank": (loop("w", "Unsqueeze (s, zero)"), ""),
    "as often as a constant": (stacked(), "updates is [3, 4], expected [2, 4]"),
    "as often as a constant, and rightly": (stacked(trips="two_times"), ""),
    "as often as an input": (stacked(trips="m"), ""),
    "at most once": (stacked("Not (ci)", "once"), "updates is [0..1, 4], expected [2, 4]"),
    "at most three times": (stacked("Not (ci)"), ""),
    "a body with a constant condition": (stacked("Identity (t)"), "updates is [3, 4], expected [2, 4]"),
    "a scan": (
        "u = Scan <num_scan_inputs = 1, body = b (e) => (so) { so = Neg (e) }> (three)",
        "updates is [3, 4], expected [2, 4]",
    ),
    "a scan that carries": (
        "u, q = Scan <num_scan_inputs = 1, body = b (s, e) => (so, eo) { so = Neg (s) eo = Neg (e) }> (w, three)",
        "updates is [4], expected [2, 4]",
    ),
    "a branch": (
        "u = If (c) <then_branch = a () => (d) { d = Neg (w) }, else_branch = e () => (g) { g = Abs (w) }>",
        "updates is [4], expected [2, 4]",
    ),
    "branches of two ranks": (
        "u = If (c) <then_branch = a () => (d) { d = Neg (w) }, else_branch = e () => (g) { g = Abs (two) }>", "",
    ),
    "a loop in a loop": (
        "u = Loop (n, t, w) <body = a (int64 jt, bool di, float[] r) => (bool do, ro) { do = Identity (di) "
        + loop("r", "Neg (s)").replace("u =", "ro =").replace("(n, t,", "(n, di,")
        + " }>",
        "updates is [4], expected [2, 4]",
    ),
    "through nodes": (loop("w", "Neg (s)").replace("u =", "v =") + " u = Relu (v)", "updates is [4], expected [2, 4]"),
}  # fmt: skip
INSIDE = """u = Loop (n, t, x) <body = b (int64 it, bool ci, float[] s) => (bool co, so)
{ co = Identity (ci) so = ScatterND (s, k, three) }> y = Identity (u)"""
TEXT = """<ir_version: 8, opset_import: ["" : 18, "my" : 1]>
m (float[5, 4] x, float[4] w, float[1, 4] w_row, float[2, 4] two, float[3, 4] three, float[3, 1] three_1, bool c, int64 m)
=> (float[...] y)
<int64[2, 1] k = {1, 3}, int64 n = {3}, int64 once = {1}, int64 two_times = {2}, bool t = {1}, int64[1] zero = {0}>
{ NODES }"""


def model_of(nodes: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(TEXT.replace("NODES", nodes).replace("float[...]", "float"))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for body in (attribute.g for node in model.graph.node for attribute in node.attribute):
        for value in (*body.input, *body.output):
            if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
                value.type.tensor_type.ClearField("shape")
    return model


def errors_of(model: onnx.ModelProto) -> list[str]:
    found = ir_scatter.validate(ir_scatter.read("m.onnx", model.SerializeToString()))
    return [one.message.partition(" = ")[0] for one in found if one.severity is Severity.ERROR]


@pytest.mark.parametrize("name", MODELS)
def test_what_is_wrong_behind_a_body(name: str) -> None:
    nodes, expected = MODELS[name]
    assert errors_of(model_of(f"{nodes} {PUT}")) == [expected] * bool(expected)


def test_what_is_wrong_in_a_body() -> None:
    assert errors_of(model_of(INSIDE)) == ["updates is [3, 4], expected [2, 4]"]
    assert errors_of(model_of(INSIDE.replace("three)", "two)"))) == []


def test_what_is_wrong_in_a_function() -> None:
    nodes, expected = MODELS["carried"]
    function = f"""<domain: "my", opset_import: ["" : 18]> f (x, k, w, n, t) => (y) {{ {nodes} {PUT} }}"""
    text = TEXT.replace("NODES", "y = my.f (x, k, w, n, t)").replace("float[...]", "float") + function
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for value in model.functions[0].node[0].attribute[0].g.input[2:]:
        value.type.tensor_type.ClearField("shape")
    assert errors_of(model) == [expected]


# The same in an IR whose ports say nothing.


def write_loop(folder: Path, *, trips: int, rows: int, is_stacked: bool) -> Path:
    """Write a Loop that carries [rows, 4], or stacks [1, 4], and a ScatterNDUpdate of two rows behind it."""
    ir = IrText()
    data, start = (
        ir.parameter("data", shape=(5, 4)),
        ir.parameter("start", shape=(1 if is_stacked else rows, 4)),
    )
    count, goes = ir.const("count", "i64", trips), ir.const("goes", "boolean", True)
    body = IrText(ir.weights)
    step, old = body.parameter("step", "i64", (1,)), body.parameter("old", shape=("?", 4))
    new = body.add("new", "Relu", "opset1", [old], [("f32", (-1, 4))])
    kept, again = result(body, new), result(body, body.const("again", "boolean", True))
    maps = put_in(-1, step, ITERATION) + put_in(2, old) + put_out(-1, again, CONDITION)
    maps += put_out(3, kept) + (put_out(4, result(body, new), PARTS) if is_stacked else "")
    inside = f"<port_map>{maps}</port_map>{carried([(kept, old)])}{body.body('body')}"
    made = [("f32", (-1, 4))] * (1 + is_stacked)
    loop = ir.add("loop", "Loop", "opset5", [count, goes, start], made, inside=inside)
    updates = loop if not is_stacked else type(loop)(loop.layer, loop.port + 1, "f32", (-1, 4))
    indices = ir.const("indices", "i64", [[1], [3]])
    put = ir.add("put", "ScatterNDUpdate", "opset4", [data, indices, updates], [("f32", (5, 4))])
    result(ir, put)
    return Path(ir.write(folder, f"loop_{trips}_{rows}_{is_stacked}"))


@pytest.fixture(scope="module")
def openvino() -> Iterator[OpenvinoShapes]:
    pytest.importorskip("openvino")
    child = OpenvinoShapes()
    yield child
    child.close()


@pytest.mark.openvino
@pytest.mark.parametrize("is_stacked", [True, False])
@pytest.mark.parametrize("rows", [2, 3])
def test_an_ir_whose_ports_are_open(
    rows: int, is_stacked: bool, openvino: OpenvinoShapes, tmp_path: Path
) -> None:
    path = write_loop(tmp_path, trips=rows, rows=rows, is_stacked=is_stacked)
    found = ir_scatter.validate(ir_scatter.read(str(path)))
    expected = [] if rows == 2 else [f"updates is [{rows}, 4], expected [2, 4]"]
    assert [one.message.partition(" = ")[0] for one in found] == expected
    assert (openvino.ask(path) is None) == (rows != 2)


@pytest.mark.openvino
def test_openvino_agrees(openvino: OpenvinoShapes, tmp_path: Path) -> None:
    """OpenVINO refuses the same, but what it does not follow: other ranks, conditions that are computed."""
    path = tmp_path / "m.onnx"
    for name, (nodes, expected) in MODELS.items():
        path.write_bytes(model_of(f"{nodes} {PUT}").SerializeToString())
        if name not in {"carried with another rank", "branches of two ranks", "at most once"}:
            assert (openvino.ask(path) is None) == bool(expected), name
