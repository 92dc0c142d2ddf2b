"""Every element gets all of its coordinates: those of its own position, the axis replaced by its index.

Where old values take no part in the reduction, the value that changes nothing is written first, and
then the reduction adds to that.
"""

from ir_scatter.model import Value
from ir_scatter.ops import onnx_ops, openvino_ops
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.elements_joined import elements_joined
from ir_scatter.rewrites.grids import coordinates
from ir_scatter.rewrites.neutral import neutral
from ir_scatter.rewrites.reductions import CARRIED, attributes_for, has, needs_unique
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.rewrite import Rewrite
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> "Value | Refusal":
    tuples, updates = coordinates(view, build, target)
    inputs = {Role.DATA: view.data, Role.INDICES: tuples, Role.UPDATES: updates}
    if not has(target, view.reduction):
        joined = elements_joined(view, build)
        if isinstance(joined, Refusal):
            return joined
        shape = build.shape_of(updates, "updates_shape")
        new = (
            joined if updates is view.updates else build.reshape(joined, shape, "joined_flat", updates.shape)
        )
        return build.scatter(target, {**inputs, Role.UPDATES: new}, attributes_for(target))
    if not view.keeps_initial:
        initial = neutral(view, build, updates)
        if isinstance(initial, Refusal):
            return initial
        cleared = build.scatter(
            target, {**inputs, Role.UPDATES: initial}, attributes_for(target, Reduction.NONE), "cleared"
        )
        inputs = {**inputs, Role.DATA: cleared}
    return build.scatter(target, inputs, attributes_for(target, view.reduction))


_PAIRS = [
    (source, target)
    for source in (openvino_ops.SCATTER_ELEMENTS_UPDATE_12, openvino_ops.SCATTER_ELEMENTS_UPDATE_3)
    for target in (openvino_ops.SCATTER_ND_UPDATE_15, openvino_ops.SCATTER_ND_UPDATE_3)
] + [(source, target) for source in onnx_ops.SCATTER_ELEMENTS for target in onnx_ops.SCATTER_ND]

REWRITES = tuple(
    Rewrite(
        "elements-to-tuples",
        source,
        target,
        _rewrite,
        carries=CARRIED | {"axis"},
        requires=needs_unique,
        conditions="any axis and shape; a reduction that the target lacks: unique indices",
    )
    for source, target in _PAIRS
)
