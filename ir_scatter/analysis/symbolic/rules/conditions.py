"""Rules for elements under a condition: Where (i < 0, i + n, i), and elements that a mask selects."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ir_scatter.analysis.symbolic.case import NodeCase, Query, SymbolSource, type_range
from ir_scatter.analysis.symbolic.linear import Knowledge, Linear
from ir_scatter.analysis.symbolic.numbers import (
    MOST_COLUMNS,
    Cases,
    TensorNumbers,
    from_vector,
    union,
    unwrapped,
    with_bounds,
)
from ir_scatter.analysis.symbolic.rules.registry import numbers_of_output, rule_for_numbers
from ir_scatter.analysis.symbolic.rules.shared import MOST_NESTED, align, rank_of
from ir_scatter.core.model import Value
from ir_scatter.ops.general import find as find_row

_TURNED = {"Less": "Greater", "LessEqual": "GreaterEqual", "Greater": "Less", "GreaterEqual": "LessEqual"}


_OPPOSITE = {"Less": "GreaterEqual", "LessEqual": "Greater", "Greater": "LessEqual", "GreaterEqual": "Less"}


@rule_for_numbers("Select")
def _selected_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    """Select: the elements of both choices, each limited by the condition that selects it.

    Example:
        Where (i < 0, i + n, i)      i + n for i <= -1, and i for i >= 0
    """
    condition = case.value(0)
    dims = yield from case.output_dims()
    first, second = (yield from case.numbers(1)), (yield from case.numbers(2))
    results = []
    chooser = yield from case.numbers(0)
    if dims is not None:
        chosen = yield from _columns_by_condition(case, chooser, first, second, dims)
        if chosen is not None:
            return chosen
    for port, numbers, truth in ((1, first, True), (2, second, False)):
        value = case.value(port)
        if condition is not None and value is not None:
            refined = yield from under_condition(case.walker, value, condition, truth)
            numbers = numbers if refined is None else refined
        results.append(numbers)
    unknown = results[0].unknown or results[1].unknown
    columns = None
    lefts, rights = results[0].columns, results[1].columns
    is_alike = results[0].column_axis == results[1].column_axis and results[0].rank == results[1].rank
    if is_alike and lefts is not None and rights is not None and len(lefts) == len(rights):
        columns = tuple([union([a, b]) for a, b in zip(lefts, rights, strict=True)])
    return TensorNumbers(
        union([result.cases for result in results]), columns, results[0].column_axis, rank_of(dims),
        unknown=unknown, origin=first.origin or second.origin,
    )  # fmt: skip


def _columns_by_condition(
    case: NodeCase,
    chooser: TensorNumbers,
    first: TensorNumbers,
    second: TensorNumbers,
    dims: Sequence[Linear],
) -> Generator[Query, Any, TensorNumbers | None]:
    """Return the facts of a Select whose condition is certain, for all elements or by column.

    None if the condition is uncertain.
    """
    certain = chooser.number
    shapes = []
    for port in range(3):
        shapes.append((yield from case.dims(port)))
    if certain is not None and certain.is_constant:
        chosen, shape = (first, shapes[1]) if certain.constant else (second, shapes[2])
        aligned = align(chosen, shape, dims, case.knowledge)
        return aligned
    if len(dims) != 1 or not dims[0].is_constant or not 0 < dims[0].constant <= MOST_COLUMNS:
        return None
    count = dims[0].constant
    columns = []
    parts = [
        part.columns if part.columns is not None and len(part.columns) == count else (part.cases,) * count
        for part in (chooser, first, second)
    ]
    for condition, left, right in zip(*parts, strict=True):
        number = condition[0].number if len(condition) == 1 else None
        if number is None or not number.is_constant:
            return None  # the condition may say more of the elements that it selects
        columns.append(left if number.constant else right)
    origin = first.origin or second.origin
    return replace(from_vector(columns, origin=origin), unknown=first.unknown or second.unknown)


class _Implied(NamedTuple):
    """The bounds of the elements of a value that follow from a condition."""

    compared: Value
    lows: tuple[Linear, ...] = ()
    highs: tuple[Linear, ...] = ()


def under_condition(
    walker: SymbolSource, value: Value, condition: Value, truth: bool
) -> Generator[Query, Any, TensorNumbers | None]:
    """Return the facts about those elements of a value where a condition has the given truth.

    None if the condition implies nothing about them.
    """
    implied = yield from _implied(walker, condition, truth, MOST_NESTED)
    held = dict[Value, TensorNumbers]()
    for compared, lows, highs in implied:
        if compared not in held:
            held[compared] = yield Query(compared, False)
        low, high = type_range(walker.facts.element_type(compared))
        if abs(low) > 2**70 or high > 2**70:
            return None
        held[compared] = held[compared].mapped(
            partial(
                _within_bounds, bounds=(lows, highs), limits=(int(low), int(high)), knowledge=walker.knowledge
            )
        )
    if not held:
        return None
    return (yield from _refined(walker, value, held, MOST_NESTED))


def _within_bounds(
    cases: Cases,
    *,
    bounds: tuple[tuple[Linear, ...], tuple[Linear, ...]],
    limits: tuple[int, int],
    knowledge: Knowledge,
) -> Cases:
    """Return the cases limited by additional bounds (lows, highs); `limits` are those of the element type."""
    return tuple(
        [with_bounds(unwrapped(part, *limits, knowledge), *bounds)._replace(is_exact=False) for part in cases]
    )


def _implied(
    walker: SymbolSource, condition: Value, truth: bool, depth: int
) -> Generator[Query, Any, list[_Implied]]:
    """Return the bounds that follow from a condition; a conjunction implies those of both parts."""
    node = None if condition.is_input or condition.constant is not None else condition.producer
    if node is None or not depth or node.bodies or not node.inputs:
        return []
    values = [port.value for port in node.inputs if port.value is not None]
    op = find_row(node.domain, node.type)
    if op is None or (op.is_elementwise and not op.aligns_last(node.attributes)):
        return []
    if node.type in {"Not", "LogicalNot", "Identity"}:
        return (yield from _implied(walker, values[0], truth is (node.type == "Identity"), depth - 1))
    if node.type in ({"And", "LogicalAnd"} if truth else {"Or", "LogicalOr"}):
        result = []
        for value in values:
            result += yield from _implied(walker, value, truth, depth - 1)
        return result
    name = {"LessOrEqual": "LessEqual", "GreaterOrEqual": "GreaterEqual"}.get(node.type, node.type)
    if name not in _TURNED or len(values) < 2:
        return []
    left, right = values
    limit: TensorNumbers = yield Query(right, False)
    compared = left
    if limit.number is None:
        limit, compared, name = (yield Query(left, False)), right, _TURNED[name]
    if limit.number is None or any(part.requires or part.may_wrap for part in limit.cases):
        return []
    name = name if truth else _OPPOSITE[name]
    number = limit.number
    if name in {"Less", "LessEqual"}:
        return [_Implied(compared, highs=(number if name == "LessEqual" else number.plus(-1),))]
    return [_Implied(compared, lows=(number if name == "GreaterEqual" else number.plus(1),))]


def _refined(
    walker: SymbolSource, value: Value, held: Mapping[Value, TensorNumbers], depth: int
) -> Generator[Query, Any, TensorNumbers | None]:
    """Return the facts about a value, given the facts `held` about some values upstream of it.

    Only elementwise operators may lie between: an element is then computed from the compared element at the
    same position. None if the value does not depend on the others in this way.
    """
    if value in held:
        return held[value]
    node = None if value.constant is not None or value.is_input else value.producer
    op = None if node is None or node.bodies else find_row(node.domain, node.type)
    if node is None or op is None or not depth:
        return None
    is_elementwise = op.is_elementwise and op.aligns_last(node.attributes)
    if not is_elementwise and not (op.is_pointwise and op.moves == (0,)):
        return None
    replaced: dict[Value, TensorNumbers] = {}
    for port in node.inputs:
        if port.value is not None and port.value not in replaced:
            inner = yield from _refined(walker, port.value, held, depth - 1)
            if inner is not None:
                replaced[port.value] = inner
    if not replaced:
        return None
    rule = numbers_of_output(NodeCase(walker, node, op, value.output))
    answer: Any = None
    is_first = True
    while True:
        try:
            query = next(rule) if is_first else rule.send(answer)
        except StopIteration as end:
            numbers = end.value
            return numbers if isinstance(numbers, TensorNumbers) else None
        is_first = False
        if not query.asks_dims and query.value in replaced:
            answer = replaced[query.value]
        else:
            answer = yield query
