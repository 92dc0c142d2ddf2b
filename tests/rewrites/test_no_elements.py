"""Forms of nodes without elements, where sizes say so and where only a run does: in NumPy and on runtimes."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import load

from ir_scatter import convert, evaluate_model, runners, validate
from ir_scatter.core.arrays import Array
from ir_scatter.core.diagnostics import Severity
from ir_scatter.runners.base import Status
from tests.models.onnx_graph import OnnxGraph
from tests.rewrites.ir_models import given, one_scatter

Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
OTHER = {"ScatterND": "ScatterElements", "ScatterElements": "ScatterND"}
CASES: tuple[tuple[str, Shapes], ...] = (
    ("ScatterND", ((4, 0, 1, 4), (0, 4), (0,))),
    ("ScatterND", ((2, 0), (1, 1), (1, 0))),
    ("ScatterND", ((2, 3, 0), (1, 2), (1, 0))),
    ("ScatterND", ((2, 0, 0), (1, 1), (1, 0, 0))),
    ("ScatterND", ((2, 3, 0), (3, 1, 2), (3, 1, 0))),
    ("ScatterND", ((3, 4, 5, 1), (0, 1, 2), (0, 1, 5, 1))),
    ("ScatterElements", ((0, 1), (0, 1), (0, 1))),
    ("ScatterElements", ((2, 3), (0, 3), (0, 3))),
    ("ScatterElements", ((2, 0), (1, 0), (1, 0))),
    ("ScatterElements", ((2, 3, 5), (2, 0, 5), (2, 0, 5))),
)
OPEN = ((), ("data",), ("indices",), ("updates",), ("indices", "updates"), ("data", "indices", "updates"))


def write(folder: Path, operator: str, shapes: Shapes, open_: tuple[str, ...], opset: int) -> Path:
    """Write one node; the dimensions of some inputs are open."""
    graph, inputs = OnnxGraph(opset), []
    for name, shape in zip(("data", "indices", "updates"), shapes, strict=True):
        sizes: list[int | None] = [None] * len(shape) if name in open_ else [*shape]
        if operator == "ScatterND" and name == "indices":
            sizes[-1] = shape[-1]  # an unknown number of coordinates is illegal
        inputs.append(graph.input(name, "i64" if name == "indices" else "f32", sizes))
    graph.output(graph.add(operator, inputs, "y", "node"), shape=[None] * len(shapes[0]))
    return graph.write(folder / "before.onnx")


def converted(path: Path) -> Path:
    (node,) = load(path).graph.node
    conversion = convert(path, OTHER[node.op_type], verify=2)
    assert not conversion.refused, [one.message for one in conversion.refused]
    after = path.parent / "after.onnx"
    conversion.write(after, overwrite=True)
    assert not [one for one in validate(after) if one.severity is Severity.ERROR]
    return after


def feeds_of(shapes: Shapes) -> Mapping[str, Array]:
    data, indices, updates = shapes
    return {
        "data": np.ones(data, np.float32), "indices": np.zeros(indices, np.int64),
        "updates": np.zeros(updates, np.float32),
    }  # fmt: skip


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("open_", OPEN, ids=", ".join)
@pytest.mark.parametrize(("operator", "shapes"), CASES, ids=str)
def test_without_elements(
    operator: str, shapes: Shapes, open_: tuple[str, ...], opset: int, tmp_path: Path
) -> None:
    after, feeds = converted(write(tmp_path, operator, shapes, open_, opset)), feeds_of(shapes)
    (found,) = evaluate_model(after, feeds).values()
    np.testing.assert_array_equal(found, feeds["data"])


@pytest.mark.long
@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", ["CPU", "onnxruntime"])
def test_without_elements_on_runtimes(name: str, tmp_path: Path) -> None:
    pytest.importorskip({"CPU": "openvino"}.get(name, name))
    runner, failed = runners.find(name), list[str]()
    try:
        for operator, shapes in CASES:
            for open_ in OPEN:
                for opset in (11, 13, 18):
                    before, feeds = write(tmp_path, operator, shapes, open_, opset), feeds_of(shapes)
                    if runner.run(before, feeds, timeout=60).status is not Status.OK:
                        continue
                    outcome = runner.run(converted(before), feeds, timeout=60)
                    is_right = outcome.status is Status.OK and np.array_equal(
                        outcome.outputs["y"], feeds["data"]
                    )
                    if not is_right:
                        failed.append(f"{operator} {shapes} {open_} {opset}: {outcome.message[:200]}")
    finally:
        runner.close()
    assert failed == []


def test_updates_that_data_without_elements_cannot_take(tmp_path: Path) -> None:
    """Whatever the open dimension is, an update has no target: no form of the node can be written."""
    sources = (
        given("data", "f32", ("..0",)),
        given("indices", "i64", (2, "0..4", 1)),
        given("updates", "f32", (2, 3)),
    )
    path = one_scatter(tmp_path, "ScatterNDUpdate", "opset15", *sources)
    (refused,) = convert(path, "ScatterElementsUpdate", verify=0).refused
    assert refused.message == "updates is [2, 3], and data is [0]: nothing can be written"


@pytest.mark.parametrize("reduction", ["sub", "sum"])
def test_stored_shapes_are_those_that_inputs_make(reduction: str, tmp_path: Path) -> None:
    """Old values of a bounded number of tuples are as many as the tuples, not as the updates."""
    sources = (
        given("data", "f32", (3,)),
        given("indices", "i64", ("0..3", 1)),
        given("updates", "f32", (2,)),
    )
    path = one_scatter(tmp_path, "ScatterNDUpdate", "opset15", *sources, attributes={"reduction": reduction})
    for target in ("ScatterNDUpdate-3", "ScatterUpdate"):
        conversion = convert(path, target, verify=0, assume="unique-indices")
        assert not conversion.refused
        after = tmp_path / "after.xml"
        conversion.write(after, overwrite=True)
        assert [one.code for one in validate(after) if one.code.startswith(("SCT5", "SCT9"))] == []
