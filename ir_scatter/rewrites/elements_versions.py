"""Another version of the operator that writes elements, or its deprecated predecessor's successor."""

from ir_scatter.core.model import Value
from ir_scatter.ops import scatter_onnx as onnx_ops
from ir_scatter.ops import scatter_openvino as openvino_ops
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.conditions import Condition
from ir_scatter.rewrites.elements_joined import elements_joined
from ir_scatter.rewrites.grids import element_indices
from ir_scatter.rewrites.reductions import CARRIED, attributes_for, needs_unique, says_all
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> "Value | Refusal":
    updates = view.updates
    attributes = attributes_for(target)
    if says_all(view, target):
        attributes = attributes_for(target, view.reduction, keeps_initial=view.keeps_initial)
    elif view.reduction is not Reduction.NONE:
        joined = elements_joined(view, build)
        if isinstance(joined, Refusal):
            return joined
        updates = joined
    axis = view.site.operand(Role.AXIS)
    inputs = {
        Role.DATA: view.data,
        Role.INDICES: element_indices(view, build, target),
        Role.UPDATES: updates,
        Role.AXIS: axis.value if axis else None,
    }
    return build.scatter(target, inputs, attributes, axis=view.site.written_axis or 0)


def _requires(view: View, target: OpSpec) -> tuple[Condition, ...]:
    return () if says_all(view, target) else needs_unique(view, target) or (Condition.UNIQUE,)


_ROWS = onnx_ops.SCATTER_ELEMENTS
_PAIRS = [
    (openvino_ops.SCATTER_ELEMENTS_UPDATE_3, openvino_ops.SCATTER_ELEMENTS_UPDATE_12),
    (openvino_ops.SCATTER_ELEMENTS_UPDATE_12, openvino_ops.SCATTER_ELEMENTS_UPDATE_3),
    *(
        (source, target)
        for source in (*onnx_ops.SCATTERS, *_ROWS)
        for target in _ROWS
        if source is not target
    ),
]

REWRITES = tuple(
    Rewrite(
        "elements-versions",
        source,
        target,
        _rewrite,
        carries=CARRIED | {"axis"},
        requires=_requires,
        reads=BY_SIGNATURE,
        conditions="a reduction that the target lacks: unique indices",
    )
    for source, target in _PAIRS
)
