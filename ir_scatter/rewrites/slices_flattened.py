"""Indices of any rank become one list, the form that every runtime takes.

data[.., indices, ..] = updates is the same with indices flattened and updates reshaped: the
dimensions of indices become one.
"""

from ir_scatter.core.model import Value
from ir_scatter.ops.scatter_openvino import SCATTER_UPDATE_3
from ir_scatter.ops.spec import OpSpec, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.flat_slices import flat_indices, flat_updates
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> Value:
    axis = view.site.operand(Role.AXIS)
    inputs = {
        Role.DATA: view.data,
        Role.INDICES: flat_indices(view, build),
        Role.UPDATES: flat_updates(view, build),
        Role.AXIS: axis.value if axis else None,
    }
    return build.scatter(target, inputs, {})


def _is_done(view: View, _: OpSpec) -> bool:
    shape = view.indices.shape
    return shape is not None and len(shape) == 1


REWRITES = (
    Rewrite(
        "slices-flattened",
        SCATTER_UPDATE_3,
        SCATTER_UPDATE_3,
        _rewrite,
        is_done=_is_done,
        reads=BY_SIGNATURE,
        conditions="indices that are not 1-D become 1-D",
    ),
)
