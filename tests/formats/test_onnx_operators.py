"""Operators that scatter nodes depend on, used as their documents forbid: onnxruntime refuses each of these files."""

import warnings
from pathlib import Path

import pytest
from onnx import ModelProto, helper, parser

from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import ReadOptions
from tests.formats.test_onnx_refusals import errors_of, said_by_runtimes

_INPUTS = "float[6, 5] data, float[3, 5] new, int64[3, 1] at, int64[3] rows, bool flag, int64 count, float[3, 4] narrow"
_STORE = "out = ScatterND (data, at, new)"

REFUSED = {
    "x = Unknown (new) out = ScatterND (data, at, x)":
        "Unknown is not in opset 18 of 'ai.onnx', expected an operator that some version of the domain has",
    "x = Swish (new) out = ScatterND (data, at, x)":
        "Swish is not in opset 18 of 'ai.onnx', expected opset 24 or later",
    "x = Upsample (new, new) out = ScatterND (data, at, x)": "Upsample is deprecated in opset 18",
    "x = strange.Relu (new) out = ScatterND (data, at, x)":
        "the model imports no opset of the domain 'strange', which Relu belongs to",
    "x = Relu (new, new) out = ScatterND (data, at, x)": "Relu has 2 inputs, expected 1",
    "x = Add (new) out = ScatterND (data, at, x)": "Add has 1 input, expected 2",
    "x = Concat <axis = 0> () out = ScatterND (data, at, x)": "Concat has 0 inputs, expected 1 or more",
    "x = Add (, new) out = ScatterND (data, at, x)": "input 0 of Add (A) is missing, expected a value",
    "x, z = Relu (new) out = ScatterND (data, at, x)": "Relu has 2 outputs, expected 1",
    "x = Relu <axis = 0> (new) out = ScatterND (data, at, x)": "Relu has no attribute 'axis' in opset 18",
    "x = Softmax <axis = 0.5> (new) out = ScatterND (data, at, x)":
        "attribute 'axis' is a float, expected an int",
    "x = Cast (new) out = ScatterND (data, at, x)": "Cast has no attribute 'to', expected one",
    "x = Add (new, rows) out = ScatterND (data, at, x)":
        "input 1 of Add (B) is int64, expected float like input 0",
    "x = And (new, new) out = ScatterND (data, at, x)": "input 0 of And (A) is float, expected bool",
    "x = Add (new, narrow) out = ScatterND (data, at, x)":
        "Add does not accept inputs of shapes [3, 5], [3, 4]: Incompatible dimensions",
    "x = MatMul (new, data) out = ScatterND (data, at, x)":
        "MatMul does not accept inputs of shapes [3, 5], [6, 5]: "
        "Incompatible dimensions for matrix multiplication",
    "x = Concat <axis = 2> (new, new) out = ScatterND (data, at, x)":
        "Concat does not accept inputs of shapes [3, 5], [3, 5]: axis must be in [-rank, rank-1].",
}  # fmt: skip
"""What a graph computes, and what is an error in it."""

_LOOP = """out = Loop (count, , data) <body = body (int64 n, bool go, {}) => (bool on, x) {{
    on = Identity (go)
    x = ScatterND (old, at, new)
  }}>"""
_SCAN = """out, all = Scan (data, new) <num_scan_inputs = 1, body = body ({}) => (x, y) {{
    x = ScatterND (old, at, new)
    y = Relu (row)
  }}>"""
MISFITS = {
    _LOOP.format("int64[6, 5] old"): "input 2 of the body ('old') is declared int64, but receives float",
    _LOOP.format("float[6, 5] old").replace("int64 n", "int32 n"):
        "input 0 of the body ('n') is declared int32, but receives int64",
    _LOOP.format("float[6, 5] old, float more"): "Graph has 4 inputs but 3 were provided",
    _SCAN.format("float[6, 5] old, float[4] row"): "input 1 of the body ('row') is declared [4], but receives [5]",
    _SCAN.format("float[6, 5] old, float[3, 5] row"): "input 1 of the body ('row') is declared [3, 5], but receives [5]",
    _SCAN.format("float[7, 5] old, float[5] row"): "input 0 of the body ('old') is declared [7, 5], but receives [6, 5]",
    _SCAN.format("float[6, 5] old, int64[5] row"): "input 1 of the body ('row') is declared int64, but receives float",
}  # fmt: skip
"""Bodies that do not fit what flows into them."""

LEGAL = [
    "s = Constant <value_floats = [1.0, 1.0, 1.0, 1.0, 1.0]> () x = SimplifiedLayerNormalization (new, s) "
    "out = ScatterND (data, at, x)",
    _STORE,
    "x = Dropout (new) out = ScatterND (data, at, x)",
    "x = Clip (new) out = ScatterND (data, at, x)",
    "x, y = Dropout (new, , ) out = ScatterND (data, at, x)",
    _LOOP.format("float[6, 5] old"),
    _LOOP.format("float[7, 5] old"),
    _LOOP.format("float[1, 6, 5] old").replace("(old", "(data"),
    _LOOP.format("old").replace("(old", "(data"),
    _SCAN.format("float[6, 5] old, float[5] row"),
    _SCAN.format("float[N, 5] old, float[M] row"),
]


def model(nodes: str, functions: str = "") -> ModelProto:
    text = f'<ir_version: 10, opset_import: ["" : 18, "my" : 1]> m ({_INPUTS}) => (out) {{ {nodes} }}'
    return parser.parse_model(text + functions)


@pytest.mark.parametrize("nodes", REFUSED)
def test_an_operator_that_is_misused(nodes: str) -> None:
    assert f"SCT937 {REFUSED[nodes]}" in errors_of(model(nodes))


@pytest.mark.parametrize("nodes", MISFITS)
def test_a_body_that_does_not_fit(nodes: str) -> None:
    assert any(one.startswith("SCT936") and one.endswith(MISFITS[nodes]) for one in errors_of(model(nodes)))


def test_legal_operators() -> None:
    for nodes in LEGAL:
        assert errors_of(model(nodes)) == [], nodes


def test_runtimes_agree(tmp_path: Path) -> None:
    words = said_by_runtimes([model(nodes) for nodes in (*REFUSED, *MISFITS, *LEGAL)], tmp_path)
    refused = len(REFUSED) + len(MISFITS)
    assert [one[0] for one in words] == ["refused"] * refused + ["taken"] * len(LEGAL)


def test_operators_elsewhere_are_no_matter_of_a_scatter_node() -> None:
    assert errors_of(model(f"x = Unknown (new) y = Add (new, narrow) {_STORE} z = Relu (out, out)")) == []
    assert errors_of(model("out = Add (new, narrow)")) == []


def test_a_value_behind_an_unknown_operator() -> None:
    found = errors_of(
        model(
            "x = my.Strange (new) y = Abs (x) z = Add (new, narrow) w = Add (y, z) out = ScatterND (data, at, w)"
        )
    )
    assert len(found) == 1
    assert "shapes [3, 5], [3, 4]: Incompatible" in found[0]


def test_what_holds_a_scatter_node() -> None:
    branch = f"out = If (rows) <then_branch = t () => (out) {{ {_STORE} }}, else_branch = e () => (y) {{ y = Relu (data) }}>"
    branch = branch.replace("=> (out) { out", "=> (x) { x")
    assert errors_of(model(branch)) == ["SCT937 input 0 of If (cond) is int64, expected bool"]
    inside = (
        branch.replace("(rows)", "(flag)")
        .replace("at, new)", "at, z)")
        .replace("{ x =", "{ z = Add (new, narrow) x =")
    )
    found = errors_of(model(inside))
    assert found == [f"SCT937 {REFUSED['x = Add (new, narrow) out = ScatterND (data, at, x)']}"]


def test_what_a_loop_carries_leads_to_its_scatter_nodes() -> None:
    loop = _LOOP.format("float[6, 5] old")
    assert errors_of(model(loop.replace("Identity (go)", "Not (go, go)"))) == [
        "SCT937 Not has 2 inputs, expected 1"
    ]
    assert errors_of(model(loop.replace("Identity (go)", "Identity ()"))) == [
        "SCT937 Identity has 0 inputs, expected 1"
    ]


def test_a_node_without_operator() -> None:
    proto = model("x = Relu (new) out = ScatterND (data, at, x)")
    proto.graph.node[0].op_type = ""
    assert errors_of(proto) == ["SCT937 the node has no operator, expected one"]


def test_all_that_branches_hold_belongs_to_their_node() -> None:
    branch = f"out = If (flag) <then_branch = t () => (x) {{ {_STORE} }}, else_branch = e () => (y) {{ y = Relu (data, data) }}>"
    assert errors_of(model(branch.replace("{ out", "{ x"))) == ["SCT937 Relu has 2 inputs, expected 1"]


def test_functions() -> None:
    """A function that a scatter node needs, one that holds one, and one that neither does."""
    bad = """<domain: "my", opset_import: ["" : 18]> bad (a, b) => (c) { c = Add (a, b) }"""
    store = """<domain: "my", opset_import: ["" : 18]> store (a, b, c) => (d) { e = Cast (c) d = ScatterND (a, b, e) }"""
    (found,) = errors_of(model("x = my.bad (new, narrow) out = ScatterND (data, at, x)", bad))
    assert found == f"SCT937 {REFUSED['x = Add (new, narrow) out = ScatterND (data, at, x)']}"
    assert errors_of(model(f"x = my.bad (new, narrow) {_STORE}", bad)) == []
    assert errors_of(model("out = my.store (data, at, new)", store)) == [
        "SCT937 Cast has no attribute 'to', expected one"
    ]


def test_a_call_with_more_than_the_function_has() -> None:
    store = """<domain: "my", opset_import: ["" : 18]> store (a, b, c) => (d) { d = ScatterND (a, b, c) }"""
    found = errors_of(model("out, more = my.store (data, at, new, narrow)", store))
    assert found[:2] == [
        "SCT937 my::store has 4 inputs, expected at most 3",
        "SCT937 my::store has 2 outputs, expected at most 1",
    ]


def test_the_field_of_an_attribute() -> None:
    proto = model('x = Cast <to = 1> (new) out = ScatterND <reduction = "add"> (data, at, x)')
    proto.graph.node[0].attribute[0].t.data_type = 1
    proto.graph.node[1].attribute[0].f = 1.5
    assert errors_of(proto) == [
        "SCT937 attribute 'reduction' stores its value in f and s, expected a value in s, the field of its type"
    ]
    proto.graph.node[0].attribute[0].ClearField("i")
    assert (
        errors_of(proto)[0]
        == "SCT937 attribute 'to' stores its value in t, expected a value in i, the field of its type"
    )
    nothing = model(
        "x = Constant <value = float[3, 5] {}> () out = ScatterND (data, at, x)".replace(
            "{}", str({*range(15)})
        )
    )
    nothing.graph.node[0].attribute[0].ClearField("t")
    assert (
        "SCT937 attribute 'value' stores no value, expected a value in t, the field of its type"
        in errors_of(nothing)
    )


def test_attributes_of_0_that_are_left_out() -> None:
    """As protobuf 3 writes them, and as onnxruntime reads them."""
    proto = model(
        "x = Softmax <axis = 0> (new) out = ScatterElements <axis = 0> (data, wide, x)".replace(
            "wide", "rows"
        )
    )
    for node in proto.graph.node:
        node.attribute[0].ClearField("i")
    proto.graph.node[0].attribute.append(helper.make_attribute("axes", [], attr_type=7))
    assert not any("holds" in one for one in errors_of(proto))


def test_every_case_of_the_package_is_clean() -> None:
    """Each legal use of an operator that onnx's own tests have, as if a scatter node depended on it."""
    from onnx.backend.test.case.node import collect_testcases

    wrong = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # computing inputs divides by 0
        cases = collect_testcases()
    for case in cases:
        assert case.model is not None
        proto = ModelProto.FromString(case.model.SerializeToString())
        ends = [
            helper.make_node("Identity", [one.name], [f"end of {one.name}"]) for one in proto.graph.output
        ]
        proto.graph.node.extend(ends)
        options = ReadOptions(scatter_types=frozenset({"Identity"}), has_folder=False)
        found = FORMATS["onnx"].read(case.name, proto.SerializeToString(), options).defects
        wrong[case.name] = [one.message for one in found if one.kind != "element-type"]  # a sequence is one
    assert len(wrong) > 1000
    assert {name: found for name, found in wrong.items() if found} == {}
