"""Tuples become one index each, which is repeated over the slice that it names.

With one coordinate per tuple the axis is 0 and nothing else changes. With any other number the
dimensions that tuples count on are joined into one, and the result gets the shape of data again.
"""

from ir_scatter.core.model import Value
from ir_scatter.ops import scatter_onnx as onnx_ops
from ir_scatter.ops import scatter_openvino as openvino_ops
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.conditions import Condition
from ir_scatter.rewrites.difference import difference, is_sum
from ir_scatter.rewrites.linear import Linear, like_updates, linear
from ir_scatter.rewrites.parts import fitting_indices, scalar
from ir_scatter.rewrites.reductions import CARRIED, attributes_for, has
from ir_scatter.rewrites.refusals import Refusal
from ir_scatter.rewrites.rewrite import BY_SIGNATURE, Rewrite
from ir_scatter.rewrites.tuples_joined import tuples_joined
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> "Value | Refusal":
    parts = linear(view, build, target)
    indices = fitting_indices(build, _repeated(build, parts), target)
    if _is_difference(view, target):
        found = difference(build, target, parts, indices, view.data.element_type)
    else:
        found = _written(view, build, target, parts, indices)
    if isinstance(found, Refusal) or not parts.is_flattened:
        return found
    return build.reshape(found, build.shape_of(view.data, "data_shape"), "data_restored", view.data.shape)


def _written(view: View, build: Builder, target: OpSpec, parts: Linear, indices: Value) -> "Value | Refusal":
    """Scatter with the reduction of the node, or with updates that it has been computed into."""
    updates, reduction = parts.updates, view.reduction
    if not has(target, reduction):
        joined = tuples_joined(view, build)
        if isinstance(joined, Refusal):
            return joined
        updates, reduction = like_updates(view, build, parts, joined), Reduction.NONE
    inputs = {Role.DATA: parts.data, Role.INDICES: indices, Role.UPDATES: updates}
    return build.scatter(target, inputs, attributes_for(target, reduction))


def _repeated(build: Builder, parts: Linear) -> Value:
    """Repeat every index over the slice that it names."""
    shape = parts.updates.shape
    if shape is not None and len(shape) == 1:
        return parts.indices
    dims = build.shape_of(parts.updates, "updates_shape")
    if shape is not None:
        column = parts.indices if parts.column is None else parts.column
        known = 1 if parts.column is None else 2
        column = build.unsqueeze(column, range(known, len(shape)), "indices_column")
        return build.broadcast(column, dims, "indices_repeated", shape)
    places = build.range(scalar(build, build.shape_of(dims, "rank"), "rank_scalar"), "places")
    is_first = build.binary("Equal", places, build.constant(0, "zero"), "is_first")
    rest, one = build.constant(-1, "rest"), build.constant(1, "one")
    target = build.select(is_first, rest, one, "column_shape")
    return build.broadcast(build.reshape(parts.indices, target, "indices_column"), dims, "indices_repeated")


def _is_difference(view: View, target: OpSpec) -> bool:
    """Tell whether a difference is to be written as a sum."""
    is_lost = view.reduction is Reduction.SUB and not has(target, Reduction.SUB)
    return is_lost and has(target, Reduction.SUM) and is_sum(view.data.element_type)


def _requires(view: View, target: OpSpec) -> tuple[Condition, ...]:
    if has(target, view.reduction) or _is_difference(view, target):
        return ()
    return (Condition.UNIQUE,)


_PAIRS = [
    (source, target)
    for source in (openvino_ops.SCATTER_ND_UPDATE_15, openvino_ops.SCATTER_ND_UPDATE_3)
    for target in (openvino_ops.SCATTER_ELEMENTS_UPDATE_12, openvino_ops.SCATTER_ELEMENTS_UPDATE_3)
] + [(source, target) for source in onnx_ops.SCATTER_ND for target in onnx_ops.SCATTER_ELEMENTS]

REWRITES = tuple(
    Rewrite(
        "tuples-to-elements",
        source,
        target,
        _rewrite,
        carries=CARRIED,
        requires=_requires,
        reads=BY_SIGNATURE,
        conditions="any number of coordinates; sub becomes the sum of negated updates; "
        "another reduction that the target lacks: unique indices",
    )
    for source, target in _PAIRS
)
