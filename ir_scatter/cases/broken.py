"""Makes illegal cases: each breaks one rule of its operator."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ir_scatter.cases.case import Case
from ir_scatter.cases.draw import Draws
from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.inputs.numbers import clip_to_type
from ir_scatter.ops.spec import IndexRange, IndicesLimit, Kind, Layout, Role

_AXIS_DISTANCES = 3
"""An illegal axis is less than this many positions past its range."""
_INDEX_DISTANCES = (0, 1, 2, 63, 1 << 12, 1 << 18, 1 << 26)
"""Distances of an illegal index from its range, in elements; far writes are likelier to crash."""


class Way(NamedTuple):
    """One way to break a rule.

    Attributes:
        apply: returns a case that breaks the rule, or None if this case cannot break it.
        rule: the rule as a sentence.
        is_of_values: whether the fault is in values, which only a run can check. Runtimes check values, if at
            all, in different code for each type and rank.
    """

    apply: Callable[[Draws, Case], Case | None]
    rule: str
    is_of_values: bool = False


def break_case(draws: Draws, case: Case, way: str) -> Case | None:
    """Return a copy of a legal case that breaks a rule in a named way; None if this case cannot break it."""
    broken_case = WAYS[way].apply(draws, case)
    return None if broken_case is None else replace(broken_case, broken=way, decisions=tuple(draws.decisions))


def _index_out_of_range(draws: Draws, case: Case) -> Case | None:
    position, size = _draw_index(draws, case)
    if size is None:
        return None
    is_below = draws.chance(0.5) and case.index_type.kind == "signed"
    distance = draws.pick(_INDEX_DISTANCES)
    return _with_index(case, position, -size - 1 - distance if is_below else size + distance)


def _negative_index(draws: Draws, case: Case) -> Case | None:
    if case.spec.index_range is IndexRange.WRAPPING or case.index_type.kind != "signed":
        return None
    position, size = _draw_index(draws, case)
    return _with_index(case, position, -1 - draws.below(size)) if size else None


def _draw_index(draws: Draws, case: Case) -> tuple[int, int | None]:
    """Pick an index of the case; return its flat position and the size of its dimension.

    Return (0, None) if there is no index, or none can be illegal.
    """
    if case.indices is None or not case.indices.size or not case.limits:
        return 0, None
    position = draws.below(case.indices.size)
    return position, case.limits[position % len(case.limits)]


def _updates_shape_mismatch(draws: Draws, case: Case) -> Case | None:
    if case.updates.ndim == 0 or case.spec.layout is Layout.SEQUENCE:
        return None
    if case.spec.scalar_updates and case.updates.size == 1 and case.updates.shape == (1,) * case.updates.ndim:
        return None
    return replace(case, updates=_lengthen(case.updates, draws.below(case.updates.ndim)))


def _axis_out_of_range(draws: Draws, case: Case) -> Case | None:
    if case.axis is None:
        return None
    rank, is_below, distance = case.data.ndim, draws.chance(0.5), draws.below(_AXIS_DISTANCES)
    return replace(case, axis=-rank - 1 - distance if is_below else rank + distance)


def _axis_shape(draws: Draws, case: Case) -> Case | None:
    if case.spec.port(Role.AXIS) is None:
        return None
    return replace(case, axis_shape=draws.pick(((0,), (2,))))


def _element_type(draws: Draws, case: Case) -> Case | None:
    port = case.spec.port(Role.DATA)
    rows = [row for row in ELEMENT_TYPES.values() if port is not None and row.name not in port.element_types]
    rows = [
        row for row in rows if dtype(row) is not None and row.kind != "boolean"
    ]  # runtimes accept booleans
    if not rows:
        return None
    row = draws.pick(rows)
    is_string = row.kind == "string"
    data, updates = (
        np.full(array.shape, "" if is_string else 0, dtype(row)) for array in (case.data, case.updates)
    )
    # the writer of IRs has no string constants
    constants = case.constants - ({Role.DATA, Role.UPDATES} if is_string else set())
    return replace(case, data=data, updates=updates, element_type=row, constants=constants)


def _ranks_differ(draws: Draws, case: Case) -> Case | None:
    if case.spec.layout is not Layout.ELEMENTS or case.indices is None:
        return None
    return replace(case, indices=case.indices[None], updates=case.updates[None])


def _indices_longer_off_axis(draws: Draws, case: Case) -> Case | None:
    return _lengthen_indices(draws, case, is_on_axis=False)


def _indices_longer_on_axis(draws: Draws, case: Case) -> Case | None:
    is_legal = case.spec.indices_limit is not IndicesLimit.EVERYWHERE
    return None if is_legal else _lengthen_indices(draws, case, is_on_axis=True)


def _lengthen_indices(draws: Draws, case: Case, *, is_on_axis: bool) -> Case | None:
    if case.spec.indices_limit is IndicesLimit.NOWHERE or case.indices is None:
        return None
    axes = [axis for axis in range(case.data.ndim) if (axis == case.axis_from_front) is is_on_axis]
    if not axes or not case.indices.size:
        return None
    axis = draws.pick(axes)
    missing = case.data.shape[axis] + 1 - case.indices.shape[axis]
    indices, updates = (_lengthen(array, axis, missing) for array in (case.indices, case.updates))
    return replace(case, indices=indices, updates=updates)


def _tuple_too_long(draws: Draws, case: Case) -> Case | None:
    if case.spec.layout is not Layout.TUPLES or case.indices is None:
        return None
    shape = (*case.indices.shape[:-1], case.data.ndim + 1 + draws.below(2))
    return replace(case, indices=np.zeros(shape, case.indices.dtype))


def _batch_mismatch(draws: Draws, case: Case) -> Case | None:
    if case.spec.layout is not Layout.SEQUENCE or case.indices is None:
        return None
    return replace(case, indices=_lengthen(case.indices, 0) if case.indices.size else np.zeros(1, np.int64))


def _unknown_word(draws: Draws, case: Case) -> Case | None:
    words = [row for row in case.spec.attributes if row.kind is Kind.WORD and row.choices]
    if not words:
        return None
    return replace(case, attributes={**case.attributes, draws.pick(words).name: "no_such_word"})


def _type_mismatch(draws: Draws, case: Case) -> Case | None:
    name = "i32" if case.element_type.name != "i32" else "i64"
    port = case.spec.port(Role.UPDATES)
    if port is None or name not in port.element_types:
        return None
    return replace(case, updates=np.zeros(case.updates.shape, ELEMENT_TYPES[name].dtype_name))


def _index_type(draws: Draws, case: Case) -> Case | None:
    if case.indices is None:
        return None
    return replace(case, indices=case.indices.astype(np.float32), index_type=ELEMENT_TYPES["f32"])


def _rank_too_small(draws: Draws, case: Case) -> Case | None:
    port = case.spec.port(Role.DATA)
    if port is None or port.min_rank < 1 or not case.data.size:
        return None
    return replace(case, data=case.data.reshape(-1)[:1].reshape(()))


def _with_index(case: Case, position: int, value: int) -> Case | None:
    """Return the case with another index at a flat position; None if the index type cannot hold it."""
    assert case.indices is not None
    if clip_to_type(case.index_type, value, value) != (value, value):
        return None
    indices = case.indices.reshape(-1).copy()
    indices[position] = value
    return replace(case, indices=indices.reshape(case.indices.shape))


def _lengthen(array: Array, axis: int, count: int = 1) -> Array:
    """Make an array longer along an axis by repeating its elements."""
    shape = list(array.shape)
    shape[axis] += count
    if array.size:
        return np.resize(array, shape)
    return np.full(shape, "" if array.dtype == object else 0, array.dtype)


WAYS: Mapping[str, Way] = {
    "attribute-value": Way(_unknown_word, "An attribute has one of its listed values."),
    "axis-out-of-range": Way(_axis_out_of_range, "The axis is in [-rank(data), rank(data) - 1]."),
    "axis-shape": Way(_axis_shape, "The axis is a single number of shape [] or [1]."),
    "batch-mismatch": Way(_batch_mismatch, "There is one index for each element of the batch."),
    "element-type": Way(_element_type, "Data has one of the listed element types."),
    "index-out-of-range": Way(
        _index_out_of_range,
        "Each index is within the dimension of data that it refers to.",
        is_of_values=True,
    ),
    "index-type": Way(_index_type, "Indices have one of the listed integer types."),
    "indices-longer-on-axis": Way(_indices_longer_on_axis, "Indices are no longer than data along the axis."),
    "indices-longer-than-data": Way(
        _indices_longer_off_axis, "Indices are no longer than data in every dimension but the axis."
    ),
    "negative-index": Way(_negative_index, "Indices are not negative.", is_of_values=True),
    "rank-too-small": Way(_rank_too_small, "Data has at least one dimension."),
    "ranks-differ": Way(_ranks_differ, "Indices and updates have the rank of data."),
    "tuple-too-long": Way(_tuple_too_long, "A tuple has no more coordinates than data has dimensions."),
    "type-mismatch": Way(_type_mismatch, "Updates have the element type of data."),
    "updates-shape-mismatch": Way(
        _updates_shape_mismatch, "Updates have the shape that follows from data and indices."
    ),
}
"""The ways to break a case, by the name of the rule that each breaks."""


def specification_of(case: Case) -> str:
    """Return the operator's summary, or the rule that the case breaks, and the URL of the specification."""
    return f"{WAYS[case.broken].rule if case.broken else case.spec.summary} {case.spec.url}"
