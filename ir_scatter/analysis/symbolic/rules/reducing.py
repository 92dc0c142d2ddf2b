"""Rules for the elements of reductions and running sums."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from ir_scatter.analysis.symbolic.case import NodeCase, Query
from ir_scatter.analysis.symbolic.linear import ONE, ZERO, product
from ir_scatter.analysis.symbolic.numbers import CaseBounds, TensorNumbers, exactly, of_some
from ir_scatter.analysis.symbolic.rules.dimensions import reduced_axes
from ir_scatter.analysis.symbolic.rules.registry import rule_for_numbers
from ir_scatter.analysis.symbolic.rules.shared import (
    copied_root,
    count_of,
    is_float,
    mask_root,
    rank_of,
    unwrapped_input,
)
from ir_scatter.ops.attributes import Attributes


@rule_for_numbers("ReduceMax", "ReduceMin")
def _reduced_extreme(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    numbers, source, dims = (
        (yield from case.numbers(0)),
        (yield from case.dims(0)),
        (yield from case.output_dims()),
    )
    if source is None or is_float(case):
        return None
    axes, _ = reduced_axes(case, len(source))
    if axes is None or not all(case.knowledge.least(source[axis]) >= 1 for axis in axes):
        return None  # without elements the result is an end of the type
    numbers = unwrapped_input(case, numbers, 0)
    return TensorNumbers(
        of_some(numbers.cases), rank=rank_of(dims), origin=numbers.origin, unknown=numbers.unknown
    )


@rule_for_numbers("ReduceSum")
def _reduced_sum(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    """ReduceSum: a mask summed over all axes is the number of its true elements."""
    numbers, source, dims = (
        (yield from case.numbers(0)),
        (yield from case.dims(0)),
        (yield from case.output_dims()),
    )
    mask = case.value(0)
    if source is None or mask is None or is_float(case):
        return None
    axes, _ = reduced_axes(case, len(source))
    if axes is None:
        return None
    count = product([source[axis] for axis in axes])
    root = mask_root(mask)
    root_type = case.walker.facts.element_type(root)
    if root_type is not None and root_type.kind == "boolean" and {*axes} == {*range(len(source))}:
        return TensorNumbers(
            exactly(count_of(case.walker, root, source)),
            rank=rank_of(dims),
            origin="a number of true elements",
        )
    if count is None:
        return None
    numbers = _as_mask(case, unwrapped_input(case, numbers, 0))
    result = []
    for part in numbers.cases:
        is_positive = any(case.knowledge.proves(low) for low in part.lows)
        highs = [high.multiplied(count) for high in part.highs if case.knowledge.proves(high)]
        limits = tuple([high for high in highs if high is not None])
        result.append(CaseBounds((ZERO,) if is_positive else (), limits, part.requires, may_wrap=True))
    if len(result) > 1:
        return None
    return TensorNumbers(tuple(result), rank=rank_of(dims), unknown=numbers.unknown)


def _as_mask(case: NodeCase, numbers: TensorNumbers) -> TensorNumbers:
    """Return the facts of a model input as those of a mask, with the requirement that it is one."""
    if len(numbers.cases) != 1:
        return numbers
    part, value = numbers.cases[0], case.value(0)
    root = None if value is None else copied_root(value)
    if root not in case.walker.inputs or any(case.knowledge.proves(low) for low in part.lows):
        return numbers
    requires = frozenset([*part.lows[:1], *[ONE.minus(high) for high in part.highs[:1]]])
    return replace(numbers, cases=(CaseBounds((ZERO,), (ONE,), part.requires | requires),), columns=None)


@rule_for_numbers("ReduceProd")
def _reduced_product(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    elements = yield from case.vector(0)
    dims = yield from case.output_dims()
    result = None if elements is None or is_float(case) else product(elements)
    return None if result is None else TensorNumbers(exactly(result), rank=rank_of(dims), origin="sizes")


@rule_for_numbers("CumSum")
def _cumulative(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    """CumSum of non-negative numbers: at most the greatest number times the size of the axis."""
    numbers, source = unwrapped_input(case, (yield from case.numbers(0)), 0), (yield from case.dims(0))
    axes = case.constants(1)
    if source is None or axes is None or len(axes) != 1 or is_float(case) or len(numbers.cases) != 1:
        return None
    size = source[axes[0] % len(source)]
    numbers = _as_mask(case, numbers)
    part = numbers.cases[0]
    if not any(case.knowledge.proves(low) for low in part.lows):
        return None
    highs = [high.multiplied(size) for high in part.highs if case.knowledge.proves(high)]
    limits = tuple([high for high in highs if high is not None])
    distinct: frozenset[int] = frozenset()
    is_increasing = any(case.knowledge.proves(low.plus(-1)) for low in part.lows)
    if is_increasing and not part.requires:
        distinct = frozenset([axes[0] % len(source)])
    attributes = Attributes(case.node.attributes)
    is_exclusive = (
        attributes.boolean("exclusive", False)
        if case.is_openvino
        else bool(attributes.integer("exclusive", 0))
    )
    lows = (ZERO,) if is_exclusive else tuple([low for low in part.lows if case.knowledge.proves(low)])
    return TensorNumbers(
        (CaseBounds(lows, limits, part.requires, may_wrap=True),), rank=len(source),
        varying=None, distinct=distinct, is_unique=bool(distinct) and len(source) == 1,
        origin=f"running sum of {numbers.origin}" if numbers.origin else "a running sum",
        unknown=numbers.unknown,
    )  # fmt: skip
