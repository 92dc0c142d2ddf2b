"""Computes the steps of a plan, one after the other, and the graphs inside nodes.

What flows is called a cell: an array here; something that knows more where the generator of cases
looks where indices come from.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from ir_scatter.core.constants import Constant
from ir_scatter.core.dataflow import BodyInput, Call, Choice, GraphInput, Key, Repeat, Source
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import EvaluationFailed, UnreadableModel
from ir_scatter.core.model import OPENVINO
from ir_scatter.core.shapes import counted
from ir_scatter.evaluate.failures import failure
from ir_scatter.evaluate.loops import part_count, part_of, put_together
from ir_scatter.evaluate.plan import Plan, Plans, Step
from ir_scatter.ops.general_kernels.base import Array

Cell = TypeVar("Cell")

MOST_ITERATIONS = 1_000_000
"""A loop that runs longer, together with those around it and in it, is taken for one that never ends."""

_SMALL = 1 << 20
"""Bytes up to which a constant stays in memory once it was read."""

Frame: TypeAlias = Generator[tuple[Plan, list[Cell | None]], list[Cell | None], list[Cell | None]]
"""A graph or a node that is being computed; it asks for bodies to be computed and gets their outputs."""


class Machine(ABC, Generic[Cell]):
    """Runs plans.

    Attributes:
        plans: of every graph.
        most_iterations: if loops run longer, all together, they are taken for ones that never end.
        iterations: how long they have run.
    """

    def __init__(self, plans: Plans) -> None:
        self.plans = plans
        self.most_iterations = MOST_ITERATIONS
        self.iterations = 0
        self._constants: dict[Constant, Cell] = {}

    @abstractmethod
    def lift(self, array: Array) -> Cell:
        """Make a cell of an array that no input has a part in."""

    @abstractmethod
    def array(self, cell: Cell) -> Array:
        """Return the numbers of a cell."""

    @abstractmethod
    def move(self, function: Callable[..., Array], *cells: Cell) -> Cell:
        """Apply a function that moves elements, and does not look at them."""

    @abstractmethod
    def compute(self, step: Step, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Return the outputs of a node without bodies."""

    def endless(self, step: Step, iterations: int) -> EvaluationFailed:
        """Return what is wrong with a loop that runs too long."""
        return failure(step, f"the loop goes on after {counted(iterations, 'iteration')}")

    def run(self, plan: Plan, cells: Sequence[Cell | None]) -> list[Cell | None]:
        """Compute a graph; graphs inside graphs wait on a stack of our own."""
        self.iterations = 0
        stack: list[Frame[Cell]] = [self._graph(plan, list(cells))]
        sent: list[Cell | None] | None = None
        while stack:
            try:
                request = stack[-1].send(sent)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as ended:
                stack.pop()
                sent = ended.value
                continue
            stack.append(self._graph(*request))
            sent = None
        assert sent is not None
        return sent

    def _graph(self, plan: Plan, cells: list[Cell | None]) -> Frame[Cell]:
        keys = [*(input.key for input in plan.inputs), *plan.captured]
        values: dict[Key, Cell | None] = dict(zip(keys, cells, strict=True))
        del cells
        for step in plan.steps:
            found = [None if key is None else self.fetch(plan, values, key) for key in step.inputs]
            outputs = yield from self.step(step, found)
            del found
            for number, key in enumerate(step.outputs):
                if key is not None:
                    values[key] = _output_of(step, outputs, number)
            del outputs
            for key in step.done:
                values.pop(key, None)
        return [self.fetch(plan, values, output.key) for output in plan.outputs]

    def fetch(self, plan: Plan, values: dict[Key, Cell | None], key: Key) -> Cell | None:
        """Return the cell of a key."""
        constant = plan.constants.get(key)
        if constant is None:
            return values[key]
        if constant in self._constants:
            return self._constants[constant]
        cell = self.lift(load(constant))
        if plan.is_body or self.array(cell).nbytes <= _SMALL:
            self._constants[constant] = cell
        return cell

    def step(self, step: Step, cells: list[Cell | None]) -> Frame[Cell]:
        """Compute a node; as a generator, which asks for bodies to be computed."""
        work = step.work
        if isinstance(work, Call):
            return (yield from self.call(step, work, cells))
        if isinstance(work, Choice):
            chosen = work.branches[self._truth(step, cells[work.condition])]
            return (yield from self.call(step, chosen, cells))
        if isinstance(work, Repeat):
            return (yield from _Loop(self, step, work, cells).run())
        return list(self.compute(step, cells))

    def call(self, step: Step, call: Call, cells: list[Cell | None]) -> Frame[Cell]:
        """Compute the graph of a call."""
        plan = self.plans[call.body]
        given = [None if number is None else cells[number] for number in call.inputs]
        given += self.captured(step, plan, cells)
        outputs = yield plan, given
        return [outputs[number] for number in call.outputs]

    def captured(self, step: Step, plan: Plan, cells: list[Cell | None]) -> list[Cell | None]:
        """Return what a body takes from outside."""
        return [cells[len(step.inputs) - 1 - step.inputs[::-1].index(key)] for key in plan.captured]

    def _truth(self, step: Step, cell: Cell | None) -> bool:
        return bool(self.scalar(step, cell, "the condition"))

    def scalar(self, step: Step, cell: Cell | None, what: str) -> Any:
        """Return the one element of a cell as Python sees it."""
        array = None if cell is None else self.array(cell)
        if array is None or array.size != 1:
            found = "left out" if array is None else f"an array of {array.size} elements"
            raise failure(step, f"{what} is {found}, expected one element")
        number = array.reshape(-1)[0]
        if array.dtype.kind not in "biuf":
            raise failure(step, f"{what} is {number!r}, expected a number or a boolean")
        return number.item()


class _Loop(Generic[Cell]):
    """One run of a Loop, TensorIterator or Scan."""

    def __init__(self, machine: Machine[Cell], step: Step, work: Repeat, cells: list[Cell | None]) -> None:
        self.machine, self.step, self.work, self.cells = machine, step, work, cells
        self.plan = machine.plans[work.body]
        self.captured = machine.captured(step, self.plan, cells)
        self.carried = [None if input.outer is None else cells[input.outer] for input in work.inputs]
        self.parts: list[list[Cell]] = [[] for _ in work.outputs]

    def run(self) -> Frame[Cell]:
        """Compute the body until its condition, the trip count or the parts of an input say so."""
        limit, goes_on, done = self._limit(), self._begins(), 0
        outputs: list[Cell | None] | None = None
        while goes_on and (limit is None or done < limit):
            if self.machine.iterations == self.machine.most_iterations:
                raise self.machine.endless(self.step, self.machine.iterations)
            self.machine.iterations += 1
            outputs = yield self.plan, [*self._inputs(done, goes_on), *self.captured]
            done += 1
            self._keep(outputs)
            if self.work.goes_on is not None:
                cell = outputs[self.work.goes_on]
                goes_on = bool(self.machine.scalar(self.step, cell, "the condition"))
        return [self._output(number, outputs) for number in range(len(self.work.outputs))]

    def _limit(self) -> int | None:
        """Return how often the body runs at most."""
        limits = []
        if self.work.trips is not None:
            count = self.machine.scalar(self.step, self.cells[self.work.trips], "the trip count")
            limits += [int(count)] if count >= 0 or self.is_onnx else []
        for input in self.work.inputs:
            if input.slice is not None:
                whole = self._array(input)
                limits.append(part_count(self.step, input.slice, whole.shape))
        return min(limits, default=None)

    @property
    def is_onnx(self) -> bool:
        """Tell whether a negative trip count means none, and not that there is no limit."""
        return self.step.node.domain != OPENVINO

    def _begins(self) -> bool:
        number = self.work.condition
        if number is None:
            return True
        return bool(self.machine.scalar(self.step, self.cells[number], "the condition"))

    def _array(self, input: BodyInput) -> Array:
        cell = None if input.outer is None else self.cells[input.outer]
        if cell is None:
            raise failure(self.step, "an input that is to be cut into parts is left out")
        return self.machine.array(cell)

    def _inputs(self, iteration: int, goes_on: bool) -> list[Cell | None]:
        return [
            self._input(number, input, declared, iteration, goes_on)
            for number, (input, declared) in enumerate(zip(self.work.inputs, self.plan.inputs, strict=True))
        ]

    def _input(
        self, number: int, input: BodyInput, declared: GraphInput, iteration: int, goes_on: bool
    ) -> Cell | None:
        if input.source is Source.ITERATION:
            return self.machine.lift(declared_scalar(iteration, declared, np.dtype(np.int64)))
        if input.source is Source.CONDITION:
            return self.machine.lift(declared_scalar(goes_on, declared, np.dtype(np.bool_)))
        cell = self.carried[number]
        if input.slice is None or cell is None:
            return cell
        cut = part_of(self.step, input.slice, self.machine.array(cell).shape, iteration)
        return self.machine.move(cut, cell)

    def _keep(self, outputs: list[Cell | None]) -> None:
        for number, input in enumerate(self.work.inputs):
            if input.source is Source.CARRIED and input.successor is not None:
                self.carried[number] = outputs[input.successor]
        for output, parts in zip(self.work.outputs, self.parts, strict=True):
            cell = outputs[output.inner]
            if output.slice is not None and cell is not None:
                parts.append(cell)

    def _output(self, number: int, outputs: list[Cell | None] | None) -> Cell | None:
        output = self.work.outputs[number]
        if output.slice is not None:
            return self._joined(number)
        if outputs is not None:
            return outputs[output.inner]
        for input, cell in zip(self.work.inputs, self.carried, strict=True):
            if input.source is Source.CARRIED and input.successor == output.inner:
                return cell
        raise failure(self.step, f"output {number} has no value, as the body was never computed")

    def _joined(self, number: int) -> Cell:
        cut, declared = self.work.outputs[number].slice, self.plan.outputs[self.work.outputs[number].inner]
        assert cut is not None
        join = put_together(self.step, cut, declared)
        parts = self.parts[number]
        return self.machine.move(join, *parts) if parts else self.machine.lift(join())


def _output_of(step: Step, outputs: Sequence[Cell | None], number: int) -> Cell | None:
    if number >= len(outputs):
        raise failure(
            step,
            f"output {number} is asked for, but there {'is' if len(outputs) == 1 else 'are'} {len(outputs)}",
        )
    return outputs[number]


def declared_scalar(number: int, declared: GraphInput, usual: "np.dtype[Any]") -> Array:
    """Return one number in the type and the rank that the body declares."""
    known = None if declared.element_type is None else dtype(declared.element_type)
    shape = declared.shape or ()
    return np.array(number, usual).astype(known or usual).reshape((1,) * len(shape))


def load(constant: Constant) -> Array:
    """Return the array of a constant.

    Raises:
        UnreadableModel: its bytes are not there.
    """
    array = constant.load()
    if array is None:
        message = f"the values of constant {constant.name} cannot be read"
        raise UnreadableModel("weights-missing", message, constant.location)
    return array
