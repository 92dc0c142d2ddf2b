"""Helpers of rules: broadcast operands, moved axes, ranges of types, masks."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from ir_scatter.analysis.symbolic.case import Dims, NodeCase, Query, SymbolSource, type_range
from ir_scatter.analysis.symbolic.linear import ONE, Knowledge, Linear, SymbolKind, product
from ir_scatter.analysis.symbolic.numbers import TensorNumbers, unwrapped
from ir_scatter.core.model import Value

MOST_NESTED = 12
"""Maximum nodes between a Where and the number that its condition compares."""


def count_of(walker: SymbolSource, mask: Value, source: Sequence[Linear]) -> Linear:
    """Return the number of elements of a mask that are not 0, as a symbol."""
    root = mask_root(mask)
    count = walker.symbol(SymbolKind.COUNT, root)
    total = product(source)
    if total is not None:
        walker.knowledge.add(total.minus(count))
    return count


def mask_root(mask: Value) -> Value:
    """Return the mask from which a mask is cast; casts keep which elements are zero."""
    value = mask
    while value.producer is not None and value.constant is None and not value.is_input:
        node = value.producer
        if node.type not in {"Cast", "Convert", "Identity"} or node.inputs[0].value is None:
            break
        source = node.inputs[0].value
        kinds = {"boolean", "signed", "unsigned"}
        if source.element_type is None or source.element_type.kind not in kinds:
            break
        if value.element_type is None or value.element_type.kind not in kinds:
            break
        if source.element_type.kind != "boolean" and value.element_type.kind != "boolean":
            break
        value = source
    return value


def rank_of(shape: Dims) -> int | None:
    return None if shape is None else len(shape)


EXACT_INTEGERS = {"f64": 2**53, "f32": 2**24, "f16": 2**11, "bf16": 2**8}
"""The magnitude up to which each floating-point type holds all integers exactly."""


def moved_axes(numbers: TensorNumbers, order: Sequence[int | None]) -> TensorNumbers:
    """Return the facts after axes have moved: the old axis for each new one, None for an added axis.

    Old axes that are not in `order` have size 1.
    """
    places = {axis: number for number, axis in enumerate(order) if axis is not None}

    def move(axes: frozenset[int]) -> frozenset[int]:
        return frozenset([places[axis] for axis in axes if axis in places])

    columns, tuples_axis = numbers.columns, numbers.tuples_axis
    if numbers.column_axis not in places:
        columns = None
    kept = [axis for axis in order if axis is not None]
    return replace(
        numbers, split=numbers.split if kept == sorted(kept) else None, columns=columns,
        column_axis=places.get(numbers.column_axis, 0), rank=len(order),
        varying=None if numbers.varying is None else move(numbers.varying), distinct=move(numbers.distinct),
        tuples_axis=None if tuples_axis is None else places.get(tuples_axis),
    )  # fmt: skip


def stretched(
    numbers: TensorNumbers, order: Sequence[int | None], before: Sequence[Linear], after: Sequence[Linear],
    knowledge: Knowledge, *, is_tile: bool = False,
) -> TensorNumbers:  # fmt: skip
    """Return the facts after broadcasting from shape `before` to `after`; `order` as in `moved_axes`.

    A dimension of size n becomes one of size m if n is 1 or m. Elements along it stay distinct if n >= m;
    that becomes a condition if it is not proven.
    """
    moved = moved_axes(numbers, order)
    same, maybe, conditions = set[int](), set[int](), set[Linear]()
    for axis, source in enumerate(order):
        if source is None:
            continue
        size = before[source]
        if size == after[axis]:
            same.add(axis)
        elif not size.is_constant and not is_tile and axis in moved.distinct:
            maybe.add(axis)
            if not knowledge.proves(size.minus(after[axis])):
                conditions.add(size.minus(after[axis]))
    varying_axes = moved.varying
    if varying_axes is not None and is_tile:
        sources = [(axis, before[source]) for axis, source in enumerate(order) if source is not None]
        varying_axes |= {axis for axis, size in sources if axis not in same and size != ONE}
    kept = same | maybe
    is_whole = len(kept) == len(after)
    return replace(
        moved, columns=moved.columns if moved.column_axis in same else None, varying=varying_axes,
        distinct=moved.distinct & kept, is_unique=moved.is_unique and is_whole,
        tuples_axis=moved.tuples_axis if len(same) == len(after) else None,
        split=moved.split if len(same) == len(after) else None,
        conditions=moved.conditions | conditions,
    )  # fmt: skip


def type_limits(case: NodeCase, value: Value | None = None) -> tuple[int, int] | None:
    """Return the range of integers that an element type holds exactly; None if unknown.

    The type is that of a value, by default of the output.
    """
    element_type = case.walker.facts.element_type(value or case.node.outputs[case.output])
    if element_type is not None and element_type.kind == "float":
        limit = EXACT_INTEGERS.get(element_type.name, 0)
        return (-limit, limit) if limit else None
    low, high = type_range(element_type)
    return None if abs(low) > 2**70 or high > 2**70 else (int(low), int(high))


def is_float(case: NodeCase) -> bool:
    element_type = case.walker.facts.element_type(case.node.outputs[case.output])
    return element_type is None or element_type.kind not in {"signed", "unsigned", "boolean"}


def unwrapped_input(case: NodeCase, numbers: TensorNumbers, port: int) -> TensorNumbers:
    """Return the facts of an input without wrap-around, for operators that compare its elements."""
    limits = type_limits(case, case.value(port))
    if limits is None:
        return numbers
    return numbers.mapped(lambda cases: tuple([unwrapped(part, *limits, case.knowledge) for part in cases]))


def operands(case: NodeCase) -> Generator[Query, Any, "tuple[list[TensorNumbers], list[Dims], Dims]"]:
    parts, shapes = [], []
    for port in range(len(case.node.inputs)):
        parts.append((yield from case.numbers(port)))
        shapes.append((yield from case.dims(port)))
    dims = yield from case.output_dims()
    return parts, shapes, dims


def align(numbers: TensorNumbers, shape: Dims, dims: Sequence[Linear], knowledge: Knowledge) -> TensorNumbers:
    """Return the facts of an operand after an elementwise operator has broadcast it to `dims`."""
    if shape is None or len(shape) > len(dims):
        return numbers.bounds_only()
    order: list[int | None] = [*([None] * (len(dims) - len(shape))), *range(len(shape))]
    return stretched(numbers, order, shape, dims, knowledge)


def copied_root(value: Value) -> Value:
    """Return the value that a value copies in the same order, through casts and reshapes."""
    for _ in range(MOST_NESTED):
        node = value.producer
        if node is None or value.is_input or value.constant is not None or not node.inputs:
            break
        source = node.inputs[0].value
        if (
            node.type not in {"Cast", "Convert", "Identity", "Reshape", "Unsqueeze", "Squeeze"}
            or source is None
        ):
            break
        value = source
    return value


_LONGEST_ORIGIN = 80
"""Maximum characters of an origin in a message."""


def joined_origin(parts: Sequence[TensorNumbers], separator: str) -> str:
    """Join the origins of several operands for messages, without repetitions.

    The origin "constant" is omitted beside others.
    """
    texts = dict.fromkeys(text for part in parts for text in part.origin.split(separator) if text)
    if len(texts) > 1:
        texts.pop("constant", None)
    joined = separator.join(texts)
    return joined if len(joined) <= _LONGEST_ORIGIN else next(iter(texts))
