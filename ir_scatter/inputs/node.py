"""Legal inputs for one scatter node as it stands in its model."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, islice, product
from math import prod
from typing import Any

import numpy as np

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.errors import NoInputs
from ir_scatter.core.shapes import (
    UNKNOWN_DIM,
    Bounds,
    Dim,
    agree_dims,
    at_most,
    highest,
    lowest,
    narrow_dim,
    show,
)
from ir_scatter.evaluate.model import arguments_of
from ir_scatter.inputs.case import Case
from ir_scatter.inputs.constraints import IndexConstraint, columns
from ir_scatter.inputs.numbers import draw
from ir_scatter.inputs.operator import draw_indices
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.ops import index_values
from ir_scatter.ops.index_values import expected_updates
from ir_scatter.ops.spec import IndexRange, IndicesLimit, Layout, Reduction, Role

MOST_ELEMENTS = 1 << 24
"""Inputs with more of them are not made: what is computed from them takes some hundred bytes for each."""

_RANKS = (2, 1, 3, 4, 0, 5, 6, 7, 8)
"""Ranks that are tried where none is known."""

_ROLES = (Role.AXIS, Role.INDICES, Role.DATA, Role.UPDATES)
"""Of inputs that are one value the first decides what that is."""

_USUAL = {Role.DATA: "f32", Role.UPDATES: "f32", Role.INDICES: "i64", Role.AXIS: "i64"}
"""Element types that are taken where none is known."""

_MOST_RANKS = 24
"""So many choices of ranks that fit each other are tried."""

_MOST_SIZES = 256
"""So many choices of sizes are tried with which constant indices do not name a target again."""


class Misfit(Exception):
    """The shapes of a node do not fit each other; the rules say how."""


class TooLarge(NoInputs):
    """Inputs would take too much memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Inputs of one node.

    Attributes:
        inputs: as they are numbered.
        arguments: those of `evaluate`, attributes included.
        data: the input of that role.
    """

    inputs: tuple[Array | None, ...]
    arguments: Mapping[str, Any]
    data: Array


def draw_inputs(
    random: np.random.Generator,
    site: ScatterNode,
    constraint: IndexConstraint,
    number: int,
    *,
    keeps_constants: bool,
) -> Given:
    """Draw inputs that are legal and keep what is known of the node.

    Targets differ where nothing says what happens when they do not. Three cases in a row hold
    negative, first, last and repeated indices where all of that is allowed.

    Args:
        random: where randomness comes from.
        site: the node.
        constraint: what its indices must be as well.
        number: of the case.
        keeps_constants: whether indices that are constant stay as they are.

    Raises:
        Misfit: no such shapes were found.
        TooLarge: they would take too much memory.
        NoInputs: NumPy has no type for an input.
    """
    constants = _constants(site, keeps_constants=keeps_constants)
    for shapes in islice(_with_ranks(random, site), _MOST_RANKS):
        for chosen in _with_axes(random, site, constants, len(shapes[Role.DATA])):
            axis = int(chosen[Role.AXIS].reshape(-1)[0]) if Role.AXIS in chosen else site.written_axis
            # Dimensions of one name are one size, unless that leaves none: names are but a memory.
            for smallest, names in product(dict.fromkeys((1 + (number + 1) % 2, 1)), (True, False)):
                with suppress(Misfit):
                    dims, held = _Dims(shapes, believes_names=names), chosen.get(Role.INDICES)
                    fitting = _fitting(site, dims, axis, held, constraint, smallest)
                    return _given(site, _drawn(random, site, fitting, axis, chosen, constraint, number))
    raise Misfit


def _constants(site: ScatterNode, *, keeps_constants: bool) -> dict[Role, Array]:
    found: dict[Role, Array] = {}
    indices, axis = site.indices, site.operand(Role.AXIS)
    is_axis = indices is not None and axis is not None and indices.value is axis.value
    if site.index_array is not None and (keeps_constants or is_axis):
        found[Role.INDICES] = site.index_array
    array = None if axis is None else site.facts.array(axis.value)
    return found if array is None else {**found, Role.AXIS: array}


def _with_axes(
    random: np.random.Generator, site: ScatterNode, constants: dict[Role, Array], rank: int
) -> Iterator[dict[Role, Array]]:
    """Yield the constants with an axis, one after the other where it is not known."""
    operand, source = site.operand(Role.AXIS), site.spec.axis
    if operand is None or source is None or Role.AXIS in constants:
        yield constants
        return
    shape = (1,) * len(operand.shape or ())
    for axis in random.permutation(rank).tolist():
        if axis not in source.excluded:
            type = dtype(operand.element_type or ELEMENT_TYPES["i64"])
            yield {**constants, Role.AXIS: np.full(shape, axis, type)}


def _with_ranks(random: np.random.Generator, site: ScatterNode) -> Iterator[dict[Role, tuple[Dim, ...]]]:
    """Yield what is known of shapes, with ranks that fit each other where they are not known."""
    known = {Role.DATA: site.data_shape, Role.INDICES: site.indices_shape}
    known[Role.UPDATES] = site.updates.shape if site.updates else None
    layout, is_without = site.spec.layout, site.indices is None
    choices = [_RANKS if shape is None else (len(shape),) for shape in known.values()]
    for ranks in product(*choices):
        full = {
            role: (UNKNOWN_DIM,) * rank if shape is None else shape
            for (role, shape), rank in zip(known.items(), ranks, strict=True)
        }
        data, indices, updates = ranks
        if layout is Layout.TUPLES:
            last = site.depth if site.depth is not None or not indices else full[Role.INDICES][-1]
            depths = [last] if isinstance(last, int) else random.permutation(range(1, data + 1)).tolist()
            for depth in depths if indices else ():
                rest = indices - 1 + data - depth
                if depth <= data and (rest == updates or (site.spec.scalar_updates and not rest)):
                    yield {**full, Role.INDICES: (*full[Role.INDICES][:-1], depth)}
        elif _has_axis(site, data) and (
            updates == data + indices - 1
            if layout is Layout.SLICES
            else updates == data and (is_without or indices == (data if layout is Layout.ELEMENTS else 1))
        ):
            yield full


def _has_axis(site: ScatterNode, rank: int) -> bool:
    """Tell whether data of a rank has the axis of the node."""
    written, source = site.written_axis, site.spec.axis
    excluded = source.excluded if source else frozenset()
    if written is None:
        return any(axis not in excluded for axis in range(rank))
    return -rank <= written < rank and written % rank not in excluded


class _Dims:
    """The dimensions of a node, of which more and more is demanded.

    Attributes:
        shapes: as they were known, every dimension that is not exact with a symbol.
    """

    def __init__(self, shapes: Mapping[Role, tuple[Dim, ...]], *, believes_names: bool = True) -> None:
        self._known: dict[str | None, Dim] = {}
        self._believes_names = believes_names
        self.shapes = {
            role: tuple(self._named(dim, f"{role} {place}") for place, dim in enumerate(shape))
            for role, shape in shapes.items()
        }

    def _named(self, dim: Dim, name: str) -> Dim:
        if isinstance(dim, int):
            return dim
        dim = dim if self._believes_names else dim._replace(symbol=None)
        named = dim._replace(symbol=dim.symbol or name)
        self._known.setdefault(named.symbol, named)
        self.demand(named, dim)
        return named

    def now(self, dim: Dim) -> Dim:
        """Return what is known by now."""
        while isinstance(dim, Bounds) and self._known.get(dim.symbol, dim) != dim:
            dim = self._known[dim.symbol]
        return dim

    def demand(self, dim: Dim, other: Dim) -> None:
        """Demand that two dimensions are equal.

        Raises:
            Misfit: they cannot be.
        """
        left, right = self.now(dim), self.now(other)
        if not agree_dims(left, right):
            raise Misfit
        both = narrow_dim(left, right)
        for one in (left, right):
            if isinstance(one, Bounds) and one.symbol is not None:
                self._known[one.symbol] = both

    def demand_order(self, less: Dim, more: Dim) -> None:
        """Demand that one dimension is not larger than another."""
        self.demand(less, Bounds(0, highest(self.now(more))))
        self.demand(more, Bounds(lowest(self.now(less))))

    def choose(self, dim: Dim, size: int) -> None:
        """Choose a size, or the nearest that is possible, for a dimension that is not exact."""
        known = self.now(dim)
        if isinstance(known, Bounds):
            size = max(size, known.low)
            self.demand(known, size if known.high is None else min(size, known.high))


def _fitting(
    site: ScatterNode,
    dims: _Dims,
    axis: int | None,
    constant: Array | None,
    constraint: IndexConstraint,
    smallest: int,
) -> dict[Role, tuple[Dim, ...]]:
    """Return shapes that fit each other whichever sizes are chosen for dimensions that are not exact.

    Dimensions of indices are chosen, those of data have room for all positions.

    Args:
        site: the node.
        dims: with ranks that fit each other; more is demanded of them.
        axis: that of the node.
        constant: indices that cannot be chosen.
        constraint: what indices must be as well.
        smallest: the size of the first dimension of indices, if it can be chosen.

    Raises:
        Misfit: there are none.
    """
    layout = site.spec.layout
    data, indices, updates = (dims.shapes.get(role, ()) for role in (Role.DATA, Role.INDICES, Role.UPDATES))
    place = 0 if axis is None else axis % len(data)
    if constant is not None:
        for dim, size in zip(indices, constant.shape, strict=True):
            dims.demand(dim, size)
    operands = [one for one in map(site.operand, dims.shapes) if one is not None]
    for one, other in combinations(operands, 2):
        if one.value is other.value:
            for pair in zip(dims.shapes[one.port.role], dims.shapes[other.port.role], strict=False):
                dims.demand(*pair)
    (expected,) = expected_updates(layout, data, indices, [place])
    assert expected is not None
    for dim, wanted in zip(updates, expected or (1,) * len(updates), strict=True):
        dims.demand(dim, wanted)
    chosen, named, ordered = indices, data[place : place + 1], list[tuple[Dim, Dim]]()
    if layout is Layout.TUPLES:
        chosen, named = indices[:-1], data[: lowest(indices[-1])]
    elif layout is Layout.SEQUENCE:
        chosen, named = updates[place : place + 1], ()
        ordered = [(updates[place], data[place])]
        for dim in indices:
            dims.demand(dim, data[0])
    elif layout is Layout.ELEMENTS:
        ordered = list(zip(indices, data, strict=True))
        if constraint.are_equal:
            for pair in [*ordered[:place], *ordered[place + 1 :]]:
                dims.demand(*pair)
                dims.demand(pair[0], Bounds(1))
        is_empty = any(highest(dims.now(dim)) == 0 for dim in indices)
        is_limited = site.spec.indices_limit is IndicesLimit.EVERYWHERE  # but what is so is taken
        is_limited = is_limited and at_most(*map(dims.now, ordered[place]))
        if not is_limited and (is_empty or not constraint.are_unique):
            del ordered[place]
    for pair in ordered:
        dims.demand_order(*pair)
    if any(highest(dims.now(dim)) == 0 for dim in named):  # then there are no indices
        dims.demand(min(chosen, key=lambda dim: lowest(dims.now(dim)), default=1), 0)
    for number, dim in enumerate(chosen):
        dims.choose(dim, smallest + number)
    for pair in ordered:
        dims.demand_order(*pair)
    sizes = [lowest(dims.now(dim)) for dim in chosen]
    if layout is Layout.SEQUENCE:
        if constant is not None and constant.size:
            _demand_reached(dims, data[place : place + 1], constant, sizes[0])
    elif constant is not None and constant.size:
        _demand_reached(dims, named, constant, 1)
        if constraint.are_unique:
            _demand_apart(dims, layout, axis, named, constant)
    elif constraint.are_unique and 0 not in sizes:
        _demand_room(dims, named, sizes[place] if layout is Layout.ELEMENTS else prod(sizes))
    return {role: tuple(map(dims.now, shape)) for role, shape in dims.shapes.items()}


def _demand_room(dims: _Dims, named: Sequence[Dim], count: int) -> None:
    """Demand so many targets."""
    for dim in named:
        others = prod(max(lowest(dims.now(other)), 1) for other in named if other is not dim)
        least, most = -(-count // others), highest(dims.now(dim))
        dims.demand(dim, Bounds(least if most is None else min(least, most)))
    if prod(lowest(dims.now(dim)) for dim in named) < count:
        raise Misfit


def _demand_reached(dims: _Dims, named: Sequence[Dim], constant: Array, length: int) -> None:
    """Demand that constant positions are there, each with so many."""
    for dim, column in zip(named, columns(constant, len(named)).T, strict=True):
        dims.demand(dim, Bounds(max(int(column.max()) + length, -int(column.min()))))


def _demand_apart(
    dims: _Dims, layout: Layout, axis: int | None, named: Sequence[Dim], constant: Array
) -> None:
    """Demand sizes with which constant positions from the front and from the end do not meet."""
    ranges = []
    for dim, column in zip(named, columns(constant, len(named)).T, strict=True):
        known = dims.now(dim)
        least, most = lowest(known), highest(known)
        apart = max(int(column.max()) - min(int(column.min()), 0) + 1, least)
        ranges.append(range(apart if most is None else min(apart, most), least - 1, -1))
    place = None if axis is None else axis % constant.ndim
    for sizes in islice(product(*ranges), _MOST_SIZES):
        if index_values.repeats(layout, place, constant, sizes, wraps=True) is None:
            for dim, size in zip(named, sizes, strict=True):
                dims.demand(dim, size)
            return
    raise Misfit


def _drawn(
    random: np.random.Generator,
    site: ScatterNode,
    fitting: Mapping[Role, tuple[Dim, ...]],
    axis: int | None,
    constants: dict[Role, Array],
    constraint: IndexConstraint,
    number: int,
) -> dict[Role, Array]:
    """Return the inputs by role; what is one value is one array."""
    sizes = Sizes(list(fitting.values()), {size for array in constants.values() for size in array.shape})
    next(sizes.attempts(is_blind=False))
    shapes = dict(zip(fitting, sizes.shapes(), strict=True))
    if sum(map(prod, shapes.values())) > MOST_ELEMENTS:
        raise TooLarge(
            f"with data of {show(site.data_shape)} there are more than {MOST_ELEMENTS} elements to compute, "
            "too many; --verify 0 converts it without"
        )
    operands = {one.port.role: one for one in map(site.operand, _ROLES) if one is not None}
    types = {role: one.element_type or ELEMENT_TYPES[_USUAL[role]] for role, one in operands.items()}
    arrays = {role: draw(random, types[role], shapes[role]) for role in (Role.DATA, Role.UPDATES)} | constants
    if Role.INDICES in operands.keys() - arrays.keys():
        whole, reduction = shapes[Role.INDICES], site.reduction or Reduction.NONE
        one = whole
        if constraint.are_equal and site.spec.layout is Layout.ELEMENTS:
            place = (axis or 0) % len(whole)
            one = tuple(size if n == place else min(size, 1) for n, size in enumerate(whole))
        case = Case(
            site.spec, arrays[Role.DATA], np.zeros(one, np.int64), arrays[Role.UPDATES], axis,
            site.node.attributes, types[Role.DATA], types[Role.INDICES], reduction,
        )  # fmt: skip
        is_unique = constraint.are_unique or reduction is Reduction.NONE
        wraps = not constraint.are_non_negative
        found = draw_indices(random, case, one, is_unique=is_unique, wraps=wraps, number=number)
        arrays[Role.INDICES] = np.broadcast_to(found, whole)
    seen: dict[int, Array] = {}
    return {
        role: seen.setdefault(id(operands[role].value), arrays[role]) for role in _ROLES if role in operands
    }


def _given(site: ScatterNode, arrays: Mapping[Role, Array]) -> Given:
    """Put arrays in the order of the node's inputs."""
    _, arguments = arguments_of(site, dict(arrays))
    spec, indices = site.spec, arrays.get(Role.INDICES)
    is_forbidden = spec.index_range is IndexRange.NON_NEGATIVE and site.wraps
    if indices is not None and is_forbidden and kind(indices) == "signed" and "axis" in arguments:
        # The text forbids them and every runtime takes them as meant: so does what must come out.
        size = arrays[Role.DATA].shape[int(np.asarray(arguments["axis"]).reshape(-1)[0])]
        arguments[Role.INDICES.value] = index_values.from_front(indices, size)
    inputs = tuple(arrays.get(port.role) for port in spec.ports[: len(site.node.inputs)])
    return Given(inputs, arguments, arrays[Role.DATA])
