"""Inputs that break an index: drawn within what is given, and confirmed by a run in NumPy."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.symbolic.linear import Linear, Symbol, SymbolKind
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import input_of
from ir_scatter.core.errors import Error, EvaluationFailed
from ir_scatter.core.model import Model, Value
from ir_scatter.evaluate.model import Program, prepare
from ir_scatter.inputs.model import draw_feeds

_MOST_SHOWN = 64
"""Elements of an input that a witness lists in full."""
_SEEDS = 2


class Witnesses:
    """Finds inputs of one model that break an index; each condition is tried once.

    `walker` has the knowledge of what is given, which the inputs satisfy.
    """

    def __init__(self, model: Model, walker: Walker) -> None:
        self._model, self._walker = model, walker
        self._program: Program | None = None
        self._is_prepared = False
        self._found: dict[Linear, dict[str, Any] | None] = {}

    def breaking(self, condition: Linear) -> "dict[str, Any] | None":
        """Return inputs that break a condition, and so an index; None if none were found.

        The elements that the condition is about get the numbers that break it most; all others are drawn. The
        run must fail at a scatter node.
        """
        if condition not in self._found:
            change = _extreme(condition, self._walker)
            self._found[condition] = self._run(change, None) if change else None
        return self._found[condition]

    def failing_at(self, scatter: ScatterNode) -> "dict[str, Any] | None":
        """Return drawn inputs for which a node fails that fails for all inputs; None if none were found."""
        return self._run({}, scatter.node.location.scope)

    def _prepared(self) -> "Program | None":
        if not self._is_prepared:
            self._is_prepared = True
            try:
                self._program = prepare(self._model)
            except Error:  # NumPy does not compute the model
                self._program = None
        return self._program

    def _run(self, change: Mapping[Value, int], scope: str | None) -> "dict[str, Any] | None":
        program = self._prepared()
        for seed in range(_SEEDS if program is not None else 0):
            assert program is not None
            try:
                feeds = draw_feeds(program, seed).feeds
            except Error:
                continue
            if not _set(feeds, change, self._walker):
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


def _set(feeds: "dict[str, np.ndarray[Any, Any]]", change: Mapping[Value, int], walker: Walker) -> bool:
    """Set one element of each input to a number; return whether all could be set."""
    for value, number in change.items():
        name = next((each for each in walker.inputs[value].names if each in feeds), None)
        if name is None or not feeds[name].size or not _fits(number, feeds[name].dtype):
            return False
        feeds[name] = np.array(feeds[name])
        feeds[name].reshape(-1)[-1] = number
    return True


def _extreme(condition: Linear, walker: Walker) -> dict[Value, int]:
    """Return the numbers of inputs that break a condition most, within their ranges."""
    change: dict[Value, int] = {}
    for monomial, coefficient in condition.terms:
        for symbol in monomial:
            value = input_of(symbol, walker)
            if value is None or symbol.kind not in {SymbolKind.LEAST, SymbolKind.GREATEST}:
                continue
            low, high = _range(symbol, walker)
            end = low if coefficient > 0 else high
            if abs(end) < 2**63:
                change[value] = int(end)
    return change


def _range(symbol: Symbol, walker: Walker) -> tuple[float, float]:
    known = walker.knowledge.ranges.get(symbol)
    return (float("-inf"), float("inf")) if known is None else (known.low, known.high)


def _fits(number: int, dtype: "np.dtype[Any]") -> bool:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return int(limits.min) <= number <= int(limits.max)
    return dtype.kind == "f"


def _shown(array: "np.ndarray[Any, Any]") -> Any:
    """Return the elements of a small array as nested lists; of a larger one its type and shape."""
    if array.size <= _MOST_SHOWN and array.dtype.kind in "biuf":
        return array.tolist()
    return f"{array.dtype.name}{[*array.shape]}"
