"""Patched ONNX models: what is new is right, what is old is equal field by field."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper, parser

from ir_scatter import formats
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.errors import Error, NotEditable
from ir_scatter.core.fragment import NewConstant, Patch
from ir_scatter.core.model import Model, Value
from ir_scatter.evaluate.model import prepare
from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.formats.onnx import writer as onnx_writer
from ir_scatter.formats.onnx.tensors import make_attribute, make_tensor
from ir_scatter.formats.onnx.writer import write_onnx
from ir_scatter.inputs.model import make_feeds
from tests.formats.onnx_patches import (
    Sketch,
    by_name,
    check_all_equal_in_onnxruntime,
    check_equal_in_onnxruntime,
    every_graph,
    every_node,
    feeds,
    in_place,
    new_names,
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
    with pytest.raises(ValueError, match="scatter reads 'lost', which no earlier node computes"):
        write_onnx(model, [Patch(node, stray.fragment())])


def test_a_model_that_gets_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    model = read(table())
    written = write_onnx(model, [])
    monkeypatch.setattr(onnx_writer, "LARGEST", len(written))
    assert write_onnx(model, []) == written
    with pytest.raises(NotEditable, match=r"model.onnx: .* exceed 2 GiB"):
        write_onnx(model, [Patch(only(model), rows_as_nd())])


def only(model: Model) -> Any:
    (node,) = model.definitions(frozenset({"Scatter", "ScatterElements", "ScatterND"}))
    return node


# Names of new nodes: readable, and of nothing else in the file


def test_a_node_without_a_name_lends_that_of_its_output() -> None:
    written, _ = patched(read(table(name="")), "ScatterElements", trivial)
    first, last = ModelProto.FromString(written).graph.node
    assert (first.name, list(first.output), last.name) == ("out/copied", ["out/copied"], "")
    assert new_names(read(table()), written) == ["out/copied"]


CLASHES = """
    <ir_version: 10, opset_import: ["" : 18]>
    main (float[4] data, int64[2] indices, float[2] updates, bool c, float[4] {input}) => (float[4] out)
    <float[4] {initializer} = {{1, 2, 3, 4}}, float[4] {stored}> {{
        [{node}] inner = If (c) <
            then_branch = then () => (float[4] {body}) {{ {body} = Relu (data) }},
            else_branch = other () => (float[4] d) {{ d = ScatterElements (data, indices, updates) }}
        >
        {value} = Relu (inner)
        out = ScatterElements ({value}, indices, updates)
    }}
"""


@pytest.mark.parametrize("place", ["input", "initializer", "stored", "node", "body", "value"])
def test_names_are_new_wherever_the_old_one_stands(place: str) -> None:
    places = {key: f"some_{key}" for key in ("input", "initializer", "stored", "node", "body", "value")}
    text = CLASHES.format(**places).replace(f"some_{place}", "TAKEN").replace("[TAKEN]", "[out_copied]")
    source = parser.parse_model(text.replace("TAKEN", "out_copied"))
    data = source.SerializeToString().replace(b"out_copied", b"out/copied")
    model = read(data)
    written, _ = patched(model, "ScatterElements", trivial)
    assert new_names(model, written) == ["out/copied_2", "d/copied"]
    onnx.checker.check_model(written)


@pytest.mark.parametrize("place", ["sparse", "missing", "training", "training_body"])
def test_names_are_new_in_rare_places(place: str) -> None:
    source, name = table(), "scatter/copied"
    if place == "sparse":
        source.graph.sparse_initializer.add().values.name = name
    elif place == "missing":
        source.graph.node.add(op_type="Relu", input=[name], output=["unused"])
    else:
        training = source.training_info.add().algorithm
        if place == "training_body":
            training = training.node.add(op_type="If").attribute.add(name="then_branch", type="GRAPH").g
        training.node.add(op_type="Relu", input=["data"], output=[name])
    model = read(source)
    written, _ = patched(model, "ScatterElements", trivial)
    assert new_names(model, written) == ["scatter/copied_2"]


def test_functions_have_names_of_their_own() -> None:
    source = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        main (float[4] d, int64[2] i, float[2] u) => (float[4] x, float[4] y) {
            x = own.Put (d, i, u)
            y = ScatterElements (x, i, u)
        }
        <domain: "own", opset_import: ["" : 18]> Put (d, i, u) => (y) { y = ScatterElements (d, i, u) }
    """)
    model = read(source)
    written, _ = patched(model, "ScatterElements", trivial)
    assert new_names(model, written) == ["y/copied", "y/copied"]
    onnx.checker.check_model(written, full_check=True)


NAMES = st.sampled_from(["", "n", "n/copied", "n/copied_2", "n/copied_3", "v0/copied", "v1/copied"])


@given(st.lists(st.tuples(NAMES, st.booleans()), min_size=1, max_size=6), st.permutations(range(6)))
def test_any_names(rows: list[tuple[str, bool]], order: list[int]) -> None:
    nodes = [
        helper.make_node(
            "ScatterElements" if is_scatter else "Sum",
            [f"v{at}" if at else "data", "indices", "updates"], [f"v{at + 1}"], name=name,
        )
        for at, (name, is_scatter) in enumerate(rows)
    ]  # fmt: skip
    model = read(helper.make_model(helper.make_graph(nodes, "g", [], []), ir_version=10))
    written, found = patched(model, "ScatterElements", trivial)
    new = new_names(model, written)
    taken = {name for node in nodes for name in (node.name, *node.input, *node.output)}
    assert len({*new}) == len(new)
    assert taken.isdisjoint(new)
    patches = [Patch(node, trivial(node)) for node in found]
    shuffled = write_onnx(model, [patches[at] for at in order if at < len(patches)])
    assert shuffled == written


def test_names_that_are_not_utf8() -> None:
    data = table().SerializeToString().replace(b"indices", b"ind\xffces").replace(b"out", b"o\xfet")
    written, _ = patched(read(data.replace(b"scatter", b"sc\xfdtter")), "ScatterElements", rows_as_nd())
    nodes = ModelProto.FromString(written).graph.node
    assert nodes[0].name == r"sc\xfdtter/indices_shape"
    assert list(nodes[0].input) == [b"ind\xffces"]
    assert (nodes[-1].name, nodes[-1].output[0]) == (b"sc\xfdtter", b"o\xfet")
    written, _ = patched(read(data), "ScatterElements", in_place("ScatterElements", axis=1))
    assert list(ModelProto.FromString(written).graph.node[0].input) == ["data", b"ind\xffces", "updates"]


def test_a_long_name_that_is_not_utf8() -> None:
    name = b"\xff" + b"i" * 300
    source = table()
    source.graph.node[0].input[1] = "i" * 301
    data = source.SerializeToString().replace(b"i" * 301, name)
    written, _ = patched(read(data), "ScatterElements", trivial)
    assert ModelProto.FromString(written).graph.node[1].input[1] == name


# Patches in bodies and functions, and in models that others wrote


MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
SCATTER = ("Scatter", "ScatterElements", "ScatterND", "TensorScatter")

DEEP = """
    <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    main (float[4, 5] data, int64[2, 5] indices, float[2, 5] updates, bool c) => (float[4, 5] out, float[4, 5] b)
    <int64 trips = {2}, bool yes = {1}> {
        out = Loop (trips, yes, data) <body = body (int64 step, bool again, float[4, 5] old)
            => (bool again, float[4, 5] new) {
                doubled = Add (old, old)
                new = If (c) <
                    then_branch = then () => (float[4, 5] x) {
                        start = Relu (doubled)
                        x = ScatterElements (start, indices, updates)
                    },
                    else_branch = other () => (float[4, 5] y) {
                        y = ScatterElements <reduction = "add"> (doubled, indices, updates)
                    }
                >
            }
        >
        b = own.Outer (out, indices, updates)
    }
    <domain: "own", opset_import: ["" : 18, "own" : 1]> Outer (d, i, u) => (y) {
        first = own.Inner (d, i, u)
        y = ScatterElements (first, i, u)
    }
    <domain: "own", opset_import: ["" : 18]> Inner (d, i, u) => (y) {
        yes = Constant <value = bool {1}> ()
        y = If (yes) <
            then_branch = then () => (x) { x = ScatterElements (d, i, u) },
            else_branch = other () => (z) { z = Identity (d) }
        >
    }
"""


def deep_feeds(c: bool) -> list[Any]:
    rng = np.random.default_rng(5)
    indices = np.argsort(rng.random((4, 5)), axis=0)[:2]
    return [rng.random((4, 5), np.float32), indices, rng.random((2, 5), np.float32), np.array(c)]


@pytest.mark.onnxruntime
@pytest.mark.parametrize("c", [True, False])
def test_bodies_and_functions(tmp_path: Path, c: bool) -> None:
    source = parser.parse_model(DEEP)
    written, nodes = patched(
        read(source),
        "ScatterElements",
        lambda node: rows_as_nd("add" if node.attributes.get("reduction") == "add" else "none"),
    )
    assert [node.scope for node in nodes] == [
        "out:body/new:then_branch/x",
        "out:body/new:else_branch/y",
        "own::Outer/y",
        "own::Inner/y:then_branch/x",
    ]
    onnx.checker.check_model(written, full_check=True)
    check_equal_in_onnxruntime(tmp_path, source.SerializeToString(), written, deep_feeds(c))
    counts = [len(nodes) for nodes in every_graph(ModelProto.FromString(written))]
    assert counts == [2, 2, 13, 12, 13, 2, 12, 1]


def test_graphs_in_lists_and_attributes_of_one_name() -> None:
    """A custom operator may hold graphs in any way; each keeps its own nodes."""
    source = parser.parse_model(DEEP)
    body = source.graph.node[0].attribute[0].g.node[1].attribute[0].g
    node = source.graph.node.add(op_type="Many", domain="own", name="many", output=["unused"])
    for number in range(2):
        helper_graph = helper.make_graph(list(body.node), f"g{number}", [], [])
        for inner in helper_graph.node:
            inner.output[0] += f"_{number}"
        helper_graph.node[1].input[0] += f"_{number}"
        helper_graph.node[0].input[0] = "data"
        node.attribute.add(name="graphs", type=onnx.AttributeProto.GRAPHS)
        node.attribute[0].graphs.append(helper_graph)
    del node.attribute[1]
    written, nodes = patched(read(source), "ScatterElements", trivial)
    scopes = [node.scope for node in nodes if "many" in node.scope]
    assert scopes == ["many:graphs[0]/x_0", "many:graphs[1]/x_1"]
    result = by_name(written)["many"].attribute[0].graphs
    assert [[node.op_type for node in graph.node] for graph in result] == [
        ["Relu", "Identity", "ScatterElements"]
    ] * 2


def _real_models() -> list[Path]:
    return sorted(MODELS.glob("**/*.onnx"))


@pytest.mark.models
@pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
def test_real_models_are_equal_but_for_the_patched_nodes() -> None:
    count = 0
    for path in _real_models():
        model = formats.read(str(path), format=ONNX_FORMAT)
        written, nodes = patched(model, SCATTER, trivial)
        count += len(nodes)
        assert [one.kind for one in read(written).defects] == [one.kind for one in model.defects]
    assert count > 150


@pytest.mark.models
@pytest.mark.onnxruntime
@pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
def test_real_models_compute_the_same(tmp_path: Path) -> None:
    jobs = {}
    for path in _real_models():
        try:
            feeds = make_feeds(prepare(path), 0)
        except Error:
            continue
        written, _ = patched(formats.read(str(path), format=ONNX_FORMAT), SCATTER, trivial)
        jobs[str(path)] = (path.read_bytes(), written, list(feeds.values()))
    assert len(jobs) > 30
    check_all_equal_in_onnxruntime(tmp_path, jobs)


# Python values as ONNX messages


TYPES = [type for type in ELEMENT_TYPES.values() if dtype(type) is not None and type.onnx_number is not None]


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5)])
def test_constants_of_every_type(shape: tuple[int, ...]) -> None:
    for type in TYPES:
        demand_constant(type, shape)


def demand_constant(type: ElementType, shape: tuple[int, ...]) -> None:
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2
    is_text = type.kind == "string"
    array = np.asarray(numbers.astype(str) if is_text else numbers, dtype(type))
    label, source = "constant", table()
    value = Value(label, type, shape, constant=NewConstant(label, type, array))
    sketch = Sketch()
    sketch.add("scatter", "ScatterElements", *sketch.given, value)
    written, _ = patched(read(source), "ScatterElements", sketch.fragment())
    tensor = ModelProto.FromString(written).graph.node[0].attribute[0].t
    assert (tensor.data_type, tuple(tensor.dims)) == (type.onnx_number, shape)
    assert tensor.HasField("raw_data") is not is_text
    found = numpy_helper.to_array(tensor)
    assert found.dtype == array.dtype
    assert (found.tolist() == array.tolist()) if is_text else (found.tobytes() == array.tobytes())


def test_arrays_in_any_layout() -> None:
    array = np.arange(6, dtype=">i4").reshape(2, 3).T
    assert numpy_helper.to_array(make_tensor(array)).tolist() == array.tolist()


@pytest.mark.parametrize(
    ("value", "type", "field", "expected"),
    [
        (3, AttributeProto.INT, "i", 3),
        (True, AttributeProto.INT, "i", 1),
        (np.int32(3), AttributeProto.INT, "i", 3),
        (0.5, AttributeProto.FLOAT, "f", 0.5),
        (np.float32(0.5), AttributeProto.FLOAT, "f", 0.5),
        ("größer", AttributeProto.STRING, "s", "größer".encode()),
        (b"\xff", AttributeProto.STRING, "s", b"\xff"),
        ([1, 2], AttributeProto.INTS, "ints", [1, 2]),
        ((), AttributeProto.INTS, "ints", []),
        ([1, 0.5], AttributeProto.FLOATS, "floats", [1, 0.5]),
        (["a", "b"], AttributeProto.STRINGS, "strings", [b"a", b"b"]),
    ],
)
def test_attributes(value: object, type: int, field: str, expected: object) -> None:
    attribute = make_attribute("a", value)
    assert (attribute.name, attribute.type) == ("a", type)
    found = getattr(attribute, field)
    assert (list(found) if isinstance(expected, list) else found) == expected


def test_an_array_is_a_tensor() -> None:
    attribute = make_attribute("a", np.array([1.5], ml_dtypes.bfloat16))
    assert (attribute.type, attribute.t.data_type) == (AttributeProto.TENSOR, TensorProto.BFLOAT16)
    assert attribute.t.raw_data == b"\xc0\x3f"


@pytest.mark.parametrize("value", [None, [1, "a"], {}, np.array([1], "datetime64[s]")])
def test_what_no_attribute_is_made_of(value: object) -> None:
    with pytest.raises(TypeError, match="expected"):
        make_attribute("a", value)


def test_a_constant_is_of_the_type_that_it_says() -> None:
    with pytest.raises(TypeError, match="an array of float64, expected one of i64"):
        make_tensor(np.array([1.5]), ELEMENT_TYPES["i64"])
