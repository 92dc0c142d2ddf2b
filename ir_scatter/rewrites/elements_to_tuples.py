"""Every element gets all of its coordinates: those of its own position, the axis replaced by its index.

Where old values take no part in the reduction, the value that changes nothing is written first, and
then the reduction adds to that. A mean is a sum divided by a count.
"""

from collections.abc import Mapping
from functools import partial

from ir_scatter.core.model import Value
from ir_scatter.ops import scatter_onnx as onnx_ops
from ir_scatter.ops import scatter_openvino as openvino_ops
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.cleared import cleared
from ir_scatter.rewrites.conditions import Condition
from ir_scatter.rewrites.counted_mean import counted_mean, summing_type
from ir_scatter.rewrites.elements_joined import places_of
from ir_scatter.rewrites.grids import coordinates, element_indices
from ir_scatter.rewrites.neutral import neutral
from ir_scatter.rewrites.reductions import CARRIED, attributes_for, has, joined, needs_unique
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> "Value | Refusal":
    if not has(target, view.reduction) and not _is_counted(view, target):
        return _joined_before(view, build, target)
    tuples, updates = coordinates(view, build, element_indices(view, build, target))
    if not has(target, view.reduction):
        return counted_mean(view, build, target, tuples, updates)
    inputs = {Role.DATA: view.data, Role.INDICES: tuples, Role.UPDATES: updates}
    if not view.keeps_initial:
        data = _cleared(view, build, target, inputs)
        if isinstance(data, Refusal):
            return data
        inputs = {**inputs, Role.DATA: data}
    return build.scatter(target, inputs, attributes_for(target, view.reduction))


def _cleared(view: View, build: Builder, target: OpSpec, inputs: Mapping[Role, Value]) -> "Value | Refusal":
    """Write the value that changes no update to all targets."""
    none = attributes_for(target, Reduction.NONE)

    def scatter(tuples: Value, values: Value) -> Value:
        start = {Role.DATA: view.data, Role.INDICES: tuples, Role.UPDATES: values}
        return build.scatter(target, start, none, "cleared")

    values = partial(neutral, view, build)
    return cleared(view, build, inputs[Role.INDICES], inputs[Role.UPDATES], values, scatter)


def _joined_before(view: View, build: Builder, target: OpSpec) -> "Value | Refusal":
    """Join updates with the old values first: no two of them meet."""
    if not view.keeps_initial:
        tuples, updates = coordinates(view, build, element_indices(view, build, target))
    else:
        tuples, flat = coordinates(view, build, places_of(view, build))
        found = joined(view, build, build.gather_nd(view.data, tuples, "old_values", flat.shape), flat)
        if isinstance(found, Refusal):
            return found
        updates = found
    inputs = {Role.DATA: view.data, Role.INDICES: tuples, Role.UPDATES: updates}
    return build.scatter(target, inputs, attributes_for(target))


def _is_counted(view: View, target: OpSpec) -> bool:
    """Tell whether a mean is to be computed from a sum and a count."""
    if view.reduction is not Reduction.MEAN or not has(target, Reduction.SUM):
        return False
    type = view.data.element_type
    return type is None or summing_type(type) is not None


def _requires(view: View, target: OpSpec) -> tuple[Condition, ...]:
    return () if _is_counted(view, target) else needs_unique(view, target)


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
        requires=_requires,
        reads=BY_SIGNATURE,
        conditions="any axis and shape; mean becomes a sum and a count; "
        "another reduction that the target lacks: unique indices",
    )
    for source, target in _PAIRS
)
