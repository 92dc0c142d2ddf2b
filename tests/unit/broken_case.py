"""Ways to break a legal case, one for each rule that it can break: named like the rule."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.inputs.numbers import clip_to_type
from ir_scatter.ops.spec import NEGATIVE_INDEX, IndexRange, IndicesLimit, Kind, Layout, Role
from tests.unit.case import Case

_Way: TypeAlias = Callable[[np.random.Generator, Case], Case | None]


def break_case(random: np.random.Generator, case: Case, way: str) -> Case | None:
    """Return a case that breaks one rule; None if this one cannot be made to."""
    found = WAYS[way](random, case)
    return None if found is None else replace(found, broken=way)


def _index_out_of_range(random: np.random.Generator, case: Case) -> Case | None:
    limits = case.limits
    if case.indices is None or not case.indices.size or not limits or limits == [None]:
        return None
    place = int(random.integers(case.indices.size))
    size = limits[place % len(limits)] or 0
    below = -size - 1 - int(random.integers(3))
    value = (
        below
        if case.index_type.kind == "signed" and random.random() < 0.5
        else size + int(random.integers(3))
    )
    return _with_index(case, place, value)


def _negative_index(random: np.random.Generator, case: Case) -> Case | None:
    is_legal = case.spec.index_range is IndexRange.WRAPPING or NEGATIVE_INDEX in case.spec.tolerated
    limits = case.limits
    if is_legal or case.indices is None or not case.indices.size or not limits or limits == [None]:
        return None
    place = int(random.integers(case.indices.size))
    size = limits[place % len(limits)]
    if not size or case.index_type.kind != "signed":
        return None
    return _with_index(case, place, -1 - int(random.integers(size)))


def _updates_shape(random: np.random.Generator, case: Case) -> Case | None:
    if case.updates.ndim == 0 or case.spec.layout is Layout.SEQUENCE:
        return None
    if case.spec.scalar_updates and case.updates.size == 1 and case.updates.shape == (1,) * case.updates.ndim:
        return None
    axis = int(random.integers(case.updates.ndim))
    return replace(case, updates=_longer(case.updates, axis))


def _axis_out_of_range(random: np.random.Generator, case: Case) -> Case | None:
    if case.axis is None:
        return None
    rank, beyond = case.data.ndim, int(random.integers(3))
    return replace(case, axis=rank + beyond if random.random() < 0.5 else -rank - 1 - beyond)


def _ranks_differ(random: np.random.Generator, case: Case) -> Case | None:
    if case.spec.layout is not Layout.ELEMENTS or case.indices is None:
        return None
    return replace(case, indices=case.indices[None], updates=case.updates[None])


def _longer_indices(random: np.random.Generator, case: Case) -> Case | None:
    if case.spec.indices_limit is IndicesLimit.NOWHERE or case.indices is None:
        return None
    axes = [axis for axis in range(case.data.ndim) if axis != case.axis_from_front]
    if not axes or not case.indices.size:
        return None
    axis = int(random.choice(axes))
    missing = case.data.shape[axis] + 1 - case.indices.shape[axis]
    indices, updates = (_longer(array, axis, missing) for array in (case.indices, case.updates))
    return replace(case, indices=indices, updates=updates)


def _long_tuple(random: np.random.Generator, case: Case) -> Case | None:
    if case.spec.layout is not Layout.TUPLES or case.indices is None:
        return None
    shape = (*case.indices.shape[:-1], case.data.ndim + 1 + int(random.integers(2)))
    return replace(case, indices=np.zeros(shape, case.indices.dtype))


def _batch(random: np.random.Generator, case: Case) -> Case | None:
    if case.spec.layout is not Layout.SEQUENCE or case.indices is None:
        return None
    return replace(case, indices=_longer(case.indices, 0) if case.indices.size else np.zeros(1, np.int64))


def _word(random: np.random.Generator, case: Case) -> Case | None:
    words = [row for row in case.spec.attributes if row.kind is Kind.WORD and row.choices]
    if not words:
        return None
    row = words[int(random.integers(len(words)))]
    return replace(case, attributes={**case.attributes, row.name: "no_such_word"})


def _other_type(random: np.random.Generator, case: Case) -> Case | None:
    name = "i32" if case.element_type.name != "i32" else "i64"
    port = case.spec.port(Role.UPDATES)
    if port is None or name not in port.element_types:
        return None
    shape = case.updates.shape
    return replace(case, updates=np.zeros(shape, ELEMENT_TYPES[name].dtype_name))


def _index_type(random: np.random.Generator, case: Case) -> Case | None:
    if case.indices is None:
        return None
    type = ELEMENT_TYPES["f32"]
    return replace(case, indices=case.indices.astype(np.float32), index_type=type)


def _low_rank(random: np.random.Generator, case: Case) -> Case | None:
    port = case.spec.port(Role.DATA)
    if port is None or port.min_rank < 1 or not case.data.size:
        return None
    return replace(case, data=case.data.reshape(-1)[:1].reshape(()))


def _with_index(case: Case, place: int, value: int) -> Case | None:
    """Return the case with another index, None if its type cannot hold it."""
    assert case.indices is not None
    if clip_to_type(case.index_type, value, value) != (value, value):
        return None
    indices = case.indices.reshape(-1).copy()
    indices[place] = value
    return replace(case, indices=indices.reshape(case.indices.shape))


def _longer(array: Array, axis: int, count: int = 1) -> Array:
    """Return an array with more positions on an axis, whose elements repeat those that are there."""
    shape = list(array.shape)
    shape[axis] += count
    if array.size:
        return np.resize(array, shape)
    return np.full(shape, "" if array.dtype == object else 0, array.dtype)


WAYS: Mapping[str, _Way] = {
    "attribute-value": _word,
    "axis-out-of-range": _axis_out_of_range,
    "batch-mismatch": _batch,
    "index-out-of-range": _index_out_of_range,
    "index-type": _index_type,
    "indices-longer-than-data": _longer_indices,
    "negative-index": _negative_index,
    "rank-too-small": _low_rank,
    "ranks-differ": _ranks_differ,
    "tuple-too-long": _long_tuple,
    "type-mismatch": _other_type,
    "updates-shape-mismatch": _updates_shape,
}
