"""Formats symbols, expressions and conditions as text: `cache.shape[2] - 1`, `position in 0..15`."""

import re
from collections.abc import Iterable, Mapping
from math import gcd

from ir_scatter.analysis.symbolic.case import SymbolSource
from ir_scatter.analysis.symbolic.linear import Linear, Monomial, Symbol, SymbolKind
from ir_scatter.core.model import Value

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./]*")


def quoted(name: str) -> str:
    """Return a name as conditions write it; quoted unless all characters are letters, digits or "_./"."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '\\"') + '"'


def input_of(symbol: Symbol, walker: SymbolSource) -> Value | None:
    """Return the model input that a symbol belongs to; None for a symbol of another value."""
    value = symbol.value
    if value is None:
        return None
    value = walker.cast_inputs.get(value, value)
    return value if value in walker.inputs else None


def is_checkable(expression: Linear, walker: SymbolSource) -> bool:
    """Return whether a user can check an expression: all its symbols are sizes and elements of inputs."""
    for symbol in expression.symbols():
        if symbol.kind is SymbolKind.QUOTIENT:
            if symbol.dividend is None or not is_checkable(symbol.dividend, walker):
                return False
        elif input_of(symbol, walker) is None or symbol.kind is SymbolKind.OTHER:
            return False
    return True


def show_symbol(symbol: Symbol, walker: SymbolSource) -> str:
    if symbol.kind is SymbolKind.QUOTIENT and symbol.dividend is not None:
        dividend = show(symbol.dividend, walker)
        if symbol.truncates:
            return f"trunc({dividend}, {symbol.divisor})"
        is_sum = len(symbol.dividend.terms) > 1 or symbol.dividend.constant or " " in dividend
        return (
            f"({dividend}) / {symbol.divisor}"
            if is_sum or " " in dividend
            else f"{dividend} / {symbol.divisor}"
        )
    assert symbol.value is not None
    name = quoted(walker.name(symbol.value))
    if symbol.kind is SymbolKind.SIZE:
        return f"{name}.shape[{symbol.axis}]"
    if symbol.kind is SymbolKind.COUNT:
        return f"count({name})"
    return name if symbol.axis < 0 else f"{name}[..., {symbol.axis}]"


def show(expression: Linear, walker: SymbolSource) -> str:
    """Format an expression: `past.shape[2] - 1`."""
    return _sum(expression.coefficients(), expression.constant, walker)


def _sum(terms: Mapping[Monomial, int], constant: int, walker: SymbolSource) -> str:
    texts = []
    for monomial, coefficient in sorted(
        terms.items(), key=lambda term: (term[1] < 0, [show_symbol(symbol, walker) for symbol in term[0]])
    ):
        text = " * ".join(show_symbol(symbol, walker) for symbol in monomial)
        factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)} * "
        texts.append((coefficient < 0, factor + text))
    if constant or not texts:
        texts.append((constant < 0, str(abs(constant))))
    first = "-" + texts[0][1] if texts[0][0] else texts[0][1]
    return first + "".join(f" {'-' if is_negative else '+'} {text}" for is_negative, text in texts[1:])


def simplified(condition: Linear, walker: SymbolSource) -> Linear:
    """Return an equivalent condition with the smallest factors, and without a quotient if possible.

    Examples:
        7 - floor (x / 4) >= 0       x <= 31
        floor (x / 4) - 1 >= 0       x >= 4
        2 * n - 1 >= 0               n >= 1
    """
    common = gcd(*[coefficient for _, coefficient in condition.terms]) if condition.terms else 1
    if common > 1:
        terms = frozenset([(monomial, coefficient // common) for monomial, coefficient in condition.terms])
        condition = Linear(condition.constant // common, terms)
    quotients = [
        (monomial[0], coefficient)
        for monomial, coefficient in condition.terms
        if len(monomial) == 1 and monomial[0].kind is SymbolKind.QUOTIENT
    ]
    if len(quotients) != 1 or abs(quotients[0][1]) != 1:
        return condition
    symbol, coefficient = quotients[0]
    rest = condition.minus(Linear(0, frozenset([((symbol,), coefficient)])))
    dividend, divisor = symbol.dividend, symbol.divisor
    assert dividend is not None
    is_positive = walker.knowledge.least(rest) >= 0
    if symbol.truncates and not rest.is_constant and not is_positive:
        return condition  # the sign decides which way it is rounded
    if coefficient < 0:  # quotient <= rest
        most = rest.times(divisor)
        rounds_up = not symbol.truncates or is_positive
        return simplified(most.plus(divisor - 1 if rounds_up else 0).minus(dividend), walker)
    least = rest.times(-divisor)  # quotient >= -rest
    rounds_down = symbol.truncates and is_positive
    return simplified(dividend.minus(least).plus(divisor - 1 if rounds_down else 0), walker)


def as_text(condition: Linear, walker: SymbolSource) -> str:
    """Format the condition that an expression is at least 0: `past + 4 <= cache.shape[2]`."""
    condition = simplified(condition, walker)
    left = {monomial: -coefficient for monomial, coefficient in condition.terms if coefficient < 0}
    right = {monomial: coefficient for monomial, coefficient in condition.terms if coefficient > 0}
    if not left:
        return f"{_sum(right, 0, walker)} >= {-condition.constant}"
    if not right:
        return f"{_sum(left, 0, walker)} <= {condition.constant}"
    return f"{_sum(left, 0, walker)} <= {_sum(right, condition.constant, walker)}"


def element_of(condition: Linear) -> tuple[Symbol, int] | None:
    """Return the only symbol of elements in a condition, and its coefficient.

    None for several such symbols, or if the coefficient is not 1 or -1.
    """
    elements = [
        (monomial[0], coefficient)
        for monomial, coefficient in condition.terms
        for symbol in monomial[:1]
        if any(part.kind in {SymbolKind.LEAST, SymbolKind.GREATEST} for part in monomial)
    ]
    if len(elements) != 1 or abs(elements[0][1]) != 1:
        return None
    lone = [monomial for monomial, _ in condition.terms if elements[0][0] in monomial]
    return elements[0] if lone == [(elements[0][0],)] else None


def as_texts(conditions: Iterable[Linear], walker: SymbolSource) -> list[str]:
    """Format conditions; a least and a greatest element of one input become a range.

    Example:
        Least (p) >= 0, Greatest (p) <= 15           p in 0..15
    """
    ranges: dict[tuple[Value | None, int], list[Linear | None]] = {}
    texts: dict[str, None] = {}
    for condition in dict.fromkeys(simplified(each, walker) for each in conditions):
        element = element_of(condition)
        if element is None:
            texts[as_text(condition, walker)] = None
            continue
        symbol, coefficient = element
        limit = condition.minus(Linear(0, frozenset([((symbol,), coefficient)])))
        ends = ranges.setdefault((symbol.value, symbol.axis), [None, None])
        place, end = (0, limit.times(-1)) if coefficient > 0 else (1, limit)
        if ends[place] is None or _is_stricter(end, ends[place], place):
            ends[place] = end
        elif ends[place] != end and not _is_stricter(ends[place], end, place):
            texts[as_text(condition, walker)] = None
    merged: dict[Value | None, dict[tuple[Linear | None, ...], list[int]]] = {}
    for (value, column), ends in ranges.items():
        merged.setdefault(value, {}).setdefault(tuple(ends), []).append(column)
    for value, by_ends in merged.items():
        assert value is not None
        name = quoted(walker.name(value))
        for (low, high), columns in by_ends.items():
            is_whole = -1 in columns or (len(by_ends) == 1 and len(columns) == _width(value, walker))
            for column in [-1] if is_whole else columns:
                tensor = name if column < 0 else f"{name}[..., {column}]"
                if low is not None and high is not None:
                    text = f"{tensor} in {show(low, walker)}..{show(high, walker)}"
                elif low is not None:
                    text = f"{tensor} >= {show(low, walker)}"
                else:
                    text = f"{tensor} <= {show(high or Linear(0), walker)}"
                texts[text] = None
    return [*texts]


def _width(value: Value, walker: SymbolSource) -> int:
    dims = walker.dims(value)
    return dims[-1].constant if dims and dims[-1].is_constant else 0


def _is_stricter(end: Linear | None, second: Linear | None, place: int) -> bool:
    if end is None or second is None:
        return second is None
    gap = end.minus(second)
    return gap.is_constant and (gap.constant > 0 if place == 0 else gap.constant < 0)
