"""Builds reductions from other nodes, if the new operator lacks them or old values take no part in them."""

from typing import Any

import numpy as np

from ir_scatter.analysis.conditions import Condition, ProofState
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.model import ONNX, Value
from ir_scatter.core.shapes import LARGEST_DIM, UNKNOWN_DIM, Shape, element_count
from ir_scatter.ops import index_values
from ir_scatter.ops.general import named
from ir_scatter.ops.spec import OpSpec, Reduction
from ir_scatter.rewrites.base import View
from ir_scatter.rewrites.builder import I64, LARGEST_FOLDED, Builder
from ir_scatter.rewrites.refusals import TYPE_UNKNOWN, Reason, Refusal

CARRIED = frozenset({"reduction", "use_init_val"})
"""The attributes whose effect this module rebuilds, so that rewrites can preserve it."""

_F32 = ELEMENT_TYPES["f32"]
_WIDE = 32
"""Minimum bits of integers for which onnxruntime has Min and Max."""

_SATURATED = 8
"""Limit of bits of integers that OpenVINO's CPU plugin saturates in arithmetic."""

_LEAVING = frozenset({Reduction.SUM, Reduction.SUB, Reduction.PROD})
"""Reductions whose result may exceed the range of the element type."""

_WORDS = {
    Reduction.SUM: ("Add", "LogicalOr"),
    Reduction.SUB: ("Subtract", "LogicalXor"),
    Reduction.PROD: ("Multiply", "LogicalAnd"),
    Reduction.MIN: ("Minimum", "LogicalAnd"),
    Reduction.MAX: ("Maximum", "LogicalOr"),
    Reduction.MEAN: ("Add", "Add"),
}
"""The elementwise operator of each reduction, for numbers and for booleans."""


def has(target: OpSpec, reduction: Reduction) -> bool:
    return reduction is Reduction.NONE or reduction in target.reductions.values()


def supports_reduction(view: View, target: OpSpec) -> bool:
    """Return whether an operator version supports the reduction of a node, including ignored old values."""
    can_drop = target.attribute("use_init_val") is not None
    return has(target, view.reduction) and (view.keeps_initial or can_drop)


def needs_unique(view: View, target: OpSpec) -> tuple[Condition, ...]:
    """Return the condition "unique targets" if a version lacks the reduction.

    The reduction is then computed before the node.
    """
    return () if has(target, view.reduction) else (Condition.UNIQUE,)


def joined(view: View, build: Builder, current: Value, updates: Value) -> Value | Refusal:
    """Return updates reduced with `current`, the old values at their targets, which must be unique."""
    type, reduction = view.data.element_type, view.reduction
    if type is None:
        return TYPE_UNKNOWN
    operation = _WORDS[reduction][type.kind == "boolean"]
    is_whole = type.kind in {"signed", "unsigned"}
    if build.domain == ONNX and is_whole and reduction in {Reduction.MIN, Reduction.MAX}:
        return _extreme(build, operation, current, updates, type)
    if not named(operation).takes(build.domain, type, build.opset):
        message = f"reduction {reduction} of {type.name} has no plain operator in opset {build.opset}"
        return Refusal(Reason.NO_SUCH_REDUCTION, message)
    if reduction is Reduction.MEAN:
        return _mean_of_two(build, current, updates, type)
    if saturates(build, type) and reduction in _LEAVING:
        left, right = (build.convert(value, I64, "joined_i64") for value in (current, updates))
        return wrap_to_type(build, build.binary(operation, left, right, "joined_wide"), type, "joined")
    return build.binary(operation, current, updates, "joined")


def saturates(build: Builder, type: ElementType) -> bool:
    """Return whether a runtime saturates results of arithmetic in a type instead of wrapping around.

    OpenVINO's CPU plugin does so for 8 bits, except in its scatter operators.
    """
    return type.kind in {"signed", "unsigned"} and type.bits <= _SATURATED and build.domain != ONNX


def wrap_to_type(build: Builder, wide: Value, type: ElementType, label: str) -> Value:
    """Convert integers to a narrow type with wrap-around."""
    count, half = build.constant(1 << type.bits, "count_of_values"), None
    if type.kind == "signed":
        half = build.constant(1 << (type.bits - 1), "half_of_values")
        wide = build.binary("Add", wide, half, f"{label}_from_least")
    wide = build.binary("FloorMod", wide, count, f"{label}_wrapped")
    if half is not None:
        wide = build.binary("Subtract", wide, half, f"{label}_from_zero")
    return build.convert(wide, type, f"{label}_{type.name}")


def _extreme(build: Builder, operation: str, left: Value, right: Value, type: ElementType) -> Value:
    """Return the minimum or maximum of two integers in ONNX; by comparison if there is no kernel.

    onnxruntime has Min and Max only for wide types, and no comparison of u32.
    """
    is_taken = named(operation).takes(build.domain, type, build.opset)
    if type.bits < _WIDE or (not is_taken and type.name == "u32"):
        wide, wide_right = (build.convert(value, I64, "joined_i64") for value in (left, right))
        return build.convert(_extreme(build, operation, wide, wide_right, I64), type, f"joined_{type.name}")
    if is_taken:
        return build.binary(operation, left, right, "joined")
    is_less = build.binary("Less", left, right, "is_less")
    first, second = (left, right) if operation == "Minimum" else (right, left)
    return build.select(is_less, first, second, "joined")


def _mean_of_two(build: Builder, left: Value, right: Value, type: ElementType) -> Value:
    """Return the mean of two values; for integers the sum of rounded halves, which cannot overflow."""
    wide = summing_type(type)
    if type.kind == "float" and wide not in {type, None}:
        left, right = (build.convert(value, wide, f"joined_{wide.name}") for value in (left, right))
        return build.convert(_mean_of_two(build, left, right, wide), type, f"means_{type.name}")
    two = build.constant(2, "two", type)
    if type.kind == "float":
        return build.binary("Divide", build.binary("Add", left, right, "sum"), two, "mean")
    halves, odds = zip(*(divide(build, value, two, "half") for value in (left, right)), strict=True)
    carry = build.binary("Multiply", odds[0], odds[1], "carry")
    return build.binary("Add", build.binary("Add", halves[0], halves[1], "half_sum"), carry, "mean")


def divide(build: Builder, value: Value, by: Value, label: str) -> tuple[Value, Value]:
    """Return (quotient, remainder) of integers, rounded down, for positive divisors below 2^16.

    Measured: OpenVINO divides integers as f32, and its GPU plugin rounds the remainder of a negative number
    towards zero. So only products, differences and comparisons, which are exact, decide:

        q1 = value / by, about             r1 = value - q1 * by
        q2 = r1 / by, at most 1 off        r2 = r1 - q2 * by
        q1 + q2, or 1 less if r2 < 0       r2, or r2 + by
    """
    type = value.element_type
    assert type is not None
    if type.kind == "unsigned":
        rest = build.binary("FloorMod", value, by, f"{label}_rest")
        multiple = build.binary("Subtract", value, rest, f"{label}_multiple")
        return build.binary("Divide", multiple, by, label), rest
    first = build.binary("Divide", value, by, f"{label}_about")
    left = build.binary(
        "Subtract", value, build.binary("Multiply", first, by, f"{label}_product"), f"{label}_left"
    )
    second = build.binary("Divide", left, by, f"{label}_more")
    product = build.binary("Multiply", second, by, f"{label}_product")
    rest = build.binary("Subtract", left, product, f"{label}_rest_signed")
    both = build.binary("Add", first, second, f"{label}_signed")
    is_below = build.binary("Less", rest, build.constant(0, "zero", type), f"{label}_is_below")
    lower = build.binary("Subtract", both, build.constant(1, "one", type), f"{label}_lower")
    higher = build.binary("Add", rest, by, f"{label}_rest_higher")
    return build.select(is_below, lower, both, label), build.select(is_below, higher, rest, f"{label}_rest")


def neutral(view: View, build: Builder) -> Value | Refusal:
    """Return the neutral element of a reduction, from which it starts without old values."""
    import ml_dtypes

    type, reduction = view.data.element_type, view.reduction
    if type is None:
        return TYPE_UNKNOWN
    start: Any = None
    numpy_dtype = dtype(type)
    if numpy_dtype is None or reduction in {Reduction.NONE, Reduction.MEAN, Reduction.SUB}:
        pass
    elif type.kind == "boolean":
        start = reduction in {Reduction.PROD, Reduction.MIN}
    elif reduction is Reduction.PROD:
        start = numpy_dtype.type(1)
    elif reduction is Reduction.SUM:
        zero = numpy_dtype.type(-0.0) if type.kind == "float" else numpy_dtype.type(0)
        start = zero if zero == zero else None  # a type without a zero returns NaN
    elif type.kind in {"signed", "unsigned"}:
        limits = ml_dtypes.iinfo(numpy_dtype)  # type: ignore[no-untyped-call]
        start = numpy_dtype.type(limits.max if reduction is Reduction.MIN else limits.min)
    elif type.kind == "float":
        floats = ml_dtypes.finfo(numpy_dtype)  # type: ignore[no-untyped-call]
        start = numpy_dtype.type(float("inf"))
        if not np.isinf(start.astype(np.float32)):
            start = floats.max
        if reduction is Reduction.MAX:
            start = numpy_dtype.type(-start)
            start = floats.smallest_normal if start != start else start  # the type has no negative values
    if start is None:
        message = f"reduction {reduction} of {type.name} has no neutral element"
        return Refusal(Reason.NO_SUCH_REDUCTION, message)
    return build.constant(start, "start_value", type)


def clear_targets(
    view: View, build: Builder, target: OpSpec, operands: tuple[Value, Value, Value], start: Value, label: str
) -> Value:
    """Return data with the start value of a reduction at every target.

    Repeated targets of constant indices get it once: repeated writes of one value are harmless, but rules
    about repeated targets cannot know that. If there are certainly more updates than elements of data, the
    targets are first marked and then listed once each. `operands` are data, coordinates of all targets,
    updates.
    """
    data, tuples, updates = operands
    if view.writes_nothing:
        return data
    once = _each_once(view, build)
    if once is None:
        dims, shape = build.shape_of(updates, "updates_shape"), updates.shape
        if (element_count(shape) or 0) > (element_count(data.shape) or LARGEST_DIM):
            tuples, dims, shape = _marked(build, target, operands)
    else:
        assert once.shape is not None
        tuples, dims, shape = once, build.constant([once.shape[0]], "targets_count"), once.shape[:1]
    return build.scatter(target, data, tuples, build.broadcast(start, dims, label, shape), label="cleared")


def _marked(
    build: Builder, target: OpSpec, operands: tuple[Value, Value, Value]
) -> tuple[Value, Value, Shape]:
    """Return the coordinates of all targets without repetition, their count, and the count as a shape."""
    data, tuples, updates = operands
    dims, new_dims = build.shape_of(data, "data_shape"), build.shape_of(updates, "updates_shape")
    zeros = build.broadcast(build.constant(0, "zero"), dims, "no_marks", data.shape)
    ones = build.broadcast(build.constant(1, "one"), new_dims, "ones", updates.shape)
    marks = build.scatter(target, zeros, tuples, ones, Reduction.MAX, label="marks")
    rank = UNKNOWN_DIM if data.shape is None else len(data.shape)
    marked_axes = build.make("NonZero", [marks], (rank, UNKNOWN_DIM), "marked_by_axis", I64)
    last = build.constant([1], "last")
    count = build.gather(build.shape_of(marked_axes, "marked_shape"), last, 0, "marked_count", (1,))
    swap = build.constant([1, 0], "swap")
    return build.transpose(marked_axes, swap, "marked"), count, (UNKNOWN_DIM,)


def _each_once(view: View, build: Builder) -> Value | None:
    """Return the targets of constant indices without repetition; None if none is repeated, or unknown."""
    if view.proof(Condition.UNIQUE).verdict is ProofState.PROVEN:
        return None
    array, axis, data = view.index_numbers(), view.scatter.axis, view.data.shape
    if array is None or axis is None or not 0 < array.size <= LARGEST_FOLDED:
        return None
    size = None if data is None else data[axis]
    counted = index_values.from_front(array, size if isinstance(size, int) else 0)
    places = np.indices(array.shape)
    places[axis] = counted
    every = places.reshape(array.ndim, -1).T
    once = np.unique(every, axis=0)
    if len(once) == len(every) or (counted < 0).any():
        return None
    return build.constant(once, "targets")


def summing_type(type: ElementType) -> ElementType | None:
    """Return a wider type that can represent sums of many elements of a type; None without one."""
    if type.kind == "float":
        return type if type.bits >= _F32.bits else _F32
    return I64 if type.kind in {"signed", "unsigned"} and type.bits < I64.bits else None


def counted_mean(
    view: View, build: Builder, target: OpSpec, tuples: Value, updates: Value
) -> Value | Refusal:
    """Return data with the mean of the updates (and the old value) of each element.

    Sums and counts are both scattered with the reduction sum, then divided. An element without updates keeps
    its value. Means of integers are rounded down.
    """
    type = view.data.element_type
    wide = None if type is None else summing_type(type)
    if type is None or wide is None:
        return TYPE_UNKNOWN
    data = build.convert(view.data, wide, f"data_{wide.name}")
    new = build.convert(updates, wide, f"updates_{wide.name}")
    dims, new_dims = build.shape_of(data, "data_shape"), build.shape_of(new, "updates_shape")
    start = data
    if not view.keeps_initial:
        zero = build.constant(0, "zero", wide)
        start = clear_targets(view, build, target, (data, tuples, new), zero, "zeros")
    sums = build.scatter(target, start, tuples, new, Reduction.SUM, label="sums")
    first = build.constant(int(view.keeps_initial), "first_count")
    unit = build.constant(1, "one")
    firsts = build.broadcast(first, dims, "first_counts", data.shape)
    ones = build.broadcast(unit, new_dims, "ones", new.shape)
    counts = build.scatter(target, firsts, tuples, ones, Reduction.SUM, label="counts")
    if not view.keeps_initial:
        counts = build.binary("Maximum", counts, unit, "counts_or_one")
    if wide is I64:
        means, _ = divide(build, sums, counts, "means")
    else:
        means = build.binary("Divide", sums, build.convert(counts, wide, f"counts_{wide.name}"), "means")
    return build.convert(means, type, f"means_{type.name}")
