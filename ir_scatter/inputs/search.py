"""Tries sizes for the inputs of a model, and for each of them values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ir_scatter.analysis.interpreter import load
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.errors import NoInputs
from ir_scatter.evaluate.model import Program, Sketch
from ir_scatter.inputs.cells import Cell, Stuck, Traced, hollow
from ir_scatter.inputs.features import Change, Planner, equal_lanes, has_equal_lanes
from ir_scatter.inputs.mending import grow, make_room, mend
from ir_scatter.inputs.numbers import LARGEST, clip_to_type, draw, dtype_of
from ir_scatter.inputs.reach import values_of_positions, values_of_trips, values_that_matter
from ir_scatter.inputs.sizes import MOST_ELEMENTS, Sizes
from ir_scatter.inputs.solving import narrowed, solve
from ir_scatter.inputs.terms import Constraint, Terms, Use
from ir_scatter.inputs.tracing import Scope, TracingMachine
from ir_scatter.ops.general_kernels.base import Array

_MENDS = 32
_PASSES = 12
_SOFT_PASSES = 3
_FROM_FRONT = 6
"""Up to this pass indices are sought that count from the front: few models have none."""

_FEWEST_RUNS = 8
_MOST_STEPS, _MOST_SKETCHED = 1_000_000, 50_000
"""A search ends after so many runs that computed so many nodes in all."""

_MORE_SIZES = 3
"""So many times it goes on for a few runs all the same: nothing was found, but sizes have changed."""

_ROUNDS = 3
_MOST_VARIED, _FEWEST_VARIED = 64, 4
"""How often, and with how many runs, indices are made to try what they may be."""

_STUCK_STARTS = 1
"""After this start no other values are tried for nodes that cannot be computed."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Inputs whose positions are legal.

    Attributes:
        run: what found them.
        arrays: in the order of the inputs.
        repeated: where targets repeat though they should not.
        stuck: how many nodes could not be computed.
        is_blind: whether some shape was not known.
        too_small: how many sizes are exceeded by positions in the model itself.
    """

    run: "Run"
    arrays: list[Array]
    repeated: list[Use]
    stuck: int = 0
    is_blind: bool = False
    too_small: int = 0

    @property
    def rank(self) -> tuple[int, bool]:
        """Return how bad they are, the best first."""
        return self.stuck + self.too_small, bool(self.repeated)


class Search:
    """Tries sizes, and for each of them values.

    Attributes:
        model: the model.
        inputs: those that must be given.
        sizes: of their dimensions.
        random: where randomness comes from.
        constraints: what indices must be beyond what their operators demand, by scatter node.
        is_strict: whether every node must be computed.
        types: of the inputs.
        traced: the numbers of the inputs that positions are made of.
        mattering: the values whose numbers must be known; None for all.
        reason: what stood in the way.
    """

    def __init__(
        self,
        model: Program | Sketch,
        inputs: Sequence[GraphInput],
        sizes: Sizes,
        random: np.random.Generator,
        constraints: Mapping[str, Constraint] | None = None,
    ) -> None:
        self.constraints = constraints or {}
        self.model, self.inputs, self.sizes, self.random = model, inputs, sizes, random
        self.is_strict = isinstance(model, Program)
        keys = values_of_positions(model.plan, model.plans)
        self._trips = values_of_trips(model.plan, model.plans)
        self.types = [_type_of(input) for input in inputs]
        self.traced = [
            number
            for number, (input, type) in enumerate(zip(inputs, self.types, strict=True))
            if input.key in keys and type.kind in {"signed", "unsigned", "float"}
        ]
        self.mattering = None if self.is_strict else keys | values_that_matter(model.plan, model.plans)
        self.reason = ""
        self._runs = self._computed = 0
        self._least_runs, self._more_sizes = _FEWEST_RUNS, _MORE_SIZES

    def run(self) -> Found:
        """Return the first inputs without repeated targets, or else the best that are legal.

        Raises:
            NoInputs: there are none.
        """
        best: Found | None = None
        for number, _ in enumerate(self.sizes.attempts(is_blind=not self.is_strict)):
            if number and self.sizes.elements() > MOST_ELEMENTS:
                continue
            found = self._fitting()
            if found is not None and not found.stuck and (number or not found.is_blind):
                return found
            best = _better(best, found)
            if self._is_over() or (number and best is not None and not best.stuck):
                break
        if best is None:
            raise NoInputs(f"{self.model.path}: no legal inputs were found: {self.reason}")
        return best

    def _fitting(self) -> Found | None:
        """Return the best inputs for the chosen sizes, or for others that fit each other better."""
        best: Found | None = None
        for number in range(_MENDS):
            if number and self.sizes.elements() > MOST_ELEMENTS:
                break
            before = self.sizes.shapes()
            found = self._values(before)
            if found is not None and not any(found.rank):
                return found
            best = _better(best, found)
            if self.sizes.shapes() == before or (
                self._is_over() and (best is not None or not self._extend())
            ):
                break
        return best

    def _is_over(self) -> bool:
        most = _MOST_STEPS if self.is_strict else _MOST_SKETCHED
        return self._runs >= self._least_runs and self._computed >= most

    def _extend(self) -> bool:
        """Go on for a few runs, if that is allowed: what long loops have cost says nothing of new sizes."""
        self._least_runs = self._runs + _FEWEST_RUNS
        self._more_sizes -= 1
        return self._more_sizes >= 0

    def trace(self, arrays: list[Array]) -> "Run":
        """Run the model."""
        self._runs += 1
        run = Run(self, arrays)
        self._computed += run.computed
        return run

    def vary(self, found: Found, random: np.random.Generator, number: int) -> Found:
        """Let indices try what they may be: negative, first, last and repeated ones.

        Args:
            found: legal inputs.
            random: where randomness comes from.
            number: of the draw; three in a row try everything.
        """
        found = self._with_equal_lanes(found)
        most = self._runs + min(_MOST_VARIED, max(_MOST_STEPS // max(found.run.computed, 1), _FEWEST_VARIED))
        for _ in range(_ROUNDS):
            changes = list(found.run.planner(random).changes(number))
            if not changes or self._runs >= most:
                break
            found = self._changed(found, changes, most)
        return found

    def _changed(self, found: Found, changes: Sequence[Change], most: int) -> Found:
        """Return inputs with all changes that are good together, found by halving.

        Args:
            found: the inputs before.
            changes: one after the other.
            most: how many runs there may have been in the end.
        """
        waiting, before = [list(changes)], found.run
        values = before.terms.values
        while waiting and self._runs < most:
            tried = waiting.pop()
            new = values.copy()
            for change in tried:
                new[change.elements] = change.values
            run = self.trace(before.with_values(new))
            other = None if run.bad else run.found()
            if other is not None and run.is_as_good_as(before):
                found, values = other, new
            elif len(tried) > 1:
                half = len(tried) // 2
                waiting += [tried[half:], tried[:half]]
        return found

    def _with_equal_lanes(self, found: Found) -> Found:
        """Make the targets of all lanes equal where they must be; tell of nodes where that is not found."""
        if not any(use.are_equal for use in found.run.uses):
            return found
        run = self.trace(found.run.with_values(equal_lanes(found.run.terms, found.run.uses)))
        tried = run.found() if not run.bad else None
        if tried is not None and run.is_as_good_as(found.run) and all(map(has_equal_lanes, run.uses)):
            return tried
        unequal = [use for use in found.run.uses if not has_equal_lanes(use)]
        return replace(found, repeated=[*found.repeated, *unequal])

    def _values(self, shapes: Sequence[tuple[int, ...]]) -> Found | None:
        """Return inputs of these shapes; None if there are none, or if sizes were changed first."""
        legal: Found | None = None
        for start, ranges in enumerate(_STARTS):
            arrays = self._draw(shapes, *ranges)
            for number in range(_PASSES):
                run = self.trace(arrays)
                if run.stuck:
                    self.reason = str(run.stuck[0])
                found = None if run.bad else run.found()
                if grow(self.sizes, run.too_small):
                    return _better(legal, found)
                is_good = found is not None and not any(found.rank)
                if number and is_good and (number >= _SOFT_PASSES or not run.illegal):
                    return found
                legal = _better(legal, found)
                if self._mend(run):
                    return legal
                is_all = not number or (number % 2 == 0 and not run.bad)
                wanted = run.uses if is_all else run.illegal or run.repeated
                is_hopeless = bool(number and run.stuck and not run.illegal and not self.is_strict)
                if is_hopeless or not any(use.has_terms for use in wanted) or self._is_over():
                    break
                arrays = run.solve(wanted, wraps=number >= _FROM_FRONT)
            if legal is not None and (not legal.stuck or start == _STUCK_STARTS):
                return legal
        if legal is None:
            grow(self.sizes, [pair for use in run.bad for pair in _reached(use)])
        return legal

    def _mend(self, run: "Run") -> bool:
        """Change sizes that stood in the way; tell whether some did."""
        if run.bad:
            self.reason = f"{run.bad[0].name}: {run.bad[0].describe()}"
        if any(mend(self.sizes, stuck) for stuck in run.stuck):
            return True
        return not run.stuck and not run.bad and sum(make_room(self.sizes, use) for use in run.repeated) > 0

    def _draw(
        self,
        shapes: Sequence[tuple[int, ...]],
        ordinary: tuple[int, int],
        of_positions: tuple[int, int],
        of_trips: tuple[int, int],
    ) -> list[Array]:
        arrays = []
        for number, (type, shape) in enumerate(zip(self.types, shapes, strict=True)):
            is_trips = self.inputs[number].key in self._trips
            if number not in self.traced:
                low, high = of_trips if is_trips else ordinary
                arrays.append(draw(self.random, type, shape, low=low, high=high))
                continue
            low, high = clip_to_type(type, *(of_trips if is_trips else of_positions))
            whole = self.random.integers(low, high + 1, shape)
            arrays.append(
                (whole.astype(np.float32) if type.kind == "float" else whole).astype(dtype_of(type))
            )
        return arrays


class Run:
    """One run of the model with certain arrays, and what it asked of positions.

    Attributes:
        arrays: the inputs.
        uses: every place where positions are asked for.
        stuck: the nodes that could not be computed; the run ends with the first if it is strict.
        is_blind: whether some shape was not known.
        too_small: sizes that positions in the model itself exceed, with how large they must be.
        computed: how many nodes were computed.
    """

    def __init__(self, search: Search, arrays: list[Array]) -> None:
        self.search, self.arrays = search, arrays
        flat = [arrays[number].reshape(-1).astype(np.int64) for number in search.traced]
        self.starts = np.cumsum([0, *map(len, flat)]).tolist()
        self.terms = Terms(np.concatenate([np.empty(0, np.int64), *flat]))
        model = search.model
        scope = Scope(
            search.sizes.symbols(), search.is_strict, model.plan, search.mattering, search.constraints
        )
        machine = TracingMachine(model.plans, self.terms, scope)
        self.uses: list[Use] = machine.uses
        self.stuck: list[Stuck] = machine.stuck
        try:
            machine.run(model.plan, self._cells())
        except Stuck as stuck:
            self.stuck.append(stuck)
        self.computed = machine.computed
        self.is_blind = machine.is_blind
        self.too_small = machine.too_small

    def _cells(self) -> list[Cell | None]:
        search, given = self.search, iter(enumerate(self.arrays))
        cells: list[Cell | None] = []
        for input in search.model.inputs:
            if input.default is not None:
                cells.append(Traced(load(input.default)))
                continue
            number, array = next(given)
            terms = None
            if number in search.traced:
                first = self.starts[search.traced.index(number)] + 1
                terms = np.arange(first, first + array.size).reshape(array.shape)
            elif search.mattering is not None and input.key not in search.mattering:
                cells.append(hollow(array.shape, array.dtype))
                continue
            cells.append(Traced(array, terms, is_input=True))
        return cells

    @property
    def illegal(self) -> list[Use]:
        """Return the uses whose positions are not legal, or of no use."""
        return [use for use in self.uses if not use.is_legal]

    @property
    def bad(self) -> list[Use]:
        """Return the uses whose positions are not legal."""
        return [use for use in self.uses if not use.is_legal and use.is_strict]

    def is_as_good_as(self, other: "Run") -> bool:
        """Tell whether nothing stands in the way that does not stand in the way of another run."""
        pairs = (
            (self.stuck, other.stuck),
            (self.illegal, other.illegal),
            (self.repeated, other.repeated),
            (self.too_small, other.too_small),
        )
        return all(len(mine) <= len(theirs) for mine, theirs in pairs) and self.is_blind <= other.is_blind

    @property
    def repeated(self) -> list[Use]:
        """Return the uses whose targets repeat though they should not."""
        return [use for use in self.uses if use.is_repeated]

    def found(self) -> Found | None:
        """Return the arrays, None if they are not to be taken."""
        if self.stuck and self.search.is_strict:
            return None
        return Found(self, self.arrays, self.repeated, len(self.stuck), self.is_blind, len(self.too_small))

    def solve(self, wanted: Sequence[Use], *, wraps: bool) -> list[Array]:
        """Return arrays with other positions for some uses; `wraps` for ones that count from the end too."""
        lows, highs = self._ends()
        for use in self.uses:
            lows, highs = narrowed(self.terms, use, use.least if wraps else use.lows, lows, highs)
        return self.with_values(solve(self.search.random, self.terms, lows, highs, wanted))

    def planner(self, random: np.random.Generator) -> Planner:
        """Return what plans other indices for these uses."""
        return Planner(random, self.terms, self.uses, *self._ends())

    def _ends(self) -> tuple[Array, Array]:
        """Return the least and the greatest value of each element that its type can hold."""
        search, counts = self.search, np.diff(self.starts)
        ends = [clip_to_type(search.types[number], -_FARTHEST, _FARTHEST) for number in search.traced]
        lows, highs = (np.repeat([end[side] for end in ends], counts) for side in (0, 1))
        return lows, highs

    def with_values(self, values: Array) -> list[Array]:
        """Return the inputs with other values of the elements that positions are made of."""
        search, arrays = self.search, list(self.arrays)
        for at, number in enumerate(search.traced):
            array = arrays[number]
            part = values[self.starts[at] : self.starts[at + 1]].reshape(array.shape)
            arrays[number] = part.astype(array.dtype)
        return arrays


def _reached(use: Use) -> list[tuple[int, int]]:
    """Return the sizes that positions go beyond, with how large they would have to be."""
    if not use.is_scatter or not len(use.values):
        return []
    pairs = zip(use.highs.tolist(), use.values.max(axis=0).tolist(), strict=True)
    return [(high + 1, most + 1) for high, most in pairs if most > high]


def _better(left: Found | None, right: Found | None) -> Found | None:
    """Return the better of two, the first if they are alike."""
    if left is None or right is None:
        return left or right
    return right if right.rank < left.rank else left


def _type_of(input: GraphInput) -> ElementType:
    if input.element_type is None:
        raise NoInputs(f"the element type of {input.names[0]} is not known")
    return input.element_type
