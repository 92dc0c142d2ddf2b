"""What becomes of nodes that write whole slices: elements, tuples, or slices named by one list.

slices-flattened: Indices of any rank become one list, the form that every runtime takes.
data[.., indices, ..] = updates is the same with indices flattened and updates reshaped: the dimensions of
indices become one.

slices-to-elements: Every element of an updated slice gets an index of its own. Indices are flattened, laid
along the axis and repeated along all others.

slices-to-tuples: Every index becomes a tuple of one coordinate, on the axis moved to the front. On axis 0
indices get a last dimension of 1 and that is all. On any other axis data and updates are transposed, and
the result is transposed back.
"""

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, element_count
from ir_scatter.ops import scatter_openvino as openvino_ops
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites.base import BY_SIGNATURE, View, between
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.pieces import (
    along,
    axis_mask,
    axis_of,
    count_of,
    fitting_indices,
    is_first,
    positions,
    shape_with,
)


def _flattened(view: View, build: Builder, target: OpSpec) -> Value:
    indices, updates = _flat_indices(view, build), _flat_updates(view, build)
    return build.scatter(target, view.data, indices, updates, axis=view.given_axis)


def _is_flat(view: View, _: OpSpec) -> bool:
    shape = view.indices.shape
    return shape is not None and len(shape) == 1


def _flat_indices(view: View, build: Builder) -> Value:
    return build.reshape(view.indices, [-1], "indices_flat")


def _flat_updates(view: View, build: Builder) -> Value:
    """Return updates with one dimension, on the axis, in the place of those of indices."""
    shape, axis, updates = view.indices.shape, view.site.axis, view.updates
    if shape is not None and len(shape) == 1:
        return updates
    if shape == () and axis is not None:
        return build.unsqueeze(updates, [axis], "updates_unsqueezed")
    length = count_of(build, _flat_indices(view, build), "count")
    dims = build.shape_of(view.data, "data_shape")
    target = build.select(axis_mask(view, build), length, dims, "updates_flat_shape")
    count = element_count(shape)
    known = shape_with(view.data.shape, axis, UNKNOWN_DIM if count is None else count)
    return build.reshape(updates, target, "updates_flat", known)


def _to_elements(view: View, build: Builder, target: OpSpec) -> Value:
    updates, column = _flat_updates(view, build), _column(view, build)
    shape = updates.shape
    if shape is None:
        shape = shape_with(view.data.shape, view.site.axis, UNKNOWN_DIM)
    indices = build.broadcast(column, build.shape_of(updates, "updates_shape"), "indices_repeated", shape)
    return build.scatter(target, view.data, indices, updates, axis=view.given_axis)


def _column(view: View, build: Builder) -> Value:
    """Return the indices along the axis, with 1 on all other axes."""
    axis, shape = view.site.axis, view.data.shape
    if axis is None or shape is None:
        return along(build, axis_mask(view, build), view.indices, "indices_column")
    if view.indices.shape is not None and len(view.indices.shape) == 1:
        others = [number for number in range(len(shape)) if number != axis]
        return build.unsqueeze(view.indices, others, "indices_unsqueezed")
    target = [-1 if number == axis else 1 for number in range(len(shape))]
    return build.reshape(view.indices, target, "indices_column")


def _to_tuples(view: View, build: Builder, target: OpSpec) -> Value:
    axis, shape, index_shape = view.site.axis, view.data.shape, view.indices.shape
    is_on_first = axis == 0 or (axis is None and view.site.written_axis == 0)
    if is_on_first and index_shape is not None:
        return _scattered(build, target, view.data, view.indices, view.updates)
    if axis is None or shape is None or index_shape is None:
        return _to_tuples_on_any_axis(view, build, target, is_on_first=is_on_first)
    rank, width = len(shape), len(index_shape)
    order = [axis, *range(axis), *range(axis + 1, rank)]
    back = sorted(range(rank), key=order.__getitem__)
    of_updates = [*range(axis, axis + width), *range(axis), *range(axis + width, rank + width - 1)]
    updates = build.transpose(view.updates, build.constant(of_updates, "axis_first"), "updates_moved")
    data = build.transpose(view.data, build.constant(order, "axis_first"), "data_moved")
    found = _scattered(build, target, data, view.indices, updates)
    return build.transpose(found, build.constant(back, "axis_back"), "moved_back", shape)


def _to_tuples_on_any_axis(view: View, build: Builder, target: OpSpec, *, is_on_first: bool) -> Value:
    """Scatter between two transpositions whose orders are computed when the model runs."""
    updates, indices = _flat_updates(view, build), _flat_indices(view, build)
    if is_on_first:
        return _scattered(build, target, view.data, indices, updates)
    order = _front_order(view, build)
    data = build.transpose(view.data, order, "data_moved")
    found = _scattered(build, target, data, indices, build.transpose(updates, order, "updates_moved"))
    return build.transpose(found, _back_order(view, build), "moved_back", view.data.shape)


def _scattered(build: Builder, target: OpSpec, data: Value, indices: Value, updates: Value) -> Value:
    indices = fitting_indices(build, indices, target)
    rank = 1 if indices.shape is None else len(indices.shape)
    return build.scatter(target, data, build.unsqueeze(indices, [rank], "indices_unsqueezed"), updates)


def _front_order(view: View, build: Builder) -> Value:
    """Return axis, 0, 1, ..., axis - 1, axis + 1, ...: the axis comes first."""
    places, axis = positions(view, build), axis_of(view, build)
    before = build.binary("Subtract", places, build.constant(1, "one"), "one_before")
    is_behind = build.binary("Less", axis, places, "is_behind_axis")
    rest = build.select(is_behind, places, before, "others")
    return build.select(is_first(build, places), axis, rest, "front_order")


def _back_order(view: View, build: Builder) -> Value:
    """Return 1, 2, ..., axis, 0, axis + 1, ...: the first axis goes back to its place."""
    places, axis = positions(view, build), axis_of(view, build)
    after = build.binary("Add", places, build.constant(1, "one"), "one_after")
    is_before = build.binary("Less", places, axis, "is_before_axis")
    rest = build.select(is_before, after, places, "others")
    is_axis = build.binary("Equal", places, axis, "is_axis")
    return build.select(is_axis, build.constant(0, "zero"), rest, "back_order")


REWRITES = (
    *between(
        "slices-flattened",
        [(openvino_ops.SCATTER_UPDATE, openvino_ops.SCATTER_UPDATE)],
        _flattened,
        is_done=_is_flat,
        reads=BY_SIGNATURE,
        conditions="indices that are not 1-D become 1-D",
    ),
    *between(
        "slices-to-elements",
        [(openvino_ops.SCATTER_UPDATE, openvino_ops.SCATTER_ELEMENTS_UPDATE)],
        _to_elements,
        reads=BY_SIGNATURE,
        conditions="any axis, indices of any rank, any shape",
    ),
    *between(
        "slices-to-tuples",
        [(openvino_ops.SCATTER_UPDATE, openvino_ops.SCATTER_ND_UPDATE)],
        _to_tuples,
        reads=BY_SIGNATURE,
        conditions="any axis, indices of any rank, any shape",
    ),
)
