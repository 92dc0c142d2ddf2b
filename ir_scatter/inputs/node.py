"""Legal inputs for one scatter node as it stands in its model."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.interpreter import Plan, Step
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.errors import NoInputs
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import (
    UNKNOWN_DIM,
    Bounds,
    Dim,
    agree,
    agree_dims,
    highest,
    lowest,
    narrow,
    narrow_dim,
    show,
)
from ir_scatter.evaluate.model import Sketch, arguments_of
from ir_scatter.inputs.constraints import Conditions, ties
from ir_scatter.inputs.search import Run, Search
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.ops import index_values
from ir_scatter.ops.spec import IndexRange, Layout, Role

MOST_ELEMENTS = 1 << 24
"""Inputs with more of them are not made: what is computed from them takes some hundred bytes for each."""

_RANKS = (2, 1, 3, 4, 0, 5, 6, 7, 8)
"""Ranks that are tried where none is known."""

_ROLES = (Role.AXIS, Role.INDICES, Role.DATA, Role.UPDATES)
"""Of inputs that are one value the first decides what that is."""

_SHAPED = (Role.DATA, Role.INDICES, Role.UPDATES)
_USUAL = {Role.DATA: "f32", Role.UPDATES: "f32", Role.INDICES: "i64", Role.AXIS: "i64"}
"""Element types that are taken where none is known."""

_MOST_RANKS = 24
"""So many choices of ranks that fit each other are tried."""

_CHOICES = 2
"""Cases take turns with so many of them, and of axes."""


class Misfit(Exception):
    """The shapes of a node do not fit each other; the rules say how."""


class TooLarge(NoInputs):
    """Inputs would take too much memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Inputs of one node as they are numbered, as arguments of `evaluate`, and the data among them."""

    inputs: tuple[Array | None, ...]
    arguments: Mapping[str, Any]
    data: Array


def draw_inputs(
    seed: int, scatter: ScatterNode, conditions: Conditions, cases: int, *, keeps_constants: bool
) -> Iterator[Given]:
    """Draw inputs that are legal and keep what is known of the node.

    Targets differ where nothing says what happens when they do not. Three cases in a row hold
    negative, first, last and repeated indices where all of that is allowed. Indices that are constant
    stay as they are in the first case, and where the node `keeps_constants` in all.

    Raises:
        Misfit: no such shapes were found.
        TooLarge: they would take too much memory.
        NoInputs: NumPy has no type for an input.
    """
    random, runs = np.random.default_rng(seed), list[Run]()
    for number in range(cases):
        if number == 0 or (number == 1 and not keeps_constants and scatter.index_array is not None):
            runs, keeps = [], keeps_constants or number == 0
            fitting = islice(
                _fitting_runs(random, scatter, conditions, number, keeps_constants=keeps), _CHOICES
            )
        run = next(fitting, None)
        if run is None and not runs:
            raise Misfit
        if run is None:
            run = runs[number % len(runs)].again(number)
        else:
            runs.append(run)
        found = {input.key: array for input, array in zip(run.search.inputs, run.arrays, strict=True)}
        arrays = {role: found[id(one.value)] for role in _ROLES if (one := scatter.operand(role)) is not None}
        _, arguments = arguments_of(scatter, arrays)
        indices, data = arrays.get(Role.INDICES), arrays[Role.DATA]
        is_forbidden = scatter.spec.index_range is IndexRange.NON_NEGATIVE and scatter.wraps
        if indices is not None and is_forbidden and kind(indices) == "signed" and "axis" in arguments:
            # What is taken as meant is what must come out.
            size = data.shape[int(np.asarray(arguments["axis"]).reshape(-1)[0])]
            arguments[Role.INDICES.value] = index_values.from_front(indices, size)
        ports = scatter.spec.ports[: len(scatter.node.inputs)]
        yield Given(tuple(arrays.get(port.role) for port in ports), arguments, data)


def _fitting_runs(
    random: np.random.Generator,
    scatter: ScatterNode,
    conditions: Conditions,
    number: int,
    *,
    keeps_constants: bool,
) -> Iterator[Run]:
    """Yield a run for each choice of ranks, depth and axis as far as they are not known."""
    indices, axis, constants = scatter.indices, scatter.operand(Role.AXIS), dict[Role, Array]()
    is_axis = indices is not None and axis is not None and indices.value is axis.value
    if scatter.index_array is not None and (keeps_constants or is_axis):
        constants[Role.INDICES] = scatter.index_array
    array = None if axis is None else scatter.facts.array(axis.value)
    if array is not None:
        constants[Role.AXIS] = array
    for shapes in islice(_with_ranks(random, scatter), _MOST_RANKS):
        for chosen in _with_axes(random, scatter, constants, len(shapes[Role.DATA])):
            axis_array = chosen.get(Role.AXIS)
            place = scatter.written_axis if axis_array is None else int(axis_array.reshape(-1)[0])
            fitted = _fitted(scatter, shapes, place)
            # Dimensions of one name are one size, unless that leaves none: names are but a memory.
            for known in (fitted, {role: tuple(map(_nameless, shape)) for role, shape in fitted.items()}):
                with suppress(Misfit):
                    yield _search(random, scatter, known, chosen, conditions, number)
                    number += 1
                    break


def _nameless(dim: Dim) -> Dim:
    return dim._replace(symbol=None) if isinstance(dim, Bounds) else dim


def _axes(scatter: ScatterNode, rank: int) -> list[int]:
    """Return the axes, of data of some rank, that the node may have."""
    written, excluded = scatter.written_axis, scatter.spec.axis.excluded if scatter.spec.axis else frozenset()
    axes = range(rank) if written is None else [written % rank] if -rank <= written < rank else []
    return [axis for axis in axes if axis not in excluded]


def _with_axes(
    random: np.random.Generator, scatter: ScatterNode, constants: dict[Role, Array], rank: int
) -> Iterator[dict[Role, Array]]:
    """Yield the constants with an axis, one after the other where it is not known."""
    operand = scatter.operand(Role.AXIS)
    if operand is None or Role.AXIS in constants:
        yield constants
        return
    type = dtype(operand.element_type or ELEMENT_TYPES[_USUAL[Role.AXIS]])
    for axis in random.permutation(_axes(scatter, rank)).tolist():
        yield {**constants, Role.AXIS: np.full((1,) * len(operand.shape or ()), axis, type)}


def _with_ranks(random: np.random.Generator, scatter: ScatterNode) -> Iterator[dict[Role, tuple[Dim, ...]]]:
    """Yield what is known of shapes, with ranks that fit each other where they are not known."""
    known = {Role.DATA: scatter.data_shape, Role.INDICES: scatter.indices_shape}
    known[Role.UPDATES] = scatter.updates.shape if scatter.updates else None
    layout, is_without = scatter.spec.layout, scatter.indices is None
    for ranks in product(*(_RANKS if shape is None else (len(shape),) for shape in known.values())):
        pairs = zip(known.items(), ranks, strict=True)
        full = {role: (UNKNOWN_DIM,) * rank if shape is None else shape for (role, shape), rank in pairs}
        data, indices, updates = ranks
        if layout is Layout.TUPLES:
            last = scatter.depth if scatter.depth is not None or not indices else full[Role.INDICES][-1]
            depths = random.permutation(range(1, data + 1)).tolist()
            if None not in known.values() or last == 0:  # what is known leaves no other one
                depths.append(0)
            for depth in depths if indices else ():
                rest = indices - 1 + data - depth
                fits = rest == updates or (scatter.spec.scalar_updates and not rest)
                if fits and last is not None and agree_dims(last, depth):
                    yield {**full, Role.INDICES: (*full[Role.INDICES][:-1], depth)}
        elif _axes(scatter, data) and (
            updates == data + indices - 1
            if layout is Layout.SLICES
            else updates == data and (is_without or indices == (data if layout is Layout.ELEMENTS else 1))
        ):
            yield full


def _fitted(
    scatter: ScatterNode, shapes: Mapping[Role, tuple[Dim, ...]], axis: int | None
) -> dict[Role, tuple[Dim, ...]]:
    """Return shapes with what each says of the others.

    The search tells dimensions by their sizes: what it cannot make all different it cannot change apart.
    """
    places = {role: [(role, place) for place in range(len(shapes.get(role, ())))] for role in _SHAPED}
    dims = {(role, place): dim for role, shape in shapes.items() for place, dim in enumerate(shape)}
    depth = shapes[Role.INDICES][-1] if scatter.spec.layout is Layout.TUPLES else 0
    assert isinstance(depth, int)
    data, indices, updates = places.values()
    equal, shorter = ties(scatter.spec, data, indices, updates, (axis or 0) % max(len(data), 1), depth)
    for _ in range(2):
        for one, other in equal:
            if agree_dims(dims[one], dims[other]):
                dims[one] = dims[other] = narrow_dim(dims[one], dims[other])
        for one, other in shorter:
            most, least = Bounds(0, highest(dims[other])), Bounds(lowest(dims[one]))
            if agree_dims(dims[one], most):
                dims[one], dims[other] = narrow_dim(dims[one], most), narrow_dim(dims[other], least)
    return {role: tuple([dims[place] for place in own]) for role, own in places.items()}


def _search(
    random: np.random.Generator,
    scatter: ScatterNode,
    shapes: Mapping[Role, tuple[Dim, ...]],
    constants: Mapping[Role, Array],
    conditions: Conditions,
    number: int,
) -> Run:
    """Search inputs as for a model of this node alone, whose output nobody needs."""
    operands = {role: one for role in _ROLES if (one := scatter.operand(role)) is not None}
    inputs: dict[int, GraphInput] = {}
    fixed: dict[int, Array] = {}
    for role, operand in operands.items():
        key, type = id(operand.value), operand.element_type or ELEMENT_TYPES[_USUAL[role]]
        shape = constants[role].shape if role in constants else shapes[role]
        if key in inputs:
            if not agree(inputs[key].shape, shape):
                raise Misfit
            inputs[key] = replace(inputs[key], shape=narrow(inputs[key].shape, shape))
            continue
        if role in constants:
            fixed[len(inputs)] = constants[role]
        inputs[key] = GraphInput(key, (role.value,), type, shape)
    lookup, ports = scatter.lookup, scatter.spec.ports[: len(scatter.node.inputs)]
    if scatter.wraps and Role.INDICES in constants:
        # The text may forbid negative ones, and every runtime takes them as meant.
        lookup = replace(lookup, spec=replace(scatter.spec, index_range=IndexRange.WRAPPING))
    keys = [id(operands[port.role].value) if port.role in operands else None for port in ports]
    step = Step(scatter.node, tuple(keys), (), lookup, ())
    plan = Plan(tuple(inputs.values()), (), (), False, {}, (step,))
    sizes = Sizes(
        [input.shape or () for input in inputs.values()],
        {size for array in fixed.values() for size in array.shape},
    )
    constraints = {scatter.node.scope: conditions}
    search = Search(Sketch("", plan, {}), sizes, random, constraints, number, fixed)
    next(sizes.attempts(is_blind=False))
    if sum(map(prod, sizes.shapes())) > MOST_ELEMENTS:
        raise TooLarge(
            f"with data of {show(scatter.data_shape)} there are more than {MOST_ELEMENTS} elements "
            f"to compute, too many; {Parameter('verify', 0)} converts it without"
        )
    try:
        run = search.run()
    except NoInputs:
        raise Misfit from None
    must_differ = Condition.UNIQUE in conditions
    unkept = [use for use in run.unkept if must_differ or (use.are_equal and not use.is_crowded)]
    if run.stuck or unkept:
        raise Misfit
    return run
