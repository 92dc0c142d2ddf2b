"""What onnx's data propagation has wrong: it neither makes an error of a legal model, nor a shape that is not so.

Runtimes load every model here that is called legal.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper, parser

from ir_scatter.core.shapes import show
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import ReadOptions
from tests.formats.onnx_patches import read
from tests.formats.test_onnx_refusals import errors_of, said_by_runtimes

_STORE = "out = ScatterND (data, at, x)"
_INPUTS = "float[6, 5] data, int64[3, 1] at, float[3, 5] new, float[15] flat, bool flag, int64 count"
_CONSTANTS = """int64[1] zero = {0}, int64[1] last = {-1}, int64[1] second = {1}, int64[1] two = {2},
    int64[2] same = {0, 0}, int64[3] three = {0, 1, 2}, int64 first = {0}"""

_LOOP = """{0} = Loop (count, , {1}) <body = {0}b (int64 i{0}, bool go{0}, old{0}) => (on{0}, new{0}) {{
    on{0} = Identity (go{0})
    s = Shape (new)
    t = Add (s, same)
    e = Expand (new, t)
    new{0} = ScatterND (old{0}, at, e)
  }}>"""
_SHAPED = "my.shaped (new, flat)"
_SHAPED_BODY = (
    """<domain: "my", opset_import: ["" : 18]> shaped (a, b) => (r) { s = Shape (a) r = Reshape (b, s) }"""
)
_CHOOSING_BODY = """<domain: "my", opset_import: ["" : 18]> choosing (c, a, b) => (r) {
  r = If (c) <then_branch = t () => (p) { s = Shape (a) p = Reshape (b, s) },
              else_branch = e () => (q) { s = Shape (b) q = Identity (a) }> }"""

LEGAL = {
    "branches with values of one name": f"""x = If (flag) <
        then_branch = t () => (p) {{ s = Shape (new) p = Reshape (flat, s) }},
        else_branch = e () => (q) {{ s = Shape (new) q = Expand (new, s) }}> {_STORE}""",
    "branches in a branch": f"""x = If (flag) <
        then_branch = t () => (p) {{ s = Shape (new) p = Reshape (flat, s) }},
        else_branch = e () => (q) {{ q = If (flag) <
          then_branch = u () => (v) {{ s = Shape (new) v = Reshape (flat, s) }},
          else_branch = w () => (z) {{ s = Shape (new) z = Expand (new, s) }}> }}> {_STORE}""",
    "loops with values of one name": f"{_LOOP.format('one', 'data')} {_LOOP.format('out', 'one')}",
    "a branch, and later the graph around it": """x = If (flag) <
        then_branch = t () => (p) { s = Shape (new) p = Reshape (flat, s) },
        else_branch = e () => (q) { q = Identity (new) }>
      y = ScatterND (data, at, x) s = Shape (y) out = Expand (y, s)""",
    "a function that is called twice": f"y = {_SHAPED} z = {_SHAPED} x = Add (y, z) {_STORE} {_SHAPED_BODY}",
    "branches in a function": f"x = my.choosing (flag, new, flat) {_STORE} {_CHOOSING_BODY}",
    "numbers of a matrix and of a list": f"""s = Shape (new) u = Unsqueeze (s, second) v = Add (u, three)
      w = Reshape (v, last) z = Slice (w, zero, two, zero) d = Mul (z, same) e = Add (d, s) x = Expand (new, e)
      {_STORE}""",
    "floats of a matrix and of a list": f"""u = Unsqueeze (flat, second) v = Mul (u, u) f = Gather (new, first)
      w = Unsqueeze (f, zero) y = Add (f, w) x = Add (new, y) {_STORE}""",
}  # fmt: skip


def model(nodes: str) -> ModelProto:
    body, mark, functions = nodes.partition('<domain: "my"')
    head = f'<ir_version: 10, opset_import: ["" : 18, "my" : 1]> m ({_INPUTS}) => (out) <{_CONSTANTS}>'
    return parser.parse_model(f"{head} {{ {body} }} {mark}{functions}")


def with_table(elements: int, *, is_function: bool = False) -> ModelProto:
    """Return a loop, or a function, with a Constant of whole numbers that it takes some of."""
    nodes = """k = Constant <value = int64[1] {0}> ()
    g = Gather (k, index) t = Sub (g, g) u = Unsqueeze (t, zero) w = Add (u, place) x = ScatterND (old, w, row)"""
    if is_function:
        text = f"""out = my.put (data, first, at, new)
        <domain: "my", opset_import: ["" : 18]> put (old, index, place, row) => (x) {{
          zero = Constant <value = int64[1] {{0}}> () {nodes} }}"""
        proto = model(text)
        held = proto.functions[0].node[1]
    else:
        text = nodes.replace("index", "i").replace("place", "at").replace("row", "new")
        proto = model(f"""out = Loop (count, , data) <body = b (int64 i, bool go, old) => (on, x) {{
          on = Identity (go) {text} }}>""")
        held = proto.graph.node[0].attribute[0].g.node[1]
    held.attribute[0].t.CopyFrom(numpy_helper.from_array(np.arange(elements, dtype=np.int64)))
    return proto


AFTER_A_CUSTOM_OPERATOR = [
    f"y = other.F (data) {nodes} {_STORE}"
    for nodes in (
        "z = Scan (y) <num_scan_inputs = 1, body = b (old) => (new) { new = Relu (old) }> x = Relu (z)",
        "z = SequenceConstruct (y, new) x = SequenceAt (z, count)",
        "z = SequenceConstruct (y, y) x = ConcatFromSequence <axis = 0> (z)",
        "z = Optional (y) x = OptionalGetElement (z)",
        """x = Loop (count, , y) <body = b (int64 i, bool go, old) => (on, made) {
          on = Identity (go) made = Concat <axis = 0> (old, old) }>""",
    )
]


@pytest.mark.parametrize("nodes", AFTER_A_CUSTOM_OPERATOR)
def test_a_type_that_is_not_known_contradicts_nothing(nodes: str) -> None:
    proto = model(nodes.replace("(old) => (new) { new =", "(old) => (made) { made ="))
    proto.opset_import.add(domain="other", version=1)
    assert errors_of(proto) == []


TABLES = [with_table(elements, is_function=there) for elements in (9, 5000) for there in (False, True)]


@pytest.mark.parametrize("name", LEGAL)
def test_a_legal_model_has_no_error(name: str) -> None:
    assert errors_of(model(LEGAL[name])) == []


def test_a_large_constant_that_the_copy_leaves_out() -> None:
    assert [errors_of(one) for one in TABLES] == [[]] * len(TABLES)


def with_default(ir_version: int, elements: int) -> ModelProto:
    """Return a loop whose body declares an initializer as an input too, as IR version 3 demands."""
    proto = model("""out = Loop (count, , data) <body = b (int64 i, bool go, float[6, 5] old) => (on, x) {
      on = Identity (go) g = Gather (k, at) s = ReduceSum <keepdims = 0> (g) r = Add (new, s)
      x = ScatterND (old, at, r) }>""")
    proto.ir_version = ir_version
    body = next(one.g for one in proto.graph.node[0].attribute if one.HasField("g"))
    body.initializer.append(numpy_helper.from_array(np.ones(elements, np.float32), "k"))
    body.input.append(helper.make_tensor_value_info("k", 1, [elements]))
    if ir_version < 4:
        proto.graph.input.extend(
            helper.make_tensor_value_info(one.name, one.data_type, one.dims)
            for one in proto.graph.initializer
        )
        del proto.opset_import[1:]
    return proto


DEFAULTS = [with_default(version, elements) for version in (3, 4, 10) for elements in (9, 5000)]


def test_an_input_of_a_body_with_an_initializer_is_a_constant() -> None:
    assert [errors_of(one) for one in DEFAULTS] == [[]] * len(DEFAULTS)
    for proto in DEFAULTS:
        found = FORMATS["onnx"].read("m.onnx", proto.SerializeToString(), ReadOptions(has_folder=False))
        assert [show(one.outputs[0].shape) for one in found.graph.walk() if one.type == "Gather"] == [
            "[3, 1]"
        ]


def test_runtimes_take_them(tmp_path: Path) -> None:
    words = said_by_runtimes([*map(model, LEGAL.values()), *TABLES, *DEFAULTS], tmp_path)
    assert [one[0] for one in words] == ["taken"] * (len(LEGAL) + len(TABLES) + len(DEFAULTS))


SHAPES = {
    "q = Shape (new) p = Unsqueeze (q, zero) s = Gather (p, first) out = Reshape (flat, s)": "[?, ?]",
    "q = Shape (data) p = Unsqueeze (q, zero) s = Gather (p, first) y = Cast <to = 7> (s) out = Expand (flat, y)":
        "[?, 15]",
    "q = Shape (new) s = Slice (q, rows, two, zero) out = Reshape (flat, s)": "[...]",
    "q = Shape (new) s = Slice (q, zero, two, rows) out = Reshape (flat, s)": "[...]",
    "q = Shape (new) b = Cast <to = 9> (q) s = Cast <to = 7> (b) out = Expand (wide, s)": "[?, ?]",
    """x = If (flag) <then_branch = t () => (p) { s = Shape (new) p = Reshape (flat, s) },
        else_branch = e () => (z) { z = Identity (new) }>
       s = Mul (size, size) out = Reshape (x, s)""": "[?, ?]",
    "s = Shape (new) out = Reshape (flat, s)": "[3, 5]",
    "u = Unsqueeze (at, zero) s = Shape (new) out = Reshape (flat, s)": "[3, 5]",
    "q = Shape (data) f = Cast <to = 1> (q) s = Cast <to = 7> (f) out = Expand (wide, s)": "[6, 5]",
    "q = Shape (data) s = Slice (q, zero, two, zero) out = Expand (wide, s)": "[6, 5]",
    "q = Shape (data) a = Gather (q, first) u = Unsqueeze (a, zero) s = Concat <axis = 0> (u, last) out = Reshape (data, s)":
        "[6, 5]",
}  # fmt: skip
"""Shapes that follow from shapes: what is not known where data propagation is wrong, and what is where it is not."""


@pytest.mark.parametrize("nodes", SHAPES)
def test_a_shape_that_is_inferred(nodes: str) -> None:
    given = "int64[1] rows, int64[2] size, float[1, 1] wide"
    head = f'<ir_version: 10, opset_import: ["" : 18]> m ({_INPUTS}, {given}) => (out) <{_CONSTANTS}>'
    found = read(f"{head} {{ {nodes} }}")
    assert show([*found.graph.walk()][-1].outputs[0].shape) == SHAPES[nodes]


_GIVEN = ("data", "at", "new", "flat", "flag", "count", "rows", "size", "wide")
_HELD = re.sub(r"int64(\S*) (\w+) = (\{[^}]*\}),?", r"\2 = Constant <value = int64\1 \3> ()", _CONSTANTS)
"""The constants of the models as nodes, which a function has instead of initializers."""


@pytest.mark.parametrize("nodes", SHAPES)
def test_a_function_has_the_same_shape(nodes: str) -> None:
    """Inference of a caller walks a function too, whose nodes get barriers of their own."""
    given = "int64[1] rows, int64[2] size, float[1, 1] wide"
    call = ", ".join(name for name in _GIVEN if re.search(rf"\b{name}\b", nodes))
    head = f'<ir_version: 10, opset_import: ["" : 18, "my" : 1]> m ({_INPUTS}, {given}) => (out)'
    body = f"{_HELD} {nodes.replace('out =', 'r =')}"
    function = f'<domain: "my", opset_import: ["" : 18]> f ({call}) => (r) {{ {body} }}'
    found = read(f"{head} {{ x = my.f ({call}) out = Identity (x) }} {function}")
    assert show([*found.graph.walk()][-1].outputs[0].shape) == SHAPES[nodes]


@pytest.mark.parametrize("name", ["branches with values of one name", "loops with values of one name"])
def test_bodies_have_the_shapes_of_their_own_values(name: str) -> None:
    found = FORMATS["onnx"].read(
        "m.onnx", model(LEGAL[name]).SerializeToString(), ReadOptions(has_folder=False)
    )
    made = {
        one.type: show(one.outputs[0].shape)
        for one in found.graph.walk()
        if one.type in {"Reshape", "Expand"}
    }
    assert {*made.values()} == {"[3, 5]"}


def test_a_suspicion_that_our_rules_share_is_an_error(tmp_path: Path) -> None:
    """Only data propagation finds the shape of what Reshape gives, and Add does not take that."""
    proto = model(f"s = Shape (new) p = Reshape (flat, s) x = Add (p, data) {_STORE}")
    assert errors_of(proto) == ["SCT937 Add does not accept inputs of shapes [3, 5], [6, 5]: 3 and 6 differ"]
    assert "refused" in said_by_runtimes([proto], tmp_path)[0]
