"""Cases that break one rule on purpose."""

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

_BEHIND = 3
"""How many elements an axis may be beyond its range."""
_FAR = (0, 1, 2, 63, 1 << 12, 1 << 18, 1 << 26)
"""How many elements an index is beyond its range: a write that is far away ends a process sooner."""


class Way(NamedTuple):
    """How a case is made to break a rule, None if it cannot be, and the rule in a sentence.

    What is of values is seen when a model runs, if at all, and by other code for other types and ranks.
    """

    broken: Callable[[Draws, Case], Case | None]
    rule: str
    is_of_values: bool = False


def break_case(draws: Draws, case: Case, way: str) -> Case | None:
    """Return a case that breaks one rule; None if this one cannot be made to."""
    found = WAYS[way].broken(draws, case)
    return None if found is None else replace(found, broken=way, decisions=tuple(draws.made))


def _index_out_of_range(draws: Draws, case: Case) -> Case | None:
    place, size = _draw_index(draws, case)
    if size is None:
        return None
    is_below = draws.chance(0.5) and case.index_type.kind == "signed"
    beyond = draws.pick(_FAR)
    return _with_index(case, place, -size - 1 - beyond if is_below else size + beyond)


def _negative_index(draws: Draws, case: Case) -> Case | None:
    if case.spec.index_range is IndexRange.WRAPPING or case.index_type.kind != "signed":
        return None
    place, size = _draw_index(draws, case)
    return _with_index(case, place, -1 - draws.below(size)) if size else None


def _draw_index(draws: Draws, case: Case) -> tuple[int, int | None]:
    """Return the place of an index, and the size that it counts on; None where none is illegal."""
    if case.indices is None or not case.indices.size or not case.limits:
        return 0, None
    place = draws.below(case.indices.size)
    return place, case.limits[place % len(case.limits)]


def _updates_shape(draws: Draws, case: Case) -> Case | None:
    if case.updates.ndim == 0 or case.spec.layout is Layout.SEQUENCE:
        return None
    if case.spec.scalar_updates and case.updates.size == 1 and case.updates.shape == (1,) * case.updates.ndim:
        return None
    return replace(case, updates=_longer(case.updates, draws.below(case.updates.ndim)))


def _axis_out_of_range(draws: Draws, case: Case) -> Case | None:
    if case.axis is None:
        return None
    rank, is_below, beyond = case.data.ndim, draws.chance(0.5), draws.below(_BEHIND)
    return replace(case, axis=-rank - 1 - beyond if is_below else rank + beyond)


def _axis_shape(draws: Draws, case: Case) -> Case | None:
    if case.spec.port(Role.AXIS) is None:
        return None
    return replace(case, axis_shape=draws.pick(((0,), (2,))))


def _element_type(draws: Draws, case: Case) -> Case | None:
    port = case.spec.port(Role.DATA)
    others = [
        row for row in ELEMENT_TYPES.values() if port is not None and row.name not in port.element_types
    ]
    others = [row for row in others if dtype(row) is not None and row.kind != "boolean"]  # taken as meant
    if not others:
        return None
    row = draws.pick(others)
    is_text = row.kind == "string"
    data, updates = (
        np.full(array.shape, "" if is_text else 0, dtype(row)) for array in (case.data, case.updates)
    )
    constants = case.constants - (
        {Role.DATA, Role.UPDATES} if is_text else set()
    )  # an IR is not written with any
    return replace(case, data=data, updates=updates, element_type=row, constants=constants)


def _ranks_differ(draws: Draws, case: Case) -> Case | None:
    if case.spec.layout is not Layout.ELEMENTS or case.indices is None:
        return None
    return replace(case, indices=case.indices[None], updates=case.updates[None])


def _longer_off_axis(draws: Draws, case: Case) -> Case | None:
    return _longer_indices(draws, case, is_on_axis=False)


def _longer_on_axis(draws: Draws, case: Case) -> Case | None:
    is_legal = case.spec.indices_limit is not IndicesLimit.EVERYWHERE
    return None if is_legal else _longer_indices(draws, case, is_on_axis=True)


def _longer_indices(draws: Draws, case: Case, *, is_on_axis: bool) -> Case | None:
    if case.spec.indices_limit is IndicesLimit.NOWHERE or case.indices is None:
        return None
    axes = [axis for axis in range(case.data.ndim) if (axis == case.axis_from_front) is is_on_axis]
    if not axes or not case.indices.size:
        return None
    axis = draws.pick(axes)
    missing = case.data.shape[axis] + 1 - case.indices.shape[axis]
    indices, updates = (_longer(array, axis, missing) for array in (case.indices, case.updates))
    return replace(case, indices=indices, updates=updates)


def _long_tuple(draws: Draws, case: Case) -> Case | None:
    if case.spec.layout is not Layout.TUPLES or case.indices is None:
        return None
    shape = (*case.indices.shape[:-1], case.data.ndim + 1 + draws.below(2))
    return replace(case, indices=np.zeros(shape, case.indices.dtype))


def _batch(draws: Draws, case: Case) -> Case | None:
    if case.spec.layout is not Layout.SEQUENCE or case.indices is None:
        return None
    return replace(case, indices=_longer(case.indices, 0) if case.indices.size else np.zeros(1, np.int64))


def _word(draws: Draws, case: Case) -> Case | None:
    words = [row for row in case.spec.attributes if row.kind is Kind.WORD and row.choices]
    if not words:
        return None
    return replace(case, attributes={**case.attributes, draws.pick(words).name: "no_such_word"})


def _other_type(draws: Draws, case: Case) -> Case | None:
    name = "i32" if case.element_type.name != "i32" else "i64"
    port = case.spec.port(Role.UPDATES)
    if port is None or name not in port.element_types:
        return None
    return replace(case, updates=np.zeros(case.updates.shape, ELEMENT_TYPES[name].dtype_name))


def _index_type(draws: Draws, case: Case) -> Case | None:
    if case.indices is None:
        return None
    return replace(case, indices=case.indices.astype(np.float32), index_type=ELEMENT_TYPES["f32"])


def _low_rank(draws: Draws, case: Case) -> Case | None:
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


WAYS: Mapping[str, Way] = {
    "attribute-value": Way(_word, "An attribute has one of the words that are listed."),
    "axis-out-of-range": Way(_axis_out_of_range, "The axis is in [-rank(data), rank(data) - 1]."),
    "axis-shape": Way(_axis_shape, "The axis is one number, of shape [] or [1]."),
    "batch-mismatch": Way(_batch, "There is one index for each element of the batch."),
    "element-type": Way(_element_type, "Data has an element type that is listed."),
    "index-out-of-range": Way(
        _index_out_of_range, "Each index is within the size of data that it counts on.", is_of_values=True
    ),
    "index-type": Way(_index_type, "Indices are whole numbers of a type that is listed."),
    "indices-longer-on-axis": Way(_longer_on_axis, "Indices are no longer than data on the axis."),
    "indices-longer-than-data": Way(_longer_off_axis, "Indices are no longer than data off the axis."),
    "negative-index": Way(_negative_index, "Indices are not negative.", is_of_values=True),
    "rank-too-small": Way(_low_rank, "Data has at least one dimension."),
    "ranks-differ": Way(_ranks_differ, "Indices and updates have the rank of data."),
    "tuple-too-long": Way(_long_tuple, "A tuple has no more coordinates than data has dimensions."),
    "type-mismatch": Way(_other_type, "Updates have the element type of data."),
    "updates-shape-mismatch": Way(
        _updates_shape, "Updates have the shape that follows from data and indices."
    ),
}
"""By the rule that each breaks."""


def specification_of(case: Case) -> str:
    """Return the summary of the operator, or the rule that is broken, and the URL of the specification."""
    return f"{WAYS[case.broken].rule if case.broken else case.spec.summary} {case.spec.url}"
