"""Draws the elements of inputs that indices are made of, so that every use of them is legal."""

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
_FEW = ((Feature.NEGATIVE, Feature.REPEATED), (Feature.FIRST, Feature.LAST), (Feature.NEGATIVE,))
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

    Attributes:
        values: of every element.
        is_fixed: whether an element is not to be drawn again.
    """

    def __init__(
        self,
        random: np.random.Generator,
        terms: Terms,
        uses: Sequence[Use],
        lows: Array,
        highs: Array,
        *,
        wraps: bool,
    ) -> None:
        """Begin with the values of a run.

        Args:
            random: where randomness comes from.
            terms: what the uses speak of.
            uses: all of them: what they demand of an element holds for others as well.
            lows: the least value that each element can have.
            highs: the greatest.
            wraps: whether numbers that count from the end are drawn.
        """
        self.random, self.terms = random, terms
        self.values = terms.values.copy()
        self._lows, self._highs = lows.copy(), highs.copy()
        for use in uses:
            self._narrow(use, use.least if wraps else use.lows)
        self.is_fixed = np.zeros(len(self.values), bool)

    def _narrow(self, use: Use, least: Array) -> None:
        """Take what a use demands of its own; what contradicts others is left out."""
        elements, slopes, offsets = self.terms.look_up(use.terms)
        ends = (np.broadcast_to(ends, elements.shape) for ends in (least, use.highs))
        is_term = (elements >= 0) & (slopes != 0)
        elements, slopes, offsets, low, high = (
            array[is_term] for array in (elements, slopes, offsets, *ends)
        )
        first, last = (low - offsets) / slopes, (high - offsets) / slopes
        lows, highs = self._lows.copy(), self._highs.copy()
        np.maximum.at(lows, elements, np.ceil(np.minimum(first, last)).astype(np.int64))
        np.minimum.at(highs, elements, np.floor(np.maximum(first, last)).astype(np.int64))
        fits = lows <= highs
        self._lows, self._highs = np.where(fits, lows, self._lows), np.where(fits, highs, self._highs)

    def draw(self, use: Use) -> None:
        """Draw the elements of a use that were not drawn yet."""
        rows = _Rows(use, self)
        used = np.unique(rows.elements[rows.is_steered])
        free = used[~self.is_fixed[used]]
        if not len(free):
            return
        self._redraw(free)
        self._keep(rows)
        self.is_fixed[used] = True

    def _keep(self, rows: "_Rows") -> None:
        """Let targets differ in every lane, and lanes be equal, as the use demands."""
        if rows.use.is_unique and not rows.use.is_crowded:
            self._part(rows)
        if rows.use.are_equal:
            self._equalise(rows)

    def _redraw(self, elements: Array) -> None:
        self.values[elements] = self.random.integers(self._lows[elements], self._highs[elements] + 1)

    def _part(self, rows: "_Rows") -> None:
        """Give other elements to rows whose target another one names too: free targets, or random ones."""
        for tried in range(_TRIES):
            clashing = rows.clashing(self.random)
            if not len(clashing):
                return
            if tried % 2 == 0:
                clashing = self._move(rows, clashing)
            elements = np.unique(rows.elements[clashing][rows.is_steered[clashing]])
            self._redraw(elements[~self.is_fixed[elements]])

    def _move(self, rows: "_Rows", clashing: Array) -> Array:
        """Let rows name targets of their lanes that no other names; return those that cannot."""
        lanes, room = rows.use.lanes, rows.use.room
        count = int(lanes.max(initial=0)) + 1
        if count * room > _MOST_TARGETS:
            return clashing
        is_free = np.ones(count * room, bool)
        is_free[rows.targets] = False
        free = self.random.permutation(np.flatnonzero(is_free))
        free = free[np.argsort(free // room, kind="stable")]
        order = clashing[np.argsort(lanes[clashing], kind="stable")]
        _, once = np.unique(rows.keys[order], return_index=True)
        order = order[np.sort(once)]
        number = np.arange(len(order)) - np.searchsorted(lanes[order], lanes[order])
        place = np.searchsorted(free // room, lanes[order]) + number
        is_there = place < len(free)
        is_there[is_there] = free[place[is_there]] // room == lanes[order][is_there]
        chosen = free[np.where(is_there, place, 0)] % room if len(free) else np.zeros(len(order), np.int64)
        wanted = np.stack(np.unravel_index(chosen, tuple(rows.sizes.tolist())), axis=-1) + rows.use.lows
        left, order, wanted = order[~is_there], order[is_there], wanted[is_there]
        shifts = (np.zeros_like(rows.sizes), rows.sizes) if rows.use.wraps else (np.zeros_like(rows.sizes),)
        for shift in shifts:
            is_moved = self._pin_own(rows, order, wanted - shift)
            order, wanted = order[~is_moved], wanted[~is_moved]
        rest = [
            row
            for row, target in zip(order.tolist(), wanted, strict=True)
            if not any(self.pin(rows, row, target - shift) for shift in shifts)
        ]
        return np.concatenate([left, np.array(rest, np.int64)])

    def _pin_own(self, rows: "_Rows", order: Array, wanted: Array) -> Array:
        """Make rows what is wanted that have elements of their own and can be that; return which."""
        at, elements = rows.is_steered[order], rows.elements[order]
        values, rest = np.divmod(wanted - rows.offsets[order], np.where(at, rows.slopes[order], 1))
        is_own = (np.bincount(elements[at], minlength=1)[elements] == 1) & ~self.is_fixed[elements]
        fits = is_own & (rest == 0) & (values >= self._lows[elements]) & (values <= self._highs[elements])
        is_moved = (fits | ~at).all(axis=1)
        chosen = at & is_moved[:, None]
        self.values[elements[chosen]] = values[chosen]
        return np.asarray(is_moved)

    def pin(self, rows: "_Rows", row: int, wanted: Array, *, is_kept: bool = False) -> bool:
        """Make a row what is wanted, if its elements are free and can be that; tell whether they can.

        Args:
            rows: those of a use.
            row: the number of the row.
            wanted: its coordinates.
            is_kept: whether its elements are to stay so.
        """
        at = rows.is_steered[row]
        elements, slopes = rows.elements[row][at], rows.slopes[row][at]
        rest = wanted[at] - rows.offsets[row][at]
        values = rest // slopes
        kept = dict(zip(elements.tolist(), values.tolist(), strict=True))
        is_possible = not (rest % slopes).any() and not self.is_fixed[elements].any() and not (
            [kept[element] for element in elements.tolist()] != values.tolist()
            or (values < self._lows[elements]).any() or (values > self._highs[elements]).any()
        )  # fmt: skip
        if is_possible:
            self.values[elements] = values
            self.is_fixed[elements] = is_kept
        return is_possible

    def _equalise(self, rows: "_Rows") -> None:
        """Let every lane name what the first one does."""
        wanted = np.empty_like(rows.numbers)
        table = by_lane(rows.use.lanes, np.arange(len(wanted)))
        wanted[table] = rows.numbers[table[:1]]
        slopes = np.where(rows.is_steered, rows.slopes, 1)
        values = (wanted - rows.offsets) // slopes
        self.values[rows.elements[rows.is_steered]] = values[rows.is_steered]

    def try_features(self, use: Use, number: int) -> None:
        """Let some rows of a use be what draw `number` tries."""
        rows = _Rows(use, self)
        if not rows.is_steered.any() or (rows.sizes < 1).any() or not rows.is_legal:
            return
        count = len(np.unique(rows.elements[rows.is_steered.any(axis=1)], axis=0))
        orders = {1: _ONE, 2: _FEW, 3: _FEW}.get(count, _MANY)
        order = orders[number % len(orders)]
        is_new = [self._place(rows, feature, may_wrap=feature is not order[0]) for feature in order]
        if any(is_new) and Feature.NEGATIVE in order and use.wraps:
            self._flip(rows)
        self._keep(rows)

    def _place(self, rows: "_Rows", feature: Feature, *, may_wrap: bool) -> bool:
        """Let a row have a feature, and tell whether it had to be changed.

        With `may_wrap` the first and the last may count from either end.
        """
        use = rows.use
        can_repeat = use.may_repeat and not use.is_unique and use.lane_size > 1
        if not {Feature.NEGATIVE: use.wraps, Feature.REPEATED: can_repeat}.get(feature, True):
            return False
        holding = np.flatnonzero(rows.holds(feature, may_wrap=may_wrap))
        if len(holding):
            kept = holding[:2] if feature is Feature.REPEATED else holding[:1]
            if feature is Feature.REPEATED or not rows.are_fixed[holding].any():
                self.is_fixed[rows.elements[kept][rows.is_steered[kept]]] = True
            return False
        is_free = rows.is_steered.any(axis=1) & ~rows.are_fixed & ((use.lanes == 0) | (not use.are_equal))
        for row in self.random.permutation(np.flatnonzero(is_free))[:_CANDIDATES]:
            for wanted in self._wanted(rows, feature, int(row)):
                taken = rows.targets[rows.are_fixed]
                is_clash = use.is_unique and rows.target(int(row), wanted) in taken
                if not is_clash and self.pin(rows, int(row), wanted, is_kept=True):
                    return True
        return False

    def _wanted(self, rows: "_Rows", feature: Feature, row: int) -> Iterator[Array]:
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
            is_taken = rows.are_fixed[others]
            others = others[is_taken] if is_taken.any() else others
            if len(others):
                target = rows.numbers[int(self.random.choice(others))] % sizes
                yield from (target - sizes, target) if use.wraps and self.random.integers(2) else (target,)

    def _flip(self, rows: "_Rows") -> None:
        """Let some of the other indices count from the end: they name what they named."""
        chosen = rows.is_steered & (rows.numbers >= 0) & ~self.is_fixed[rows.elements]
        chosen &= (np.abs(rows.slopes) == 1) & (self.random.random(chosen.shape) < _FLIPPED)
        elements, first = np.unique(rows.elements[chosen], return_index=True)
        less = (np.broadcast_to(rows.sizes, chosen.shape) * rows.slopes)[chosen][first]
        values = self.values[elements] - less
        fits = (values >= self._lows[elements]) & (values <= self._highs[elements])
        old = self.values.copy()
        self.values[elements[fits]] = values[fits]
        if not rows.is_legal:
            self.values = old


class _Rows:
    """The targets of one use, as the elements of a solver stand.

    Attributes:
        use: the use.
        is_steered: [n, k]: which coordinates an element decides.
        elements: [n, k]: the elements; 0 where there is none.
        keys: [n]: one of the elements of each row.
        sizes: [k]: how many positions there are.
    """

    def __init__(self, use: Use, solver: Solver) -> None:
        self.use, self._solver = use, solver
        elements, self.slopes, self.offsets = solver.terms.look_up(use.terms)
        self.is_steered = (elements >= 0) & (self.slopes != 0)
        self.elements = np.where(self.is_steered, elements, 0)
        self.keys = self.elements.max(axis=1)
        self.sizes = use.highs - use.lows + 1

    @property
    def numbers(self) -> Array:
        """Return [n, k]: the coordinates."""
        if not self.is_steered.any():
            return self.use.values
        steered = self._solver.values[self.elements] * self.slopes + self.offsets
        return np.where(self.is_steered, steered, self.use.values)

    @property
    def are_fixed(self) -> Array:
        """Return [n]: which rows an element has a part in that is not to be drawn again."""
        return np.asarray((self.is_steered & self._solver.is_fixed[self.elements]).any(axis=1))

    @property
    def targets(self) -> Array:
        """Return [n]: a number for each target, the same for targets that are the same."""
        return np.asarray(self._flat(self.numbers) + self.use.lanes * self.use.room)

    def target(self, row: int, wanted: Array) -> int:
        """Return the number of a target that a row may name."""
        return int(self._flat(wanted.reshape(1, -1))[0] + self.use.lanes[row] * self.use.room)

    def _flat(self, numbers: Array) -> Array:
        flat = np.zeros(len(numbers), np.int64)
        for column, size in zip(((numbers - self.use.lows) % self.sizes).T, self.sizes.tolist(), strict=True):
            flat = flat * size + column
        return flat

    @property
    def is_legal(self) -> bool:
        """Tell whether all coordinates are in range."""
        return bool(((self.numbers >= self.use.least) & (self.numbers <= self.use.highs)).all())

    def clashing(self, random: np.random.Generator) -> Array:
        """Return rows that name the target of another one: all but one for each, no fixed ones."""
        is_fixed = self.are_fixed | ~self.is_steered.any(axis=1)
        order = np.argsort(~is_fixed + random.random(len(self._solver.values))[self.keys] / 2)
        _, first = np.unique(self.targets[order], return_index=True)
        is_other = np.ones(len(order), bool)
        is_other[first] = False
        found = order[is_other]
        return np.asarray(found[~is_fixed[found]])

    def holds(self, feature: Feature, *, may_wrap: bool) -> Array:
        """Return [n]: which rows have a feature, in all coordinates that can be decided."""
        if feature is Feature.REPEATED:
            _, inverse, counts = np.unique(self.targets, return_inverse=True, return_counts=True)
            return np.asarray(counts[inverse.reshape(-1)] > 1)
        numbers = self.numbers % self.sizes if may_wrap else self.numbers
        wanted = {
            Feature.NEGATIVE: self.numbers < 0,
            Feature.FIRST: numbers == 0,
            Feature.LAST: numbers == self.use.highs,
        }[feature]
        return np.asarray((wanted | ~self.is_steered).all(axis=1) & self.is_steered.any(axis=1))
