"""Draws new elements of the inputs that positions are made of, so that every use of them is legal."""

from collections.abc import Iterator, Sequence
from enum import Enum, auto

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.inputs.constraints import Use, by_lane
from ir_scatter.inputs.provenance import Terms

_TRIES = 16
_MOST_TARGETS = 1 << 24
"""Targets of all lanes up to which the free ones are listed."""

_CANDIDATES = 8
_FLIPPED = 0.5
"""How many of the other indices count from the end where they may."""


class Feature(Enum):
    """What an index of a scatter node should try to be."""

    NEGATIVE = auto()
    FIRST = auto()
    LAST = auto()
    REPEATED = auto()


_ONE = ((Feature.NEGATIVE,), (Feature.FIRST,), (Feature.LAST,))
_UP_TO_THREE = ((Feature.NEGATIVE, Feature.REPEATED), (Feature.FIRST, Feature.LAST), (Feature.NEGATIVE,))
_MANY = (
    (Feature.NEGATIVE, Feature.REPEATED, Feature.FIRST, Feature.LAST),
    (Feature.FIRST, Feature.LAST),
    (Feature.LAST, Feature.NEGATIVE, Feature.REPEATED),
)
"""What three draws try, one after the other, with one target, up to three, or more.

The second has nothing that some runtimes refuse, and other numbers have room as well.
"""


class Solver:
    """New values of all elements, drawn one use after the other.

    What all uses demand of an element holds whichever use it is drawn for. Drawn numbers count from the
    front, unless `wraps`; those that are pinned may count from the end.
    """

    def __init__(
        self, random: np.random.Generator, terms: Terms, uses: Sequence[Use], limits: Array, *, wraps: bool
    ) -> None:
        """Take what types allow: the least and the greatest of each element, [n, 2]."""
        self.random, self.terms = random, terms
        self.values, self.is_fixed = terms.values.copy(), np.zeros(len(terms.values), bool)
        self._whole = self._drawn = limits[:, 0], limits[:, 1]
        for use in uses:
            self._whole = self._narrowed(self._whole, use, use.least)
            self._drawn = self._narrowed(self._drawn, use, use.least if wraps else use.lows)

    def _narrowed(self, bounds: tuple[Array, Array], use: Use, least: Array) -> tuple[Array, Array]:
        """Take what a use demands of its own; what contradicts others is left out."""
        elements, slopes, offsets = self.terms.look_up(use.terms)
        low, high = (np.broadcast_to(ends, elements.shape) for ends in (least, use.highs))
        is_term = (elements >= 0) & (slopes != 0)
        elements, slopes, offsets, low, high = (
            part[is_term] for part in (elements, slopes, offsets, low, high)
        )
        first, last = (low - offsets) / slopes, (high - offsets) / slopes
        lows, highs = (bound.copy() for bound in bounds)
        np.maximum.at(lows, elements, np.ceil(np.minimum(first, last)).astype(np.int64))
        np.minimum.at(highs, elements, np.floor(np.maximum(first, last)).astype(np.int64))
        fits = lows <= highs
        return np.where(fits, lows, bounds[0]), np.where(fits, highs, bounds[1])

    def draw(self, use: Use, number: int | None = None) -> None:
        """Draw the elements of a use that were not drawn yet.

        With the number of a draw some indices try what that draw is to try.
        """
        rows = _Rows(use, self)
        used = _distinct(rows.elements[rows.is_steered])
        free = used[~self.is_fixed[used]]
        if not len(free):
            return
        self._redraw(free)
        if number is not None and use.is_scatter and (rows.sizes > 0).all():
            self._try_features(rows, number)
        if use.is_unique and not use.is_crowded:
            self._part(rows)
        if use.are_equal:  # every lane names what the first one does
            wanted = np.empty_like(rows.numbers)
            table = by_lane(use.lanes, np.arange(len(wanted)))
            wanted[table] = rows.numbers[table[:1]]
            values = (wanted - rows.offsets) // np.where(rows.is_steered, rows.slopes, 1)
            self.values[rows.elements[rows.is_steered]] = values[rows.is_steered]
        self.is_fixed[used] = True

    def _redraw(self, elements: Array) -> None:
        lows, highs = self._drawn
        self.values[elements] = self.random.integers(lows[elements], highs[elements] + 1)

    def _part(self, rows: "_Rows") -> None:
        """Let targets of a lane differ: rows that clash get free targets, or else random ones."""
        for _ in range(_TRIES):
            clashing = rows.clashing(self.random)
            if not len(clashing):
                return
            _, once = np.unique(rows.keys[clashing], return_index=True)
            is_left = np.zeros(len(rows.keys), bool)
            is_left[clashing[once]] = True
            for wraps in (False, True) if rows.use.wraps else (False,):
                if is_left.any():
                    order, wanted = self._free_targets(
                        rows, np.flatnonzero(is_left) if wraps else clashing[once]
                    )
                    is_moved = self._assign(rows, order, wanted - rows.sizes if wraps else wanted)
                    is_left[order[is_moved]] = False
            elements = _distinct(rows.elements[is_left][rows.is_steered[is_left]])
            self._redraw(elements[~self.is_fixed[elements]])

    def _free_targets(self, rows: "_Rows", order: Array) -> tuple[Array, Array]:
        """Return those rows that there is a free target of their lanes for, and these."""
        lanes, room = rows.use.lanes, rows.use.room
        count = int(lanes.max(initial=0)) + 1
        if not len(order) or count * room > _MOST_TARGETS:
            return order[:0], rows.numbers[:0]
        is_free = np.ones(count * room, bool)
        is_free[rows.targets] = False
        free = self.random.permutation(np.flatnonzero(is_free))
        free = free[np.argsort(free // room, kind="stable")]
        order = order[np.argsort(lanes[order], kind="stable")]
        place = np.arange(len(order)) - np.searchsorted(lanes[order], lanes[order])
        place += np.searchsorted(free // room, lanes[order])
        order, place = order[place < len(free)], place[place < len(free)]
        is_own = free[place] // room == lanes[order]
        chosen = np.unravel_index(free[place[is_own]] % room, tuple(rows.sizes.tolist()))
        return order[is_own], np.stack(chosen, axis=-1) + rows.use.lows

    def _assign(self, rows: "_Rows", order: Array, wanted: Array) -> Array:
        """Make rows what is wanted whose elements are free and can be that; return which are so now."""
        at, elements = rows.is_steered[order], rows.elements[order]
        values, rest = np.divmod(wanted - rows.offsets[order], np.where(at, rows.slopes[order], 1))
        lows, highs = self._whole
        fits = (
            (rest == 0) & ~self.is_fixed[elements] & (values >= lows[elements]) & (values <= highs[elements])
        )
        chosen = at & (fits | ~at).all(axis=1)[:, None]
        self.values[elements[chosen]] = values[chosen]
        return np.asarray(((rows.numbers[order] == wanted) | ~at).all(axis=1))

    def _try_features(self, rows: "_Rows", number: int) -> None:
        """Let some rows be what draw `number` tries, in another order where not all can be."""
        left, count = rows.elements[rows.is_steered.any(axis=1)], 0
        while len(left) and count < 4:
            left, count = left[(left != left[0]).any(axis=1)], count + 1
        orders = {1: _ONE, 2: _UP_TO_THREE, 3: _UP_TO_THREE}.get(count, _MANY)
        order = orders[number % len(orders)]
        is_changed = [self._place(rows, feature) for feature in order]
        if any(is_changed) and Feature.NEGATIVE in order and rows.use.wraps:
            flipped = rows.is_steered & (rows.numbers >= 0) & ~self.is_fixed[rows.elements]
            chosen = np.flatnonzero(flipped.any(axis=1) & (self.random.random(len(flipped)) < _FLIPPED))
            self._assign(rows, chosen, (rows.numbers - rows.sizes * flipped)[chosen])

    def _place(self, rows: "_Rows", feature: Feature) -> bool:
        """Let a row have a feature that the operator allows; tell whether one has it now."""
        use = rows.use
        can_be = {Feature.NEGATIVE: use.wraps, Feature.REPEATED: not use.is_unique and use.lane_size > 1}
        if not can_be.get(feature, True):
            return False
        is_fixed = rows.are_fixed
        is_free = rows.is_steered.any(axis=1) & ~is_fixed & ((use.lanes == 0) | (not use.are_equal))
        for row in self.random.permutation(np.flatnonzero(is_free))[:_CANDIDATES]:
            for wanted in self._wanted(rows, feature, int(row), is_fixed):
                before, elements = self.values.copy(), rows.elements[row][rows.is_steered[row]]
                is_placed = bool(self._assign(rows, np.array([row]), wanted.reshape(1, -1))[0])
                targets = rows.targets if is_placed and use.is_unique else None
                if is_placed and (targets is None or targets[row] not in targets[is_fixed]):
                    self.is_fixed[elements] = True
                    return True
                self.values = before
        return False

    def _wanted(self, rows: "_Rows", feature: Feature, row: int, is_fixed: Array) -> Iterator[Array]:
        """Yield coordinates that a row may have."""
        use, sizes, own = rows.use, rows.sizes, rows.numbers[row]
        if feature is Feature.FIRST:
            yield np.zeros_like(own)
        elif feature is Feature.LAST:
            yield use.highs
        elif feature is Feature.NEGATIVE:
            choices = [own % sizes - sizes, -np.ones_like(own), -sizes]
            at = int(self.random.integers(len(choices)))
            yield from (*choices[at:], *choices[:at])
        else:
            others = np.flatnonzero(use.lanes == use.lanes[row])
            others = others[others != row]
            others = others[is_fixed[others]] if is_fixed[others].any() else others
            if len(others):
                target = rows.numbers[int(self.random.choice(others))] % sizes
                yield from (target - sizes, target) if use.wraps and self.random.integers(2) else (target,)


def _distinct(numbers: Array) -> Array:
    """Return each of some numbers from 0 on once; np.unique would import numpy.ma, which takes longer."""
    ordered = np.sort(numbers, axis=None)
    return np.asarray(ordered[np.diff(ordered, prepend=-1) > 0])


class _Rows:
    """The targets of one use, as the elements of a solver stand.

    `is_steered` [n, k] says which coordinates an element decides, `elements` [n, k] which one, 0 where there
    is none; `keys` [n] is one of the elements of each row, `sizes` [k] how many positions there are.
    """

    def __init__(self, use: Use, solver: Solver) -> None:
        self.use, self._solver = use, solver
        elements, self.slopes, self.offsets = solver.terms.look_up(use.terms)
        self.is_steered = (elements >= 0) & (self.slopes != 0)
        self.elements = np.where(self.is_steered, elements, 0)
        self.keys = self.elements.max(axis=1)
        self.sizes = use.highs - use.lows + 1
        self._strides = np.cumprod([1, *self.sizes[:0:-1].tolist()])[::-1]
        self._lanes = use.lanes * use.room

    @property
    def numbers(self) -> Array:
        """[n, k]: the coordinates."""
        steered = self._solver.values[self.elements] * self.slopes + self.offsets
        return np.where(self.is_steered, steered, self.use.values)

    @property
    def are_fixed(self) -> Array:
        """[n]: which rows an element has a part in that is not to be drawn again."""
        return np.asarray((self.is_steered & self._solver.is_fixed[self.elements]).any(axis=1))

    @property
    def targets(self) -> Array:
        """[n]: a number for each target, the same for targets that are the same."""
        return np.asarray((self.numbers - self.use.lows) % self.sizes @ self._strides + self._lanes)

    def clashing(self, random: np.random.Generator) -> Array:
        """Return rows that name the target of another one: all but one for each, no fixed ones."""
        is_fixed = self.are_fixed | ~self.is_steered.any(axis=1)
        order = np.argsort(~is_fixed + random.random(len(self._solver.values))[self.keys] / 2)
        _, first = np.unique(self.targets[order], return_index=True)
        is_other = np.ones(len(order), bool)
        is_other[first] = False
        found = order[is_other]
        return np.asarray(found[~is_fixed[found]])
