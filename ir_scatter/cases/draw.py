"""Draws random legal cases (inputs and attributes) of one operator version.

A case follows from a sequence of decisions: integers below a bound, where 0 is the simplest. Recorded
decisions can be replayed, some of them replaced by simpler ones: every sequence of decisions gives a legal
case. Cases are shrunk this way.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isqrt, prod
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ir_scatter.cases.case import LARGEST_DIM, LARGEST_RANK, Case, Limits
from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.model import ONNX
from ir_scatter.inputs.constraints import by_lane
from ir_scatter.inputs.numbers import clip_to_type, random_array, with_edges
from ir_scatter.ops import index_values
from ir_scatter.ops.spec import Attribute, IndexRange, IndicesLimit, Kind, Layout, OpSpec, Reduction, Role

_T = TypeVar("_T")
_Shape: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = tuple[_Shape, _Shape | None, _Shape]

_EMPTY_DIM, _LONGER_INDICES, _ONE_ELEMENT, _LEFT_OUT = 0.04, 0.3, 0.3, 0.3
"""Probabilities that a dimension is 0, that indices are longer than data along the axis, that a one-element
tensor replaces 0-D updates, and that optional indices are omitted."""

_NEGATIVE, _EXPLICIT, _HIGH_RANK, _REPEATED = 0.3, 0.5, 0.2, 0.3
"""Probabilities that an axis or indices may be negative, that a default is written explicitly, that a rank
may exceed `LARGEST_RANK`, and that targets may repeat without a reduction.
"""

_DIM_OF_ONE, _CONSTANT, _CONSTANT_AXIS, _EDGES = 0.25, 0.3, 0.9, 0.3
"""Probabilities that a dimension is 1, that an input is constant, that the axis is constant, and that half of
the elements are edge values of their type."""

_WRAPPED = 0.5
"""Share of negative indices among all, where the specification allows negative ones."""

_WIDEST = (1 - 2**31, 2**31 - 1)
"""The widest range of indices that is drawn."""
_LARGEST_INDEX = 1000
"""Upper bound of drawn indices, and so of dimensions; narrow index types lower it."""
_SEEDS = 1 << 32
"""The number of seeds for the values of a case."""
_MANY_INDICES, _MANY_UPDATES, _CROWDED_DIM = 4096, 1 << 18, 3
"""Limits for large data: number of indices, number of updates, and distinct index values per axis. The
last one is small so that many updates share a target.
"""

_IN_LOOP, _FEW_ITERATIONS = 0.12, 3
"""Probability that a node is inside a loop, if allowed, and the largest number of iterations."""

_SIMPLE_TYPES = ("f32", "i64", "i32")
_USUAL_TYPES = frozenset({*_SIMPLE_TYPES, "f16", "bf16", "f64", "u8", "i8", "boolean"})
_RARE_TYPE = 0.12
"""Probability that an element type is not one of `_USUAL_TYPES`."""


class Draws:
    """Makes and records decisions: first the replayed ones, then random ones.

    Without a seed, every decision after the replayed ones is the simplest.
    """

    def __init__(self, seed: int | None = None, replayed: Sequence[int] = ()) -> None:
        self.decisions: list[int] = []
        self._random = None if seed is None else random.Random(seed)
        self._replayed = replayed

    def below(self, bound: int) -> int:
        """Return an integer from 0 to bound - 1; 0 is the simplest."""
        return self._decide(bound - 1, lambda drawn: int(drawn * bound))

    def chance(self, probability: float) -> bool:
        """Return True with the given probability; False is the simplest."""
        return self._decide(1, lambda drawn: drawn < probability) > 0

    def pick(self, options: Sequence[_T]) -> _T:
        """Return one of the options; the first is the simplest."""
        return options[self.below(len(options))]

    def _decide(self, largest: int, of_drawn: Callable[[float], int]) -> int:
        number = len(self.decisions)
        if number < len(self._replayed):
            decision = min(self._replayed[number], largest)
        else:
            decision = 0 if self._random is None else int(of_drawn(self._random.random()))
        self.decisions.append(decision)
        return decision


@dataclass(frozen=True, slots=True)
class Form:
    """The properties that cases share if they run in one model with dynamic dimensions.

    Attributes:
        axis: the non-negative axis, 0 for operators without axis.
        is_negative: whether the model gives the axis as a negative number.
        index_rank: the rank of indices; None if they are omitted.
        depth: the number of coordinates of an index tuple.
        scalar_rank: the rank of a one-element tensor that replaces 0-D updates; 0 if they are not replaced.
        attributes: the attributes of the node, without the axis; others have their defaults.
        constants: the roles of the inputs that are constants of the model.
        shapes: how the model declares shapes: "static", "bounded" or "dynamic".
        axis_shape: the shape of an axis that is an input: [] or [1].
        iterations: iterations of a loop around the node, see `OneNode`.
        within: the limits that the form was drawn with.
    """

    spec: OpSpec
    reduction: Reduction
    attributes: tuple[tuple[str, Any], ...]
    element_type: ElementType
    index_type: ElementType
    rank: int
    axis: int
    is_negative: bool
    index_rank: int | None
    depth: int
    scalar_rank: int
    is_unique: bool
    constants: frozenset[Role]
    shapes: str
    has_edges: bool
    axis_shape: _Shape
    iterations: int
    within: Limits


def draw_form(draws: Draws, spec: OpSpec, limits: Limits = Limits()) -> Form:
    """Draw the properties that many cases share.

    The limits must allow at least one reduction, one element type and one index type.
    """
    reduction, word = _draw_reduction(draws, spec, limits.reductions)
    excluded = spec.reduction_excludes.get(reduction, frozenset())
    element_type = _pick_type(draws, types_of(spec, Role.DATA, limits.element_types, excluded))
    index_type = _pick_type(draws, types_of(spec, Role.INDICES, limits.index_types))
    attributes = dict(word) | _draw_attributes(draws, spec, set(word))
    rank = max([1, *(port.min_rank for port in spec.ports if port.role is Role.DATA)])
    is_high_rank = limits.ranks > LARGEST_RANK and draws.chance(_HIGH_RANK)
    rank += draws.below((limits.ranks if is_high_rank else LARGEST_RANK) + 1 - rank)
    excluded_axes = spec.axis.excluded if spec.axis is not None else frozenset(range(1, rank))
    axes = [axis for axis in range(rank) if axis not in excluded_axes]
    if not axes:  # an operator that excludes axis 0 needs rank 2
        rank, axes = 2, [1]
    is_large = bool(limits.elements)  # many updates then share targets on the first axis, which threads split
    axis = draws.pick(axes[:1] * len(axes) * is_large + axes)
    is_negative = spec.axis is not None and draws.chance(_NEGATIVE)
    may_repeat = is_large or (limits.may_repeat and draws.chance(_REPEATED))
    is_unique = reduction is Reduction.NONE and not may_repeat
    index_rank: int | None = rank
    depth = scalar_rank = 0
    if spec.layout is Layout.SLICES:
        index_rank = max(draws.below(3), is_large)
    elif spec.layout is Layout.TUPLES:
        least = 0 if limits.is_wild else 1
        depth = least + draws.below(rank + 1 - least)
        index_rank = 1 + max(draws.below(limits.ranks if is_high_rank else 3), is_large)
        if spec.scalar_updates and index_rank == 1 and depth == rank and draws.chance(_ONE_ELEMENT):
            scalar_rank = 1 + draws.below(2)
    elif spec.layout is Layout.SEQUENCE:
        port = spec.port(Role.INDICES)
        is_left_out = port is not None and port.is_optional and draws.chance(_LEFT_OUT)
        index_rank = None if is_left_out else 1
    shapes = draws.pick(limits.shapes)
    constants = {
        port.role
        for port in spec.ports
        if (port.role is not Role.INDICES or index_rank is not None)
        and (port.role is Role.AXIS or limits.constants)
        and draws.chance(_CONSTANT_AXIS if port.role is Role.AXIS else _CONSTANT)
    }
    is_vector = Role.AXIS in {port.role for port in spec.ports} and draws.chance(_NEGATIVE)
    has_edges = limits.values == "edge" or (limits.values == "any" and draws.chance(_EDGES))
    may_be_looped = limits.loops and shapes == "static" and spec.key.domain != ONNX
    iterations = 1 + draws.below(_FEW_ITERATIONS) if may_be_looped and draws.chance(_IN_LOOP) else 0
    return Form(
        spec, reduction, tuple(attributes.items()), element_type, index_type, rank, axis, is_negative,
        index_rank, depth, scalar_rank, is_unique, frozenset(constants), shapes, has_edges,
        (1,) if is_vector else (), iterations, limits,
    )  # fmt: skip


def draw_case(draws: Draws, form: Form) -> Case:
    return draw_values(draws, form, draw_sizes(draws, form))


def draw_sizes(draws: Draws, form: Form) -> Sizes:
    """Draw legal shapes of data, indices (None if omitted) and updates for a form."""
    spec, axis = form.spec, form.axis
    _, largest_index = clip_to_type(form.index_type, 0, _LARGEST_INDEX)
    largest = 2 if form.rank > LARGEST_RANK else largest_index + 1
    usual = max(int(form.within.elements ** (1 / form.rank)), LARGEST_DIM)
    data = tuple([min(dim, largest) for dim in _dims(draws, form.rank, usual)])
    # A single index or tuple that cannot be omitted needs a position to refer to.
    if spec.layout is Layout.SEQUENCE or (spec.layout is Layout.SLICES and form.index_rank == 0):
        data = (*data[:axis], max(data[axis], 1), *data[axis + 1 :])
    if spec.layout is Layout.TUPLES and form.index_rank == 1:
        data = (*(max(dim, 1) for dim in data[: form.depth]), *data[form.depth :])
    return data, *_draw_shapes(draws, form, data)


def draw_values(draws: Draws, form: Form, sizes: Sizes) -> Case:
    """Draw the values of a case with shapes from `draw_sizes`."""
    spec, type, (of_data, of_indices, of_updates) = form.spec, form.element_type, sizes
    is_wrapping = spec.index_range is IndexRange.WRAPPING and draws.chance(_NEGATIVE)
    generator = np.random.Generator(np.random.PCG64(draws.below(_SEEDS)))
    data, updates = (random_array(generator, type, shape) for shape in (of_data, of_updates))
    if form.has_edges:
        data, updates = (with_edges(generator, type, array) for array in (data, updates))
    data, updates = np.asarray(data), np.asarray(updates)  # NumPy returns scalars for 0-D arrays
    axis = None if spec.axis is None else form.axis - form.rank * form.is_negative
    blank = None if of_indices is None else np.zeros(of_indices, dtype(form.index_type))
    case = Case(
        spec, data, blank, updates, axis, dict(form.attributes), type, form.index_type,
        form.reduction, None, form.constants, form.shapes, form.axis_shape, form.iterations,
        within=form.within, decisions=tuple(draws.decisions),
    )  # fmt: skip
    if blank is None or not blank.size or not case.limits:
        return case
    return replace(case, indices=_legal_indices(generator, case, blank, form.is_unique, is_wrapping))


def types_of(
    spec: OpSpec, role: Role, allowed: frozenset[str] | None = None, excluded: frozenset[str] = frozenset()
) -> list[ElementType]:
    """Return the element types of a port that NumPy supports, the simplest first."""
    port = spec.port(role)
    rows = () if port is None else _simplest_first(port.element_types)
    return [row for row in rows if row.name not in excluded and (allowed is None or row.name in allowed)]


@cache
def _simplest_first(names: frozenset[str]) -> tuple[ElementType, ...]:
    ordered = [*_SIMPLE_TYPES, *(name for name in ELEMENT_TYPES if name not in _SIMPLE_TYPES)]
    rows = [ELEMENT_TYPES[name] for name in ordered if name in names]
    return tuple(row for row in rows if dtype(row) is not None)


def _pick_type(draws: Draws, types: Sequence[ElementType]) -> ElementType:
    """Pick a type: usually one of `_USUAL_TYPES`, rarely another one."""
    is_rare = draws.chance(_RARE_TYPE)
    usual = [type for type in types if (type.name in _USUAL_TYPES) is not is_rare]
    return draws.pick(usual or types)


def _draw_reduction(
    draws: Draws, spec: OpSpec, allowed: frozenset[Reduction] | None
) -> tuple[Reduction, dict[str, str]]:
    """Draw a reduction; return it and its attribute, which may be omitted if it is the default."""
    row = spec.attribute("reduction")
    if row is None:
        return Reduction.NONE, {}
    word = draws.pick(
        [word for word, reduction in spec.reductions.items() if allowed is None or reduction in allowed]
    )
    is_written = word != row.default or draws.chance(_EXPLICIT)
    return spec.reductions[word], {row.name: word} if is_written else {}


def _draw_attributes(draws: Draws, spec: OpSpec, drawn: set[str]) -> dict[str, Any]:
    axis = spec.axis.attribute if spec.axis is not None else None
    rows = [row for row in spec.attributes if row.name not in {*drawn, "reduction", axis}]
    return {row.name: _draw_value(draws, row) for row in rows if draws.chance(_EXPLICIT)}


def _draw_value(draws: Draws, row: Attribute) -> Any:
    if row.kind is Kind.BOOLEAN:
        return draws.pick((row.default, not row.default))
    return draws.pick(row.choices) if row.choices else row.default


def _dims(draws: Draws, rank: int, largest: int) -> _Shape:
    return tuple([_dim(draws, largest) for _ in range(rank)])


def _dim(draws: Draws, largest: int) -> int:
    if largest > LARGEST_DIM:  # prefer large dimensions, so that updates share targets
        return 1 + isqrt(draws.below(largest**2))
    if draws.chance(_EMPTY_DIM):
        return 0
    return 1 if draws.chance(_DIM_OF_ONE) else 1 + draws.below(largest)


def _draw_shapes(draws: Draws, form: Form, data: _Shape) -> tuple[_Shape | None, _Shape]:
    """Draw legal shapes of indices (None if omitted) and updates for data of shape `data`."""
    spec, axis, is_unique = form.spec, form.axis, form.is_unique
    before, size, after = data[:axis], data[axis], data[axis + 1 :]
    fronts = max((form.index_rank or 1) - (spec.layout is Layout.TUPLES), 1)
    slice_size = prod(data[form.depth :] if spec.layout is Layout.TUPLES else (*before, *after)) or 1
    most_indices = max(min(_MANY_INDICES, _MANY_UPDATES // slice_size), 1)
    usual = LARGEST_DIM if fronts < LARGEST_RANK else 2
    largest = int(most_indices ** (1 / fronts)) if form.within.elements else usual
    if spec.layout is Layout.SLICES:
        front = _limit_positions(_dims(draws, form.index_rank or 0, largest), size, is_unique=is_unique)
        return front, (*before, *front, *after)
    if spec.layout is Layout.ELEMENTS:
        indices = [dim if dim <= 1 else 1 + draws.below(dim) for dim in data]
        may_be_longer = spec.indices_limit is not IndicesLimit.EVERYWHERE and not is_unique and size > 0
        if may_be_longer and draws.chance(_LONGER_INDICES):
            indices[axis] = size + 1 + draws.below(3)
        elif draws.chance(_EMPTY_DIM):
            indices[axis] = 0
        return tuple(indices), tuple(indices)
    if spec.layout is Layout.TUPLES:
        assert form.index_rank is not None
        front = _dims(draws, form.index_rank - 1, largest)
        front = _limit_positions(front, prod(data[: form.depth]), is_unique=is_unique)
        updates = (1,) * form.scalar_rank or (*front, *data[form.depth :])
        return (*front, form.depth), updates
    count = 1 + draws.below(size)
    return None if form.index_rank is None else data[:1], (*before, count, *after)


def _limit_positions(shape: Sequence[int], room: int, *, is_unique: bool) -> _Shape:
    """Return the shape, reduced to `room` elements if targets must be unique; empty if `room` is 0."""
    dims = list(shape)
    if room == 0:
        return (0, *dims[1:])
    for number in range(len(dims)):
        rest = prod(dims[:number] + dims[number + 1 :])
        if is_unique and rest * dims[number] > room:
            dims[number] = max(room // max(rest, 1), 1)
    return (room, *(1 for _ in dims[1:])) if is_unique and prod(dims) > room else tuple(dims)


def _legal_indices(
    generator: np.random.Generator, case: Case, blank: Array, is_unique: bool, is_wrapping: bool
) -> Array:
    low, high = clip_to_type(case.index_type, *_WIDEST)
    limits = [max(case.data.shape[case.axis_from_front], 1) if size is None else size for size in case.limits]
    sizes = [min(limit, high + 1, _CROWDED_DIM if case.within.elements else high + 1) for limit in limits]
    room, count = prod(sizes), blank.size // len(sizes)
    if not is_unique:
        flat = generator.integers(0, room, count)
    else:
        lanes = index_values.lanes(case.spec.layout, case.axis_from_front, blank)
        number = int(lanes.max()) + 1
        flat = np.empty(count, np.int64)
        if count > number * room:  # too many to be unique
            flat = generator.integers(0, room, count)
        else:
            chosen = generator.random((number, room)).argsort()[:, : count // number]
            flat[by_lane(lanes, np.arange(count))] = chosen
    numbers = flat if len(sizes) == 1 else np.stack(np.unravel_index(flat, sizes), axis=-1)
    if is_wrapping:
        is_negative = (numbers - limits >= low) & (generator.random(numbers.shape) < _WRAPPED)
        numbers = np.where(is_negative, numbers - limits, numbers)
    return numbers.reshape(blank.shape).astype(blank.dtype)
