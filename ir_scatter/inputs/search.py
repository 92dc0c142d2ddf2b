"""Tries sizes for the inputs of a model, and for each of them values, until all that nodes ask holds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np

from ir_scatter.analysis.interpreter import Plan, load
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import GraphInput, Key
from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.errors import NoInputs
from ir_scatter.evaluate.model import Program, Sketch
from ir_scatter.inputs.constraints import IndexConstraint, Use, by_lane
from ir_scatter.inputs.numbers import LARGEST, clip_to_type, random_array, with_edges
from ir_scatter.inputs.provenance import Cell, Terms, known
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.inputs.trace import Inputs, Tracer, ports_of_positions, reads_shapes_only
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.lookup import Lookup

_MENDS = 32
_PASSES = 12
_SOFT_PASSES = 3
_FROM_FRONT = 6
"""Up to this pass numbers are sought that count from the front but for what a draw is to try."""

_FEWEST_RUNS = 8
_MOST_STEPS, _MOST_SKETCHED = 1_000_000, 50_000
"""A search ends after so many runs that computed so many nodes in all."""

_STUCK_STARTS = 2
"""After so many starts no other values are tried for nodes that cannot be computed."""

_FARTHEST = 2**31 - 1
_STARTS = (
    ((-LARGEST, LARGEST), (0, 7), (1, 3)),
    ((1, LARGEST), (0, 3), (1, 1)),
    ((1, LARGEST), (1, 2), (0, 1)),
    ((0, 3), (0, 1), (1, 2)),
    ((1, LARGEST), (1, 1), (1, 1)),
    ((0, LARGEST), (0, 0), (0, 0)),
)
"""Ranges to begin with: of ordinary numbers, of numbers that indices are made of, of trip counts."""


def inputs_of(model: Sketch) -> list[GraphInput]:
    """Return the inputs that must be given."""
    return [input for input in model.inputs if input.default is None]


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """Another model that gets the same inputs, which must be legal for both.

    Attributes:
        sources: for each of its inputs the number of the input that it is, what it is if it has no such
            one, or None for its default.
        types: of the inputs, such that both models can have what is drawn.
    """

    model: Sketch
    sources: tuple["int | Array | None", ...]
    types: tuple[ElementType | None, ...]

    def cells(self, inputs: Sequence[Cell]) -> Iterator[Cell]:
        """Yield the cells of its inputs, by those of the first model."""
        for input, source in zip(self.model.inputs, self.sources, strict=True):
            if isinstance(source, int):
                yield _typed(inputs[source], input.element_type)
            elif source is not None:
                yield known(source)
            else:
                assert input.default is not None
                yield known(load(input.default))


def _typed(cell: Cell, type: ElementType | None) -> Cell:
    """Return the same numbers in another type, which holds them."""
    wanted = None if type is None else dtype(type)
    assert cell.array is not None
    return cell if wanted is None else replace(cell, array=cell.array.astype(wanted, copy=False))


class Search:
    """Tries sizes, and for each of them values; notes in `found` what becomes of the inputs."""

    def __init__(
        self,
        model: Sketch,
        sizes: Sizes,
        random: np.random.Generator,
        constraints: Mapping[str, IndexConstraint],
        number: int,
        fixed: Mapping[int, Array] | None = None,
        twin: Twin | None = None,
    ) -> None:
        """Take a model, inputs that are as they are, and another model that must take the same.

        Three draws whose numbers follow each other try everything that indices may be.
        """
        self.model, self.sizes, self.random = model, sizes, random
        self.inputs = inputs_of(model)
        self.constraints, self.number, self.fixed = constraints, number, fixed or {}
        self.is_sketch, self.twin = not isinstance(model, Program), twin
        self.plans = model.plans if twin is None else {**model.plans, **twin.model.plans}
        self.types = list[ElementType]()
        types = [input.element_type for input in self.inputs] if twin is None else twin.types
        for input, type in zip(self.inputs, types, strict=True):
            if type is None:
                raise NoInputs(f"the element type of {input.names[0]} is not known")
            self.types.append(type)
        numbers = {input.key: number for number, input in enumerate(self.inputs)}
        self.found = Inputs(_inputs_of_positions(model.plan, numbers))
        if twin is not None:
            pairs = zip(twin.model.inputs, twin.sources, strict=True)
            numbers = {input.key: number for input, number in pairs if isinstance(number, int)}
            self.found.positions |= _inputs_of_positions(twin.model.plan, numbers)
        self._reason = ""
        self._runs = self._computed = self._mends = 0

    @property
    def traced(self) -> list[int]:
        """The inputs whose elements are followed: positions are computed from them."""
        kinds, found = {"signed", "unsigned", "float"}, self.found.positions
        numbers = enumerate(self.types)
        return [n for n, type in numbers if found >> n & 1 and type.kind in kinds and n not in self.fixed]

    def run(self) -> "Run":
        """Return the first run without repeated targets, or else the best that is legal."""
        best: Run | None = None
        for number, _ in enumerate(self.sizes.attempts(is_blind=self.is_sketch)):
            if number and self.sizes.are_too_large:
                continue
            self._mends = 0
            found = self._fitting()
            if found is not None and not found.stuck and (number or not found.is_blind):
                return found
            if best is None or (found is not None and found.rank < best.rank):
                best = found
            if self._is_over or (number and best is not None and not best.stuck):
                break
        if best is None:
            raise NoInputs(f"{self.model.path}: no legal inputs were found: {self._reason}")
        return best

    def _fitting(self) -> "Run | None":
        """Return the best legal run with the chosen sizes, or with others that nodes want."""
        best: Run | None = None
        for start, ranges in enumerate(_STARTS):
            run, number = self._scout(ranges), 0
            while number < _PASSES:
                if run.stuck:
                    self._reason = str(run.stuck[0].error)
                if run.bad:
                    self._reason = f"{run.bad[0].name}: {run.bad[0].describe()}"
                if run.is_legal and (best is None or (run.rank, number != 1) < (best.rank, True)):
                    best = run  # what was drawn rather than what it began with
                is_good = run.is_legal and not any(run.rank)
                if number and is_good and (number >= _SOFT_PASSES or not run.illegal):
                    return run
                if self._mends < _MENDS and self._mend(run):
                    self._mends += 1
                    if self.sizes.are_too_large or self._is_over:
                        return best
                    run, number = self._scout(ranges), 0
                    continue
                is_all = not number or (number % 2 == 0 and not run.bad)
                wanted = run.uses if is_all else run.illegal or run.unkept
                is_hopeless = run.is_full or (run.stuck and self.is_sketch)
                if number and is_hopeless and not run.illegal:
                    break
                if self._is_over or not any(use.has_terms for use in wanted):
                    break
                run, number = self.trace(run.solved(wanted, number)), number + 1
            if best is not None and (not best.stuck or start + 1 == _STUCK_STARTS):
                return best
            beyond = [size for use in run.bad if use.is_scatter for size in use.beyond()]
            if best is None and self.sizes.grow(beyond) and not (self.sizes.are_too_large or self._is_over):
                return self._fitting()
        return best

    def _scout(self, ranges: Sequence[tuple[int, int]]) -> "Run":
        """Run the model until it is known which inputs positions and trip counts are made of."""
        arrays = self.draw(*ranges)
        while True:
            before = self.found.positions | self.found.trips
            run = self.trace(arrays)
            new = (self.found.positions | self.found.trips) & ~before
            if not new:
                return run
            drawn = enumerate(zip(arrays, self.draw(*ranges), strict=True))
            arrays = [other if new >> number & 1 else array for number, (array, other) in drawn]

    def _mend(self, run: "Run") -> bool:
        """Change sizes that stood in the way; tell whether some did."""
        if self.sizes.grow(run.too_small) or any(self.sizes.mend(stuck.node) for stuck in run.stuck):
            return True
        if any(self.sizes.make_room(use) for use in run.bad if not use.room):
            return True
        return not (run.stuck or run.bad) and sum(map(self.sizes.make_room, run.unkept)) > 0

    @property
    def _is_over(self) -> bool:
        most = _MOST_SKETCHED if self.is_sketch else _MOST_STEPS
        return self._runs >= _FEWEST_RUNS and self._computed >= most

    def draw(
        self, ordinary: tuple[int, int], of_positions: tuple[int, int], of_trips: tuple[int, int]
    ) -> list[Array]:
        arrays, traced = [], self.traced
        for number, (type, shape) in enumerate(zip(self.types, self.sizes.shapes(), strict=True)):
            is_trips, is_whole = self.found.trips >> number & 1, number in traced
            low, high = of_trips if is_trips else of_positions if is_whole else ordinary
            if number in self.fixed:
                arrays.append(self.fixed[number])
            else:
                arrays.append(random_array(self.random, type, shape, low=low, high=high, is_whole=is_whole))
        return arrays

    def trace(self, arrays: list[Array]) -> "Run":
        run = Run(self, arrays)
        self._runs += 1
        self._computed += run.computed
        self.found.add(run.inputs)
        return run

    def with_edges(self, run: "Run", random: np.random.Generator) -> list[Array]:
        """Return inputs with numbers at the edges of their types where they may stand.

        That is where data or updates of a scatter node are computed from them, and no positions, sizes or
        conditions; if there is none, where they reach them through operators that are not computed.
        """
        arrays, found = run.arrays, self.found
        eligible = found.written & ~found.decisive or found.reaching & ~found.decisive
        for number in range(len(arrays)):
            if eligible >> number & 1:
                tried = list(arrays)
                tried[number] = with_edges(random, self.types[number], arrays[number])
                arrays = tried if self.trace(tried).is_as_good_as(run) else arrays
        return arrays


class Run:
    """One run of the model with certain arrays, and what it asked of positions; see `Tracer`."""

    def __init__(self, search: Search, arrays: list[Array]) -> None:
        self.search, self.arrays, self._traced = search, arrays, search.traced
        flat = [arrays[number].reshape(-1).astype(np.int64) for number in self._traced]
        self._starts = np.cumsum([0, *map(len, flat)]).tolist()
        self._terms = Terms(np.concatenate([np.empty(0, np.int64), *flat]))
        tracer = Tracer(
            search.plans, self._terms, search.sizes.symbols(), search.constraints,
            is_sketch=search.is_sketch,
        )  # fmt: skip
        drawn = list[Cell]()
        for number, array in enumerate(arrays):
            terms = None
            if number in self._traced:
                first = self._starts[self._traced.index(number)] + 1
                terms = np.arange(first, first + array.size).reshape(array.shape)
            drawn.append(known(array, terms, 1 << number))
        given, cells = iter(drawn), list[Cell | None]()
        for input in search.model.inputs:
            default = input.default
            cells.append(_typed(next(given), input.element_type) if default is None else known(load(default)))
        tracer.run(search.model.plan, cells)
        if search.twin is not None:
            tracer.run(search.twin.model.plan, list(search.twin.cells(drawn)))
        self.uses, self.stuck, self.inputs = tracer.uses, tracer.stuck, tracer.inputs
        self.computed, self.is_blind, self.too_small = tracer.computed, tracer.is_blind, tracer.too_small
        self.illegal = [use for use in self.uses if not use.is_legal]
        self.bad = [use for use in self.illegal if use.is_strict]
        self.unkept = [use for use in self.uses if use.is_unkept]

    @property
    def is_legal(self) -> bool:
        """Whether the inputs may be taken."""
        return not self.bad and (self.search.is_sketch or not self.stuck)

    @property
    def rank(self) -> tuple[int, bool]:
        """How bad legal inputs are, the best first."""
        return len(self.stuck) + len(self.too_small), bool(self.unkept)

    @property
    def is_full(self) -> bool:
        """Whether nothing stands in the way but that targets repeat for lack of room."""
        is_crowded = [use.is_crowded for use in self.unkept]
        return bool(is_crowded) and all(is_crowded) and not (self.stuck or self.illegal or self.too_small)

    def is_as_good_as(self, other: "Run") -> bool:
        """Tell whether nothing stands in the way that does not stand in the way of another run."""
        names = ("stuck", "bad", "illegal", "unkept", "too_small")
        is_no_worse = all(len(getattr(self, name)) <= len(getattr(other, name)) for name in names)
        return is_no_worse and self.is_blind <= other.is_blind

    def again(self, number: int) -> "Run":
        """Return a run of the same sizes with the numbers of another draw, this one if none is as good."""
        self.search.number, wanted = number, [use for use in self.uses if use.has_terms]
        for tried in range(_PASSES):
            drawn, solved = self.search.draw(*_STARTS[0]), self.solved(wanted, tried)
            for place in self._traced:
                drawn[place] = solved[place]
            run = self.search.trace(drawn)
            if run.is_as_good_as(self):
                return run
        return self

    def solved(self, wanted: Sequence[Use], number: int) -> list[Array]:
        """Return arrays with other positions for some uses, as pass `number` draws them."""
        search, wraps = self.search, number >= _FROM_FRONT
        ends = [clip_to_type(search.types[one], -_FARTHEST, _FARTHEST) for one in self._traced]
        limits = np.repeat(np.array(ends, np.int64).reshape(-1, 2), np.diff(self._starts), axis=0)
        solver = Solver(search.random, self._terms, self.uses, limits, wraps=wraps)
        for use in sorted(wanted, key=lambda use: not use.is_unique):
            solver.draw(use, None if wraps else search.number)
        arrays = list(self.arrays)
        for place, one in enumerate(self._traced):
            part = solver.values[self._starts[place] : self._starts[place + 1]]
            arrays[one] = part.reshape(arrays[one].shape).astype(arrays[one].dtype)
        return arrays


def _inputs_of_positions(plan: Plan, numbers: Mapping[Key, int]) -> int:
    """Return the inputs from which positions are computed; those in bodies show when the model runs."""
    bits, found = {key: 1 << number for key, number in numbers.items()}, 0
    for step in plan.steps:
        ports, direct = ports_of_positions(step), 0
        for port, key in enumerate(step.inputs):
            direct |= bits.get(key, 0)
            found |= bits.get(key, 0) if port in ports else 0
        if direct and isinstance(step.work, Lookup | GeneralOp) and not reads_shapes_only(step):
            bits.update(dict.fromkeys(step.outputs, direct))
    return found


# New elements of the inputs that positions are made of, so that every use of them is legal.

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
        self._lanes, self._has_steered = use.lanes * use.room, bool(self.is_steered.any())

    @property
    def numbers(self) -> Array:
        """[n, k]: the coordinates."""
        if not self._has_steered:
            return self.use.values
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
