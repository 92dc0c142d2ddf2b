"""Random cases of one operator: shapes, types, attributes and indices, legal or with one rule broken."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.errors import UsageError
from ir_scatter.inputs.broken import WAYS, break_case
from ir_scatter.inputs.case import Case
from ir_scatter.inputs.constraints import Use, by_lane, lanes_of
from ir_scatter.inputs.numbers import clip_to_type, draw
from ir_scatter.inputs.provenance import Terms
from ir_scatter.inputs.solve import Solver
from ir_scatter.ops.spec import Attribute, IndexRange, IndicesLimit, Kind, Layout, OpSpec, Reduction, Role

_LARGEST_RANK, _LARGEST_DIM = 4, 5
_EMPTY, _LONGER, _ONE_ELEMENT, _LEFT_OUT = 0.04, 0.3, 0.3, 0.3
"""How often a dimension is 0, indices are longer than data on the axis, one element stands for 0-D
updates, and optional indices are left out."""

_NEGATIVE, _WRITTEN = 0.3, 0.5
"""How often an axis is negative, and a default is written."""

BROKEN = tuple(WAYS)
"""The rules that a case can break on purpose."""

_TRIES = 200
_MANY = 1000
_WIDEST = (1 - 2**31, 2**31 - 1)


class CaseShapes(NamedTuple):
    """Shapes of one case; indices is None where they are left out."""

    data: tuple[int, ...]
    indices: tuple[int, ...] | None
    updates: tuple[int, ...]
    axis: int | None


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
    shapes = draw_shapes(random, spec, is_unique=is_unique, largest_index=largest)
    attributes = dict(word) | _draw_attributes(random, spec, set(word))
    axis = shapes.axis
    if axis is not None and random.random() < _NEGATIVE:
        axis -= len(shapes.data)
    data, updates = draw(random, type, shapes.data), draw(random, type, shapes.updates)
    blank = None if shapes.indices is None else np.zeros(shapes.indices, np.int64)
    case = Case(spec, data, blank, updates, axis, attributes, type, of_indices, chosen)
    indices = None if blank is None else draw_indices(random, case, blank.shape, is_unique=is_unique)
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


def draw_indices(
    random: np.random.Generator,
    case: Case,
    shape: Sequence[int],
    *,
    is_unique: bool,
    wraps: bool = True,
    number: int | None = None,
) -> Array:
    """Draw legal indices for a case whose other parts are there.

    Args:
        random: where randomness comes from.
        case: what the indices belong to.
        shape: of the indices.
        is_unique: whether targets must differ.
        wraps: whether they may count from the end, if the document allows that.
        number: of the draw: three in a row hold all that the operator allows; None if that is no matter.
    """
    layout, type = case.spec.layout, dtype(case.index_type)
    found = np.zeros(shape, np.int64)
    sizes = [max(case.data.shape[case.axis_from_front], 1) if s is None else s for s in case.limits]
    if not found.size or not sizes:
        return found.astype(type)
    lanes, (low, high) = (
        lanes_of(layout, case.axis_from_front, found),
        clip_to_type(case.index_type, *_WIDEST),
    )
    wraps = wraps and case.spec.index_range is IndexRange.WRAPPING
    flat = _flat_targets(random, lanes, [min(size, high + 1) for size in sizes], is_unique=is_unique)
    numbers, counts = np.stack(np.unravel_index(flat, sizes), axis=-1), np.array(sizes, np.int64)
    if number is None:
        if wraps:
            is_negative = (numbers - counts >= low) & (random.random(numbers.shape) < _NEGATIVE)
            numbers = np.where(is_negative, numbers - counts, numbers)
        return numbers.reshape(shape).astype(type)
    may_repeat = not is_unique and case.reduction is not Reduction.NONE
    terms = np.arange(1, found.size + 1).reshape(numbers.shape)
    use = Use(
        "", terms, numbers, np.zeros_like(counts), counts - 1, lanes, found.shape, is_legal=True,
        is_unique=is_unique, is_scatter=True, wraps=wraps, may_repeat=may_repeat,
    )  # fmt: skip
    ends = (np.full(found.size, end) for end in (low, high))
    solver = Solver(random, Terms(numbers.reshape(-1)), [use], *ends, wraps=True)
    solver.try_features(use, number)
    return solver.values.reshape(shape).astype(type)


def _flat_targets(
    random: np.random.Generator, lanes: Array, sizes: Sequence[int], *, is_unique: bool
) -> Array:
    """Return a number for each target; those of a lane differ if they are to and can."""
    count, room = int(lanes.max()) + 1, prod(sizes)
    if not is_unique or len(lanes) > count * room:
        return random.integers(0, room, len(lanes))
    if count == 1:
        return random.choice(room, len(lanes), replace=False)
    flat = np.empty(len(lanes), np.int64)
    flat[by_lane(lanes, np.arange(len(lanes)))] = random.random((count, room)).argsort()[
        :, : len(lanes) // count
    ]
    return flat


def draw_shapes(
    random: np.random.Generator, spec: OpSpec, *, is_unique: bool, largest_index: int
) -> CaseShapes:
    """Return legal shapes and an axis, counted from 0.

    Args:
        random: where randomness comes from.
        spec: the row.
        is_unique: whether there must be room for targets that differ.
        largest_index: what the type of indices can hold.
    """
    least = max([port.min_rank for port in spec.ports if port.role is Role.DATA], default=0)
    rank = int(random.integers(max(least, 1), _LARGEST_RANK + 1))
    data = tuple(min(dim, largest_index + 1) for dim in _dims(random, rank))
    axis = None
    if spec.axis is not None:
        axis = int(random.choice([n for n in range(len(data)) if n not in spec.axis.excluded]))
    if spec.layout is Layout.SLICES:
        return _slices(random, data, axis or 0, is_unique=is_unique)
    if spec.layout is Layout.ELEMENTS:
        return _elements(random, spec, data, axis or 0, is_unique=is_unique)
    if spec.layout is Layout.TUPLES:
        return _tuples(random, spec, data, is_unique=is_unique)
    return _sequence(random, spec, data, axis or 0)


def _slices(random: np.random.Generator, data: tuple[int, ...], axis: int, *, is_unique: bool) -> CaseShapes:
    indices = _fewer(_dims(random, int(random.integers(0, 3))), data[axis], is_unique=is_unique)
    return CaseShapes(data, indices, (*data[:axis], *indices, *data[axis + 1 :]), axis)


def _elements(
    random: np.random.Generator, spec: OpSpec, data: tuple[int, ...], axis: int, *, is_unique: bool
) -> CaseShapes:
    indices = [int(random.integers(min(dim, 1), dim + 1)) for dim in data]
    may_be_longer = spec.indices_limit is not IndicesLimit.EVERYWHERE and not is_unique and data[axis] > 0
    if may_be_longer and random.random() < _LONGER:
        indices[axis] = data[axis] + int(random.integers(1, 4))
    return CaseShapes(data, tuple(indices), tuple(indices), axis)


def _tuples(
    random: np.random.Generator, spec: OpSpec, data: tuple[int, ...], *, is_unique: bool
) -> CaseShapes:
    depth = int(random.integers(1, len(data) + 1))
    room = int(np.prod(data[:depth]))
    front = _fewer(_dims(random, int(random.integers(0, 3))), room, is_unique=is_unique)
    updates = (*front, *data[depth:])
    if spec.scalar_updates and not updates and random.random() < _ONE_ELEMENT:
        updates = (1,) * int(random.integers(1, 3))
    return CaseShapes(data, (*front, depth), updates, None)


def _sequence(random: np.random.Generator, spec: OpSpec, data: tuple[int, ...], axis: int) -> CaseShapes:
    data = (*data[:axis], max(data[axis], 1), *data[axis + 1 :])
    new = int(random.integers(1, data[axis] + 1))
    port = spec.port(Role.INDICES)
    is_left_out = port is not None and port.is_optional and random.random() < _LEFT_OUT
    indices = None if is_left_out else data[:1]
    return CaseShapes(data, indices, (*data[:axis], new, *data[axis + 1 :]), axis)


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
