"""Legal inputs for one scatter node as it stands in its model: those of a model that has no other node."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from ir_scatter.analysis.interpreter import Plan, Step
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.dataflow import GraphInput, GraphOutput
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.errors import NoInputs
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim, Shape, agree, lowest, narrow, show
from ir_scatter.core.tensors import Constant
from ir_scatter.evaluate.model import Program, arguments_of
from ir_scatter.inputs.constraints import IndexConstraint
from ir_scatter.inputs.search import Search
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.ops import targets
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.spec import IndexRange, Layout, Role

MOST_ELEMENTS = 1 << 24
"""Inputs with more of them are not made: what is computed from them takes some hundred bytes for each."""

_RANKS = (2, 1, 3, 4, 0, 5, 6, 7, 8)
"""Ranks that are tried where none is known."""

_TRIES = 8
_MOST_RANKS = 24
"""So many choices of ranks that fit each other are tried."""


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
            full = _with_equal_dims(site, shapes, axis) if constraint.are_equal else shapes
            are_kept = constraint.are_unique and Role.INDICES in chosen
            for more in range(_TRIES if are_kept else 1):  # with some sizes they may repeat
                smallest = 1 + (number + 1) % 2 + more
                found = _drawn(random, site, full, chosen, constraint, number, smallest)
                if found is not None:
                    return _given(site, found)
    raise Misfit


def _constants(site: ScatterNode, *, keeps_constants: bool) -> dict[Role, Array]:
    found: dict[Role, Array] = {}
    if keeps_constants and site.index_array is not None:
        found[Role.INDICES] = site.index_array
    axis = site.operand(Role.AXIS)
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


def _with_equal_dims(
    site: ScatterNode, shapes: dict[Role, tuple[Dim, ...]], axis: int | None
) -> dict[Role, tuple[Dim, ...]]:
    """Return shapes whose dimensions are the same but on the axis."""
    rank = len(shapes[Role.DATA])
    if site.spec.layout is not Layout.ELEMENTS or axis is None:
        return shapes
    found = {role: list(shape) for role, shape in shapes.items()}
    for place in set(range(rank)) - {axis % rank}:
        dims = [shape[place] for shape in found.values()]
        known = next((dim for dim in dims if isinstance(dim, int)), Bounds(1, None, f"dimension {place}"))
        for shape in found.values():
            shape[place] = known if not isinstance(shape[place], int) else shape[place]
    return {role: tuple(shape) for role, shape in found.items()}


def _drawn(
    random: np.random.Generator,
    site: ScatterNode,
    shapes: dict[Role, tuple[Dim, ...]],
    constants: dict[Role, Array],
    constraint: IndexConstraint,
    number: int,
    smallest: int,
) -> dict[Role, Array] | None:
    """Return the inputs by role, None if none of these shapes were found; what is one value is one array."""
    operands = {one.port.role: one for one in map(site.operand, Role) if one is not None}
    keys = {role: id(one.value) for role, one in operands.items()}
    whole: dict[int, Shape] = {}
    for role, key in keys.items():
        shape = shapes.get(role, (1,) * len(operands[role].shape or ()))
        if not agree(whole.get(key), shape):
            return None
        whole[key] = narrow(whole.get(key), shape)
    _demand_memory(site, [whole[key] for role, key in keys.items() if role in shapes])
    inputs: dict[int, GraphInput] = {}
    for role, key in keys.items():
        usual = ELEMENT_TYPES["f32" if role in {Role.DATA, Role.UPDATES} else "i64"]
        inputs.setdefault(
            key, GraphInput(key, (role.value,), operands[role].element_type or usual, whole[key])
        )
    stored: dict[Hashable, Constant] = {}
    for role, array in constants.items():
        load = partial(_legal, site, array) if role is Role.INDICES else partial(np.asarray, array)
        stored[keys[role]] = Constant(Location(""), operands[role].element_type, array.shape, load)
    free = [input for key, input in inputs.items() if key not in stored]
    places = {one.index: id(one.value) for one in operands.values()}
    step = Step(site.node, tuple(map(places.get, range(len(site.spec.ports)))), ("output",), site.lookup, ())
    output = GraphOutput("output", "output", None, None)
    plan = Plan(tuple(free), (), (output,), is_body=False, constants=stored, steps=(step,))
    avoided = {size for array in constants.values() for size in array.shape}
    sizes = Sizes([input.shape or () for input in free], avoided, smallest)
    search = Search(Program("", plan, {}), free, sizes, random, {site.node.scope: constraint})
    try:
        run = search.run()
    except NoInputs:
        return None
    run = search.with_features(run, random, number)
    drawn = {input.key: array for input, array in zip(free, run.arrays, strict=True)}
    drawn |= {keys[role]: array for role, array in constants.items()}
    arrays = {role: drawn[key] for role, key in keys.items()}
    is_unkept = constraint.are_unique and (run.unkept or _repeat(site, arrays))
    return None if is_unkept else arrays


def _demand_memory(site: ScatterNode, shapes: Sequence[Shape]) -> None:
    """Demand memory for all that is computed from the inputs."""
    if sum(prod(max(lowest(dim), 1) for dim in shape or ()) for shape in shapes) > MOST_ELEMENTS:
        raise TooLarge(
            f"with data of {show(site.data_shape)} there are more than {MOST_ELEMENTS} elements to compute, "
            "too many; --verify 0 converts it without"
        )


def _legal(site: ScatterNode, array: Array) -> Array:
    """Return indices that the text allows for those that it forbids and runtimes take as meant."""
    is_forbidden = site.spec.index_range is IndexRange.NON_NEGATIVE and array.dtype.kind == "i"
    return np.where(array < 0, -1 - array, array) if is_forbidden else array


def _repeat(site: ScatterNode, arrays: Mapping[Role, Array]) -> bool:
    """Tell whether indices name a target again."""
    layout, data, indices = site.spec.layout, arrays[Role.DATA], arrays[Role.INDICES]
    axis = None if Role.AXIS not in arrays else int(arrays[Role.AXIS].reshape(-1)[0])
    axis = site.written_axis if axis is None else axis
    place = None if axis is None else axis % max(data.ndim, 1)
    limits = targets.sizes(layout, data.shape, place, indices.shape)
    return targets.repeats(layout, place, indices, limits, wraps=True) is not None


def _given(site: ScatterNode, arrays: Mapping[Role, Array]) -> Given:
    """Put arrays in the order of the node's inputs."""
    _, arguments = arguments_of(site, dict(arrays))
    spec, indices = site.spec, arrays.get(Role.INDICES)
    is_forbidden = spec.index_range is IndexRange.NON_NEGATIVE and site.wraps
    if indices is not None and is_forbidden and indices.dtype.kind == "i" and "axis" in arguments:
        # The text forbids them and every runtime takes them as meant: so does what must come out.
        size = arrays[Role.DATA].shape[int(np.asarray(arguments["axis"]).reshape(-1)[0])]
        arguments[Role.INDICES.value] = targets.from_front(indices, size)
    inputs = tuple(arrays.get(port.role) for port in spec.ports[: len(site.node.inputs)])
    return Given(inputs, arguments, arrays[Role.DATA])
