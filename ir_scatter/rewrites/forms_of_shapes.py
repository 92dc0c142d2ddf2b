"""Alternative forms of a node with other input shapes, for devices that misread or refuse the original.

as a column:     data [4], indices [2]             ->  data [4, 1], indices [2, 1]
one tuple:       indices [2], updates [3, 4]       ->  indices [1, 2], updates [1, 3, 4]
static depth:    indices [?, ?, ?], of two numbers ->  indices [?, ?, 2]
merged:          data [1, 1, 2, 3, 1, 1, 2]        ->  data [2, 3, 2]
axis found:      an axis that is an input          ->  the one that fits the shapes, or flat positions
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, static
from ir_scatter.ops.spec import Layout, OpSpec, Role
from ir_scatter.rewrites.base import View
from ir_scatter.rewrites.builder import I64, Builder
from ir_scatter.rewrites.refusals import Reason, Refusal

_MOST_POSITIONS = 1 << 16
"""Limit of elements of a constant with positions, because the file stores it."""
_DEPTH_OF_MERGED = 5
"""Limit of coordinates of tuples whose data is merged: these dimensions and one more stay."""


def _no_form(message: str) -> Refusal:
    return Refusal(Reason.NO_FORM, message)


def as_column(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Add a last dimension of 1 to 1-D data and the other inputs."""
    data, layout = view.data, view.scatter.spec.layout
    indices, updates = view.indices, view.updates
    if data.shape is None or len(data.shape) != 1 or updates.shape is None or indices.shape is None:
        return _no_form("data does not have rank 1")
    if layout is Layout.TUPLES and view.depth != 1:
        return _no_form("indices are not one coordinate each")
    operands = {Role.DATA: build.unsqueeze(data, [1], "data_column")}
    operands[Role.UPDATES] = build.unsqueeze(updates, [len(updates.shape)], "updates_column")
    if layout is Layout.ELEMENTS:
        operands[Role.INDICES] = build.unsqueeze(indices, [1], "indices_column")
    if view.scatter.spec.axis is not None and view.scatter.spec.axis.attribute is None:
        operands[Role.AXIS] = build.constant(0, "axis")
    elif view.scatter.spec.axis is not None and view.scatter.written_axis != 0:
        return _no_form("the axis is not 0")
    column = build.rebuilt(view.scatter, operands, view.reduction)
    return build.reshape(column, build.shape_of(data, "data_shape"), "data_restored", data.shape)


def one_tuple(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Convert a single index tuple to a list with one tuple."""
    indices, updates, data = view.indices.shape, view.updates.shape, view.data.shape
    if indices is None or len(indices) != 1 or updates is None or data is None or view.depth is None:
        return _no_form("indices are not a single tuple")
    operands = {Role.INDICES: build.unsqueeze(view.indices, [0], "indices_list")}
    if len(updates) == len(data) - view.depth:  # otherwise updates have that dimension already
        operands[Role.UPDATES] = build.unsqueeze(view.updates, [0], "updates_list")
    elif len(updates) != len(data) - view.depth + 1:
        return _no_form("updates do not have the rank of a slice")
    return build.rebuilt(view.scatter, operands, view.reduction)


def static_depth(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Reshape indices to a constant last dimension, which follows from the ranks of the inputs."""
    indices = view.indices.shape
    if indices is None or not indices or isinstance(indices[-1], int) or view.depth is None:
        return _no_form("the number of coordinates is static, or unknown")
    rank = len(indices)
    dims = build.shape_of(view.indices, "indices_shape")
    begin, end = build.constant([0], "begin"), build.constant([-1], "last")
    leading = build.slice(dims, begin, end, [0], "leading_dims", (rank - 1,))
    depth = build.constant([view.depth], "depth")
    target = build.concat([leading, depth], 0, "tuples_shape", (rank,))
    tuples = build.reshape(view.indices, target, "tuples", (*indices[:-1], view.depth))
    return build.rebuilt(view.scatter, {Role.INDICES: tuples}, view.reduction)


def merged(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Merge dimensions of data to at most three, or six for index tuples."""
    data, updates, indices = (static(value.shape) for value in (view.data, view.updates, view.indices))
    if data is None or updates is None or indices is None or len(data) <= 3:
        return _no_form("shapes are dynamic, or there is nothing to merge")
    if 0 in data or 0 in updates or 0 in indices:
        return _no_form("an input is empty")
    layout, axis, operands = view.scatter.spec.layout, view.scatter.axis, dict[Role, Value]()
    if layout is Layout.TUPLES:
        depth = indices[-1]
        if depth > _DEPTH_OF_MERGED or len(data) <= depth + 1:
            return _no_form("the index tuples are too long")
        rest = prod(data[depth:])
        sizes = [*data[:depth], rest]
        operands[Role.INDICES] = build.reshape(view.indices, [prod(indices[:-1]), depth], "tuples")
        new_updates = [prod(indices[:-1]), rest]
    elif axis is None:
        return _no_form("the axis is not constant")
    else:
        before, after = prod(data[:axis]), prod(data[axis + 1 :])
        if layout is Layout.ELEMENTS and any(
            updates[place] != size for place, size in enumerate(data) if place != axis
        ):
            return _flat(view, build, data, updates, None)
        count = updates[axis] if layout is Layout.ELEMENTS else prod(indices)
        sizes, new_updates = [before, data[axis], after], [before, count, after]
        new_indices = new_updates if layout is Layout.ELEMENTS else [count]
        operands[Role.INDICES] = build.reshape(view.indices, new_indices, "indices_merged")
        operands[Role.AXIS] = build.constant(1, "axis")
        if view.scatter.spec.axis is None or view.scatter.spec.axis.attribute is not None:
            return _no_form("the axis is an attribute")
    operands[Role.DATA] = build.reshape(view.data, sizes, "data_merged")
    operands[Role.UPDATES] = build.reshape(view.updates, new_updates, "updates_merged")
    result = build.rebuilt(view.scatter, operands, view.reduction)
    return build.reshape(result, data, "data_restored")


def axis_found(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Replace an axis that is an input by the only axis that fits the shapes, or use flat positions.

    If several axes fit, constants for the axis of the input are selected from tables at run time.
    """
    scatter = view.scatter
    if (
        scatter.spec.axis is None
        or scatter.spec.axis.attribute is not None
        or scatter.written_axis is not None
    ):
        return _no_form("the axis is a constant")
    data, updates, indices = (static(value.shape) for value in (view.data, view.updates, view.indices))
    if data is None or updates is None or indices is None:
        return _no_form("shapes are dynamic, and the axis is not constant")
    is_slices = scatter.spec.layout is Layout.SLICES
    fitting = []
    for axis in range(len(data)):
        if is_slices:
            fits = updates == (*data[:axis], *indices, *data[axis + 1 :])
        else:
            fits = all(indices[place] <= size for place, size in enumerate(data) if place != axis)
        fitting += [axis] if fits else []
    if len(fitting) == 1:
        constant = build.constant(fitting[0], "axis")
        return build.rebuilt(scatter, {Role.AXIS: constant}, view.reduction)
    if not fitting or (is_slices and len(indices) != 1) or 0 in data or 0 in updates:
        return _no_form("the axis is not constant")
    return _flat(view, build, data, updates, view.axis_value(build))


def _flat(
    view: View, build: Builder, data: Sequence[int], updates: Sequence[int], axis: Value | None
) -> Value | Refusal:
    """Return the node on flattened data, with a flat position for each update.

    The position of an element of updates is a constant except for the coordinate on the axis, which its index
    replaces: position + (index - coordinate on the axis) * stride of the axis.
    """
    if prod(updates) * (len(data) + 1) > _MOST_POSITIONS:
        return _no_form("updates have too many elements for a table of positions")
    strides = [prod(data[place + 1 :]) for place in range(len(data))]
    grid = np.indices(tuple(updates))
    positions = np.tensordot(strides, grid, 1).reshape(-1)
    coordinates = grid.reshape(len(data), -1)
    axis = axis if axis is not None else build.constant(view.scatter.axis, "axis")
    place = build.gather(build.constant(coordinates, "coordinates"), axis, 0, "coordinate", (positions.size,))
    stride = build.gather(build.constant(strides, "strides"), axis, 0, "stride", ())
    size = build.gather(build.constant([*data], "sizes"), axis, 0, "size", ())
    indices = build.reshape(
        build.convert(view.indices, I64, "indices_i64"), [-1], "indices_flat", (UNKNOWN_DIM,)
    )
    if view.scatter.spec.layout is Layout.SLICES:
        indices = build.gather(indices, place, 0, "index_of_each", (positions.size,))
    if view.may_be_negative:
        indices = build.from_front(indices, size)
    moved = build.binary("Subtract", indices, place, "indices_moved")
    scaled = build.binary("Multiply", moved, stride, "indices_scaled")
    flat = build.binary("Add", build.constant(positions, "positions"), scaled, "flat_positions")
    operands = {
        Role.DATA: build.reshape(view.data, [prod(data)], "data_flat"),
        Role.INDICES: flat,
        Role.UPDATES: build.reshape(view.updates, [prod(updates)], "updates_flat"),
        Role.AXIS: build.constant(0, "flat_axis"),
    }
    result = build.rebuilt(view.scatter, operands, view.reduction)
    return build.reshape(result, data, "data_restored")
