"""Random cases of one operator: shapes, types, attributes and indices, legal or with one rule broken."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, from_dtype
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import ONNX
from ir_scatter.formats.base import IR, ONNX_FORMAT, OneInput, OneNode
from ir_scatter.inputs.constraints import by_lane, lanes_of
from ir_scatter.inputs.numbers import clip_to_type, random_array
from ir_scatter.ops.names import OperatorName
from ir_scatter.ops.spec import (
    NEGATIVE_INDEX,
    Attribute,
    IndexRange,
    IndicesLimit,
    Kind,
    Layout,
    OpSpec,
    Reduction,
    Role,
)
from tests.formats.ir_files import write_one

_LARGEST_RANK, _LARGEST_DIM = 4, 5
_EMPTY, _LONGER, _ONE_ELEMENT, _LEFT_OUT = 0.04, 0.3, 0.3, 0.3
"""How often a dimension is 0, indices are longer than data on the axis, one element stands for 0-D
updates, and optional indices are left out."""

_NEGATIVE, _WRITTEN, _DEEP = 0.3, 0.5, 0.2
"""How often an axis is negative, a default is written, and a rank may be above the usual."""

_Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Inputs and attributes for one operator.

    Attributes:
        spec: the row.
        data: the input of role data.
        indices: None where they are optional and left out.
        updates: the input of role updates.
        axis: as an attribute or input says it, maybe negative; None where the operator has none.
        attributes: those that are written, by their documented names, without the axis.
        element_type: that of data and updates.
        index_type: that of indices.
        reduction: how updates meet old values.
        broken: the rule that it breaks on purpose; None if it is legal.
    """

    spec: OpSpec
    data: Array
    indices: Array | None
    updates: Array
    axis: int | None
    attributes: Mapping[str, Any]
    element_type: ElementType
    index_type: ElementType
    reduction: Reduction
    broken: str | None = None

    @property
    def operator(self) -> OperatorName:
        """Return type and version."""
        return cast(OperatorName, str(self.spec.key))

    @property
    def axis_from_front(self) -> int:
        """Return the axis counted from 0; 0 where there is none."""
        return 0 if self.axis is None else self.axis % max(self.data.ndim, 1)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `ir_scatter.evaluate` but the operator."""
        given = {Role.DATA: self.data, Role.INDICES: self.indices, Role.UPDATES: self.updates}
        found: dict[str, Any] = {role.value: array for role, array in given.items()}
        if self.axis is not None:
            found[Role.AXIS.value] = self.axis
        return {**found, **self.attributes}

    @property
    def limits(self) -> list[int | None]:
        """Return the sizes that indices count on, one for each column; [None] where any is legal."""
        shape, layout = self.data.shape, self.spec.layout
        if layout is Layout.TUPLES:
            return [] if self.indices is None else list(shape[: self.indices.shape[-1]])
        size = shape[self.axis_from_front]
        if layout is not Layout.SEQUENCE:
            return [size]
        words = [row for row in self.spec.attributes if row.kind is Kind.WORD]
        is_linear = all(self.attributes.get(row.name, row.default) == row.default for row in words)
        return [size - self.updates.shape[self.axis_from_front] + 1 if is_linear else None]


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

BROKEN = tuple(WAYS)
"""The rules that a case can break on purpose."""

_TRIES = 200
_MANY = 1000
_WIDEST = (1 - 2**31, 2**31 - 1)


def random_case(
    spec: OpSpec,
    seed: "int | np.random.Generator" = 0,
    *,
    reduction: Reduction | None = None,
    element_type: str | None = None,
    index_type: str | None = None,
    broken: str | None = None,
    may_repeat: bool = False,
    is_wild: bool = False,
) -> Case:
    """Draw a case of an operator; what is not given is drawn too.

    Shapes are small: rank 1 to 4, dimensions 0 to 5, indices of any rank that the document allows.
    Indices of operators that count from the end are negative now and then. With reduction none the
    targets differ, unless `may_repeat`; with another one they may repeat.

    Args:
        spec: the row of the operator.
        seed: for the random numbers, or where they come from.
        reduction: one that the row has.
        element_type: of data and updates, "f32".
        index_type: of indices, "i64".
        broken: a rule to break, one of `BROKEN`; None for a legal case.
        may_repeat: whether targets may repeat with reduction none.
        is_wild: whether ranks may go up to 8, and tuples have no coordinates.

    Raises:
        UsageError: the row lacks the reduction or a type, or no case of it breaks the rule.
    """
    random = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    if broken is not None and broken not in WAYS:
        raise UsageError(f"broken is {broken!r}, expected one of {', '.join(BROKEN)}")
    for _ in range(_TRIES):
        case = _legal_case(
            random, spec, reduction, element_type, index_type, may_repeat=may_repeat, is_wild=is_wild
        )
        if broken is None:
            return case
        found = break_case(random, case, broken)
        if found is not None:
            return found
    raise UsageError(f"no case of {spec.key} breaks {broken}")


def _legal_case(
    random: np.random.Generator,
    spec: OpSpec,
    reduction: Reduction | None,
    element_type: str | None,
    index_type: str | None,
    *,
    may_repeat: bool,
    is_wild: bool,
) -> Case:
    chosen, word = _draw_reduction(random, spec, reduction)
    data_types = _types(spec, Role.DATA, spec.reduction_excludes.get(chosen, frozenset()))
    type = _draw_type(random, data_types, element_type, f"{spec.key} with reduction {chosen}")
    of_indices = _draw_type(random, _types(spec, Role.INDICES), index_type, f"indices of {spec.key}")
    is_unique = chosen is Reduction.NONE and not may_repeat
    _, largest = clip_to_type(of_indices, 0, _MANY)
    of_data, shape, of_updates, axis = _draw_shapes(
        random, spec, is_unique=is_unique, largest_index=largest, is_wild=is_wild
    )
    attributes = dict(word) | _draw_attributes(random, spec, set(word))
    if axis is not None and random.random() < _NEGATIVE:
        axis -= len(of_data)
    data, updates = random_array(random, type, of_data), random_array(random, type, of_updates)
    blank = None if shape is None else np.zeros(shape, np.int64)
    case = Case(spec, data, blank, updates, axis, attributes, type, of_indices, chosen)
    indices = None if blank is None else _draw_indices(random, case, blank.shape, is_unique=is_unique)
    return replace(case, indices=indices)


def _draw_reduction(
    random: np.random.Generator, spec: OpSpec, wanted: Reduction | None
) -> tuple[Reduction, dict[str, str]]:
    """Return a reduction and the attribute that says so, which may be left out if it is the default."""
    row = spec.attribute("reduction")
    known = dict(spec.reductions) if row is not None else {}
    fitting = [word for word, found in known.items() if wanted is None or found is wanted]
    if not fitting:
        if wanted not in {None, Reduction.NONE}:
            raise UsageError(f"reduction is {wanted}, which {spec.key} does not have")
        return Reduction.NONE, {}
    word = str(random.choice(fitting))
    assert row is not None
    is_written = word != row.default or random.random() < _WRITTEN
    return known[word], {row.name: word} if is_written else {}


def _draw_attributes(random: np.random.Generator, spec: OpSpec, done: set[str]) -> dict[str, Any]:
    """Return the attributes but axis and reduction; a default may be left out."""
    axis = None if spec.axis is None else spec.axis.attribute
    rest = [row for row in spec.attributes if row.name not in {*done, axis, "reduction"}]
    return {row.name: _draw_value(random, row) for row in rest if random.random() < _WRITTEN}


def _draw_value(random: np.random.Generator, row: Attribute) -> Any:
    if row.kind is Kind.BOOLEAN:
        return bool(random.integers(2))
    return str(random.choice(row.choices)) if row.choices else row.default


def _types(spec: OpSpec, role: Role, excluded: frozenset[str] = frozenset()) -> list[ElementType]:
    """Return the element types of a port that NumPy has a type for."""
    port = spec.port(role)
    allowed = frozenset() if port is None else port.element_types - excluded
    return [row for name, row in ELEMENT_TYPES.items() if name in allowed and dtype(row) is not None]


def _draw_type(
    random: np.random.Generator, types: Sequence[ElementType], wanted: str | None, what: str
) -> ElementType:
    fitting = [row for row in types if wanted is None or row.name == wanted]
    if not fitting:
        raise UsageError(f"the type of {what} is {wanted}, expected {', '.join(row.name for row in types)}")
    return fitting[int(random.integers(len(fitting)))]


def _draw_indices(random: np.random.Generator, case: Case, shape: Sequence[int], *, is_unique: bool) -> Array:
    """Draw legal indices for a case whose other parts are there."""
    layout, type, found = case.spec.layout, dtype(case.index_type), np.zeros(shape, np.int64)
    low, high = clip_to_type(case.index_type, *_WIDEST)
    limits = [max(case.data.shape[case.axis_from_front], 1) if s is None else s for s in case.limits]
    if not found.size or not limits:
        return found.astype(type)
    sizes = np.minimum(limits, high + 1)
    lanes, room = lanes_of(layout, case.axis_from_front, found), int(np.prod(sizes))
    count = int(lanes.max()) + 1
    if not is_unique or len(lanes) > count * room:
        flat = random.integers(0, room, len(lanes))
    else:
        flat = np.empty(len(lanes), np.int64)
        chosen = random.random((count, room)).argsort()[:, : len(lanes) // count]
        flat[by_lane(lanes, np.arange(len(lanes)))] = chosen
    numbers = np.stack(np.unravel_index(flat, sizes.tolist()), axis=-1)
    if case.spec.index_range is IndexRange.WRAPPING:
        is_negative = (numbers - limits >= low) & (random.random(numbers.shape) < _NEGATIVE)
        numbers = np.where(is_negative, numbers - limits, numbers)
    return numbers.reshape(shape).astype(type)


def _draw_shapes(
    random: np.random.Generator, spec: OpSpec, *, is_unique: bool, largest_index: int, is_wild: bool
) -> tuple[_Shape, _Shape | None, _Shape, int | None]:
    """Return legal shapes of data, indices (None where they are left out) and updates, and an axis."""
    least = max([port.min_rank for port in spec.ports if port.role is Role.DATA], default=0)
    is_deep = is_wild and random.random() < _DEEP
    rank = int(random.integers(max(least, 1), (2 if is_deep else 1) * _LARGEST_RANK + 1))
    largest = 2 if rank > _LARGEST_RANK else largest_index + 1
    data = tuple(min(dim, largest) for dim in _dims(random, rank))
    axes = [n for n in range(rank) if spec.axis is not None and n not in spec.axis.excluded]
    axis = int(random.choice(axes)) if axes else 0
    before, size, behind = data[:axis], data[axis], data[axis + 1 :]
    if spec.layout is Layout.SLICES:
        front = _fewer(_dims(random, int(random.integers(0, 3))), size, is_unique=is_unique)
        return data, front, (*before, *front, *behind), axis
    if spec.layout is Layout.ELEMENTS:
        indices = [int(random.integers(min(dim, 1), dim + 1)) for dim in data]
        may_be_longer = spec.indices_limit is not IndicesLimit.EVERYWHERE and not is_unique and size > 0
        if may_be_longer and random.random() < _LONGER:
            indices[axis] = size + int(random.integers(1, 4))
        return data, tuple(indices), tuple(indices), axis
    if spec.layout is Layout.TUPLES:
        depth = int(random.integers(0 if is_wild else 1, rank + 1))
        front = _fewer(_dims(random, int(random.integers(0, 3))), prod(data[:depth]), is_unique=is_unique)
        updates = (*front, *data[depth:])
        if spec.scalar_updates and not updates and random.random() < _ONE_ELEMENT:
            updates = (1,) * int(random.integers(1, 3))
        return data, (*front, depth), updates, None
    size = max(size, 1)
    port, data = spec.port(Role.INDICES), (*before, size, *behind)
    is_left_out = port is not None and port.is_optional and random.random() < _LEFT_OUT
    return (
        data,
        None if is_left_out else data[:1],
        (*before, int(random.integers(1, size + 1)), *behind),
        axis,
    )


def _dims(random: np.random.Generator, rank: int) -> tuple[int, ...]:
    dims = random.integers(1, _LARGEST_DIM + 1, rank)
    return tuple(np.where(random.random(rank) < _EMPTY, 0, dims).tolist())


def _fewer(shape: Sequence[int], room: int, *, is_unique: bool) -> tuple[int, ...]:
    """Return a shape of no more positions than there is room for, if it must be so."""
    found = list(shape)
    if room == 0:
        return (0, *found[1:])
    for number in range(len(found)):
        others = int(np.prod(found[:number] + found[number + 1 :]))
        if is_unique and others * found[number] > room:
            found[number] = max(room // max(others, 1), 1)
    is_crowded = is_unique and int(np.prod(found)) > room
    return (room, *(1 for _ in found[1:])) if is_crowded else tuple(found)


def write(case: Case, folder: Path, *, is_constant: bool = False) -> Path:
    """Write a model; its axis is a constant, and so is everything else on request."""
    spec, attributes, inputs = case.spec, dict(case.attributes), list[OneInput | None]()
    known = {
        Role.DATA: (case.data, case.element_type), Role.UPDATES: (case.updates, case.element_type),
        Role.INDICES: (case.indices, case.index_type), Role.AXIS: (np.array(case.axis), case.index_type),
    }  # fmt: skip
    for port in spec.ports:
        array, type = known[port.role]
        fixed = is_constant or port.role is Role.AXIS
        if array is not None:
            type = from_dtype(array.dtype) or type  # a broken case may have another one
        inputs.append(None if array is None else OneInput(port.role.value, type, array, is_constant=fixed))
    if spec.axis is not None and spec.axis.attribute is not None:
        attributes[spec.axis.attribute] = case.axis
    node = OneNode(spec.key.type, spec.opsets[-1], attributes, inputs, case.element_type, case.data.shape)
    return write_one(ONNX_FORMAT if spec.key.domain == ONNX else IR, node, folder)
