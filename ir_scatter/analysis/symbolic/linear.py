"""Linear expressions over symbols, and proofs of inequalities between them.

A *symbol* is a number that is fixed in one run of a model, but unknown here: the size of a dimension, the
least or greatest element of an input, the number of true elements of a mask, a quotient of these.

    position + Range (0, S)       elements from Least(position) to Greatest(position) + S - 1
    are they at most C - 1?       C - 1 - (Greatest(position) + S - 1) >= 0

Products of symbols such as B * S are treated like symbols. All arithmetic is exact, on Python's integers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import product as combinations
from math import inf, prod
from typing import NamedTuple, TypeAlias

from ir_scatter.core.model import Value

LARGEST_SIZE = 2**31 - 1
"""Sizes of 2^31 and more are not expected: no runtime allocates such a tensor for indices."""

_MOST_STEPS = 4
"""Maximum number of facts combined in one proof."""
_MOST_TRIES = 300
"""Maximum number of combinations tried in one proof."""
_MOST_EXAMPLES = 20_000
"""Maximum number of choices of numbers tried in the search for a counterexample."""
MOST_TOTAL_TRIES = 200_000
"""Maximum number of combinations tried in all proofs of a model.

That is over 600 proofs that fail at their limit, a few seconds.
"""


class SymbolKind(Enum):
    """The meaning of a symbol."""

    SIZE = "the size of a dimension"
    LEAST = "the least element"
    GREATEST = "the greatest element"
    COUNT = "the number of elements that are not zero"
    QUOTIENT = "an expression divided by a constant"
    OTHER = "a number that nothing is known of"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A number that is fixed in one run of a model.

    Attributes:
        value: the tensor of a size, an element or a count; None for a quotient.
        axis: the axis of a size, or the column of a least or greatest element; -1 for all elements.
        dividend, divisor, truncates: the parts of a quotient. It is rounded down, or towards zero with
            `truncates`.
    """

    kind: SymbolKind
    value: Value | None
    axis: int = -1
    dividend: "Linear | None" = None
    divisor: int = 1
    truncates: bool = False
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = (self.kind, self.value, self.axis, self.dividend, self.divisor, self.truncates)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash


Monomial: TypeAlias = tuple[Symbol, ...]
"""A symbol, or a product of symbols in the order of their ids."""


class Linear(NamedTuple):
    """A linear expression: a constant plus monomials (products of symbols) with nonzero coefficients."""

    constant: int
    terms: frozenset[tuple[Monomial, int]] = frozenset()

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def coefficients(self) -> dict[Monomial, int]:
        return dict(self.terms)

    def plus(self, other: "Linear | int", factor: int = 1) -> "Linear":
        """Return self + factor * other."""
        if isinstance(other, int):
            return Linear(self.constant + factor * other, self.terms)
        if not other.terms:
            return Linear(self.constant + factor * other.constant, self.terms)
        sums = dict(self.terms)
        for monomial, coefficient in other.terms:
            sums[monomial] = sums.get(monomial, 0) + factor * coefficient
        return Linear(
            self.constant + factor * other.constant, frozenset([(m, c) for m, c in sums.items() if c])
        )

    def minus(self, other: "Linear | int") -> "Linear":
        return self.plus(other, -1)

    def times(self, factor: int) -> "Linear":
        if not factor:
            return Linear(0)
        return Linear(self.constant * factor, frozenset([(m, c * factor) for m, c in self.terms]))

    def multiplied(self, other: "Linear") -> "Linear | None":
        """Return the product; None if a monomial would have too many symbols."""
        product = Linear(self.constant * other.constant)
        product = product.plus(Linear(0, self.terms).times(other.constant))
        product = product.plus(Linear(0, other.terms).times(self.constant))
        for left, first in self.terms:
            for right, second in other.terms:
                if len(left) + len(right) > _MOST_FACTORS:
                    return None
                monomial = tuple(sorted((*left, *right), key=_order))
                product = product.plus(Linear(0, frozenset([(monomial, first * second)])))
        return product

    def symbols(self) -> Iterator[Symbol]:
        for monomial, _ in self.terms:
            yield from monomial


_MOST_FACTORS = 8
"""Maximum number of symbols in one product: shapes rarely have more unknown dimensions."""


def _order(symbol: Symbol) -> tuple[int, int, str]:
    return id(symbol.value), symbol.axis, symbol.kind.name


def written_order(symbol: Symbol) -> tuple[str, str, int]:
    """Return a key that sorts symbols alike in every process, unlike the order of a set."""
    return "" if symbol.value is None else symbol.value.name, symbol.kind.name, symbol.axis


ZERO, ONE = Linear(0), Linear(1)


def of_symbol(symbol: Symbol) -> Linear:
    return Linear(0, frozenset([((symbol,), 1)]))


class SymbolRange(NamedTuple):
    """The lowest and highest possible value of a symbol."""

    low: float = -inf
    high: float = inf


class Knowledge:
    """Knowledge about symbols: a range for each, and inequalities between them.

        knowledge.ranges[S] = SymbolRange(0, 2047)
        knowledge.add(C - S)                  C >= S
        knowledge.proves(C + 1 - S)           True

    A fact, and an expression to prove, states that a linear expression is at least 0.
    """

    def __init__(self, parent: "Knowledge | None" = None) -> None:
        self.ranges: dict[Symbol, SymbolRange] = {}
        self._facts: set[Linear] = set()
        self._mentions: dict[Monomial, list[tuple[int, Linear]]] = {}
        self._quotients: set[Symbol] = set()
        self._answers: dict[Linear, bool] = {}
        self._tries_left: list[int] = [MOST_TOTAL_TRIES]
        self._is_shared = parent is not None
        if parent is not None:  # copied when something is added
            self.ranges, self._facts, self._mentions = parent.ranges, parent._facts, parent._mentions
            self._quotients, self._answers = parent._quotients, parent._answers
            self._tries_left = parent._tries_left

    def _own(self) -> None:
        """Copy the data that is shared with the knowledge from which this was copied."""
        if self._is_shared:
            self._is_shared = False
            self.ranges, self._facts, self._quotients = {**self.ranges}, {*self._facts}, {*self._quotients}
            self._mentions = {monomial: [*facts] for monomial, facts in self._mentions.items()}
            self._answers = {}

    def add(self, fact: Linear) -> None:
        """Assume that an expression is at least 0."""
        if fact.is_constant or fact in self._facts:
            return
        self._own()
        self._answers.clear()
        if len(fact.terms) == 1:
            ((monomial, coefficient),) = fact.terms
            if len(monomial) == 1:  # coefficient * symbol + constant >= 0
                low, high = self.ranges.get(monomial[0], SymbolRange())
                if coefficient > 0:
                    low = max(low, -(fact.constant // coefficient))
                else:
                    high = min(high, fact.constant // -coefficient)
                self.ranges[monomial[0]] = SymbolRange(low, high)
        for monomial, coefficient in fact.terms:
            self._mentions.setdefault(monomial, []).append((coefficient, fact))
        self._facts.add(fact)

    def least(self, expression: Linear) -> float:
        """Return the lower bound of an expression by the ranges of its symbols alone."""
        total: float = expression.constant
        for monomial, coefficient in expression.terms:
            low, high = self._range(monomial)
            total += coefficient * (low if coefficient > 0 else high)
        return total

    def greatest(self, expression: Linear) -> float:
        return -self.least(expression.times(-1))

    def _range(self, monomial: Monomial) -> SymbolRange:
        if len(monomial) == 1:
            return self._symbol_range(monomial[0])
        low, high = 1.0, 1.0
        for symbol in monomial:
            range = self._symbol_range(symbol)
            if range.low < 0:
                return SymbolRange()
            low, high = low * range.low, high * range.high if high and range.high else 0.0
        return SymbolRange(low, high)

    def _symbol_range(self, symbol: Symbol) -> SymbolRange:
        range = self.ranges.get(symbol, SymbolRange())
        if symbol.kind is SymbolKind.QUOTIENT and symbol.dividend is not None:
            ends = self.least(symbol.dividend), self.greatest(symbol.dividend)
            low, high = [end if abs(end) == inf else _divide(int(end), symbol) for end in ends]
            return SymbolRange(max(low, range.low), min(high, range.high))
        return range

    def proves(self, expression: Linear) -> bool:
        """Return whether an expression is proven to be at least 0.

        Facts are subtracted until the ranges of the remaining symbols decide:

            prove C - p - 1 >= 0 from C - S - 3 >= 0 and S - p >= 0
            (C - p - 1) - (C - S - 3) = S - p + 2,  minus (S - p) = 2 >= 0

        After `MOST_TOTAL_TRIES` combinations in all proofs that share a budget, only the ranges decide.
        """
        self._define_quotients(expression)
        answer = self._answers.get(expression)
        if answer is not None:
            return answer
        allowed = min(_MOST_TRIES, self._tries_left[0])
        tries = [allowed]
        proven = self._proves(expression, _MOST_STEPS, tries)
        self._tries_left[0] -= allowed - tries[0]
        self._answers[expression] = proven
        return proven

    @property
    def total_tries(self) -> int:
        """The combinations of facts tried so far, here and in all copies that share the budget."""
        return MOST_TOTAL_TRIES - self._tries_left[0]

    def _define_quotients(self, expression: Linear) -> None:
        for symbol in {*expression.symbols()} - self._quotients:
            if symbol.kind is SymbolKind.QUOTIENT and symbol.dividend is not None:
                self._own()
                self._quotients.add(symbol)
                self._define_quotients(symbol.dividend)
                rest = symbol.dividend.minus(of_symbol(symbol).times(symbol.divisor))
                is_floor = not symbol.truncates or self.least(symbol.dividend) >= 0
                self.add(rest if is_floor else rest.plus(symbol.divisor - 1))
                self.add(Linear(symbol.divisor - 1).minus(rest))

    def counterexample(
        self, expressions: Sequence[Linear], names: "Mapping[Symbol, str] | None" = None
    ) -> dict[Symbol, int] | None:
        """Return a number for each symbol that satisfies all facts, but makes all expressions negative.

        None if no such numbers are found. Only ends of ranges, and numbers next to constants of facts, are
        tried.

        Args:
            expressions: the expressions that must be negative.
            names: symbols with the same name get the same number.
        """
        symbols, facts = self._related(expressions)
        symbols.sort(key=written_order)
        choices = [self._candidates(symbol, [*expressions, *facts]) for symbol in symbols]
        if prod(len(numbers) for numbers in choices) > _MOST_EXAMPLES:
            choices = [numbers[:2] for numbers in choices]
        if not all(choices) or prod(len(numbers) for numbers in choices) > _MOST_EXAMPLES:
            return None
        named: dict[str, list[Symbol]] = {}
        for symbol in symbols:
            named.setdefault((names or {}).get(symbol, ""), []).append(symbol)
        same = [group for name, group in named.items() if name]
        for numbers in combinations(*choices):
            example = dict(zip(symbols, numbers, strict=True))
            if (
                all(value_of(expression, example) < 0 for expression in expressions)
                and all(len({example[symbol] for symbol in group}) == 1 for group in same)
                and all(value_of(fact, example) >= 0 for fact in facts)
            ):
                return example
        return None

    def _related(self, expressions: Sequence[Linear]) -> tuple[list[Symbol], list[Linear]]:
        """Return the symbols of expressions and of all facts about them, and these facts.

        A quotient counts as the symbols of its dividend.
        """
        pending, facts = [*expressions], dict[Linear, None]()
        symbols = dict[Symbol, None]()
        while pending:
            for monomial, _ in pending.pop().terms:
                for symbol in monomial:
                    if symbol.dividend is not None:
                        pending.append(symbol.dividend)
                    else:
                        symbols[symbol] = None
                for key in (monomial, *[(symbol,) for symbol in monomial]):
                    new = [fact for _, fact in self._mentions.get(key, ()) if fact not in facts]
                    facts |= dict.fromkeys(new)
                    pending += new
        return [*symbols], [*facts]

    def _candidates(self, symbol: Symbol, expressions: Sequence[Linear]) -> list[int]:
        """Return numbers to try for a symbol, the ends of its range first."""
        low, high = self._symbol_range(symbol)
        ends = [int(end) for end in (high, low) if abs(end) != inf]
        beside = {abs(each.constant) + step for each in expressions for step in (-1, 0, 1)}
        small = [number for number in sorted({0, 1, *beside}) if low <= number <= high]
        return [*dict.fromkeys([*ends, *small])]

    def _proves(self, expression: Linear, steps: int, tries: list[int]) -> bool:
        if self.least(expression) >= 0:
            return True
        if not steps or tries[0] <= 0:
            return False
        for monomial, coefficient in sorted(expression.terms, key=lambda term: self._worst(*term)):
            for shared, fact in self._mentions.get(monomial, ()):
                if (shared > 0) is not (coefficient > 0) or tries[0] <= 0:
                    continue
                # expression >= 0 follows if |shared| * expression - |coefficient| * fact >= 0
                tries[0] -= 1
                rest = expression.times(abs(shared)).plus(fact, -abs(coefficient))
                if self._proves(rest, steps - 1, tries):
                    return True
        return False

    def _worst(self, monomial: Monomial, coefficient: int) -> float:
        low, high = self._range(monomial)
        worst = coefficient * (low if coefficient > 0 else high)
        return worst if worst == worst else -inf


def _divide(number: int, symbol: Symbol) -> int:
    if symbol.truncates and number < 0:
        return -(-number // symbol.divisor)
    return number // symbol.divisor


def value_of(expression: Linear, numbers: Mapping[Symbol, int]) -> int:
    """Compute an expression from the number of each symbol."""
    total = expression.constant
    for monomial, coefficient in expression.terms:
        term = coefficient
        for symbol in monomial:
            dividend = symbol.dividend
            term *= numbers[symbol] if dividend is None else _divide(value_of(dividend, numbers), symbol)
        total += term
    return total


MOST_NESTED_QUOTIENTS = 3
"""Maximum nesting of quotients: the range of each is computed from that of its dividend."""


def _nesting(expression: Linear) -> int:
    """Return how deep quotients are nested in an expression."""
    depths = [1 + _nesting(symbol.dividend) for symbol in expression.symbols() if symbol.dividend is not None]
    return max(depths, default=0)


def quotient(dividend: Linear, divisor: int, *, truncates: bool, knowledge: Knowledge) -> Linear | None:
    """Return dividend / divisor for a positive divisor, rounded down, or towards zero with `truncates`.

    It is linear if all coefficients are multiples of the divisor, otherwise a new symbol. None if quotients
    would be nested too deep.

        (4 * S + 3) / 4     S
        S / 4               a symbol q, with 4 q <= S <= 4 q + 3
    """
    if divisor == 1:
        return dividend
    rounds_down = not truncates or knowledge.least(dividend) >= 0
    if rounds_down and all(coefficient % divisor == 0 for _, coefficient in dividend.terms):
        terms = frozenset([(monomial, coefficient // divisor) for monomial, coefficient in dividend.terms])
        return Linear(dividend.constant // divisor, terms)
    if dividend.is_constant:
        return Linear(
            _divide(dividend.constant, Symbol(SymbolKind.QUOTIENT, None, -1, dividend, divisor, True))
        )
    if _nesting(dividend) >= MOST_NESTED_QUOTIENTS:
        return None
    return of_symbol(Symbol(SymbolKind.QUOTIENT, None, -1, dividend, divisor, truncates=not rounds_down))


def divided_by_monomial(dividend: Linear, monomial: Monomial) -> Linear | None:
    """Return floor(dividend / monomial) if the remainder is 0 or -1; None otherwise.

    For a positive monomial W: (K * W - 1) / W is K - 1, and (K * W) / W is K.
    """
    terms = dict[Monomial, int]()
    for term, coefficient in dividend.terms:
        rest = [*term]
        for symbol in monomial:
            if symbol not in rest:
                return None
            rest.remove(symbol)
        terms[tuple(rest)] = terms.get(tuple(rest), 0) + coefficient
    if dividend.constant not in {-1, 0}:
        return None
    constant = terms.pop((), 0) + dividend.constant
    return Linear(constant, frozenset(terms.items()))


def unique(expressions: Iterable[Linear], most: int) -> tuple[Linear, ...]:
    """Return the first `most` different expressions."""
    return tuple(dict.fromkeys(expressions))[:most]


def substitute(expression: Linear, replacements: Mapping[Symbol, Linear]) -> Linear:
    """Replace symbols by expressions; a monomial that would get too long stays unchanged."""
    result = Linear(expression.constant)
    for monomial, coefficient in expression.terms:
        product: Linear | None = ONE
        for symbol in monomial:
            factor = replacements.get(symbol)
            product = None if product is None else product.multiplied(factor or of_symbol(symbol))
        kept = Linear(0, frozenset([(monomial, 1)])) if product is None else product
        result = result.plus(kept.times(coefficient))
    return result


def product(factors: Sequence[Linear]) -> Linear | None:
    result: Linear | None = ONE
    for factor in factors:
        result = None if result is None else result.multiplied(factor)
    return result
