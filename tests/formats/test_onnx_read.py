"""What cannot be read, and how nodes, names and attributes come out of a file."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from ir_scatter import formats
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.shapes import Bounds, show
from ir_scatter.formats.base import ONNX_FORMAT, ReadOptions
from tests.formats.onnx_patches import content, model_of, named, read

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
    assert value.stored_shape == (Bounds(symbol="n"),)
    assert (value.constant is not None) is (ir_version == 3)
    assert value.shape == ((2,) if ir_version == 3 else (Bounds(symbol="n"),))
