"""Chooses input elements such that all indices and positions computed from them are legal.

A *use* is an input of a node that holds positions; its *targets* are single positions or tuples of them. Each
use narrows the bounds of the input elements that its targets are computed from, by inverting their terms (see
`provenance`). Elements are then drawn within the bounds, one use after the other. A repeated target that must
differ is moved to a free one:

    term of a target     element * 2 + 1, legal from 0 to 7
    bounds of element    ceil((0 - 1) / 2) to floor((7 - 1) / 2), which is 0 to 3
    drawn                2, 2, 0: targets 5, 5, 1; the second one moves to 7 by setting its element to 3

An element is *final* when a use has been drawn from it; later uses do not change it.
"""

from collections.abc import Iterator, Sequence
from enum import Enum, auto

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.inputs.constraints import InputUse, by_lane
from ir_scatter.inputs.provenance import Terms

_MOST_ROUNDS = 16
"""Maximum rounds of moving repeated targets."""
_MOST_TARGETS = 1 << 24
"""Maximum possible targets of all lanes for which the free ones are listed."""

_CANDIDATES = 8
"""Number of targets that are tried for one feature, such as a negative index."""
_NEGATIVE_SHARE = 0.5
"""Fraction of the remaining indices that become negative where that is legal."""


class IndexFeature(Enum):
    """A kind of index that a draw should contain."""

    NEGATIVE = auto()
    FIRST = auto()
    LAST = auto()
    REPEATED = auto()


_ONE_TARGET = ((IndexFeature.NEGATIVE,), (IndexFeature.FIRST,), (IndexFeature.LAST,))
_FEW_TARGETS = (
    (IndexFeature.NEGATIVE, IndexFeature.REPEATED),
    (IndexFeature.FIRST, IndexFeature.LAST),
    (IndexFeature.NEGATIVE,),
)
_MANY_TARGETS = (
    (IndexFeature.NEGATIVE, IndexFeature.REPEATED, IndexFeature.FIRST, IndexFeature.LAST),
    (IndexFeature.FIRST, IndexFeature.LAST),
    (IndexFeature.LAST, IndexFeature.NEGATIVE, IndexFeature.REPEATED),
)
"""Features to try in three consecutive draws, for nodes with one target, two or three, or more.

The second draw has only features that every runtime accepts. With few targets a draw has fewer features, so
that ordinary indices remain.
"""


class Solver:
    """Draws new values for all traced input elements, one use of positions after the other.

    The bounds of an element satisfy all uses of it. Random targets are negative only with `wraps`; targets
    that test negative indices always are.

    Attributes:
        values: the value of each element.
        is_fixed: whether the value of an element is final.
    """

    def __init__(
        self,
        random: np.random.Generator,
        terms: Terms,
        uses: Sequence[InputUse],
        limits: Array,
        *,
        wraps: bool,
    ) -> None:
        """Compute the bounds of all elements; `limits` [n, 2] are the bounds by the element types."""
        self.random, self.terms = random, terms
        self.values, self.is_fixed = terms.values.copy(), np.zeros(len(terms.values), bool)
        self._whole = self._drawn = limits[:, 0], limits[:, 1]
        for use in uses:
            self._whole = self._narrowed(self._whole, use, use.least)
            self._drawn = self._narrowed(self._drawn, use, use.least if wraps else use.lows)

    def _narrowed(self, bounds: tuple[Array, Array], use: InputUse, least: Array) -> tuple[Array, Array]:
        """Return the bounds of elements, narrowed by those of a use, except where no value would be left."""
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

    def draw(self, use: InputUse, number: int | None = None) -> None:
        """Draw the elements that the positions of a use are computed from, unless they are final.

        `number` is the number of the draw: it decides which features some indices get, None for no features.
        """
        rows = _Rows(use, self)
        elements = _distinct(rows.elements[rows.is_steered])
        free = elements[~self.is_fixed[elements]]
        if not len(free):
            return
        self._redraw(free)
        if number is not None and use.is_scatter and (rows.sizes > 0).all():
            self._try_features(rows, number)
        if use.is_unique and not use.is_crowded:
            self._make_distinct(rows)
        if use.are_equal:  # every lane gets the targets of the first one
            targets = np.empty_like(rows.numbers)
            table = by_lane(use.lanes, np.arange(len(targets)))
            targets[table] = rows.numbers[table[:1]]
            values = (targets - rows.offsets) // np.where(rows.is_steered, rows.slopes, 1)
            self.values[rows.elements[rows.is_steered]] = values[rows.is_steered]
        self.is_fixed[elements] = True

    def _redraw(self, elements: Array) -> None:
        lows, highs = self._drawn
        self.values[elements] = self.random.integers(lows[elements], highs[elements] + 1)

    def _make_distinct(self, rows: "_Rows") -> None:
        """Move repeated targets to free targets of their lane, or else to random ones."""
        for _ in range(_MOST_ROUNDS):
            clashing = rows.clashing_rows(self.random)
            if not len(clashing):
                return
            _, once = np.unique(rows.keys[clashing], return_index=True)
            is_clashing = np.zeros(len(rows.keys), bool)
            is_clashing[clashing[once]] = True
            for wraps in (False, True) if rows.use.wraps else (False,):
                if is_clashing.any():
                    order, targets = self._free_targets(
                        rows, np.flatnonzero(is_clashing) if wraps else clashing[once]
                    )
                    is_moved = self._assign(rows, order, targets - rows.sizes if wraps else targets)
                    is_clashing[order[is_moved]] = False
            elements = _distinct(rows.elements[is_clashing][rows.is_steered[is_clashing]])
            self._redraw(elements[~self.is_fixed[elements]])

    def _free_targets(self, rows: "_Rows", order: Array) -> tuple[Array, Array]:
        """Choose a free target for each of some rows; return the rows that got one, and their new targets."""
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

    def _assign(self, rows: "_Rows", order: Array, targets: Array) -> Array:
        """Change elements so that rows reach targets, where possible; return a mask of the rows that do."""
        is_steered, elements = rows.is_steered[order], rows.elements[order]
        values, rest = np.divmod(targets - rows.offsets[order], np.where(is_steered, rows.slopes[order], 1))
        lows, highs = self._whole
        fits = (
            (rest == 0) & ~self.is_fixed[elements] & (values >= lows[elements]) & (values <= highs[elements])
        )
        chosen = is_steered & (fits | ~is_steered).all(axis=1)[:, None]
        self.values[elements[chosen]] = values[chosen]
        return np.asarray(((rows.numbers[order] == targets) | ~is_steered).all(axis=1))

    def _try_features(self, rows: "_Rows", number: int) -> None:
        """Give some targets the features of a draw; few targets get fewer features."""
        remaining, count = rows.elements[rows.is_steered.any(axis=1)], 0
        while len(remaining) and count < 4:
            remaining, count = remaining[(remaining != remaining[0]).any(axis=1)], count + 1
        orders = {1: _ONE_TARGET, 2: _FEW_TARGETS, 3: _FEW_TARGETS}.get(count, _MANY_TARGETS)
        order = orders[number % len(orders)]
        is_changed = [self._apply_feature(rows, feature) for feature in order]
        if any(is_changed) and IndexFeature.NEGATIVE in order and rows.use.wraps:
            flipped = rows.is_steered & (rows.numbers >= 0) & ~self.is_fixed[rows.elements]
            chosen = np.flatnonzero(
                flipped.any(axis=1) & (self.random.random(len(flipped)) < _NEGATIVE_SHARE)
            )
            self._assign(rows, chosen, (rows.numbers - rows.sizes * flipped)[chosen])

    def _apply_feature(self, rows: "_Rows", feature: IndexFeature) -> bool:
        """Give one target a feature, such as a negative index; return whether that was legal and possible."""
        use = rows.use
        can_be = {
            IndexFeature.NEGATIVE: use.wraps,
            IndexFeature.REPEATED: not use.is_unique and use.lane_size > 1,
        }
        if not can_be.get(feature, True):
            return False
        is_fixed = rows.are_fixed
        is_free = rows.is_steered.any(axis=1) & ~is_fixed & ((use.lanes == 0) | (not use.are_equal))
        for row in self.random.permutation(np.flatnonzero(is_free))[:_CANDIDATES]:
            for target in self._targets_for(rows, feature, int(row), is_fixed):
                before, elements = self.values.copy(), rows.elements[row][rows.is_steered[row]]
                is_placed = bool(self._assign(rows, np.array([row]), target.reshape(1, -1))[0])
                targets = rows.targets if is_placed and use.is_unique else None
                if is_placed and (targets is None or targets[row] not in targets[is_fixed]):
                    self.is_fixed[elements] = True
                    return True
                self.values = before
        return False

    def _targets_for(
        self, rows: "_Rows", feature: IndexFeature, row: int, is_fixed: Array
    ) -> Iterator[Array]:
        """Yield targets that would give a row a feature, such as a negative index."""
        use, sizes, current = rows.use, rows.sizes, rows.numbers[row]
        if feature is IndexFeature.FIRST:
            yield np.zeros_like(current)
        elif feature is IndexFeature.LAST:
            yield use.highs
        elif feature is IndexFeature.NEGATIVE:
            choices = [current % sizes - sizes, -np.ones_like(current), -sizes]
            first = int(self.random.integers(len(choices)))
            yield from (*choices[first:], *choices[:first])
        else:
            other_rows = np.flatnonzero(use.lanes == use.lanes[row])
            other_rows = other_rows[other_rows != row]
            other_rows = other_rows[is_fixed[other_rows]] if is_fixed[other_rows].any() else other_rows
            if len(other_rows):
                target = rows.numbers[int(self.random.choice(other_rows))] % sizes
                yield from (target - sizes, target) if use.wraps and self.random.integers(2) else (target,)


def _distinct(numbers: Array) -> Array:
    """Return the sorted distinct values of non-negative numbers, like np.unique without its slow import."""
    ordered = np.sort(numbers, axis=None)
    return np.asarray(ordered[np.diff(ordered, prepend=-1) > 0])


class _Rows:
    """The targets of one use, one per row, computed from the current values of a solver.

    Attributes:
        is_steered: [n, k], whether the coordinate is computed from an input element.
        elements: [n, k], the number of that element, or 0.
        keys: [n], the highest element number of each row.
        sizes: [k], the number of legal positions.
    """

    def __init__(self, use: InputUse, solver: Solver) -> None:
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
        """[n, k]: the current coordinates."""
        steered = self._solver.values[self.elements] * self.slopes + self.offsets
        return np.where(self.is_steered, steered, self.use.values)

    @property
    def are_fixed(self) -> Array:
        """[n]: whether some coordinate of the row is computed from a final element."""
        return np.asarray((self.is_steered & self._solver.is_fixed[self.elements]).any(axis=1))

    @property
    def targets(self) -> Array:
        """[n]: a number for each target; equal targets of one lane have equal numbers."""
        return np.asarray((self.numbers - self.use.lows) % self.sizes @ self._strides + self._lanes)

    def clashing_rows(self, random: np.random.Generator) -> Array:
        """Return the rows to move so that no target repeats: all but one row per target; final rows stay."""
        is_fixed = self.are_fixed | ~self.is_steered.any(axis=1)
        order = np.argsort(~is_fixed + random.random(len(self._solver.values))[self.keys] / 2)
        _, first = np.unique(self.targets[order], return_index=True)
        is_other = np.ones(len(order), bool)
        is_other[first] = False
        clashing = order[is_other]
        return np.asarray(clashing[~is_fixed[clashing]])
