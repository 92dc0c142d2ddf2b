"""Finds witnesses: inputs that break an index, within the user's conditions, confirmed by a run in NumPy."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import inf
from typing import Any

import numpy as np

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.symbolic.feeds import FedInputs
from ir_scatter.analysis.symbolic.givens import Given
from ir_scatter.analysis.symbolic.linear import Linear, Symbol, SymbolKind, of_symbol, written_order
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import input_of
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import Error, EvaluationFailed
from ir_scatter.core.model import Model, Value
from ir_scatter.core.shapes import Bounds, highest, lowest
from ir_scatter.evaluate.model import Program, prepare
from ir_scatter.inputs.model import draw_feeds

_MOST_SHOWN = 64
"""Maximum number of elements of an input that a witness lists in full."""
_SEEDS = 2
_PLAIN_DRAWS = 12
"""Number of draws of small numbers that need not be legal."""
_MOST_SIZE = 6
"""Greatest size of a dynamic dimension in such a draw, unless something requires more."""
_BROKEN = ("index-out-of-range", "negative-index")
"""Rules that a model breaks whose indices are out of range for all inputs; a run shows it."""

_Feeds = dict[str, "np.ndarray[Any, Any]"]


class Witnesses:
    """Finds inputs of one model that break an index; each condition is tried once.

    The inputs satisfy the user's conditions, which are in the knowledge of `walker`.
    """

    def __init__(self, model: Model, walker: Walker, givens: Sequence[Given]) -> None:
        self._model, self._walker, self._givens = model, walker, givens
        self._program: Program | None = None
        self._is_prepared = False
        self._found: dict[Linear, dict[str, Any] | None] = {}

    def breaking(self, condition: Linear, scatter: ScatterNode) -> "dict[str, Any] | None":
        """Return inputs that break a condition, and so an index; None if none were found.

        The elements and sizes in the condition get numbers that break it by the most, or just barely; others
        are drawn. A run must fail at a scatter node.
        """
        if condition not in self._found:
            self._found[condition] = self._run(_extremes(condition, self._walker, self._names()), None)
        return self._found[condition]

    def failing_at(self, scatter: ScatterNode) -> "dict[str, Any] | None":
        """Return inputs with which a node fails that fails for all inputs; None if none were found."""
        return self._run([{}], scatter.node.location.scope)

    def _prepared(self) -> "Program | None":
        if not self._is_prepared:
            self._is_prepared = True
            try:
                self._program = prepare(self._model, ignore=_BROKEN)
            except Error:  # NumPy does not compute the model
                self._program = None
        return self._program

    def _run(self, changes: Sequence[Mapping[Symbol, int]], scope: str | None) -> "dict[str, Any] | None":
        program = self._prepared()
        if program is None:
            return None
        for change in changes:
            for feeds in self._candidates(program, change):
                if not _set(feeds, change, self._walker) or not self._satisfies(feeds):
                    continue
                try:
                    program.run(feeds)
                except EvaluationFailed as error:
                    if error.breaks_rule and scope in {None, error.location.scope}:
                        return {
                            "inputs": {name: _shown(array) for name, array in feeds.items()},
                            "sizes": {name: [*array.shape] for name, array in feeds.items()},
                        }
                except Error:
                    continue
        return None

    def _satisfies(self, feeds: _Feeds) -> bool:
        """Return whether inputs satisfy the user's conditions."""
        try:
            fed = FedInputs(self._walker, feeds)
            return not any(fed.breach(given) for given in self._givens)
        except ValueError:  # an input with a default is not fed
            return False

    def _candidates(self, program: Program, change: Mapping[Symbol, int]) -> Iterator[_Feeds]:
        """Yield legal inputs, then inputs of small numbers; the caller then makes the change."""
        has_sizes = any(symbol.kind is SymbolKind.SIZE for symbol in change)
        for seed in range(0 if has_sizes else _SEEDS):
            try:
                yield draw_feeds(program, seed).feeds
            except Error:
                break
        for seed in range(_PLAIN_DRAWS):
            feeds = self._plain(np.random.default_rng(seed), change)
            if feeds is not None:
                yield feeds

    def _names(self) -> dict[Symbol, str]:
        """Return the dimension names of input sizes; sizes with the same name are equal in all draws."""
        names = dict[Symbol, str]()
        for value in self._walker.inputs:
            for axis, dim in enumerate(self._walker.facts.shape(value) or ()):
                if isinstance(dim, Bounds) and dim.symbol:
                    names[Symbol(SymbolKind.SIZE, value, axis)] = dim.symbol
        return names

    def _plain(self, random: np.random.Generator, change: Mapping[Symbol, int]) -> _Feeds | None:
        """Draw small numbers within the user's ranges; None if an input has no type or rank."""
        by_name = {name: change[symbol] for symbol, name in self._names().items() if symbol in change}
        common = int(random.integers(1, _MOST_SIZE))
        feeds: _Feeds = {}
        for value, declared in self._walker.inputs.items():
            type, shape = declared.element_type, declared.shape
            if declared.default is not None:
                continue
            array_type = None if type is None or type.kind == "string" else dtype(type)
            if array_type is None or shape is None:
                return None
            sizes = []
            for axis, dim in enumerate(shape):
                symbol = Symbol(SymbolKind.SIZE, value, axis)
                name = dim.symbol if isinstance(dim, Bounds) else None
                low, high = _range(symbol, self._walker)
                size = change.get(symbol, by_name.get(name or "", common))
                low, high = max(low, lowest(dim)), min(high, highest(dim) or inf)
                sizes.append(dim if isinstance(dim, int) else int(min(max(size, low), high)))
            if np.prod(sizes, dtype=np.float64) > 1 << 20:
                return None
            feeds[declared.names[0]] = self._numbers(value, sizes, array_type, random)
        return feeds

    def _numbers(
        self, value: Value, sizes: Sequence[int], array_type: "np.dtype[Any]", random: np.random.Generator
    ) -> "np.ndarray[Any, Any]":
        if array_type.kind == "b":
            return np.asarray(random.random(sizes) < random.choice([0.5, 1.0]))
        low = _range(Symbol(SymbolKind.LEAST, value), self._walker)[0]
        high = _range(Symbol(SymbolKind.GREATEST, value), self._walker)[1]
        start = int(min(max(low, 0), high)) if high >= 0 else int(max(high - _MOST_SIZE, low))
        end = int(min(high, start + _MOST_SIZE))
        return np.asarray(random.integers(start, end, sizes, endpoint=True)).astype(array_type)


def _set(feeds: _Feeds, change: Mapping[Symbol, int], walker: Walker) -> bool:
    """Set the least or greatest element of inputs to a number; return whether all could be set."""
    for symbol, number in change.items():
        if symbol.kind is SymbolKind.SIZE:
            continue
        value = input_of(symbol, walker)
        assert value is not None
        name = next((each for each in walker.inputs[value].names if each in feeds), None)
        if name is None or not feeds[name].size or not _fits(number, feeds[name].dtype):
            return False
        array = np.array(feeds[name])
        part = array if symbol.axis < 0 else array[..., symbol.axis]
        part[...] = (np.maximum if symbol.kind is SymbolKind.LEAST else np.minimum)(part, number)
        part[(0 if symbol.kind is SymbolKind.LEAST else -1,) * part.ndim] = number
        feeds[name] = array
    return True


def _extremes(condition: Linear, walker: Walker, names: Mapping[Symbol, str]) -> list[dict[Symbol, int]]:
    """Return numbers for elements and sizes that break a condition, within the user's conditions."""
    symbols: dict[Symbol, tuple[float, float]] = {}
    pending = [(condition, 1)]
    while pending:
        expression, sign = pending.pop()
        for monomial, coefficient in expression.terms:
            for symbol in monomial:
                if symbol.dividend is not None:
                    pending.append((symbol.dividend, sign * (1 if coefficient > 0 else -1)))
                elif input_of(symbol, walker) is not None and symbol.kind is not SymbolKind.COUNT:
                    low, high = _range(symbol, walker)
                    if symbol.kind is SymbolKind.SIZE:
                        low, high = max(low, 1), min(high, max(low, _MOST_SIZE))
                    symbols[symbol] = (low, high) if sign * coefficient > 0 else (high, low)
    symbols = {symbol: symbols[symbol] for symbol in sorted(symbols, key=written_order)}
    # without elements there is no index
    sizes = [of_symbol(symbol).times(-1) for symbol in symbols if symbol.kind is SymbolKind.SIZE]
    example = walker.knowledge.counterexample([condition, *sizes], names)
    chosen = [] if example is None else [{s: n for s, n in example.items() if s in symbols}]
    ends = [[int(end) for end in ends if abs(end) < 2**63] for ends in symbols.values()]
    most = product(*[numbers[:1] for numbers in ends])
    return [*[dict(zip(symbols, numbers, strict=True)) for numbers in most if symbols], *chosen]


def _range(symbol: Symbol, walker: Walker) -> tuple[float, float]:
    known = walker.knowledge.ranges.get(symbol)
    return (-inf, inf) if known is None else (known.low, known.high)


def _fits(number: int, array_type: "np.dtype[Any]") -> bool:
    if array_type.kind in "iu":
        limits = np.iinfo(array_type)
        return int(limits.min) <= number <= int(limits.max)
    return array_type.kind == "f"


def _shown(array: "np.ndarray[Any, Any]") -> Any:
    """Return a small array as nested lists; a larger one as its type and shape."""
    if array.size <= _MOST_SHOWN and array.dtype.kind in "biuf":
        return array.tolist()
    return f"{array.dtype.name}{[*array.shape]}"
