"""Draws legal cases of one operator from its row.

A case follows from decisions, each a number below a bound of which 0 is the simplest. Decisions that were
recorded can be made again, or simpler ones in their place: what comes out is a case all the same.
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

_EMPTY, _LONGER, _ONE_ELEMENT, _LEFT_OUT = 0.04, 0.3, 0.3, 0.3
"""How often a dimension is 0, indices are longer than data on the axis, one element stands for 0-D
updates, and optional indices are left out."""

_NEGATIVE, _WRITTEN, _DEEP, _REPEATED = 0.3, 0.5, 0.2, 0.3
"""How often an axis or an index is negative, a default is written, a rank may be above the usual, and
targets may repeat where nothing reduces them."""

_ONES, _CONSTANT, _CONSTANT_AXIS, _EDGES = 0.25, 0.3, 0.9, 0.3
"""How often a dimension is 1, an input is constant, the axis is, and half the elements are at the edges of
their type."""

_WIDEST = (1 - 2**31, 2**31 - 1)
_MANY = 1000
_SEEDS = 1 << 32
_MANY_INDICES, _MANY_UPDATES, _CROWD = 4096, 1 << 18, 3
"""Large data has so many indices and updates at most; they name so few places on each axis that they meet."""

_LOOPED, _FEW_ITERATIONS = 0.12, 3
"""How often a node stands in a loop, where it may, and in how many iterations at most."""

_SIMPLE_TYPES = ("f32", "i64", "i32")
_USUAL_TYPES = frozenset({*_SIMPLE_TYPES, "f16", "bf16", "f64", "u8", "i8", "boolean"})
_RARE = 0.12
"""How often an element type is another one than the usual."""


class Draws:
    """Makes decisions and records them: those that are given again, then others at random.

    Without a seed every decision that is not given is the simplest.
    """

    def __init__(self, seed: int | None = None, replayed: Sequence[int] = ()) -> None:
        self.made: list[int] = []
        self._random = None if seed is None else random.Random(seed)
        self._replayed = replayed

    def below(self, bound: int) -> int:
        """Return a number from 0 to below the bound."""
        return self._decide(bound - 1, lambda drawn: int(drawn * bound))

    def chance(self, probability: float) -> bool:
        """Tell whether something happens; the simplest is that it does not."""
        return self._decide(1, lambda drawn: drawn < probability) > 0

    def pick(self, options: Sequence[_T]) -> _T:
        """Return one of some options, of which the first is the simplest."""
        return options[self.below(len(options))]

    def _decide(self, most: int, of_drawn: Callable[[float], int]) -> int:
        number = len(self.made)
        if number < len(self._replayed):
            found = min(self._replayed[number], most)
        else:
            found = 0 if self._random is None else int(of_drawn(self._random.random()))
        self.made.append(found)
        return found


@dataclass(frozen=True, slots=True)
class Form:
    """What cases have in common that one model with dynamic dimensions can take.

    Attributes:
        axis: counted from the front, 0 where the operator has none; `is_negative` is how it is written.
        index_rank: None where indices are left out.
        depth: how many coordinates a tuple has.
        scalar_rank: the rank of updates where one element stands for 0-D ones; 0 where they are written so.
        attributes: those that are written, without the axis.
        constants: the roles of the inputs that a model holds.
        shapes: how a model says shapes: "static", "bounded" or "dynamic".
        axis_shape: of an axis that is an input: [] or [1].
        iterations: of a loop around it, see `OneNode`.
        within: what it was drawn with.
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
    """Draw what is common to many cases; the limits leave at least one reduction and one type of each."""
    reduction, word = _draw_reduction(draws, spec, limits.reductions)
    excluded = spec.reduction_excludes.get(reduction, frozenset())
    element_type = _pick_type(draws, types_of(spec, Role.DATA, limits.element_types, excluded))
    index_type = _pick_type(draws, types_of(spec, Role.INDICES, limits.index_types))
    attributes = dict(word) | _draw_attributes(draws, spec, set(word))
    rank = max([1, *(port.min_rank for port in spec.ports if port.role is Role.DATA)])
    is_deep = limits.ranks > LARGEST_RANK and draws.chance(_DEEP)
    rank += draws.below((limits.ranks if is_deep else LARGEST_RANK) + 1 - rank)
    excluded_axes = spec.axis.excluded if spec.axis is not None else frozenset(range(1, rank))
    axes = [axis for axis in range(rank) if axis not in excluded_axes]
    if not axes:  # an operator whose axis is behind the first one
        rank, axes = 2, [1]
    is_large = bool(limits.elements)  # and then updates are many, and meet: threads share the first axis
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
        index_rank = 1 + max(draws.below(limits.ranks if is_deep else 3), is_large)
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
    iterations = 1 + draws.below(_FEW_ITERATIONS) if may_be_looped and draws.chance(_LOOPED) else 0
    return Form(
        spec, reduction, tuple(attributes.items()), element_type, index_type, rank, axis, is_negative,
        index_rank, depth, scalar_rank, is_unique, frozenset(constants), shapes, has_edges,
        (1,) if is_vector else (), iterations, limits,
    )  # fmt: skip


def draw_case(draws: Draws, form: Form) -> Case:
    return fill(draws, form, draw_sizes(draws, form))


def draw_sizes(draws: Draws, form: Form) -> Sizes:
    """Draw legal shapes of data, indices (None where they are left out) and updates."""
    spec, axis = form.spec, form.axis
    _, largest_index = clip_to_type(form.index_type, 0, _MANY)
    largest = 2 if form.rank > LARGEST_RANK else largest_index + 1
    usual = max(int(form.within.elements ** (1 / form.rank)), LARGEST_DIM)
    data = tuple([min(dim, largest) for dim in _dims(draws, form.rank, usual)])
    # A single index, or tuple, that cannot be left out needs something to name.
    if spec.layout is Layout.SEQUENCE or (spec.layout is Layout.SLICES and form.index_rank == 0):
        data = (*data[:axis], max(data[axis], 1), *data[axis + 1 :])
    if spec.layout is Layout.TUPLES and form.index_rank == 1:
        data = (*(max(dim, 1) for dim in data[: form.depth]), *data[form.depth :])
    return data, *_draw_shapes(draws, form, data)


def fill(draws: Draws, form: Form, sizes: Sizes) -> Case:
    """Draw the numbers of a legal case."""
    spec, type, (of_data, of_indices, of_updates) = form.spec, form.element_type, sizes
    is_wrapping = spec.index_range is IndexRange.WRAPPING and draws.chance(_NEGATIVE)
    generator = np.random.Generator(np.random.PCG64(draws.below(_SEEDS)))
    data, updates = (random_array(generator, type, shape) for shape in (of_data, of_updates))
    if form.has_edges:
        data, updates = (with_edges(generator, type, array) for array in (data, updates))
    data, updates = np.asarray(data), np.asarray(updates)  # without dimensions NumPy makes a scalar
    written = None if spec.axis is None else form.axis - form.rank * form.is_negative
    blank = None if of_indices is None else np.zeros(of_indices, dtype(form.index_type))
    case = Case(
        spec, data, blank, updates, written, dict(form.attributes), type, form.index_type,
        form.reduction, None, form.constants, form.shapes, form.axis_shape, form.iterations,
        within=form.within, decisions=tuple(draws.made),
    )  # fmt: skip
    if blank is None or not blank.size or not case.limits:
        return case
    return replace(case, indices=_legal_indices(generator, case, blank, form.is_unique, is_wrapping))


def types_of(
    spec: OpSpec, role: Role, wanted: frozenset[str] | None = None, excluded: frozenset[str] = frozenset()
) -> list[ElementType]:
    """Return the element types of a port that NumPy has a type for, the simplest first."""
    port = spec.port(role)
    known = () if port is None else _simplest_first(port.element_types)
    return [one for one in known if one.name not in excluded and (wanted is None or one.name in wanted)]


@cache
def _simplest_first(names: frozenset[str]) -> tuple[ElementType, ...]:
    ordered = [*_SIMPLE_TYPES, *(name for name in ELEMENT_TYPES if name not in _SIMPLE_TYPES)]
    found = [ELEMENT_TYPES[name] for name in ordered if name in names]
    return tuple(one for one in found if dtype(one) is not None)


def _pick_type(draws: Draws, types: Sequence[ElementType]) -> ElementType:
    """Return one of some types, seldom one that few models have."""
    is_rare = draws.chance(_RARE)
    usual = [type for type in types if (type.name in _USUAL_TYPES) is not is_rare]
    return draws.pick(usual or types)


def _draw_reduction(
    draws: Draws, spec: OpSpec, wanted: frozenset[Reduction] | None
) -> tuple[Reduction, dict[str, str]]:
    """Return a reduction and the attribute that says so, which may be left out if it is the default."""
    row = spec.attribute("reduction")
    if row is None:
        return Reduction.NONE, {}
    word = draws.pick([w for w, found in spec.reductions.items() if wanted is None or found in wanted])
    is_written = word != row.default or draws.chance(_WRITTEN)
    return spec.reductions[word], {row.name: word} if is_written else {}


def _draw_attributes(draws: Draws, spec: OpSpec, known: set[str]) -> dict[str, Any]:
    axis = spec.axis.attribute if spec.axis is not None else None
    others = [row for row in spec.attributes if row.name not in {*known, "reduction", axis}]
    return {row.name: _draw_value(draws, row) for row in others if draws.chance(_WRITTEN)}


def _draw_value(draws: Draws, row: Attribute) -> Any:
    if row.kind is Kind.BOOLEAN:
        return draws.pick((row.default, not row.default))
    return draws.pick(row.choices) if row.choices else row.default


def _dims(draws: Draws, rank: int, largest: int) -> _Shape:
    return tuple([_dim(draws, largest) for _ in range(rank)])


def _dim(draws: Draws, largest: int) -> int:
    if largest > LARGEST_DIM:  # of what is large nothing is left out, so that updates meet
        return 1 + isqrt(draws.below(largest**2))
    if draws.chance(_EMPTY):
        return 0
    return 1 if draws.chance(_ONES) else 1 + draws.below(largest)


def _draw_shapes(draws: Draws, form: Form, data: _Shape) -> tuple[_Shape | None, _Shape]:
    """Return legal shapes of indices, None where they are left out, and of updates."""
    spec, axis, is_unique = form.spec, form.axis, form.is_unique
    before, size, behind = data[:axis], data[axis], data[axis + 1 :]
    fronts = max((form.index_rank or 1) - (spec.layout is Layout.TUPLES), 1)
    each = prod(data[form.depth :] if spec.layout is Layout.TUPLES else (*before, *behind)) or 1
    many = max(min(_MANY_INDICES, _MANY_UPDATES // each), 1)
    usual = LARGEST_DIM if fronts < LARGEST_RANK else 2
    largest = int(many ** (1 / fronts)) if form.within.elements else usual
    if spec.layout is Layout.SLICES:
        front = _fewer(_dims(draws, form.index_rank or 0, largest), size, is_unique=is_unique)
        return front, (*before, *front, *behind)
    if spec.layout is Layout.ELEMENTS:
        indices = [dim if dim <= 1 else 1 + draws.below(dim) for dim in data]
        may_be_longer = spec.indices_limit is not IndicesLimit.EVERYWHERE and not is_unique and size > 0
        if may_be_longer and draws.chance(_LONGER):
            indices[axis] = size + 1 + draws.below(3)
        elif draws.chance(_EMPTY):
            indices[axis] = 0
        return tuple(indices), tuple(indices)
    if spec.layout is Layout.TUPLES:
        assert form.index_rank is not None
        front = _dims(draws, form.index_rank - 1, largest)
        front = _fewer(front, prod(data[: form.depth]), is_unique=is_unique)
        updates = (1,) * form.scalar_rank or (*front, *data[form.depth :])
        return (*front, form.depth), updates
    count = 1 + draws.below(size)
    return None if form.index_rank is None else data[:1], (*before, count, *behind)


def _fewer(shape: Sequence[int], room: int, *, is_unique: bool) -> _Shape:
    """Return a shape of no more positions than there is room for, if it must be so."""
    found = list(shape)
    if room == 0:
        return (0, *found[1:])
    for number in range(len(found)):
        others = prod(found[:number] + found[number + 1 :])
        if is_unique and others * found[number] > room:
            found[number] = max(room // max(others, 1), 1)
    return (room, *(1 for _ in found[1:])) if is_unique and prod(found) > room else tuple(found)


def _legal_indices(
    generator: np.random.Generator, case: Case, blank: Array, is_unique: bool, is_wrapping: bool
) -> Array:
    low, high = clip_to_type(case.index_type, *_WIDEST)
    limits = [max(case.data.shape[case.axis_from_front], 1) if s is None else s for s in case.limits]
    sizes = [min(limit, high + 1, _CROWD if case.within.elements else high + 1) for limit in limits]
    room, count = prod(sizes), blank.size // len(sizes)
    if not is_unique:
        flat = generator.integers(0, room, count)
    else:
        lanes = index_values.lanes(case.spec.layout, case.axis_from_front, blank)
        number = int(lanes.max()) + 1
        flat = np.empty(count, np.int64)
        if count > number * room:  # they cannot all differ
            flat = generator.integers(0, room, count)
        else:
            chosen = generator.random((number, room)).argsort()[:, : count // number]
            flat[by_lane(lanes, np.arange(count))] = chosen
    numbers = flat if len(sizes) == 1 else np.stack(np.unravel_index(flat, sizes), axis=-1)
    if is_wrapping:
        is_negative = (numbers - limits >= low) & (generator.random(numbers.shape) < _WRITTEN)
        numbers = np.where(is_negative, numbers - limits, numbers)
    return numbers.reshape(blank.shape).astype(blank.dtype)
