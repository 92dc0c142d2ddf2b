"""Constants without elements, which OpenVINO's ONNX frontend reads without dimensions; all of it was measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper, save

from ir_scatter import read, runners
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import scatter_nodes
from ir_scatter.core.arrays import Array
from ir_scatter.defects import by_code
from ir_scatter.portability import diagnose, portability_to
from ir_scatter.runners.base import Status

INT64 = np.int64


def source(name: str, array: np.ndarray, view: str) -> tuple[list[NodeProto], list[TensorProto]]:
    """Return the nodes and initializers that make an input of an array in some way."""
    tensor, numbers = numpy_helper.from_array(array, f"{name}_0"), f"{name}_numbers"
    if view == "initializer":
        return [], [numpy_helper.from_array(array, name)]
    if view == "Constant":
        return [helper.make_node("Constant", [], [name], value=tensor)], []
    if view == "Constant, Identity":
        constant = helper.make_node("Constant", [], [f"{name}_0"], value=tensor)
        return [constant, helper.make_node("Identity", [f"{name}_0"], [name])], []
    if view == "ConstantOfShape":
        shape = numpy_helper.from_array(np.array(array.shape, INT64), numbers)
        value = numpy_helper.from_array(np.zeros(1, array.dtype))
        return [helper.make_node(view, [numbers], [name], value=value)], [shape]
    more: list[TensorProto] = []
    if view in {"Reshape", "Unsqueeze, Squeeze"}:
        content = array.shape if view == "Reshape" else (0,)
        more = [numpy_helper.from_array(np.array(content, INT64), numbers)]
    if view == "Unsqueeze, Squeeze":
        first, second = view.split(", ")
        longer = helper.make_node(first, [f"{name}_0", numbers], [f"{name}_1"])
        return [longer, helper.make_node(second, [f"{name}_1", numbers], [name])], [tensor, *more]
    every: dict[str, dict[str, Any]] = {
        "Cast": {"to": tensor.data_type},
        "Reshape": {"allowzero": 1},
        "Transpose": {"perm": [*range(array.ndim)]},
    }
    inputs = [f"{name}_0", *(one.name for one in more)]
    return [helper.make_node(view, inputs, [name], **every.get(view, {}))], [tensor, *more]


def model(operator: str, views: Sequence[str], folder: Path) -> Path:
    """Write a scatter node of data of shape [2, 0]; the view "" is an input of the model."""
    shapes: list[tuple[int, ...]] = [(2, 0), (1, 0), (1, 0)]
    if operator == "ScatterND":
        shapes = [(2, 0), (0, 1), (0, 0)]
    names = ("data", "indices", "updates")
    nodes, initializers, inputs = list[NodeProto](), list[TensorProto](), []
    for name, shape, view in zip(names, shapes, views, strict=True):
        array = np.zeros(shape, INT64 if name == "indices" else np.float32)
        if not view:
            type = TensorProto.INT64 if name == "indices" else TensorProto.FLOAT
            inputs.append(helper.make_tensor_value_info(name, type, shape))
            continue
        more, constants = source(name, array, view)
        nodes += more
        initializers += constants
    nodes.append(helper.make_node(operator, names, ["y"], name="node"))
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 0])
    graph = helper.make_graph(nodes, "g", inputs, [output], initializers)
    path = folder / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def codes(operator: str, views: Sequence[str], folder: Path) -> list[str]:
    loaded = read(model(operator, views, folder))
    (node,) = scatter_nodes(loaded.graph, Facts(model=loaded))
    found = []
    for code in ("DEV134", "DEV135"):
        affects = by_code()[code].affects
        assert affects is not None
        meeting = affects(node)
        if meeting is not None:
            assert meeting.when == ""
            found.append(code)
    return found


AS_SCALARS = (
    "initializer", "Constant", "Constant, Identity", "Identity", "Cast", "Abs", "Unsqueeze, Squeeze",
)  # fmt: skip


@pytest.mark.parametrize("view", AS_SCALARS)
def test_a_constant_without_elements_that_is_read_as_a_scalar(view: str, tmp_path: Path) -> None:
    assert codes("ScatterElements", (view, view, view), tmp_path) == ["DEV135"]
    assert codes("ScatterElements", ("initializer", view, "Identity"), tmp_path) == ["DEV135"]
    assert codes("ScatterElements", (view, "", ""), tmp_path) == ["DEV134"]
    assert codes("ScatterElements", (view, view, "ConstantOfShape"), tmp_path) == ["DEV134"]
    assert codes("ScatterND", (view, view, view), tmp_path) == ["DEV134"]
    assert codes("ScatterND", ("", "", view), tmp_path) == ["DEV134"]


@pytest.mark.parametrize("view", ["Reshape", "Transpose"])
def test_an_operator_that_is_refused_where_its_input_is_read_as_a_scalar(view: str, tmp_path: Path) -> None:
    assert codes("ScatterElements", (view, view, view), tmp_path) == ["DEV134"]
    assert codes("ScatterND", ("", view, ""), tmp_path) == ["DEV134"]


def test_what_is_made_without_a_constant_of_no_elements(tmp_path: Path) -> None:
    for operator in ("ScatterElements", "ScatterND"):
        assert codes(operator, ["ConstantOfShape"] * 3, tmp_path) == []
        assert codes(operator, [""] * 3, tmp_path) == []


def test_the_initializers_of_a_model_behind_identity(tmp_path: Path) -> None:
    loaded = read(model("ScatterElements", ["Identity"] * 3, tmp_path))
    found = diagnose(loaded, portability_to(("openvino:CPU@2026.4.1",)))
    assert [one.code for one in found if one.code.startswith("DEV13")] == ["DEV135"]


def folded(folder: Path, indices: Sequence[int | None], constants: Sequence[str]) -> Path:
    """Write a scatter node of data of shape [4, 5, 1, 1] without updates; some inputs are initializers."""
    given = {"data": (4, 5, 1, 1), "indices": indices, "updates": (0, 3, 1, 1)}
    inputs, initializers = [], []
    for name, shape in given.items():
        if name in constants:
            array = np.ones([size or 0 for size in shape], np.float32)
            initializers.append(numpy_helper.from_array(array, name))
            continue
        type = TensorProto.INT64 if name == "indices" else TensorProto.FLOAT
        inputs.append(helper.make_tensor_value_info(name, type, shape))
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, given["data"])
    nodes = [helper.make_node("ScatterND", [*given], ["y"], name="node")]
    graph = helper.make_graph(nodes, "g", inputs, [output], initializers)
    path = folder / "folded.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("indices", "constants", "is_refused"),
    [
        ((0, 3, None), ("data", "updates"), False),
        ((0, 3, None), ("updates",), True),
        ((0, 3, 2), ("data", "updates"), True),
        ((None, 3, None), ("data", "updates"), True),
        ((None, 3, 2), ("data", "updates"), True),
    ],
)
def test_a_node_that_is_replaced_by_constant_data(
    indices: Sequence[int | None], constants: Sequence[str], is_refused: bool, tmp_path: Path
) -> None:
    pytest.importorskip("openvino")
    path = folded(tmp_path, indices, constants)
    found = [one.code for one in diagnose(read(path), portability_to(("openvino:CPU@2026.4.1",)))]
    assert ("DEV134" in found) == is_refused
    feeds: dict[str, Array] = {
        "indices": np.zeros((0, 3, 2), INT64), "data": np.ones((4, 5, 1, 1), np.float32)
    }  # fmt: skip
    runner = runners.find("CPU")
    try:
        fed = {name: feeds[name] for name in feeds if name not in constants}
        outcome = runner.run(path, fed, timeout=60)
    finally:
        runner.close()
    assert (outcome.status is not Status.OK) == is_refused
    if not is_refused:
        np.testing.assert_array_equal(outcome.outputs["y"], feeds["data"])
