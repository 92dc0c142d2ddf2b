"""Rules for the elements that arithmetic operators compute: sums, products, quotients, remainders, limits."""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from ir_scatter.analysis.symbolic.case import NodeCase, Query, varying
from ir_scatter.analysis.symbolic.linear import ONE, ZERO, Knowledge, Linear, divided_by_monomial, quotient
from ir_scatter.analysis.symbolic.numbers import (
    CaseBounds,
    Cases,
    Condition,
    Split,
    TensorNumbers,
    add,
    between,
    exactly,
    multiply,
    negate,
    pairwise,
    subtract,
    union,
    unwrapped,
    with_bounds,
)
from ir_scatter.analysis.symbolic.rules.registry import operator_name, rule_for_numbers
from ir_scatter.analysis.symbolic.rules.shared import (
    align,
    copied_root,
    is_float,
    joined_origin,
    operands,
    rank_of,
    type_limits,
    unwrapped_input,
)
from ir_scatter.ops.attributes import Attributes


def _elementwise(
    case: NodeCase, combine: Callable[[Cases, Cases], Cases]
) -> Generator[Query, Any, tuple[TensorNumbers, TensorNumbers, TensorNumbers]]:
    """Return the combined bounds of two operands, and the facts of both operands after broadcasting."""
    (left, right), (first, second), dims = yield from operands(case)
    unknown = left.unknown or right.unknown
    origin = joined_origin([left, right], " and ")

    def combined(first: Cases, second: Cases) -> Cases:
        """Combine cases; exact if an operand is a single number, or both vary along different axes."""
        cases = combine(first, second)
        is_number = any(len(part) == 1 and part[0].number is not None for part in (first, second))
        axes = [part.varying for part in (left, right)]
        are_apart = None not in axes and dims is not None and not (axes[0] or set()) & (axes[1] or set())
        if is_number or are_apart:
            return cases
        return tuple([part._replace(is_exact=False) for part in cases])

    if dims is None:
        return TensorNumbers(combined(left.cases, right.cases), unknown=unknown, origin=origin), left, right
    left, right = align(left, first, dims, case.knowledge), align(right, second, dims, case.knowledge)
    columns, axis = None, 0
    width = {len(part.columns) for part in (left, right) if part.columns is not None}
    axes = {part.column_axis for part in (left, right) if part.columns is not None}
    if len(width) == 1 and len(axes) == 1:
        axis, count = axes.pop(), width.pop()
        pairs = zip(*[part.columns or (part.cases,) * count for part in (left, right)], strict=True)
        columns = tuple([combined(a, b) for a, b in pairs])
    varying_axes = None if left.varying is None or right.varying is None else left.varying | right.varying
    result = TensorNumbers(
        combined(left.cases, right.cases), columns, axis, len(dims), varying_axes,
        origin=origin, unknown=unknown,
    )  # fmt: skip
    return result, left, right


def _with_distinctness(result: TensorNumbers, moving: TensorNumbers, still: TensorNumbers) -> TensorNumbers:
    """Add distinctness to a sum: it has that of `moving` along axes on which `still` is constant."""
    if still.varying is None:
        return result
    kept = frozenset([axis for axis in moving.distinct if axis not in still.varying])
    is_kept = bool(kept) or (moving.is_unique and not still.varying) or moving.tuples_axis is not None
    return replace(
        result, conditions=result.conditions | (moving.conditions if is_kept else frozenset()),
        distinct=result.distinct | kept,
        is_unique=result.is_unique or (moving.is_unique and not still.varying),
        tuples_axis=moving.tuples_axis
        if moving.tuples_axis is not None and still.varying <= {moving.tuples_axis} else result.tuples_axis,
    )  # fmt: skip


def _require_exact_floats(case: NodeCase, result: TensorNumbers) -> TensorNumbers:
    """Require, for float outputs, that the numbers are integers which the type holds exactly."""
    if not is_float(case):
        return result
    limits = type_limits(case)
    if limits is None:
        return TensorNumbers(rank=result.rank)
    return result.mapped(lambda cases: tuple([unwrapped(part, *limits, case.knowledge) for part in cases]))


@rule_for_numbers("Add")
def _sum(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    result, left, right = yield from _elementwise(case, lambda a, b: pairwise(a, b, add))
    result = _with_distinctness(_with_distinctness(result, left, right), right, left)
    if (radix := _mixed_radix(case.knowledge, left, right)) is not None:
        result = replace(result, **radix)
    return _require_exact_floats(case, result)


def _mixed_radix(knowledge: Knowledge, left: TensorNumbers, right: TensorNumbers) -> dict[str, Any] | None:
    """Return distinctness of sums W * row + column with columns from 0 to W - 1: all sums are distinct.

    None for other operands.
    """
    for rows, columns in ((left, right), (right, left)):
        step = rows.split.divisor if rows.split is not None and rows.split.modulus == 0 else None
        if step is None or rows.varying is None or columns.varying is None or len(columns.cases) != 1:
            continue
        case = columns.cases[0]
        if rows.varying & columns.varying or case.requires or case.may_wrap:
            continue
        is_inside = any(knowledge.proves(low) for low in case.lows) and any(
            knowledge.proves(Linear(step - 1).minus(high)) for high in case.highs
        )
        if is_inside:
            distinct = (rows.distinct | columns.distinct) & (rows.varying | columns.varying)
            return {"distinct": distinct, "is_unique": len(distinct) == len(rows.varying | columns.varying)}
    return None


@rule_for_numbers("Subtract")
def _difference(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    result, left, right = yield from _elementwise(case, lambda a, b: pairwise(a, b, subtract))
    return _require_exact_floats(
        case, _with_distinctness(_with_distinctness(result, left, right), right, left)
    )


@rule_for_numbers("Multiply")
def _multiplied(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    result, left, right = yield from _elementwise(
        case, lambda a, b: pairwise(a, b, lambda first, second: multiply(first, second, case.knowledge))
    )
    for moving, factor in ((left, right), (right, left)):
        number = factor.number
        if number is None or not number.is_constant or not number.constant:
            continue
        limits = type_limits(case)
        fits = limits is not None and all(
            not part.requires
            and any(case.knowledge.proves(low.plus(-limits[0])) for low in part.lows)
            and any(case.knowledge.proves(Linear(limits[1]).minus(high)) for high in part.highs)
            for part in result.cases
        )
        if fits or number.constant in {1, -1}:
            result = _with_distinctness(result, moving, factor)
            whole = case.value(0)
            if number.constant > 1 and whole is not None:
                result = replace(result, split=Split(whole, number.constant, 0))
    return _require_exact_floats(case, result)


@rule_for_numbers("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
def _compared(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    """Comparisons: 0 or 1, exactly one of them if the bounds decide it, as in Equal (size, -1)."""
    name, knowledge = operator_name(case), case.knowledge

    def truth(left: CaseBounds, right: CaseBounds) -> CaseBounds:
        truth_value = _certain_result(name, left, right, knowledge)
        return between(0, 1)[0] if truth_value is None else exactly(int(truth_value))[0]

    result, _, _ = yield from _elementwise(case, lambda a, b: pairwise(a, b, truth))
    return replace(result, unknown=None)


def _certain_result(name: str, left: CaseBounds, right: CaseBounds, knowledge: Knowledge) -> bool | None:
    """Return the result of a comparison if it is the same for all elements, else None."""
    if left.may_wrap or right.may_wrap or left.requires or right.requires:
        return None

    def at_most(first: CaseBounds, second: CaseBounds, gap: int) -> bool:
        return any(
            knowledge.proves(low.minus(high).plus(-gap)) for low in second.lows for high in first.highs
        )

    if name in {"Greater", "GreaterEqual"}:
        left, right, name = right, left, {"Greater": "Less", "GreaterEqual": "LessEqual"}[name]
    if name in {"Less", "LessEqual"}:
        is_strict = name == "Less"
        if at_most(left, right, int(is_strict)):
            return True
        return False if at_most(right, left, int(not is_strict)) else None
    is_equal = left.number is not None and left.number == right.number
    differs = at_most(left, right, 1) or at_most(right, left, 1)
    if not is_equal and not differs:
        return None
    return is_equal is (name == "Equal")


@rule_for_numbers("Negative")
def _negated(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    numbers = yield from case.numbers(0)
    changed = numbers.mapped(lambda cases: tuple([negate(part)._replace(may_wrap=True) for part in cases]))
    return _require_exact_floats(case, replace(changed, split=None))


@rule_for_numbers("Abs")
def _absolute(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    numbers = unwrapped_input(case, (yield from case.numbers(0)), 0)

    def change(cases: Cases) -> Cases:
        return tuple([_absolute_case(part, case.knowledge) for part in cases])

    changed = numbers.mapped(change)
    return replace(changed, distinct=frozenset(), is_unique=False, tuples_axis=None, split=None)


def _absolute_case(part: CaseBounds, knowledge: Knowledge) -> CaseBounds:
    if any(knowledge.proves(low) for low in part.lows):
        return part
    numbers = [low for low in part.lows if low.is_constant], [high for high in part.highs if high.is_constant]
    if numbers[0] and numbers[1]:
        most = max(-numbers[0][0].constant, numbers[1][0].constant)
        return CaseBounds((ZERO,), (Linear(most),), part.requires)
    return CaseBounds(requires=part.requires)  # the least number of a type has no absolute value


@rule_for_numbers("Divide")
def _divided(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    if is_float(case):
        return None
    truncates = not (case.is_openvino and Attributes(case.node.attributes).boolean("m_pythondiv", True))
    (left, right), (first, _), dims = yield from operands(case)
    left = unwrapped_input(case, left, 0)
    divisor = right.number
    if dims is None or divisor is None or len(right.cases) != 1:
        return None
    knowledge = case.knowledge
    if divisor.is_constant and divisor.constant > 0:
        count = divisor.constant

        def change(cases: Cases) -> Cases:
            return tuple([_divided_case(part, count, truncates, knowledge) for part in cases])

    elif len(divisor.terms) == 1 and not divisor.constant:
        ((monomial, coefficient),) = divisor.terms
        if coefficient != 1:
            return None

        def change(cases: Cases) -> Cases:
            changed = []
            for part in cases:
                highs = [divided_by_monomial(high, monomial) for high in part.highs]
                is_positive = any(knowledge.proves(low) for low in part.lows)
                truth_value = tuple([high for high in highs if high is not None])
                requires = part.requires | (
                    frozenset() if knowledge.proves(divisor.plus(-1)) else {divisor.plus(-1)}
                )
                changed.append(
                    CaseBounds((ZERO,) if is_positive else (), truth_value if is_positive else (), requires)
                )
            return tuple(changed)

    else:
        return None
    aligned = align(left, first, dims, case.knowledge)
    result = aligned.mapped(change)
    split = None
    source = case.value(0)
    if divisor.is_constant and source is not None and not right.varying:
        is_positive = all(any(knowledge.proves(low) for low in part.lows) for part in left.cases)
        before = aligned.split
        if is_positive and before is not None and before.modulus is None:
            split = Split(before.whole, before.divisor * divisor.constant, None)
        elif is_positive and aligned.is_unique:
            split = Split(copied_root(source), divisor.constant, None)
    is_one = divisor == ONE
    return replace(
        result, distinct=aligned.distinct if is_one else frozenset(), is_unique=aligned.is_unique and is_one,
        tuples_axis=aligned.tuples_axis if is_one else None, split=split,
    )  # fmt: skip


def _divided_case(part: CaseBounds, divisor: int, truncates: bool, knowledge: Knowledge) -> CaseBounds:
    quotients = [
        [quotient(end, divisor, truncates=truncates, knowledge=knowledge) for end in bounds]
        for bounds in (part.lows, part.highs)
    ]
    ends = [tuple([end for end in bounds if end is not None]) for bounds in quotients]
    return CaseBounds(ends[0], ends[1], part.requires, is_exact=part.is_exact)


@rule_for_numbers("FloorMod", "Mod")
def _remainder(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    if is_float(case):
        return None
    (left, right), (first, _), dims = yield from operands(case)
    left = unwrapped_input(case, left, 0)
    divisor = right.number
    if divisor is None or dims is None:
        return None
    truncates = operator_name(case) == "Mod" or bool(Attributes(case.node.attributes).integer("fmod", 0))
    is_positive = all(any(case.knowledge.proves(low) for low in part.lows) for part in left.cases)
    low = Linear(1).minus(divisor) if truncates and not is_positive else ZERO
    requires = frozenset() if case.knowledge.proves(divisor.plus(-1)) else frozenset([divisor.plus(-1)])
    aligned = align(left, first, dims, case.knowledge)
    if truncates and not is_positive and all(len(part.lows) for part in left.cases):
        low = ZERO  # a dividend that is 0 or more is required instead
        requires |= {part.lows[0] for part in left.cases if not case.knowledge.proves(part.lows[0])}

    def change(cases: Cases) -> Cases:
        highs = cases[0].highs[:1] if len(cases) == 1 and is_positive and not cases[0].requires else ()
        inherited = frozenset[Linear]().union(*[part.requires for part in cases])
        return (CaseBounds((low,), (divisor.plus(-1), *highs), requires | inherited),)

    result = aligned.mapped(change)
    split = None
    source = case.value(0)
    if divisor.is_constant and source is not None and is_positive:
        before = aligned.split
        if before is not None and before.modulus is None:
            split = Split(before.whole, before.divisor, divisor.constant)
        elif aligned.is_unique:
            split = Split(copied_root(source), 1, divisor.constant)
    result = replace(result, split=split, unknown=None)
    conditions = _distinct_remainders(case.knowledge, left, divisor)
    if right.varying or conditions is None:
        return replace(
            result, distinct=frozenset(), is_unique=False, tuples_axis=None, conditions=frozenset()
        )
    return replace(result, conditions=result.conditions | conditions)


def _distinct_remainders(
    knowledge: Knowledge, numbers: TensorNumbers, divisor: Linear
) -> frozenset[Condition] | None:
    """Return the conditions under which the remainders of distinct numbers are distinct; None if unknown.

    They are if all numbers are from k * n to (k + 1) * n - 1 for one k. Example: (position + n) % n for
    positions from 0 to n - 1.
    """
    if len(numbers.cases) != 1 or not numbers.cases[0].lows or not numbers.cases[0].highs:
        return None
    low, high = numbers.cases[0].lows[0], numbers.cases[0].highs[0]
    turns = [0]
    for monomial, coefficient in divisor.terms:
        if coefficient == 1 and len(divisor.terms) == 1:
            turns.insert(0, low.coefficients().get(monomial, 0))
    for turn in turns:
        start = divisor.times(turn)
        needed = [low.minus(start), start.plus(divisor).plus(-1).minus(high)]
        missing = [end for end in needed if not knowledge.proves(end)]
        if not missing or turn == turns[0]:
            return frozenset(missing)
    return None


def _extreme_of(knowledge: Knowledge, first: Cases, second: Cases, *, is_least: bool) -> Cases:
    """Return the bounds of a minimum or maximum.

    Each case is one operand, and at most, or at least, the other operand.
    """
    results = []
    for chosen, limiting in ((first, second), (second, first)):
        for part in chosen:
            for limit in limiting:
                greater, less = (part, limit) if is_least else (limit, part)
                is_never = any(
                    knowledge.proves(low.minus(high).plus(-1)) for low in greater.lows for high in less.highs
                )
                if is_never and not part.requires and not limit.requires:
                    continue
                ends = CaseBounds() if limit.requires else limit
                results.append(
                    with_bounds(part, highs=ends.highs) if is_least else with_bounds(part, lows=ends.lows)
                )
    return union([tuple(results)])


@rule_for_numbers("Minimum")
def _minimum(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    return (yield from _extreme(case, is_least=True))


@rule_for_numbers("Maximum")
def _maximum(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    return (yield from _extreme(case, is_least=False))


def _extreme(case: NodeCase, *, is_least: bool) -> Generator[Query, Any, TensorNumbers | None]:
    parts, _, dims = yield from operands(case)
    if is_float(case) or not parts:
        return None
    parts = [unwrapped_input(case, part, port) for port, part in enumerate(parts)]
    cases = parts[0].cases
    for part in parts[1:]:
        cases = _extreme_of(case.knowledge, cases, part.cases, is_least=is_least)
    varying_axes = frozenset(varying(dims)) if dims is not None else None
    if all(part.varying == frozenset() for part in parts):
        varying_axes = frozenset()
    unknown = None if any(part.lows or part.highs for part in cases) else parts[0].unknown
    return TensorNumbers(
        cases, rank=rank_of(dims), varying=varying_axes, unknown=unknown, origin=parts[0].origin
    )


@rule_for_numbers("Clamp")
def _clamped_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    """Clip and Clamp, min (max (x, low), high): both ends, and the numbers of x between them."""
    if is_float(case):
        return None
    numbers = unwrapped_input(case, (yield from case.numbers(0)), 0)
    ends: list[Cases | None] = []
    for number, name in enumerate(("min", "max")):
        if name in case.node.attributes:
            written = float(case.node.attributes[name])
            whole = int(written) if abs(written) < 2**62 else None
            rounded = whole if whole is None or whole == written else whole + (name == "min" and written > 0)
            ends.append(None if rounded is None else exactly(rounded))
        elif case.value(number + 1) is None:
            ends.append(None)
        else:
            ends.append(unwrapped_input(case, (yield from case.numbers(number + 1)), number + 1).cases)

    def change(cases: Cases) -> Cases:
        low, high = ends
        result = cases
        if low is not None:
            inner = [with_bounds(_unconditional(part), lows=end.lows) for part in result for end in low]
            result = union([tuple(inner), low])
        if high is not None:
            inner = [with_bounds(_unconditional(part), highs=end.highs) for part in result for end in high]
            result = union([tuple(inner), high])
        return result

    changed = numbers.mapped(change)
    return replace(changed, distinct=frozenset(), is_unique=False, tuples_axis=None, split=None, unknown=None)


def _unconditional(part: CaseBounds) -> CaseBounds:
    """Return a case without bounds that have requirements: other bounds will replace them."""
    return CaseBounds() if part.requires else part._replace(is_exact=False)


@rule_for_numbers("Floor", "Ceiling", "Round", "ReLU")
def _rounded_numbers(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    """Rounding keeps integers unchanged; ReLU replaces negative ones by 0."""
    numbers = yield from case.numbers(0)
    if operator_name(case) == "ReLU":
        numbers = replace(numbers.bounds_only(), rank=numbers.rank)
        return numbers.mapped(
            lambda cases: union(
                [tuple([with_bounds(_unconditional(p), lows=(ZERO,)) for p in cases]), exactly(0)]
            )
        )
    return numbers


@rule_for_numbers("LogicalNot", "LogicalAnd", "LogicalOr", "LogicalXor", "IsNaN", "IsInf", "IsFinite")
def _boolean(case: NodeCase) -> Generator[Query, Any, TensorNumbers]:
    dims = yield from case.output_dims()
    return TensorNumbers(between(0, 1), rank=rank_of(dims))
