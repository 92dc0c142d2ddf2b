"""Tries sizes for the inputs of a model, and for each of them values, until all that nodes ask holds."""

from collections.abc import Mapping, Sequence

import numpy as np

from ir_scatter.analysis.interpreter import Plan, load
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.errors import NoInputs
from ir_scatter.evaluate.model import Program, Sketch
from ir_scatter.inputs.constraints import IndexConstraint, Use
from ir_scatter.inputs.numbers import LARGEST, clip_to_type, dtype_of, random_array, with_edges
from ir_scatter.inputs.provenance import Cell, Terms, known
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.inputs.solve import Solver
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


class Search:
    """Tries sizes, and for each of them values; notes in `found` what becomes of the inputs."""

    def __init__(
        self,
        model: Sketch,
        inputs: Sequence[GraphInput],
        sizes: Sizes,
        random: np.random.Generator,
        constraints: Mapping[str, IndexConstraint],
        number: int,
        fixed: Mapping[int, Array] | None = None,
    ) -> None:
        """Take a model, and the inputs that must be given; those in `fixed` are as they are.

        Three draws whose numbers follow each other try everything that indices may be.
        """
        self.model, self.inputs, self.sizes, self.random = model, inputs, sizes, random
        self.constraints, self.number, self.fixed = constraints, number, fixed or {}
        self.is_sketch = not isinstance(model, Program)
        self.types = [input.element_type for input in inputs if input.element_type is not None]
        for input in inputs:
            if input.element_type is None:
                raise NoInputs(f"the element type of {input.names[0]} is not known")
        self.found = Inputs(_inputs_of_positions(model.plan, inputs))
        self._reason = ""
        self._runs = self._computed = self._mends = 0

    @property
    def traced(self) -> list[int]:
        """The inputs whose elements are followed: positions are computed from them."""
        kinds, free = {"signed", "unsigned", "float"}, self.found.positions
        numbers = [n for n, type in enumerate(self.types) if free >> n & 1 and type.kind in kinds]
        return [number for number in numbers if number not in self.fixed]

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
            beyond = [  # sizes that positions go beyond, with how large they would have to be
                (high + 1, most + 1)
                for use in run.bad
                if use.is_scatter and len(use.values)
                for high, most in zip(use.highs.tolist(), use.values.max(axis=0).tolist(), strict=True)
                if most > high
            ]
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
        return not run.stuck and not run.bad and sum(self.sizes.make_room(use) for use in run.unkept) > 0

    @property
    def _is_over(self) -> bool:
        most = _MOST_SKETCHED if self.is_sketch else _MOST_STEPS
        return self._runs >= _FEWEST_RUNS and self._computed >= most

    def draw(
        self, ordinary: tuple[int, int], of_positions: tuple[int, int], of_trips: tuple[int, int]
    ) -> list[Array]:
        arrays, traced = [], self.traced
        for number, (type, shape) in enumerate(zip(self.types, self.sizes.shapes(), strict=True)):
            is_trips, is_traced = self.found.trips >> number & 1, number in traced
            low, high = of_trips if is_trips else of_positions if is_traced else ordinary
            if number in self.fixed:
                arrays.append(self.fixed[number])
            elif is_traced:
                low, high = clip_to_type(type, low, high)
                whole = self.random.integers(low, high + 1, shape)
                arrays.append(
                    whole.astype(np.float32 if type.kind == "float" else int).astype(dtype_of(type))
                )
            else:
                arrays.append(random_array(self.random, type, shape, low=low, high=high))
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
            search.model.plans, self._terms, search.sizes.symbols(), search.constraints,
            is_sketch=search.is_sketch,
        )  # fmt: skip
        given, cells = iter(enumerate(arrays)), list[Cell | None]()
        for input in search.model.inputs:
            if input.default is not None:
                cells.append(known(load(input.default)))
                continue
            number, array = next(given)
            terms = None
            if number in self._traced:
                first = self._starts[self._traced.index(number)] + 1
                terms = np.arange(first, first + array.size).reshape(array.shape)
            cells.append(known(array, terms, 1 << number))
        tracer.run(search.model.plan, cells)
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
        counts, lows, highs = np.diff(self._starts), list[int](), list[int]()
        for one in self._traced:
            low, high = clip_to_type(search.types[one], -_FARTHEST, _FARTHEST)
            lows.append(low)
            highs.append(high)
        ends = [np.repeat(np.array(end, np.int64), counts) for end in (lows, highs)]
        solver = Solver(search.random, self._terms, self.uses, *ends, wraps=wraps)
        for use in sorted(wanted, key=lambda use: not use.is_unique):
            solver.draw(use, None if wraps else search.number)
        arrays = list(self.arrays)
        for place, one in enumerate(self._traced):
            part = solver.values[self._starts[place] : self._starts[place + 1]]
            arrays[one] = part.reshape(arrays[one].shape).astype(arrays[one].dtype)
        return arrays


def _inputs_of_positions(plan: Plan, inputs: Sequence[GraphInput]) -> int:
    """Return the inputs from which positions are computed; those in bodies show when the model runs."""
    bits, found = {input.key: 1 << number for number, input in enumerate(inputs)}, 0
    for step in plan.steps:
        ports, direct = ports_of_positions(step), 0
        for port, key in enumerate(step.inputs):
            direct |= bits.get(key, 0)
            found |= bits.get(key, 0) if port in ports else 0
        if direct and isinstance(step.work, Lookup | GeneralOp) and not reads_shapes_only(step):
            bits.update(dict.fromkeys(step.outputs, direct))
    return found
