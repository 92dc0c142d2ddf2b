"""Patched ONNX models: what is new is right, what is old is equal field by field."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, numpy_helper, parser

from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import Patch
from ir_scatter.core.model import Model
from ir_scatter.formats.onnx import writer as onnx_writer
from ir_scatter.formats.onnx.writer import write_onnx
from tests.formats.onnx_patches import (
    Sketch,
    by_name,
    check_equal_in_onnxruntime,
    every_node,
    feeds,
    in_place,
    patched,
    placeholder,
    read,
    rows_as_nd,
    table,
    trivial,
)

UNKNOWN_FIELD = b"\xfa\x3e\x03new"
"""Field 1007 of a later version of ONNX."""


@pytest.mark.onnxruntime
def test_one_node_becomes_many(tmp_path: Path) -> None:
    source = table()
    written, _ = patched(read(source), "ScatterElements", rows_as_nd())
    onnx.checker.check_model(written, full_check=True)
    check_equal_in_onnxruntime(tmp_path, source.SerializeToString(), written, feeds())
    nodes = list(ModelProto.FromString(written).graph.node)
    assert [(node.op_type, node.name) for node in nodes] == [
        ("Shape", "scatter/indices_shape"),
        ("Constant", "scatter/one"),
        ("Gather", "scatter/columns"),
        ("Constant", "scatter/zero"),
        ("Constant", "scatter/one_2"),
        ("Range", "scatter/column"),
        ("Expand", "scatter/column_repeated"),
        ("Constant", "scatter/last"),
        ("Unsqueeze", "scatter/row_unsqueezed"),
        ("Unsqueeze", "scatter/column_unsqueezed"),
        ("Concat", "scatter/tuples"),
        ("ScatterND", "scatter"),
    ]
    assert all(list(node.output) == [node.name] for node in nodes[:-1])
    assert list(nodes[-1].input) == ["data", "scatter/tuples", "updates"]
    assert [attribute.name for attribute in nodes[-1].attribute] == ["reduction"]
    one = nodes[1].attribute[0]
    assert (one.name, one.type, one.t.data_type) == ("value", AttributeProto.TENSOR, TensorProto.INT64)
    assert (list(one.t.dims), one.t.raw_data) == ([], (1).to_bytes(8, "little"))


@pytest.mark.onnxruntime
def test_scatter_becomes_its_successor_in_place(tmp_path: Path) -> None:
    source = table(body="out = Scatter <axis = 0> (data, indices, updates)", opset=11)
    source.graph.node[0].attribute[0].doc_string = "of the axis"
    written, _ = patched(read(source), "Scatter", in_place("ScatterElements", opset=11, axis=0))
    expected = ModelProto()
    expected.CopyFrom(source)
    expected.graph.node[0].op_type = "ScatterElements"
    assert ModelProto.FromString(written) == expected
    source.opset_import[0].version = 10  # at 11 the operator is refused: that is what it is replaced for
    check_equal_in_onnxruntime(tmp_path, source.SerializeToString(), written, feeds())


def test_nothing_to_do_is_a_copy() -> None:
    source = table()
    assert write_onnx(read(source), []) == source.SerializeToString(deterministic=True)


def test_only_attributes_that_change_are_written() -> None:
    source = table(body='out = ScatterElements <reduction = "max", axis = 0> (data, indices, updates)')
    source.graph.node[0].attribute[0].MergeFromString(UNKNOWN_FIELD)
    source.graph.node[0].attribute[0].ClearField("type")
    fragment = in_place("ScatterElements", axis=-2, reduction="max", added=[1, 2])
    written, _ = patched(read(source), "ScatterElements", fragment)
    reduction, axis, added = ModelProto.FromString(written).graph.node[0].attribute
    assert reduction.SerializeToString() == source.graph.node[0].attribute[0].SerializeToString()
    assert (axis.name, axis.type, axis.i) == ("axis", AttributeProto.INT, -2)
    assert (added.name, added.type, list(added.ints)) == ("added", AttributeProto.INTS, [1, 2])


def test_an_operator_has_no_overload() -> None:
    source = table()
    source.graph.node[0].overload = "second"
    written, _ = patched(read(source), "ScatterElements", trivial)
    assert not ModelProto.FromString(written).graph.node[1].HasField("overload")


def everything() -> ModelProto:
    """Return a model with something in every field that a writer could lose."""
    source = parser.parse_model("""
        <ir_version: 11, opset_import: ["" : 18, "own" : 3], producer_name: "somebody",
         producer_version: "7", domain: "models", model_version: 4, doc_string: "all of it",
         metadata_props: ["key" : "value"]>
        main (float[4, 5] data, int64[2, 5] indices, float[2, 5] updates) => (float[4, 5] out, float[4, 5] again)
        <float[4, 5] w, float[4, 5] middle, float[2] ones = {1, 1}> {
            w = own.Custom <level: int = 3> (data)
            middle = ScatterElements (w, indices, updates)
            out = Relu (middle)
            again = ScatterElements <axis = 0> (middle, indices, updates)
        }
        <domain: "own", opset_import: ["" : 18], doc_string: "a function"> Custom <level> (x) => (y) {
            y = Relu (x)
        }
    """)
    scatter = source.graph.node[1]
    scatter.doc_string, scatter.name = "what it does", "first"
    scatter.metadata_props.add(key="scope", value="layers.0")
    scatter.device_configurations.add(configuration_id="two").sharding_spec.add(tensor_name="middle")
    scatter.device_configurations[0].sharding_spec.add(tensor_name="w")
    for message in (source, source.graph, scatter, source.graph.node[2], source.functions[0]):
        message.MergeFromString(UNKNOWN_FIELD)
    external = source.graph.initializer.add(name="far", dims=[3], data_type=TensorProto.FLOAT)
    external.data_location = TensorProto.EXTERNAL
    external.external_data.add(key="location", value="w.bin")
    external.external_data.add(key="checksum", value="none")
    sparse = source.graph.sparse_initializer.add(dims=[8])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "sparse"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([3])))
    quantized = source.graph.quantization_annotation.add(tensor_name="middle")
    quantized.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="ones")
    source.graph.metadata_props.add(key="graph", value="main")
    source.configuration.add(name="two", num_devices=2)
    training = source.training_info.add()
    training.algorithm.node.add(op_type="Relu", input=["ones"], output=["trained"])
    training.update_binding.add(key="ones", value="trained")
    return source


def test_every_other_field_survives() -> None:
    source = everything()
    written, nodes = patched(read(source), "ScatterElements", rows_as_nd())
    result = ModelProto.FromString(written)
    assert [node.name for node in nodes] == ["first", "again"]
    first = next(node for node in result.graph.node if node.name == "first")
    assert first.SerializeToString().endswith(UNKNOWN_FIELD)
    assert [spec.tensor_name for spec in first.device_configurations[0].sharding_spec] == ["middle", "w"]
    assert result.SerializeToString().count(UNKNOWN_FIELD) == 5


def test_an_input_that_is_gone_is_not_distributed() -> None:
    written, _ = patched(read(everything()), "ScatterElements", trivial)
    specs = by_name(written)["first"].device_configurations[0].sharding_spec
    assert [spec.tensor_name for spec in specs] == ["middle"]


def test_what_else_is_changed_is_changed_in_the_copy() -> None:
    model = read(table())
    before = model.source.SerializeToString()
    seen: list[str] = []

    def change(copy: ModelProto) -> None:
        seen.extend(node.op_type for node in copy.graph.node)
        copy.opset_import[0].version = 21

    fragment = in_place("ScatterND")
    written = write_onnx(model, [Patch(only(model), fragment)], change)
    assert seen == ["ScatterND"]
    assert ModelProto.FromString(written).opset_import[0].version == 21
    assert model.source.SerializeToString() == before


def test_inputs_that_are_left_out() -> None:
    source = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 18]>
        main (float[4] x, float top) => (float[4] a, float[4] b, float[4] c) {
            a = Clip (x, , top)
            b = Clip (x, top)
            c = Clip (x, top, )
        }
    """)
    swap = Sketch(4)
    data, low, high, _ = swap.given
    negated = swap.add("negated", "Neg", data)
    swap.add("clip", "Clip", negated, high, low, None)
    written, _ = patched(read(source), "Clip", swap.fragment())
    inputs = {node.output[0]: list(node.input) for node in every_node(ModelProto.FromString(written))}
    assert inputs["a"] == ["a/negated", "top"]
    assert inputs["b"] == ["b/negated", "", "top"]
    assert inputs["c"] == ["c/negated", "", "top"]


def test_a_node_with_too_many_inputs() -> None:
    source = table()
    source.graph.node[0].input.append("data")
    written, _ = patched(read(source), "ScatterElements", rows_as_nd())
    assert list(by_name(written)["scatter"].input) == ["data", "scatter/tuples", "updates"]


@pytest.mark.onnxruntime
def test_the_default_domain_keeps_its_spelling(tmp_path: Path) -> None:
    source = table()
    source.opset_import[0].domain = source.graph.node[0].domain = "ai.onnx"
    written, _ = patched(read(source), "ScatterElements", rows_as_nd())
    assert {node.domain for node in ModelProto.FromString(written).graph.node} == {"ai.onnx"}
    check_equal_in_onnxruntime(tmp_path, source.SerializeToString(), written, feeds())


def test_one_fragment_serves_both_spellings() -> None:
    source = table(body="a = ScatterElements (data, indices, updates) out = Relu (a)")
    model = ModelProto()
    model.CopyFrom(source)
    for at, domain in enumerate(("ai.onnx", "")):
        node = model.graph.node.add()
        node.CopyFrom(source.graph.node[0])
        node.output[0], node.name, node.domain = f"more{at}", f"more{at}", domain
    written, _ = patched(read(model), "ScatterElements", rows_as_nd())
    domains = {node.name: node.domain for node in every_node(ModelProto.FromString(written))}
    assert (domains["more0/tuples"], domains["more1/tuples"], domains["a/tuples"]) == ("ai.onnx", "", "")


def test_a_node_of_another_domain_becomes_one_of_onnx() -> None:
    source = everything()
    model = read(source)
    node = next(node for node in model.definitions() if node.type == "Custom")
    written = write_onnx(model, [Patch(node, in_place("Relu", given=1))])
    first = ModelProto.FromString(written).graph.node[0]
    assert (first.op_type, first.domain, list(first.input), len(first.attribute)) == ("Relu", "", ["data"], 0)


def test_a_fragment_that_makes_no_sense() -> None:
    model = read(table())
    node = only(model)
    stray = Sketch()
    stray.add("scatter", "ScatterElements", placeholder("lost"), *stray.given[1:])
    with pytest.raises(ValueError, match="scatter reads 'lost', which no node before it computes"):
        write_onnx(model, [Patch(node, stray.fragment())])


def test_a_model_that_gets_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    model = read(table())
    written = write_onnx(model, [])
    monkeypatch.setattr(onnx_writer, "LARGEST", len(written))
    assert write_onnx(model, []) == written
    with pytest.raises(NotEditable, match=r"model.onnx: .* more than 2 GiB"):
        write_onnx(model, [Patch(only(model), rows_as_nd())])


def only(model: Model) -> Any:
    (node,) = model.definitions(frozenset({"Scatter", "ScatterElements", "ScatterND"}))
    return node
