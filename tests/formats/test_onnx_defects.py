"""What is broken in a file that can be read."""

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

from ir_scatter.core.model import Model
from tests.formats.onnx_patches import content, model_of, read, shapes


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
        ("unknown-value", "a", "input 1 is 'ghost', which nothing produces"),
        ("unknown-value", "y:then_branch/p", "input 1 is 'spirit', which nothing produces"),
        (
            "unknown-value",
            "y:else_branch/nobody",
            "output 'nobody' of the graph is produced by nothing",
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
    message = "dimension 0 of 'x' is -1, the first of 2 negative dimensions, expected 0 or more"
    assert defects(model) == [("bad-number", "x", message)]
    assert shapes(model) == {"y": "[?, 3, ?]"}


def test_tensors_with_impossible_numbers() -> None:
    model = one_tensor(TensorProto(name="t", data_type=99, dims=[2], raw_data=b"12"))
    message = "the element type of the initializer 't' is number 99, expected one that ONNX defines"
    assert defects(model) == [("bad-number", "t", message)]
    assert content(next(model.walk()).inputs[0].value) is None
    model = one_tensor(TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[2, -3]))
    message = "the dimensions of the initializer 't' are [2, -3], expected none below 0"
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


@pytest.mark.parametrize("type", sorted(set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}))
@pytest.mark.parametrize("is_raw", [True, False])
def test_sound_tensors_of_every_type(type: int, is_raw: bool) -> None:
    values = [1, 0, 1, 1, 0]
    if type == TensorProto.STRING:
        if is_raw:
            pytest.skip("text is never raw")
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
