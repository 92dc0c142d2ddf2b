"""Rules for the elements of operators that make positions and sizes: ShapeOf, Range, NonZero, TopK, ..."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from ir_scatter.analysis.interpreter import load
from ir_scatter.analysis.symbolic.case import NodeCase, Query, varying
from ir_scatter.analysis.symbolic.linear import ONE, Linear, product
from ir_scatter.analysis.symbolic.numbers import (
    MOST_COLUMNS,
    UNKNOWN,
    CaseBounds,
    TensorNumbers,
    between,
    exactly,
    from_vector,
    union,
)
from ir_scatter.analysis.symbolic.rules.dimensions import shape_part
from ir_scatter.analysis.symbolic.rules.registry import rule_for_numbers
from ir_scatter.analysis.symbolic.rules.shared import EXACT_INTEGERS, mask_root, rank_of
from ir_scatter.analysis.symbolic.words import show
from ir_scatter.core.tensors import Constant
from ir_scatter.ops.attributes import Attributes


@rule_for_numbers("ShapeOf")
def _sizes(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    source = yield from case.dims(0)
    if source is None:
        return TensorNumbers(between(0, None), rank=1, origin="sizes")
    start, end = shape_part(case, len(source))
    return from_vector([exactly(size) for size in source[start:end]], origin="sizes")


@rule_for_numbers("Size")
def _element_count(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    source = yield from case.dims(0)
    count = None if source is None else product(source)
    return TensorNumbers(between(0, None) if count is None else exactly(count), rank=0, origin="sizes")


@rule_for_numbers("Range")
def _counted(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    start, stop, step = (
        (yield from case.numbers(0)), (yield from case.numbers(1)), (yield from case.numbers(2))
    )  # fmt: skip
    output = case.node.outputs[case.output]
    element_type = case.walker.facts.element_type(output)
    if element_type is None or element_type.kind not in {"signed", "unsigned"}:
        limit = 0 if element_type is None else EXACT_INTEGERS.get(element_type.name, 0)
        if not limit or start.unknown or stop.unknown or step.number != ONE:
            return TensorNumbers(rank=1)
    result = TensorNumbers(
        rank=1, varying=frozenset([0]), distinct=frozenset([0]), is_unique=True, origin="Range",
        unknown=start.unknown or stop.unknown or step.unknown,
    )  # fmt: skip
    increment = step.number
    if increment is None or not increment.is_constant or not increment.constant:
        return replace(result, distinct=frozenset(), is_unique=False)
    if len(start.cases) != 1 or len(stop.cases) != 1:
        return result
    first, last = start.cases[0], stop.cases[0]
    requires = first.requires | last.requires
    if increment.constant > 0:
        lows, highs = first.lows, tuple([high.plus(-1) for high in last.highs])
        exact = increment == ONE and first.number is not None and last.number is not None
    else:
        lows, highs = tuple([low.plus(1) for low in last.lows]), first.highs
        exact = False
    return replace(result, cases=(CaseBounds(lows, highs, requires, is_exact=exact),))


@rule_for_numbers("NonZero")
def _positions(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    source = yield from case.dims(0)
    mask = case.value(0)
    name = mask.name if mask is not None else "a mask"
    if source is None:
        return TensorNumbers(between(0, None), rank=2, tuples_axis=0)
    columns = tuple([between(0, size.minus(1), is_exact=_is_fed(case)) for size in source]) or (exactly(0),)
    return TensorNumbers(
        union(columns), columns if len(columns) <= MOST_COLUMNS else None, 0, 2, frozenset([0, 1]),
        frozenset([1]) if len(columns) == 1 else frozenset(), len(columns) == 1, 0,
        origin=f"positions of nonzero elements of {name}, each once",
    )  # fmt: skip


@rule_for_numbers("ArgMax", "ArgMin")
def _arg_positions(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    source, dims = (yield from case.dims(0)), (yield from case.output_dims())
    if source is None:
        return TensorNumbers(between(0, None))
    axis = Attributes(case.node.attributes).integer("axis", 0) % len(source)
    return TensorNumbers(
        between(0, source[axis].minus(1), is_exact=_is_fed(case)), rank=rank_of(dims),
        varying=None if dims is None else frozenset(varying(dims)),
        origin=f"positions from {case.node.name} along an axis of size {show_size(case, source[axis])}",
    )  # fmt: skip


def _is_fed(case: NodeCase) -> bool:
    """Return whether the first input of the node is a model input, whose elements may be any numbers."""
    value = case.value(0)
    return value is not None and mask_root(value) in case.walker.inputs


def show_size(case: NodeCase, size: Linear) -> str:
    return show(size, case.walker)


@rule_for_numbers("TopK")
def _top_positions(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    source, dims = (yield from case.dims(0)), (yield from case.output_dims())
    if source is None:
        return TensorNumbers(between(0, None) if case.output else UNKNOWN)
    axis = Attributes(case.node.attributes).integer("axis", -1) % len(source)
    if case.output == 0:
        numbers = yield from case.numbers(0)
        return replace(
            numbers.bounds_only(), rank=rank_of(dims), distinct=numbers.distinct & {axis},
            is_unique=numbers.is_unique, conditions=numbers.conditions,
        )  # fmt: skip
    further = [size for number, size in enumerate(source) if number != axis]
    return TensorNumbers(
        between(0, source[axis].minus(1), is_exact=_is_fed(case)), rank=len(source),
        varying=None if dims is None else frozenset(varying(dims)), distinct=frozenset([axis]),
        is_unique=all(size == ONE for size in further),
        origin=f"positions from {case.node.name} along an axis of size {show_size(case, source[axis])}",
    )  # fmt: skip


@rule_for_numbers("Unique")
def _unique_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    numbers, source = (yield from case.numbers(0)), (yield from case.dims(0))
    count = case.walker.size(case.node.outputs[0], 0)
    is_flat = "axis" not in case.node.attributes
    if case.output == 0:
        if not is_flat:
            return numbers.bounds_only()
        return TensorNumbers(
            numbers.cases, rank=1, varying=frozenset([0]), distinct=frozenset([0]), is_unique=True,
            origin="unique elements", unknown=numbers.unknown,
        )  # fmt: skip
    if case.output == 1:
        total = None if source is None or not is_flat else product(source)
        return TensorNumbers(
            between(0, None if total is None else total.minus(1)), rank=1, varying=frozenset([0]),
            distinct=frozenset([0]), is_unique=True, origin="first positions of unique elements",
        )  # fmt: skip
    if case.output == 2 and is_flat:
        return TensorNumbers(between(0, count.minus(1)), rank=1, origin="inverse indices of unique elements")
    return TensorNumbers(between(0, None), rank=1)


@rule_for_numbers("ConstantOfShape")
def _filled_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    dims = yield from case.output_dims()
    written = case.node.attributes.get("value")
    element = load(written).reshape(-1)[0] if isinstance(written, Constant) else 0
    if float(element) != int(element):
        return TensorNumbers(rank=rank_of(dims))
    return TensorNumbers(exactly(int(element)), rank=rank_of(dims), varying=frozenset(), origin="constant")


@rule_for_numbers("OneHot")
def _one_hot(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    dims = yield from case.output_dims()
    if case.is_openvino:
        on, off = (yield from case.numbers(2)), (yield from case.numbers(3))
        return TensorNumbers(
            union([on.cases, off.cases]), rank=rank_of(dims), unknown=on.unknown or off.unknown
        )
    values = yield from case.numbers(2)
    return TensorNumbers(values.cases, rank=rank_of(dims), unknown=values.unknown)
