"""Searches sizes for the inputs of a model, and values for each choice of sizes, until all constraints hold.

The model is run on random inputs. Each element of an index is traced back to the input element that it is
computed from. The solver then chooses new input values:

    sizes     data [5], start [2]     all different, see `sizes`
    run       start = [9, 4], indices = start - 1 = [8, 3], and 8 is out of range
    solve     start[0] must be in 1 to 5, as the index is start[0] * 1 - 1, see `solver`
    run       start = [2, 4]: legal

A *use* is an input of a node that holds positions or sizes. A *sketch* is a model that may contain operators
that NumPy does not compute. A *body* is a branch, a loop body or a function.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from operator import or_
from typing import Any, TypeAlias

import numpy as np

from ir_scatter.analysis.interpreter import Forward, LoopProgress, Plan, Shortcut, Step, load
from ir_scatter.core.arrays import Array, kind, native
from ir_scatter.core.dataflow import BodyInput, Choice, Dataflow, GraphInput, Key, Repeat
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.errors import EvaluationFailed, NoInputs, UnreadableModel
from ir_scatter.core.shapes import Shape
from ir_scatter.core.value_ranges import ValueRange
from ir_scatter.evaluate.model import (
    Program,
    Sketch,
    advance_arrays,
    bind_node,
    compute_node,
    scatter_node_of,
)
from ir_scatter.inputs.constraints import Conditions, InputUse, NodeInRun, Pairs, uses_of
from ir_scatter.inputs.numbers import (
    LARGEST,
    clip_to_type,
    dtype_of,
    has_edges,
    random_array,
    random_array_within,
    whole_ends,
    with_edges,
)
from ir_scatter.inputs.provenance import (
    NO_TERM,
    Terms,
    TracedCell,
    combine,
    direct_of,
    known_cell,
    origins_of,
    unknown_cell,
)
from ir_scatter.inputs.roles import Roles, draw_mask
from ir_scatter.inputs.sizes import Sizes
from ir_scatter.inputs.solver import Solver
from ir_scatter.ops.constraints import Meaning
from ir_scatter.ops.general import GeneralOp, constraints_of
from ir_scatter.ops.general_kernels import BoundKernel
from ir_scatter.ops.general_kernels.bound import Unbound
from ir_scatter.ops.general_shapes import ShapesDiffer
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Reduction, Role

_MOST_SIZE_CHANGES = 32
"""Maximum size changes after one initial choice of sizes."""
_MOST_PASSES = 12
"""Maximum attempts to solve values for the same sizes."""
_SOFT_PASSES = 3
"""Attempts after which violations of non-strict constraints (useless, but legal numbers) are accepted."""
_NON_NEGATIVE_PASSES = 6
"""Attempts in which indices are non-negative, except those that are chosen to test negative indices."""

_FEWEST_RUNS = 8
_MOST_STEPS, _MOST_SKETCHED = 1_000_000, 50_000
"""Maximum nodes computed in one search, for a fully supported model and for a partly supported one (sketch).

At least `_FEWEST_RUNS` runs are made in any case.
"""

_STUCK_STARTS = 2
"""Number of `_START_RANGES` that are tried if nodes cannot be computed."""

_LARGEST_VALUE = 2**31 - 1

_MOST_ITERATIONS = (256, 16, 4)
"""Maximum iterations of loops at depth 0, 1 and 2 (loops in loops). Deeper and longer loops are followed
through their body once. Loops with few nodes may run longer."""

_MOST_BODY_NODES = 20_000
"""Maximum nodes of bodies computed in one run before `_MOST_ITERATIONS` also applies to loops with few
nodes."""

_LARGEST_READ = 1 << 16
"""Maximum elements of a constant that a sketch reads; larger constants are not positions."""

_MOST_MASKS = 48
"""Maximum masks tried to reach a size that is a count of chosen elements, like the output of NonZero."""

_MOST_THRESHOLDS = 4
"""Maximum constants of comparisons from which mask values are derived."""

_CHECKING_KERNELS = frozenset(
    {
        "select.gather",
        "select.gather_elements",
        "select.gather_nd",
        "arithmetic.divide",
        "arithmetic.modulo",
        "arithmetic.binary",
    }
)
"""Kernels that raise an error for every number that violates a constraint of their operator."""

_START_RANGES = (
    ((-LARGEST, LARGEST), (0, 7), (1, 3)),
    ((1, LARGEST), (0, 3), (1, 1)),
    ((1, LARGEST), (1, 2), (0, 1)),
    ((0, 3), (0, 1), (1, 2)),
    ((1, LARGEST), (1, 1), (1, 1)),
    ((0, LARGEST), (0, 0), (0, 0)),
)
"""Initial value ranges to try: (ordinary numbers, inputs that positions are computed from, trip counts)."""


Body: TypeAlias = tuple[int, str]
"""A branch, loop body or function: (number of its model: 0 or 1, scope)."""


def inputs_of(model: Sketch) -> list[GraphInput]:
    """Return the inputs of a model without a default value."""
    return [input for input in model.inputs if input.default is None]


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """One of several models that are fed from the same drawn inputs.

    Attributes:
        sources: for each input of the model the number of a drawn input, a fixed array, or None for the
            default value of the input.
        types: element types of the drawn inputs that all models accept.
    """

    model: Sketch
    sources: tuple["int | Array | None", ...]
    types: tuple[ElementType | None, ...]

    def cells(self, drawn: Sequence[TracedCell]) -> Iterator[TracedCell]:
        """Yield the input tensors of the model, converted to its element types."""
        for input, source in zip(self.model.inputs, self.sources, strict=True):
            if isinstance(source, int):
                array, type = drawn[source].array, input.element_type
                assert array is not None
                numpy_type = None if type is None else dtype(type)
                yield replace(drawn[source], array=array.astype(numpy_type or array.dtype, copy=False))
            elif source is not None:
                yield known_cell(source)
            else:
                assert input.default is not None
                yield known_cell(load(input.default))

    def inputs_of_positions(self) -> int:
        """Return a bit mask of the inputs that positions are computed from, outside of bodies."""
        bits, position_inputs = dict[Key | None, int](), 0
        for input, source in zip(self.model.inputs, self.sources, strict=True):
            bits[input.key] = 1 << source if isinstance(source, int) else 0
        for step in self.model.plan.steps:
            ports, direct = ports_of_positions(step), 0
            for port, key in enumerate(step.inputs):
                direct |= bits.get(key, 0)
                position_inputs |= bits.get(key, 0) if port in ports else 0
            if direct and is_exact(step) and not reads_shapes_only(step):
                bits.update(dict.fromkeys(step.outputs, direct))
        return position_inputs


class Search:
    """Searches sizes for the model inputs, and for each choice of sizes, legal values.

    Attributes (bit masks of inputs, to which runs add):
        positions: inputs that positions and sizes are computed from.
        trips: inputs that trip counts are computed from.
        decisive: inputs that positions, sizes or conditions depend on, or that are converted to integers.
        written: inputs that data or updates of a scatter node are computed from.
        reaching: inputs that data or updates of a scatter node depend on, even through unsupported operators.
        choosing: inputs that decide how many elements a node selects, such as NonZero.
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
        ranges: Mapping[int, ValueRange] | None = None,
        roles: Roles | None = None,
    ) -> None:
        """Set up a search.

        Args:
            model: the model.
            sizes: sizes of its inputs.
            random: random numbers.
            constraints: further conditions on indices, by scope of the scatter node.
            number: number of the draw; three consecutive ones test all kinds of indices, see `IndexFeature`.
            fixed: arrays of inputs that must not change, by input number.
            twin: a second model for which the inputs must be legal, too.
            may_repeat: whether indices may repeat even without a reduction.
            ranges: (lowest, highest) number of inputs, by input number.
            roles: the guessed content of inputs.
        """
        self.model, self.sizes, self.random = model, sizes, random
        self.inputs = inputs_of(model)
        self.constraints, self.number, self.fixed = constraints, number, fixed or {}
        self.may_repeat, self.ranges, self.roles = may_repeat, ranges or {}, roles or Roles()
        self.is_sketch = not isinstance(model, Program) or model.unknown is not None
        numbers = {input.key: number for number, input in enumerate(self.inputs)}
        sources = [numbers.get(input.key) for input in model.inputs]
        own_twin = Twin(model, tuple(sources), tuple([input.element_type for input in self.inputs]))
        self.twins = [own_twin] if twin is None else [own_twin, twin]
        self.types = list[ElementType]()
        for input, type in zip(self.inputs, self.twins[-1].types, strict=True):
            if input.kind != "tensor":
                raise NoInputs(f"input {input.names[0]} is of type {input.kind}, expected a tensor")
            if type is None:
                raise NoInputs(f"the element type of {input.names[0]} is not known")
            self.types.append(type)
        self.positions = reduce(or_, (model_twin.inputs_of_positions() for model_twin in self.twins))
        self.trips = self.decisive = self.written = self.reaching = 0
        self._reason = ""
        self.runs = self.computed = self._size_changes = 0
        self.choosing = self._masks_tried = 0
        self._masks: dict[int, Array] = {}
        self.idle_steps = frozenset[Step]()
        """Steps whose numbers are not needed; a program is run completely."""
        if self.is_sketch:
            self.idle_steps = frozenset().union(*(idle_steps(each.model.plan) for each in self.twins))
        self.plain: list[int] = []
        """Inputs that data or updates are computed from, but that could not get edge values."""

    @property
    def traced(self) -> list[int]:
        """The numbers of the inputs whose elements are traced: positions are computed from them."""
        kinds, positions = {"signed", "unsigned", "float"}, self.positions
        numbers = enumerate(self.types)
        fixed = self.fixed.keys() | self._masks.keys()
        return [
            number
            for number, type in numbers
            if positions >> number & 1
            and type.kind in kinds
            and number not in fixed
            and self._has_whole_numbers(number)
        ]

    def _has_whole_numbers(self, number: int) -> bool:
        low, high = self.limits(number)
        return low <= high

    def limits(self, number: int) -> tuple[int, int]:
        """Return the lowest and the highest integer that an input may hold."""
        ends = -_LARGEST_VALUE, _LARGEST_VALUE
        if number not in self.ranges:
            return clip_to_type(self.types[number], *ends)
        low, high = whole_ends(self.types[number], self.ranges[number])
        return max(low, ends[0]), min(high, ends[1])

    def run(self) -> "Run":
        """Return the first legal run without failing nodes, or else the best legal run.

        Raises:
            NoInputs: no run is legal.
        """
        best: Run | None = None
        for number, _ in enumerate(self.sizes.attempts(has_unknown_shapes=self.is_sketch)):
            if number and self.sizes.are_too_large:
                continue
            self._size_changes = 0
            run = self._search_values()
            if run is not None and not run.stuck and (number or not run.has_unknown_shapes):
                return run
            if best is None or (run is not None and run.badness < best.badness):
                best = run
            if self._is_over or (number and best is not None and not best.stuck):
                break
        if best is None:
            raise NoInputs(f"{self.model.path}: no legal inputs were found: {self._reason}")
        return best

    def _search_values(self) -> "Run | None":
        """Return the best legal run, None if no run is legal.

        Sizes that make nodes fail are changed first.
        """
        best: Run | None = None
        for start, ranges in enumerate(_START_RANGES):
            run, number = self._run_traced(ranges), 0
            while number < _MOST_PASSES:
                if run.stuck:
                    self._reason = str(run.stuck[0][1])
                if run.bad:
                    self._reason = f"{run.bad[0].name}: {run.bad[0].describe()}"
                if run.is_legal and (best is None or (run.badness, number != 1) < (best.badness, True)):
                    best = run  # prefer solved values to initial ones
                is_good = run.is_legal and not any(run.badness)
                if number and is_good and (number >= _SOFT_PASSES or not run.illegal):
                    return run
                if self._size_changes < _MOST_SIZE_CHANGES and self._change_sizes(run):
                    self._size_changes += 1
                    if self.sizes.are_too_large or self._is_over:
                        return best
                    run, number = self._run_traced(ranges), 0
                    continue
                if run.stuck and self._choose_masks(run):
                    if self._is_over:
                        return best
                    run, number = self._run_traced(ranges), 0
                    continue
                is_all = not number or (number % 2 == 0 and not run.bad)
                uses = run.uses if is_all else run.illegal or run.violated
                is_hopeless = run.is_full or (run.stuck and self.is_sketch)
                if number and is_hopeless and not run.illegal:
                    break
                if self._is_over or not any(use.has_terms for use in uses):
                    break
                run, number = Run(self, run.solve(uses, number)), number + 1
            if best is not None and (not best.stuck or start + 1 == _STUCK_STARTS):
                return best
            too_small = [size for use in run.bad if use.is_scatter for size in use.beyond()]
            if (
                best is None
                and self.sizes.grow(too_small)
                and not (self.sizes.are_too_large or self._is_over)
            ):
                return self._search_values()
        return best

    def _run_traced(self, ranges: Sequence[tuple[int, int]]) -> "Run":
        """Run the model repeatedly, until all inputs are known that determine positions or trip counts.

        An input that a run adds is drawn again, from small numbers.
        """
        arrays = self.draw(*ranges)
        while True:
            before = self.positions | self.trips
            run = Run(self, arrays)
            newly_traced = (self.positions | self.trips) & ~before
            if not newly_traced:
                return run
            drawn = enumerate(zip(arrays, self.draw(*ranges), strict=True))
            arrays = [redrawn if newly_traced >> number & 1 else array for number, (array, redrawn) in drawn]

    def _change_sizes(self, run: "Run") -> bool:
        """Change sizes that make nodes fail; return whether some size has changed."""
        nodes = [node for node, _ in run.stuck if node is not None]
        if self.sizes.grow(run.too_small) or self.sizes.fix_nodes(nodes):
            return True
        if any(self.sizes.make_room(use) for use in run.bad if not use.room):
            return True
        return not (run.stuck or run.bad) and sum(map(self.sizes.make_room, run.violated)) > 0

    def _choose_masks(self, run: "Run") -> bool:
        """Choose the next mask for nodes such as NonZero; return False if all masks were tried.

        The output size of such a node is the number of selected elements. Each input that decides about the
        selection gets two values: one at as many positions as the output size requires, another elsewhere.
        The mask may be computed from the input in any way, so pairs of values are tried in turn.
        """
        numbers = [number for number in range(len(self.types)) if self.choosing >> number & 1]
        numbers = [number for number in numbers if number not in self.fixed and number not in self.ranges]
        pairs = [pair for node, _ in run.stuck if node is not None for pair in node.size_conflicts()[0]]
        if not (numbers and pairs and run.counts) or self._masks_tried == _MOST_MASKS:
            return False
        attempt, self._masks_tried = self._masks_tried, self._masks_tried + 1
        shapes = self.sizes.shapes()
        for number in numbers:
            values = _pairs_of_values(self.types[number], run.thresholds)
            if not values:
                continue
            chosen, unchosen = values[attempt % len(values)]
            room = prod(shapes[number])
            counts = _numbers_to_select(pairs, run.counts, room)
            count = counts[attempt // len(values) % len(counts)]
            if 0 < room < count and self._widen(shapes[number], count):
                return True
            mask = np.full(room, unchosen, dtype_of(self.types[number]))
            random = np.random.default_rng([self.number, attempt, number])
            mask[random.permutation(mask.size)[:count]] = chosen
            self._masks[number] = mask.reshape(shapes[number])
        return True

    def _widen(self, shape: Sequence[int], count: int) -> bool:
        """Enlarge an input that has fewer than `count` elements; return whether that was possible."""
        room = prod(shape)
        for size in reversed(shape):
            needed = -(-count * size // room) + 1  # + 1 leaves elements that are not chosen
            if self.sizes.grow([(size, needed)]):
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
            elif number in self.ranges:
                ends = self.ranges[number]
                arrays.append(random_array_within(self.random, type, shape, ends, is_whole=is_whole))
            elif number in self.roles.masks and len(shape) and not is_trips:
                arrays.append(draw_mask(self.random, shape, dtype_of(type)))
            elif number in self.roles.ranges and not is_trips:
                ends = self.roles.ranges[number]
                arrays.append(random_array_within(self.random, type, shape, ends, is_whole=is_whole))
            else:
                arrays.append(random_array(self.random, type, shape, low=low, high=high, is_whole=is_whole))
        return arrays

    def with_edges(self, run: "Run", random: np.random.Generator) -> list[Array]:
        """Return the inputs of a run, with edge values where the run stays as legal as before.

        Edge values go to inputs that data or updates of a scatter node are computed from, but no positions,
        sizes or conditions. If there is none, they go to inputs on which data or updates depend through
        unsupported operators.
        """
        arrays = run.arrays
        eligible = self.written & ~self.decisive or self.reaching & ~self.decisive
        for number in range(len(arrays)):
            is_plain = number in self.ranges or not has_edges(self.types[number])
            if not (self.written | eligible) >> number & 1 or is_plain:
                continue
            changed = list(arrays)
            changed[number] = with_edges(random, self.types[number], arrays[number])
            if eligible >> number & 1 and Run(self, changed).is_as_good_as(run):
                arrays = changed
            else:
                self.plain.append(number)
        return arrays


def _is_comparison(step: Step) -> bool:
    """Return whether a node compares two inputs."""
    return isinstance(step.work, GeneralOp) and step.work.makes == "boolean" and len(step.inputs) > 1


def _numbers_to_select(pairs: Pairs, counts: Sequence[tuple[int, int]], room: int) -> list[int]:
    """Return how many elements of a mask to select so that sizes agree, the likeliest first.

    `pairs` are the sizes that must be equal, `counts` are (selected, all) elements of each mask in the last
    run, and `room` is the number of elements of the input. A size may be a multiple of the number of selected
    elements; a mask may repeat the input, for example once per channel.

    Example: sizes 6 and 4 must be equal, and 3 elements were selected: select 2, as 6 = 2 * 3 and 4 = 2 * 2.
    """
    numbers = dict[int, None]()
    for pair in pairs:
        for size, needed in (pair, pair[::-1]):
            for count, total in counts:
                if count and size and size % count == 0 and needed * count % size == 0:
                    number = needed * count // size
                elif count == size == 0:
                    number = needed
                else:
                    continue
                repeats = total // room if room and total % room == 0 else 1
                if number % max(repeats, 1) == 0:
                    numbers[number // max(repeats, 1)] = None
                numbers |= dict.fromkeys((number, 1))
    return [*numbers] or [1]


def _pairs_of_values(element_type: ElementType, thresholds: Collection[int]) -> list[tuple[int, int]]:
    """Return pairs (selected value, other value) for a mask: numbers on both sides of each threshold."""
    if element_type.kind == "boolean":
        return [(1, 0), (0, 1)]
    if element_type.kind not in {"signed", "unsigned", "float"}:
        return []
    pairs = dict[tuple[int, int], None]()
    for middle in (*thresholds, 0):
        for pair in ((middle, middle + 1), (middle + 1, middle), (middle, middle - 1), (middle - 1, middle)):
            if all(clip_to_type(element_type, number, number) == (number, number) for number in pair):
                pairs[pair] = None
    return [*pairs]


class _UnknownValue(EvaluationFailed):
    """Raised if a needed value comes from an operator that NumPy does not compute."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"{subject} is not known", Location(""))


class Run(Forward[TracedCell]):
    """One traced run of the model on given input arrays; records where nodes use numbers as positions.

    Numbers carry terms, see `provenance`; numbers that cannot be computed are unknown. An illegal index is
    recorded and replaced by a legal one, so that one run finds all of them.

    Attributes:
        uses: all uses of positions; `illegal`, `bad` (illegal and strict) and `violated` are subsets.
        too_small: (size, needed size) of dimensions that are too small for constant positions.
        counts: (number of selected elements, size of the mask) of nodes such as NonZero.
        thresholds: constants of comparisons.
        stuck: (node, error) of nodes that cannot be computed; the node is None if it has a body.
        has_unknown_shapes: whether some shape was unknown.
    """

    def __init__(self, search: Search, arrays: list[Array]) -> None:
        super().__init__({flow: plan for twin in search.twins for flow, plan in twin.model.plans.items()})
        self.search, self.arrays, self._traced = search, arrays, search.traced
        self.uses, self.too_small, self.counts = list[InputUse](), Pairs(), list[tuple[int, int]]()
        self.thresholds = dict[int, None]()
        self.stuck: list[tuple[NodeInRun | None, Exception]] = []
        self.has_unknown_shapes, self.computed, self._depth = False, 0, 0
        self.entered, self.unsure, self.controls = set[Body](), set[Body](), dict[Body, int]()
        """Bodies that ran, bodies that may have run, and for each body a bit mask of the inputs that
        decide whether it runs."""
        self.uses_of_models: list[list[InputUse]] = []
        self._bodies: dict[Dataflow, Body] = {
            flow: (number, flow.graph.scope)
            for number, twin in enumerate(search.twins)
            for flow, plan in twin.model.plans.items()
            if plan.is_body
        }
        self._by_plan = {self.plans[flow]: body for flow, body in self._bodies.items()}
        self._idle = search.idle_steps
        self._around = self._guesses = 0
        self._symbols = search.sizes.symbols()
        flat = [arrays[number].reshape(-1).astype(np.int64) for number in self._traced]
        self._starts = np.cumsum([0, *map(len, flat)]).tolist()
        self._terms = Terms(np.concatenate([np.empty(0, np.int64), *flat]))
        drawn = [known_cell(array, inputs=1 << number) for number, array in enumerate(arrays)]
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
        self.violated = [use for use in self.uses if use.is_violated]

    @property
    def is_legal(self) -> bool:
        """Whether the inputs are legal; nodes that cannot be computed are accepted in a sketch only."""
        return not self.bad and (self.search.is_sketch or not self.stuck)

    @property
    def badness(self) -> tuple[int, bool]:
        """Sort key of legal runs, best first: (number of failing nodes and sizes, whether targets repeat)."""
        return len(self.stuck) + len(self.too_small), bool(self.violated)

    @property
    def is_full(self) -> bool:
        """Whether the only problem is that indices must repeat, as there are more of them than positions."""
        is_crowded = [use.is_crowded for use in self.violated]
        return bool(is_crowded) and all(is_crowded) and not (self.stuck or self.illegal or self.too_small)

    def is_as_good_as(self, other: "Run") -> bool:
        """Return whether this run has at most as many problems of each kind as another run."""
        names = ("stuck", "bad", "illegal", "violated", "too_small")
        is_no_worse = all(len(getattr(self, name)) <= len(getattr(other, name)) for name in names)
        return is_no_worse and self.has_unknown_shapes <= other.has_unknown_shapes

    def redraw(self, number: int) -> "Run":
        """Return a run of the same sizes with new values, or this run if every try has more problems.

        `number` is the number of the draw.
        """
        self.search.number, uses = number, [use for use in self.uses if use.has_terms]
        for tried in range(_MOST_PASSES):
            drawn, solved = self.search.draw(*_START_RANGES[0]), self.solve(uses, tried)
            for place in self._traced:
                drawn[place] = solved[place]
            run = Run(self.search, drawn)
            if run.is_as_good_as(self):
                return run
        return self

    def solve(self, uses: Sequence[InputUse], number: int) -> list[Array]:
        """Return input arrays that give some uses new positions; `number` counts the attempts."""
        search, wraps = self.search, number >= _NON_NEGATIVE_PASSES
        ends = [search.limits(input) for input in self._traced]
        limits = np.repeat(np.array(ends, np.int64).reshape(-1, 2), np.diff(self._starts), axis=0)
        solver = Solver(search.random, self._terms, self.uses, limits, wraps=wraps)
        scatters_first = search.may_repeat  # other uses of the same elements would fix them
        for use in sorted(uses, key=lambda use: (not use.is_unique, scatters_first and not use.is_scatter)):
            solver.draw(use, None if wraps else search.number)
        arrays = list(self.arrays)
        for position, input in enumerate(self._traced):
            part = solver.values[self._starts[position] : self._starts[position + 1]]
            arrays[input] = part.reshape(arrays[input].shape).astype(arrays[input].dtype)
        return arrays

    def fetch(self, plan: Plan, values: dict[Key, TracedCell | None], key: Key) -> TracedCell | None:
        """Return the tensor of a key; in a sketch, large or unreadable constants are unknown tensors."""
        constant = plan.constants.get(key)
        if constant is None:
            return values.get(key)
        if not self.search.is_sketch:
            return super().fetch(plan, values, key)
        try:
            if np.prod(constant.shape, dtype=np.float64) <= _LARGEST_READ:
                return super().fetch(plan, values, key)
        except UnreadableModel:
            pass
        return unknown_cell(constant.shape, constant.element_type)

    def lift(self, array: Array) -> TracedCell:
        return known_cell(array)

    def array(self, cell: TracedCell) -> Array:
        if cell.array is None:
            raise _UnknownValue("the shape of a value")
        return cell.array

    def move(self, function: Callable[..., Array], *cells: TracedCell) -> TracedCell:
        """Apply a function that moves elements, such as a transpose, to the numbers and to their terms."""
        origins, direct = origins_of(cells), direct_of(cells)
        if any(cell.array is None for cell in cells):
            return unknown_cell(None, None, origins, direct)
        array = function(*(cell.array for cell in cells))
        is_traced = any(cell.terms is not None for cell in cells)
        terms = function(*(cell.all_terms for cell in cells)) if is_traced else None
        return TracedCell(array, array.shape, terms, any(cell.is_opaque for cell in cells), origins, direct)

    def scalar(self, step: Step, cell: TracedCell | None, what: str) -> Any:
        if cell is not None:
            self.search.decisive |= cell.origins
            if cell.is_unclear:
                raise _UnknownValue(what)
        return super().scalar(step, cell, what)

    def endless(self, step: Step, iterations: int) -> EvaluationFailed:
        return (
            _UnknownValue("the end of a loop") if self.search.is_sketch else super().endless(step, iterations)
        )

    def advance(
        self,
        step: Step,
        work: Repeat,
        carried: Sequence[TracedCell | None],
        captured: Sequence[TracedCell | None],
        outputs: Sequence[TracedCell | None],
        fast: Shortcut,
        done: int,
        limit: int | None,
    ) -> LoopProgress[TracedCell] | None:
        """Compute the remaining loop iterations on arrays without terms, which is faster.

        Return None while iterations must be traced: until a traced iteration has recorded nothing new.
        """
        state = self._recorded_state(carried)
        if fast.seen != state:
            fast.seen = state
            return None
        templates = [cell for cell in outputs if cell is None or _array_without_terms(cell) is not None]
        if len(templates) < len(outputs):
            return None
        bind = self._bind_node
        progress = advance_arrays(
            self, work, carried, captured, fast, done, limit, _array_without_terms, bind
        )
        if progress is None:
            return None
        self.computed += (progress.done - done) * len(self.plans[work.body].steps)

        def cell_of(array: Array | None, template: TracedCell | None) -> TracedCell | None:
            if array is None or template is None:
                return None
            return TracedCell(array, array.shape, origins=template.origins, direct=template.direct)

        results = [cell_of(array, cell) for array, cell in zip(progress.outputs, templates, strict=True)]
        parts = list[list[TracedCell]]()
        for output, arrays in zip(work.outputs, progress.parts, strict=True):
            cells = (cell_of(array, templates[output.inner]) for array in arrays)
            parts.append([cell for cell in cells if cell is not None])
        return LoopProgress(progress.done, results, parts, progress.goes_on)

    def _recorded_state(self, carried: Sequence[TracedCell | None]) -> tuple[object, ...]:
        """Return a key that changes whenever a loop iteration records something new."""
        search = self.search
        lists: tuple[Sized, ...] = (self.uses, self.stuck, self.too_small, self.counts, self.thresholds)
        masks = (search.positions, search.trips, search.decisive, search.written, search.reaching)
        origins = [None if cell is None else (cell.origins, cell.direct) for cell in carried]
        return (*map(len, lists), *masks, search.choosing, self.has_unknown_shapes, *origins)

    def _bind_node(self, step: Step, arrays: Sequence[Array | None], fixed: Sequence[bool]) -> BoundKernel:
        """Return a fast kernel for a node of a loop body.

        Raises:
            Unbound: the iterations must be traced, as positions vary or a comparison may add a threshold.
        """
        work = step.work
        ports = [port for port in ports_of_positions(step) if port is not None and port < len(fixed)]
        if isinstance(work, GeneralOp):
            name = work.kernel_in(step.node.domain).partition("(")[0]
            varies = name not in _CHECKING_KERNELS and not all(fixed[port] for port in ports)
            learns = _is_comparison(step) and not all(fixed) and len(self.thresholds) < _MOST_THRESHOLDS
            if varies or learns:
                raise Unbound
        elif step.node.scope in self.search.constraints:
            raise Unbound
        return bind_node(step, arrays, fixed, refuses_repeats=True)

    def compute(self, step: Step, cells: list[TracedCell | None]) -> Sequence[TracedCell | None]:
        """Compute and trace the outputs of a node without bodies; [] if no output is used."""
        self.computed += 1
        node = NodeInRun(
            step, cells, self._symbols, self.search.constraints.get(step.node.scope, frozenset()),
            may_repeat=self.search.may_repeat,
        )  # fmt: skip
        ports = ports_of_positions(step)
        position_cells = [cell for port, cell in enumerate(cells) if port in ports]
        if isinstance(step.work, Lookup):
            data = [cell for port, cell in enumerate(cells) if port not in ports]
            self.search.written |= direct_of(data)
            self.search.reaching |= origins_of(data)
        self.search.positions |= direct_of(position_cells)
        self.search.decisive |= origins_of(position_cells) | (
            origins_of(cells) if _makes_integers(step) else 0
        )
        for port, use in uses_of(node):
            cell, array = node.cells[port], node.arrays[port]
            assert cell is not None
            if use.has_terms or cell.direct:
                self.uses.append(use)
            if array is not None and (not use.is_legal or cell.is_unclear):
                node.arrays[port] = use.repair(array)
        self.too_small += node.too_small()
        self._record_selections(node)
        if not step.outputs:
            if any(node.size_conflicts()):
                self.stuck.append((node, _UnknownValue("the output")))
            return []
        if step.work is None or self._can_skip(node):
            return self._unknown_outputs(node)
        if step in self._idle:
            with suppress(ShapesDiffer):  # its kernel words the error
                shapes = node.output_shapes() or []
                if len(shapes) >= len(step.outputs) and None not in shapes:
                    return self._unknown_outputs_of(node, shapes)
        try:
            return self._with_terms(node, compute_node(step, node.arrays))
        except EvaluationFailed as error:
            self.stuck.append((node, error))
            return self._unknown_outputs_of(node)

    def _record_selections(self, node: NodeInRun) -> None:
        """Record how many elements a node selects, which inputs decide that, and constants of comparisons."""
        for constraint in node.constraints:
            cell = node.cell(constraint.port) if constraint.meaning is Meaning.CHOICES else None
            if cell is not None and cell.array is not None:
                self.search.choosing |= origins_of([cell])
                self.counts.append((int(np.count_nonzero(cell.array)), cell.array.size))
        for cell in node.cells if _is_comparison(node.step) else ():
            array = None if cell is None or cell.origins else cell.array
            if array is None or array.size != 1 or kind(array) not in {"signed", "unsigned", "float"}:
                continue
            number = float(native(array).reshape(-1)[0])
            if len(self.thresholds) < _MOST_THRESHOLDS and abs(number) <= _LARGEST_VALUE:
                self.thresholds[round(number)] = None

    def _can_skip(self, node: NodeInRun) -> bool:
        """Return whether to skip a node: its shapes are unknown, or its result would be unknown anyway."""
        inputs, work = [cell for cell in node.cells if cell is not None], node.step.work
        if any(cell.array is None for cell in inputs):
            return True
        if not isinstance(work, GeneralOp) or not any(cell.is_unclear for cell in inputs):
            return False
        if work.shape is not None and all(cell.is_opaque and cell.terms is None for cell in inputs):
            return True
        cells = [node.cell(constraint.port) for constraint in node.constraints if constraint.decides_shape]
        return any(cell is not None and cell.is_unclear for cell in cells)

    def _unknown_outputs(self, node: NodeInRun) -> Sequence[TracedCell | None]:
        step = node.step
        try:
            shapes = node.output_shapes()
        except ShapesDiffer as error:
            message = f"{step.node.type} {step.node.scope}: {error}"
            self.stuck.append((node, EvaluationFailed(message, step.node.location)))
            shapes = []
        outputs = self._unknown_outputs_of(node, shapes or ())
        self.has_unknown_shapes = self.has_unknown_shapes or any(cell.array is None for cell in outputs)
        return outputs

    def _unknown_outputs_of(
        self, node: NodeInRun, computed: Sequence["tuple[int, ...] | None"] = ()
    ) -> list[TracedCell]:
        """Return outputs of unknown numbers, with the computed shapes, or else the declared ones."""
        values, origins, outputs = node.step.node.outputs, origins_of(node.cells), []
        direct = direct_of(node.cells) if is_exact(node.step) else 0
        for number in range(len(node.step.outputs)):
            shape: Shape = computed[number] if number < len(computed) else None
            if shape is None and number < len(values):
                shape = node.declared[number]
            type = values[number].element_type if number < len(values) else None
            outputs.append(unknown_cell(shape, type, origins, direct))
        return outputs

    def _with_terms(self, node: NodeInRun, outputs: Sequence[Array]) -> list[TracedCell]:
        """Return computed outputs as tensors with term numbers."""
        if reads_shapes_only(node.step):
            return [known_cell(array) for array in outputs]
        origins, direct = origins_of(node.cells), direct_of(node.cells) if is_exact(node.step) else 0
        is_opaque = any(cell is not None and cell.is_opaque for cell in node.cells)
        terms: Sequence[Array | None] = [None] * len(outputs)
        if any(cell is not None and cell.terms is not None for cell in node.cells):
            terms = self._terms_of(node, outputs, is_opaque=is_opaque)
        elif is_opaque:
            return [unknown_cell(array.shape, array.dtype, origins, direct) for array in outputs]
        return [
            TracedCell(array, array.shape, output_terms, is_opaque, origins, direct)
            for array, output_terms in zip(outputs, terms, strict=True)
        ]

    def _terms_of(
        self, node: NodeInRun, outputs: Sequence[Array], *, is_opaque: bool
    ) -> Sequence[Array | None]:
        work, cells = node.step.work, node.cells
        moved = _moved_by_scatter(node.step) if isinstance(work, Lookup) else ()
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

    def inputs_of(self, use: InputUse) -> set[int]:
        """Return the numbers of the inputs that the positions of a use are computed from."""
        elements, _, _ = self._terms.look_up(use.terms[use.terms != NO_TERM])
        positions = np.searchsorted(self._starts, elements[elements >= 0], "right") - 1
        return {self._traced[position] for position in set(positions.tolist())}

    def graph(self, plan: Plan, cells: Sequence[TracedCell | None]) -> list[TracedCell | None]:
        body = self._by_plan.get(plan)
        if body is not None:
            (self.unsure if self._guesses else self.entered).add(body)
        return super().graph(plan, cells)

    def step(self, step: Step, cells: list[TracedCell | None]) -> Sequence[TracedCell | None]:
        """Compute a node; for a node with bodies, record which inputs decide whether each body runs."""
        work, before = step.work, self._around
        if isinstance(work, Choice):
            self._around |= origins_of([cells[work.condition]])
            flows = [call.body for call in work.branches.values()]
        elif isinstance(work, Repeat):
            self._around |= origins_of([cells[n] for n in (work.trips, work.condition) if n is not None])
            flows = [work.body]
        else:
            return self._compute_step(step, cells)
        for flow in flows:
            body = self._bodies[flow]
            self.controls[body] = self.controls.get(body, 0) | self._around
        try:
            return self._compute_step(step, cells)
        finally:
            self._around = before

    def _compute_step(self, step: Step, cells: list[TracedCell | None]) -> Sequence[TracedCell | None]:
        """Compute a node; its outputs are unknown if its condition or trip count is unknown."""
        work = step.work
        if isinstance(work, Repeat):
            return self._compute_loop(step, work, cells)
        condition = cells[work.condition] if isinstance(work, Choice) else None
        try:
            if isinstance(work, Choice) and condition is not None and condition.is_unclear:
                self.search.decisive |= condition.origins
                self._guesses += 1
                try:
                    branches = [self.call(step, call, cells) for _, call in sorted(work.branches.items())]
                finally:
                    self._guesses -= 1
                return [_common_cell(cells) for cells in zip(*branches, strict=True)]
            return super().step(step, cells)
        except EvaluationFailed as error:
            self._note_stuck(error)
        return list(self._unknown_outputs_of(NodeInRun(step, cells, self._symbols)))

    def _note_stuck(self, error: EvaluationFailed) -> None:
        if not isinstance(error, _UnknownValue):
            self.stuck.append((None, error))

    def _compute_loop(
        self, step: Step, work: Repeat, cells: list[TracedCell | None]
    ) -> Sequence[TracedCell | None]:
        """Compute a loop; only one iteration of a loop that is too long or cannot be computed."""
        trips = cells[work.trips] if work.trips is not None else None
        self.search.trips |= 0 if trips is None else trips.direct
        self._depth += 1
        around = self.most_iterations
        try:
            if self._depth <= len(_MOST_ITERATIONS) or not self.search.is_sketch:
                if self.search.is_sketch:
                    room = (_MOST_BODY_NODES - self.computed) // max(len(self.plans[work.body].steps), 1)
                    self.most_iterations = max(_MOST_ITERATIONS[self._depth - 1], room)
                return super().step(step, cells)
        except EvaluationFailed as error:
            self._note_stuck(error)
        finally:
            self._depth -= 1
            self.most_iterations = around
        plan = self.plans[work.body]
        inputs_of_body = [
            self._body_input(step, input, declared, None if input.outer is None else cells[input.outer])
            for input, declared in zip(work.inputs, plan.inputs, strict=True)
        ]
        self._guesses += 1
        try:
            outputs = self.graph(plan, [*inputs_of_body, *self.captured(step, plan, cells)])
        finally:
            self._guesses -= 1
        unknown_outputs = self._unknown_outputs_of(NodeInRun(step, cells, self._symbols))
        return [  # carried values may change with more iterations
            _common_cell([outputs[output.inner]]) if output.slice is None else cell
            for output, cell in zip(work.outputs, unknown_outputs, strict=False)
        ]

    def _body_input(
        self, step: Step, input: BodyInput, declared: GraphInput, cell: TracedCell | None
    ) -> TracedCell | None:
        """Return an input of a loop body in the first iteration; unknown if its source is unknown."""
        try:
            if cell is not None or input.slice is None:
                return self.body_input(step, input, declared, cell, 0)
        except (EvaluationFailed, LookupError):
            pass
        return unknown_cell(declared.shape, declared.element_type, origins_of([cell]))


def _array_without_terms(cell: TracedCell) -> Array | None:
    return cell.array if cell.terms is None and not cell.is_opaque else None


def ports_of_positions(step: Step) -> set[int | None]:
    if isinstance(step.work, Lookup):
        assert step.work.spec is not None
        return {step.work.spec.port_index(role) for role in (Role.INDICES, Role.AXIS)}
    return {constraint.port for constraint in constraints_of(step.node.domain, step.node.type)}


def idle_steps(plan: Plan) -> set[Step]:
    """Return the steps of a main graph whose numbers decide no position, size or body.

    Only the output shapes of these steps matter:

        scores = MatMul(x, w)            idle
        best = TopK(scores, k)           its input k is needed, but `scores` is not
        rows = Gather(table, best)       if this reads the positions of TopK, neither is idle
    """
    needed, idle = set[Key | None](), set[Step]()
    for step in reversed(plan.steps):
        is_general, ports = isinstance(step.work, GeneralOp), ports_of_positions(step)
        if is_general and not needed.intersection(step.outputs) and not reads_shapes_only(step):
            if not any(port in ports for port, key in enumerate(step.inputs) if key is not None):
                idle.add(step)
            needed.update(key for port, key in enumerate(step.inputs) if port in ports)
        elif isinstance(step.work, Lookup) and not needed.intersection(step.outputs):
            needed.update(key for port, key in enumerate(step.inputs) if port in ports)
        elif not reads_shapes_only(step):
            needed.update(step.inputs)
    return idle


def is_exact(step: Step) -> bool:
    """Return whether NumPy has a kernel for a node, so that integers and edge values are exact."""
    if isinstance(step.work, GeneralOp):
        return bool(step.work.kernel_in(step.node.domain))
    return isinstance(step.work, Lookup)


def reads_shapes_only(step: Step) -> bool:
    return isinstance(step.work, GeneralOp) and step.work.reads_shapes_only


def _common_cell(cells: Sequence[TracedCell | None]) -> TracedCell | None:
    """Return an unknown tensor with the common shape and type of several; unknown ones if these differ."""
    arrays = [cell.array for cell in cells if cell is not None and cell.array is not None]
    kinds = {(array.shape, array.dtype) for array in arrays}
    is_one = len(arrays) == len(cells) and len(kinds) == 1
    shape, type = kinds.pop() if is_one else (None, None)
    return unknown_cell(shape, type, origins_of(cells), direct_of(cells))


def _moved_by_scatter(step: Step) -> tuple[int | None, ...]:
    """Return the ports whose elements a scatter node copies to its output; () if it has a reduction."""
    scatter = scatter_node_of(step)
    ports = scatter.spec.port_index(Role.DATA), scatter.spec.port_index(Role.UPDATES)
    return ports if scatter.reduction is Reduction.NONE else ()


def _makes_integers(step: Step) -> bool:
    """Return whether a node converts to an integer type that may not hold all of its numbers."""
    if not isinstance(step.work, GeneralOp) or not step.work.copies:
        return False
    value = step.node.inputs[0].value if step.node.inputs else None
    before = None if value is None else value.element_type
    after = step.node.outputs[0].element_type if step.node.outputs else None
    if after is None or after.kind not in {"signed", "unsigned"}:
        return False
    return before is None or before.kind != after.kind or before.bits > after.bits
