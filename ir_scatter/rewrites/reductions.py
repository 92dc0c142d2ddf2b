"""How reductions are carried from one row to another."""

from collections.abc import Mapping
from typing import Any

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import ONNX, OPENVINO, Value
from ir_scatter.ops.general import named
from ir_scatter.ops.spec import OpSpec, Reduction
from ir_scatter.rewrites.builder import I64, Builder
from ir_scatter.rewrites.conditions import Condition
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rewrites.view import View

CARRIED = frozenset({"reduction", "use_init_val"})
"""The attributes that this module takes care of."""

_WIDE = 32

_WORDS = {
    Reduction.SUM: ("Add", "LogicalOr"),
    Reduction.SUB: ("Subtract", "LogicalXor"),
    Reduction.PROD: ("Multiply", "LogicalAnd"),
    Reduction.MIN: ("Minimum", "LogicalAnd"),
    Reduction.MAX: ("Maximum", "LogicalOr"),
}
"""What joins two values: of numbers, of booleans."""

_OF_MEAN = ("Add", "Add")


def has(target: OpSpec, reduction: Reduction) -> bool:
    """Tell whether a row has a reduction."""
    return reduction is Reduction.NONE or reduction in target.reductions.values()


def attributes_for(
    target: OpSpec, reduction: Reduction = Reduction.NONE, *, keeps_initial: bool = True
) -> Mapping[str, Any]:
    """Return the attributes that say a reduction in the words of a row that has it.

    In an IR all attributes are written, as its own writer does; in ONNX those that are no default.
    """
    is_ir = target.key.domain == OPENVINO
    found: dict[str, Any] = {}
    row = target.attribute("reduction")
    if row is not None:
        word = next(word for word, meaning in target.reductions.items() if meaning is reduction)
        if is_ir or word != row.default:
            found[row.name] = word
    row = target.attribute("use_init_val")
    if row is not None:
        found[row.name] = "true" if keeps_initial else "false"
    return found


def says_all(view: View, target: OpSpec) -> bool:
    """Tell whether a row can say the reduction of a node, its dropped old values included."""
    return has(target, view.reduction) and (
        view.keeps_initial or target.attribute("use_init_val") is not None
    )


def needs_unique(view: View, target: OpSpec) -> tuple[Condition, ...]:
    """Demand that targets differ where a row lacks the reduction: then it can be computed before."""
    return () if has(target, view.reduction) else (Condition.UNIQUE,)


def joined(view: View, build: Builder, current: Value, updates: Value | None = None) -> "Value | Refusal":
    """Return what updates make of the old values, where no two of them meet in one element.

    Args:
        view: the node.
        build: makes the nodes.
        current: the old values in the places of the updates.
        updates: in another shape than those of the node; None for those.
    """
    data_type = view.data.element_type
    if data_type is None:
        return Refusal(Reason.TYPE_UNKNOWN, "the element type of data is not known, expected one")
    of_numbers, of_booleans = _WORDS.get(view.reduction, _OF_MEAN)
    operation = of_booleans if data_type.kind == "boolean" else of_numbers
    is_extreme = build.domain == ONNX and _is_whole_extreme(data_type, view.reduction)
    if not is_extreme and not named(operation).takes(build.domain, data_type, build.opset):
        message = (
            f"reduction {view.reduction} of {data_type.name} has no plain operator in opset {build.opset}"
        )
        return Refusal(Reason.NO_SUCH_REDUCTION, message)
    updates = view.updates if updates is None else updates
    if view.reduction is Reduction.MEAN:
        return _mean_of_two(build, current, updates, data_type)
    return (_extreme if is_extreme else _plainly)(build, operation, current, updates)


def _plainly(build: Builder, operation: str, left: Value, right: Value) -> Value:
    return build.binary(operation, left, right, "joined")


def _is_whole_extreme(type: ElementType, reduction: Reduction) -> bool:
    return reduction in {Reduction.MIN, Reduction.MAX} and type.kind in {"signed", "unsigned"}


def _extreme(build: Builder, operation: str, left: Value, right: Value) -> Value:
    """Return the smaller or the greater of two whole numbers in ONNX, by a comparison if need be.

    onnxruntime has kernels for the wide types only, and none that compares u32.
    """
    type = left.element_type
    assert type is not None
    is_taken = named(operation).takes(build.domain, type, build.opset)
    if type.bits < _WIDE or (not is_taken and type.name == "u32"):
        wide, other = (build.convert(value, I64, "joined_i64") for value in (left, right))
        return build.convert(_extreme(build, operation, wide, other), type, f"joined_{type.name}")
    if is_taken:
        return _plainly(build, operation, left, right)
    is_less = build.binary("Less", left, right, "is_less")
    first, second = (left, right) if operation == "Minimum" else (right, left)
    return build.select(is_less, first, second, "joined")


def _mean_of_two(build: Builder, left: Value, right: Value, type: ElementType) -> Value:
    """Return the mean; of whole numbers the halves rounded down, so that no sum is too great."""
    two = build.constant(2, "two", type)
    if type.kind == "float":
        return build.binary("Divide", build.binary("Add", left, right, "sum"), two, "mean")
    odds = [build.binary("FloorMod", value, two, "is_odd") for value in (left, right)]
    halves = [
        divided_exactly(build, value, two, odd, "half")
        for value, odd in zip((left, right), odds, strict=True)
    ]
    carry = build.binary("Multiply", odds[0], odds[1], "carry")
    return build.binary("Add", build.binary("Add", halves[0], halves[1], "half_sum"), carry, "mean")


def divided_exactly(build: Builder, value: Value, by: Value, rest: Value, label: str) -> Value:
    """Divide a value without its remainder: not every runtime rounds down where the text says so."""
    return build.binary("Divide", build.binary("Subtract", value, rest, f"{label}_multiple"), by, label)
