"""Draws inputs that satisfy the user's `--given` texts, such as "position in 0..15" or "table distinct".

Inputs are first drawn for legal indices alone. If an element or a size breaks a text, it is changed, and the
other inputs are drawn again, until all texts hold:

    total in 1..16           limits the range from which `total` is drawn
    rows.shape[2] <= total   changes the size of `rows`, or else `total`
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.symbolic.case import type_range
from ir_scatter.analysis.symbolic.feeds import FedInputs
from ir_scatter.analysis.symbolic.givens import Given
from ir_scatter.analysis.symbolic.linear import LARGEST_SIZE, Linear, Symbol, SymbolKind
from ir_scatter.analysis.symbolic.proofs import IndexProofs
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import input_of
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import BadFeed, NoInputs
from ir_scatter.core.model import Model, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape
from ir_scatter.core.value_ranges import ValueRange
from ir_scatter.inputs.model import Drawn

_MOST_DRAWS = 24
"""Maximum draws in all: inputs that satisfy the texts are then assumed not to exist."""
_DRAWS_OF_SEED = 6
"""Draws with the same seed, each with further changes; then another seed is used."""
_MOST_SIZE = 64
"""Maximum size to which a dimension is changed: larger inputs take time and test nothing more."""


class GivenInputs:
    """The conditions on inputs that a user gives as texts; draws inputs that satisfy them, and checks others.

    Raises:
        BadGiven: a text cannot be read, names no input, or cannot hold.
    """

    def __init__(self, model: Model, texts: Sequence[str]) -> None:
        self._givens: Sequence[Given] = ()
        if texts:
            proofs = Facts(model=model, given=texts).result_of(IndexProofs)
            self._walker, self._givens = proofs.exact, proofs.givens

    def breach(self, feeds: Mapping[str, Array]) -> str:
        """Return how inputs break a text, or "": "position[3] is 31, expected position in 0..15"."""
        for given in self._givens:
            fed = FedInputs(self._walker, feeds)
            if breach := fed.breach(given):
                return f"{breach}, expected {given.text}"
        return ""

    def demand(self, feeds: Mapping[str, Array]) -> None:
        """Raise BadFeed if inputs break a text."""
        if breach := self.breach(feeds):
            raise BadFeed(f"{breach}, as was given")

    def draw(
        self,
        draw: Callable[..., Drawn],
        seed: int,
        shapes: Mapping[str, Shape],
        ranges: Mapping[str, ValueRange],
        fixed: Mapping[int, Array] | None = None,
    ) -> Drawn:
        """Draw inputs that satisfy all texts.

        Args:
            draw: the function that draws; called with a seed, shapes, `input_ranges` and `fixed`.
            seed: the seed of the first draw; later seeds are derived from it.
            shapes: shapes of inputs by name.
            ranges: ranges of the numbers of inputs by name.
            fixed: inputs that must not change, by number.

        Raises:
            NoInputs: no such inputs were found.
        """
        if not self._givens:
            return draw(seed, shapes, input_ranges=ranges, fixed=fixed)
        ranges = self._narrowed(ranges)
        breach, failed = "", None
        arrays: dict[int, Array] = {}
        sizes: dict[str, Shape] = {}
        for attempt in range(_MOST_DRAWS):
            if attempt % _DRAWS_OF_SEED == 0:
                arrays, sizes = dict(fixed or {}), dict(shapes)
            number = seed if attempt < _DRAWS_OF_SEED else seed + 1_000_003 * (attempt // _DRAWS_OF_SEED)
            try:
                drawn = draw(number, sizes, input_ranges=ranges, fixed=arrays)
            except NoInputs as error:
                failed, arrays = error, dict(fixed or {})
                continue
            breach = self.breach(drawn.feeds)
            if not breach:
                return drawn
            repair = _Repair(self._walker, drawn.feeds, number + attempt, frozenset(fixed or ()))
            for given in self._givens:
                repair.apply(given)
            arrays, sizes = {**arrays, **repair.arrays}, {**sizes, **repair.shapes}
            for place in repair.resized:
                arrays.pop(place, None)
        if failed is not None and not breach:
            raise failed
        texts = ", ".join(given.text for given in self._givens)
        raise NoInputs(f"no inputs were found that satisfy {texts}")

    def _narrowed(self, ranges: Mapping[str, ValueRange]) -> dict[str, ValueRange]:
        """Return the ranges of inputs, intersected with the ranges that the texts give for all elements."""
        result = dict(ranges)
        knowledge = self._walker.knowledge
        for value, declared in self._walker.inputs.items():
            ends = [
                knowledge.ranges.get(Symbol(kind, value)) for kind in (SymbolKind.LEAST, SymbolKind.GREATEST)
            ]
            if ends[0] is None or ends[1] is None:
                continue
            low, high = ends[0].low, ends[1].high
            type_low, type_high = type_range(self._walker.facts.element_type(value))
            if (low, high) == (type_low, type_high) or type_high == 1:
                continue
            name = next((name for name in declared.names if name in result), declared.names[0])
            before = result.get(name, (low, high))
            result[name] = (max(low, before[0]), min(high, before[1]))
        return result


class _Repair:
    """Changes to drawn inputs, so that they satisfy the texts.

    Attributes:
        arrays: the inputs with changed elements, by number.
        shapes: the inputs with changed sizes, by name.
        resized: the numbers of the inputs with changed sizes.
    """

    def __init__(self, walker: Walker, feeds: Mapping[str, Array], seed: int, fixed: frozenset[int]) -> None:
        self._walker, self._feeds, self._fixed = walker, {**feeds}, fixed
        self._numbers = {value: number for number, value in enumerate(walker.inputs)}
        self._random = np.random.default_rng(abs(seed))
        self.arrays: dict[int, Array] = {}
        self.shapes: dict[str, Shape] = {}
        self.resized: set[int] = set()

    def apply(self, given: Given) -> None:
        """Change an input so that a text holds; do nothing if it holds already or no change is known."""
        fed = FedInputs(self._walker, self._feeds)
        if not fed.breach(given):
            return
        if given.distinct is None:
            for fact in given.facts:
                self._satisfy(fact)
        elif self._numbers[given.distinct] not in self._fixed:
            self._replace(given.distinct, self._distinct(fed.array(given.distinct), given))

    def _replace(self, value: Value, array: Array | None) -> bool:
        if array is None:
            return False
        self._feeds[FedInputs(self._walker, self._feeds).name(value)] = array
        self.arrays[self._numbers[value]] = array
        return True

    def _satisfy(self, fact: Linear) -> None:
        """Change one symbol of a fact `expression >= 0` so that it holds: elements first, then a size."""
        fed = FedInputs(self._walker, self._feeds)
        if fed.holds(fact):
            return
        missing = -fed.number(fact)
        terms = [(monomial[0], coefficient) for monomial, coefficient in fact.terms if len(monomial) == 1]
        for symbol, coefficient in sorted(terms, key=lambda term: term[0].kind is SymbolKind.SIZE):
            value = input_of(symbol, self._walker)
            if value is None or self._numbers[value] in self._fixed:
                continue
            array = fed.array(value)
            step = -(-missing // abs(coefficient)) * (1 if coefficient > 0 else -1)
            if symbol.kind is not SymbolKind.SIZE:
                if self._replace(value, self._with_elements(array, symbol, step)):
                    return
                continue
            size, limits = array.shape[symbol.axis] + step, self._walker.knowledge.ranges.get(symbol)
            least, most = (0, LARGEST_SIZE) if limits is None else limits
            if least <= size <= min(most, _MOST_SIZE):
                name = fed.name(value)
                dims = self.shapes.get(name) or (UNKNOWN_DIM,) * array.ndim
                self.shapes[name] = (*dims[: symbol.axis], size, *dims[symbol.axis + 1 :])
                self.resized.add(self._numbers[value])
                return

    def _with_elements(self, array: Array, symbol: Symbol, step: int) -> Array | None:
        """Return an array whose least or greatest element, or count of nonzero elements, changes by `step`.

        None if the result would be out of range.
        """
        if symbol.kind is SymbolKind.COUNT:
            flat = array.reshape(-1).copy()
            places = self._random.permutation(np.flatnonzero((flat != 0) == (step < 0)))
            if len(places) < abs(step):
                return None
            flat[places[: abs(step)]] = step > 0
            return flat.reshape(array.shape)
        changed = array.copy()
        part = changed if symbol.axis < 0 else changed[..., symbol.axis]
        end = int(part.min() if symbol.kind is SymbolKind.LEAST else part.max()) + step
        limits = self._walker.knowledge.ranges.get(symbol)
        if limits is not None and not limits.low <= end <= limits.high:
            return None
        part[...] = np.maximum(part, end) if step > 0 else np.minimum(part, end)
        return changed

    def _distinct(self, array: Array, given: Given) -> Array | None:
        """Return an array of the same shape with distinct elements, as a text demands; None if impossible.

        The numbers are small ones near those of `array`.
        """
        assert given.distinct is not None
        low, high = int(array.min()), int(array.max())
        if given.rows:
            widths = [max(high, 1) + 1 - min(low, 0)] * array.shape[-1]
            count = array.reshape(-1, array.shape[-1]).shape[0]
            total = min(int(np.prod(widths, dtype=np.float64)), 1 << 20)
            if total < count:
                return None
            places = self._random.permutation(total)[:count]
            rows = np.stack(np.unravel_index(places, widths), axis=-1) + min(low, 0)
            return np.asarray(rows.reshape(array.shape).astype(array.dtype))
        axis = given.axis
        count = array.size if axis is None else array.shape[axis]
        low = min(max(low, 0), max(high - count + 1, 0))
        span = min(max(high - low + 1, count), 4 * count)
        if axis is None:
            return np.asarray(
                (low + self._random.permutation(span)[:count]).reshape(array.shape), array.dtype
            )
        lanes = [low + self._random.permutation(span)[:count] for _ in range(max(array.size // count, 1))]
        moved = np.moveaxis(array, axis, -1).shape
        return np.asarray(np.moveaxis(np.reshape(lanes, moved), -1, axis), array.dtype)
