"""Computes loop iterations with functions that are specialised for types and shapes: faster, same results.

A loop in a model may run its body a million times, and checking a node again costs ten times as much as
computing it on a few numbers. `bind_body` computes one iteration as usual. On the way it *binds* each node:
it makes a function for the node that assumes the types and shapes of this iteration:

    row = Div(iteration, size)     once: types, attributes, "size is never 0"     then: iteration // size
    cell = Gather(table, row)      once: types, axis                              then: table[row:row + 1]
    limit = Neg(size)              depends on nothing that changes                computed once

`BoundBody.run` then calls these functions until the loop ends, or until an iteration breaks an assumption:
types or shapes change, an index is out of range, a scatter node gets several updates of one element. It
discards such an iteration, and the caller computes it as usual, with error messages and records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ir_scatter.analysis.interpreter import LoopProgress, Plan, Step, body_part
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import BodySource, Key, Repeat
from ir_scatter.core.errors import Error
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.general_kernels import REFUSALS, BoundKernel
from ir_scatter.ops.general_kernels.bound import Bound, Unbound
from ir_scatter.ops.kernels.targets import IndexOutOfRange
from ir_scatter.ops.lookup import Lookup

_MOST_BYTES = 1 << 26
"""Maximum bytes of the results of one iteration (64 MB): above, checks cost little in comparison, memory
much."""

_GIVES_UP = (*REFUSALS, Unbound, IndexOutOfRange, Error)
"""Errors that end the fast iterations; the usual computation then repeats the iteration and reports them."""


class BoundCall(NamedTuple):
    """One function of a bound body: `values[output] = function(*values[inputs])`.

    Attributes:
        outputs: the slots of the outputs if there are several; otherwise None.
        expected: type and shape that each output must have; None if they need not be checked.
    """

    function: Bound
    inputs: tuple[int, ...]
    output: int
    outputs: tuple[int, ...] | None = None
    expected: tuple[tuple[Any, tuple[int, ...]], ...] | None = None


BindNode: TypeAlias = Callable[[Step, Sequence[Array | None], Sequence[bool]], BoundKernel]
"""Computes a node without bodies and binds it; the booleans say which inputs never change. Raises `Unbound`,
or an error of the computation, if that is impossible."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundBody:
    """The functions of a loop body in the order of its nodes, and the values that they read and write.

    Values are numbered; the number of a value is its slot.
    """

    work: Repeat
    values: tuple[Array | None, ...]
    """A sample value for each slot; slots that no function writes keep it in every iteration."""
    calls: tuple[BoundCall, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    steps: int
    """Number of nodes in the body, to be counted against limits."""

    def run(
        self, carried: Sequence[Array | None], done: int, limit: int | None, most: int
    ) -> LoopProgress[Array] | None:
        """Run at most `most` iterations, until an assumption breaks; None if the first iteration breaks one.

        Args:
            carried: the value of each body input in the next iteration; for a sliced input, the whole array.
            done: the number of iterations done before.
            limit: the number of iterations at which the loop ends, if known.
            most: the maximum number of iterations in this call.
        """
        work, values = self.work, list(self.values)
        entries = list(zip(work.inputs, self.inputs, strict=True))
        changing = [
            (slot, self.outputs[input.successor], values[slot])
            for input, slot in entries
            if input.source is BodySource.CARRIED and input.successor is not None
        ]
        for (input, slot), array in zip(entries, carried, strict=True):
            if input.source is BodySource.CARRIED:
                if not _is_like(array, values[slot]):
                    return None
                values[slot] = array
        numbers = [(slot, values[slot]) for input, slot in entries if input.source is BodySource.ITERATION]
        parts = [
            (slot, body_part(input.slice, whole.shape), whole)
            for (input, slot), whole in zip(entries, carried, strict=True)
            if input.slice is not None and whole is not None
        ]
        collected: list[list[Array]] = [[] for _ in work.outputs]
        stacked = [
            (self.outputs[output.inner], part)
            for output, part in zip(work.outputs, collected, strict=True)
            if output.slice is not None
        ]
        goes_on = None if work.goes_on is None else self.outputs[work.goes_on]
        end = done + most if limit is None else min(limit, done + most)
        first, last = done, [values[slot] for slot in self.outputs]
        continues, calls = True, self.calls
        with np.errstate(all="ignore"):
            try:
                while continues and done < end:
                    for slot, sample in numbers:
                        assert sample is not None
                        values[slot] = np.full(sample.shape, done, sample.dtype)
                    for slot, cut, whole in parts:
                        values[slot] = whole[cut(done)]
                    _compute(calls, values)
                    following = [values[source] for _, source, _ in changing]
                    for array, (_, _, sample) in zip(following, changing, strict=True):
                        if not _is_like(array, sample):
                            raise Unbound
                    continues = goes_on is None or _truth(values[goes_on])
                    last = [values[slot] for slot in self.outputs]
                    for slot, part in stacked:
                        array = values[slot]
                        if array is not None:
                            part.append(array)
                    for array, (slot, _, _) in zip(following, changing, strict=True):
                        values[slot] = array
                    done += 1
            except _GIVES_UP:
                pass
        return None if done == first else LoopProgress(done, last, collected, continues)


def _compute(calls: Sequence[BoundCall], values: list[Any]) -> None:
    for function, inputs, output, outputs, expected in calls:
        if len(inputs) == 1:
            result = function(values[inputs[0]])
        elif len(inputs) == 2:
            result = function(values[inputs[0]], values[inputs[1]])
        else:
            result = function(*[values[slot] for slot in inputs])
        if expected is None:
            values[output] = result
            continue
        results = (result,) if outputs is None else result
        for array, (type, shape) in zip(results, expected, strict=True):
            if array.dtype is not type or array.shape != shape:
                raise Unbound
        if outputs is None:
            values[output] = result
        else:
            for slot, array in zip(outputs, results, strict=False):
                values[slot] = array


def _is_like(array: Array | None, sample: Array | None) -> bool:
    if array is None or sample is None:
        return array is sample
    return array.shape == sample.shape and array.dtype is sample.dtype


def _truth(array: Array | None) -> bool:
    if array is None or array.size != 1 or array.dtype.kind not in "biuf":
        raise Unbound
    return bool(array.item())


def bind_body(
    work: Repeat,
    plan: Plan,
    arguments: Sequence[Array | None],
    captured: Sequence[Array | None],
    constants: Callable[[Key], Array],
    bind_node: BindNode,
) -> BoundBody | None:
    """Compute one iteration of a loop and bind its nodes; None if a node of the body cannot be bound.

    Args:
        work: the loop.
        plan: the plan of its body.
        arguments: the inputs of the body in this iteration.
        captured: the values that the body reads from the surrounding graph.
        constants: returns the array of a constant of the body.
        bind_node: binds each node of the body.
    """
    if plan.assigned:  # states change from iteration to iteration
        return None
    binder = _Binder(plan, constants, bind_node)
    changing = {BodySource.CARRIED, BodySource.ITERATION, BodySource.PART}
    for key, array, input in zip([input.key for input in plan.inputs], arguments, work.inputs, strict=True):
        binder.define(key, array, is_fixed=input.source not in changing)
    for key, array in zip(plan.captured, captured, strict=True):
        binder.define(key, array, is_fixed=True)
    try:
        for step in plan.steps:
            if not binder.add(step):
                return None
        outputs = tuple(binder.slot(output.key) for output in plan.outputs)
    except _GIVES_UP:
        return None
    inputs = tuple(binder.slots[input.key] for input in plan.inputs)
    return BoundBody(work, tuple(binder.values), tuple(binder.calls), inputs, outputs, len(plan.steps))


class _Binder:
    """Computes the nodes of a loop body in order, and binds each to the types and shapes of its inputs."""

    def __init__(self, plan: Plan, constants: Callable[[Key], Array], bind_node: BindNode) -> None:
        self.slots: dict[Key, int] = {}
        self.values: list[Array | None] = []
        self.calls: list[BoundCall] = []
        self._fixed: list[bool] = []
        self._plan, self._constants, self._bind_node = plan, constants, bind_node
        self._bytes = 0

    def define(self, key: Key, array: Array | None, *, is_fixed: bool) -> int:
        self.slots[key] = len(self.values)
        self.values.append(array)
        self._fixed.append(is_fixed)
        return self.slots[key]

    def slot(self, key: Key) -> int:
        if key not in self.slots and key in self._plan.constants:
            self.define(key, self._constants(key), is_fixed=True)
        return self.slots[key]

    def add(self, step: Step) -> bool:
        """Compute and bind one node; return whether it can be bound."""
        slots = [-1 if key is None else self.slot(key) for key in step.inputs]
        arrays = [None if slot < 0 else self.values[slot] for slot in slots]
        fixed = [slot < 0 or self._fixed[slot] for slot in slots]
        if not isinstance(step.work, GeneralOp | Lookup):
            return False
        function, is_static, outputs = self._bind_node(step, arrays, fixed)
        self._bytes += sum(array.nbytes for array in outputs)
        missing = [number for number, slot in enumerate(slots) if slot < 0]
        if missing:
            slots = [self.define(object(), None, is_fixed=True) if slot < 0 else slot for slot in slots]
        are_fixed = all(fixed)
        places = [
            self.define(object() if key is None else key, outputs[number], is_fixed=are_fixed)
            for number, key in enumerate(step.outputs)
        ]
        if not are_fixed:
            expected = tuple([(array.dtype, array.shape) for array in outputs])
            several = tuple(places) if len(outputs) > 1 or not places else None
            checked = None if is_static and several is None else expected
            self.calls.append(
                BoundCall(function, tuple(slots), places[0] if places else -1, several, checked)
            )
        return self._bytes <= _MOST_BYTES
