"""Draws the elements of inputs that indices are made of, so that every use of them is legal."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ir_scatter.inputs.terms import NO_TERM, Terms, Use
from ir_scatter.ops.general_kernels.base import Array

_TRIES = 64
_MOST_COMPARED = 1 << 24
"""Positions of all lanes up to which they are shuffled together."""


def solve(
    random: np.random.Generator,
    terms: Terms,
    lows: Array,
    highs: Array,
    wanted: Sequence[Use],
) -> Array:
    """Return new values of all elements; those that no use in `wanted` has a part in stay.

    Args:
        random: where randomness comes from.
        terms: what the uses speak of.
        lows: the least value that each element can have.
        highs: the greatest.
        wanted: the uses whose elements are drawn again.
    """
    solver = _Solver(random, terms, lows, highs)
    for use in sorted(wanted, key=lambda use: not use.is_unique):
        solver.draw(use)
    return solver.values


def narrowed(terms: Terms, use: Use, least: Array, lows: Array, highs: Array) -> tuple[Array, Array]:
    """Return the ranges of all elements with what a use demands of its own.

    A demand that contradicts others is left out.

    Args:
        terms: what the use speaks of.
        use: the use.
        least: the least coordinates that it takes.
        lows: the least values of all elements.
        highs: the greatest.
    """
    elements, slopes, offsets = terms.look_up(use.terms)
    ends = (np.broadcast_to(ends, elements.shape) for ends in (least, use.highs))
    is_term = (elements >= 0) & (slopes != 0)
    elements, slopes, offsets, low, high = (array[is_term] for array in (elements, slopes, offsets, *ends))
    first, last = (low - offsets) / slopes, (high - offsets) / slopes
    new_lows, new_highs = lows.copy(), highs.copy()
    np.maximum.at(new_lows, elements, np.ceil(np.minimum(first, last)).astype(np.int64))
    np.minimum.at(new_highs, elements, np.floor(np.maximum(first, last)).astype(np.int64))
    fits = new_lows <= new_highs
    return np.where(fits, new_lows, lows), np.where(fits, new_highs, highs)


class _Solver:
    """The state of one solution.

    Attributes:
        values: of every element.
        is_fixed: whether an element was drawn already.
    """

    def __init__(self, random: np.random.Generator, terms: Terms, lows: Array, highs: Array) -> None:
        self.random, self.terms, self.lows, self.highs = random, terms, lows, highs
        self.values = terms.values.copy()
        self.is_fixed = np.zeros(len(self.values), bool)

    def draw(self, use: Use) -> None:
        """Draw the elements of a use that were not drawn yet."""
        elements, slopes, offsets = self.terms.look_up(use.terms)
        used = np.unique(elements[elements >= 0])
        free = used[~self.is_fixed[used]]
        if not len(free):
            return
        is_simple = (
            bool((use.terms != NO_TERM).all())
            and len(free) == elements.size
            and bool((slopes == 1).all())
            and bool((self.lows[elements] + offsets == use.lows).all())
            and bool((self.highs[elements] + offsets == use.highs).all())
        )
        if not use.is_unique or use.is_crowded:
            self.values[free] = self.random.integers(self.lows[free], self.highs[free] + 1)
        elif is_simple:
            self.values[elements] = self._distinct(use) - offsets
        else:
            self._one_by_one(use, elements, slopes, offsets)
        self.is_fixed[free] = True

    def _distinct(self, use: Use) -> Array:
        """Return targets that differ in each lane, where nothing but the range restricts them."""
        spans = use.highs - use.lows + 1
        count, lanes = len(use.terms), int(use.lanes.max(initial=0)) + 1
        if lanes == 1:
            flat = self.random.choice(use.positions, count, replace=False)
        else:
            flat = self._distinct_in_lanes(use, lanes)
        return np.stack(np.unravel_index(flat, tuple(spans.tolist())), axis=-1) + use.lows

    def _distinct_in_lanes(self, use: Use, lanes: int) -> Array:
        positions, count = use.positions, len(use.lanes) // lanes
        order = np.argsort(use.lanes, kind="stable")
        if lanes * positions <= _MOST_COMPARED:
            drawn = self.random.random((lanes, positions)).argsort(axis=1)[:, :count]
        else:
            drawn = np.stack([self.random.choice(positions, count, replace=False) for _ in range(lanes)])
        flat = np.empty(len(use.lanes), np.int64)
        flat[order] = drawn.reshape(-1)
        return flat

    def _one_by_one(self, use: Use, elements: Array, slopes: Array, offsets: Array) -> None:
        """Draw one target after the other, each until it meets none of those before."""
        taken: set[tuple[int, ...]] = set()
        rows = zip(use.lanes.tolist(), elements.tolist(), slopes.tolist(), offsets.tolist(), strict=True)
        for row, (lane, of_row, slope, offset) in enumerate(rows):
            free = [e for e in dict.fromkeys(of_row) if e >= 0 and not self.is_fixed[e]]
            for drawn in self._candidates(free):
                for element, value in zip(free, drawn, strict=True):
                    self.values[element] = value
                known = use.values[row].tolist()
                target = tuple(
                    int(self.values[e]) * s + o if e >= 0 else k
                    for e, s, o, k in zip(of_row, slope, offset, known, strict=True)
                )
                if (lane, *target) not in taken:
                    break
            taken.add((lane, *target))
            self.is_fixed[free] = True

    def _candidates(self, free: list[int]) -> Iterator[Sequence[int]]:
        """Yield values for some elements: random ones, then all that the first of them can have."""
        lows, highs = self.lows[free], self.highs[free]
        for _ in range(_TRIES if free else 1):
            yield self.random.integers(lows, highs + 1).tolist()
        if free:
            rest = self.random.integers(lows, highs + 1).tolist()[1:]
            for value in islice(range(int(lows[0]), int(highs[0]) + 1), _TRIES * _TRIES):
                yield [value, *rest]
