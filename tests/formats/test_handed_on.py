"""Types that chains of operators hand on, held against what onnx's own inference says."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from ir_scatter import formats
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.model import ONNX, Model
from ir_scatter.core.shapes import Bounds, parse_shape
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.types import TensorType, inferred
from ir_scatter.ops.general import ONNX_BROADCASTERS, ONNX_TYPE_KEEPERS
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.validate import read_data

Dims = Sequence[int | str | None] | None
Types = dict[str, TensorType]

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SHAPES: tuple[Dims, ...] = ([2, 3], ["n", 3], [None, 4], [1], [0, 2], ["n", "n", None])
SCALAR: Dims = []
UNKNOWN_RANK: Dims = None
CODED = {f"tensor({name})": number for name, number in (
    ("float", FLOAT), ("int64", INT64), ("bool", BOOL), ("float16", TensorProto.FLOAT16),
    ("bfloat16", TensorProto.BFLOAT16), ("string", TensorProto.STRING), ("uint8", TensorProto.UINT8),
    ("float8e4m3fn", TensorProto.FLOAT8E4M3FN), ("complex64", TensorProto.COMPLEX64),
)}  # fmt: skip
LEAST_RANK = {"Softmax": 2, "LogSoftmax": 2, "TensorScatter": 3}
"""So that their default axis is an axis that they may have, in every version."""

node = helper.make_node


def info(name: str, dims: Dims, type: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, type, dims)


def zeros(name: str, *shape: int) -> TensorProto:
    return onnx.numpy_helper.from_array(np.zeros(shape, np.float32), name)


def graph_of(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto] = (),
    outputs: Sequence[str | ValueInfoProto] = (),
    initializers: Sequence[TensorProto] = (),
    stored: Sequence[ValueInfoProto] = (),
) -> GraphProto:
    named = [ValueInfoProto(name=one) if isinstance(one, str) else one for one in outputs]
    return helper.make_graph(nodes, "g", inputs, named, initializer=initializers, value_info=stored)


def model_of(
    *parts: Any, opset: int = 18, ir_version: int = 10, functions: Sequence[Any] = (), **more: Any
) -> ModelProto:
    imports = [helper.make_opsetid("", opset)]
    graph = graph_of(*parts, **more)
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, functions=functions)


def read_all(model: ModelProto, **options: Any) -> Model:
    """Read a model so that types are inferred, whether or not it has a scatter node."""
    known = formats.Operators(scatter_types(ONNX), ONNX_TYPE_KEEPERS | scatter_types(ONNX), ONNX_BROADCASTERS)
    return formats.read("model.onnx", model.SerializeToString(), operators=known, **options)


def read(model: ModelProto, **options: Any) -> OnnxGraph:
    graph = read_all(model, **options).graph
    assert isinstance(graph, OnnxGraph)
    return graph


def attribute_of(node: NodeProto, name: str) -> AttributeProto:
    found: list[AttributeProto] = [one for one in node.attribute if one.name == name]
    return found[0]


def oracle(model: ModelProto) -> GraphProto:
    """Return the graph with what inference says of it, where the file stores nothing."""
    bare = ModelProto()
    bare.CopyFrom(model)
    _forget(bare.graph)
    return onnx.shape_inference.infer_shapes(bare, data_prop=True).graph


def _forget(graph: GraphProto) -> None:
    del graph.value_info[:]
    for output in graph.output:
        output.ClearField("type")
    for one in graph.node:
        for attribute in one.attribute:
            if attribute.HasField("g"):
                _forget(attribute.g)


def types_of(graph: GraphProto) -> Types:
    every = [*graph.input, *graph.output, *graph.value_info]
    return {one.name: inferred(one.type) for one in every if one.HasField("type")}


def handed_on(graph: OnnxGraph) -> Types:
    found = {name: graph.handed_on.get(name) for name in graph.index.producers}
    return {name: type for name, type in found.items() if type is not None}


def check(model: ModelProto, known: Sequence[str]) -> None:
    """Demand that exactly some values are known, and known as inference knows them."""
    found, truth = handed_on(read(model)), types_of(oracle(model))
    assert sorted(found) == sorted(known)
    assert found == {name: truth.get(name) for name in known}


def inside(model: ModelProto, *way: tuple[int, str]) -> tuple[OnnxGraph, GraphProto]:
    """Return the body at the end of a way of positions and names, as read and as inferred."""
    graph, truth = read(model), oracle(model)
    for position, name in way:
        body = graph.bodies_of(graph.node(position))[name]
        assert isinstance(body, OnnxGraph)
        graph, truth = body, attribute_of(truth.node[position], name).g
    return graph, truth


def check_body(model: ModelProto, known: Sequence[str], *way: tuple[int, str]) -> None:
    graph, truth = inside(model, *way)
    found = handed_on(graph)
    assert sorted(found) == sorted(known)
    assert found == {name: types_of(truth).get(name) for name in known}


SCHEMAS = sorted(
    (
        schema
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == "" and schema.name in ONNX_TYPE_KEEPERS | ONNX_BROADCASTERS | scatter_types(ONNX)
    ),
    key=lambda schema: (schema.name, schema.since_version),
)


def one_node(schema: Any, number: int, type: int, dims: Dims) -> tuple[NodeProto, list[ValueInfoProto]]:
    """Return a node of an operator, all of whose inputs are those of the graph."""
    inputs = [info(f"x{number}", dims, type)]
    for place in range(1, len(schema.inputs)):
        if schema.name == "TensorScatter" and place == 2:
            inputs.append(info(f"x{number}_{place}", None if dims is None else dims[:1], INT64))
        elif schema.name in scatter_types(ONNX) and schema.inputs[place].type_str.startswith("tensor(int"):
            inputs.append(info(f"x{number}_{place}", None if dims is None else [1] * len(dims), INT64))
        elif schema.name == "CumSum":
            inputs.append(info(f"x{number}_{place}", SCALAR, INT64))
        elif schema.name == "Clip":
            inputs.append(info(f"x{number}_{place}", SCALAR, type))
        else:
            inputs.append(info(f"x{number}_{place}", dims, type))
    return node(schema.name, [one.name for one in inputs], [f"z{number}"]), inputs


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.name}-{schema.since_version}")
def test_every_operator_of_every_version(schema: Any) -> None:
    """Versions that inference has no rule for are older than every scatter operator."""
    first = {row.type_param_str: row.allowed_type_strs for row in schema.type_constraints}
    typed = schema.inputs[0].type_str
    types = [number for text, number in CODED.items() if text in first.get(typed, [typed])]
    assert types
    nodes, inputs = list[NodeProto](), list[ValueInfoProto]()
    least = LEAST_RANK.get(schema.name, 0)
    shapes: list[Dims] = [dims for dims in (*SHAPES, SCALAR) if dims is not None and len(dims) >= least]
    shapes.append(UNKNOWN_RANK)
    known = set()
    for type in types:
        for dims in shapes:
            one, given = one_node(schema, len(nodes), type, dims)
            known |= {one.output[0]} if dims is not None else set()
            nodes.append(one)
            inputs += given
    model = model_of(nodes, inputs, [one.output[0] for one in nodes], opset=schema.since_version)
    found, truth = handed_on(read(model)), types_of(oracle(model))
    assert found.keys() == known
    if schema.has_type_and_shape_inference_function:
        assert found == {name: truth.get(name) for name in known}
    else:
        assert schema.since_version < 6
        assert not any(truth.get(name, (None, None))[0] for name in known)


def test_every_operator_is_documented_by_onnx() -> None:
    names = {schema.name for schema in SCHEMAS}
    late = {"TensorScatter"}  # of opset 24
    assert names | late == ONNX_TYPE_KEEPERS | ONNX_BROADCASTERS | scatter_types(ONNX)


@pytest.mark.parametrize("type", sorted(ONNX_BROADCASTERS))
@pytest.mark.parametrize("opset", [7, 13, 14, 18])
@pytest.mark.parametrize(
    ("left", "right", "is_known"),
    [
        ([2, 3], [], True),
        (["n", None], [], True),
        ([], [], True),
        ([2, 1], [2, 1], True),
        (["a", 1, None], ["a", 1, None], True),
        ([], [3], False),
        ([3], [2, 3], False),
        ([2, 3], [3], False),
        ([2, 3], [1], False),
        (["n", 3], [3], False),
        ([3], ["n", 3], False),
        (["n"], [1], False),
        ([1], ["n"], False),
        ([1], [0], False),
        ([0, 3], [1, 3], False),
        ([1, "n"], ["m", 1], False),
        ([1, 3], [2, 3], False),
        ([2, 3], [1, 1], False),
        ([2, 3], [4, 3], False),
        ([1, 1, 1], [2], False),
        (["a"], ["b"], False),
        (["a"], [4], False),
        ([4], ["a"], False),
        (["a"], [None], False),
        ([None], [None, None], False),
        ([3], None, False),
        (None, [], False),
    ],
)
def test_two_inputs_that_meet(type: str, opset: int, left: Dims, right: Dims, is_known: bool) -> None:
    """Others than the first few may be left to inference."""
    model = model_of([node(type, ["x", "y"], ["z"])], [info("x", left), info("y", right)], ["z"], opset=opset)
    found, truth = handed_on(read(model)), types_of(oracle(model))
    assert found == {name: truth.get(name) for name in found}
    assert found or not is_known


def test_second_input_may_have_another_type() -> None:
    inputs = [info("x", ["n"]), info("y", [], INT64)]
    check(model_of([node("Add", ["x", "y"], ["z"])], inputs, ["z"]), ["z"])


def test_one_and_three_inputs_of_a_broadcaster_are_left_to_inference() -> None:
    assert not handed_on(read(model_of([node("Add", ["x"], ["z"])], [info("x", [3])], ["z"])))
    check(model_of([node("Add", ["x"] * 3, ["z"])], [info("x", [3])], ["z"]), [])


CHAIN = [node("Relu", ["x"], ["a"]), node("Add", ["a", "x"], ["b"]), node("Neg", ["b"], ["c"])]


@pytest.mark.parametrize("dims", SHAPES)
def test_chain(dims: Dims) -> None:
    check(model_of(CHAIN, [info("x", dims)], ["c"]), ["a", "b", "c"])


@pytest.mark.parametrize("stored", [[2, 3], [9, 9], [2], ["m", None], None])
@pytest.mark.parametrize("type", [FLOAT, INT64])
def test_stored_types_mean_nothing(stored: Dims, type: int) -> None:
    """They may be stale: neither inference nor the chain looks at them."""
    nodes = [node("Relu", ["x"], ["a"]), node("Exp", ["a"], ["b"]), node("Sqrt", ["b"], ["c"])]
    claims = [info("a", stored, type), info("b", stored, type), info("x", stored, type)]
    outputs = [info("c", stored, type)]
    check(model_of(nodes, [info("x", ["n", 3])], outputs, stored=claims), ["a", "b", "c"])


@pytest.mark.parametrize("ir_version", [3, 8, 10])
@pytest.mark.parametrize("dims", [[3, 4], ["n", 4]])
def test_initializer_that_is_an_input(ir_version: int, dims: Dims) -> None:
    inputs = [info("x", dims), info("W", [3, 4]), info("s", [])]
    nodes = [node("Relu", ["W"], ["a"]), node("Mul", ["a", "s"], ["b"]), node("Relu", ["x"], ["c"])]
    held = [zeros("W", 3, 4), zeros("s")]
    check(model_of(nodes, inputs, ["b", "c"], held, ir_version=ir_version), ["a", "b", "c"])


@pytest.mark.parametrize("ir_version", [4, 10])
def test_default_of_an_input_does_not_say_its_shape(ir_version: int) -> None:
    model = model_of([node("Sigmoid", ["W"], ["a"])], [info("W", ["n", 4])], ["a"], [zeros("W", 3, 4)],
                     ir_version=ir_version)  # fmt: skip
    check(model, ["a"])
    assert handed_on(read(model))["a"].shape != (3, 4)


def test_initializers_of_many_kinds() -> None:
    """One that is large, one whose bytes are missing, one of no known type, one that is no shape."""
    large, short, odd, bad = zeros("large", 1000), zeros("short", 4), zeros("odd", 2), zeros("bad", 2)
    short.raw_data = b"123"
    odd.data_type = 99
    bad.dims[0] = -2
    names = ["large", "short", "odd", "bad"]
    nodes = [node("Relu", [name], [f"{name}_out"]) for name in names]
    graph = read(model_of(nodes, [], [f"{name}_out" for name in names], [large, short, odd, bad]))
    assert {name: type.shape for name, type in handed_on(graph).items()} == {
        "large_out": (1000,),
        "short_out": (4,),
    }
    for name, type in handed_on(graph).items():
        assert inferred(graph.inferred.types[name]) == type


def test_inputs_without_type_shape_or_name() -> None:
    bare = ValueInfoProto(name="bare")
    several = helper.make_tensor_sequence_value_info("several", FLOAT, [3])
    nodes = [
        node("Relu", ["bare"], ["a"]),
        node("Identity", ["several"], ["b"]),
        node("Relu", ["untyped"], ["c"]),
        node("Relu", [""], ["d"]),
        node("Relu", [], ["e"]),
        node("Relu", ["nowhere"], ["f"]),
        node("Relu", ["x"], [""]),
        node("Relu", ["f"], ["g"]),
    ]
    inputs = [bare, several, info("untyped", [3], TensorProto.UNDEFINED), info("x", [3])]
    assert handed_on(read(model_of(nodes, inputs, ["a"]))) == {}


def test_inputs_that_are_left_out_do_not_matter() -> None:
    inputs = [info("x", ["n"]), info("m", []), info("i", [1], INT64), info("u", [1])]
    nodes = [
        node("Clip", ["x", "", "m"], ["a"]),
        node("Clip", ["a", "m"], ["b"]),
        node("ScatterElements", ["b", "i", "u"], ["c"]),
        node("ScatterElements", ["c", "", ""], ["d"]),
        node("ScatterND", ["d"], ["e"]),
    ]
    check(model_of(nodes, inputs, ["e"]), ["a", "b", "c", "d", "e"])


def test_second_output_is_left_to_inference() -> None:
    check(model_of([node("Relu", ["x"], ["a", "b"])], [info("x", [3])], ["a", "b"]), ["a"])


def test_negative_and_invented_dimensions() -> None:
    inputs = [info("x", [-1, 4]), info("y", ["unk__0", 4]), info("z", ["unk__0", 4])]
    nodes = [node("Relu", ["x"], ["a"]), node("Add", ["x", "x"], ["b"]), node("Add", ["y", "z"], ["c"])]
    bare = model_of(nodes, [info("x", [None, 4]), *inputs[1:]], ["a", "b", "c"])
    found = handed_on(read(model_of(nodes, inputs, ["a", "b", "c"])))
    assert found == handed_on(read(bare)) == {name: types_of(oracle(bare))[name] for name in "abc"}


def test_what_a_function_is_named_like() -> None:
    """A call is no operator, whatever its name."""
    imports = [helper.make_opsetid("", 18)]
    function = helper.make_function("", "Relu", ["a"], ["b"], [node("Shape", ["a"], ["b"])], imports)
    nodes = [node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["z"]), node("Neg", ["y"], ["w"])]
    check(model_of(nodes, [info("x", [2, 4])], ["z"], functions=[function]), ["z"])


@pytest.mark.parametrize("domain", ["", "ai.onnx", "my.own"])
def test_domains(domain: str) -> None:
    model = model_of([node("Relu", ["x"], ["y"], domain=domain)], [info("x", [2, 4])], ["y"])
    assert sorted(handed_on(read(model))) == ([] if domain == "my.own" else ["y"])
    model.opset_import.add(domain="my.own", version=1)
    if domain == "ai.onnx":  # the same domain by its other name, which inference does not know
        model.graph.node[0].domain = ""
    nothing = TensorType(None, None)
    assert types_of(oracle(model)).get("y", nothing) == handed_on(read(model)).get("y", nothing)


def test_inside_a_function() -> None:
    """The arguments are what the call gives; each signature has types of its own."""
    imports = [helper.make_opsetid("", 18)]
    inner = [node("Relu", ["a"], ["b"]), node("Add", ["b", "s"], ["c"])]
    function = helper.make_function("my", "F", ["a", "s"], ["c"], inner, imports)
    calls = [
        node("F", ["x", "one"], ["p"], domain="my"),
        node("F", ["y", "one"], ["q"], domain="my"),
        node("F", ["x", ""], ["r"], domain="my"),
        node("F", ["free", "one"], ["t"], domain="my"),
    ]
    model = model_of(
        calls,
        [info("x", [2, 3]), info("y", ["n"], TensorProto.FLOAT16), info("free", None)],
        ["p", "q", "r", "t"],
        [zeros("one")],
        functions=[function],
    )
    model.opset_import.add(domain="my", version=1)
    found = []
    for instance in read_all(model).functions[0].instances:
        assert isinstance(instance, OnnxGraph)
        types = handed_on(instance)
        for name, type in types.items():
            assert inferred(instance.inferred.types[name]) == type
        found.append({name: type.shape for name, type in types.items()})
    batch = (Bounds(symbol="n"),)
    assert found == [{"b": (2, 3), "c": (2, 3)}, {"b": batch, "c": batch}, {"b": (2, 3)}, {}]


def test_names_that_repeat() -> None:
    """Of two nodes with one output the first counts; inference takes the model as it comes."""
    nodes = [node("Relu", ["x"], ["z"]), node("Relu", ["y"], ["z"]), node("Relu", ["x"], ["y"])]
    check(model_of(nodes, [info("x", [3]), info("y", [5])], ["z"]), ["z"])


def test_nodes_out_of_order() -> None:
    """What stands too early is left to inference, which gets the nodes sorted."""
    nodes = [node("Relu", ["b"], ["c"]), node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["b"])]
    graph = read(model_of(nodes, [info("x", ["n", 3])], ["c"]))
    truth = types_of(oracle(model_of(nodes[1:] + nodes[:1], [info("x", ["n", 3])], ["c"])))
    assert handed_on(graph) == {name: truth[name] for name in "ab"}
    assert inferred(graph.inferred.types["c"]) == truth["c"]


def test_cycle() -> None:
    nodes = [node("Relu", ["b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["x"], ["c"])]
    assert sorted(handed_on(read(model_of(nodes, [info("x", [3])], ["c"])))) == ["c"]


def branch(nodes: Sequence[NodeProto], *more: Any) -> NodeProto:
    body = graph_of(nodes, (), [nodes[-1].output[0]], *more)
    return node("If", ["flag"], [f"if_{nodes[-1].output[0]}"], then_branch=body, else_branch=body)


FLAG = info("flag", [], BOOL)
THEN = "then_branch"


@pytest.mark.parametrize("dims", SHAPES)
def test_body_takes_values_from_around_it(dims: Dims) -> None:
    """An input, an initializer, what is handed on, and what is not."""
    inner = [node("Relu", ["x"], ["a"]), node("Relu", ["W"], ["b"]), node("Mul", ["h", "x"], ["c"])]
    inner += [node("Relu", ["t"], ["d"]), node("Neg", ["own"], ["e"])]
    outer = [node("Relu", ["x"], ["h"]), node("Transpose", ["x"], ["t"]), branch(inner, [zeros("own", 2)])]
    model = model_of(outer, [info("x", dims), FLAG], ["if_e"], [zeros("W", 3, 4)])
    check_body(model, ["a", "b", "c", "e"], (2, THEN))


def test_body_in_a_body() -> None:
    inner = [node("Relu", ["a"], ["b"]), node("Add", ["b", "x"], ["c"])]
    middle = [node("Neg", ["x"], ["a"]), branch(inner)]
    model = model_of([branch(middle)], [info("x", ["n", 4]), FLAG], ["if_if_c"])
    check_body(model, ["a"], (0, THEN))
    check_body(model, ["b", "c"], (0, THEN), (1, THEN))


def test_body_before_what_it_takes() -> None:
    model = model_of([branch([node("Relu", ["y"], ["a"])]), node("Relu", ["x"], ["y"])],
                     [info("x", ["n", 4]), FLAG], ["if_a"])  # fmt: skip
    graph, _ = inside(model, (0, THEN))
    assert handed_on(graph)["a"] == inferred(graph.inferred.types["a"])


def test_inputs_of_a_loop_are_left_to_inference() -> None:
    carried = [info("number", [], INT64), info("go", [], BOOL), info("state", [3, 4])]
    nodes = [node("Relu", ["state"], ["next"]), node("Relu", ["x"], ["a"])]
    body = graph_of(nodes, carried, ["go", "next"])
    loop = node("Loop", ["", "", "start"], ["end"], body=body)
    check_body(model_of([loop], [info("start", [5, 4]), info("x", [2])], ["end"]), ["a"], (0, "body"))


def test_name_of_a_body_hides_the_name_around_it() -> None:
    """The outer y is another value than that of the body, which inference knows."""
    inner = [node("Relu", ["y"], ["a"])]
    middle = [node("Cast", ["x"], ["y"], to=FLOAT), branch(inner)]
    model = model_of([branch(middle)], [info("x", [6]), info("y", [7, 7]), FLAG], ["if_if_a"])
    graph, _ = inside(model, (0, THEN), (1, THEN))
    value = graph.find("y")
    assert value is not None
    assert value.shape in {None, (6,)}
    assert handed_on(graph).get("a", TensorType(None, None)).shape in {None, (6,)}


def test_shapes_that_the_caller_gives() -> None:
    model = model_of([node("Relu", ["x"], ["a"])], [info("x", ["n", 4])], ["a"])
    graph = read(model, input_shapes={"x": parse_shape("3,4")})
    assert handed_on(graph)["a"] == inferred(graph.inferred.types["a"])
    assert handed_on(graph)["a"].shape == (3, 4)


def test_old_initializer_says_its_shape() -> None:
    """Up to IR version 3 an initializer is a constant, however loosely the input declares it."""
    model = model_of([node("Sigmoid", ["W"], ["a"])], [info("W", ["n", 4])], ["a"], [zeros("W", 3, 4)],
                     ir_version=3)  # fmt: skip
    graph = read(model)
    assert inferred(graph.inferred.types["a"]).shape == (3, 4)
    assert handed_on(graph).get("a", inferred(graph.inferred.types["a"])).shape == (3, 4)


def test_not_gives_booleans_whatever_it_is_given() -> None:
    model = model_of([node("Not", ["x"], ["a"])], [info("x", [3])], ["a"])
    truth = types_of(oracle(model))["a"]
    assert truth.element_type is ELEMENT_TYPES["boolean"]
    assert handed_on(read(model)).get("a", truth) == truth


@pytest.mark.parametrize("axis", [9, -4])
def test_axis_that_is_none_is_left_to_inference(axis: int) -> None:
    check(model_of([node("Softmax", ["x"], ["a"], axis=axis)], [info("x", [3, 4])], ["a"]), [])


@pytest.mark.parametrize("type", ["Relu", "HardSwish"])
def test_operator_that_its_opset_does_not_have(type: str) -> None:
    check(model_of([node(type, ["x"], ["a"])], [info("x", [3])], ["a"], opset=13), ["a"] * (type == "Relu"))


@pytest.mark.parametrize("type", ["ScatterUpdate", "ScatterElementsUpdate", "ScatterNDUpdate"])
def test_operator_of_the_other_dialect_is_unknown(type: str) -> None:
    """What the file stores for its output is all that is known of it."""
    inputs = [info("x", [3]), info("i", [1], INT64), info("u", [1])]
    nodes = [node(type, ["x", "i", "u"], ["a"]), node("ScatterElements", ["a", "i", "u"], ["b"])]
    stored = [info("a", [7], TensorProto.FLOAT16)]
    data = model_of(nodes, inputs, ["b"], stored=stored).SerializeToString()
    value = next(read_data("model.onnx", data).walk(frozenset({"ScatterElements"}))).inputs[0].value
    assert value is not None
    assert (value.element_type, value.shape) == (value.stored_type, (7,))


class RandomGraphs:
    """Writes graphs of operators that hand types on, and of some that do not."""

    def __init__(self, seed: int) -> None:
        self.chooser = random.Random(seed)
        self.count = 0

    def model(self) -> ModelProto:
        chooser = self.chooser
        every: list[Dims] = [*SHAPES, SCALAR, UNKNOWN_RANK]
        inputs = [info(f"x{number}", chooser.choice(every)) for number in range(4)]
        held = [zeros(f"w{number}", *chooser.choice([(), (2, 3), (1,), (400,)])) for number in range(3)]
        inputs += [info("w0", list(held[0].dims))] if chooser.random() < 0.3 else []
        inputs += [FLAG, info("i", [1, 1], INT64), info("u", [1, 1])]
        names = [one.name for one in inputs[:4]] + [one.name for one in held]
        nodes, stored = self.nodes(names, 12, depth=2)
        outputs = [chooser.choice(nodes).output[0] for _ in range(2)]
        model = model_of(nodes, inputs, outputs, held, stored, ir_version=chooser.choice([3, 8, 10]))
        if chooser.random() < 0.3:
            chooser.shuffle(nodes)
            del model.graph.node[:]
            model.graph.node.extend(nodes)
        return model

    def nodes(
        self, names: Sequence[str], count: int, depth: int
    ) -> tuple[list[NodeProto], list[ValueInfoProto]]:
        chooser, names = self.chooser, list(names)
        nodes, stored = [], []
        for _ in range(count):
            self.count += 1
            output, first = f"v{self.count}", chooser.choice(names)
            kind = chooser.choice(("keeper", "keeper", "two", "two", "scatter", "other", "body", "constant"))
            if kind == "body" and depth:
                inner, claims = self.nodes(names, 4, depth - 1)
                body = graph_of(inner, (), [inner[-1].output[0]], (), claims)
                nodes.append(node("If", ["flag"], [output], then_branch=body, else_branch=body))
            elif kind == "two":
                second = chooser.choice(names)
                nodes.append(node(chooser.choice(sorted(ONNX_BROADCASTERS)), [first, second], [output]))
            elif kind == "constant":
                held = zeros("", *chooser.choice([(), (2, 3), (1,), (3,), (400,)]))
                nodes.append(node("Constant", [], [output], value=held))
            elif kind == "scatter":
                nodes.append(node("ScatterElements", [first, "i", "u"], [output]))
            elif kind == "other":
                type = chooser.choice(["Transpose", "Cast", "Flatten", "Shape"])
                attributes: dict[str, Any] = {"to": FLOAT} if type == "Cast" else {}
                nodes.append(node(type, [first], [output], **attributes))
            else:
                nodes.append(node(chooser.choice(KEPT), [first], [output]))
            names.append(output)
            if chooser.random() < 0.3:
                stored.append(info(output, chooser.choice([[2, 3], ["n"], None, [7, 7, 7]])))
        return nodes, stored


KEPT = ["Relu", "Identity", "Neg", "Erf", "Sigmoid", "Clip", "Selu", "Round", "HardSwish"]


def every_body(graph: OnnxGraph) -> Iterator[OnnxGraph]:
    yield graph
    for position in graph.index.bodies:
        for body in graph.bodies_of(graph.node(position)).values():
            assert isinstance(body, OnnxGraph)
            yield from every_body(body)


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs(seed: int) -> None:
    """Whatever a graph is like, the types handed on in it and its bodies are those of inference."""
    count = 0
    for number in range(5):
        for body in every_body(read(RandomGraphs(5 * seed + number).model())):
            for name, type in handed_on(body).items():
                assert inferred(body.inferred.types[name]) == type, (body.scope, name)
                count += 1
    assert count


@pytest.mark.parametrize("kind", ["", "another domain", "two values", "two outputs", "of a call", "odd type"])
def test_what_only_looks_like_a_constant(kind: str) -> None:
    found = node("Constant", [], ["c"], value=zeros("", 2, 3))
    match kind:
        case "another domain":
            found.domain = "my"
        case "two values":
            found.attribute.insert(0, helper.make_attribute("value_ints", [7, 8]))
        case "two outputs":
            found.output.append("more")
        case "of a call":
            found.attribute[0].ref_attr_name = "value"
        case "odd type":
            found.attribute[0].t.data_type = 99
    nodes = [found, node("Relu", ["c"], ["a"]), node("Add", ["x", "c"], ["b"])]
    graph = read(model_of(nodes, [info("x", [2, 3])], ["a", "b"]))
    for name, type in handed_on(graph).items():
        value = graph.inferred.types.get(name)
        assert value is not None, name
        assert inferred(value) == type
