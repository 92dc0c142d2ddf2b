"""Tries sizes for the inputs of a model, and for each of them values, until all that nodes ask holds.

The model is run forward on what was drawn, and each element of an index is followed back to the input that it
comes from; from that new values are solved.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from operator import or_
from typing import Any, TypeAlias

import numpy as np

from ir_scatter.analysis.interpreter import Forward, Plan, Step, load
from ir_scatter.core.arrays import Array, kind, native
from ir_scatter.core.dataflow import BodyInput, Choice, Dataflow, GraphInput, Key, Repeat
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.errors import EvaluationFailed, NoInputs, UnreadableModel
from ir_scatter.core.shapes import Shape
from ir_scatter.evaluate.model import Program, Sketch, compute_node, scatter_node_of
from ir_scatter.inputs.constraints import Conditions, NodeInRun, Pairs, Use, uses_of
from ir_scatter.inputs.numbers import LARGEST, clip_to_type, dtype_of, has_edges, random_array, with_edges
from ir_scatter.inputs.provenance import NO_TERM, Cell, Terms, combine, direct_of, known, origins_of, unknown
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.inputs.solver import Solver
from ir_scatter.ops.constraints import Meaning
from ir_scatter.ops.general import GeneralOp, constraints_of, output_shapes
from ir_scatter.ops.general_shapes import ShapesDiffer
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Reduction, Role

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

_MOST_ITERATIONS = (256, 16, 4)
"""A loop that runs longer is followed through its body once: for a loop in no other, in one, in two.

So is every loop inside of these. One that has few nodes may run longer.
"""

_MOST_INSIDE = 20_000
"""Up to so many nodes of bodies are computed in one run before loops may not run longer."""

_WEIGHTS = 1 << 16
"""Constants with more elements are no positions; where nothing is computed to the end they stay unread."""

_RECOUNTS = 48
"""Masks that are tried for sizes which depend on how many elements are chosen."""

_THRESHOLDS = 4
"""Constants that numbers are compared with, of which values for masks are made."""

_STARTS = (
    ((-LARGEST, LARGEST), (0, 7), (1, 3)),
    ((1, LARGEST), (0, 3), (1, 1)),
    ((1, LARGEST), (1, 2), (0, 1)),
    ((0, 3), (0, 1), (1, 2)),
    ((1, LARGEST), (1, 1), (1, 1)),
    ((0, LARGEST), (0, 0), (0, 0)),
)
"""Ranges to begin with: of ordinary numbers, of numbers that indices are made of, of trip counts."""


Body: TypeAlias = tuple[int, str]
"""A graph inside a node: the number of its model, 0 or 1, and its scope."""


def inputs_of(model: Sketch) -> list[GraphInput]:
    """Return the inputs that must be given."""
    return [input for input in model.inputs if input.default is None]


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """A model that gets the inputs, maybe together with another one for which they must be legal as well.

    Attributes:
        sources: for each of its inputs the number of the input that it is, what it is if it has no such
            one, or None for its default.
        types: of the inputs, such that both models can have what is drawn.
    """

    model: Sketch
    sources: tuple["int | Array | None", ...]
    types: tuple[ElementType | None, ...]

    def cells(self, drawn: Sequence[Cell]) -> Iterator[Cell]:
        """Yield the cells of its inputs, in types that hold what was drawn."""
        for input, source in zip(self.model.inputs, self.sources, strict=True):
            if isinstance(source, int):
                array, type = drawn[source].array, input.element_type
                assert array is not None
                wanted = None if type is None else dtype(type)
                yield replace(drawn[source], array=array.astype(wanted or array.dtype, copy=False))
            elif source is not None:
                yield known(source)
            else:
                assert input.default is not None
                yield known(load(input.default))

    def inputs_of_positions(self) -> int:
        """Return the inputs from which positions are computed; those in bodies show when the model runs."""
        bits, found = dict[Key | None, int](), 0
        for input, source in zip(self.model.inputs, self.sources, strict=True):
            bits[input.key] = 1 << source if isinstance(source, int) else 0
        for step in self.model.plan.steps:
            ports, direct = ports_of_positions(step), 0
            for port, key in enumerate(step.inputs):
                direct |= bits.get(key, 0)
                found |= bits.get(key, 0) if port in ports else 0
            if direct and isinstance(step.work, Lookup | GeneralOp) and not reads_shapes_only(step):
                bits.update(dict.fromkeys(step.outputs, direct))
        return found


class Search:
    """Tries sizes, and for each of them values.

    Runs note what becomes of the inputs, one bit for each:

    Attributes:
        positions: positions and sizes are computed from them.
        trips: it is computed from them how often a loop runs.
        decisive: they have some part in positions, sizes and conditions, or become whole numbers.
        written: data or updates of a scatter node are computed from them.
        reaching: they have some part in data or updates of a scatter node.
    """

    def __init__(
        self,
        model: Sketch,
        sizes: Sizes,
        random: np.random.Generator,
        constraints: Mapping[str, Conditions],
        number: int,
        fixed: Mapping[int, Array] | None = None,
        twin: Twin | None = None,
        *,
        may_repeat: bool = False,
    ) -> None:
        """Take a model, inputs that are as they are, and another model that must take the same.

        Three draws whose numbers follow each other try everything that indices may be. With `may_repeat`
        targets may repeat where there is no reduction, too.
        """
        self.model, self.sizes, self.random = model, sizes, random
        self.inputs = inputs_of(model)
        self.constraints, self.number, self.fixed = constraints, number, fixed or {}
        self.may_repeat = may_repeat
        self.is_sketch = not isinstance(model, Program)
        numbers = {input.key: number for number, input in enumerate(self.inputs)}
        takes = [numbers.get(input.key) for input in model.inputs]
        own = Twin(model, tuple(takes), tuple([input.element_type for input in self.inputs]))
        self.twins = [own] if twin is None else [own, twin]
        self.types = list[ElementType]()
        for input, type in zip(self.inputs, self.twins[-1].types, strict=True):
            if input.kind != "tensor":
                raise NoInputs(f"input {input.names[0]} is of type {input.kind}, expected a tensor")
            if type is None:
                raise NoInputs(f"the element type of {input.names[0]} is not known")
            self.types.append(type)
        self.positions = reduce(or_, (one.inputs_of_positions() for one in self.twins))
        self.trips = self.decisive = self.written = self.reaching = 0
        self._reason = ""
        self.runs = self.computed = self._mends = 0
        self.choosing = self._recounts = 0
        self._masks: dict[int, Array] = {}
        self.plain: list[int] = []
        """Inputs that data or updates are computed from, and that have no numbers at the edges."""

    @property
    def traced(self) -> list[int]:
        """The inputs whose elements are followed: positions are computed from them."""
        kinds, found = {"signed", "unsigned", "float"}, self.positions
        numbers = enumerate(self.types)
        held = self.fixed.keys() | self._masks.keys()
        return [n for n, type in numbers if found >> n & 1 and type.kind in kinds and n not in held]

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
                    self._reason = str(run.stuck[0][1])
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
                if run.stuck and self._recount(run):
                    if self._is_over:
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
                run, number = Run(self, run.solved(wanted, number)), number + 1
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
            before = self.positions | self.trips
            run = Run(self, arrays)
            new = (self.positions | self.trips) & ~before
            if not new:
                return run
            drawn = enumerate(zip(arrays, self.draw(*ranges), strict=True))
            arrays = [other if new >> number & 1 else array for number, (array, other) in drawn]

    def _mend(self, run: "Run") -> bool:
        """Change sizes that stood in the way; tell whether some did."""
        nodes = [node for node, _ in run.stuck if node is not None]
        if self.sizes.grow(run.too_small) or any(map(self.sizes.mend, nodes)):
            return True
        if any(self.sizes.make_room(use) for use in run.bad if not use.room):
            return True
        return not (run.stuck or run.bad) and sum(map(self.sizes.make_room, run.unkept)) > 0

    def _recount(self, run: "Run") -> bool:
        """Choose other inputs for nodes that count, as NonZero does; tell whether there are any to try.

        A node is stuck on such a size if no dimension of an input changes it. Each input that decides how
        many elements are chosen then gets two values: one at as many places as the sizes ask for, another
        elsewhere. Which two is tried in turn, as a mask may be computed in any way.
        """
        numbers = [number for number in range(len(self.types)) if self.choosing >> number & 1]
        numbers = [number for number in numbers if number not in self.fixed]
        pairs = [pair for node, _ in run.stuck if node is not None for pair in node.unmet()[0]]
        if not (numbers and pairs and run.counts) or self._recounts == _RECOUNTS:
            return False
        tried, self._recounts = self._recounts, self._recounts + 1
        shapes = self.sizes.shapes()
        for number in numbers:
            values = _pairs_of_values(self.types[number], run.thresholds)
            if not values:
                continue
            chosen, other = values[tried % len(values)]
            room = prod(shapes[number])
            counts = _counts_for(pairs, run.counts, room)
            count = counts[tried // len(values) % len(counts)]
            if 0 < room < count and self._widen(shapes[number], count):
                return True
            mask = np.full(room, other, dtype_of(self.types[number]))
            random = np.random.default_rng([self.number, tried, number])
            mask[random.permutation(mask.size)[:count]] = chosen
            self._masks[number] = mask.reshape(shapes[number])
        return True

    def _widen(self, shape: Sequence[int], count: int) -> bool:
        """Make an input larger that has less room than `count`; tell whether that was possible."""
        room = prod(shape)
        for size in reversed(shape):
            if self.sizes.grow([(size, -(-count * size // room) + 1)]):  # and something is not chosen
                self._masks.clear()
                return True
        return False

    @property
    def _is_over(self) -> bool:
        most = _MOST_SKETCHED if self.is_sketch else _MOST_STEPS
        return self.runs >= _FEWEST_RUNS and self.computed >= most

    def draw(
        self, ordinary: tuple[int, int], of_positions: tuple[int, int], of_trips: tuple[int, int]
    ) -> list[Array]:
        arrays, traced = [], self.traced
        for number, (type, shape) in enumerate(zip(self.types, self.sizes.shapes(), strict=True)):
            is_trips, is_whole = self.trips >> number & 1, number in traced
            low, high = of_trips if is_trips else of_positions if is_whole else ordinary
            mask = self._masks.get(number)
            if number in self.fixed:
                arrays.append(self.fixed[number])
            elif mask is not None and mask.shape == shape:
                arrays.append(mask)
            else:
                arrays.append(random_array(self.random, type, shape, low=low, high=high, is_whole=is_whole))
        return arrays

    def with_edges(self, run: "Run", random: np.random.Generator) -> list[Array]:
        """Return inputs with numbers at the edges of their types where they may stand.

        That is where data or updates of a scatter node are computed from them, and no positions, sizes or
        conditions; if there is none, where they reach them through operators that are not computed.
        """
        arrays = run.arrays
        eligible = self.written & ~self.decisive or self.reaching & ~self.decisive
        for number in range(len(arrays)):
            if not (self.written | eligible) >> number & 1 or not has_edges(self.types[number]):
                continue
            tried = list(arrays)
            tried[number] = with_edges(random, self.types[number], arrays[number])
            if eligible >> number & 1 and Run(self, tried).is_as_good_as(run):
                arrays = tried
            else:
                self.plain.append(number)
        return arrays


def _is_comparison(step: Step) -> bool:
    """Tell whether a node compares two inputs."""
    return isinstance(step.work, GeneralOp) and step.work.makes == "boolean" and len(step.inputs) > 1


def _counts_for(pairs: Pairs, counts: Sequence[tuple[int, int]], room: int) -> list[int]:
    """Return how many of `room` elements of an input to choose where sizes differ, likeliest first.

    `counts` are the numbers of elements that nodes chose, each with the size of its mask. Sizes may be a
    multiple of a count, and a mask a multiple of an input that is repeated for each channel.
    """
    found = dict[int, None]()
    for pair in pairs:
        for size, wanted in (pair, pair[::-1]):
            for count, total in counts:
                if count and size and size % count == 0 and wanted * count % size == 0:
                    number = wanted * count // size
                elif count == size == 0:
                    number = wanted
                else:
                    continue
                repeats = total // room if room and total % room == 0 else 1
                if number % max(repeats, 1) == 0:
                    found[number // max(repeats, 1)] = None
                found |= dict.fromkeys((number, 1))
    return [*found] or [1]


def _pairs_of_values(element_type: ElementType, thresholds: Collection[int]) -> list[tuple[int, int]]:
    """Return pairs of values for masks: of what is chosen, and of the rest; numbers lie around thresholds."""
    if element_type.kind == "boolean":
        return [(1, 0), (0, 1)]
    if element_type.kind not in {"signed", "unsigned", "float"}:
        return []
    found = dict[tuple[int, int], None]()
    for middle in (*thresholds, 0):
        for pair in ((middle, middle + 1), (middle + 1, middle), (middle, middle - 1), (middle - 1, middle)):
            if all(clip_to_type(element_type, number, number) == (number, number) for number in pair):
                found[pair] = None
    return [*found]


class _Unclear(EvaluationFailed):
    """Something must be known of a value that comes from an operator which is not computed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not known", Location(""))


class Run(Forward[Cell]):
    """One run of the model on certain arrays, and what its nodes ask of positions.

    Numbers are followed by their terms, and what cannot be computed gives unknown values. An index that is
    not legal is noted, and a legal one takes its place, so that one run finds out about all of them.
    `is_blind` says that some shape was not known; `too_small` are sizes that positions in the model itself
    exceed, with how large they must be; `stuck` are nodes, None for one with a body, that cannot be computed.
    """

    def __init__(self, search: Search, arrays: list[Array]) -> None:
        super().__init__({flow: plan for twin in search.twins for flow, plan in twin.model.plans.items()})
        self.search, self.arrays, self._traced = search, arrays, search.traced
        self.uses, self.too_small, self.counts = list[Use](), Pairs(), list[tuple[int, int]]()
        self.thresholds = dict[int, None]()
        self.stuck: list[tuple[NodeInRun | None, Exception]] = []
        self.is_blind, self.computed, self._depth = False, 0, 0
        self.entered, self.unsure, self.controls = set[Body](), set[Body](), dict[Body, int]()
        """Bodies that ran, those of which that is not known, and the inputs that decide whether each runs."""
        self.uses_of_models: list[list[Use]] = []
        self._bodies: dict[Dataflow, Body] = {
            flow: (number, flow.graph.scope)
            for number, twin in enumerate(search.twins)
            for flow, plan in twin.model.plans.items()
            if plan.is_body
        }
        self._by_plan = {self.plans[flow]: body for flow, body in self._bodies.items()}
        self._around = self._guesses = 0
        self._symbols = search.sizes.symbols()
        flat = [arrays[number].reshape(-1).astype(np.int64) for number in self._traced]
        self._starts = np.cumsum([0, *map(len, flat)]).tolist()
        self._terms = Terms(np.concatenate([np.empty(0, np.int64), *flat]))
        drawn = [known(array, inputs=1 << number) for number, array in enumerate(arrays)]
        for first, number in zip(self._starts, self._traced, strict=False):
            terms = first + 1 + np.arange(arrays[number].size).reshape(arrays[number].shape)
            drawn[number] = replace(drawn[number], terms=terms)
        for twin in search.twins:
            before = len(self.uses)
            self.run(twin.model.plan, [*twin.cells(drawn)])
            self.uses_of_models.append(self.uses[before:])
        self._constants.clear()
        search.runs, search.computed = search.runs + 1, search.computed + self.computed
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
            run = Run(self.search, drawn)
            if run.is_as_good_as(self):
                return run
        return self

    def solved(self, wanted: Sequence[Use], number: int) -> list[Array]:
        """Return arrays with other positions for some uses, as pass `number` draws them."""
        search, wraps = self.search, number >= _FROM_FRONT
        ends = [clip_to_type(search.types[one], -_FARTHEST, _FARTHEST) for one in self._traced]
        limits = np.repeat(np.array(ends, np.int64).reshape(-1, 2), np.diff(self._starts), axis=0)
        solver = Solver(search.random, self._terms, self.uses, limits, wraps=wraps)
        scatters_first = search.may_repeat  # what else reads the indices would settle them
        for use in sorted(wanted, key=lambda use: (not use.is_unique, scatters_first and not use.is_scatter)):
            solver.draw(use, None if wraps else search.number)
        arrays = list(self.arrays)
        for place, one in enumerate(self._traced):
            part = solver.values[self._starts[place] : self._starts[place + 1]]
            arrays[one] = part.reshape(arrays[one].shape).astype(arrays[one].dtype)
        return arrays

    def fetch(self, plan: Plan, values: dict[Key, Cell | None], key: Key) -> Cell | None:
        """Return the cell of a key; of a constant that is weights, or is not there, the shape."""
        constant = plan.constants.get(key)
        if constant is None:
            return values.get(key)
        if not self.search.is_sketch:
            return super().fetch(plan, values, key)
        try:
            if np.prod(constant.shape, dtype=np.float64) <= _WEIGHTS:
                return super().fetch(plan, values, key)
        except UnreadableModel:
            pass
        return unknown(constant.shape, constant.element_type)

    def lift(self, array: Array) -> Cell:
        return known(array)

    def array(self, cell: Cell) -> Array:
        if cell.array is None:
            raise _Unclear("the shape of a value")
        return cell.array

    def move(self, function: Callable[..., Array], *cells: Cell) -> Cell:
        """Move numbers and terms alike."""
        origins, direct = origins_of(cells), direct_of(cells)
        if any(cell.array is None for cell in cells):
            return unknown(None, None, origins, direct)
        array = function(*(cell.array for cell in cells))
        is_traced = any(cell.terms is not None for cell in cells)
        terms = function(*(cell.all_terms for cell in cells)) if is_traced else None
        return Cell(array, array.shape, terms, any(cell.is_opaque for cell in cells), origins, direct)

    def scalar(self, step: Step, cell: Cell | None, what: str) -> Any:
        if cell is not None:
            self.search.decisive |= cell.origins
            if cell.is_unclear:
                raise _Unclear(what)
        return super().scalar(step, cell, what)

    def endless(self, step: Step, iterations: int) -> EvaluationFailed:
        return _Unclear("the end of a loop") if self.search.is_sketch else super().endless(step, iterations)

    def compute(self, step: Step, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Return the outputs of a node without bodies; of one whose outputs nobody needs, none."""
        self.computed += 1
        node = NodeInRun(
            step, cells, self._symbols, self.search.constraints.get(step.node.scope, frozenset()),
            may_repeat=self.search.may_repeat,
        )  # fmt: skip
        ports = ports_of_positions(step)
        asked = [cell for port, cell in enumerate(cells) if port in ports]
        if isinstance(step.work, Lookup):
            data = [cell for port, cell in enumerate(cells) if port not in ports]
            self.search.written |= direct_of(data)
            self.search.reaching |= origins_of(data)
        self.search.positions |= direct_of(asked)
        self.search.decisive |= origins_of(asked) | (origins_of(cells) if _makes_whole(step) else 0)
        for port, use in uses_of(node):
            cell, array = node.cells[port], node.arrays[port]
            assert cell is not None
            if use.has_terms or cell.direct:
                self.uses.append(use)
            if array is not None and (not use.is_legal or cell.is_unclear):
                node.arrays[port] = use.repaired(array)
        self.too_small += node.too_small()
        self._note_choices(node)
        if not step.outputs:
            if any(node.unmet()):
                self.stuck.append((node, _Unclear("the output")))
            return []
        if step.work is None or self._is_hidden(node):
            return self._unknown(node)
        try:
            return self._with_terms(node, compute_node(step, node.arrays))
        except EvaluationFailed as error:
            self.stuck.append((node, error))
            return self._of_shapes(node)

    def _note_choices(self, node: NodeInRun) -> None:
        """Note how many elements a node chooses, which inputs decide that, and constants of comparisons."""
        for need in node.needs:
            cell = node.cell(need.port) if need.meaning is Meaning.CHOICES else None
            if cell is not None and cell.array is not None:
                self.search.choosing |= origins_of([cell])
                self.counts.append((int(np.count_nonzero(cell.array)), cell.array.size))
        for cell in node.cells if _is_comparison(node.step) else ():
            array = None if cell is None or cell.origins else cell.array
            if array is None or array.size != 1 or kind(array) not in {"signed", "unsigned", "float"}:
                continue
            number = float(native(array).reshape(-1)[0])
            if len(self.thresholds) < _THRESHOLDS and abs(number) <= _FARTHEST:
                self.thresholds[round(number)] = None

    def _is_hidden(self, node: NodeInRun) -> bool:
        """Tell whether an operator that NumPy computes cannot be, or need not be: nothing is known anyway."""
        there, work = [cell for cell in node.cells if cell is not None], node.step.work
        if any(cell.array is None for cell in there):
            return True
        if not isinstance(work, GeneralOp) or not any(cell.is_unclear for cell in there):
            return False
        if work.shape is not None and all(cell.is_opaque and cell.terms is None for cell in there):
            return True
        cells = [node.cell(need.port) for need in node.needs if need.decides_shape]
        return any(cell is not None and cell.is_unclear for cell in cells)

    def _unknown(self, node: NodeInRun) -> Sequence[Cell | None]:
        step = node.step
        try:
            shapes = output_shapes(step.node.domain, step.node.type, node.shape_case)
        except ShapesDiffer as error:
            message = f"{step.node.type} {step.node.scope}: {error}"
            self.stuck.append((node, EvaluationFailed(message, step.node.location)))
            shapes = []
        found = self._of_shapes(node, shapes or ())
        self.is_blind = self.is_blind or any(cell.array is None for cell in found)
        return found

    def _of_shapes(self, node: NodeInRun, computed: Sequence["tuple[int, ...] | None"] = ()) -> list[Cell]:
        """Return outputs of which nothing is known but shapes, and for the rest what the model says."""
        values, origins, found = node.step.node.outputs, origins_of(node.cells), []
        direct = 0 if node.step.work is None else direct_of(node.cells)
        for number in range(len(node.step.outputs)):
            shape: Shape = computed[number] if number < len(computed) else None
            if shape is None and number < len(values):
                shape = node.declared[number]
            type = values[number].element_type if number < len(values) else None
            found.append(unknown(shape, type, origins, direct))
        return found

    def _with_terms(self, node: NodeInRun, outputs: Sequence[Array]) -> list[Cell]:
        """Return computed outputs with what is known of their numbers."""
        if reads_shapes_only(node.step):
            return [known(array) for array in outputs]
        origins, direct = origins_of(node.cells), direct_of(node.cells)
        is_opaque = any(cell is not None and cell.is_opaque for cell in node.cells)
        terms: Sequence[Array | None] = [None] * len(outputs)
        if any(cell is not None and cell.terms is not None for cell in node.cells):
            terms = self._terms_of(node, outputs, is_opaque=is_opaque)
        elif is_opaque:
            return [unknown(array.shape, array.dtype, origins, direct) for array in outputs]
        return [
            Cell(array, array.shape, own, is_opaque, origins, direct)
            for array, own in zip(outputs, terms, strict=True)
        ]

    def _terms_of(
        self, node: NodeInRun, outputs: Sequence[Array], *, is_opaque: bool
    ) -> Sequence[Array | None]:
        work, cells = node.step.work, node.cells
        moved = _scattered(node.step) if isinstance(work, Lookup) else ()
        if isinstance(work, GeneralOp):
            moved = work.moved_inputs(len(cells))
            if work.copies:
                return [None if cells[0] is None else cells[0].all_terms]
        if moved:
            arrays = [
                cell.all_terms if number in moved and cell is not None else array
                for number, (cell, array) in enumerate(zip(cells, node.arrays, strict=True))
            ]
            return compute_node(node.step, arrays)
        if is_opaque or not isinstance(work, GeneralOp):
            return [None] * len(outputs)
        terms = [None if cell is None else cell.terms for cell in cells]
        pairs = list(zip(node.arrays, terms, strict=True))
        return [combine(self._terms, work.arithmetic, pairs, outputs[0]), *[None] * (len(outputs) - 1)]

    def inputs_of(self, use: Use) -> set[int]:
        """Return the numbers of the inputs of which the elements of a use are made."""
        elements, _, _ = self._terms.look_up(use.terms[use.terms != NO_TERM])
        places = np.searchsorted(self._starts, elements[elements >= 0], "right") - 1
        return {self._traced[place] for place in set(places.tolist())}

    def graph(self, plan: Plan, cells: Sequence[Cell | None]) -> list[Cell | None]:
        body = self._by_plan.get(plan)
        if body is not None:
            (self.unsure if self._guesses else self.entered).add(body)
        return super().graph(plan, cells)

    def step(self, step: Step, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Compute a node, and note of its bodies which inputs decide whether they run."""
        work, before = step.work, self._around
        if isinstance(work, Choice):
            self._around |= origins_of([cells[work.condition]])
            flows = [call.body for call in work.branches.values()]
        elif isinstance(work, Repeat):
            self._around |= origins_of([cells[n] for n in (work.trips, work.condition) if n is not None])
            flows = [work.body]
        else:
            return self._step(step, cells)
        for flow in flows:
            body = self._bodies[flow]
            self.controls[body] = self.controls.get(body, 0) | self._around
        try:
            return self._step(step, cells)
        finally:
            self._around = before

    def _step(self, step: Step, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Compute a node; where a condition or a trip count is not known what follows from none."""
        work = step.work
        if isinstance(work, Repeat):
            return self._repeat(step, work, cells)
        condition = cells[work.condition] if isinstance(work, Choice) else None
        try:
            if isinstance(work, Choice) and condition is not None and condition.is_unclear:
                self.search.decisive |= condition.origins
                self._guesses += 1
                try:
                    found = [self.call(step, call, cells) for _, call in sorted(work.branches.items())]
                finally:
                    self._guesses -= 1
                return [_merged(cells) for cells in zip(*found, strict=True)]
            return super().step(step, cells)
        except EvaluationFailed as error:
            self._note_stuck(error)
        return list(self._of_shapes(NodeInRun(step, cells, self._symbols)))

    def _note_stuck(self, error: EvaluationFailed) -> None:
        if not isinstance(error, _Unclear):
            self.stuck.append((None, error))

    def _repeat(self, step: Step, work: Repeat, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Compute a loop, or if that is not possible its body once."""
        trips = cells[work.trips] if work.trips is not None else None
        self.search.trips |= 0 if trips is None else trips.direct
        self._depth += 1
        around = self.most_iterations
        try:
            if self._depth <= len(_MOST_ITERATIONS) or not self.search.is_sketch:
                if self.search.is_sketch:
                    room = (_MOST_INSIDE - self.computed) // max(len(self.plans[work.body].steps), 1)
                    self.most_iterations = max(_MOST_ITERATIONS[self._depth - 1], room)
                return super().step(step, cells)
        except EvaluationFailed as error:
            self._note_stuck(error)
        finally:
            self._depth -= 1
            self.most_iterations = around
        plan = self.plans[work.body]
        given = [
            self._body_input(step, input, declared, None if input.outer is None else cells[input.outer])
            for input, declared in zip(work.inputs, plan.inputs, strict=True)
        ]
        self._guesses += 1
        try:
            outputs = self.graph(plan, [*given, *self.captured(step, plan, cells)])
        finally:
            self._guesses -= 1
        whole = self._of_shapes(NodeInRun(step, cells, self._symbols))
        return [  # what the body carries may be another value after more iterations
            _merged([outputs[output.inner]]) if output.slice is None else cell
            for output, cell in zip(work.outputs, whole, strict=False)
        ]

    def _body_input(
        self, step: Step, input: BodyInput, declared: GraphInput, cell: Cell | None
    ) -> Cell | None:
        """Return what the body gets first, as far as that can be told."""
        try:
            if cell is not None or input.slice is None:
                return self.body_input(step, input, declared, cell, 0)
        except (EvaluationFailed, LookupError):
            pass
        return unknown(declared.shape, declared.element_type, origins_of([cell]))


def ports_of_positions(step: Step) -> set[int | None]:
    """Return the numbers of the inputs of a node that hold positions or sizes."""
    if isinstance(step.work, Lookup):
        assert step.work.spec is not None
        return {step.work.spec.port_index(role) for role in (Role.INDICES, Role.AXIS)}
    return {need.port for need in constraints_of(step.node.domain, step.node.type)}


def reads_shapes_only(step: Step) -> bool:
    return isinstance(step.work, GeneralOp) and step.work.reads_shapes_only


def _merged(cells: Sequence[Cell | None]) -> Cell | None:
    """Return what several cells have in common: a shape and a type."""
    arrays = [cell.array for cell in cells if cell is not None and cell.array is not None]
    kinds = {(array.shape, array.dtype) for array in arrays}
    is_one = len(arrays) == len(cells) and len(kinds) == 1
    shape, type = kinds.pop() if is_one else (None, None)
    return unknown(shape, type, origins_of(cells), direct_of(cells))


def _scattered(step: Step) -> tuple[int | None, ...]:
    """Return the inputs whose elements a scatter node puts into its output: none with a reduction."""
    scatter = scatter_node_of(step)
    ports = scatter.spec.port_index(Role.DATA), scatter.spec.port_index(Role.UPDATES)
    return ports if scatter.reduction is Reduction.NONE else ()


def _makes_whole(step: Step) -> bool:
    """Tell whether a node makes whole numbers of others, which is not defined for all of them."""
    if not isinstance(step.work, GeneralOp) or not step.work.copies:
        return False
    value = step.node.inputs[0].value if step.node.inputs else None
    before = None if value is None else value.element_type
    after = step.node.outputs[0].element_type if step.node.outputs else None
    if after is None or after.kind not in {"signed", "unsigned"}:
        return False
    return before is None or before.kind != after.kind or before.bits > after.bits
