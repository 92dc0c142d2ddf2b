"""Cases of one operator, drawn from its row: legal ones, and ones with one rule broken on purpose.

A case follows from decisions, each a number below a bound of which 0 is the simplest. Decisions that were
recorded can be made again, or simpler ones in their place: what comes out is a case all the same.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import isqrt, prod
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, from_dtype
from ir_scatter.core.model import ONNX
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim
from ir_scatter.formats.base import IR, ONNX_FORMAT, OneInput, OneNode
from ir_scatter.inputs.constraints import by_lane
from ir_scatter.inputs.numbers import clip_to_type, random_array, with_edges
from ir_scatter.ops import index_values
from ir_scatter.ops.kernels.targets import Operation, Task
from ir_scatter.ops.names import OperatorName
from ir_scatter.ops.spec import Attribute, IndexRange, IndicesLimit, Kind, Layout, OpSpec, Reduction, Role

_T = TypeVar("_T")
_Shape: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = tuple[_Shape, _Shape | None, _Shape]
Feature: TypeAlias = str | int | bool

LARGEST_RANK, LARGEST_DIM = 4, 5
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
_BEHIND = 3
"""How many elements an axis may be beyond its range."""
_FAR = (0, 1, 2, 63, 1 << 12, 1 << 18, 1 << 26)
"""How many elements an index is beyond its range: a write that is far away ends a process sooner."""
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
class Limits:
    """What may be drawn.

    Attributes:
        reductions, element_types, index_types: those that may be, None for all of the row.
        may_repeat: whether targets may repeat with reduction none.
        ranks: the largest rank of data; seldom above `LARGEST_RANK`.
        is_wild: whether tuples may have no coordinates.
        constants: whether inputs other than the axis may be constant.
        shapes: "static", "bounded", "dynamic": how a model may say shapes.
        values: "plain", "edge" or "any".
        elements: about so many data has at most, and then many updates meet, which shows races; 0 where its
            dimensions are at most `LARGEST_DIM`.
        loops: whether a node of an IR may stand in a loop, all of whose iterations are given the same.
    """

    reductions: frozenset[Reduction] | None = None
    element_types: frozenset[str] | None = None
    index_types: frozenset[str] | None = None
    may_repeat: bool = True
    ranks: int = LARGEST_RANK
    is_wild: bool = False
    constants: bool = True
    shapes: tuple[str, ...] = ("static",)
    values: str = "any"
    elements: int = 0
    loops: bool = False


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


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
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
        constants, shapes, axis_shape, iterations, within: see `Form`.
        before, keeps_state, in_function: see `OneNode`.
        twin: how it differs from the case that follows from the same decisions, a key of `TWINS`.
        decisions: what it follows from.
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
    constants: frozenset[Role] = frozenset({Role.AXIS})
    shapes: str = "static"
    axis_shape: _Shape = ()
    iterations: int = 0
    before: tuple[str, ...] = ()
    keeps_state: bool = False
    in_function: bool = False
    within: Limits = Limits()
    twin: str = ""
    decisions: tuple[int, ...] = field(default=(), repr=False)

    @property
    def operator(self) -> OperatorName:
        return cast(OperatorName, str(self.spec.key))

    @property
    def axis_from_front(self) -> int:
        """Return the axis counted from 0; 0 where there is none."""
        return 0 if self.axis is None else self.axis % max(self.data.ndim, 1)

    @property
    def documented(self) -> str:
        """Return what the document says: of the operator, or the rule that is broken; and where."""
        return f"{WAYS[self.broken].rule if self.broken else self.spec.summary} {self.spec.url}"

    @property
    def format(self) -> str:
        return ONNX_FORMAT if self.spec.key.domain == ONNX else IR

    def attribute(self, name: str) -> Any:
        """Return what is written, or the default."""
        row = self.spec.attribute(name)
        return self.attributes.get(name, row.default if row else None)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `ir_scatter.evaluate` but the operator."""
        found: dict[str, Any] = {role.value: array for role, array in self.arrays().items()}
        if self.axis is not None:
            found[Role.AXIS.value] = self.axis
        return {**found, **self.attributes}

    def arrays(self) -> dict[Role, Array | None]:
        """Return the inputs but the axis."""
        return {Role.DATA: self.data, Role.INDICES: self.indices, Role.UPDATES: self.updates}

    def operation(self) -> Operation:
        """Return what the kernels compute; of a legal case."""
        task = Task(
            self.spec.layout,
            self.axis_from_front,
            self.reduction,
            keeps_initial=self.attribute("use_init_val") is not False,
            wraps=self.spec.index_range is IndexRange.WRAPPING,
            is_circular=self.attribute("mode") == "circular",
        )
        return Operation(task, self.data, self.indices, self.updates)

    @property
    def limits(self) -> list[int | None]:
        """Return the sizes that indices count on, one for each column; [None] where any is legal."""
        layout, axis, run = self.spec.layout, self.axis_from_front, 1
        if layout is Layout.SEQUENCE:
            if self.attribute("mode") != "linear":
                return [None]
            run = self.updates.shape[axis]
        shape = () if self.indices is None else self.indices.shape
        return index_values.sizes(layout, self.data.shape, axis, shape, run)

    def node(self, prefix: str = "") -> OneNode:
        """Return the case as a node of a model, whose inputs are named by role behind a prefix."""
        spec, attributes, inputs = self.spec, dict(self.attributes), list[OneInput | None]()
        known = {
            Role.DATA: (self.data, self.element_type),
            Role.INDICES: (self.indices, self.index_type),
            Role.UPDATES: (self.updates, self.element_type),
            Role.AXIS: (
                None if self.axis is None else np.full(self.axis_shape, self.axis, np.int64),
                ELEMENT_TYPES["i64"],
            ),
        }
        for port in spec.ports:
            array, type = known[port.role]
            if array is None:
                inputs.append(None)
                continue
            type = from_dtype(array.dtype) or type  # a broken case may have another one
            is_constant = port.role in self.constants
            shape = None if is_constant else declared(array.shape, self.shapes)
            inputs.append(OneInput(f"{prefix}{port.role.value}", type, array, is_constant, shape))
        if spec.axis is not None and spec.axis.attribute is not None:
            attributes[spec.axis.attribute] = self.axis
        shape = declared(self.data.shape, self.shapes)
        row = spec.key.type, spec.opsets[0]
        return OneNode(
            *row,
            attributes,
            inputs,
            self.element_type,
            shape,
            iterations=self.iterations,
            before=self.before,
            keeps_state=self.keeps_state,
            in_function=self.in_function,
        )

    def feeds(self, prefix: str = "") -> dict[str, Array]:
        """Return what a model of the node asks for."""
        node = self.node(prefix)
        return {one.name: one.array for one in node.inputs if one is not None and not one.is_constant}


def declared(shape: Sequence[int], shapes: str) -> tuple[Dim, ...]:
    if shapes == "static":
        return tuple(shape)
    return tuple(
        [Bounds(0, max(2 * LARGEST_DIM, dim)) if shapes == "bounded" else UNKNOWN_DIM for dim in shape]
    )


# Legal cases: first what they have in common with others, then their sizes and numbers.


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


# What tells cases apart.


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
        found["targets are repeated"] = repeats(case)
    if case.broken == "index-out-of-range":
        found |= _beyond(case)
    return {**found, **value_features([case.data, case.updates])}


def _beyond(case: Case) -> dict[str, Feature]:
    """Tell on which side indices are beyond their range, and by how many elements."""
    assert case.indices is not None
    numbers, sizes = case.indices.astype(np.int64), np.array(case.limits, np.int64)
    below, above = int((-sizes - numbers).max()), int((numbers - sizes + 1).max())
    return {"an index is below its range": below > 0, "an index is beyond by": max(below, above)}


def repeats(case: Case) -> bool:
    """Tell whether more than one update is for one target; of a legal case."""
    layout, axis, indices = case.spec.layout, case.axis_from_front, case.indices
    if indices is None or not indices.size or not case.updates.size:
        return False
    return index_values.repeats(layout, axis, indices, case.limits, wraps=True) is not None


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


# Cases that break one rule.


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


# Cases that belong to others, so that an answer can be held against an answer: no reference is needed.


def _other_constants(case: Case) -> Case:
    """Return the case with constants in the place of inputs that flow in, or the other way round."""
    inputs = case.constants - {Role.AXIS}
    others = frozenset({Role.INDICES, Role.UPDATES} if not inputs and case.indices is not None else ())
    return replace(case, constants=others | (case.constants & {Role.AXIS}))


def _other_order(case: Case) -> Case | None:
    """Return the case with its updates, and their indices, back to front; None where two meet."""
    if case.indices is None or not case.indices.ndim or repeats(case):
        return None
    layout, axis = case.spec.layout, case.axis_from_front
    if layout is Layout.SEQUENCE or (layout is Layout.TUPLES and case.indices.ndim < 2):
        return None
    of_indices = axis if layout is Layout.ELEMENTS else 0
    indices = np.ascontiguousarray(np.flip(case.indices, of_indices))
    of_updates = 0 if layout is Layout.TUPLES else axis
    return replace(case, indices=indices, updates=np.ascontiguousarray(np.flip(case.updates, of_updates)))


def _nothing_new(case: Case) -> Case | None:
    """Return the case with updates that leave data as it is: old values, or zeros that are added."""
    indices, axis = case.indices, case.axis_from_front
    if case.reduction in {Reduction.SUM, Reduction.SUB} and case.attribute("use_init_val") is not False:
        is_text = case.data.dtype.kind in "OU"
        return None if is_text else replace(case, updates=np.zeros_like(case.updates))
    if case.reduction is not Reduction.NONE or indices is None or case.spec.layout is Layout.SEQUENCE:
        return None
    numbers, old = indices.astype(np.int64), case.data
    if case.spec.layout is Layout.SLICES:
        updates = np.take(old, numbers, axis)
    elif case.spec.layout is Layout.TUPLES:
        updates = old[tuple(np.moveaxis(numbers, -1, 0))]
    else:
        grid: list[Array] = list(np.indices(numbers.shape, sparse=True))
        grid[axis] = numbers
        updates = old[tuple(grid)]
    return replace(case, updates=np.asarray(updates, old.dtype).reshape(case.updates.shape))


TWINS: Mapping[str, Callable[[Case], Case | None]] = {
    "with other constants": _other_constants,
    "in another order": _other_order,
    "with nothing new": _nothing_new,
}
"""By what differs: each gives what the case gives, but for the last, which gives data."""


def twin(case: Case, name: str) -> Case | None:
    """Return the twin of a legal case, None where it has none; it follows from the same decisions."""
    found = TWINS[name](case)
    return None if found is None else replace(found, twin=name)


def promised(case: Case, of_the_other: Array | None) -> Array | None:
    """Return what a twin must give, from the answer to the other; None if that is not known."""
    return case.data if case.twin == "with nothing new" else of_the_other
