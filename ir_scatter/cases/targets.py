"""What a scatter node asks of its indices."""

from collections.abc import Sequence

import numpy as np

from ir_scatter.cases.terms import NO_TERM, Use
from ir_scatter.cases.uses import columns, holds_positions, is_within
from ir_scatter.graphs.nodes import by_role, site_of
from ir_scatter.graphs.plan import Step
from ir_scatter.ops import Lookup, targets
from ir_scatter.ops.plain.case import Array
from ir_scatter.ops.spec import IndexRange, Layout, Reduction, Role
from ir_scatter.site import Site


def scatter_use(
    step: Step, terms: Sequence[Array | None], arrays: Sequence[Array | None]
) -> list[tuple[int, Use]]:
    """Return the uses of axis and indices, and the numbers of these inputs.

    Nothing is said of inputs whose shapes do not fit each other: the node will refuse them.
    """
    assert isinstance(step.work, Lookup)
    site, operands = site_of(step), by_role(step.work, arrays)
    data, indices = operands.get(Role.DATA), operands.get(Role.INDICES)
    if data is None or Role.UPDATES not in operands:
        return []
    uses = []
    axis = axis_of(site, operands)
    number = site.spec.port_index(Role.AXIS)
    if number is not None and axis is not None and (of_axis := terms[number]) is not None:
        uses.append((number, _axis_use(step, of_axis, axis, data.ndim)))
        axis = axis if -data.ndim <= axis < data.ndim else 0
    number = site.spec.port_index(Role.INDICES)
    if indices is None or number is None or not holds_positions(indices):
        return uses
    of_indices = terms[number]
    if of_indices is None:
        return uses
    highs = _highs(site, operands, axis)
    if highs is not None:
        uses.append((number, _index_use(step, site, of_indices, indices, axis, highs)))
    return uses


def axis_of(site: Site, operands: dict[Role, Array]) -> int | None:
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


def _highs(site: Site, operands: dict[Role, Array], axis: int | None) -> list[int] | None:
    """Return the greatest legal coordinates; None where ranks do not fit."""
    data, indices, updates = (operands[role] for role in (Role.DATA, Role.INDICES, Role.UPDATES))
    layout = site.spec.layout
    if layout is Layout.TUPLES:
        if indices.ndim == 0 or indices.shape[-1] > data.ndim:
            return None
        return [dim - 1 for dim in data.shape[: indices.shape[-1]]]
    if axis is None or not -data.ndim <= axis < data.ndim:
        return None
    if layout is Layout.ELEMENTS and indices.ndim != data.ndim:
        return None
    size = data.shape[axis]
    if layout is Layout.SEQUENCE and site.attribute("mode") == "linear" and updates.ndim == data.ndim:
        size -= updates.shape[axis] - 1
    return [size - 1]


def _index_use(
    step: Step, site: Site, terms: Array, indices: Array, axis: int | None, highs: list[int]
) -> Use:
    layout, depth = site.spec.layout, len(highs)
    values, of_inputs = columns(indices, depth), columns(terms, depth)
    lows = np.zeros(depth, np.int64)
    wraps = site.spec.index_range is IndexRange.WRAPPING
    front = np.where(of_inputs == NO_TERM, -np.array(highs, np.int64) - 1, 0) if wraps else 0
    is_legal = bool(is_within(values, front, np.array(highs, np.int64)).all()) or depth == 0
    is_unique = site.reduction is Reduction.NONE and layout is not Layout.SEQUENCE
    is_repeated = False
    if is_unique and is_legal:
        limits = [high + 1 for high in highs]
        place = None if axis is None else axis % max(indices.ndim, 1)
        is_repeated = targets.repeats(layout, place, indices, limits, wraps=wraps) is not None
    lanes = _lanes(layout, axis, indices) if depth else np.zeros(0, np.int64)
    return Use(
        step.node.scope,
        of_inputs,
        values,
        lows,
        np.array(highs, np.int64),
        lanes,
        indices.shape,
        is_legal,
        is_unique,
        is_repeated,
    )


def _lanes(layout: Layout, axis: int | None, indices: Array) -> Array:
    """Number the targets that can meet each other: for one index per element, those of one lane."""
    if layout is Layout.TUPLES:
        return np.zeros(indices.size // max(indices.shape[-1], 1), np.int64)
    if layout is not Layout.ELEMENTS or axis is None:
        return np.zeros(indices.size, np.int64)
    others = [1 if number == axis % indices.ndim else dim for number, dim in enumerate(indices.shape)]
    grid = np.arange(int(np.prod(others))).reshape(others)
    return np.broadcast_to(grid, indices.shape).reshape(-1).copy()
