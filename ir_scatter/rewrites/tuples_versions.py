"""Another version of the operator that writes slices named by tuples."""

from ir_scatter.core.model import Value
from ir_scatter.ops import scatter_onnx as onnx_ops
from ir_scatter.ops import scatter_openvino as openvino_ops
from ir_scatter.ops.spec import OpSpec, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.parts import from_front, must_be_non_negative
from ir_scatter.rewrites.reductions import CARRIED, attributes_for, has, needs_unique
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.tuples_joined import counted_sizes, tuples_joined
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> "Value | Refusal":
    updates = view.updates
    attributes = attributes_for(target)
    if has(target, view.reduction):
        attributes = attributes_for(target, view.reduction)
    else:
        joined = tuples_joined(view, build)
        if isinstance(joined, Refusal):
            return joined
        updates = joined
    indices = view.indices
    if must_be_non_negative(view, target) and view.site.depth != 0:
        indices = from_front(build, indices, counted_sizes(view, build))
    inputs = {Role.DATA: view.data, Role.INDICES: indices, Role.UPDATES: updates}
    return build.scatter(target, inputs, attributes)


_ROWS = onnx_ops.SCATTER_ND
_PAIRS = [
    (openvino_ops.SCATTER_ND_UPDATE_3, openvino_ops.SCATTER_ND_UPDATE_15),
    (openvino_ops.SCATTER_ND_UPDATE_15, openvino_ops.SCATTER_ND_UPDATE_3),
    *((source, target) for source in _ROWS for target in _ROWS if source is not target),
]

REWRITES = tuple(
    Rewrite(
        "tuples-versions",
        source,
        target,
        _rewrite,
        carries=CARRIED,
        requires=needs_unique,
        reads=BY_SIGNATURE,
        conditions="a reduction that the target lacks: unique indices",
    )
    for source, target in _PAIRS
)
