"""Local functions: one graph per signature, attributes of the call, recursion."""

import re
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, parser

import ir_scatter
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import UnknownOperator, UnreadableModel
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import show
from ir_scatter.core.tensors import Constant
from ir_scatter.evaluate.model import make_sketch
from ir_scatter.formats.onnx import reader as onnx_functions
from ir_scatter.formats.onnx import reader as onnx_model
from ir_scatter.inspect import inspect


def read_proto(proto: ModelProto) -> Model:
    return onnx_model.read("model.onnx", proto.SerializeToString())


def read_text(text: str) -> Model:
    return read_proto(parser.parse_model(text))


TWO_SIGNATURES = """
    <ir_version: 10, opset_import: ["" : 18, "my" : 1]>
    main (float[2, 3] x, float[5, 7] y) => (a, b, c, d) {
        shape = Constant <value_ints = [3, 2]> ()
        same = Constant <value_ints = [3, 2]> ()
        other = Constant <value_ints = [6, 1]> ()
        a = my.bend <by = 2> (x, shape)
        b = my.bend <by = 2> (x, same)
        c = my.bend <by = 2> (x, other)
        d = my.bend (y, other)
    }
    <domain: "my", opset_import: ["" : 16]>
    bend <axis, by: int = 0> (data, shape) => (out) {
        flat = Flatten <axis: int = @by> (data)
        named = Softmax <axis: int = @axis> (flat)
        out = Reshape (named, shape)
    }
"""


def test_each_signature_has_its_instance() -> None:
    model = read_text(TWO_SIGNATURES)
    (function,) = model.functions
    assert function.name == "my::bend"
    calls = [[call.message for call in graph.calls] for graph in function.instances]
    assert calls == [["called from a", "called from b"], ["called from c"], ["called from d"]]
    assert function.instances[0].calls[1].location.scope == "b"
    found = [[show(node.outputs[0].shape) for node in graph.walk()] for graph in function.instances]
    assert found == [
        ["[6, 1]", "[6, 1]", "[3, 2]"],
        ["[6, 1]", "[6, 1]", "[6, 1]"],
        ["[1, 35]", "[1, 35]", "[6, 1]"],
    ]


def test_nodes_of_instances_know_function_scope_opset_and_attributes() -> None:
    model = read_text(TWO_SIGNATURES)
    instance = model.functions[0].instances[0]
    flat, named, out = instance.walk()
    assert [node.scope for node in (flat, named, out)] == [
        "my::bend/flat",
        "my::bend/named",
        "my::bend/out",
    ]
    assert out.opset == 16
    assert flat.attributes == {"axis": 2}
    assert named.attributes == {}
    last = next(model.functions[0].instances[2].walk())
    assert last.attributes == {"axis": 0}


def test_constants_of_the_caller_reach_the_instance() -> None:
    model = read_text(TWO_SIGNATURES)
    contents = []
    for instance in model.functions[0].instances:
        shape = list(instance.walk())[2].inputs[1].value
        assert shape is not None
        assert shape.constant is not None
        assert shape.name == "shape"
        array = shape.constant.load()
        assert array is not None
        contents.append(array.tolist())
    assert contents == [[3, 2], [6, 1], [6, 1]]


def test_a_definition_knows_no_call() -> None:
    model = read_text(TWO_SIGNATURES)
    flat, *_ = model.functions[0].definition.walk()
    value = flat.inputs[0].value
    assert value is not None
    assert (value.element_type, value.shape, value.constant) == (None, None, None)
    assert flat.attributes == {"axis": 0}
    assert [node.name for node in model.definitions(frozenset({"Reshape"}))] == ["out"]
    assert len(list(model.walk(frozenset({"Reshape"})))) == 3


def test_a_call_is_a_node_of_its_graph() -> None:
    model = read_text(TWO_SIGNATURES)
    call = next(node for node in model.graph.walk() if node.name == "a")
    assert (call.domain, call.type, call.opset) == ("my", "bend", 1)
    assert show(call.outputs[0].shape) == "[3, 2]"


def test_calls_in_bodies_and_in_functions_are_followed() -> None:
    model = read_text("""
        <ir_version: 10, opset_import: ["" : 18, "my" : 1]>
        main (float[2, 3] x, bool c) => (y) {
            y = If (c) <
                then_branch = yes () => (p) { p = my.outer (x) },
                else_branch = no () => (q) { q = my.inner (x) }>
        }
        <domain: "my", opset_import: ["" : 18, "my" : 1]>
        outer (v) => (w) { t = Transpose (v) w = my.inner (t) }
        <domain: "my", opset_import: ["" : 18]>
        inner (v) => (w) { w = Relu (v) }
    """)
    outer, inner = model.functions
    assert [call.message for graph in outer.instances for call in graph.calls] == [
        "called from y:then_branch/p"
    ]
    assert [call.message for graph in inner.instances for call in graph.calls] == [
        "called from y:else_branch/q",
        "called from my::outer/w",
    ]
    found = [show(node.outputs[0].shape) for graph in inner.instances for node in graph.walk()]
    assert found == ["[2, 3]", "[3, 2]"]


def test_bodies_in_functions_capture_inputs_and_fill_in_attributes() -> None:
    model = read_text("""
        <ir_version: 10, opset_import: ["" : 18, "my" : 1]>
        main (float[2, 3] x, bool c) => (y) {
            shape = Constant <value = int64[2] {1, 6}> ()
            y = my.choose <slope = 0.5> (x, c, shape)
        }
        <domain: "my", opset_import: ["" : 18]>
        choose <slope> (v, c, shape) => (w) {
            w = If (c) <
                then_branch = yes () => (p) { p = Reshape (v, shape) },
                else_branch = no () => (q) { q = LeakyRelu <alpha: float = @slope> (v) }>
        }
    """)
    (instance,) = model.functions[0].instances
    found = {node.scope: node for node in instance.walk()}
    reshape = found["my::choose/w:then_branch/p"]
    assert show(reshape.outputs[0].shape) == "[1, 6]"
    assert reshape.inputs[1].value is not None
    assert reshape.inputs[1].value.constant is not None
    assert found["my::choose/w:else_branch/q"].attributes == {"alpha": 0.5}


def test_an_argument_that_is_left_out_is_left_out_inside() -> None:
    model = read_text("""
        <ir_version: 10, opset_import: ["" : 18, "my" : 1]>
        main (float[2, 3] x) => (y) { y = my.limit (x) }
        <domain: "my", opset_import: ["" : 18]>
        limit (v, low) => (w) { w = Clip (v, low) }
    """)
    (instance,) = model.functions[0].instances
    assert [port.is_present for port in next(instance.walk()).inputs] == [True, False]
    definition = next(model.functions[0].definition.walk())
    assert [port.is_present for port in definition.inputs] == [True, True]


def test_a_function_nobody_calls_has_one_instance_without_calls() -> None:
    model = read_text("""
        <ir_version: 10, opset_import: ["" : 18, "my" : 1]>
        main (float[2, 3] x) => (y) { y = Relu (x) }
        <domain: "my", opset_import: ["" : 18]>
        alone (v) => (w) { s = Constant <value_ints = [2, 5]> () w = Reshape (v, s) }
    """)
    (instance,) = model.functions[0].instances
    assert instance.calls == ()
    value = next(instance.walk(frozenset({"Reshape"}))).inputs[0].value
    assert value is not None
    assert value.shape is None


def test_overloads_are_different_functions() -> None:
    opset = helper.make_opsetid("", 18)
    functions = []
    for overload, type in (("", "Relu"), ("two", "Abs")):
        node = helper.make_node(type, ["v"], ["w"])
        function = helper.make_function("my", "f", ["v"], ["w"], [node], [opset])
        function.overload = overload
        functions.append(function)
    calls = [helper.make_node("f", ["x"], [name], domain="my") for name in ("a", "b")]
    calls[1].overload = "two"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
    graph = helper.make_graph(calls, "g", inputs, [])
    opsets = [opset, helper.make_opsetid("my", 1)]
    proto = helper.make_model(graph, ir_version=10, opset_imports=opsets, functions=functions)
    model = read_proto(proto)
    assert [function.name for function in model.functions] == ["my::f", "my::f:two"]
    scopes = [node.scope for function in model.functions for node in function.instances[0].walk()]
    assert scopes == ["my::f/w", "my::f:two/w"]
    assert [function.instances[0].calls[0].message for function in model.functions] == [
        "called from a",
        "called from b",
    ]


def test_recursion_is_a_defect_and_not_followed() -> None:
    model = read_text("""
        <ir_version: 10, opset_import: ["" : 18, "my" : 1]>
        main (float[2, 3] x) => (y, z) { y = my.ping (x) z = my.self (x) }
        <domain: "my", opset_import: ["" : 18, "my" : 1]>
        ping (v) => (w) { t = Relu (v) w = my.pong (t) }
        <domain: "my", opset_import: ["" : 18, "my" : 1]>
        pong (v) => (w) { w = my.ping (v) }
        <domain: "my", opset_import: ["" : 18, "my" : 1]>
        self (v) => (w) { w = my.self (v) }
    """)
    assert [(defect.kind, defect.message) for defect in model.defects] == [
        ("cycle", "functions 'my::ping', 'my::pong' call each other, expected no recursion"),
        ("cycle", "function 'my::self' calls itself, expected no recursion"),
    ]
    assert [len(function.instances) for function in model.functions] == [1, 1, 1]
    first = next(model.functions[0].instances[0].walk())
    assert show(first.outputs[0].shape) == "[2, 3]"


def _tower(height: int) -> ModelProto:
    """Return a model whose functions each call the next one twice."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    functions = []
    for level in range(height):
        next_one = {"op_type": f"f{level + 1}", "domain": "my"}
        if level == height - 1:
            next_one = {"op_type": "Relu", "domain": ""}
        nodes = [
            helper.make_node(inputs=["v"], outputs=["t"], **next_one),
            helper.make_node(inputs=["t"], outputs=["w"], **next_one),
        ]
        functions.append(helper.make_function("my", f"f{level}", ["v"], ["w"], nodes, opsets))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
    call = helper.make_node("f0", ["x"], ["y"], domain="my")
    graph = helper.make_graph([call], "g", inputs, [])
    return helper.make_model(graph, ir_version=10, opset_imports=opsets, functions=functions)


def test_calls_in_calls_do_not_multiply() -> None:
    model = read_proto(_tower(40))
    assert all(len(function.instances) <= 2 for function in model.functions)
    model = read_proto(_tower(5))
    last = model.functions[-1].instances
    assert [show(node.outputs[0].shape) for node in last[0].walk()] == ["[2, 3]", "[2, 3]"]
    assert [call.message for call in last[0].calls] == [
        "called from my::f3/t",
        "called from my::f3/w",
    ]


def test_too_many_signatures_share_one_instance() -> None:
    count = onnx_functions.INSTANCES + 3
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    node = helper.make_node("Relu", ["v"], ["w"])
    function = helper.make_function("my", "f", ["v"], ["w"], [node], opsets[:1])
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [i + 1]) for i in range(count)]
    calls = [helper.make_node("f", [f"x{i}"], [f"y{i}"], domain="my") for i in range(count)]
    graph = helper.make_graph(calls, "g", inputs, [])
    proto = helper.make_model(graph, ir_version=10, opset_imports=opsets, functions=[function])
    instances = read_proto(proto).functions[0].instances
    assert len(instances) == onnx_functions.INSTANCES + 1
    assert len(instances[-1].calls) == 3
    assert next(instances[-1].walk()).outputs[0].shape is None


def test_a_tensor_attribute_of_the_call() -> None:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    node = helper.make_node("Constant", [], ["w"])
    node.attribute.add(name="value", ref_attr_name="given", type=AttributeProto.TENSOR)
    function = helper.make_function("my", "f", [], ["w"], [node], opsets[:1], ["given"])
    tensor = helper.make_tensor("t", TensorProto.INT64, [2], np.array([3, 5]))
    call = helper.make_node("f", [], ["y"], domain="my", given=tensor)
    graph = helper.make_graph([call], "g", [], [])
    proto = helper.make_model(graph, ir_version=10, opset_imports=opsets, functions=[function])
    model = read_proto(proto)
    value = next(model.functions[0].instances[0].walk()).outputs[0]
    assert isinstance(value.constant, Constant)
    array = value.constant.load()
    assert array is not None
    assert array.tolist() == [3, 5]
    assert next(model.functions[0].definition.walk()).outputs[0].constant is None


def _growing(height: int) -> ModelProto:
    """Return a model whose functions each call the next one twice, with inputs of different sizes."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    functions = []
    for level in range(height):
        call = {"op_type": f"f{level + 1}", "domain": "my"}
        if level == height - 1:
            call = {"op_type": "ScatterElements", "domain": ""}
        nodes = [
            helper.make_node("Concat", ["x"] * (3 + level), ["more"], axis=0),
            helper.make_node(inputs=["x", "i", "u"], outputs=["a"], **call),
            helper.make_node(inputs=["more", "i", "u"], outputs=["b"], **call),
            helper.make_node("Concat", ["a", "b"], ["y"], axis=0),
        ]
        functions.append(helper.make_function("my", f"f{level}", ["x", "i", "u"], ["y"], nodes, opsets))
    inputs = [
        helper.make_tensor_value_info(name, type, [size])
        for name, type, size in (
            ("x", TensorProto.FLOAT, 4),
            ("i", TensorProto.INT64, 2),
            ("u", TensorProto.FLOAT, 2),
        )
    ]
    call = helper.make_node("f0", ["x", "i", "u"], ["y"], domain="my")
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])]
    graph = helper.make_graph([call], "g", inputs, outputs)
    return helper.make_model(graph, ir_version=10, opset_imports=opsets, functions=functions)


@pytest.mark.parametrize("height", [12, 18, 24])
def test_functions_that_multiply_end_soon_and_with_a_sentence(height: int, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(_growing(height).SerializeToString())
    assert path.stat().st_size < 6000
    start = time.perf_counter()
    model = ir_scatter.read(path)
    found = ir_scatter.validate(model)
    assert inspect(model)
    ir_scatter.convert(model, "ScatterND")
    assert time.perf_counter() - start < 15
    notes = [one for one in found if one.code == "SCT941"]
    assert notes
    assert {one.severity for one in found} == {Severity.NOTE}
    if height > 12:
        assert re.fullmatch(
            r"shapes in \d+ of \d+ graphs and uses of functions are not known: .*", notes[-1].message
        )
        message = (
            f"functions are called {2**height - 1} times, calls in calls counted, expected at most 20000"
        )
        with pytest.raises(UnknownOperator, match=message):
            ir_scatter.evaluate_model(model, {})
        with pytest.raises(UnreadableModel, match=message):
            make_sketch(model)


def test_what_was_looked_at_has_no_note() -> None:
    for proto in (_tower(5), _growing(4)):
        model = read_proto(proto)
        list(model.walk())
        assert list(model.find_limits()) == []


def test_calls_that_share_a_graph_are_counted() -> None:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    node = helper.make_node("Relu", ["v"], ["w"])
    function = helper.make_function("my", "f", ["v"], ["w"], [node], opsets[:1])
    count = onnx_functions.INSTANCES + 3
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [i + 1]) for i in range(count)]
    calls = [helper.make_node("f", [f"x{i}"], [f"y{i}"], domain="my") for i in range(count)]
    graph = helper.make_graph(calls, "g", inputs, [])
    proto = helper.make_model(graph, ir_version=10, opset_imports=opsets, functions=[function])
    (limit,) = read_proto(proto).find_limits()
    assert limit.message == (
        "3 calls of functions are not looked at one by one: a function is called with more than 64 kinds of "
        "inputs and attributes"
    )
