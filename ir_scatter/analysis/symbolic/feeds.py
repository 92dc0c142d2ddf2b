"""Checks the arrays that a run is fed against symbolic conditions on inputs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.analysis.symbolic.givens import Given
from ir_scatter.analysis.symbolic.linear import Linear, Symbol, SymbolKind
from ir_scatter.analysis.symbolic.proofs import leaves
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import input_of, show_symbol
from ir_scatter.core.model import Value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ELEMENTS = frozenset({SymbolKind.LEAST, SymbolKind.GREATEST})
"""Symbols that need at least one element."""


class FedInputs:
    """The arrays of one run, by model input.

    An input without elements satisfies every condition on its elements.
    """

    def __init__(self, walker: Walker, feeds: "Mapping[str, ArrayLike]") -> None:
        self._walker, self._feeds = walker, feeds
        self._arrays: dict[Value, np.ndarray[Any, Any]] = {}

    def name(self, value: Value) -> str:
        """Return the name under which an input is fed.

        Raises:
            ValueError: it is not fed.
        """
        names = [self._walker.name(value), *self._walker.inputs[value].names]
        name = next((name for name in names if name in self._feeds), None)
        if name is None:
            raise ValueError(f"no array is given for {names[0]}")
        return name

    def array(self, value: Value) -> "np.ndarray[Any, Any]":
        if value not in self._arrays:
            self._arrays[value] = np.asarray(self._feeds[self.name(value)])
        return self._arrays[value]

    def number(self, expression: Linear) -> int:
        """Compute the value of an expression for these arrays; arrays in it must have elements."""
        total = expression.constant
        for monomial, coefficient in expression.terms:
            term = coefficient
            for symbol in monomial:
                term *= self._symbol(symbol)
            total += term
        return total

    def holds(self, condition: Linear) -> bool:
        """Return whether an expression is at least 0 for these arrays.

        True if an array in it has no elements; False if one holds NaN or infinities.
        """
        elements = [self._of(symbol) for symbol in leaves(condition) if symbol.kind in ELEMENTS]
        if any(array.size == 0 for array in elements):
            return True
        if not all(array.dtype.kind != "f" or bool(np.isfinite(array).all()) for array in elements):
            return False
        return self.number(condition) >= 0

    def culprit(self, condition: Linear) -> str:
        """Return the element that breaks a condition on one array, "position[3] is 31"; "" for others."""
        symbols = [symbol for symbol in leaves(condition) if symbol.kind in ELEMENTS]
        if len(symbols) != 1:
            return ""
        (symbol,) = symbols
        array = self._of(symbol)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            flat = int(np.isfinite(array).argmin())
        else:
            flat = int(array.argmin() if symbol.kind is SymbolKind.LEAST else array.argmax())
        place = [int(number) for number in np.unravel_index(flat, array.shape)] if array.ndim else []
        place += [symbol.axis] if symbol.axis >= 0 else []
        value = input_of(symbol, self._walker)
        assert value is not None
        name = self.name(value)
        return f"{f'{name}{place}' if place else name} is {array.reshape(-1)[flat]}"

    def breach(self, given: Given) -> str:
        """Return how the arrays break a condition of the user, "position is 31"; "" if they satisfy it."""
        if given.distinct is not None:
            return self._repetition(given)
        for fact in given.facts:
            if not self.holds(fact):
                return self.culprit(fact) or self._sizes(fact)
        return ""

    def _sizes(self, condition: Linear) -> str:
        """Return the values of all symbols in a condition: "a.shape[0] is 3, b.shape[0] is 5"."""
        symbols = dict.fromkeys(leaves(condition))
        return ", ".join(f"{show_symbol(each, self._walker)} is {self._symbol(each)}" for each in symbols)

    def _repetition(self, given: Given) -> str:
        assert given.distinct is not None
        array, name = self.array(given.distinct), self.name(given.distinct)
        if not array.size:
            return ""
        if given.rows:
            rows, counts = np.unique(array.reshape(-1, array.shape[-1]), axis=0, return_counts=True)
            return "" if counts.max() == 1 else f"{name} has the row {rows[counts.argmax()].tolist()} twice"
        if given.axis is None:
            numbers, counts = np.unique(array, return_counts=True)
            return "" if counts.max() == 1 else f"{name} has {numbers[counts.argmax()]} twice"
        ordered = np.sort(array, given.axis)
        repeats = ordered.take(range(1, array.shape[given.axis]), given.axis)[
            np.diff(ordered, axis=given.axis) == 0
        ]
        return f"{name} has {repeats[0]} twice along axis {given.axis}" if repeats.size else ""

    def _of(self, symbol: Symbol) -> "np.ndarray[Any, Any]":
        """Return the array of a symbol's tensor, or the column of it."""
        value = input_of(symbol, self._walker)
        assert value is not None
        array = self.array(value)
        return array if symbol.axis < 0 else array[..., symbol.axis]

    def _symbol(self, symbol: Symbol) -> int:
        if symbol.dividend is not None:
            dividend = self.number(symbol.dividend)
            if symbol.truncates and dividend < 0:
                return -(-dividend // symbol.divisor)
            return dividend // symbol.divisor
        value = input_of(symbol, self._walker)
        assert value is not None
        if symbol.kind is SymbolKind.SIZE:
            return int(self.array(value).shape[symbol.axis])
        if symbol.kind is SymbolKind.COUNT:
            return int(np.count_nonzero(self.array(value)))
        array = self._of(symbol)
        return int(array.min() if symbol.kind is SymbolKind.LEAST else array.max())
