"""The domain of symbolic analysis: facts about all elements of a tensor of integers.

**Bounds by cases.** Every element belongs to one of several cases, each with lower and upper bounds that are
linear in symbols:

    Where (i < 0, i + n, i)      case 1: n + Least(i) <= element <= n - 1
                                 case 2: 0 <= element <= Greatest(i)

A case may have requirements: expressions that must be at least 0 for its bounds to hold, such as "no
overflow". Positions on one axis may have separate cases (columns), since the coordinates of an index tuple
are limited by different sizes.

**Distinctness.** Elements are distinct along an axis if no two of them are equal that differ in their
position on this axis only. All elements of a tensor may be distinct, or its vectors along an axis (index
tuples).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from ir_scatter.analysis.symbolic.linear import Knowledge, Linear, SymbolKind, unique
from ir_scatter.core.model import Value

MOST_REQUIRED = 16
"""Maximum requirements of one case; with more, its bounds are unknown."""
_MOST_TERMS = 24
_MOST_BITS = 128
"""Maximum terms of a bound, and bits of its numbers: indices have no longer or larger bounds."""
MOST_COLUMNS = 16
"""Maximum positions on an axis with separate cases: index tuples have one coordinate per dimension."""
_MOST_CASES = 8
_MOST_BOUNDS = 4
"""Maximum lower or upper bounds of one case: further ones are dropped."""


class CaseBounds(NamedTuple):
    """Bounds of the elements of one case: all of `lows` and `highs` hold; empty means unknown.

    Attributes:
        requires: expressions that must be at least 0 for the bounds to hold.
        may_wrap: whether the bounds may exceed the element type. An element then equals a number within the
            bounds only modulo the size of the type. Sums, differences and products can be computed
            nevertheless.
        is_exact: whether for each bound some input has an element that attains it. Such an input refutes a
            claim that the bound breaks.
    """

    lows: tuple[Linear, ...] = ()
    highs: tuple[Linear, ...] = ()
    requires: frozenset[Linear] = frozenset()
    may_wrap: bool = False
    is_exact: bool = False

    @property
    def number(self) -> Linear | None:
        """The value of all elements of this case; None if they may differ."""
        return self.lows[0] if len(self.lows) == 1 and self.lows == self.highs else None


Cases: TypeAlias = tuple[CaseBounds, ...]
"""Every element belongs to one of the cases."""

UNKNOWN: Cases = (CaseBounds(),)

Condition: TypeAlias = str | Linear
"""A condition on inputs: text for distinct elements, or an expression that must be at least 0."""


def exactly(number: Linear | int) -> Cases:
    linear = Linear(number) if isinstance(number, int) else number
    return (CaseBounds((linear,), (linear,), is_exact=True),)


def between(low: Linear | int | None, high: Linear | int | None, *, is_exact: bool = False) -> Cases:
    """Return one case with these bounds; None for an unknown end."""
    lows, highs = [
        () if end is None else (Linear(end) if isinstance(end, int) else end,) for end in (low, high)
    ]
    return (CaseBounds(lows, highs, is_exact=is_exact),)


def union(parts: Iterable[Cases]) -> Cases:
    """Return all cases of several operands; unknown bounds if they are too many."""
    cases = tuple(dict.fromkeys(case for part in parts for case in part))
    if len(cases) <= _MOST_CASES:
        return cases
    if all(case.number is not None and case.number.is_constant for case in cases):
        numbers = [case.lows[0].constant for case in cases]
        return (CaseBounds((Linear(min(numbers)),), (Linear(max(numbers)),), is_exact=True),)
    return UNKNOWN


def pairwise(left: Cases, right: Cases, combine: Callable[[CaseBounds, CaseBounds], CaseBounds]) -> Cases:
    """Combine each case of the left operand with each case of the right one."""
    return union([(combine(first, second),) for first in left for second in right])


def add(left: CaseBounds, right: CaseBounds) -> CaseBounds:
    return _combined(
        left, right,
        unique((a.plus(b) for a in left.lows for b in right.lows), _MOST_BOUNDS),
        unique((a.plus(b) for a in left.highs for b in right.highs), _MOST_BOUNDS),
    )  # fmt: skip


def negate(case: CaseBounds) -> CaseBounds:
    return case._replace(
        lows=tuple([high.times(-1) for high in case.highs]), highs=tuple([low.times(-1) for low in case.lows])
    )


def subtract(left: CaseBounds, right: CaseBounds) -> CaseBounds:
    return add(left, negate(right))


def scale(case: CaseBounds, factor: int) -> CaseBounds:
    if not factor:
        return CaseBounds((Linear(0),), (Linear(0),), case.requires, is_exact=True)
    scaled = case._replace(
        lows=tuple([low.times(abs(factor)) for low in case.lows]),
        highs=tuple([high.times(abs(factor)) for high in case.highs]),
        may_wrap=True,
    )
    return scaled if factor > 0 else negate(scaled)


def multiply(left: CaseBounds, right: CaseBounds, knowledge: Knowledge) -> CaseBounds:
    """Return the bounds of a product; known if one factor is constant, or both are non-negative."""
    for first, second in ((left, right), (right, left)):
        if second.number is not None and second.number.is_constant:
            return scale(first, second.number.constant)._replace(requires=left.requires | right.requires)
    if not all(any(knowledge.proves(low) for low in case.lows) for case in (left, right)):
        return CaseBounds(requires=left.requires | right.requires, may_wrap=True)
    ends: list[list[Linear]] = []
    for firsts, seconds in ((left.lows, right.lows), (left.highs, right.highs)):
        nonnegative = [[end for end in ends if knowledge.proves(end)] for ends in (firsts, seconds)]
        products = [a.multiplied(b) for a in nonnegative[0] for b in nonnegative[1]]
        ends.append([product for product in products if product is not None])
    return _combined(left, right, unique(ends[0], _MOST_BOUNDS), unique(ends[1], _MOST_BOUNDS))


def _combined(
    left: CaseBounds, right: CaseBounds, lows: tuple[Linear, ...], highs: tuple[Linear, ...]
) -> CaseBounds:
    result = CaseBounds(lows, highs, left.requires | right.requires, may_wrap=True)
    if len(result.requires) > MOST_REQUIRED or _is_too_long(result):
        return CaseBounds(requires=result.requires, may_wrap=True)
    exact = left.is_exact and right.is_exact
    return result._replace(is_exact=exact)


def with_bounds(case: CaseBounds, lows: Iterable[Linear] = (), highs: Iterable[Linear] = ()) -> CaseBounds:
    """Return a case with additional bounds; the new ones come first."""
    return case._replace(
        lows=unique((*lows, *case.lows), _MOST_BOUNDS), highs=unique((*highs, *case.highs), _MOST_BOUNDS),
        is_exact=False,
    )  # fmt: skip


def of_some(cases: Cases) -> Cases:
    """Return the bounds of a part of a tensor's elements: no element of the part need attain them.

    Only for an input they stay exact, as any of its elements may be the greatest.
    """
    return tuple([case if _is_fed(case) else case._replace(is_exact=False) for case in cases])


def _is_fed(case: CaseBounds) -> bool:
    """Return whether bounds are exactly the least and greatest elements of an input."""
    kinds = {SymbolKind.LEAST, SymbolKind.GREATEST}
    ends = [[*end.terms] for end in (*case.lows, *case.highs) if not end.constant]
    return len(ends) == len(case.lows) + len(case.highs) and all(
        len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and terms[0][0][0].kind in kinds
        for terms in ends
    )


def unwrapped(case: CaseBounds, low: int, high: int, knowledge: Knowledge) -> CaseBounds:
    """Return a case that cannot wrap around, for an element type from `low` to `high`.

    If it is not proven that the bounds fit into the type, that becomes a requirement.
    """
    if not case.may_wrap:
        return case
    if not case.lows or not case.highs:
        return CaseBounds(requires=case.requires)
    requires = set(case.requires)
    if len(requires) > MOST_REQUIRED or _is_too_long(case):
        return CaseBounds(requires=case.requires)
    if not any(knowledge.proves(end.plus(-low)) for end in case.lows):
        requires.add(case.lows[0].plus(-low))
    if not any(knowledge.proves(Linear(high).minus(end)) for end in case.highs):
        requires.add(Linear(high).minus(case.highs[0]))
    return case._replace(requires=frozenset(requires), may_wrap=False)


def _is_too_long(case: CaseBounds) -> bool:
    return any(
        len(end.terms) > _MOST_TERMS
        or end.constant.bit_length() > _MOST_BITS
        or any(coefficient.bit_length() > _MOST_BITS for _, coefficient in end.terms)
        for end in (*case.lows, *case.highs)
    )


class Split(NamedTuple):
    """The elements are (x / divisor) % modulus for the elements x >= 0 of another tensor, `whole`.

    Attributes:
        divisor: the quotient is rounded down; 1 if x is not divided.
        modulus: None if no remainder is computed; 0 for multiples of the divisor instead.
    """

    whole: Value
    divisor: int
    modulus: int | None


@dataclass(frozen=True, slots=True)
class TensorNumbers:
    """Facts about the elements of a tensor.

    Attributes:
        cases: bounds of all elements, by cases.
        columns: bounds by position on `column_axis`; None if they are not known separately.
        rank: None if unknown; the facts below need it.
        varying: the axes along which elements may differ; None for all.
        distinct: the axes along which elements are distinct.
        is_unique: whether all elements are distinct.
        tuples_axis: the axis along which vectors are distinct; None if none is known.
        split: set if the elements are quotients or remainders of another tensor's elements.
        origin: the source of the numbers, for messages: "positions of TopK_3".
        unknown: the upstream value without known bounds, if bounds are missing.
        conditions: the conditions under which elements are distinct: "table distinct", or expressions that
            must be at least 0.
    """

    cases: Cases = UNKNOWN
    columns: tuple[Cases, ...] | None = None
    column_axis: int = 0
    rank: int | None = None
    varying: frozenset[int] | None = None
    distinct: frozenset[int] = frozenset()
    is_unique: bool = False
    tuples_axis: int | None = None
    split: Split | None = None
    origin: str = ""
    unknown: Value | None = None
    conditions: frozenset[Condition] = field(default_factory=frozenset)

    @property
    def number(self) -> Linear | None:
        """The value of all elements; None if they may differ."""
        return self.cases[0].number if len(self.cases) == 1 else None

    def vector(self) -> list[Linear] | None:
        """Return the elements of a scalar or short 1-D tensor; None if they are not known exactly."""
        if self.rank == 0:
            return None if self.number is None else [self.number]
        if self.rank != 1 or self.columns is None:
            return None
        numbers = [cases[0].number if len(cases) == 1 else None for cases in self.columns]
        exact_numbers = [number for number in numbers if number is not None]
        return exact_numbers if len(exact_numbers) == len(numbers) else None

    def bounds_only(self) -> "TensorNumbers":
        """Return the bounds of all elements, without facts that depend on positions."""
        return TensorNumbers(of_some(self.cases), rank=None, origin=self.origin, unknown=self.unknown)

    def mapped(self, change: Callable[[Cases], Cases]) -> "TensorNumbers":
        """Return the facts with all bounds changed by a function; other facts stay."""
        columns = None if self.columns is None else tuple([change(cases) for cases in self.columns])
        return replace(self, cases=change(self.cases), columns=columns)


def from_vector(elements: Sequence[Cases], *, origin: str = "") -> TensorNumbers:
    """Return the facts about a 1-D tensor, given the bounds of each element."""
    numbers = [cases[0].number if len(cases) == 1 else None for cases in elements]
    constants = [number.constant for number in numbers if number is not None and number.is_constant]
    is_unique = len(constants) == len(elements) and len({*constants}) == len(constants)
    cases = union(elements) if elements else (CaseBounds((Linear(0),), (Linear(0),)),)
    return TensorNumbers(
        cases, tuple(elements) if 0 < len(elements) <= MOST_COLUMNS else None, 0, 1, frozenset([0]),
        frozenset([0]) if is_unique else frozenset(), is_unique, origin=origin,
    )  # fmt: skip
