"""Parses the conditions that a user gives for the inputs of a model (`--given`).

    position in 0..15                every element of position is from 0 to 15
    past + S <= C                    for all elements of past, and all dimensions named S and C
    table distinct                   no two elements are equal
    rows of table distinct           no two vectors along the last axis are equal
    table distinct along axis 1      no two elements are equal that differ in their position on axis 1 only
    cache.shape[2] >= 16             the size of a dimension
    x / 8 <= n                       a quotient rounded down; trunc(x, 8) rounds towards zero
    "input:0"[..., 1] <= 7           one column of the last axis; other names than words need quotes

Both ends of a range are included.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from typing import NamedTuple

from ir_scatter.analysis.symbolic.linear import Linear, Symbol, SymbolKind, of_symbol, quotient, substitute
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import quoted
from ir_scatter.core.errors import BadGiven
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import Bounds
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.core.words import counted

_TOKEN = re.compile(
    r"\s*(?:(?P<text>\"(?:[^\"\\]|\\.)*\")|(?P<all>\.\.\.)|(?P<shape>\.shape(?=\[))|(?P<range>\.\.)|(?P<number>[0-9]+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_./]*)|(?P<mark><=|>=|==|<|>|[-+*/()\[\],]))"
)
_FLIPPED = {">=": "<=", ">": "<"}
_MOST_COMBINATIONS = 64
"""Maximum expressions for one text: a dimension name gives one for each dimension of that name."""


class _Token(NamedTuple):
    kind: str
    text: str


@dataclass(frozen=True)
class Given:
    """One condition that a user gives, as text and in symbols.

    Attributes:
        facts: expressions that are at least 0; empty for distinctness.
        distinct: the input whose elements are distinct, None for an inequality.
        rows: whether the vectors along the last axis are distinct, instead of elements.
        axis: the axis along which elements are distinct; None for all elements.
    """

    text: str
    facts: tuple[Linear, ...] = ()
    distinct: Value | None = None
    rows: bool = False
    axis: int | None = None

    def symbols(self) -> Iterator[Symbol]:
        for fact in self.facts:
            yield from fact.symbols()


def read_givens(walker: Walker, texts: Sequence[str]) -> list[Given]:
    """Parse the user's conditions, and add them to the walker's knowledge.

    Raises:
        BadGiven: a condition cannot be read, or contradicts the model or another one.
    """
    givens = [_Reader(walker, text).read() for text in texts]
    for given in givens:
        if given.distinct is not None:
            walker.give_distinct(given.distinct, rows=given.rows, axis=given.axis)
    for given in givens:
        for fact in given.facts:
            if walker.knowledge.proves(fact.times(-1).plus(-1)):
                raise BadGiven(
                    f"{given.text!r} cannot hold: it contradicts the model or what is given before"
                )
            walker.knowledge.add(fact)
    return givens


class _Reader:
    """Parses one condition by recursive descent."""

    def __init__(self, walker: Walker, text: str) -> None:
        self.walker, self.text = walker, text
        self.by_name: dict[str, Value] = {}
        for value, declared in walker.inputs.items():
            self.by_name |= dict.fromkeys((value.name, *declared.names), value)
        self.dimensions: dict[str, list[Symbol]] = {}
        for value in walker.inputs:
            for axis, dim in enumerate(walker.facts.shape(value) or ()):
                if isinstance(dim, Bounds) and dim.symbol:
                    self.dimensions.setdefault(dim.symbol, []).append(Symbol(SymbolKind.SIZE, value, axis))
        self.tokens = self._tokens()
        self.place = 0
        self.choices: dict[str, list[Symbol]] = {}

    def _tokens(self) -> list[_Token]:
        tokens, place, text = [], 0, self.text
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None:
                raise self._wrong(f"{text[place:].strip()[:12]!r} is not understood")
            kind = match.lastgroup or ""
            # "0..C" is a range; a name may hold dots, but none that begin a range
            word = match.group(kind)
            if kind == "name" and ".." in word:
                word = word[: word.index("..")]
            if kind == "name" and word.endswith("."):
                word = word[:-1]
            tokens.append(_Token(kind, word))
            place = match.start(kind) + len(word)
        return tokens

    def _wrong(self, reason: str) -> BadGiven:
        facts, kinds = self.walker.facts, {"signed", "unsigned"}
        whole = [
            value
            for value in self.walker.inputs
            if (element_type := facts.element_type(value)) is not None and element_type.kind in kinds
        ]
        example = next(iter(whole), None)
        name = "position" if example is None else quoted(self.walker.name(example))
        return BadGiven(f"{self.text!r} is not understood: {reason}, expected for example '{name} in 0..15'")

    def _peek(self) -> _Token:
        return self.tokens[self.place] if self.place < len(self.tokens) else _Token("end", "the end")

    def _next(self) -> _Token:
        token = self._peek()
        self.place += 1
        return token

    def _takes(self, *texts: str) -> bool:
        tokens = self.tokens[self.place : self.place + len(texts)]
        if [token.text for token in tokens] != [*texts] or any(token.kind == "text" for token in tokens):
            return False
        self.place += len(texts)
        return True

    def _must(self, text: str) -> None:
        if not self._takes(text):
            raise self._wrong(f"{self._peek().text!r} where {text!r} should be")

    def read(self) -> Given:
        if not self.tokens:
            raise self._wrong("it is empty")
        rows = self._takes("rows", "of")
        start = self.place
        token = self._peek()
        if token.kind in {"name", "text"}:
            self._next()
            if self._takes("distinct"):
                return self._distinct(token, rows)
        if rows:
            raise self._wrong("'rows of' needs 'distinct' after the name")
        self.place = start
        left = self._sum()
        if self._takes("in"):
            low = self._sum()
            self._must("..")
            high = self._sum()
            self._end()
            if low.is_constant and high.is_constant and low.constant > high.constant:
                raise BadGiven(f"{self.text!r} is empty: no number is from {low.constant} to {high.constant}")
            return Given(self.text, (*self._facts(left.minus(low)), *self._facts(high.minus(left))))
        mark = self._next()
        if mark.kind != "mark" or mark.text not in {"<=", ">=", "<", ">", "=="}:
            raise self._wrong(f"{mark.text!r} where a comparison, 'in' or 'distinct' should be")
        right = self._sum()
        self._end()
        if mark.text in _FLIPPED:
            left, right = right, left
        gap = right.minus(left).plus(-1 if mark.text in {"<", ">"} else 0)
        facts = self._facts(gap)
        if mark.text == "==":
            facts += self._facts(gap.times(-1))
        return Given(self.text, facts)

    def _end(self) -> None:
        if self.place < len(self.tokens):
            raise self._wrong(f"{self._peek().text!r} after the end")

    def _distinct(self, token: _Token, rows: bool) -> Given:
        value = self._input(token)
        axis = None
        if self._takes("along", "axis"):
            number = self._next()
            if number.kind != "number":
                raise self._wrong(f"{number.text!r} where the number of an axis should be")
            axis = int(number.text)
        self._end()
        rank = len(self.walker.facts.shape(value) or ())
        if axis is not None and axis >= rank:
            name = quoted(self.walker.name(value))
            raise BadGiven(f"{self.text!r} is wrong: {name} has {counted(rank, 'dimension')}")
        return Given(self.text, distinct=value, rows=rows, axis=axis)

    def _sum(self) -> Linear:
        sign = -1 if self._takes("-") else 1
        total = self._product().times(sign)
        while True:
            if self._takes("+"):
                total = total.plus(self._product())
            elif self._takes("-"):
                total = total.minus(self._product())
            else:
                return total

    def _product(self) -> Linear:
        result = self._atom()
        while True:
            if self._takes("*"):
                factor = result.multiplied(self._atom())
                if factor is None:
                    raise self._wrong("the product has too many factors")
                result = factor
            elif self._takes("/"):
                token = self._next()
                if token.kind != "number" or not int(token.text):
                    raise self._wrong(f"{token.text!r} where a positive number should be")
                part = quotient(result, int(token.text), truncates=False, knowledge=self.walker.knowledge)
                if part is None:
                    raise self._wrong("too many quotients are in each other")
                result = part
            else:
                return result

    def _atom(self) -> Linear:
        token = self._next()
        if token.kind == "number":
            return Linear(int(token.text))
        if token.text == "(" and token.kind == "mark":
            inner = self._sum()
            self._must(")")
            return inner
        if token.kind not in {"name", "text"}:
            raise self._wrong(f"{token.text!r} where a name or a number should be")
        if token.text == "trunc" and self._takes("("):
            return self._truncated()
        if token.text == "count" and self._takes("("):
            value = self._input(self._next())
            self._must(")")
            return self.walker.symbol(SymbolKind.COUNT, value)
        if token.kind == "name" and token.text.endswith(".shape") and self._peek().text == "[":
            return self._size(_Token("name", token.text.removesuffix(".shape")))
        if token.kind == "text" and self._takes(".shape"):
            return self._size(token)
        name = _unquoted(token)
        if name not in self.by_name and name in self.dimensions:
            symbol = Symbol(SymbolKind.OTHER, None, -2 - len(self.choices))
            same = next((old for old, each in self.choices.items() if each is self.dimensions[name]), None)
            if same is not None:
                return of_symbol(Symbol(SymbolKind.OTHER, None, -2 - [*self.choices].index(same)))
            self.choices[name] = self.dimensions[name]
            return of_symbol(symbol)
        return self._elements(token)

    def _truncated(self) -> Linear:
        """Parse the rest of `trunc(x, 8)`, a quotient rounded towards zero."""
        dividend = self._sum()
        self._must(",")
        divisor = self._next()
        self._must(")")
        if divisor.kind != "number" or not int(divisor.text):
            raise self._wrong(f"{divisor.text!r} where a positive number should be")
        part = quotient(dividend, int(divisor.text), truncates=True, knowledge=self.walker.knowledge)
        if part is None:
            raise self._wrong("the quotient is too long")
        return part

    def _size(self, token: _Token) -> Linear:
        value = self._input(token)
        self._must("[")
        number = self._next()
        self._must("]")
        rank = len(self.walker.facts.shape(value) or ())
        if number.kind != "number" or int(number.text) >= rank:
            name = quoted(self.walker.name(value))
            first = f", from {name}.shape[0] on" if rank else ""
            raise BadGiven(f"{self.text!r} is wrong: {name} has {counted(rank, 'dimension')}{first}")
        dims = self.walker.dims(value)
        assert dims is not None
        return dims[int(number.text)]

    def _elements(self, token: _Token) -> Linear:
        """Parse an input or a column of it; return the symbol of its greatest element.

        `_facts` replaces that by the least element where necessary.
        """
        value = self._input(token)
        column = -1
        if self._takes("[", "...", ","):
            number = self._next()
            self._must("]")
            column = int(number.text) if number.kind == "number" else -1
        numbers = self.walker.numbers(value)
        if not numbers.cases[0].lows:
            raise BadGiven(
                f"{self.text!r} is wrong: {quoted(self.walker.name(value))} is not a tensor of integers"
            )
        if column >= 0:
            columns = numbers.columns
            if columns is None or column >= len(columns):
                raise BadGiven(
                    f"{self.text!r} is wrong: {quoted(self.walker.name(value))} has no such column"
                )
            return columns[column][0].highs[0]
        return numbers.cases[0].highs[0]

    def _input(self, token: _Token) -> Value:
        name = _unquoted(token)
        value = self.by_name.get(name)
        if value is None:
            guess = did_you_mean(name, self.by_name)
            names = ", ".join(dict.fromkeys(self.walker.name(each) for each in self.walker.inputs)) or "none"
            raise BadGiven(
                f"{self.text!r} is wrong: the model has no input {name!r}{guess}, expected {names}"
            )
        return value

    def _dimension(self, symbol: Symbol) -> Linear:
        assert symbol.value is not None
        return self.walker.size(symbol.value, symbol.axis)

    def _facts(self, expression: Linear) -> tuple[Linear, ...]:
        """Return the expressions that are at least 0 if `expression` is, for all elements of its tensors.

        With a positive factor, an element is replaced by the least one: p - 3 >= 0 becomes Least (p) - 3.
        With a negative factor it is the greatest one: 15 - p >= 0 becomes 15 - Greatest (p). A dimension name
        that several inputs have gives one expression for each of them.
        """
        result = Linear(expression.constant)
        for monomial, coefficient in expression.terms:
            symbols = list(monomial)
            if coefficient > 0 and len(symbols) == 1 and symbols[0].kind is SymbolKind.GREATEST:
                symbols = [Symbol(SymbolKind.LEAST, symbols[0].value, symbols[0].axis)]
            term = Linear(0, frozenset([(tuple(symbols), coefficient)]))
            result = result.plus(term)
        names = [*self.choices]
        used = [
            number
            for number in range(len(names))
            if any(symbol == Symbol(SymbolKind.OTHER, None, -2 - number) for symbol in result.symbols())
        ]
        facts: list[Linear] = []
        for chosen in combinations(*[self.choices[names[number]] for number in used]):
            if len(facts) >= _MOST_COMBINATIONS:
                break
            fact = result
            for number, symbol in zip(used, chosen, strict=True):
                placeholder = Symbol(SymbolKind.OTHER, None, -2 - number)
                fact = substitute(fact, {placeholder: self._dimension(symbol)})
            facts.append(fact)
        return tuple(facts)


def _unquoted(token: _Token) -> str:
    if token.kind != "text":
        return token.text
    return re.sub(r"\\(.)", r"\1", token.text[1:-1])
