"""Shapes: inferred, stored, given by the user; in bodies too."""

import os
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from ir_scatter import formats
from ir_scatter.core.shapes import show
from ir_scatter.formats.base import ONNX_FORMAT, ReadOptions
from tests.formats.onnx_patches import content, model_of, named, read, shapes

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
        main (float[2, K] x, int64[2] s) => (y) <float[?, 3] y> {
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
        assert model.defects == ()
        outputs = [value for node in model.walk() for value in node.outputs]
        known = [value for value in outputs if value.shape is not None]
        assert len(known) > 0.7 * len(outputs), path
