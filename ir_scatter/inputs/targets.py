"""What a scatter node asks of its indices."""

import numpy as np

from ir_scatter.analysis.interpreter import Step
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.shapes import Shape
from ir_scatter.evaluate.model import by_role, site_of
from ir_scatter.inputs.asked import Asked, is_unclear
from ir_scatter.inputs.cells import Traced
from ir_scatter.inputs.limits import sizes_of
from ir_scatter.inputs.terms import NO_TERM, Constraint, Use
from ir_scatter.inputs.uses import columns, holds_positions, is_within
from ir_scatter.ops import targets
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import IndexRange, Layout, Reduction, Role

_FREE = Constraint()


def scatter_use(asked: Asked, constraint: Constraint = _FREE) -> list[tuple[int, Use]]:
    """Return the uses of axis and indices, and the numbers of these inputs.

    Nothing is said of inputs whose shapes do not fit each other: the node will refuse them.

    Args:
        asked: the node.
        constraint: what its indices must be as well.
    """
    step = asked.step
    assert isinstance(step.work, Lookup)
    site, operands = site_of(step), by_role(step.work, asked.arrays)
    number = site.spec.port_index(Role.DATA)
    if number is None or number >= len(asked.cells) or asked.cells[number] is None:
        return []
    data, uses = asked.shape(number), []
    axis = axis_of(site, operands)
    number = site.spec.port_index(Role.AXIS)
    if number is not None and axis is not None and data is not None:
        cell = asked.cells[number]
        if isinstance(cell, Traced) and cell.terms is not None:
            uses.append((number, _axis_use(step, cell.terms, axis, len(data))))
        axis = axis if -len(data) <= axis < len(data) else 0
    number = site.spec.port_index(Role.INDICES)
    cell = asked.cells[number] if number is not None and number < len(asked.cells) else None
    if number is None or not isinstance(cell, Traced) or not holds_positions(cell.array):
        return uses
    highs = _highs(site, data, cell.array, operands.get(Role.UPDATES), axis)
    if highs is not None:
        uses.append((number, _index_use(step, site, cell, axis, highs, constraint)))
    return uses


def axis_of(site: ScatterNode, operands: dict[Role, Array]) -> int | None:
    """Return the axis as it is given, None if there is none."""
    source = site.spec.axis
    if source is None:
        return None
    if source.attribute is not None:
        return int(site.attribute(source.attribute))
    array = operands.get(Role.AXIS)
    if array is None or array.size != 1 or not holds_positions(array):
        return None
    return int(array.reshape(-1)[0])


def _axis_use(step: Step, terms: Array, axis: int, rank: int) -> Use:
    lows, highs = np.array([0]), np.array([rank - 1])
    is_legal = -rank <= axis < rank
    values, lanes = np.array([[axis]]), np.zeros(1, np.int64)
    return Use(step.node.scope, terms.reshape(1, 1), values, lows, highs, lanes, (), is_legal)


def _highs(
    site: ScatterNode, data: Shape, indices: Array, updates: Array | None, axis: int | None
) -> list[int] | None:
    """Return the greatest legal coordinates; None where ranks do not fit."""
    layout = site.spec.layout
    depth = indices.shape[-1] if layout is Layout.TUPLES and indices.ndim else 1
    if data is None:
        return [0] * depth
    if layout is Layout.TUPLES:
        if indices.ndim == 0 or depth > len(data):
            return None
        return sizes_of(data[:depth], less=1)
    if axis is None or not -len(data) <= axis < len(data):
        return None
    if layout is Layout.ELEMENTS and indices.ndim != len(data):
        return None
    (size,) = sizes_of((data[axis],))
    is_linear = layout is Layout.SEQUENCE and site.attribute("mode") == "linear"
    if is_linear and updates is not None and updates.ndim == len(data):
        size -= updates.shape[axis] - 1
    return [size - 1]


def _index_use(
    step: Step, site: ScatterNode, cell: Traced, axis: int | None, highs: list[int], constraint: Constraint
) -> Use:
    layout, depth, indices = site.spec.layout, len(highs), cell.array
    terms = np.full(indices.shape, NO_TERM) if cell.terms is None else cell.terms
    values, of_inputs = columns(indices, depth), columns(terms, depth)
    is_documented = step.node.opset in site.spec.opsets
    wraps = site.spec.index_range is IndexRange.WRAPPING and is_documented and not constraint.are_non_negative
    front = -np.array(highs, np.int64) - 1 if wraps else 0
    is_within_range = is_within(values, front, np.array(highs, np.int64))
    is_left_alone = (of_inputs == NO_TERM) & (cell.is_opaque or not cell.is_input)
    is_legal = bool((is_within_range | is_left_alone).all()) or depth == 0
    is_unique = site.reduction is Reduction.NONE or constraint.are_unique
    is_unique = is_unique and layout is not Layout.SEQUENCE
    is_repeated = False
    if is_unique and bool(is_within_range.all()) and not is_unclear(cell):
        limits = [high + 1 for high in highs]
        place = None if axis is None else axis % max(indices.ndim, 1)
        is_repeated = targets.repeats(layout, place, indices, limits, wraps=wraps) is not None
    return Use(
        step.node.scope,
        of_inputs,
        values,
        np.zeros(depth, np.int64),
        np.array(highs, np.int64),
        lanes_of(layout, axis, indices) if depth else np.zeros(0, np.int64),
        indices.shape,
        is_legal,
        is_unique,
        is_repeated,
        is_scatter=True,
        wraps=wraps,
        may_repeat=site.reduction not in {None, Reduction.NONE} and not constraint.are_unique,
        are_equal=constraint.are_equal and layout is Layout.ELEMENTS,
    )


def lanes_of(layout: Layout, axis: int | None, indices: Array) -> Array:
    """Number the targets that can meet each other: for one index per element, those of one lane."""
    if layout is Layout.TUPLES:
        return np.zeros(indices.size // max(indices.shape[-1], 1), np.int64)
    if layout is not Layout.ELEMENTS or axis is None:
        return np.zeros(indices.size, np.int64)
    others = [1 if number == axis % indices.ndim else dim for number, dim in enumerate(indices.shape)]
    grid = np.arange(int(np.prod(others))).reshape(others)
    return np.broadcast_to(grid, indices.shape).reshape(-1).copy()
