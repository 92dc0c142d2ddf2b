"""What cannot be read, how nodes, names, attributes and shapes come out of a file, and what is broken in it."""

import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper, parser

from ir_scatter import formats
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import Bounds, show
from ir_scatter.formats.base import ONNX_FORMAT, ReadOptions
from tests.formats.onnx_patches import content, model_of, named, read, shapes

SIMPLE = """
    <ir_version: 10, opset_import: ["" : 18, "custom" : 3]>
    main (float[N, 3] data, int64[2, 1] indices) => (float[N, 3] out) {
        updates = Gather <axis = 0> (data, indices)
        flat = Reshape (updates, shape)
        shape = Constant <value_ints = [2, 3]> ()
        out = ScatterND <reduction = "add"> (data, indices, flat)
    }
"""


def test_every_truncation_is_unreadable_or_a_model() -> None:
    data = parser.parse_model(SIMPLE).SerializeToString()
    defects = set()
    for end in range(1, len(data)):
        try:
            list(read(data[:end], ReadOptions(frozenset())).walk())
        except UnreadableModel as error:
            defects.add(error.defect)
    assert defects == {"malformed-protobuf", "no-graph"}


def test_a_model_says_what_it_is(tmp_path: Path) -> None:
    proto = parser.parse_model(SIMPLE)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    model = formats.read(str(path), format=ONNX_FORMAT)
    assert (model.format, model.domain, model.graph.name) == ("onnx", "", "main")
    assert model.inputs == (frozenset({"data"}), frozenset({"indices"}))
    assert model.opset_imports == {"": 18, "custom": 3}
    assert [node.scope for node in model.walk()] == ["updates", "flat", "shape", "out"]
    assert model.source.SerializeToString() == proto.SerializeToString()


def test_reading_leaves_the_source_as_it_was() -> None:
    data = parser.parse_model(SIMPLE).SerializeToString()
    model = read(data)
    assert [value.shape for node in model.walk() for value in node.outputs]
    assert model.source.SerializeToString() == data


def test_values_know_their_producer_and_constants_their_contents() -> None:
    model = read(SIMPLE)
    data, indices, flat = (port.value for port in named(model, "out").inputs)
    assert data is not None
    assert (data.producer, data.shape) == (None, (Bounds(symbol="N"), 3))
    assert indices is not None
    assert indices.element_type is ELEMENT_TYPES["i64"]
    assert flat is named(model, "flat").outputs[0]
    assert flat.producer is named(model, "flat")
    shape = named(model, "flat").inputs[1].value
    assert content(shape) == [2, 3]
    assert shape is not None
    assert shape.constant is not None
    array = shape.constant.load()
    assert array is not None
    assert not array.flags.writeable


def test_only_nodes_of_the_default_domain_have_a_type_of_interest() -> None:
    model = read("""
        <ir_version: 10, opset_import: ["" : 18, "custom" : 3]>
        main (float[2] x, bool c) => (y) {
            a = custom.Abs (x)
            b = ai.onnx.Abs (a)
            y = If (c) <then_branch = yes () => (p) { p = Abs (b) },
                        else_branch = no () => (q) { q = custom.Abs (b) }>
        }
    """)
    found = list(model.walk(frozenset({"Abs"})))
    assert [node.scope for node in found] == ["b", "y:then_branch/p"]
    assert [(node.domain, node.opset) for node in found] == [("", 18), ("", 18)]
    custom = named(model, "a")
    assert (custom.domain, custom.opset) == ("custom", 3)
    assert custom.inputs[0].value is not None


def test_opsets_that_are_not_imported() -> None:
    proto = parser.parse_model(SIMPLE)
    del proto.opset_import[:]
    assert {node.opset for node in read(proto).walk()} == {None}


def test_names_of_nodes_fall_back_to_outputs_and_then_to_types() -> None:
    rows = [(["a"], "first"), (["", "b"], ""), ([], "")]
    model = read(model_of([helper.make_node("Split", ["x"], outputs, name=name) for outputs, name in rows]))
    assert [node.name for node in model.walk()] == ["first", "b", "Split_2"]
    assert [value.name for value in named(model, "b").outputs] == ["", "b"]


def test_inputs_left_out_and_inputs_from_nowhere() -> None:
    model = read(model_of([helper.make_node("Clip", ["x", "", "limit", ""], ["y"])]))
    ports = next(model.walk()).inputs
    assert [port.is_present for port in ports] == [True, False, True, False]
    assert all(port.value is None for port in ports)


@pytest.mark.parametrize("is_typed", [True, False])
def test_attributes_keep_the_type_they_are_written_with(is_typed: bool) -> None:
    """Files of IR versions 1 and 2 may leave the type out: then it is that of the field that is set."""
    expected: dict[str, Any] = {
        "axis": 1.0,
        "count": 2,
        "word": "add",
        "numbers": [3, 5],
        "parts": [0.5],
        "words": ["a", "b"],
    }
    node = helper.make_node("Custom", [], ["y"], **expected)
    tensor = numpy_helper.from_array(np.array([[7, 11]], np.int32), "t")
    node.attribute.append(helper.make_attribute("tensor", tensor))
    for attribute in node.attribute if not is_typed else ():
        attribute.ClearField("type")
    attributes = dict(next(read(model_of([node])).walk()).attributes)
    array = attributes.pop("tensor").load()
    assert array is not None
    assert array.tolist() == [[7, 11]]
    assert attributes == expected
    assert isinstance(attributes["axis"], float)


def test_names_that_are_not_utf8() -> None:
    data = parser.parse_model(SIMPLE.replace("flat", "qqqq")).SerializeToString()
    model = read(data.replace(b"qqqq", b"\xff\xfe\x80q"))
    names = [node.name for node in model.walk()]
    assert names == ["updates", "\\xff\\xfe\\x80q", "shape", "out"]
    value = named(model, "out").inputs[2].value
    assert value is not None
    assert value.producer is named(model, "\\xff\\xfe\\x80q")


def test_constants_of_every_kind() -> None:
    nodes = [
        helper.make_node("Constant", [], ["int"], value_int=3),
        helper.make_node("Constant", [], ["floats"], value_floats=[0.5, 1.5]),
        helper.make_node("Constant", [], ["strings"], value_strings=["a", "b"]),
        helper.make_node("Constant", [], ["none"]),
    ]
    nodes[3].attribute.add(name="value_floats", type=onnx.AttributeProto.FLOATS)
    values = [node.outputs[0] for node in read(model_of(nodes)).walk()]
    types = [value.element_type and value.element_type.name for value in values]
    assert types == ["i64", "f32", "string", "f32"]
    assert [show(value.shape) for value in values] == ["[]", "[2]", "[2]", "[0]"]
    assert [content(value) for value in values] == [3, [0.5, 1.5], ["a", "b"], []]


@pytest.mark.parametrize("ir_version", [3, 10])
def test_an_initializer_that_is_an_input_is_a_default_from_version_4_on(ir_version: int) -> None:
    tensor = numpy_helper.from_array(np.array([0, 2], np.int64), "i")
    node = helper.make_node("Gather", ["x", "i"], ["y"])
    proto = model_of([node], tensor, x=(TensorProto.FLOAT, [3]), i=(TensorProto.INT64, ["n"]))
    proto.ir_version = ir_version
    model = read(proto)
    assert model.inputs == (frozenset({"x"}),)
    value = next(model.walk()).inputs[1].value
    assert value is not None
    assert (value.constant is not None) is (ir_version == 3)
    assert value.shape == ((2,) if ir_version == 3 else (Bounds(symbol="n"),))


# Shapes: inferred, stored, given by the user; in bodies too


MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"


CONTROL_FLOW = """
    <ir_version: 10, opset_import: ["" : 18]>
    main (float[N, 4] x, bool c, int64 trip) => (chosen, looped) <int64[1] two = {2}> {
        shape = Constant <value = int64[2] {8, 2}> ()
        listed = Constant <value_ints = [2, -1]> ()
        w = Relu (x)
        chosen = If (c) <
            then_branch = yes () => (a) {
                nested = If (c) <
                    then_branch = deep () => (d) { d = Reshape (w, shape) },
                    else_branch = other () => (e) { e = Tile (listed, two) }>
                a = Reshape (x, shape)
            },
            else_branch = no () => (b) { b = Reshape (x, listed) }>
        looped = Loop (trip, c, x) <
            body = step (int64 i, bool go, float[3, 5] state) => (next, moved) {
                next = Identity (go)
                moved = Neg (state)
            }>
    }
"""


def test_bodies_are_inferred_with_constants_from_around_them() -> None:
    model = read(CONTROL_FLOW)
    found = shapes(model)
    assert found["w"] == "[N, 4]"
    assert found["chosen:then_branch/a"] == "[8, 2]"
    assert found["chosen:else_branch/b"] == "[2, ?]"
    assert found["chosen:then_branch/nested:then_branch/d"] == "[8, 2]"
    assert found["chosen:then_branch/nested:else_branch/e"] == "[4]"
    assert found["looped:body/moved"] == "[3, 5]"


def test_bodies_resolve_names_in_the_graphs_around_them() -> None:
    model = read(CONTROL_FLOW)
    data, shape = (port.value for port in named(model, "chosen:then_branch/nested:then_branch/d").inputs)
    assert data is not None
    assert data.producer is named(model, "w")
    assert content(shape) == [8, 2]
    state = named(model, "looped:body/moved").inputs[0].value
    assert state is not None
    assert (state.producer, state.constant) == (None, None)


def test_a_walk_goes_through_bodies_right_after_their_node() -> None:
    model = read(CONTROL_FLOW)
    scopes = [node.scope for node in model.walk()]
    assert scopes[3:9] == [
        "chosen",
        "chosen:then_branch/nested",
        "chosen:then_branch/nested:then_branch/d",
        "chosen:then_branch/nested:else_branch/e",
        "chosen:then_branch/a",
        "chosen:else_branch/b",
    ]
    found = [node.scope for node in model.walk(frozenset({"Reshape", "If"}))]
    assert found == [scope for scope in scopes[3:9] if not scope.endswith("/e")]


STALE = """
    <ir_version: 10, opset_import: ["" : 18, "custom" : 1]>
    main (float[2, 3] x) => (float[7, 7] y, z) <float[5, 5] a, float[2, 3] b, float[2, 11] p> {
        a = Relu (x)
        b = Abs (a)
        y = Neg (b)
        p = custom.Op (x)
        z = Neg (p)
    }
"""


def test_stale_shapes_are_not_believed_and_stored_ones_count_where_inference_knows_nothing() -> None:
    values = [node.outputs[0] for node in read(STALE).walk()]
    assert {value.name: (show(value.shape), show(value.stored_shape)) for value in values} == {
        "a": ("[2, 3]", "[5, 5]"),
        "b": ("[2, 3]", "[2, 3]"),
        "y": ("[2, 3]", "[7, 7]"),
        "p": ("[2, 11]", "[2, 11]"),
        "z": ("[2, 11]", "[...]"),
    }


def test_stored_and_inferred_dimensions_complete_each_other() -> None:
    model = read("""
        <ir_version: 10, opset_import: ["" : 18]>
        main (float[2, ?] x, int64[2] s) => (y) <float[?, 3] y> {
            y = Relu (x)
        }
    """)
    value = named(model, "y").outputs[0]
    assert show(value.shape) == "[2, 3]"


def test_symbols_that_inference_makes_up_are_unknown_dimensions() -> None:
    model = read("""
        <ir_version: 10, opset_import: ["" : 18]>
        main (float[2, 3] x) => (y) { y = NonZero (x) }
    """)
    assert show(named(model, "y").outputs[0].shape) == "[2, ?]"


def test_the_user_may_replace_the_shapes_of_inputs() -> None:
    given = {"x": (3, 5), "nobody": (1,)}
    model = read(CONTROL_FLOW, ReadOptions(has_folder=False, input_shapes=given))
    value = named(model, "w").inputs[0].value
    assert value is not None
    assert value.shape == (3, 5)
    assert shapes(model)["w"] == "[3, 5]"


def test_no_inference_unless_a_type_of_interest_occurs() -> None:
    model = read(CONTROL_FLOW, ReadOptions(frozenset({"ScatterND"}), has_folder=False))
    assert shapes(model)["chosen"] == "[...]"


def test_inference_without_fork_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork", raising=False)
    assert shapes(read(CONTROL_FLOW))["chosen:then_branch/a"] == "[8, 2]"


def test_inference_that_asks_for_all_memory_is_given_up() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(40)]
    assert shapes(read(model_of(nodes, x=(TensorProto.FLOAT, ["n", 3]))))["s3"] == "[16]"


def test_an_overridable_default_is_no_constant_for_inference() -> None:
    shape = numpy_helper.from_array(np.array([3, 2], np.int64), "s")
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    proto = model_of([node], shape, x=(TensorProto.FLOAT, [2, 3]), s=(TensorProto.INT64, [2]))
    assert shapes(read(proto)) == {"y": "[?, ?]"}
    proto.ir_version = 3
    assert shapes(read(proto)) == {"y": "[3, 2]"}


def test_large_and_broken_initializers_count_by_their_type() -> None:
    large = numpy_helper.from_array(np.zeros((67, 71), np.float32), "w")
    broken = TensorProto(name="b", data_type=TensorProto.FLOAT, dims=[71], raw_data=b"123")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    model = read(model_of(nodes, large, broken, x=(TensorProto.FLOAT, ["n", 67])))
    assert shapes(model) == {"m": "[n, 71]", "y": "[n, 71]"}


@pytest.mark.models
def test_real_models_are_read_without_defects_and_with_shapes() -> None:
    paths = sorted(MODELS.glob("**/*.onnx"))
    if not paths:
        pytest.skip("the folder of real models is not beside the checkout")
    for path in paths:
        model = formats.read(str(path), format=ONNX_FORMAT)
        assert {defect.kind for defect in model.defects} <= {"stored-contradiction"}
        outputs = [value for node in model.walk() for value in node.outputs]
        known = [value for value in outputs if value.shape is not None]
        assert len(known) > 0.7 * len(outputs), path


# What is broken in a file that can be read


def defects(model: Model) -> list[tuple[str, str, str]]:
    return [(defect.kind, defect.location.scope, defect.message) for defect in model.defects]


def one_tensor(tensor: TensorProto) -> Model:
    return read(model_of([helper.make_node("Identity", [tensor.name], ["y"])], tensor))


def test_inputs_that_nothing_produces() -> None:
    model = read("""
        <ir_version: 10, opset_import: ["" : 18]>
        main (float[2] x, bool c) => (y) {
            a = Add (x, ghost)
            y = If (c) <
                then_branch = yes () => (p) { p = Add (a, spirit) },
                else_branch = no () => (nobody) { q = Abs (x) }>
        }
    """)
    assert defects(model) == [
        ("unknown-value", "a", "input 1 is 'ghost', which no node, input or initializer defines"),
        (
            "unknown-value",
            "y:then_branch/p",
            "input 1 is 'spirit', which no node, input or initializer defines",
        ),
        (
            "unknown-value",
            "y:else_branch/nobody",
            "no node, input or initializer defines output 'nobody' of the graph",
        ),
    ]
    first = model.defects[0]
    assert first.node is not None
    assert (first.node.name, first.port_index) == ("a", 1)


def test_nodes_that_depend_on_each_other() -> None:
    model = read("""
        <ir_version: 10, opset_import: ["" : 18]>
        main (float[2] x, bool c) => (z) {
            a = Add (x, b)
            b = If (c) <
                then_branch = yes () => (p) { p = Abs (a) },
                else_branch = no () => (q) { q = Abs (x) }>
            z = Add (z, x)
            after = Abs (b)
        }
    """)
    assert [message for _, _, message in defects(model)] == [
        "the nodes 'a', 'b' depend on each other, expected no cycle",
        "the node depends on its own output, expected no cycle",
    ]
    assert {kind for kind, _, _ in defects(model)} == {"cycle"}


def test_nodes_that_are_not_sorted() -> None:
    model = read("""
        <ir_version: 10, opset_import: ["" : 18]>
        main (float[2] x) => (c) {
            c = Add (b, a)
            b = Abs (a)
            a = Abs (x)
        }
    """)
    assert defects(model) == [
        (
            "not-sorted",
            "c",
            "'b' is used before the node 'b' that produces it, the first of 3 such inputs, "
            "expected nodes in topological order",
        )
    ]
    assert [node.outputs[0].shape for node in model.walk()] == [(2,), (2,), (2,)]


def test_names_that_are_used_twice() -> None:
    tensor = numpy_helper.from_array(np.zeros(2, np.float32), "w")
    nodes = [helper.make_node("Abs", ["x"], [name]) for name in ("a", "a", "w", "x")]
    model = read(model_of(nodes, tensor, tensor, x=(TensorProto.FLOAT, [2])))
    assert [(kind, message.split()[0]) for kind, _, message in defects(model)] == [
        ("duplicate-id", "'w'"),
        ("duplicate-id", "'a'"),
        ("duplicate-id", "'w'"),
        ("duplicate-id", "'x'"),
    ]


def test_dimensions_below_zero() -> None:
    model = read(model_of([helper.make_node("Relu", ["x"], ["y"])], x=(TensorProto.FLOAT, [-1, 3, -2])))
    dynamic = "dimension 0 of 'x' is -1, expected 0 or more: runtimes read it as dynamic"
    wrong = "dimension 2 of 'x' is -2, expected 0 or more"
    assert defects(model) == [("bad-number", "x", dynamic), ("bad-number", "x", wrong)]
    assert [defect.is_tolerated for defect in model.defects] == [True, False]
    assert shapes(model) == {"y": "[?, 3, ?]"}


def test_tensors_with_impossible_numbers() -> None:
    model = one_tensor(TensorProto(name="t", data_type=99, dims=[2], raw_data=b"12"))
    message = "the element type of the initializer 't' is number 99, expected one that ONNX defines"
    assert defects(model) == [("bad-number", "t", message)]
    assert content(next(model.walk()).inputs[0].value) is None
    model = one_tensor(TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[2, -3]))
    message = "the dimensions of the initializer 't' are [2, -3], expected numbers >= 0"
    assert defects(model) == [("bad-number", "t", message)]
    value = next(model.walk()).inputs[0].value
    assert value is not None
    assert value.constant is None


@pytest.mark.parametrize(
    ("tensor", "found"),
    [
        (TensorProto(data_type=TensorProto.FLOAT, dims=[2, 3], raw_data=b"1" * 20), "20 bytes"),
        (TensorProto(data_type=TensorProto.FLOAT, dims=[2, 3], raw_data=b"1" * 25), "25 bytes"),
        (TensorProto(data_type=TensorProto.INT64, dims=[2, 3]), "0 entries in int64_data"),
        (TensorProto(data_type=TensorProto.INT4, dims=[7], raw_data=b"123"), "3 bytes"),
        (TensorProto(data_type=TensorProto.BOOL, dims=[3], int32_data=[1]), "1 entries in"),
        (TensorProto(data_type=TensorProto.COMPLEX64, dims=[3], float_data=[1.0] * 3), "3 entries"),
        (TensorProto(data_type=TensorProto.DOUBLE, dims=[2**62, 2**62]), "0 entries"),
        (TensorProto(data_type=TensorProto.DOUBLE, dims=[2**62] * 400), "0 entries"),
    ],
)
def test_tensors_whose_size_does_not_fit(tensor: TensorProto, found: str) -> None:
    tensor.name = "t"
    model = one_tensor(tensor)
    ((kind, scope, message),) = defects(model)
    assert (kind, scope) == ("constant-size", "t")
    assert message.startswith(f"the initializer 't' has {found}")
    assert content(next(model.walk()).inputs[0].value) is None


TYPES = sorted(set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED})
NEVER_RAW = (TensorProto.STRING, True)


@pytest.mark.parametrize(
    ("type", "is_raw"), [case for case in product(TYPES, [True, False]) if case != NEVER_RAW]
)
def test_sound_tensors_of_every_type(type: int, is_raw: bool) -> None:
    values = [1, 0, 1, 1, 0]
    if type == TensorProto.STRING:
        tensor = TensorProto(name="t", data_type=type, dims=[5], string_data=[b"a"] * 5)
    elif is_raw:
        array = np.array(values).astype(helper.tensor_dtype_to_np_dtype(type))
        tensor = numpy_helper.from_array(array, "t")
    else:
        tensor = helper.make_tensor("t", type, [5], values)
    model = one_tensor(tensor)
    assert defects(model) == []
    value = next(model.walk()).inputs[0].value
    assert value is not None
    assert value.constant is not None
    loaded = value.constant.load()
    assert loaded is not None
    assert loaded.shape == (5,)
    assert not loaded.flags.writeable


def test_constant_nodes_are_checked_in_bodies_and_functions() -> None:
    broken = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[2], raw_data=b"123")
    constant = helper.make_node("Constant", [], ["k"], name="hold", value=broken)
    body = helper.make_graph([constant], "body", [], [ValueInfoProto(name="k")])
    branch = helper.make_node("If", ["c"], ["y"], name="if", then_branch=body, else_branch=body)
    proto = model_of([branch], c=(TensorProto.BOOL, []))
    proto.functions.append(helper.make_function("my", "f", [], ["k"], [constant], proto.opset_import))
    model = read(proto)
    assert [(kind, scope) for kind, scope, _ in defects(model)] == [
        ("constant-size", "if:else_branch/hold"),
        ("constant-size", "if:then_branch/hold"),
        ("constant-size", "my::f/hold"),
    ]
