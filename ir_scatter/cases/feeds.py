"""Makes legal inputs for a whole model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ir_scatter.cases.mending import make_room, mend
from ir_scatter.cases.numbers import LARGEST, clip_to_type, draw, dtype_of
from ir_scatter.cases.reach import inputs_that_reach_positions
from ir_scatter.cases.sizes import Sizes, partial_shapes
from ir_scatter.cases.solving import solve
from ir_scatter.cases.terms import Terms, Use
from ir_scatter.cases.tracing import Stuck, Traced, TracingMachine
from ir_scatter.elements import ElementType
from ir_scatter.errors import NoInputs, UsageError
from ir_scatter.graphs import prepare
from ir_scatter.graphs.machine import load
from ir_scatter.graphs.program import Program
from ir_scatter.memory import collector_paused
from ir_scatter.model import Model
from ir_scatter.ops.plain.case import Array
from ir_scatter.shapes import Shape
from ir_scatter.wiring import GraphInput

VALUES = ("plain",)
"""Which numbers inputs may hold that are no indices."""

_MENDS = 32
_PASSES = 12
_FARTHEST = 2**31 - 1
_STARTS = (
    ((-LARGEST, LARGEST), (0, 7)),
    ((1, LARGEST), (0, 3)),
    ((1, LARGEST), (1, 2)),
    ((0, 3), (0, 1)),
    ((1, LARGEST), (1, 1)),
    ((0, LARGEST), (0, 0)),
)
"""Ranges to begin with: of ordinary numbers, and of numbers that indices are made of."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Inputs for a model.

    Attributes:
        feeds: arrays by name.
        repeated: the scatter nodes without reduction whose targets repeat all the same.
    """

    feeds: dict[str, Array]
    repeated: tuple[str, ...] = ()


def make_feeds(
    model: "Model | Program | str | Path",
    seed: int = 0,
    input_shapes: Mapping[str, Shape] | None = None,
    values: str = "plain",
) -> dict[str, Array]:
    """Draw legal inputs for a model: the same ones for the same seed.

    Every input that indices are made of gets values for which all indices and positions of all nodes
    are in range, and the targets of scatter nodes without reduction differ where there is room and
    such values are found. Dynamic dimensions become small numbers that fit each other. Other whole
    numbers are between -8 and 8, floating-point numbers multiples of 1/8 in that range. Inputs of
    an ONNX model that have an initializer are left out.

    Args:
        model: a model, or what `prepare` made of it.
        seed: for the random numbers.
        input_shapes: shapes of inputs by any of their names; they may be partial.
        values: "plain".

    Raises:
        UsageError: `values` is no such word.
        BadFeed: `input_shapes` names no input, or contradicts the model.
        NoInputs: no such inputs were found; the message says what stood in the way.
        Error: what `prepare` raises.
    """
    program = model if isinstance(model, Program) else prepare(model)
    return draw_feeds(program, seed, input_shapes, values).feeds


def draw_feeds(
    program: Program,
    seed: int = 0,
    input_shapes: Mapping[str, Shape] | None = None,
    values: str = "plain",
) -> Drawn:
    """Draw legal inputs, and say where targets repeat; see `make_feeds`."""
    if values not in VALUES:
        raise UsageError(f"values is {values!r}, expected {', '.join(VALUES)}")
    inputs = [input for input in program.inputs if input.default is None]
    sizes = Sizes(partial_shapes(inputs, input_shapes or {}))
    random = np.random.default_rng(seed)
    with collector_paused():
        return _Search(program, inputs, sizes, random).run()


class _Search:
    """Tries sizes, and for each of them values."""

    def __init__(
        self,
        program: Program,
        inputs: Sequence[GraphInput],
        sizes: Sizes,
        random: np.random.Generator,
    ) -> None:
        self.program, self.inputs, self.sizes, self.random = program, inputs, sizes, random
        keys = inputs_that_reach_positions(program.plan, program.plans)
        self.types = [_type_of(input) for input in inputs]
        self.traced = [
            number
            for number, (input, type) in enumerate(zip(inputs, self.types, strict=True))
            if input.key in keys and type.kind in {"signed", "unsigned", "float"}
        ]
        self.reason = ""

    def run(self) -> Drawn:
        """Return the first inputs without repeated targets, or else the first that are legal."""
        legal: Drawn | None = None
        for _ in self.sizes.attempts():
            for _ in range(_MENDS):
                before = self.sizes.shapes()
                found = self._values(before)
                if found is not None and not found.repeated:
                    return found
                legal = legal or found
                if self.sizes.shapes() == before:
                    break
            if legal is not None:
                return legal
        raise NoInputs(f"{self.program.path}: no legal inputs were found: {self.reason}")

    def _values(self, shapes: Sequence[tuple[int, ...]]) -> Drawn | None:
        """Return inputs of these shapes; None if there are none, or if sizes were changed first."""
        legal: Drawn | None = None
        for ordinary, of_positions in _STARTS:
            arrays = self._draw(shapes, ordinary, of_positions)
            for number in range(_PASSES):
                run = _Run(self, arrays)
                if run.stuck is not None:
                    self.reason = str(run.stuck)
                    if mend(self.sizes, run.stuck.step, run.stuck.arrays):
                        return legal
                elif run.is_legal:
                    found = self._drawn(arrays, run.repeated)
                    if number and not run.repeated:
                        return found
                    if sum(make_room(self.sizes, use) for use in run.repeated):
                        return found
                    legal = found if legal is None or not run.repeated else legal
                if run.bad:
                    self.reason = f"{run.bad[0].name}: {run.bad[0].describe()}"
                is_all = not number or (number % 2 == 0 and not run.bad)
                wanted = run.uses if is_all else run.bad or run.repeated
                if not any(use.has_terms for use in wanted):
                    break
                arrays = run.solve(wanted)
            if legal is not None:
                return legal
        return None

    def _draw(
        self, shapes: Sequence[tuple[int, ...]], ordinary: tuple[int, int], of_positions: tuple[int, int]
    ) -> list[Array]:
        arrays = []
        for number, (type, shape) in enumerate(zip(self.types, shapes, strict=True)):
            if number not in self.traced:
                arrays.append(draw(self.random, type, shape, low=ordinary[0], high=ordinary[1]))
                continue
            low, high = clip_to_type(type, *of_positions)
            whole = self.random.integers(low, high + 1, shape)
            arrays.append(
                (whole.astype(np.float32) if type.kind == "float" else whole).astype(dtype_of(type))
            )
        return arrays

    def _drawn(self, arrays: Sequence[Array], repeated: Sequence[Use]) -> Drawn:
        feeds = {input.names[0]: array for input, array in zip(self.inputs, arrays, strict=True)}
        return Drawn(feeds, tuple(dict.fromkeys(use.name for use in repeated)))


class _Run:
    """One run of the model with certain arrays, and what it asked of positions.

    Attributes:
        uses: every place where positions are asked for.
        stuck: why it did not come to its end; None if it did.
    """

    def __init__(self, search: _Search, arrays: list[Array]) -> None:
        self.search, self.arrays = search, arrays
        flat = [arrays[number].reshape(-1).astype(np.int64) for number in search.traced]
        self.starts = np.cumsum([0, *map(len, flat)]).tolist()
        self.terms = Terms(np.concatenate([np.empty(0, np.int64), *flat]))
        machine = TracingMachine(search.program.plans, self.terms)
        self.uses: list[Use] = machine.uses
        self.stuck: Stuck | None = None
        try:
            machine.run(search.program.plan, self._cells())
        except Stuck as stuck:
            self.stuck = stuck

    def _cells(self) -> "list[Traced | None]":
        given = iter(enumerate(self.arrays))
        cells: list[Traced | None] = []
        for input in self.search.program.inputs:
            if input.default is not None:
                cells.append(Traced(load(input.default)))
                continue
            number, array = next(given)
            terms = None
            if number in self.search.traced:
                first = self.starts[self.search.traced.index(number)] + 1
                terms = np.arange(first, first + array.size).reshape(array.shape)
            cells.append(Traced(array, terms))
        return cells

    @property
    def bad(self) -> list[Use]:
        """Return the uses whose positions are not legal."""
        return [use for use in self.uses if not use.is_legal]

    @property
    def repeated(self) -> list[Use]:
        """Return the uses whose targets repeat though they should not."""
        return [use for use in self.uses if use.is_repeated]

    @property
    def is_legal(self) -> bool:
        """Tell whether every position is legal."""
        return self.stuck is None and not self.bad

    def solve(self, wanted: Sequence[Use]) -> list[Array]:
        """Return arrays with other positions for some uses."""
        search, arrays = self.search, list(self.arrays)
        ends = [clip_to_type(search.types[number], -_FARTHEST, _FARTHEST) for number in search.traced]
        counts = np.diff(self.starts)
        lows, highs = (np.repeat([end[side] for end in ends], counts) for side in (0, 1))
        values = solve(search.random, self.terms, self.uses, lows, highs, wanted)
        for at, number in enumerate(search.traced):
            array = arrays[number]
            part = values[self.starts[at] : self.starts[at + 1]].reshape(array.shape)
            arrays[number] = part.astype(array.dtype)
        return arrays


def _type_of(input: GraphInput) -> ElementType:
    if input.element_type is None:
        raise NoInputs(f"the element type of {input.names[0]} is not known")
    return input.element_type
