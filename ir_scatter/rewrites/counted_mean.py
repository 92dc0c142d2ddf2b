"""The mean of all updates that meet in one element: their sum, and how many they are.

Both are scattered as sums. An element that nothing hits is the mean of itself.
"""

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType
from ir_scatter.core.model import Value
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from ir_scatter.rewrites.builder import I64, Builder
from ir_scatter.rewrites.cleared import cleared
from ir_scatter.rewrites.reductions import attributes_for, divided_exactly
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rewrites.view import View

_F32 = ELEMENT_TYPES["f32"]


def summing_type(type: ElementType) -> ElementType | None:
    """Return a type in which a sum of many elements of a type fits; None if there is none."""
    if type.kind == "float":
        return type if type.bits >= _F32.bits else _F32
    return I64 if type.kind in {"signed", "unsigned"} and type.bits < I64.bits else None


def counted_mean(
    view: View, build: Builder, target: OpSpec, tuples: Value, updates: Value
) -> "Value | Refusal":
    """Return data with the mean of what meets in each element; whole numbers are rounded down."""
    type = view.data.element_type
    wide = None if type is None else summing_type(type)
    if type is None or wide is None:
        return Refusal(Reason.TYPE_UNKNOWN, "the element type of data is not known, expected one")
    data = build.convert(view.data, wide, f"data_{wide.name}")
    new = build.convert(updates, wide, f"updates_{wide.name}")

    def scatter(
        onto: Value, values: Value, reduction: Reduction, label: str, places: Value = tuples
    ) -> Value:
        inputs = {Role.DATA: onto, Role.INDICES: places, Role.UPDATES: values}
        return build.scatter(target, inputs, attributes_for(target, reduction), label)

    dims, new_dims = build.shape_of(data, "data_shape"), build.shape_of(new, "updates_shape")
    start = data
    if not view.keeps_initial:
        zero = build.constant(0, "zero", wide)
        found = cleared(
            view, build, tuples, new,
            lambda dims, shape: build.broadcast(zero, dims, "zeros", shape),
            lambda places, zeros: scatter(data, zeros, Reduction.NONE, "cleared", places),
        )  # fmt: skip
        assert isinstance(found, Value)
        start = found
    sums = scatter(start, new, Reduction.SUM, "sums")
    first = build.constant(int(view.keeps_initial), "first_count")
    one = build.constant(1, "one")
    counts = scatter(
        build.broadcast(first, dims, "first_counts", data.shape),
        build.broadcast(one, new_dims, "ones", new.shape),
        Reduction.SUM,
        "counts",
    )
    if not view.keeps_initial:
        counts = build.binary("Maximum", counts, one, "counts_or_one")
    return build.convert(_divided(build, sums, counts, wide), type, f"means_{type.name}")


def _divided(build: Builder, sums: Value, counts: Value, wide: ElementType) -> Value:
    """Divide sums by counts, rounding whole numbers down."""
    if wide is I64:
        rest = build.binary("FloorMod", sums, counts, "rests")
        return divided_exactly(build, sums, counts, rest, "means")
    return build.binary("Divide", sums, build.convert(counts, wide, f"counts_{wide.name}"), "means")
