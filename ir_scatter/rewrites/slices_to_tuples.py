"""Every index becomes a tuple of one coordinate, on the axis moved to the front.

On axis 0 indices get a last dimension of 1 and that is all. On any other axis data and updates are
transposed, and the result is transposed back.
"""

from collections.abc import Sequence

from ir_scatter.core.model import Value
from ir_scatter.ops.scatter_openvino import SCATTER_ND_UPDATE_3, SCATTER_ND_UPDATE_15, SCATTER_UPDATE_3
from ir_scatter.ops.spec import OpSpec, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.flat_slices import flat_indices, flat_updates
from ir_scatter.rewrites.orders import back_order, front_order
from ir_scatter.rewrites.parts import fitting_indices
from ir_scatter.rewrites.reductions import attributes_for
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> Value:
    axis = view.site.axis if view.site.axis is not None else view.site.written_axis
    data, indices, updates = view.data, view.indices, view.updates
    ranks = [None if value.shape is None else len(value.shape) for value in (data, indices)]
    if axis == 0 and ranks[1] is not None:
        return _scatter(build, target, data, indices, updates)
    rank, index_rank = ranks
    if view.site.axis is not None and rank is not None and index_rank is not None:
        axis = view.site.axis
        names = [
            *range(axis, axis + index_rank),
            *range(axis),
            *range(axis + index_rank, rank + index_rank - 1),
        ]
        of_data = [axis, *range(axis), *range(axis + 1, rank)]
        moved = build.transpose(updates, build.constant(names, "axis_first"), "updates_moved")
        return _between(view, build, target, (indices, moved), of_data)
    return _computed(view, build, target)


def _between(
    view: View, build: Builder, target: OpSpec, flat: tuple[Value, Value], order: Sequence[int]
) -> Value:
    """Scatter between two transpositions whose orders are known."""
    indices, updates = flat
    back = sorted(range(len(order)), key=lambda place: order[place])
    data = build.transpose(view.data, build.constant(list(order), "axis_first"), "data_moved")
    found = _scatter(build, target, data, indices, updates)
    return build.transpose(found, build.constant(back, "axis_back"), "moved_back", view.data.shape)


def _computed(view: View, build: Builder, target: OpSpec) -> Value:
    """Scatter between two transpositions whose orders are computed when the model runs."""
    updates, indices = flat_updates(view, build), flat_indices(view, build)
    if view.site.axis == 0 or view.site.written_axis == 0:
        return _scatter(build, target, view.data, indices, updates)
    order = front_order(view, build)
    data = build.transpose(view.data, order, "data_moved")
    found = _scatter(build, target, data, indices, build.transpose(updates, order, "updates_moved"))
    return build.transpose(found, back_order(view, build), "moved_back", view.data.shape)


def _scatter(build: Builder, target: OpSpec, data: Value, indices: Value, updates: Value) -> Value:
    indices = fitting_indices(build, indices, target)
    rank = 1 if indices.shape is None else len(indices.shape)
    rows = build.unsqueeze(indices, [rank], "indices_unsqueezed")
    inputs = {Role.DATA: data, Role.INDICES: rows, Role.UPDATES: updates}
    return build.scatter(target, inputs, attributes_for(target))


REWRITES = tuple(
    Rewrite(
        "slices-to-tuples",
        SCATTER_UPDATE_3,
        target,
        _rewrite,
        reads=BY_SIGNATURE,
        conditions="any axis, indices of any rank, any shape",
    )
    for target in (SCATTER_ND_UPDATE_15, SCATTER_ND_UPDATE_3)
)
