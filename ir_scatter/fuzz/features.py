"""Features of cases: what a condition can be about."""

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

_described: "WeakKeyDictionary[Case, Mapping[str, Feature]]" = WeakKeyDictionary()
"""Features of cases that are there: what to ask for, what to count and what to learn needs them."""


def described(case: Case) -> Mapping[str, Feature]:
    """Return the features of a case, and of a legal one those of its result, where wrong values show."""
    if (known := _described.get(case)) is None:
        known = _described[case] = _features(case)
    return known


def _features(case: Case) -> Mapping[str, Feature]:
    if case.broken is not None:
        return features(case)
    expected = reference(case)
    found = {**features(case), **value_features([expected.values], "a result")}
    if case.data.dtype == np.float64:
        narrow = _in(case, np.float32).astype(np.float64)
        is_other = measure_node(expected, narrow, case.reduction).verdict is Verdict.MISMATCH
        found["a result differs in f32"] = is_other
    elif case.reduction is Reduction.MEAN and kind(case.data) in {"signed", "unsigned"}:
        means = _in(case, np.float64)
        found["a mean is rounded"] = bool((means % 1 != 0).any())
        found["a negative mean is rounded"] = bool(((means % 1 != 0) & (means < 0)).any())
    return found


def _in(case: Case, type: type[Any]) -> Array:
    """Return what the document says if data and updates are of another type."""
    operation = case.operation()
    with np.errstate(all="ignore"):
        data, updates = operation.data.astype(type), operation.updates.astype(type)
        return scatter(operation.task, data, operation.indices, updates)


def features(case: Case) -> dict[str, Feature]:
    """Return what a condition can be about, in words that stand in a sentence."""
    spec, data, updates, axis = case.spec, case.data, case.updates, case.axis_from_front
    found: dict[str, Feature] = {
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
        found["inside a loop"] = case.iterations > 0
        found["iterations"] = case.iterations
    for row in spec.attributes:
        if spec.axis is None or row.name != spec.axis.attribute:
            found[row.name] = case.attribute(row.name)
    for port in spec.ports:
        found[f"{port.role.value} is constant"] = port.role in case.constants
    inputs = [array for role, array in case.arrays().items() if role in case.constants and array is not None]
    found["a constant is empty"] = any(not array.size for array in inputs)
    is_known = case.shapes == "static" or Role.UPDATES in case.constants
    is_folded = case.iterations > 0 or (Role.DATA in case.constants and is_known)
    found["empty data is folded"] = not data.size and is_folded  # by OpenVINO
    found["every input is constant"] = {port.role for port in spec.ports} <= case.constants
    if case.indices is not None:
        found["index type"] = case.index_type.name
        found["rank(indices)"] = case.indices.ndim
        found["elements(indices)"] = case.indices.size
        found["a dimension of indices is 1"] = 1 in case.indices.shape
        found["the last dimension of indices is 1"] = case.indices.shape[-1:] == (1,)
        found["an index is negative"] = bool((case.indices < 0).any()) if case.indices.size else False
    elif any(port.is_optional for port in spec.ports):
        found["indices are left out"] = True
    if case.axis is not None and data.ndim:
        found["axis"] = axis
        found["axis is negative"] = case.axis < 0
        found["rank(axis)"] = len(case.axis_shape)
        found["elements(axis)"] = prod(case.axis_shape)
        found["axis is the last"] = axis == data.ndim - 1
        found["dimension of data on the axis"] = data.shape[axis]
        if axis < data.ndim - 1:
            behind = data.shape[axis + 1 :]
            found["a dimension behind the axis is 1"] = 1 in behind
            first = next((number for number, dim in enumerate(behind) if dim != 1), len(behind))
            found["a dimension of 1 follows another one behind the axis"] = 1 in behind[first:]
        found["elements in front of the axis"] = prod(data.shape[:axis])
        found["a dimension of updates from the axis on is 1"] = 1 in updates.shape[axis:]
        found["elements behind the axis"] = prod(data.shape[axis + 1 :])
    if spec.layout is Layout.TUPLES and case.indices is not None and case.indices.ndim:
        found["coordinates of a tuple"] = case.indices.shape[-1]
        found["rank(data) - coordinates"] = rows = data.ndim - case.indices.shape[-1]
        is_single = case.indices.ndim == updates.size == 1
        found["one element stands for 0-D updates"] = rows == 0 < updates.ndim and is_single
    if spec.layout is Layout.ELEMENTS and case.indices is not None and case.indices.ndim == data.ndim:
        if data.ndim:
            found["indices are longer than data on the axis"] = case.indices.shape[axis] > data.shape[axis]
        found["indices have the shape of data"] = case.indices.shape == data.shape
    if case.broken is None and case.indices is not None:
        found["targets are repeated"] = repeats_targets(case)
    if case.broken == "index-out-of-range":
        found |= _beyond(case)
    return {**found, **value_features([case.data, case.updates])}


def _beyond(case: Case) -> dict[str, Feature]:
    """Tell on which side indices are beyond their range, and by how many elements."""
    assert case.indices is not None
    numbers, sizes = case.indices.astype(np.int64), np.array(case.limits, np.int64)
    below, above = int((-sizes - numbers).max()), int((numbers - sizes + 1).max())
    return {"an index is below its range": below > 0, "an index is beyond by": max(below, above)}


def value_features(arrays: Sequence[Array], what: str = "a value") -> dict[str, Feature]:
    """Tell of arrays of one type which numbers are there that not every computation holds."""
    found: dict[str, Feature] = {}
    flat = [array.reshape(-1) for array in arrays]
    of = kind(flat[0])
    if of == "float":
        wide = np.concatenate([one.astype(np.float64) for one in flat])
        found[f"{what} is NaN"] = bool(np.isnan(wide).any())
        found[f"{what} is infinite"] = bool(np.isinf(wide).any())
        sizes = np.abs(wide[np.isfinite(wide) & (wide != 0)])
        found[f"{what} is subnormal in f32"] = bool((sizes < float(np.finfo(np.float32).tiny)).any())
        found[f"{what} is beyond 2^31"] = bool((sizes >= 2.0**31).any())
    elif of in {"signed", "unsigned"}:
        whole = [one.astype(object if one.dtype == np.uint64 else np.int64) for one in flat if one.size]
        largest = max([max(int(one.max()), -1 - int(one.min())) for one in whole], default=0)
        found[f"{what} is beyond i32"] = largest >= 2**31
        found[f"{what} is beyond 2^24"] = largest > 2**24
    return found
