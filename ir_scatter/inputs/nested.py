"""Follows values through graphs inside nodes, also where conditions and trip counts are not known."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ir_scatter.analysis.interpreter import Forward, Frame, Plans, Step, declared_scalar, part_of
from ir_scatter.core.dataflow import BodyInput, Choice, GraphInput, Repeat, Source
from ir_scatter.core.errors import EvaluationFailed
from ir_scatter.inputs.asked import Asked, is_unclear
from ir_scatter.inputs.cells import Cell, Shapeless, Stuck, Traced, Unclear, cell_of, hollow
from ir_scatter.ops.general_kernels.base import Array

_MOST_ITERATIONS = (256, 16, 4)
"""A loop that runs longer is followed through its body once: for a loop in no other, in one, in two.

So is every loop inside of these. One that has few nodes may run longer.
"""

_MOST_INSIDE = 20_000
"""Up to so many nodes of bodies are computed in one run before loops may not run longer."""


class NestedTracing(Forward[Cell]):
    """Runs plans on cells that may be unknown.

    Attributes:
        symbols: the sizes of dimensions by their symbols.
        is_strict: whether a node that cannot be computed ends the run.
        stuck: the nodes that could not be computed.
        computed: how many nodes were computed.
    """

    symbols: Mapping[str, int]
    is_strict: bool

    def __init__(self, plans: Plans) -> None:
        super().__init__(plans)
        self.stuck: list[Stuck] = []
        self.computed = 0
        self._depth = 0

    def array(self, cell: Cell) -> Array:
        """Return the numbers."""
        if isinstance(cell, Shapeless):
            raise Unclear("the shape of a value")
        return cell.array

    def scalar(self, step: Step, cell: Cell | None, what: str) -> Any:
        """Return the one element of a cell as Python sees it."""
        if is_unclear(cell):
            raise Unclear(what)
        return super().scalar(step, cell, what)

    def step(self, step: Step, cells: list[Cell | None]) -> Frame[Cell]:
        """Compute a node; what cannot be computed gives unknown values."""
        if self.is_strict:
            return (yield from super().step(step, cells))
        work = step.work
        if isinstance(work, Choice) and is_unclear(cells[work.condition]):
            return (yield from self._either(step, work, cells))
        if isinstance(work, Repeat):
            return (yield from self._repeat(step, work, cells))
        try:
            return (yield from super().step(step, cells))
        except Unclear:
            pass
        except EvaluationFailed as error:
            self.stuck.append(Stuck(step, [], error))
        return list(Asked(step, cells, self.symbols).outputs_of_shapes())

    def endless(self, step: Step, iterations: int) -> EvaluationFailed:
        """Return what is wrong with a loop that runs longer than anybody wants to wait."""
        return Unclear("the end of a loop")

    def _repeat(self, step: Step, work: Repeat, cells: list[Cell | None]) -> Frame[Cell]:
        """Compute a loop, or if that is not possible its body once."""
        self._depth += 1
        around = self.most_iterations
        try:
            if self._depth <= len(_MOST_ITERATIONS):
                room = (_MOST_INSIDE - self.computed) // max(len(self.plans[work.body].steps), 1)
                self.most_iterations = max(_MOST_ITERATIONS[self._depth - 1], room)
                return (yield from super().step(step, cells))
        except Unclear:
            pass
        except EvaluationFailed as error:
            self.stuck.append(Stuck(step, [], error))
        finally:
            self._depth -= 1
            self.most_iterations = around
        return (yield from self._once(step, work, cells))

    def _either(self, step: Step, work: Choice, cells: list[Cell | None]) -> Frame[Cell]:
        """Compute both branches, and keep what they agree on."""
        found = []
        for _, call in sorted(work.branches.items()):
            outputs = yield from self.call(step, call, cells)
            found.append(outputs)
        return [_merged(pair) for pair in zip(*found, strict=True)]

    def _once(self, step: Step, work: Repeat, cells: list[Cell | None]) -> Frame[Cell]:
        """Compute the body of a loop once."""
        plan = self.plans[work.body]
        given = [
            self._body_input(step, input, declared, cells)
            for input, declared in zip(work.inputs, plan.inputs, strict=True)
        ]
        outputs = yield plan, [*given, *self.captured(step, plan, cells)]
        known = Asked(step, cells, self.symbols).outputs_of_shapes()
        return [
            _forgotten(outputs[output.inner]) if output.slice is None else cell
            for output, cell in zip(work.outputs, known, strict=False)
        ]

    def _body_input(
        self, step: Step, input: BodyInput, declared: GraphInput, cells: list[Cell | None]
    ) -> Cell | None:
        if input.source is Source.ITERATION:
            return self.lift(declared_scalar(0, declared, np.dtype(np.int64)))
        if input.source is Source.CONDITION:
            return self.lift(declared_scalar(1, declared, np.dtype(np.bool_)))
        cell = None if input.outer is None else cells[input.outer]
        if input.slice is None:
            return cell
        try:
            if isinstance(cell, Traced):
                return self.move(part_of(step, input.slice, cell.array.shape, 0), cell)
        except (EvaluationFailed, LookupError):
            pass
        return cell_of(declared.shape, declared.element_type)


def _merged(cells: Sequence[Cell | None]) -> Cell | None:
    """Return what several cells have in common."""
    known = [cell.array for cell in cells if isinstance(cell, Traced)]
    kinds = {(array.shape, array.dtype) for array in known}
    if len(known) < len(cells) or len(kinds) != 1:
        return Shapeless()
    return hollow(known[0].shape, known[0].dtype)


def _forgotten(cell: Cell | None) -> Cell | None:
    """Return a value that may be another one after more iterations."""
    return hollow(cell.array.shape, cell.array.dtype) if isinstance(cell, Traced) else cell
