"""What indices of scatter nodes should try: negative, first, last and repeated ones.

A draw has room for some of them; which come first changes with its number, so that three draws in a
row hold all that the operator, the types and the sizes allow.
"""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

import numpy as np

from ir_scatter.inputs.solving import narrowed
from ir_scatter.inputs.terms import Terms, Use
from ir_scatter.ops.general_kernels.base import Array

_TRIES = 8
_FLIPPED = 0.25
"""How many of the other indices count from the end where they may."""


class Feature(Enum):
    """What an index can be."""

    NEGATIVE = auto()
    FIRST = auto()
    LAST = auto()
    REPEATED = auto()


_ONE = ((Feature.NEGATIVE,), (Feature.FIRST,), (Feature.LAST,))
_FEW = ((Feature.NEGATIVE, Feature.REPEATED), (Feature.FIRST, Feature.LAST), (Feature.NEGATIVE,))
_MANY = (
    (Feature.NEGATIVE, Feature.REPEATED, Feature.FIRST, Feature.LAST),
    (Feature.FIRST, Feature.LAST),
    (Feature.LAST, Feature.NEGATIVE, Feature.REPEATED),
)
"""What three draws try, one after the other, with one target, up to three, or more.

The second has nothing that some runtimes refuse, and other numbers have room as well.
"""


class Change(NamedTuple):
    """New values for some elements."""

    elements: Array
    values: Array


class _Rows:
    """The targets of one use, as the elements stand now.

    Attributes:
        use: the use.
        is_steered: [n, k]: which coordinates an element decides.
        numbers: [n, k]: the coordinates.
    """

    def __init__(self, use: Use, terms: Terms, values: Array) -> None:
        self.use, self._values = use, values
        elements, self.slopes, self.offsets = terms.look_up(use.terms)
        self.is_steered = (elements >= 0) & (self.slopes != 0)
        self.elements = np.where(self.is_steered, elements, 0)
        self.sizes = use.highs + 1
        self.numbers = use.values
        self.refresh()

    def refresh(self) -> None:
        """Compute the coordinates again."""
        steered = self._values[self.elements] * self.slopes + self.offsets
        self.numbers = np.where(self.is_steered, steered, self.use.values)

    @property
    def free_count(self) -> int:
        """Return how many rows can be chosen one by one."""
        return len(np.unique(self.elements[self.is_steered.any(axis=1)], axis=0))

    @property
    def targets(self) -> Array:
        """Return [n]: a number for each target, the same for targets that are the same."""
        flat = np.zeros(len(self.numbers), np.int64)
        for column, size in zip((self.numbers % self.sizes).T, self.sizes.tolist(), strict=True):
            flat = flat * size + column
        return np.asarray(flat + self.use.lanes * int(np.prod(self.sizes)))

    @property
    def is_legal(self) -> bool:
        """Tell whether all coordinates are in range."""
        return bool(((self.numbers >= self.use.least) & (self.numbers <= self.use.highs)).all())

    @property
    def has_repeated(self) -> bool:
        """Tell whether a target is named twice."""
        return len(np.unique(self.targets)) < len(self.numbers)

    def holds(self, feature: Feature, *, may_wrap: bool) -> Array:
        """Return [n]: which rows have a feature, in all coordinates that can be decided."""
        numbers = self.numbers % self.sizes if may_wrap else self.numbers
        if feature is Feature.REPEATED:
            targets = self.targets
            _, inverse, counts = np.unique(targets, return_inverse=True, return_counts=True)
            return np.asarray(counts[inverse.reshape(-1)] > 1)
        wanted = {
            Feature.NEGATIVE: self.numbers < 0,
            Feature.FIRST: numbers == 0,
            Feature.LAST: numbers == self.use.highs,
        }[feature]
        return np.asarray((wanted | ~self.is_steered).all(axis=1) & self.is_steered.any(axis=1))

    def solved(self, row: int, wanted: Array) -> Change | None:
        """Return the elements with which a row becomes what is wanted, None if there are none."""
        at = self.is_steered[row]
        rest = wanted[at] - self.offsets[row][at]
        slopes, elements = self.slopes[row][at], self.elements[row][at]
        if (rest % slopes).any():
            return None
        values = rest // slopes
        kept = dict(zip(elements.tolist(), values.tolist(), strict=True))
        if any(
            kept[element] != value for element, value in zip(elements.tolist(), values.tolist(), strict=True)
        ):
            return None
        return Change(np.array(list(kept), np.int64), np.array(list(kept.values()), np.int64))


class Planner:
    """Plans changes of elements that bring features into the uses of scatter nodes.

    Attributes:
        values: of every element, with what is planned.
    """

    def __init__(
        self, random: np.random.Generator, terms: Terms, uses: Sequence[Use], lows: Array, highs: Array
    ) -> None:
        self.random, self.terms = random, terms
        self.uses = [
            use for use in uses if use.is_scatter and use.has_terms and len(use.terms) and not use.are_equal
        ]
        self.values = terms.values.copy()
        self._lows, self._highs = lows, highs
        for use in uses if self.uses else ():
            self._lows, self._highs = narrowed(terms, use, use.least, self._lows, self._highs)
        self._is_taken = np.zeros(len(self.values), bool)

    def changes(self, number: int) -> Iterator[Change]:
        """Yield what draw `number` is to change; each change stands on those before."""
        for use in self.uses:
            rows = _Rows(use, self.terms, self.values)
            if not rows.is_steered.any() or (rows.sizes < 1).any() or not rows.is_legal:
                continue
            orders = {1: _ONE, 2: _FEW, 3: _FEW}.get(rows.free_count, _MANY)
            order = orders[number % len(orders)]
            may_wrap = Feature.NEGATIVE in order and use.wraps
            for feature in order:
                if self._is_possible(use, feature):
                    yield from self._place(rows, feature, may_wrap=may_wrap and feature is not order[0])
            if may_wrap:
                yield from self._flip(rows)

    def _is_possible(self, use: Use, feature: Feature) -> bool:
        if feature is Feature.NEGATIVE:
            return use.wraps
        return feature is not Feature.REPEATED or (use.may_repeat and not use.is_unique and use.lane_size > 1)

    def _place(self, rows: _Rows, feature: Feature, *, may_wrap: bool) -> Iterator[Change]:
        """Bring one feature in, if it is not there; with `may_wrap` counted from either end."""
        holding = np.flatnonzero(rows.holds(feature, may_wrap=may_wrap))
        if len(holding):
            kept = holding[:2] if feature is Feature.REPEATED else holding[:1]
            self._is_taken[rows.elements[kept][rows.is_steered[kept]]] = True
            return
        for row in self._candidates(rows, feature):
            wanted = self._wanted(rows, feature, row)
            change = None if wanted is None else self._fitting(rows, row, wanted)
            if change is not None:
                self._is_taken[change.elements] = True
                yield change
                return

    def _candidates(self, rows: _Rows, feature: Feature) -> list[int]:
        """Return rows that may become something else, those first that name the target already."""
        is_free = rows.is_steered.any(axis=1) & ~(rows.is_steered & self._is_taken[rows.elements]).any(axis=1)
        free = self.random.permutation(np.flatnonzero(is_free))
        if feature in {Feature.FIRST, Feature.LAST} and rows.use.is_unique:
            end = 0 if feature is Feature.FIRST else rows.use.highs
            is_there = ((rows.numbers[free] % rows.sizes == end) | ~rows.is_steered[free]).all(axis=1)
            free = np.concatenate([free[is_there], free[~is_there]])
        return [int(row) for row in free[:_TRIES]]

    def _wanted(self, rows: _Rows, feature: Feature, row: int) -> Array | None:
        """Return the coordinates that a row should have."""
        own, use, sizes = rows.numbers[row], rows.use, rows.sizes
        if feature is Feature.FIRST:
            return np.zeros(len(own), np.int64)
        if feature is Feature.LAST:
            return use.highs
        if feature is Feature.NEGATIVE:
            choices = (own % sizes - sizes, own % sizes - sizes, -np.ones_like(own), -sizes)
            return np.asarray(choices[int(self.random.integers(len(choices)))])
        others = np.flatnonzero(use.lanes == use.lanes[row])
        others = others[others != row]
        is_taken = (rows.is_steered[others] & self._is_taken[rows.elements[others]]).any(axis=1)
        others = others[is_taken] if is_taken.any() else others
        target = np.asarray(rows.numbers[int(self.random.choice(others))] % sizes)
        return np.asarray(target - sizes) if use.wraps and self.random.integers(2) else target

    def _fitting(self, rows: _Rows, row: int, wanted: Array) -> Change | None:
        """Make a row what is wanted; where targets must differ, another row takes the one that it had."""
        before = rows.numbers[row]
        change = self._tried(rows, row, wanted)
        if change is None:
            return None
        old = self.values[change.elements].copy()
        self._enter(rows, change)
        if rows.is_legal and not (rows.use.is_unique and not rows.use.is_repeated and rows.has_repeated):
            return change
        second = self._swapped(rows, row, before) if rows.is_legal else None
        if second is not None:
            return Change(*(np.concatenate(pair) for pair in zip(change, second, strict=True)))
        self._enter(rows, Change(change.elements, old))
        return None

    def _swapped(self, rows: _Rows, row: int, before: Array) -> Change | None:
        """Give the row that has the same target the one that this row had before."""
        targets = rows.targets
        (others,) = np.nonzero(targets == targets[row])
        others = others[others != row]
        change = self._tried(rows, int(others[0]), before) if len(others) == 1 else None
        if change is None:
            return None
        old = self.values[change.elements].copy()
        self._enter(rows, change)
        if rows.is_legal and not rows.has_repeated:
            return change
        self._enter(rows, Change(change.elements, old))
        return None

    def _tried(self, rows: _Rows, row: int, wanted: Array) -> Change | None:
        """Return the change that makes a row what is wanted, None if it may not be made."""
        change = rows.solved(row, wanted)
        if change is None or self._is_taken[change.elements].any():
            return None
        low, high = self._lows[change.elements], self._highs[change.elements]
        return change if ((change.values >= low) & (change.values <= high)).all() else None

    def _enter(self, rows: _Rows, change: Change) -> None:
        self.values[change.elements] = change.values
        rows.refresh()

    def _flip(self, rows: _Rows) -> Iterator[Change]:
        """Let some of the other indices count from the end: they name what they named."""
        chosen = rows.is_steered & (rows.numbers >= 0) & ~self._is_taken[rows.elements]
        chosen &= (np.abs(rows.slopes) == 1) & (self.random.random(chosen.shape) < _FLIPPED)
        elements, first = np.unique(rows.elements[chosen], return_index=True)
        less = (np.broadcast_to(rows.sizes, chosen.shape) * rows.slopes)[chosen][first]
        values = self.values[elements] - less
        fits = (values >= self._lows[elements]) & (values <= self._highs[elements])
        if not fits.any():
            return
        change = Change(elements[fits], values[fits])
        old = self.values[change.elements].copy()
        self._enter(rows, change)
        if rows.is_legal and not (rows.use.is_unique and not rows.use.is_repeated and rows.has_repeated):
            yield change
        else:
            self._enter(rows, Change(change.elements, old))


def has_equal_lanes(use: Use) -> bool:
    """Tell whether the targets of all lanes are equal where they must be."""
    if not use.are_equal:
        return True
    table = _by_lane(use, use.values)
    return bool((table == table[:1]).all())


def equal_lanes(terms: Terms, uses: Sequence[Use]) -> Array:
    """Return values of all elements with which every lane names what the first one does."""
    values = terms.values.copy()
    for use in uses:
        if not use.are_equal or not len(use.values):
            continue
        elements, slopes, offsets = (_by_lane(use, array) for array in terms.look_up(use.terms))
        wanted = np.broadcast_to(_by_lane(use, use.values)[:1], elements.shape)
        is_steered = (elements >= 0) & (slopes != 0)
        rest = (wanted - offsets)[is_steered]
        values[elements[is_steered]] = rest // slopes[is_steered]
    return values


def _by_lane(use: Use, array: Array) -> Array:
    """Return what there is for each target as a table of lanes."""
    lanes = int(use.lanes.max(initial=0)) + 1
    return array[np.argsort(use.lanes, kind="stable")].reshape(lanes, -1)
