"""Interpreter: computes a dataflow graph and its bodies, node by node, over any domain.

A domain decides what is computed for a tensor; the result for one tensor is called a *cell*. A cell is an
array when a model is evaluated. It is an array with a mask of unspecified elements when runners are compared,
and an array with the provenance of its elements when inputs are searched.

`make_plans` turns graphs into plans, and `Forward` computes the plans. A *sketch* is a plan for analysis
only: it may contain operators that NumPy does not compute.
"""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ir_scatter.core.arrays import Array, too_many_dimensions
from ir_scatter.core.dataflow import (
    BodyInput,
    BodySource,
    Call,
    Choice,
    Dataflow,
    GraphInput,
    GraphOutput,
    Key,
    Link,
    Nested,
    Repeat,
    Slice,
)
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import Error, EvaluationFailed, UnknownOperator, UnreadableModel
from ir_scatter.core.files import STDIN_NAME
from ir_scatter.core.model import ONNX, OPENVINO, Node
from ir_scatter.core.shapes import show
from ir_scatter.core.tensors import Constant
from ir_scatter.core.words import counted
from ir_scatter.ops.general import GeneralOp, find_computed
from ir_scatter.ops.general import find as find_row
from ir_scatter.ops.lookup import Lookup, find
from ir_scatter.reading import files_beside


@dataclass(frozen=True, slots=True)
class StateRead:
    """A node that reads a state: the value that the last inference assigned.

    In the first inference it is the input of the node, or zeros.
    """

    name: str


Work: TypeAlias = GeneralOp | Lookup | Nested | StateRead | None
"""How to compute a node: by a kernel, as a scatter operator, through its bodies, or by reading a state; None
if it is unknown."""

_Opened: TypeAlias = tuple[Link, tuple[Key | None, ...], Work]


@dataclass(frozen=True, slots=True, eq=False)
class NotComputed:
    """Stands for an output that depends on a node which NumPy does not compute.

    Attributes:
        node: the first such node upstream of the output.
        is_random: whether the node draws random numbers.
        refusal: the error with which the node's kernel refused its inputs; None if it has no kernel.
    """

    node: Node
    is_random: bool = False
    refusal: EvaluationFailed | None = None

    @property
    def source(self) -> str:
        """The node in words: "hash (com.acme::Hash)", "noise (RandomNormal, which draws random numbers)"."""
        kind = f"{operator_name(self.node)}{', which draws random numbers' if self.is_random else ''}"
        if self.refusal is not None:
            kind = str(self.refusal.__cause__ or self.refusal)
        return f"{self.node.scope} ({kind})"


def operator_name(node: Node) -> str:
    """Return the type of a node, with its domain if that is a custom one: "MatMul", "com.acme::Hash"."""
    return node.type if node.domain in {OPENVINO, ONNX} else f"{node.domain}::{node.type}"


_NAMED = 3
"""Maximum unknown operators that a message names; it counts the others."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One node of a plan, and how to compute it.

    Attributes:
        inputs: keys of its inputs in the order of the specification, then of the values that its bodies
            capture.
        done: keys of values that no later step reads, so that their memory can be freed.
        memo: cache for data derived from the node, kept between computations.
    """

    node: Node
    inputs: tuple[Key | None, ...]
    outputs: tuple[Key | None, ...]
    work: Work
    done: tuple[Key, ...]
    memo: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The nodes of one graph as steps in topological order, without nodes that no output depends on.

    A body may run more than once; it reads the `captured` values from the surrounding graph.
    """

    inputs: tuple[GraphInput, ...]
    captured: tuple[Key, ...]
    outputs: tuple[GraphOutput, ...]
    is_body: bool
    constants: Mapping[Key, Constant]
    steps: tuple[Step, ...]
    assigned: Mapping[str, Key] = field(default_factory=dict)
    """States (variables) that the graph assigns, see `Dataflow`; empty in a sketch."""


Plans: TypeAlias = Mapping[Dataflow, Plan]


def make_plans(main: Dataflow, path: str, *, is_sketch: bool = False) -> Plans:
    """Plan the main graph and all of its bodies.

    A step with an unknown operator has the `work` None; `unknown_operator` makes an error from these. A
    sketch is for analysis only: values without a producer count as omitted inputs.
    """
    plans: dict[Dataflow, Plan] = {}
    pending = [main]
    while pending:
        flow = pending.pop()
        planner = _Planner(flow, path, is_sketch=is_sketch)
        steps = planner.steps()
        plans[flow] = Plan(
            flow.inputs,
            flow.captured,
            flow.outputs,
            flow is not main,
            planner.constants,
            steps,
            planner.assigned,
        )
        pending += reversed([body for step in steps for body in _bodies_of(step.work)])
    return plans


def unknown_operator(plans: Plans) -> Error | None:
    """Return an error that names the unknown operators of plans; None if there are none."""
    unknown: dict[str, Node] = {}
    for plan in plans.values():
        for step in plan.steps:
            if step.work is None:
                unknown.setdefault(operator_name(step.node), step.node)
    if not unknown:
        return None
    listed = [f"{type} at {_place(node)}" for type, node in list(unknown.items())[:_NAMED]]
    more = f" and {len(unknown) - _NAMED} other types" if len(unknown) > _NAMED else ""
    first = next(iter(unknown.values()))
    return UnknownOperator(f"NumPy does not compute {', '.join(listed)}{more}", first.location)


def _bodies_of(work: Work) -> tuple[Dataflow, ...]:
    if isinstance(work, Choice):
        return tuple(call.body for call in work.branches.values())
    return (work.body,) if isinstance(work, Call | Repeat) else ()


def _place(node: Node) -> str:
    """Return the place of a node: "branch:then_body/add (model.xml:12)"."""
    location = node.location
    line = "" if location.line is None else f":{location.line}"
    return f"{location.scope} ({location.path}{line})"


def failure(step: Step, message: str, *, breaks_rule: bool = False) -> EvaluationFailed:
    text = f"{step.node.type} {_place(step.node)}: {message}"
    return EvaluationFailed(text, step.node.location, breaks_rule=breaks_rule)


class _Planner:
    """Plans one graph, from outputs back to inputs; without recursion, as chains of nodes are long."""

    def __init__(self, flow: Dataflow, path: str, *, is_sketch: bool) -> None:
        self.flow, self.path, self.is_sketch = flow, path, is_sketch
        self.constants: dict[Key, Constant] = {}
        self.assigned: Mapping[str, Key] = {} if is_sketch else flow.assigned
        self._available: set[Key] = {*(input.key for input in flow.inputs), *flow.captured}
        self._missing: set[Key] = set()

    def steps(self) -> tuple[Step, ...]:
        """Return the steps; each lists the values that no later step reads."""
        steps: list[Step] = []
        ordered = list(self._ordered())
        needed = {*self.constants, *self._ends()}
        for link, inputs, work in reversed(ordered):
            done = {key for key in (*link.outputs, *inputs) if key is not None} - needed
            needed |= done
            present = tuple(None if key in self._missing else key for key in inputs)
            steps.append(Step(link.node, present, link.outputs, work, tuple(done)))
        return tuple(reversed(steps))

    def _ordered(self) -> Iterator[_Opened]:
        """Yield the nodes that the outputs depend on, in topological order."""
        pending = [*reversed(self._ends())]
        opened: dict[Node, _Opened] = {}
        while pending:
            key = pending[-1]
            if self._is_available(key):
                pending.pop()
                continue
            link = self.flow.link(key)
            if link is None:
                self._mark_missing([key], f"nothing produces {key!r}")
                continue
            is_new = link.node not in opened
            if is_new:
                work = self._work(link.node)
                captured = dict.fromkeys(key for body in _bodies_of(work) for key in body.captured)
                opened[link.node] = link, (*link.inputs, *captured), work
            entry = opened[link.node]
            missing = [key for key in entry[1] if key is not None and not self._is_available(key)]
            if missing and not is_new:
                message = f"{link.node.scope} depends on itself, or on a value that nothing produces"
                self._mark_missing(missing, message)
            elif missing:
                pending += reversed(missing)
                continue
            pending.pop()
            self._available.update(output for output in link.outputs if output is not None)
            yield entry

    def _ends(self) -> list[Key]:
        """Return the values that the graph must compute: its outputs and the states it assigns."""
        return [*(output.key for output in self.flow.outputs), *self.assigned.values()]

    def _is_available(self, key: Key) -> bool:
        if key in self._available:
            return True
        try:
            constant = self.flow.constant(key)
        except UnreadableModel as error:
            if not self.is_sketch:
                raise
            self._mark_missing([key], str(error))
            return True
        if constant is None:
            return False
        self.constants[key] = constant
        self._available.add(key)
        return True

    def _mark_missing(self, keys: Sequence[Key], message: str) -> None:
        """In a sketch, treat values without a producer as omitted inputs; otherwise raise an error."""
        if not self.is_sketch:
            raise UnreadableModel("unknown-value", message, Location(self.path))
        self._missing.update(keys)
        self._available.update(keys)

    def _work(self, node: Node) -> Work:
        """Return how to compute a node, None if unknown.

        In a sketch, an unknown version of a scatter operator counts as the oldest one.
        """
        try:
            nested = self.flow.nested(node)
        except UnreadableModel:
            if not self.is_sketch:
                raise
            return None
        if nested is not None:
            return nested
        lookup = find(node.domain, node.type, node.opset)
        if lookup is None or (lookup.spec is None and not self.is_sketch):
            op = find_row(node.domain, node.type)
            if op is not None and op.state == "read" and not self.is_sketch:
                return StateRead(str(node.attributes.get("variable_id", "")))
            return find_computed(node.domain, node.type)
        return lookup if lookup.spec is not None else replace(lookup, spec=lookup.family[0])


Cell = TypeVar("Cell")

_FIRST_SHORTCUT = 8
"""Iterations before fast ones are prepared: that takes as long as two or three, and most loops are short."""

_MOST_SHORTCUTS = 16
"""Maximum attempts to return to fast iterations after one that had to be computed as usual."""


_CHUNK = 1 << 12
"""Number of iterations after which the duration of the whole loop is estimated."""

_SURELY = 2.0
"""A loop is given up if its estimated duration exceeds this multiple of the remaining time."""


class LoopProgress(NamedTuple, Generic[Cell]):
    """The state of a loop after some iterations.

    Attributes:
        done: the number of iterations so far.
        outputs: the outputs of the body in the last iteration.
        parts: for each loop output that concatenates its iterations, the new parts.
        goes_on: whether the loop continues.
    """

    done: int
    outputs: list[Cell | None]
    parts: list[list[Cell]]
    goes_on: bool


@dataclass(slots=True, eq=False)
class Shortcut:
    """The data that one execution of a loop keeps for fast iterations; see `Forward.advance`.

    Attributes:
        next: the number of the iteration at which to try fast iterations; -1 for never.
        body: data prepared by `Forward.advance`, such as bound functions.
        seen: a key of all records before this iteration; an equal key later means that nothing new was
            recorded.
        tried: the number of tries that gained few iterations.
    """

    next: int
    body: Any = None
    seen: object = None
    tried: int = 0

    def wait(self, done: int, before: int) -> None:
        """Schedule the next try of fast iterations: soon, or never after many tries that gained little.

        `before` and `done` are the numbers of iterations before and after this try.
        """
        self.tried += done - before < _FIRST_SHORTCUT
        self.next = done + (done - before < _CHUNK) if self.tried < _MOST_SHORTCUTS else -1


MOST_ITERATIONS = 1_000_000
"""Maximum iterations of all loops of a run together: beyond that, a loop is reported as endless."""

_SMALL = 1 << 20
"""Constants of up to this many bytes (1 MB) stay in memory after their first use."""


class OutOfTime(EvaluationFailed):
    """The run would exceed its deadline."""


class Forward(ABC, Generic[Cell]):
    """Computes a model over a domain of cells, see the module; a domain is a subclass.

    All loops of a run together have at most `most_iterations` iterations.

    Attributes:
        states: the values of states (variables) for the next run, by name; empty before the first run.
        deadline: the time (`time.monotonic`) after which results are useless; None for no limit.
        first_shortcut: the number of iterations of a loop before fast ones are tried; -1 for never.
    """

    first_shortcut = _FIRST_SHORTCUT

    def __init__(self, plans: Plans) -> None:
        self.plans = plans
        self.most_iterations = MOST_ITERATIONS
        self.iterations = 0
        self.states: dict[str, Cell | None] = {}
        self.deadline: float | None = None
        self._constants: dict[Constant, Cell] = {}

    @abstractmethod
    def lift(self, array: Array) -> Cell:
        """Return a cell for an array that depends on no input, such as a constant."""

    @abstractmethod
    def array(self, cell: Cell) -> Array: ...

    @abstractmethod
    def move(self, function: Callable[..., Array], *cells: Cell) -> Cell:
        """Apply a function that moves elements without reading their values, such as a slice."""

    @abstractmethod
    def compute(self, step: Step, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Return the outputs of a node that has no bodies."""

    def is_unknown(self, cell: Cell | None) -> bool:
        """Return whether the numbers of a cell are unknown; it then cannot decide a branch or trip count."""
        return False

    def uncontrolled(self, step: Step, cells: list[Cell | None], control: Cell) -> Sequence[Cell | None]:
        """Return the outputs of an If or loop whose condition or trip count, `control`, is unknown."""
        raise NotImplementedError

    def endless(self, step: Step, iterations: int) -> EvaluationFailed:
        return failure(step, f"the loop has not ended after {counted(iterations, 'iteration')}")

    def run(self, plan: Plan, cells: Sequence[Cell | None]) -> list[Cell | None]:
        self.iterations = 0
        try:
            return self.graph(plan, cells)
        except RecursionError:
            raise failure(plan.steps[0], "the graphs are nested too deeply") from None

    def graph(self, plan: Plan, cells: Sequence[Cell | None]) -> list[Cell | None]:
        """Compute the outputs of a graph; `cells` are its inputs, followed by its captured values."""
        keys = [*(input.key for input in plan.inputs), *plan.captured]
        values: dict[Key, Cell | None] = dict(zip(keys, cells, strict=True))
        for done, step in enumerate(plan.steps):
            if self.deadline is not None and not plan.is_body:
                self._check_deadline(step, done, len(plan.steps))
            arguments = [None if key is None else self.fetch(plan, values, key) for key in step.inputs]
            outputs = self.step(step, arguments)
            for number, key in enumerate(step.outputs):
                if key is not None and number >= len(outputs):
                    count = f"there {'is' if len(outputs) == 1 else 'are'} {len(outputs)}"
                    raise failure(step, f"output {number} is requested, but {count}")
                if key is not None:
                    values[key] = outputs[number]
            del arguments, outputs  # the last references to values that nothing reads any more
            for key in step.done:
                values.pop(key, None)
        results = [self.fetch(plan, values, output.key) for output in plan.outputs]
        self.states |= {name: self.fetch(plan, values, key) for name, key in plan.assigned.items()}
        return results

    def fetch(self, plan: Plan, values: dict[Key, Cell | None], key: Key) -> Cell | None:
        constant = plan.constants.get(key)
        if constant is None:
            return values[key]
        if constant in self._constants:
            return self._constants[constant]
        cell = self.lift(load(constant))
        if plan.is_body or self.array(cell).nbytes <= _SMALL:
            self._constants[constant] = cell
        return cell

    def step(self, step: Step, cells: list[Cell | None]) -> Sequence[Cell | None]:
        work = step.work
        if isinstance(work, Call):
            return self.call(step, work, cells)
        if isinstance(work, Choice):
            condition = cells[work.condition]
            if condition is not None and self.is_unknown(condition):
                return self.uncontrolled(step, cells, condition)
            is_true = bool(self.scalar(step, condition, "the condition"))
            return self.call(step, work.branches[is_true], cells)
        if isinstance(work, Repeat):
            return self.loop(step, work, cells)
        if isinstance(work, StateRead):
            return [self.state(step, work, cells)]
        return self.compute(step, cells)

    def state(self, step: Step, work: StateRead, cells: list[Cell | None]) -> Cell | None:
        """Return the value of a state: the one of the last run, else its initial value, else zeros."""
        if work.name in self.states:
            return self.states[work.name]
        if cells:
            return cells[0]
        output = step.node.outputs[0]
        type = None if output.element_type is None else dtype(output.element_type)
        if type is None or output.shape is None:
            raise failure(step, "the type or the shape of the state is unknown")
        return self.lift(np.zeros([dim if isinstance(dim, int) else 0 for dim in output.shape], type))

    def call(self, step: Step, call: Call, cells: list[Cell | None]) -> list[Cell | None]:
        plan = self.plans[call.body]
        arguments = [None if number is None else cells[number] for number in call.inputs]
        outputs = self.graph(plan, [*arguments, *self.captured(step, plan, cells)])
        return [outputs[number] for number in call.outputs]

    def captured(self, step: Step, plan: Plan, cells: list[Cell | None]) -> list[Cell | None]:
        """Return the values that a body reads from the surrounding graph, None for missing ones."""
        by_key = dict(zip(step.inputs, cells, strict=True))
        return [by_key.get(key) for key in plan.captured]

    def scalar(self, step: Step, cell: Cell | None, noun: str) -> Any:
        """Return the single element of a cell; errors call the cell `noun`."""
        array = None if cell is None else self.array(cell)
        if array is None or array.size != 1:
            actual = "missing" if array is None else f"an array of {array.size} elements"
            raise failure(step, f"{noun} is {actual}, expected one element")
        number = array.reshape(-1)[0]
        if array.dtype.kind not in "biuf":
            raise failure(step, f"{noun} is {number!r}, expected a number or a boolean")
        return number.item()

    def loop(self, step: Step, work: Repeat, cells: list[Cell | None]) -> Sequence[Cell | None]:
        """Run a loop until its condition is false, or its trip count or a sliced input is exhausted."""
        controls = [cells[number] for number in (work.trips, work.condition) if number is not None]
        controls += [cells[cut.outer] for cut in work.inputs if cut.slice and cut.outer is not None]
        for cell in controls:
            if cell is not None and self.is_unknown(cell):
                return self.uncontrolled(step, cells, cell)
        plan = self.plans[work.body]
        captured = self.captured(step, plan, cells)
        carried = [None if input.outer is None else cells[input.outer] for input in work.inputs]
        parts: list[list[Cell]] = [[] for _ in work.outputs]
        limit = self._limit(step, work, cells, carried)
        goes_on = work.condition is None or bool(self.scalar(step, cells[work.condition], "the condition"))
        outputs: list[Cell | None] | None = None
        done, fast, started = 0, Shortcut(self.first_shortcut), time.monotonic()
        while goes_on and (limit is None or done < limit):
            if done % _CHUNK == _FIRST_SHORTCUT or done == fast.next:
                self._check_time(step, started, done, limit)
            if done == fast.next and self.iterations < self.most_iterations:
                end = done + _CHUNK if limit is None else min(limit, done + _CHUNK)
                progress = self.advance(step, work, carried, captured, outputs or [], fast, done, end)
                fast.wait(done if progress is None else progress.done, done)
                if progress is not None:
                    self.iterations += progress.done - done
                    done, outputs, goes_on = progress.done, progress.outputs, progress.goes_on
                    for input_number, input in enumerate(work.inputs):
                        if input.source is BodySource.CARRIED and input.successor is not None:
                            carried[input_number] = outputs[input.successor]
                    for cells_so_far, new in zip(parts, progress.parts, strict=True):
                        cells_so_far += new
                continue
            if self.iterations == self.most_iterations:
                raise self.endless(step, self.iterations)
            self.iterations += 1
            arguments = [
                self.body_input(step, input, declared, cell, done)
                for input, declared, cell in zip(work.inputs, plan.inputs, carried, strict=True)
            ]
            outputs = self.graph(plan, [*arguments, *captured])
            done += 1
            for number, input in enumerate(work.inputs):
                if input.source is BodySource.CARRIED and input.successor is not None:
                    carried[number] = outputs[input.successor]
            for output, cells_so_far in zip(work.outputs, parts, strict=True):
                cell = outputs[output.inner]
                if output.slice is not None and cell is not None:
                    cells_so_far.append(cell)
            if work.goes_on is not None:
                condition = outputs[work.goes_on]
                if condition is not None and self.is_unknown(condition):
                    return self.uncontrolled(step, cells, condition)
                goes_on = bool(self.scalar(step, condition, "the condition"))
        results: list[Cell | None] = []
        for number, (output, part_cells) in enumerate(zip(work.outputs, parts, strict=True)):
            if output.slice is not None:
                join = _concatenation(step, output.slice, plan.outputs[output.inner])
                results.append(self.move(join, *part_cells) if part_cells else self.lift(join()))
            elif outputs is not None:
                results.append(outputs[output.inner])
            else:
                pairs = zip(work.inputs, carried, strict=True)
                initial = [cell for input, cell in pairs if input.successor == output.inner]
                if not initial:
                    raise failure(step, f"output {number} has no value, because the body never ran")
                results.append(initial[0])
        return results

    def _check_deadline(self, step: Step, done: int, total: int) -> None:
        """Raise OutOfTime between two nodes of the main graph if the deadline has passed."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            message = f"the time is over after {done} of {counted(total, 'node')}, before {step.node.scope}"
            raise OutOfTime(message, step.node.location)

    def _check_time(self, step: Step, started: float, done: int, limit: int | None) -> None:
        """Raise OutOfTime if a loop will surely end after the deadline."""
        if self.deadline is None or limit is None or not done:
            return
        now = time.monotonic()
        rest, left = (now - started) / done * (limit - done), self.deadline - now
        if rest > max(left, 0) * _SURELY:
            place = f"{step.node.type} {step.node.scope}"
            message = f"{place} would take {rest:.0f} seconds more, after {done} of {limit} iterations"
            raise OutOfTime(message, step.node.location)

    def advance(
        self,
        step: Step,
        work: Repeat,
        carried: Sequence[Cell | None],
        captured: Sequence[Cell | None],
        outputs: Sequence[Cell | None],
        fast: "Shortcut",
        done: int,
        limit: int | None,
    ) -> "LoopProgress[Cell] | None":
        """Compute several iterations of a loop in a faster way; None if that is not possible.

        Args:
            step: the node.
            work: the loop.
            carried: for each body input its current value; for a sliced input, the whole array.
            captured: the values that the body reads from the surrounding graph.
            outputs: the outputs of the body in the last iteration.
            fast: data that was prepared during this execution of the loop.
            done: the number of iterations done.
            limit: the number of iterations at which the loop ends, if known.
        """
        return None

    def body_input(
        self, step: Step, input: BodyInput, declared: GraphInput, cell: Cell | None, done: int
    ) -> Cell | None:
        """Return the cell of a body input in iteration number `done` (from 0)."""
        if input.source is BodySource.ITERATION:
            return self.lift(_declared_scalar(done, declared, np.dtype(np.int64)))
        if input.source is BodySource.CONDITION:
            return self.lift(_declared_scalar(1, declared, np.dtype(np.bool_)))
        cut = input.slice
        if cut is None or cell is None:
            return cell
        shape = self.array(cell).shape
        _span(step, cut, shape)
        place = body_part(cut, shape)(done)
        return self.move(lambda array: array[place], cell)

    def _limit(
        self, step: Step, work: Repeat, cells: list[Cell | None], carried: Sequence[Cell | None]
    ) -> int | None:
        """Return the maximum number of iterations by trip count and sliced inputs; None without a limit."""
        limits = []
        if work.trips is not None:
            count = self.scalar(step, cells[work.trips], "the trip count")
            if count >= 0 or step.node.domain != OPENVINO:
                limits.append(int(count))
        for input, cell in zip(work.inputs, carried, strict=True):
            if input.slice is not None:
                if cell is None:
                    raise failure(step, "a sliced input of the loop is missing")
                shape = self.array(cell).shape
                first, last = _span(step, input.slice, shape)
                length = abs(last - first) + 1 if shape[input.slice.axis] else 0
                limits.append(length // input.slice.part)
        return min(limits, default=None)


def _concatenation(step: Step, cut: Slice, output: GraphOutput) -> Callable[..., Array]:
    """Return a function that concatenates the parts of all iterations to an output.

    For no parts, it returns an empty array.
    """

    def join(*parts: Array) -> Array:
        if len({(part.shape, part.dtype) for part in parts}) > 1:
            shapes = ", ".join(show(part.shape) for part in parts)
            raise failure(
                step, f"the parts of an output have shapes {shapes}, expected equal shapes and types"
            )
        type = None if output.element_type is None else dtype(output.element_type)
        if not parts and (type is None or output.shape is None):
            raise failure(step, f"the shape of output {output.name} is unknown, and the body never ran")
        declared = tuple(dim if isinstance(dim, int) else 0 for dim in output.shape or ())
        shape = parts[0].shape if parts else declared
        rank = len(shape) + (not cut.keeps_axis)
        problem = too_many_dimensions(rank)
        if problem:
            raise failure(step, f"output {output.name} {problem}")
        if not -rank <= cut.axis < rank:
            raise failure(step, f"axis is {cut.axis}, expected -{rank} to {rank - 1}")
        if not parts:
            axis = cut.axis % rank
            return np.empty((*shape[:axis], 0, *shape[axis + cut.keeps_axis :]), type)
        ordered = parts[::-1] if cut.stride < 0 else parts
        if not cut.keeps_axis:
            return np.stack(ordered, cut.axis)
        if shape[cut.axis] != cut.part:
            raise failure(
                step, f"a part has shape {show(shape)}, expected size {cut.part} on axis {cut.axis}"
            )
        return np.concatenate(ordered, cut.axis)

    return join


def _span(step: Step, cut: Slice, shape: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last position that a loop's slice covers."""
    if not -len(shape) <= cut.axis < len(shape):
        raise failure(step, f"axis is {cut.axis}, expected an axis of {show(tuple(shape))}")
    if cut.part < 1 or abs(cut.stride) != cut.part:
        raise failure(step, f"the stride is {cut.stride}, expected the size of a part, {cut.part}")
    size = shape[cut.axis]
    first, last = (end + size if end < 0 else end for end in (cut.start, cut.end))
    is_inside = all(0 <= end < size for end in (first, last)) or size == 0
    span = f"the loop slices positions {cut.start} to {cut.end}"
    if not is_inside:
        raise failure(step, f"{span}, expected positions from {-size} to {size - 1} on axis {cut.axis}")
    if (last < first) is not (cut.stride < 0) and last != first:
        raise failure(step, f"{span} with stride {cut.stride}, expected a stride of the other sign")
    return first, last


def body_part(cut: Slice, shape: Sequence[int]) -> Callable[[int], tuple[slice | int, ...]]:
    """Return a function from the number of an iteration to the index expression of its part of an array."""
    start = cut.start + shape[cut.axis] if cut.start < 0 else cut.start
    first = start - (cut.part - 1 if cut.stride < 0 else 0)
    axis = cut.axis % len(shape)
    before, after = (slice(None),) * axis, (slice(None),) * (len(shape) - axis - 1)

    def place(done: int) -> tuple[slice | int, ...]:
        begin = first + done * cut.stride
        return (*before, slice(begin, begin + cut.part) if cut.keeps_axis else begin, *after)

    return place


def body_argument(input: BodyInput, declared: GraphInput, array: Array | None, done: int) -> Array | None:
    """Return a body input in iteration number `done`; like `Forward.body_input`, but slices must be legal."""
    if input.source is BodySource.ITERATION:
        return _declared_scalar(done, declared, np.dtype(np.int64))
    if input.source is BodySource.CONDITION:
        return _declared_scalar(1, declared, np.dtype(np.bool_))
    if input.slice is None or array is None:
        return array
    return array[body_part(input.slice, array.shape)(done)]


def _declared_scalar(number: int, declared: GraphInput, usual: np.dtype[Any]) -> Array:
    """Return a number as an array of the declared rank and type, or of type `usual` if none is declared."""
    type = None if declared.element_type is None else dtype(declared.element_type)
    shape = declared.shape or ()
    return np.array(number, usual).astype(type or usual).reshape((1,) * len(shape))


def load(constant: Constant) -> Array:
    """Return the array of a constant.

    Raises:
        UnreadableModel: its bytes cannot be read.
        EvaluationFailed: it has more dimensions than NumPy supports.
    """
    problem = too_many_dimensions(len(constant.shape))
    if problem:
        raise EvaluationFailed(f"constant {constant.name} {problem}", constant.location)
    array = constant.load()
    if array is None:
        path = constant.location.path
        missing = next((file for file, _ in files_beside(path) if not os.path.isfile(file)), "")
        if path == STDIN_NAME:
            missing = "file of weights beside standard input"
        reason = f": there is no {missing}" if missing else ""
        message = f"the values of constant {constant.name} cannot be read{reason}"
        raise UnreadableModel("weights-missing", message, constant.location)
    return array
