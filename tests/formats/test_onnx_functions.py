"""Local functions: one graph per signature, attributes of the call, recursion."""

import re
from pathlib import Path

import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, parser

import ir_scatter
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import UnknownOperator, UnreadableModel
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import show
from ir_scatter.evaluate.model import make_sketch
from ir_scatter.formats.onnx.reader import INSTANCES
from ir_scatter.inspect import inspect
from tests.formats.onnx_patches import content, model_of, named, read

HEAD = '<ir_version: 10, opset_import: ["" : 18, "my" : 1]>'
OWN = '<domain: "my", opset_import: ["" : 18, "my" : 1]>'
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
TWO_SIGNATURES = f"""
    {HEAD}
    main (float[2, 3] x, float[5, 7] y) => (a, b, c, d) {{
        shape = Constant <value_ints = [3, 2]> ()
        same = Constant <value_ints = [3, 2]> ()
        other = Constant <value_ints = [6, 1]> ()
        a = my.bend <by = 2> (x, shape)
        b = my.bend <by = 2> (x, same)
        c = my.bend <by = 2> (x, other)
        d = my.bend (y, other)
    }}
    <domain: "my", opset_import: ["" : 16]>
    bend <axis, by: int = 0> (data, shape) => (out) {{
        flat = Flatten <axis: int = @by> (data)
        named = Softmax <axis: int = @axis> (flat)
        out = Reshape (named, shape)
    }}
"""


def callers(model: Model) -> list[list[list[str]]]:
    """Return, for each function and each graph of it, where it is called."""
    return [
        [[call.location.scope for call in graph.calls] for graph in one.instances] for one in model.functions
    ]


def test_each_signature_has_its_instance() -> None:
    model = read(TWO_SIGNATURES)
    (function,) = model.functions
    assert function.name == "my::bend"
    assert callers(model) == [[["a", "b"], ["c"], ["d"]]]
    assert function.instances[2].calls[0].message == "called from d"
    found = [[show(node.outputs[0].shape) for node in graph.walk()] for graph in function.instances]
    assert found == [
        ["[6, 1]", "[6, 1]", "[3, 2]"],
        ["[6, 1]", "[6, 1]", "[6, 1]"],
        ["[1, 35]", "[1, 35]", "[6, 1]"],
    ]
    flat, softmax, out = function.instances[0].walk()
    assert [node.scope for node in (flat, softmax, out)] == [
        "my::bend/flat", "my::bend/named", "my::bend/out",
    ]  # fmt: skip
    assert (out.opset, flat.attributes, softmax.attributes) == (16, {"axis": 2}, {})
    assert next(function.instances[2].walk()).attributes == {"axis": 0}
    reshapes = [list(graph.walk())[2] for graph in function.instances]
    assert [content(node.inputs[1].value) for node in reshapes] == [[3, 2], [6, 1], [6, 1]]
    call = named(model, "a")
    assert (call.domain, call.type, call.opset) == ("my", "bend", 1)
    assert show(call.outputs[0].shape) == "[3, 2]"


def test_a_definition_knows_no_call() -> None:
    model = read(TWO_SIGNATURES)
    flat, *_ = model.functions[0].definition.walk()
    value = flat.inputs[0].value
    assert value is not None
    assert (value.element_type, value.shape, value.constant) == (None, None, None)
    assert flat.attributes == {"axis": 0}
    assert [node.name for node in model.definitions(frozenset({"Reshape"}))] == ["out"]
    assert len(list(model.walk(frozenset({"Reshape"})))) == 3


def test_calls_in_bodies_and_in_functions_are_followed() -> None:
    model = read(f"""
        {HEAD} main (float[2, 3] x, bool c) => (y) {{
            y = If (c) <
                then_branch = yes () => (p) {{ p = my.outer (x) }},
                else_branch = no () => (q) {{ q = my.inner (x) }}>
        }}
        {OWN} outer (v) => (w) {{ t = Transpose (v) w = my.inner (t) }}
        {OWN} inner (v) => (w) {{ w = Relu (v) }}
    """)
    assert callers(model) == [[["y:then_branch/p"]], [["y:else_branch/q"], ["my::outer/w"]]]
    inner = model.functions[1].instances
    assert [show(node.outputs[0].shape) for graph in inner for node in graph.walk()] == ["[2, 3]", "[3, 2]"]


def test_bodies_in_functions_capture_inputs_and_fill_in_attributes() -> None:
    model = read(f"""
        {HEAD} main (float[2, 3] x, bool c) => (y) {{
            shape = Constant <value = int64[2] {{1, 6}}> ()
            y = my.choose <slope = 0.5> (x, c, shape)
        }}
        {OWN} choose <slope> (v, c, shape) => (w) {{
            w = If (c) <
                then_branch = yes () => (p) {{ p = Reshape (v, shape) }},
                else_branch = no () => (q) {{ q = LeakyRelu <alpha: float = @slope> (v) }}>
        }}
    """)
    reshape = named(model, "my::choose/w:then_branch/p")
    assert show(reshape.outputs[0].shape) == "[1, 6]"
    assert content(reshape.inputs[1].value) == [1, 6]
    assert named(model, "my::choose/w:else_branch/q").attributes == {"alpha": 0.5}


def test_an_argument_that_is_left_out_is_left_out_inside() -> None:
    model = read(f"""
        {HEAD} main (float[2, 3] x) => (y) {{ y = my.limit (x) }}
        {OWN} limit (v, low) => (w) {{ w = Clip (v, low) }}
    """)
    (function,) = model.functions
    for graph, expected in ((function.instances[0], [True, False]), (function.definition, [True, True])):
        assert [port.is_present for port in next(graph.walk()).inputs] == expected


def test_a_function_nobody_calls_has_one_instance_without_calls() -> None:
    model = read(f"""
        {HEAD} main (float[2, 3] x) => (y) {{ y = Relu (x) }}
        {OWN} alone (v) => (w) {{ s = Constant <value_ints = [2, 5]> () w = Reshape (v, s) }}
    """)
    assert callers(model) == [[[]]]
    value = named(model, "my::alone/w").inputs[0].value
    assert value is not None
    assert value.shape is None


def test_overloads_are_different_functions() -> None:
    calls = [helper.make_node("f", ["x"], [name], domain="my") for name in ("a", "b")]
    calls[1].overload = "two"
    proto = model_of(calls, x=(TensorProto.FLOAT, [2, 3]))
    for overload, type in (("", "Relu"), ("two", "Abs")):
        node = helper.make_node(type, ["v"], ["w"])
        proto.functions.append(helper.make_function("my", "f", ["v"], ["w"], [node], OPSETS))
        proto.functions[-1].overload = overload
    model = read(proto)
    assert [function.name for function in model.functions] == ["my::f", "my::f:two"]
    scopes = [node.scope for function in model.functions for node in function.instances[0].walk()]
    assert scopes == ["my::f/w", "my::f:two/w"]
    assert callers(model) == [[["a"]], [["b"]]]


def test_recursion_is_a_defect_and_not_followed() -> None:
    model = read(f"""
        {HEAD} main (float[2, 3] x) => (y, z) {{ y = my.ping (x) z = my.self (x) }}
        {OWN} ping (v) => (w) {{ t = Relu (v) w = my.pong (t) }}
        {OWN} pong (v) => (w) {{ w = my.ping (v) }}
        {OWN} self (v) => (w) {{ w = my.self (v) }}
    """)
    assert [(defect.kind, defect.message) for defect in model.defects] == [
        ("cycle", "functions 'my::ping', 'my::pong' call each other, expected no recursion"),
        ("cycle", "function 'my::self' calls itself, expected no recursion"),
    ]
    assert [len(function.instances) for function in model.functions] == [1, 1, 1]
    first = next(model.functions[0].instances[0].walk())
    assert show(first.outputs[0].shape) == "[2, 3]"


def tower(height: int) -> ModelProto:
    """Return a model whose functions each call the next one twice."""
    functions = ""
    for level in range(height):
        callee = "Relu" if level == height - 1 else f"my.f{level + 1}"
        functions += f"{OWN} f{level} (v) => (w) {{ t = {callee} (v) w = {callee} (t) }}\n"
    return parser.parse_model(f"{HEAD} main (float[2, 3] x) => (y) {{ y = my.f0 (x) }} {functions}")


def test_calls_in_calls_do_not_multiply() -> None:
    assert all(len(function.instances) <= 2 for function in read(tower(40)).functions)
    model = read(tower(5))
    (last,) = model.functions[-1].instances
    assert [show(node.outputs[0].shape) for node in last.walk()] == ["[2, 3]", "[2, 3]"]
    assert callers(model)[-1] == [["my::f3/t", "my::f3/w"]]


def test_too_many_signatures_share_one_instance() -> None:
    count = INSTANCES + 3
    calls = [helper.make_node("f", [f"x{i}"], [f"y{i}"], domain="my") for i in range(count)]
    proto = model_of(calls, **{f"x{i}": (TensorProto.FLOAT, [i + 1]) for i in range(count)})
    node = helper.make_node("Relu", ["v"], ["w"])
    proto.functions.append(helper.make_function("my", "f", ["v"], ["w"], [node], OPSETS))
    model = read(proto)
    instances = model.functions[0].instances
    assert (len(instances), len(instances[-1].calls)) == (INSTANCES + 1, 3)
    assert next(instances[-1].walk()).outputs[0].shape is None
    (limit,) = model.find_limits()
    assert limit.message == (
        "3 calls of functions are not checked individually: a function is called with more than 1024 combinations of "
        "inputs and attributes"
    )


@pytest.mark.parametrize(
    ("chain", "index"),
    [
        ("i = Add (a, b)", 7),
        ("c = Cast <to = 6> (a) d = Cast <to = 7> (c) i = Mul (d, b)", 12),
        ("s = Shape (data) c = Gather <axis = 0> (s, zero) i = Expand (c, two)", 5),
        ("i = ConstantOfShape <value = int64[1] {9}> (two)", 9),
        ("d = my.same (a) i = Add (d, b)", None),
        ("i = Add (a, free)", None),
    ],
)
def test_constants_are_computed_in_front_of_a_call(chain: str, index: int | None) -> None:
    """Both calls have inputs of the same shapes and types, so that only their numbers tell them apart."""
    model = read(f"""
        {HEAD}
        main (float[5] data, float[2] u, int64[2] free) => (y, z)
            <int64[2] a = {{1, 3}}, int64[2] b = {{0, 4}}, int64[1] two = {{2}}, int64[1] zero = {{0}}> {{
            {chain}
            j = Sub (a, a)
            y = my.put (data, j, u)
            z = my.put (data, i, u)
        }}
        {OWN} put (data, indices, updates) => (out) {{ out = my.inner (data, indices, updates) }}
        {OWN} inner (data, i, u) => (out) {{ out = ScatterElements <reduction = "add"> (data, i, u) }}
        {OWN} same (v) => (w) {{ w = Identity (v) }}
    """)
    found = [
        (one.code, one.message.partition(",")[0].partition(" is ")[2]) for one in ir_scatter.validate(model)
    ]
    assert found == ([] if index is None else [("SCT302", str(index))])


def test_a_tensor_attribute_of_the_call() -> None:
    node = helper.make_node("Constant", [], ["w"])
    node.attribute.add(name="value", ref_attr_name="given", type=AttributeProto.TENSOR)
    tensor = helper.make_tensor("t", TensorProto.INT64, [2], [3, 5])
    proto = model_of([helper.make_node("f", [], ["y"], domain="my", given=tensor)])
    proto.functions.append(helper.make_function("my", "f", [], ["w"], [node], OPSETS, ["given"]))
    model = read(proto)
    assert content(next(model.functions[0].instances[0].walk()).outputs[0]) == [3, 5]
    assert next(model.functions[0].definition.walk()).outputs[0].constant is None


def growing(height: int) -> ModelProto:
    """Return a model whose functions each call the next one twice, with inputs of different sizes."""
    functions = ""
    for level in range(height):
        callee = "ScatterElements" if level == height - 1 else f"my.f{level + 1}"
        functions += f"""{OWN} f{level} (x, i, u) => (y) {{
            more = Concat <axis = 0> ({", ".join(["x"] * (3 + level))})
            a = {callee} (x, i, u) b = {callee} (more, i, u) y = Concat <axis = 0> (a, b)
        }}"""
    return parser.parse_model(
        f"{HEAD} main (float[4] x, int64[2] i, float[2] u) => (float[N] y) {{ y = my.f0 (x, i, u) }} {functions}"
    )


@pytest.mark.parametrize("height", [12, 18, 24])
def test_functions_that_multiply_end_soon_and_with_a_sentence(height: int, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(growing(height).SerializeToString())
    assert path.stat().st_size < 6000
    model = ir_scatter.read(path)
    found = ir_scatter.validate(model)
    assert inspect(model)
    ir_scatter.convert(model, "ScatterND")
    notes = [one for one in found if one.code == "SCT941"]
    assert notes
    assert {one.severity for one in found} == {Severity.NOTE}
    if height > 12:
        assert re.fullmatch(
            r"shapes in \d+ of \d+ graphs and function calls are unknown: .*", notes[-1].message
        )
        message = (
            f"functions are called {2**height - 1} times \\(including nested calls\\), expected at most 20000"
        )
        with pytest.raises(UnknownOperator, match=message):
            ir_scatter.evaluate_model(model, {})
        with pytest.raises(UnreadableModel, match=message):
            make_sketch(model)


def test_what_was_looked_at_has_no_note() -> None:
    for proto in (tower(5), growing(4)):
        model = read(proto)
        list(model.walk())
        assert list(model.find_limits()) == []
