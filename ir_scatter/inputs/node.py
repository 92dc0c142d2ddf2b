"""Draws legal inputs for one scatter node, consistent with the shapes, types and constants of its model."""

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
from ir_scatter.inputs.constraints import Conditions, shape_ties
from ir_scatter.inputs.search import Run, Search
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.ops import index_values
from ir_scatter.ops.spec import IndexRange, Layout, Role

MOST_ELEMENTS = 1 << 24
"""Maximum elements of all inputs together: computing with them takes some hundred bytes per element."""

_RANKS = (2, 1, 3, 4, 0, 5, 6, 7, 8)
"""Ranks to try for inputs of unknown rank, in this order."""

_ROLES = (Role.AXIS, Role.INDICES, Role.DATA, Role.UPDATES)
"""If one tensor is used at several ports, the first of these roles decides its values."""

_ROLES_WITH_SHAPES = (Role.DATA, Role.INDICES, Role.UPDATES)
_DEFAULT_TYPES = {Role.DATA: "f32", Role.UPDATES: "f32", Role.INDICES: "i64", Role.AXIS: "i64"}
"""Element types for inputs of unknown type."""

_MOST_RANKS = 24
"""Maximum combinations of ranks that are tried."""

_TURNS = 2
"""Number of choices of ranks and axes among which the cases alternate."""


class Misfit(Exception):
    """The shapes of a node are inconsistent; the rules of `validate` report how."""


class InputsTooLarge(NoInputs):
    """The inputs would take too much memory."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeInputs:
    """The inputs of one node.

    Attributes:
        inputs: the arrays by port.
        arguments: the same arrays as keyword arguments of `evaluate`.
        data: the array of the data input.
    """

    inputs: tuple[Array | None, ...]
    arguments: Mapping[str, Any]
    data: Array


def draw_inputs(
    seed: int, scatter: ScatterNode, conditions: Conditions, cases: int, *, keeps_constants: bool
) -> Iterator[NodeInputs]:
    """Draw several cases of legal inputs that agree with the known shapes, types and constants of a node.

    Targets differ if the result would depend on their order. Three consecutive cases contain negative, first,
    last and repeated indices where these are legal. Constant indices are used in the first case, and with
    `keeps_constants` in all cases.

    Raises:
        Misfit: no consistent shapes were found.
        InputsTooLarge: the inputs would take too much memory.
        NoInputs: NumPy has no type for an input.
    """
    random, runs = np.random.default_rng(seed), list[Run]()
    for number in range(cases):
        if number == 0 or (number == 1 and not keeps_constants and scatter.index_array is not None):
            runs, keeps = [], keeps_constants or number == 0
            fitting = islice(
                _fitting_runs(random, scatter, conditions, number, keeps_constants=keeps), _TURNS
            )
        run = next(fitting, None)
        if run is None and not runs:
            raise Misfit
        if run is None:
            run = runs[number % len(runs)].redraw(number)
        else:
            runs.append(run)
        arrays_by_value = {
            input.key: array for input, array in zip(run.search.inputs, run.arrays, strict=True)
        }
        arrays = {
            role: arrays_by_value[id(operand.value)]
            for role in _ROLES
            if (operand := scatter.operand(role)) is not None
        }
        _, arguments = arguments_of(scatter, arrays)
        indices, data = arrays.get(Role.INDICES), arrays[Role.DATA]
        is_forbidden = scatter.spec.index_range is IndexRange.NON_NEGATIVE and scatter.wraps
        if indices is not None and is_forbidden and kind(indices) == "signed" and "axis" in arguments:
            # The reference computes the positions that runtimes use for negative indices.
            size = data.shape[int(np.asarray(arguments["axis"]).reshape(-1)[0])]
            arguments[Role.INDICES.value] = index_values.from_front(indices, size)
        ports = scatter.spec.ports[: len(scatter.node.inputs)]
        yield NodeInputs(tuple(arrays.get(port.role) for port in ports), arguments, data)


def _fitting_runs(
    random: np.random.Generator,
    scatter: ScatterNode,
    conditions: Conditions,
    number: int,
    *,
    keeps_constants: bool,
) -> Iterator[Run]:
    """Yield a run on legal inputs for each choice of unknown ranks, lengths of index tuples and axes."""
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
            axis_value = scatter.written_axis if axis_array is None else int(axis_array.reshape(-1)[0])
            fitted = _fitted(scatter, shapes, axis_value)
            # Dimensions of one symbol are equal, unless that is impossible: symbols may be outdated.
            for dims in (
                fitted,
                {role: tuple(map(_without_symbol, shape)) for role, shape in fitted.items()},
            ):
                with suppress(Misfit):
                    yield _search(random, scatter, dims, chosen, conditions, number)
                    number += 1
                    break


def _without_symbol(dim: Dim) -> Dim:
    return dim._replace(symbol=None) if isinstance(dim, Bounds) else dim


def _possible_axes(scatter: ScatterNode, rank: int) -> list[int]:
    """Return the axes, counted from the front, that the node may have for data of rank `rank`."""
    written, excluded = scatter.written_axis, scatter.spec.axis.excluded if scatter.spec.axis else frozenset()
    axes = range(rank) if written is None else [written % rank] if -rank <= written < rank else []
    return [axis for axis in axes if axis not in excluded]


def _with_axes(
    random: np.random.Generator, scatter: ScatterNode, constants: dict[Role, Array], rank: int
) -> Iterator[dict[Role, Array]]:
    """Yield the constants together with each possible axis, in random order.

    They are unchanged if the axis is constant or the node has no input for it.
    """
    operand = scatter.operand(Role.AXIS)
    if operand is None or Role.AXIS in constants:
        yield constants
        return
    type = dtype(operand.element_type or ELEMENT_TYPES[_DEFAULT_TYPES[Role.AXIS]])
    for axis in random.permutation(_possible_axes(scatter, rank)).tolist():
        yield {**constants, Role.AXIS: np.full((1,) * len(operand.shape or ()), axis, type)}


def _with_ranks(random: np.random.Generator, scatter: ScatterNode) -> Iterator[dict[Role, tuple[Dim, ...]]]:
    """Yield the shapes of data, indices and updates for each consistent choice of the unknown ranks."""
    shapes = {Role.DATA: scatter.data_shape, Role.INDICES: scatter.indices_shape}
    shapes[Role.UPDATES] = scatter.updates.shape if scatter.updates else None
    layout, has_no_indices = scatter.spec.layout, scatter.indices is None
    for ranks in product(*(_RANKS if shape is None else (len(shape),) for shape in shapes.values())):
        pairs = zip(shapes.items(), ranks, strict=True)
        full = {role: (UNKNOWN_DIM,) * rank if shape is None else shape for (role, shape), rank in pairs}
        data, indices, updates = ranks
        if layout is Layout.TUPLES:
            last = scatter.depth if scatter.depth is not None or not indices else full[Role.INDICES][-1]
            depths = random.permutation(range(1, data + 1)).tolist()
            if None not in shapes.values() or last == 0:  # tried last: nothing else fits known shapes
                depths.append(0)
            for depth in depths if indices else ():
                updates_rank = indices - 1 + data - depth
                fits = updates_rank == updates or (scatter.spec.scalar_updates and not updates_rank)
                if fits and last is not None and agree_dims(last, depth):
                    yield {**full, Role.INDICES: (*full[Role.INDICES][:-1], depth)}
        elif _possible_axes(scatter, data) and (
            updates == data + indices - 1
            if layout is Layout.SLICES
            else updates == data and (has_no_indices or indices == (data if layout is Layout.ELEMENTS else 1))
        ):
            yield full


def _fitted(
    scatter: ScatterNode, shapes: Mapping[Role, tuple[Dim, ...]], axis: int | None
) -> dict[Role, tuple[Dim, ...]]:
    """Return shapes in which dimensions that must be equal have the same size or bounds.

    The search identifies a dimension by its size. It cannot change a dimension whose bounds allow one size
    only, so such dimensions must fit before the search.
    """
    places = {
        role: [(role, position) for position in range(len(shapes.get(role, ())))]
        for role in _ROLES_WITH_SHAPES
    }
    dims = {(role, position): dim for role, shape in shapes.items() for position, dim in enumerate(shape)}
    depth = shapes[Role.INDICES][-1] if scatter.spec.layout is Layout.TUPLES else 0
    assert isinstance(depth, int)
    data, indices, updates = places.values()
    equal, shorter = shape_ties(scatter.spec, data, indices, updates, (axis or 0) % max(len(data), 1), depth)
    for _ in range(2):
        for first, second in equal:
            if agree_dims(dims[first], dims[second]):
                dims[first] = dims[second] = narrow_dim(dims[first], dims[second])
        for first, second in shorter:
            most, least = Bounds(0, highest(dims[second])), Bounds(lowest(dims[first]))
            if agree_dims(dims[first], most):
                dims[first], dims[second] = narrow_dim(dims[first], most), narrow_dim(dims[second], least)
    return {role: tuple([dims[position] for position in positions]) for role, positions in places.items()}


def _search(
    random: np.random.Generator,
    scatter: ScatterNode,
    shapes: Mapping[Role, tuple[Dim, ...]],
    constants: Mapping[Role, Array],
    conditions: Conditions,
    number: int,
) -> Run:
    """Search inputs for a model of this node alone."""
    operands = {role: operand for role in _ROLES if (operand := scatter.operand(role)) is not None}
    inputs: dict[int, GraphInput] = {}
    fixed: dict[int, Array] = {}
    for role, operand in operands.items():
        key, type = id(operand.value), operand.element_type or ELEMENT_TYPES[_DEFAULT_TYPES[role]]
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
        # The specification may forbid negative indices, but every runtime accepts them.
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
    next(sizes.attempts(has_unknown_shapes=False))
    if sum(map(prod, sizes.shapes())) > MOST_ELEMENTS:
        raise InputsTooLarge(
            f"with data of {show(scatter.data_shape)} there are more than {MOST_ELEMENTS} elements "
            f"to compute; {Parameter('verify', 0)} converts it without verification"
        )
    try:
        run = search.run()
    except NoInputs:
        raise Misfit from None
    must_differ = Condition.UNIQUE in conditions
    violated = [use for use in run.violated if must_differ or (use.are_equal and not use.is_crowded)]
    if run.stuck or violated:
        raise Misfit
    return run
