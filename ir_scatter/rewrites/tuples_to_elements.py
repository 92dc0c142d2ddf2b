"""Tuples become one index each, which is repeated over the slice that it names.

With one coordinate per tuple the axis is 0 and nothing else changes. With any other number the
dimensions that tuples count on are joined into one, and the result gets the shape of data again.
"""

from ir_scatter.model import Value
from ir_scatter.ops import onnx_ops, openvino_ops
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.conditions import Condition
from ir_scatter.rewrites.linear import Linear, linear
from ir_scatter.rewrites.parts import fitting_indices
from ir_scatter.rewrites.reductions import CARRIED, attributes_for, has
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rewrites.rewrite import Rewrite
from ir_scatter.rewrites.tuples_joined import tuples_joined
from ir_scatter.rewrites.view import View


def _rewrite(view: View, build: Builder, target: OpSpec) -> "Value | Refusal":
    parts = linear(view, build, target)
    updates, reduction = parts.updates, view.reduction
    if _is_difference(view, target):
        negated = _negated(view, build, updates)
        if isinstance(negated, Refusal):
            return negated
        updates, reduction = negated, Reduction.SUM
    elif not has(target, reduction):
        joined = tuples_joined(view, build)
        if isinstance(joined, Refusal):
            return joined
        updates = build.reshape(joined, parts.target_shape, "joined_reshaped", parts.shape)
        reduction = Reduction.NONE
    indices = fitting_indices(build, _repeated(build, parts), target)
    inputs = {Role.DATA: parts.data, Role.INDICES: indices, Role.UPDATES: updates}
    found = build.scatter(target, inputs, attributes_for(target, reduction))
    if not parts.is_flattened:
        return found
    return build.reshape(found, build.shape_of(view.data, "data_shape"), "data_restored", view.data.shape)


def _repeated(build: Builder, parts: Linear) -> Value:
    """Repeat every index over the slice that it names."""
    if parts.shape is None:
        one = build.constant([1], "one")
        rank = build.shape_of(parts.target_shape, "rank")
        ones = build.broadcast(one, rank, "ones")
        is_first = build.binary(
            "equal",
            build.range(build.reshape(rank, [], "rank_scalar"), "places"),
            build.constant(0, "zero"),
            "is_first",
        )
        count = build.shape_of(parts.indices, "count")
        column = build.reshape(
            parts.indices, build.select(is_first, count, ones, "column_shape"), "indices_column"
        )
    else:
        column = build.unsqueeze(parts.indices, range(1, len(parts.shape)), "indices_column")
    return build.broadcast(column, parts.target_shape, "indices_repeated", parts.shape)


def _is_difference(view: View, target: OpSpec) -> bool:
    """Tell whether a difference is to be written as a sum."""
    is_lost = view.reduction is Reduction.SUB and not has(target, Reduction.SUB)
    return is_lost and has(target, Reduction.SUM) and bool(target.reductions)


def _negated(view: View, build: Builder, updates: Value) -> "Value | Refusal":
    type = view.data.element_type or view.updates.element_type
    if type is None:
        return Refusal(Reason.TYPE_UNKNOWN, "the element type of data is not known, expected a signed one")
    if type.kind not in {"float", "signed"}:
        message = f"reduction sub of {type.name} is no sum: {type.name} has no negative values"
        return Refusal(Reason.NO_SUCH_REDUCTION, message)
    return build.negative(updates, "updates_negated")


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
        conditions="any number of coordinates; sub becomes the sum of negated updates; "
        "another reduction that the target lacks: unique indices",
    )
    for source, target in _PAIRS
)
