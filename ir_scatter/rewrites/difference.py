"""A difference of elements as the sum of negated updates.

Types without negative values are made wider first, and the result takes the remainder that fits:
of booleans that is whether an odd number of them is true.
"""

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import Value
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import I64, Builder
from ir_scatter.rewrites.linear import Linear
from ir_scatter.rewrites.reductions import attributes_for
from ir_scatter.rewrites.refusals import Reason, Refusal


def is_sum(type: ElementType | None) -> bool:
    """Tell whether a difference can be said as a sum: the type, or a wider one, has negative values."""
    return type is None or type.kind != "unsigned" or type.bits < I64.bits


def difference(
    build: Builder, target: OpSpec, parts: Linear, indices: Value, type: ElementType | None
) -> "Value | Refusal":
    """Return data without the updates.

    Args:
        build: makes the nodes.
        target: a row that has sums.
        parts: data and updates.
        indices: one for each element of updates.
        type: that of data.
    """
    if type is None:
        return Refusal(Reason.TYPE_UNKNOWN, "the element type of data is not known, expected one")
    if type.kind in {"float", "signed"}:
        return _less(build, target, (parts.data, indices, parts.updates))
    if type.kind not in {"boolean", "unsigned"}:
        message = f"reduction sub of {type.name} is no sum"
        return Refusal(Reason.NO_SUCH_REDUCTION, message)
    data = build.convert(parts.data, I64, "data_i64")
    updates = build.convert(parts.updates, I64, "updates_i64")
    found = _less(build, target, (data, indices, updates))
    count = 2 if type.kind == "boolean" else 1 << type.bits
    rest = build.binary("FloorMod", found, build.constant(count, "count_of_values"), "difference_wrapped")
    return build.convert(rest, type, f"difference_{type.name}")


def _less(build: Builder, target: OpSpec, operands: tuple[Value, Value, Value]) -> Value:
    data, indices, updates = operands
    negated = build.negative(updates, "updates_negated")
    inputs = {Role.DATA: data, Role.INDICES: indices, Role.UPDATES: negated}
    return build.scatter(target, inputs, attributes_for(target, Reduction.SUM))
