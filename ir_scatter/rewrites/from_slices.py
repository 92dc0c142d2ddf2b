"""Rewrites of ScatterUpdate: to elements, to tuples, or to one-dimensional indices.

slices-flattened: Indices of any rank become one list, and the axis non-negative: the form that every runtime
accepts. Updates are reshaped, so that the dimensions of indices become one.

    indices [[3, 0], [1, 2]], updates [.., 2, 2, ..]   ->   indices [3, 0, 1, 2], updates [.., 4, ..]

slices-to-elements: Every element of an updated slice gets its own index. Indices are flattened, laid along
the axis and broadcast along all other axes.

    indices [3, 0] on axis 0, updates [2, 3]   ->   [[3, 3, 3], [0, 0, 0]]

slices-to-tuples: Every index becomes a tuple of one coordinate on axis 0. For any other axis, data and
updates are transposed to bring the axis to the front, and the result is transposed back.

    indices [3, 0]   ->   [[3], [0]]
"""

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, Shape, element_count, static
from ir_scatter.ops import scatter_openvino as openvino_ops
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites.base import View, between
from ir_scatter.rewrites.builder import I64, Builder


def _shape_with(shape: Shape, axis: int | None, dim: Dim) -> Shape:
    """Return a shape with the size on one axis replaced; None if shape or axis is unknown."""
    return None if shape is None or axis is None else (*shape[:axis], dim, *shape[axis + 1 :])


def _flattened(view: View, build: Builder, target: OpSpec) -> Value:
    indices, updates, axis = _flat_indices(view, build), _flat_updates(view, build), view.scatter.axis
    new_axis = view.given_axis if axis is None or axis == view.scatter.written_axis else axis
    return build.scatter(target, view.data, indices, updates, axis=new_axis)


def _is_flat(view: View, _: OpSpec) -> bool:
    return view.indices.shape is not None and len(view.indices.shape) == 1


def _flat_indices(view: View, build: Builder) -> Value:
    return build.reshape(view.indices, [-1], "indices_flat")


def _flat_updates(view: View, build: Builder) -> Value:
    """Return updates in which the dimensions of indices are joined into one, at the axis."""
    shape, axis, updates = view.indices.shape, view.scatter.axis, view.updates
    if shape is not None and len(shape) == 1:
        return updates
    if shape == () and axis is not None:
        return build.unsqueeze(updates, [axis], "updates_unsqueezed")
    length = build.count_of(_flat_indices(view, build), "count")
    dims = build.shape_of(view.data, "data_shape")
    count = element_count(shape)
    flat_shape = _shape_with(view.data.shape, axis, UNKNOWN_DIM if count is None else count)
    whole = static(flat_shape)
    if whole is not None:
        return build.reshape(updates, whole, "updates_flat", flat_shape)
    target = build.select(view.axis_mask(build), length, dims, "updates_flat_shape")
    return build.reshape(updates, target, "updates_flat", flat_shape)


def _to_elements(view: View, build: Builder, target: OpSpec) -> Value:
    updates, axis, shape = _flat_updates(view, build), view.scatter.axis, view.data.shape
    indices, type = view.indices, view.indices.element_type
    # OpenVINO broadcasts constants bytewise, which is wrong for types below 8 bits
    if type is not None and type.bits < 8:
        indices = build.convert(indices, I64, "indices_i64")
    if axis is None or shape is None:  # indices along the axis, with 1 on all other axes
        column = build.along(view.axis_mask(build), indices, "indices_column")
    elif _is_flat(view, target):
        other_axes = [number for number in range(len(shape)) if number != axis]
        column = build.unsqueeze(indices, other_axes, "indices_unsqueezed")
    else:
        dims = [-1 if number == axis else 1 for number in range(len(shape))]
        column = build.reshape(indices, dims, "indices_column")
    repeated_shape = _shape_with(shape, axis, UNKNOWN_DIM) if updates.shape is None else updates.shape
    indices = build.repeated_indices(column, updates, "indices_repeated", repeated_shape)
    return build.scatter(target, view.data, indices, updates, axis=view.given_axis)


def _to_tuples(view: View, build: Builder, target: OpSpec) -> Value:
    axis, shape, index_shape = view.scatter.axis, view.data.shape, view.indices.shape
    data, indices, updates = view.data, view.indices, view.updates
    if view.writes_nothing and shape and updates.shape:  # without elements, coordinates do not matter
        return build.scatter(target, data, *build.empty_tuples(updates, updates, len(shape)))
    is_on_first = axis == 0 or (axis is None and view.scatter.written_axis == 0)
    if is_on_first and index_shape is not None:
        return _scattered(build, target, data, indices, updates)
    if axis is not None and shape is not None and index_shape is not None:
        rank, width = len(shape), len(index_shape)
        front = [axis, *range(axis), *range(axis + 1, rank)]
        of_updates = [*range(axis, axis + width), *range(axis), *range(axis + width, rank + width - 1)]
        updates = build.transpose(updates, build.constant(of_updates, "axis_first"), "updates_moved")
        data = build.transpose(data, build.constant(front, "axis_first"), "data_moved")
        result = _scattered(build, target, data, indices, updates)
        back = build.constant(sorted(range(rank), key=front.__getitem__), "axis_back")
        return build.transpose(result, back, "moved_back", shape)
    updates, indices = _flat_updates(view, build), _flat_indices(view, build)
    if is_on_first:
        return _scattered(build, target, data, indices, updates)
    # axis, 0, 1, ..., axis - 1, axis + 1, ...: the axis comes first.
    places, place, unit = view.positions(build), view.axis_value(build), build.constant(1, "one")
    before = build.binary("Subtract", places, unit, "one_before")
    is_behind = build.binary("Less", place, places, "is_behind_axis")
    rest = build.select(is_behind, places, before, "others")
    order = build.select(build.is_first(places), place, rest, "front_order")
    data = build.transpose(data, order, "data_moved")
    result = _scattered(build, target, data, indices, build.transpose(updates, order, "updates_moved"))
    # 1, 2, ..., axis, 0, axis + 1, ...: the first axis goes back to its place.
    after = build.binary("Add", places, unit, "one_after")
    is_before = build.binary("Less", places, place, "is_before_axis")
    rest = build.select(is_before, after, places, "others")
    is_axis = build.binary("Equal", places, place, "is_axis")
    back = build.select(is_axis, build.constant(0, "zero"), rest, "back_order")
    return build.transpose(result, back, "moved_back", shape)


def _scattered(build: Builder, target: OpSpec, data: Value, indices: Value, updates: Value) -> Value:
    indices = build.fitting_indices(indices, target)
    rank = 1 if indices.shape is None else len(indices.shape)
    return build.scatter(target, data, build.unsqueeze(indices, [rank], "indices_unsqueezed"), updates)


REWRITES = (
    *between(
        "slices-flattened",
        [(openvino_ops.SCATTER_UPDATE, openvino_ops.SCATTER_UPDATE)],
        _flattened,
        is_done=_is_flat,
        conditions="indices that are not 1-D become 1-D",
    ),
    *between(
        "slices-to-elements",
        [(openvino_ops.SCATTER_UPDATE, openvino_ops.SCATTER_ELEMENTS_UPDATE)],
        _to_elements,
        conditions="any axis, indices of any rank, any shape",
    ),
    *between(
        "slices-to-tuples",
        [(openvino_ops.SCATTER_UPDATE, openvino_ops.SCATTER_ND_UPDATE)],
        _to_tuples,
        conditions="any axis, indices of any rank, any shape",
    ),
)
