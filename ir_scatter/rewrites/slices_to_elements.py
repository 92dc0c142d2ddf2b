"""Every element of an updated slice gets an index of its own.

data[.., indices[i], ..] = updates[.., i, ..] becomes one index for each element of updates: indices
are flattened, laid along the axis and repeated along all others; updates get one dimension in the
place of those of indices.
"""

from ir_scatter.core.model import Value
from ir_scatter.ops.scatter_openvino import (
    SCATTER_ELEMENTS_UPDATE_3,
    SCATTER_ELEMENTS_UPDATE_12,
    SCATTER_UPDATE_3,
)
from ir_scatter.ops.spec import OpSpec, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.flat_slices import flat_updates
from ir_scatter.rewrites.parts import axis_mask, shape_with
from ir_scatter.rewrites.reductions import attributes_for
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> Value:
    updates = flat_updates(view, build)
    column = _column(view, build)
    data, axis = view.data, view.site.axis
    shape = updates.shape
    if shape is None:
        shape = shape_with(data.shape, axis, -1)
    indices = build.broadcast(column, build.shape_of(updates, "updates_shape"), "indices_repeated", shape)
    axis_operand = view.site.operand(Role.AXIS)
    inputs = {
        Role.DATA: data,
        Role.INDICES: indices,
        Role.UPDATES: updates,
        Role.AXIS: axis_operand.value if axis_operand else None,
    }
    return build.scatter(target, inputs, attributes_for(target))


def _column(view: View, build: Builder) -> Value:
    """Return the indices along the axis, with 1 on all other axes."""
    axis, shape = view.site.axis, view.data.shape
    if axis is None or shape is None:
        rest, one = build.constant(-1, "rest"), build.constant(1, "one")
        dims = build.select(axis_mask(build, view), rest, one, "column_shape")
        return build.reshape(view.indices, dims, "indices_column")
    rank = None if view.indices.shape is None else len(view.indices.shape)
    if rank == 1:
        others = [number for number in range(len(shape)) if number != axis]
        return build.unsqueeze(view.indices, others, "indices_unsqueezed")
    target = [-1 if number == axis else 1 for number in range(len(shape))]
    return build.reshape(view.indices, target, "indices_column")


REWRITES = tuple(
    Rewrite(
        "slices-to-elements",
        SCATTER_UPDATE_3,
        target,
        _rewrite,
        reads=BY_SIGNATURE,
        conditions="any axis, indices of any rank, any shape",
    )
    for target in (SCATTER_ELEMENTS_UPDATE_12, SCATTER_ELEMENTS_UPDATE_3)
)
