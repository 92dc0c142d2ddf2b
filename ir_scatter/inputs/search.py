"""Tries sizes for the inputs of a model, and for each of them values, until all that nodes ask holds."""

from collections.abc import Mapping, Sequence

import numpy as np

from ir_scatter.analysis.interpreter import Plan, load
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.errors import NoInputs
from ir_scatter.evaluate.model import Program, Sketch
from ir_scatter.inputs.constraints import IndexConstraint, Use
from ir_scatter.inputs.numbers import LARGEST, clip_to_type, draw, dtype_of, with_edges
from ir_scatter.inputs.provenance import Cell, Terms, known
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.inputs.solve import Solver
from ir_scatter.inputs.trace import Inputs, TracingMachine, ports_of_positions, reads_shapes_only
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.lookup import Lookup

_MENDS = 32
_PASSES = 12
_SOFT_PASSES = 3
_FROM_FRONT = 6
"""Up to this pass indices are sought that count from the front: few models have none."""

_FEWEST_RUNS = 8
_MOST_STEPS, _MOST_SKETCHED = 1_000_000, 50_000
"""A search ends after so many runs that computed so many nodes in all."""

_ROUNDS = 3
_MOST_VARIED, _FEWEST_VARIED = 64, 4
"""How often, and with how many runs, indices are made to try what they may be."""

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
    """Tries sizes, and for each of them values.

    Attributes:
        model: the model.
        inputs: those that must be given.
        sizes: of their dimensions.
        random: where randomness comes from.
        constraints: what indices must be beyond what their operators demand, by scatter node.
        types: of the inputs.
        found: what becomes of the inputs, as far as runs have shown.
        reason: what stood in the way.
    """

    def __init__(
        self,
        model: Sketch,
        inputs: Sequence[GraphInput],
        sizes: Sizes,
        random: np.random.Generator,
        constraints: Mapping[str, IndexConstraint],
    ) -> None:
        self.constraints = constraints
        self.model, self.inputs, self.sizes, self.random = model, inputs, sizes, random
        self.is_sketch = not isinstance(model, Program)
        self.types = [_type_of(input) for input in inputs]
        self.found = Inputs(_inputs_of_positions(model.plan, inputs))
        self.reason = ""
        self._runs = self._computed = self._mends = 0

    @property
    def traced(self) -> list[int]:
        """Return the inputs whose elements are followed: positions are computed from them."""
        kinds = {"signed", "unsigned", "float"}
        return [
            n for n, type in enumerate(self.types) if self.found.positions >> n & 1 and type.kind in kinds
        ]

    def run(self) -> "Run":
        """Return the first run without repeated targets, or else the best that is legal.

        Raises:
            NoInputs: there is none.
        """
        best: Run | None = None
        for number, _ in enumerate(self.sizes.attempts(is_blind=self.is_sketch)):
            if number and self.sizes.are_too_large:
                continue
            self._mends = 0
            found = self._fitting()
            if found is not None and not found.stuck and (number or not found.is_blind):
                return found
            best = _better(best, found)
            if self._is_over or (number and best is not None and not best.stuck):
                break
        if best is None:
            raise NoInputs(f"{self.model.path}: no legal inputs were found: {self.reason}")
        return best

    def _fitting(self) -> "Run | None":
        """Return the best legal run with the chosen sizes, or with others that nodes want."""
        best: Run | None = None
        for start, ranges in enumerate(_STARTS):
            run, number = self._scout(ranges), 0
            while number < _PASSES:
                self._note_reason(run)
                best = _better(best, run if run.is_legal else None)
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
                run, number = self.trace(run.solved(wanted, wraps=number >= _FROM_FRONT)), number + 1
            if best is not None and (not best.stuck or start + 1 == _STUCK_STARTS):
                return best
            beyond = [pair for use in run.bad for pair in _beyond(use)]
            if best is None and self.sizes.grow(beyond) and not (self.sizes.are_too_large or self._is_over):
                return self._fitting()
        return best

    def _scout(self, ranges: Sequence[tuple[int, int]]) -> "Run":
        """Run the model until it is known which inputs positions and trip counts are made of."""
        arrays = self._draw(*ranges)
        while True:
            before = self.found.positions | self.found.trips
            run = self.trace(arrays)
            new = (self.found.positions | self.found.trips) & ~before
            if not new:
                return run
            drawn = enumerate(zip(arrays, self._draw(*ranges), strict=True))
            arrays = [other if new >> number & 1 else array for number, (array, other) in drawn]

    def _note_reason(self, run: "Run") -> None:
        if run.stuck:
            self.reason = str(run.stuck[0].error)
        if run.bad:
            self.reason = f"{run.bad[0].name}: {run.bad[0].describe()}"

    def _mend(self, run: "Run") -> bool:
        """Change sizes that stood in the way; tell whether some did."""
        if self.sizes.grow(run.too_small) or any(self.sizes.mend(stuck) for stuck in run.stuck):
            return True
        if any(self.sizes.make_room(use) for use in run.bad if not use.room):
            return True
        return not run.stuck and not run.bad and sum(self.sizes.make_room(use) for use in run.unkept) > 0

    @property
    def _is_over(self) -> bool:
        most = _MOST_SKETCHED if self.is_sketch else _MOST_STEPS
        return self._runs >= _FEWEST_RUNS and self._computed >= most

    def _draw(
        self,
        ordinary: tuple[int, int],
        of_positions: tuple[int, int],
        of_trips: tuple[int, int],
    ) -> list[Array]:
        arrays, traced = [], self.traced
        for number, (type, shape) in enumerate(zip(self.types, self.sizes.shapes(), strict=True)):
            low, high = of_trips if self.found.trips >> number & 1 else ordinary
            if number in traced:
                low, high = clip_to_type(
                    type, *(of_trips if self.found.trips >> number & 1 else of_positions)
                )
                whole = self.random.integers(low, high + 1, shape)
                arrays.append(
                    whole.astype(np.float32 if type.kind == "float" else int).astype(dtype_of(type))
                )
            else:
                arrays.append(draw(self.random, type, shape, low=low, high=high))
        return arrays

    def trace(self, arrays: list[Array]) -> "Run":
        """Run the model."""
        run = Run(self, arrays)
        self._runs += 1
        self._computed += run.computed
        self.found.add(run.inputs)
        return run

    def with_features(self, run: "Run", random: np.random.Generator, number: int) -> "Run":
        """Let indices try what they may be: negative, first, last and repeated ones.

        What is tried at all nodes at once and does no good is tried at half of them, and so on.

        Args:
            run: the one with legal inputs.
            random: where randomness comes from.
            number: of the draw; three in a row try everything.
        """
        most = self._runs + min(_MOST_VARIED, max(_MOST_STEPS // max(run.computed, 1), _FEWEST_VARIED))
        for _ in range(_ROUNDS):
            waiting = [[number for number, use in enumerate(run.uses) if use.is_scatter and use.has_terms]]
            before = run
            while waiting and self._runs < most:
                tried = waiting.pop()
                if any(at >= len(run.uses) for at in tried):
                    break
                values = run.varied(random, [run.uses[at] for at in tried], number)
                if (values == run.terms.values).all():
                    continue
                other = self.trace(run.with_values(values))
                if other.is_as_good_as(run):
                    run = other
                elif len(tried) > 1:
                    half = len(tried) // 2
                    waiting += [tried[half:], tried[:half]]
            if run is before:
                break
        return run

    def with_edges(self, run: "Run", random: np.random.Generator) -> list[Array]:
        """Return inputs with numbers at the edges of their types where they may stand.

        That is in inputs from which data or updates of a scatter node are computed, and no positions, sizes
        or conditions; if there is none, in those that reach them through operators that are not computed.
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
    """One run of the model with certain arrays, and what it asked of positions.

    Attributes:
        arrays: the inputs.
        terms: of the elements that are followed.
        uses: every place where positions are asked for.
        inputs: what becomes of the inputs.
        stuck: the nodes that could not be computed.
        is_blind: whether some shape was not known.
        too_small: sizes that positions in the model itself exceed, with how large they must be.
        computed: how many nodes were computed.
    """

    def __init__(self, search: Search, arrays: list[Array]) -> None:
        self._search, self.arrays, self._traced = search, arrays, search.traced
        flat = [arrays[number].reshape(-1).astype(np.int64) for number in self._traced]
        self._starts = np.cumsum([0, *map(len, flat)]).tolist()
        self.terms = Terms(np.concatenate([np.empty(0, np.int64), *flat]))
        symbols, is_sketch = search.sizes.symbols(), search.is_sketch
        plans, constraints = search.model.plans, search.constraints
        machine = TracingMachine(plans, self.terms, symbols, constraints, is_sketch=is_sketch)
        machine.run(search.model.plan, self._cells())
        self.uses, self.stuck, self.inputs = machine.uses, machine.stuck, machine.inputs
        self.computed, self.is_blind, self.too_small = machine.computed, machine.is_blind, machine.too_small
        self.illegal = [use for use in self.uses if not use.is_legal]
        self.bad = [use for use in self.illegal if use.is_strict]
        self.unkept = [use for use in self.uses if use.is_unkept]

    def _cells(self) -> list[Cell | None]:
        given, cells = iter(enumerate(self.arrays)), list[Cell | None]()
        for input in self._search.model.inputs:
            if input.default is not None:
                cells.append(known(load(input.default)))
                continue
            number, array = next(given)
            terms = None
            if number in self._traced:
                first = self._starts[self._traced.index(number)] + 1
                terms = np.arange(first, first + array.size).reshape(array.shape)
            cells.append(known(array, terms, 1 << number))
        return cells

    @property
    def is_legal(self) -> bool:
        """Tell whether the inputs may be taken."""
        return not self.bad and (self._search.is_sketch or not self.stuck)

    @property
    def rank(self) -> tuple[int, bool]:
        """Return how bad legal inputs are, the best first."""
        return len(self.stuck) + len(self.too_small), bool(self.unkept)

    @property
    def is_full(self) -> bool:
        """Tell whether nothing stands in the way but that targets repeat for lack of room."""
        is_crowded = [use.is_crowded for use in self.unkept]
        return bool(is_crowded) and all(is_crowded) and not (self.stuck or self.illegal or self.too_small)

    def is_as_good_as(self, other: "Run") -> bool:
        """Tell whether nothing stands in the way that does not stand in the way of another run."""
        names = ("stuck", "bad", "illegal", "unkept", "too_small")
        is_no_worse = all(len(getattr(self, name)) <= len(getattr(other, name)) for name in names)
        return is_no_worse and self.is_blind <= other.is_blind

    def solved(self, wanted: Sequence[Use], *, wraps: bool) -> list[Array]:
        """Return arrays with other positions for some uses; `wraps` for ones that count from the end too."""
        solver = self._solver(self._search.random, wraps=wraps)
        for use in sorted(wanted, key=lambda use: not use.is_unique):
            solver.draw(use)
        return self.with_values(solver.values)

    def varied(self, random: np.random.Generator, uses: Sequence[Use], number: int) -> Array:
        """Return values of the elements with which some uses try what draw `number` is to try."""
        solver = self._solver(random, wraps=True)
        for use in uses:
            solver.try_features(use, number)
        return solver.values

    def _solver(self, random: np.random.Generator, *, wraps: bool) -> Solver:
        types, counts = [self._search.types[number] for number in self._traced], np.diff(self._starts)
        ends = [clip_to_type(type, -_FARTHEST, _FARTHEST) for type in types]
        lows, highs = (np.repeat([end[side] for end in ends], counts).astype(np.int64) for side in (0, 1))
        return Solver(random, self.terms, self.uses, lows, highs, wraps=wraps)

    def with_values(self, values: Array) -> list[Array]:
        """Return the inputs with other values of the elements that are followed."""
        arrays = list(self.arrays)
        for at, number in enumerate(self._traced):
            part = values[self._starts[at] : self._starts[at + 1]]
            arrays[number] = part.reshape(arrays[number].shape).astype(arrays[number].dtype)
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


def _beyond(use: Use) -> list[tuple[int, int]]:
    """Return the sizes that positions go beyond, with how large they would have to be."""
    if not use.is_scatter or not len(use.values):
        return []
    pairs = zip(use.highs.tolist(), use.values.max(axis=0).tolist(), strict=True)
    return [(high + 1, most + 1) for high, most in pairs if most > high]


def _better(left: Run | None, right: Run | None) -> Run | None:
    """Return the better of two, the first if they are alike."""
    if left is None or right is None:
        return left or right
    return right if right.rank < left.rank else left


def _type_of(input: GraphInput) -> ElementType:
    if input.element_type is None:
        raise NoInputs(f"the element type of {input.names[0]} is not known")
    return input.element_type
