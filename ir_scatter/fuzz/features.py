"""Features of cases: facts such as ("element type", "f32") that conditions of failures refer to."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from ir_scatter.cases.case import Case, repeats_targets
from ir_scatter.cases.judge import reference
from ir_scatter.compare.measure import Verdict, measure_node
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.model import ONNX
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.ops.spec import Layout, Reduction, Role

Feature: TypeAlias = str | int | bool

_FEATURES: "WeakKeyDictionary[Case, Mapping[str, Feature]]" = WeakKeyDictionary()
"""Cache of features by case."""


def features_of(case: Case) -> Mapping[str, Feature]:
    """Return the features of a case by name; for a legal case, including features of its expected result."""
    if (features := _FEATURES.get(case)) is None:
        features = _FEATURES[case] = _all_features(case)
    return features


def _all_features(case: Case) -> Mapping[str, Feature]:
    if case.broken is not None:
        return input_features(case)
    expected = reference(case)
    features = {**input_features(case), **value_features([expected.values], "a result")}
    if case.data.dtype == np.float64:
        narrow = _recompute_in(case, np.float32).astype(np.float64)
        is_other = measure_node(expected, narrow, case.reduction).verdict is Verdict.MISMATCH
        features["a result differs in f32"] = is_other
    elif case.reduction is Reduction.MEAN and kind(case.data) in {"signed", "unsigned"}:
        means = _recompute_in(case, np.float64)
        features["a mean is rounded"] = bool((means % 1 != 0).any())
        features["a negative mean is rounded"] = bool(((means % 1 != 0) & (means < 0)).any())
    return features


def _recompute_in(case: Case, type: type[Any]) -> Array:
    """Return the output of a case if data and updates were computed in another type."""
    operation = case.operation()
    with np.errstate(all="ignore"):
        data, updates = operation.data.astype(type), operation.updates.astype(type)
        return scatter(operation.task, data, operation.indices, updates)


def input_features(case: Case) -> dict[str, Feature]:
    """Return the features of inputs and attributes; their names are phrases: "rank of data"."""
    spec, data, updates, axis = case.spec, case.data, case.updates, case.axis_from_front
    features: dict[str, Feature] = {
        "element type": case.element_type.name,
        "rank(data)": data.ndim,
        "rank(updates)": updates.ndim,
        "elements(data)": data.size,
        "elements(updates)": updates.size,
        "a dimension of data is 1": 1 in data.shape,
        "a dimension of updates is 1": 1 in updates.shape,
        "elements(updates) is odd": updates.size % 2 > 0,
        "elements(data) is odd": data.size % 2 > 0,
        "shapes": case.shapes,
        "broken": case.broken or "nothing",
    }
    if spec.key.domain != ONNX:
        features["inside a loop"] = case.iterations > 0
        features["iterations"] = case.iterations
    for row in spec.attributes:
        if spec.axis is None or row.name != spec.axis.attribute:
            features[row.name] = case.attribute(row.name)
    for port in spec.ports:
        features[f"{port.role.value} is constant"] = port.role in case.constants
    inputs = [array for role, array in case.arrays().items() if role in case.constants and array is not None]
    features["a constant is empty"] = any(not array.size for array in inputs)
    is_shape_static = case.shapes == "static" or Role.UPDATES in case.constants
    is_folded = case.iterations > 0 or (Role.DATA in case.constants and is_shape_static)
    # OpenVINO computes such nodes before it compiles the model
    features["empty data is folded"] = not data.size and is_folded
    features["every input is constant"] = {port.role for port in spec.ports} <= case.constants
    if case.indices is not None:
        features["index type"] = case.index_type.name
        features["rank(indices)"] = case.indices.ndim
        features["elements(indices)"] = case.indices.size
        features["a dimension of indices is 1"] = 1 in case.indices.shape
        features["the last dimension of indices is 1"] = case.indices.shape[-1:] == (1,)
        features["an index is negative"] = bool((case.indices < 0).any()) if case.indices.size else False
    elif any(port.is_optional for port in spec.ports):
        features["indices are left out"] = True
    if case.axis is not None and data.ndim:
        features["axis"] = axis
        features["axis is negative"] = case.axis < 0
        features["rank(axis)"] = len(case.axis_shape)
        features["elements(axis)"] = prod(case.axis_shape)
        features["axis is the last"] = axis == data.ndim - 1
        features["dimension of data on the axis"] = data.shape[axis]
        if axis < data.ndim - 1:
            after = data.shape[axis + 1 :]
            features["a dimension behind the axis is 1"] = 1 in after
            first = next((number for number, dim in enumerate(after) if dim != 1), len(after))
            features["a dimension of 1 follows another one behind the axis"] = 1 in after[first:]
        features["elements in front of the axis"] = prod(data.shape[:axis])
        features["a dimension of updates from the axis on is 1"] = 1 in updates.shape[axis:]
        features["elements behind the axis"] = prod(data.shape[axis + 1 :])
    if spec.layout is Layout.TUPLES and case.indices is not None and case.indices.ndim:
        features["coordinates of a tuple"] = case.indices.shape[-1]
        features["rank(data) - coordinates"] = rows = data.ndim - case.indices.shape[-1]
        is_single = case.indices.ndim == updates.size == 1
        features["one element stands for 0-D updates"] = rows == 0 < updates.ndim and is_single
    if spec.layout is Layout.ELEMENTS and case.indices is not None and case.indices.ndim == data.ndim:
        if data.ndim:
            features["indices are longer than data on the axis"] = case.indices.shape[axis] > data.shape[axis]
        features["indices have the shape of data"] = case.indices.shape == data.shape
    if case.broken is None and case.indices is not None:
        features["targets are repeated"] = repeats_targets(case)
    if case.broken == "index-out-of-range":
        features |= _range_features(case)
    return {**features, **value_features([case.data, case.updates])}


def _range_features(case: Case) -> dict[str, Feature]:
    """Return whether illegal indices are below or above their range, and by how many elements."""
    assert case.indices is not None
    numbers, sizes = case.indices.astype(np.int64), np.array(case.limits, np.int64)
    below, above = int((-sizes - numbers).max()), int((numbers - sizes + 1).max())
    return {"an index is below its range": below > 0, "an index is beyond by": max(below, above)}


def value_features(arrays: Sequence[Array], subject: str = "a value") -> dict[str, Feature]:
    """Return which special values arrays contain: NaN, numbers that f16 cannot represent, and so on."""
    features: dict[str, Feature] = {}
    flat = [array.reshape(-1) for array in arrays]
    number_kind = kind(flat[0])
    if number_kind == "float":
        wide = np.concatenate([array.astype(np.float64) for array in flat])
        features[f"{subject} is NaN"] = bool(np.isnan(wide).any())
        features[f"{subject} is infinite"] = bool(np.isinf(wide).any())
        sizes = np.abs(wide[np.isfinite(wide) & (wide != 0)])
        features[f"{subject} is subnormal in f32"] = bool((sizes < float(np.finfo(np.float32).tiny)).any())
        features[f"{subject} is beyond 2^31"] = bool((sizes >= 2.0**31).any())
    elif number_kind in {"signed", "unsigned"}:
        whole = [
            array.astype(object if array.dtype == np.uint64 else np.int64) for array in flat if array.size
        ]
        largest = max([max(int(array.max()), -1 - int(array.min())) for array in whole], default=0)
        features[f"{subject} is beyond i32"] = largest >= 2**31
        features[f"{subject} is beyond 2^24"] = largest > 2**24
    return features
