"""Nodes whose rewritten forms are of a particular kind: in their types, their sizes, or their indices."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ir_scatter import convert, evaluate_model, read, validate
from ir_scatter.convert import Conversion
from ir_scatter.core.model import Value
from ir_scatter.ops.scatter_openvino import SCATTER_ND_UPDATE_15, SCATTER_UPDATE_3
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites import route
from ir_scatter.rewrites.base import View
from ir_scatter.rewrites.builder import Builder
from tests.rewrites.ir_models import given, held, one_scatter

WIDTHS = ["i8", "i16", "u8", "u16", "u32", "u64"]


def elements(folder: Path, indices: Any, type: str = "i64", **attributes: str) -> str:
    """Write a ScatterElementsUpdate-12 of data [4]."""
    count = (len(indices),)
    sources = given("data", "f32", (4,)), held(indices, type), given("updates", "f32", count)
    axis = held(0, name="axis")
    return one_scatter(folder, "ScatterElementsUpdate", "opset12", *sources, axis, attributes)


def only(conversion: Conversion) -> Any:
    """Return the fragment of the one node that was converted."""
    assert [one.message for one in conversion.refused] == []
    (patch,) = conversion.patches
    return patch.fragment


@pytest.mark.parametrize("type", WIDTHS)
def test_elements_are_gathered_with_indices_that_openvino_takes(type: str, tmp_path: Path) -> None:
    path = elements(tmp_path, np.array([2, 0]), type, reduction="sum")
    news = only(convert(path, "ScatterElementsUpdate-3")).news
    (gathered,) = [new for new in news if new.type == "GatherElements"]
    assert gathered.inputs[1].element_type.name in {"i32", "i64"}


def onnx_node(type: str, opset: int, element_type: int, indices: Any, **attributes: Any) -> bytes:
    """Write a scatter node of data [1, 3] with constant indices."""
    indices = np.asarray(indices, np.int64)
    shape = [1, 2] if type == "ScatterElements" else [2]
    inputs = [
        helper.make_tensor_value_info("data", element_type, [1, 3]),
        helper.make_tensor_value_info("updates", element_type, shape),
    ]
    node = helper.make_node(type, ["data", "indices", "updates"], ["result"], "node", **attributes)
    result = helper.make_tensor_value_info("result", element_type, [1, 3])
    held = [numpy_helper.from_array(indices, "indices")]
    graph = helper.make_graph([node], "graph", inputs, [result], held)
    imports = [helper.make_opsetid("", opset)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


@pytest.mark.parametrize("reduction", ["min", "max"])
@pytest.mark.parametrize("name", ["INT8", "INT32", "INT64", "UINT16", "UINT64"])
@pytest.mark.parametrize(
    ("type", "indices", "axis"),
    [("ScatterElements", [[2, 0]], {"axis": 1}), ("ScatterND", [[0, 2], [0, 0]], {})],
)
def test_whole_extremes_are_legal_in_opset_11(
    type: str, indices: Any, axis: dict[str, int], name: str, reduction: str, tmp_path: Path
) -> None:
    element_type = int(getattr(TensorProto, name))
    source = onnx_node(type, 18, element_type, indices, reduction=reduction, **axis)
    found = convert(read("model.onnx", source), opset=11)
    new = tmp_path / "new.onnx"
    assert "Less" in [node.type for node in only(found).news]
    found.write(new)
    onnx.checker.check_model(str(new), full_check=True)
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    limits = np.iinfo(dtype)
    shape = (1, 2) if type == "ScatterElements" else (2,)
    feeds = {
        "data": np.array([[limits.min, 5, limits.max]], dtype),
        "updates": np.array([limits.max, 7], dtype).reshape(shape),
    }
    old_path = tmp_path / "old.onnx"
    old_path.write_bytes(source)
    old, after = (evaluate_model(path, feeds)["result"] for path in (old_path, new))
    np.testing.assert_array_equal(after, old)


@pytest.mark.parametrize(("mode", "first"), [("linear", [1]), ("linear", [0, 3, 1]), ("circular", [1, 29])])
def test_caches_with_constant_places_and_unknown_sizes(mode: str, first: list[int]) -> None:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", "S", 2]) for name in ("past", "new")
    ]
    names = ["past", "new", "places"]
    node = helper.make_node("TensorScatter", names, ["out"], "cache", axis=1, mode=mode)
    places = numpy_helper.from_array(np.array(first, np.int64), "places")
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "graph", inputs, [out], [places])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    found = convert(read("model.onnx", model.SerializeToString()), "ScatterElements")
    assert [one.message for one in found.refused] == []
    assert [one.cases for one in found.verified] == [8]


@pytest.mark.parametrize("shape", [(1 << 40,), (60_000, 60_000), (1 << 40, 1 << 30)])
@pytest.mark.parametrize("target", ["ScatterNDUpdate", "ScatterElementsUpdate-3"])
def test_nodes_that_no_memory_holds_are_proven_with_smaller_inputs(
    target: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    updates = given("updates", "f32", (2, *shape[1:]))
    sources = given("data", "f32", shape), held(np.array([0, 1])), updates
    path = one_scatter(tmp_path, "ScatterUpdate", "opset3", *sources, held(0, name="axis"))
    found = convert(path, target)
    only(found)
    assert [one.cases for one in found.verified] == [8]
    assert found.converted[0].is_safe


def _negated(view: View, build: Builder, target: OpSpec) -> Value:
    data = build.make("Negative", [view.data], view.data.shape, "wrong")
    tuples = build.unsqueeze(view.indices, [1], "tuples")
    return build.scatter(target, data, tuples, view.updates)


def test_a_wrong_form_of_a_large_node_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (1 << 30,)
    sources = given("data", "f32", shape), held(np.array([0, 1])), given("updates", "f32", (2,))
    path = one_scatter(tmp_path, "ScatterUpdate", "opset3", *sources, held(0, name="axis"))
    (rewrite,) = route(SCATTER_UPDATE_3.key, SCATTER_ND_UPDATE_15.key) or ()
    wrong = replace(rewrite, build=_negated)
    monkeypatch.setattr(sys.modules["ir_scatter.convert.rewriter"], "route", lambda *_: (wrong,))
    (refused,) = convert(path, "ScatterNDUpdate").refused
    assert (refused.code, "elements differ" in refused.message) == ("CVT109", True)


@pytest.mark.parametrize("reduction", ["sum", "prod", "min", "max", "mean"])
@pytest.mark.parametrize("indices", [[0, 0], [3, -1, 1], [2, 1]])
def test_targets_are_cleared_once(reduction: str, indices: list[int], tmp_path: Path) -> None:
    path = elements(tmp_path, np.array(indices), reduction=reduction, use_init_val="false")
    found = convert(path, "ScatterNDUpdate")
    only(found)
    new = tmp_path / "new.xml"
    found.write(new)
    assert [one.code for one in validate(read(new))] == []
    count = np.arange(1, len(indices) + 1, dtype=np.float32)
    feeds = {"data": np.array([7, 7, 7, 7], np.float32), "updates": count}
    (old,), (after,) = (evaluate_model(one, feeds).values() for one in (path, str(new)))
    np.testing.assert_allclose(after, old)


def test_nodes_that_repeat_targets_share_no_constant_with_others(tmp_path: Path) -> None:
    from tests.rewrites.ir_models import add_scatter
    from tests.rules.ir_text import IrText

    ir = IrText()
    value = ir.parameter("data", "f32", (4,))
    updates = ir.parameter("updates", "f32", (2,))
    attributes = {"reduction": "sum", "use_init_val": "false"}
    for number, indices in enumerate(([0, 1], [0, 0], [3, 3], [2, 2], [1, 0])):
        inputs = [value, ir.const(f"at_{number}", "i64", np.array(indices)), updates]
        inputs.append(ir.const(f"axis_{number}", "i64", 0, ()))
        value = add_scatter(ir, "ScatterElementsUpdate", "opset12", inputs, f"node_{number}", attributes)
    ir.add("result", "Result", "opset1", [value], [])
    path, new = ir.write(tmp_path), tmp_path / "new.xml"
    convert(path, "ScatterNDUpdate").write(new)
    feeds = {"data": np.array([1, 2, 3, 4], np.float32), "updates": np.array([10, 20], np.float32)}
    (old,), (after,) = (evaluate_model(one, feeds).values() for one in (path, str(new)))
    np.testing.assert_array_equal(after, old)
    assert [one.code for one in validate(read(new))] == []


def test_ranks_tell_how_many_coordinates_there_are(tmp_path: Path) -> None:
    unknown = (-1, -1)
    sources = given("data", "f32", (3, 2)), given("indices", "i64", unknown), given("updates", "f32", unknown)
    path = one_scatter(tmp_path, "ScatterNDUpdate", "opset15", *sources)
    for target in ("ScatterElementsUpdate-12", "ScatterUpdate"):
        for new in only(convert(path, target)).news:
            assert new.output.shape is not None


@pytest.mark.parametrize("type", ["ScatterElementsUpdate", "ScatterUpdate"])
@pytest.mark.parametrize("seed", range(3))
def test_one_value_at_two_inputs_gets_one_shape(type: str, seed: int, tmp_path: Path) -> None:
    version, shape, axis = ("opset12", (-1,), 0) if "Elements" in type else ("opset3", (-1, -1, 2), 1)
    value = given("value", "f32", shape)
    indices = held(np.array([0]) if axis == 0 else np.array([2, 0, 1]))
    path = one_scatter(tmp_path, type, version, value, indices, value, held(axis, name="axis"))
    only(convert(path, "ScatterNDUpdate", seed=seed))


def test_an_input_too_many_under_an_empty_name_is_a_broken_rule(tmp_path: Path) -> None:
    names = ["data", "indices", "updates", ""]
    node = helper.make_node("ScatterElements", names, ["result"], "node")
    inputs = [
        helper.make_tensor_value_info(name, kind, [4])
        for name, kind in zip(
            names[:3], (TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT), strict=True
        )
    ]
    result = helper.make_tensor_value_info("result", TensorProto.FLOAT, [4])
    graph = helper.make_graph([node], "graph", inputs, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    conversion = convert(tmp_path / "m.onnx", "ScatterND", assume=["unique-indices"])
    (refused,) = conversion.refused
    assert refused.code == "CVT101"
    assert "SCT102" in refused.message
