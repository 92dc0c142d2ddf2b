"""Nodes of a particular kind: in their types, their sizes, their indices, or in how little is known of them."""

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from ir_scatter import convert, evaluate_model, read, validate
from ir_scatter.convert.conversion import Conversion
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.element_types import dtype as element_dtype
from ir_scatter.core.model import Value
from ir_scatter.ops.scatter_openvino import SCATTER_ND_UPDATE_15, SCATTER_UPDATE_3
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites import route
from ir_scatter.rewrites.base import View
from ir_scatter.rewrites.builder import Builder
from tests.rewrites.ir_models import given, held, one_onnx, one_scatter
from tests.scale import cases, in_part_and_whole

Dims = Sequence[int | str | None] | None
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


def test_a_mean_near_the_limit_of_its_type(tmp_path: Path) -> None:
    sources = given("data", "f16", (4,)), held([0, 2]), given("updates", "f16", (2,)), held(0, name="axis")
    path = one_scatter(tmp_path, "ScatterElementsUpdate", "opset12", *sources, {"reduction": "mean"})
    convert(path, "ScatterElementsUpdate-3").write(new := tmp_path / "new.xml")
    feeds = {"data": np.full(4, 60000, np.float16), "updates": np.array([50000, 65504], np.float16)}
    old, after = (evaluate_model(one, feeds)["out"] for one in (path, new))
    assert np.isfinite(old).all()
    np.testing.assert_array_equal(after, old)


@pytest.mark.parametrize("reduction", ["min", "max"])
@pytest.mark.parametrize("name", ["i8", "i32", "i64", "u16", "u64"])
@pytest.mark.parametrize(
    ("type", "indices", "axis"),
    [("ScatterElements", [[2, 0]], {"axis": 1}), ("ScatterND", [[0, 2], [0, 0]], {})],
)
def test_whole_extremes_are_legal_in_opset_11(
    type: str, indices: Any, axis: dict[str, Any], name: str, reduction: str, tmp_path: Path
) -> None:
    shape = (1, 2) if type == "ScatterElements" else (2,)
    source = one_onnx(type, 18, [1, 3], np.array(indices), shape, kind=name, reduction=reduction, **axis)
    found = convert(read("model.onnx", source), opset=11)
    new = tmp_path / "new.onnx"
    assert "Less" in [node.type for node in only(found).news]
    found.write(new)
    onnx.checker.check_model(str(new), full_check=True)
    dtype: Any = element_dtype(ELEMENT_TYPES[name])
    limits = np.iinfo(dtype)
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
    shape: Dims = ["B", "S", 2]
    source = one_onnx("TensorScatter", 24, shape, np.array(first), shape, axis=1, mode=mode)
    found = convert(read("model.onnx", source), "ScatterElements")
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
    from tests.models.ir_text import IrText

    ir = IrText()
    value = ir.parameter("data", "f32", (4,))
    updates = ir.parameter("updates", "f32", (2,))
    attributes = {"reduction": "sum", "use_init_val": "false"}
    for number, indices in enumerate(([0, 1], [0, 0], [3, 3], [2, 2], [1, 0])):
        inputs = [value, ir.const(f"at_{number}", "i64", np.array(indices)), updates]
        inputs.append(ir.const(f"axis_{number}", "i64", 0, ()))
        name, output = f"node_{number}", ("f32", (4,))
        value = ir.add(name, "ScatterElementsUpdate", "opset12", inputs, [output], attributes)
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


def test_an_input_too_many_under_an_empty_name_is_a_broken_rule() -> None:
    source = one_onnx("ScatterElements", 18, [4], [4], [4], more=[""])
    (refused,) = convert(read("m.onnx", source), "ScatterND", assume=["unique-indices"]).refused
    assert (refused.code, "SCT102" in refused.message) == ("CVT101", True)


# Nodes of which little is known, or which no model can have


OPSETS = {"Scatter": [9, 10, 11], "ScatterElements": [11, 13, 16, 18], "ScatterND": [11, 13, 16, 18],
          "TensorScatter": [24]}  # fmt: skip


@in_part_and_whole
def test_anything_is_rewritten_or_refused(is_whole: bool) -> None:
    done = refused = 0
    for seed in cases(200, is_whole):
        data = some_model(random.Random(seed))
        for to in (None, "ScatterElements", "ScatterND"):
            for assume in ((), ("unique-indices", "non-negative-indices")):
                found = convert(read("model.onnx", data), to, verify=2, assume=assume)
                done += len(found.converted)
                refused += len(found.refused)
                assert all(one.message for one in found.refused)
                assert len(found.verified) == len(found.converted)
    assert done > 10
    assert refused > 10


def some_model(choice: random.Random) -> bytes:
    """Write a node with shapes that fit or do not; one time in two those of a legal node, with parts unknown."""
    type = choice.choice(sorted(OPSETS))
    opset = choice.choice(OPSETS[type])
    attributes: dict[str, Any] = {}
    if type != "ScatterND" and choice.random() < 0.5:
        attributes["axis"] = choice.randint(-3, 2)
    if 16 <= opset < 24 and choice.random() < 0.5:
        attributes["reduction"] = choice.choice(["add", "mul", "none"])
    shapes: list[Any] = [some_shape(choice) for _ in range(3)]
    if choice.random() < 0.5:
        data = [choice.randint(1, 4) for _ in range(choice.randint(1, 3) + (type == "TensorScatter"))]
        indices = [choice.randint(1, size) for size in data]
        legal = [data, indices, indices]
        if type == "ScatterND":
            legal = [data, [2, 1], [2, *data[1:]]]
        elif type == "TensorScatter":
            legal = [data, data[:1], [*data[:-2], 1, data[-1]]]
        shapes = [hidden(choice, shape) for shape in legal]
    if choice.random() < 0.4:
        constant = [choice.randint(0, 3) for _ in range(choice.randint(0, 3))]
        shapes[1] = np.asarray(np.random.default_rng(0).integers(-2, 3, constant))
    return one_onnx(type, opset, *shapes, **attributes)


def some_shape(choice: random.Random) -> Dims:
    if choice.random() < 0.25:
        return None
    return [choice.choice([0, 1, 2, 3, 4, None, "N"]) for _ in range(choice.randint(0, 4))]


def hidden(choice: random.Random, shape: Sequence[int]) -> Dims:
    """Leave out what is not to be known."""
    return None if choice.random() < 0.3 else [dim if choice.random() < 0.6 else None for dim in shape]


@pytest.mark.parametrize(
    ("type", "shapes", "axis", "message"),
    [
        ("ScatterElements", (None, [], None), 0, "indices is [] of rank 0, expected rank 1 at least, like data"),
        ("ScatterElements", (None, None, []), 0, "updates is [] of rank 0, expected rank 1 at least, like data"),
        ("ScatterElements", ([5, 3], None, [4]), 0, "updates is [4] of rank 1, expected rank 2 like data"),
        ("ScatterElements", (None, [2, 3], None), 2, "indices is [2, 3] of rank 2, and axis 2 is not an axis of data"),
        ("TensorScatter", (None, [2], [3]), -2, "update is [3] of rank 1, expected rank 2 at least, like past_cache"),
        ("TensorScatter", (None, [2], [2, 3]), -2, "update is [2, 3] of rank 2, and axis -2 is not an axis of past_cache"),
    ],
)  # fmt: skip
def test_ranks_that_no_data_fits(type: str, shapes: tuple[Dims, ...], axis: int, message: str) -> None:
    written = one_onnx(type, OPSETS[type][-1], *shapes, axis=axis)
    to = "ScatterND" if type == "ScatterElements" else "ScatterElements"
    (refused,) = convert(read("model.onnx", written), to).refused
    assert (refused.code, refused.message) == ("CVT101", message)


@pytest.mark.parametrize(("length", "mode"), [(0, "linear"), (0, "circular"), (None, "circular")])
def test_caches_that_may_be_empty(length: int | None, mode: str) -> None:
    data = one_onnx("TensorScatter", 24, [2, length, 0], [2], None, mode=mode)
    (verified,) = convert(read("model.onnx", data), "ScatterElements", verify=2).verified
    assert verified.cases == 2
