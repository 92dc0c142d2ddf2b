"""Inputs of one node of which some or all sizes are unknown."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter.analysis.conditions import Condition
from ir_scatter.core.model import ONNX, OPENVINO
from ir_scatter.core.shapes import Bounds, Shape
from ir_scatter.inputs.node import Misfit, draw_inputs
from ir_scatter.ops.index_values import repeats, sizes
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Role
from tests.rewrites.forms import engine_for, site_for

UNIQUE = {Condition.UNIQUE}
SPEC = {str(spec.key): spec for spec in SPECS.values()}


def site(name: str, shapes: dict[Role, Shape], indices: Any = None, axis: Any = 0) -> Any:
    spec = SPEC[name]
    constants = {} if indices is None else {Role.INDICES: np.array(indices)}
    engine = engine_for(ONNX if spec.key.domain == ONNX else OPENVINO, set())
    everything: dict[Role, Shape] = {Role.DATA: None, Role.UPDATES: None, Role.INDICES: None}
    return site_for(engine, spec, {**everything, **shapes}, axis=axis, constants=constants)


def limits(name: str, data: tuple[int, ...], indices: npt.NDArray[Any], axis: int | None) -> list[Any]:
    return sizes(SPEC[name].layout, data, axis, indices.shape)


@pytest.mark.parametrize(
    ("name", "shapes", "indices", "axis"),
    [
        ("ScatterND-18", {}, [[0, 3], [-1, 3], [5, -4]], None),
        ("ScatterND-18", {Role.DATA: (Bounds(3, 6), Bounds(2, 4), Bounds())}, [[0, -1], [-3, 3]], None),
        ("ScatterNDUpdate-3", {Role.DATA: (Bounds(), Bounds(), Bounds(), 0)}, None, None),
        ("ScatterElements-18", {}, [[-4, 2], [3, -2], [0, 5]], 0),
        ("ScatterElements-18", {Role.DATA: (Bounds(2, 6), 2)}, [[-4, 2], [3, -2]], 0),
        ("ScatterElements-18", {Role.DATA: (5, 0, 4), Role.UPDATES: (7, 0, 3)}, None, 0),
        ("ScatterUpdate-3", {Role.DATA: (3, Bounds(), 2), Role.INDICES: (Bounds(4), 3)}, None, 1),
    ],
)
def test_sizes_with_which_targets_differ(
    name: str, shapes: dict[Role, Shape], indices: Any, axis: int | None
) -> None:
    node = site(name, shapes, indices, 0 if axis is None else axis)
    for given in draw_inputs(0, node, UNIQUE, 6, keeps_constants=True):
        found = given.inputs[1]
        assert found is not None
        assert indices is None or np.array_equal(found, indices)
        of = limits(name, given.data.shape, found, axis)
        low, high = found.reshape(-1, len(of)).min(0, initial=0), found.reshape(-1, len(of)).max(0, initial=0)
        assert not found.size or ((low >= -np.array(of)) & (high < np.array(of))).all()
        assert repeats(SPEC[name].layout, axis, found, of, wraps=True) is None


@pytest.mark.parametrize(
    ("name", "data", "indices", "updates", "axis"),
    [
        ("ScatterElements-13", (5, 4, 1, 0), (4, Bounds(3, 3), Bounds(), Bounds(0, 1)), (4, 3, 1, 0), 1),
        ("ScatterElements-11", None, (2, 1, Bounds(1, 1)), (Bounds(), Bounds(), Bounds(1, 2)), 1),
        ("ScatterND-16", (3, Bounds(0, 3), Bounds(), 1), (2, 1), (2, 0, 3, 1), 0),
        ("ScatterND-18", (3, 4), (Bounds(1, 1), Bounds(1, 2)), (Bounds(1, 2),), 0),
        ("TensorScatter-24", (Bounds(),) * 4, (Bounds(0, 2),), (1, 4, 2, 2), 1),
        ("ScatterUpdate-3", (2, Bounds(), 1), (Bounds(1, 2),), (Bounds(), Bounds(1, 2), Bounds(0, 1)), 1),
    ],
)
def test_sizes_that_cannot_all_be_different(
    name: str, data: Shape, indices: Shape, updates: Shape, axis: int
) -> None:
    shapes = {Role.DATA: data, Role.INDICES: indices, Role.UPDATES: updates}
    assert list(draw_inputs(0, site(name, shapes, axis=axis), set(), 1, keeps_constants=True))


@pytest.mark.parametrize(
    ("name", "shapes", "indices"),
    [
        ("ScatterND-18", {}, [[1], [1]]),
        ("ScatterND-18", {Role.DATA: (Bounds(1, 4),)}, [[4]]),
        ("ScatterND-18", {Role.DATA: (4, 3), Role.UPDATES: (2, 5), Role.INDICES: (2, 1)}, None),
        ("ScatterElements-18", {Role.DATA: (2, 3), Role.INDICES: (3, 3)}, None),
        ("ScatterUpdate-3", {Role.DATA: (2,), Role.INDICES: (3,)}, None),
    ],
)
def test_shapes_that_no_input_has(name: str, shapes: dict[Role, Shape], indices: Any) -> None:
    with pytest.raises(Misfit):
        next(draw_inputs(0, site(name, shapes, indices), UNIQUE, 1, keeps_constants=True))
