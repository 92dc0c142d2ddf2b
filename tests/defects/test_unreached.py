"""Defects of nodes that a runtime drops, folds, or computes only in some runs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.defects import all_defects
from ir_scatter.defects.base import Stage, Symptom
from ir_scatter.defects.evidence import Target
from ir_scatter.portability import Portability, diagnose
from ir_scatter.reading import read
from tests.models.ir_text import IrText, Output
from tests.models.nested_ir import CONDITION, carried, put_in, put_out, result
from tests.models.onnx_text import save

CPU, ORT = Target("openvino:CPU", "2026.4.1"), Target("onnxruntime", "1.31.1")
HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
CONSTANTS = "<int64[1, 2] at = {1, 0}, bool no = {0}, bool yes = {1}, int64 none = {0}, int64[1] first = {0}>"
HALVES = 'h = Cast <to = 10> (x) y = ScatterElements <reduction = "add"> (h, at, n) s = Cast <to = 1> (y)'


def told(path: Path | str, target: Target, code: str) -> list[Diagnostic]:
    found = diagnose(read(path), Portability([target], [], None))
    return [one for one in found if one.code == code]


def scalar_index(ir: IrText, data: Output) -> Output:
    """Add slices with a 0-D index, which the CPU plugin refuses when it compiles."""
    index, axis = ir.const(f"at{ir.count}", "i64", 1), ir.const(f"axis{ir.count}", "i64", 0)
    new = ir.const(f"new{ir.count}", "f32", [5, 6])
    return ir.add("bad", "ScatterUpdate", "opset3", [data, index, new, axis], [("f32", data.dims)])


def if_of(ir: IrText, flag: Output, data: Output) -> Output:
    inside = ""
    for name in ("then", "else"):
        body = IrText(ir.weights)
        old = body.parameter("old", shape=(3, 2))
        number = result(body, scalar_index(body, old) if name == "then" else old)
        maps = put_in(1, old) + put_out(2, number)
        inside += f"<{name}_port_map>{maps}</{name}_port_map>{body.body(f'{name}_body')}"
    return ir.add("if", "If", "opset8", [flag, data], [("f32", (3, 2))], inside=inside)


def loop_of(ir: IrText, trips: Output, data: Output) -> Output:
    body = IrText(ir.weights)
    old = body.parameter("old", shape=(3, 2))
    number = result(body, scalar_index(body, old))
    again = result(body, body.const("again", "boolean", True))
    maps = put_in(2, old) + put_out(3, number) + put_out(-1, again, CONDITION)
    inside = f"<port_map>{maps}</port_map>{carried([(number, old)])}{body.body('body')}"
    start = ir.const("start", "boolean", True)
    return ir.add("loop", "Loop", "opset5", [trips, start, data], [("f32", (3, 2))], inside=inside)


def write_ir(way: str, folder: Path) -> str:
    ir = IrText()
    data = ir.parameter("x", shape=(3, 2))
    if way == "plain":
        made = scalar_index(ir, data)
    elif way == "dead":
        scalar_index(ir, data)
        made = data
    elif way == "shape":
        made = ir.add("shape", "ShapeOf", "opset3", [scalar_index(ir, data)], [("i64", (2,))])
    elif way.startswith("inferred shape"):  # measured: OpenVINO infers it and drops the node
        known = ir.const("k", "f32", [[1, 2], [3, 4], [5, 6]])
        sources, words = [ir.parameter("z", shape=("?", 2)), known], {"auto_broadcast": "none"}
        bad = scalar_index(ir, ir.add("sum", "Add", "opset1", sources, [("f32", (-1, 2))], words))
        made = ir.add("shape", "ShapeOf", "opset3", [bad], [("i64", (2,))], {"output_type": "i64"})
        if way == "inferred shape, read":
            result(ir, bad)
    elif way == "branch excluded":
        made = if_of(ir, ir.const("flag", "boolean", False), data)
    elif way == "branch taken":
        made = if_of(ir, ir.const("flag", "boolean", True), data)
    elif way == "branch fed":
        made = if_of(ir, ir.parameter("flag", "boolean"), data)
    elif way == "no trips":
        made = loop_of(ir, ir.const("trips", "i64", 0), data)
    elif way == "trips fed":
        made = loop_of(ir, ir.parameter("trips", "i64"), data)
    else:
        constant = ir.const("k", "f32", [[1, 2], [3, 4], [5, 6]])
        if way == "behind Roll":
            by, axes = ir.const("by", "i64", [1]), ir.const("axes", "i64", [0])
            constant = ir.add("roll", "Roll", "opset7", [constant, by, axes], [("f32", (3, 2))])
        else:
            constant = ir.add("sin", "Sin", "opset1", [constant], [("f32", (3, 2))])
        made = scalar_index(ir, constant)
    result(ir, made)
    return ir.write(folder)


@pytest.mark.parametrize(
    ("way", "severities"),
    [
        ("plain", [Severity.ERROR]),
        ("dead", []),
        ("shape", []),
        ("inferred shape", [Severity.WARNING]),
        ("inferred shape, read", [Severity.ERROR]),
        ("branch excluded", []),
        ("branch taken", [Severity.ERROR]),
        ("branch fed", [Severity.ERROR]),
        ("no trips", [Severity.ERROR]),
        ("trips fed", [Severity.ERROR]),
        ("behind Roll", [Severity.ERROR]),
        ("behind Sin", [Severity.WARNING]),
    ],
)
def test_what_openvino_refuses_when_it_compiles(
    way: str, severities: Sequence[Severity], tmp_path: Path
) -> None:
    diagnostics = told(write_ir(way, tmp_path), CPU, "DEV101")
    assert [one.severity for one in diagnostics] == severities
    if way == "inferred shape":
        assert (
            "if only the output's shape is read, and the device does not infer it" in diagnostics[0].message
        )


def branch(condition: str) -> str:
    then = f"<then_branch = a () => (p) {{ {HALVES.replace('s =', 'p =')} }}, "
    return f"out = If ({condition}) {then} else_branch = b () => (q) {{ q = Relu (x) }}>"


def loop(trips: str) -> str:
    body = HALVES.replace("(x)", "(old)").replace("s =", "p =")
    head = "body = b (int64 i, bool go, float[3, 2] old) => (bool go, float[3, 2] p)"
    return f"out = Loop ({trips}, yes, x) <{head} {{ {body} }}>"


OPEN_INDICES = (
    'h = Cast <to = 10> (x) j = NonZero (x) y = ScatterElements <reduction = "add"> (h, j, n) out = Shape (y)'
)
"""The shape of the output is that of data, whatever is not known of indices."""
SHAPE_BEHIND_IF = (
    f"{HALVES} z = If (flag) <then_branch = a () => (p) {{ d = Shape (s) p = Reshape (s, d) }}, "
    "else_branch = b () => (q) { q = Identity (s) }> out = Shape (z)"
)
"""onnxruntime 1.32.0 does not infer the shape of such an If, and computes the node."""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{HALVES} out = Relu (s)", [(Severity.ERROR, "")]),
        (f"{HALVES} out = Relu (x)", [(Severity.ERROR, "")]),
        (f"{HALVES} out = Shape (s)", []),
        (f"{HALVES} z = Relu (s) out = Shape (s)", [(Severity.ERROR, "")]),
        (f"{HALVES} out = Size (s)", [(Severity.ERROR, "")]),
        (OPEN_INDICES, []),
        (SHAPE_BEHIND_IF, [(Severity.WARNING, "does not infer it")]),
        (branch("no"), []),
        (branch("yes"), [(Severity.ERROR, "")]),
        (branch("flag"), [(Severity.WARNING, "if the branch is taken")]),
        (loop("none"), []),
        (loop("trips"), [(Severity.WARNING, "if the loop runs")]),
    ],
)
def test_what_onnxruntime_refuses_when_it_runs(
    body: str, expected: Sequence[tuple[Severity, str]], tmp_path: Path
) -> None:
    head = "g (float[3, 2] x, float16[1, 2] n, bool flag, int64 trips) => (out)"
    path = save(f"{HEADER}{head} {CONSTANTS} {{ {body} }}", tmp_path / "model.onnx")
    found = told(path, ORT, "DEV401")
    assert [one.severity for one in found] == [severity for severity, _ in expected]
    assert all(when in one.message for one, (_, when) in zip(found, expected, strict=True))


def cache(condition: str) -> str:
    write = "w = Cast <to = 17> (x) y = TensorScatter <axis = 1> (w, n, at) p = Cast <to = 1> (y)"
    then = f"then_branch = a () => (p) {{ {write} }}"
    return f"out = If ({condition}) <{then}, else_branch = b () => (q) {{ q = Relu (x) }}>"


@pytest.mark.parametrize(("condition", "count"), [("no", 0), ("flag", 1)])
def test_what_onnxruntime_refuses_when_it_compiles(condition: str, count: int, tmp_path: Path) -> None:
    text = (
        '<ir_version: 11, opset_import: ["" : 24]>\n'
        "g (float[1, 3, 2] x, float8e4m3fn[1, 1, 2] n, bool flag) => (out) "
        f"<int64[1] at = {{0}}, bool no = {{0}}> {{ {cache(condition)} }}"
    )
    found = told(save(text, tmp_path / "model.onnx"), ORT, "DEV404")
    assert [one.severity for one in found] == [Severity.ERROR] * count


@pytest.mark.parametrize(
    ("condition", "nodes", "count"),
    [
        ("no", "", 0),
        ("c", "c = Identity (no)", 0),
        ("c", "c = Constant <value = bool {0}> ()", 0),
        ("yes", "", 1),
        ("c", "c = Not (yes)", 1),
        ("c", "c = Cast <to = 9> (zero)", 1),
        ("flag", "", 1),
    ],
)
def test_a_loop_that_openvino_does_not_read(condition: str, nodes: str, count: int, tmp_path: Path) -> None:
    body = (
        "body = b (int64 i, bool go, float[3, 1] old) => (bool go, float[3, 1] p) "
        "{ p = ScatterElements (old, at, n) }"
    )
    text = (
        "g (float[3, 1] x, bool flag) => (out) <int64[0, 1] at = {}, float[0, 1] n = {}, bool no = {0}, "
        f"bool yes = {{1}}, int64 zero = {{0}}, int64 two = {{2}}> "
        f"{{ {nodes} out = Loop (two, {condition}, x) <{body}> }}"
    )
    found = told(save(HEADER + text, tmp_path / "model.onnx"), CPU, "DEV134")
    assert [one.severity for one in found] == [Severity.ERROR] * count


@pytest.mark.parametrize("way", ["read", "broadcast", "dead", "shape", "shape of sum", "no elements"])
def test_a_wrong_value_matters_where_it_is_read(way: str, tmp_path: Path) -> None:
    ir = IrText()
    data, index = ir.parameter("d", "i32", ["?"]), ir.parameter("at", "i64", [1])
    new, axis = ir.parameter("n", "i32", [1]), ir.const("axis", "i64", 0)
    inputs, words = [data, index, new, axis], {"reduction": "mean"}
    made = ir.add("mean", "ScatterElementsUpdate", "opset12", inputs, [("i32", (-1,))], words)
    if way in {"broadcast", "shape of sum"}:
        made = ir.add("sum", "Add", "opset1", [made, new], [("i32", (-1,))])
    if way.startswith("shape"):
        made = ir.add("shape", "ShapeOf", "opset3", [made], [("i64", (1,))])
    elif way == "no elements":
        numbers = [ir.const(f"k{number}", "i64", [number]) for number in (0, 0, 1, 0)]
        made = ir.add("part", "Slice", "opset8", [made, *numbers], [("i32", (0,))])
    result(ir, data if way == "dead" else made)
    assert len(told(ir.write(tmp_path), CPU, "DEV105")) == (way in {"read", "broadcast"})


def test_each_defect_says_when_it_strikes() -> None:
    for defect in all_defects():
        of_numbers = defect.symptom in {Symptom.WRONG_VALUE, Symptom.NONDETERMINISTIC}
        assert not of_numbers or defect.strikes is Stage.RUN, defect.code


@pytest.mark.parametrize(
    ("shape", "severities"),
    [
        (("?", "?"), {"DEV101": Severity.ERROR, "DEV202": None}),
        (("?", 3), {"DEV101": Severity.WARNING, "DEV202": Severity.WARNING}),
        ((2, 3), {"DEV202": Severity.ERROR}),
    ],
)
def test_the_shape_of_an_open_input_is_not_folded(
    shape: tuple[int | str, ...], severities: dict[str, Severity | None], tmp_path: Path
) -> None:
    """Measured: the CPU plugin refuses the 0-D index of the first, and folds the last."""
    ir = IrText()
    dims = ir.add("dims", "ShapeOf", "opset3", [ir.parameter("x", shape=shape)], [("i64", (2,))])
    index, new, axis = ir.const("at", "i64", 0), ir.const("new", "i64", 7), ir.const("axis", "i64", 0)
    result(ir, ir.add("s", "ScatterUpdate", "opset3", [dims, index, new, axis], [("i64", (2,))]))
    path = ir.write(tmp_path)
    for code, severity in severities.items():
        assert [one.severity for one in told(path, CPU, code)] == ([severity] if severity else [])
