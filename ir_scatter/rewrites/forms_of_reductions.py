"""Alternative forms of reductions that a device rounds, overflows or starts from a wrong value.

mean of integers:       floor(sum / count), with the sum in two halves if it may overflow 32 bits
difference of booleans: the parity of a sum in i32
extreme from updates:   one of the updates is written first, then all are reduced into it
"""

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, element_count
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.base import View
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.reductions import divide
from ir_scatter.rewrites.refusals import Reason, Refusal

_I32 = ELEMENT_TYPES["i32"]
_NARROW = 16
"""Limit of bits of integers whose sums fit into 32 bits without splitting."""

_HALF = 1 << 16
"""The factor of the upper half of a number of 32 bits."""

_MOST_UPDATES = 1 << 14
"""Limit of updates of one element for which the sums of halves, and remainders, fit into 32 bits."""


def _no_form(message: str) -> Refusal:
    return Refusal(Reason.NO_FORM, message)


def mean_counted(view: View, build: Builder, _target: OpSpec) -> Value | Refusal:
    """Return the mean of integers, rounded down, as a sum divided by a count.

    A number is split into h * 65536 + l. With the sums H and L over c numbers, and H = q * c + r, the mean is
    q + floor((r * 65536 + L) / c), where nothing exceeds 32 bits for up to 16384 numbers.
    """
    type = view.data.element_type
    if view.reduction is not Reduction.MEAN or type is None or type.kind not in {"signed", "unsigned"}:
        return _no_form("the reduction is not a mean of integers")
    count = element_count(view.updates.shape)
    if count is None or count >= _MOST_UPDATES:
        return _no_form(f"more than {_MOST_UPDATES} updates may have one target, whose sum may overflow")
    wide = _I32 if type.bits < _I32.bits else type
    data = build.convert(view.data, wide, f"data_{wide.name}")
    updates = build.convert(view.updates, wide, f"updates_{wide.name}")
    one, half = build.constant(1, "one", wide), build.constant(_HALF, "half", wide)

    def ones(like: Value, label: str) -> Value:
        return build.broadcast(one, build.shape_of(like, f"{label}_shape"), label, like.shape)

    def summed(first: Value, added: Value) -> Value:
        return build.rebuilt(view.scatter, {Role.DATA: first, Role.UPDATES: added}, Reduction.SUM)

    counts = summed(ones(data, "first_counts"), ones(updates, "ones"))
    if type.bits <= _NARROW:
        means, _ = divide(build, summed(data, updates), counts, "means")
        return build.convert(means, type, f"means_{type.name}")
    pairs = [divide(build, value, half, label) for value, label in ((data, "data"), (updates, "updates"))]
    high, low = (summed(first, added) for first, added in zip(*pairs, strict=True))
    quotient, rest = divide(build, high, counts, "high")
    carried = _sum_apart(build, build.binary("Multiply", rest, half, "rest_scaled"), low, "low_and_rest")
    last, _ = divide(build, carried, counts, "low")
    scaled = build.binary("Multiply", quotient, half, "quotient_scaled")
    return _sum_apart(build, scaled, last, "means")


def _sum_apart(build: Builder, left: Value, right: Value, label: str) -> Value:
    """Add integers in another shape, because OpenVINO's GPU plugin computes a sum of a product in f32."""
    flat = [build.reshape(value, [1, -1], f"{label}_flat", (1, UNKNOWN_DIM)) for value in (left, right)]
    total = build.binary("Add", flat[0], flat[1], f"{label}_total")
    return build.reshape(total, build.shape_of(left, f"{label}_shape"), label, left.shape)


def difference_counted(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Return a difference of booleans: XOR, which is the parity of the number of true values."""
    type = view.data.element_type
    if view.reduction is not Reduction.SUB or type is None or type.kind != "boolean":
        return _no_form("the reduction is not a difference of booleans")
    operands = {
        Role.DATA: build.convert(view.data, _I32, "data_i32"),
        Role.UPDATES: build.convert(view.updates, _I32, "updates_i32"),
    }
    sums = build.rebuilt(view.scatter, operands, Reduction.SUM)
    parity = build.binary("FloorMod", sums, build.constant(2, "two", _I32), "parity")
    return build.convert(parity, type, "difference")


def extreme_from_updates(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    """Return the minimum or maximum of updates without the old value.

    One of the updates replaces the old value first, then all are reduced into it.
    """
    if view.reduction not in {Reduction.MIN, Reduction.MAX} or view.keeps_initial:
        return _no_form("the reduction is not an extreme of updates alone")
    started = build.rebuilt(view.scatter, {}, Reduction.NONE)
    return build.rebuilt(view.scatter, {Role.DATA: started}, view.reduction, {"use_init_val": "true"})
