"""Random cases of one operator: shapes, types, attributes and indices, legal or with one rule broken."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.errors import UsageError
from ir_scatter.inputs.constraints import by_lane, lanes_of
from ir_scatter.inputs.numbers import clip_to_type, random_array
from ir_scatter.ops.spec import Attribute, IndexRange, IndicesLimit, Kind, Layout, OpSpec, Reduction, Role
from tests.unit.broken_case import WAYS, break_case
from tests.unit.case import Case

_LARGEST_RANK, _LARGEST_DIM = 4, 5
_EMPTY, _LONGER, _ONE_ELEMENT, _LEFT_OUT = 0.04, 0.3, 0.3, 0.3
"""How often a dimension is 0, indices are longer than data on the axis, one element stands for 0-D
updates, and optional indices are left out."""

_NEGATIVE, _WRITTEN = 0.3, 0.5
"""How often an axis is negative, and a default is written."""

_Shape: TypeAlias = tuple[int, ...]

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

    Raises:
        UsageError: the row lacks the reduction or a type, or no case of it breaks the rule.
    """
    random = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    if broken is not None and broken not in WAYS:
        raise UsageError(f"broken is {broken!r}, expected one of {', '.join(BROKEN)}")
    for _ in range(_TRIES):
        case = _legal_case(random, spec, reduction, element_type, index_type, may_repeat=may_repeat)
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
) -> Case:
    chosen, word = _draw_reduction(random, spec, reduction)
    data_types = _types(spec, Role.DATA, spec.reduction_excludes.get(chosen, frozenset()))
    type = _draw_type(random, data_types, element_type, f"{spec.key} with reduction {chosen}")
    of_indices = _draw_type(random, _types(spec, Role.INDICES), index_type, f"indices of {spec.key}")
    is_unique = chosen is Reduction.NONE and not may_repeat
    _, largest = clip_to_type(of_indices, 0, _MANY)
    of_data, shape, of_updates, axis = _draw_shapes(random, spec, is_unique=is_unique, largest_index=largest)
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
    random: np.random.Generator, spec: OpSpec, *, is_unique: bool, largest_index: int
) -> tuple[_Shape, _Shape | None, _Shape, int | None]:
    """Return legal shapes of data, indices (None where they are left out) and updates, and an axis."""
    least = max([port.min_rank for port in spec.ports if port.role is Role.DATA], default=0)
    rank = int(random.integers(max(least, 1), _LARGEST_RANK + 1))
    data = tuple(min(dim, largest_index + 1) for dim in _dims(random, rank))
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
        depth = int(random.integers(1, rank + 1))
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
