"""Finds the first node of a model at which a runner adds a difference larger than the rounding of that node.

Intermediate tensors that were read from the runner (taps) cut the model into parts. NumPy computes each
part from the tensors before it, with and without rounding, and compares the result with the tensor after it:

    taps of scatter nodes:   x -> MatMul -> [s] Scatter [t] -> MatMul -> Softmax -> [y]
                                  a part of one node            a part of two nodes
    taps of all nodes:       each node is a part of its own

The next part starts from the tensor that was read, not the computed one: no difference is counted twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ir_scatter.analysis.interpreter import Plan, Plans, Step
from ir_scatter.compare.guard import MarkedTensor
from ir_scatter.compare.measure import EXACT, default_tolerance, elements_beyond
from ir_scatter.compare.rounding import (
    MODEL_TYPES,
    Precision,
    RoundedTensor,
    RoundingWatcher,
    as_rounded,
    bound_of,
)
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import Key
from ir_scatter.core.model import Node
from ir_scatter.evaluate.model import Program, check_feeds
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.lookup import Lookup
from ir_scatter.runners.base import Outcome, Tap, tap_of

_MOST_NODES = 512
"""Maximum nodes stored for a part; with more nodes the report cannot name the faulty one."""


@dataclass(frozen=True, slots=True)
class PartDifference:
    """A part of a model that adds a difference.

    Attributes:
        nodes: the scopes of its nodes that compute values; if all of them only move elements, of all nodes.
        types: the operator types of these nodes.
        is_beyond_tolerance: whether the difference also exceeds the default tolerance of model outputs.
    """

    nodes: tuple[str, ...]
    types: tuple[str, ...]
    is_beyond_tolerance: bool


def taps_of_all(program: Program, format: str) -> dict[Tap, Key]:
    """Return a tap for the first output of every main graph node that is not a scatter node.

    The value of each entry is the key of the tapped tensor in the program.
    """
    return {
        tap_of(step.node, format)._replace(outputs_only=True): step.outputs[0]
        for step in program.plan.steps
        if step.outputs and step.outputs[0] is not None and not isinstance(step.work, Lookup)
    }


def values_of_taps(program: Program, run: Outcome, of_all: Mapping[Tap, Key]) -> dict[Key, Array]:
    """Return the main graph's tensors that a run with taps has read, by their keys in the program.

    Args:
        program: the model.
        run: the run with taps.
        of_all: the taps from `taps_of_all`; all other taps belong to scatter nodes.
    """
    steps = {step.node.scope: step for step in program.plan.steps if isinstance(step.work, Lookup)}
    values = dict[Key, Array]()
    for tapped in run.tapped:
        executions = tapped.executions
        if len(executions) != 1 or executions[0].place or executions[0].caller:
            continue
        if tapped.tap in of_all:
            values[of_all[tapped.tap]] = executions[0].output
        elif (step := steps.get(tapped.tap.scope)) is not None:
            # OpenVINO adds inputs to some nodes: an axis that is an attribute in ONNX becomes an input
            pairs = [*zip(step.inputs, executions[0].inputs, strict=False)]
            pairs.append((step.outputs[0], executions[0].output))
            values |= {key: array for key, array in pairs if key is not None and array is not None}
    for output in program.plan.outputs:
        if output.name in run.outputs:
            values.setdefault(output.key, run.outputs[output.name])
    return values


def find_first_difference(
    program: Program,
    feeds: Mapping[str, Array],
    values: Mapping[Key, Array],
    precision: Precision,
    deadline: float | None = None,
) -> PartDifference | None:
    """Return the first part of a model that adds a difference; None if no part does.

    A part whose difference exceeds the default tolerance of outputs takes precedence over an earlier part
    whose difference only exceeds rounding.
    """
    finder = _Finder(program.plans, program.plan, values, precision)
    finder.deadline = deadline
    finder.run(program.plan, [finder.lift(array) for array in check_feeds(program.inputs, feeds)])
    ordered = sorted(finder.differences, key=lambda part: not part.is_beyond_tolerance)
    return next(iter(ordered), None)


class _Finder(RoundingWatcher):
    def __init__(
        self, plans: Plans, plan: Plan, values: Mapping[Key, Array], precision: Precision = MODEL_TYPES
    ) -> None:
        super().__init__(plans, precision)
        self._values = values
        self._main = {id(step) for step in plan.steps}
        self._since: dict[Key, dict[Node, bool]] = {}
        """For each tensor, the nodes between it and the last tensors read from the runner; True: computes
        values."""
        self.differences: list[PartDifference] = []

    def step(self, step: Step, cells: list[MarkedTensor | None]) -> Sequence[MarkedTensor | None]:
        outputs = [*super().step(step, cells)]
        if id(step) not in self._main:
            return outputs
        since = dict[Node, bool]()
        for key in step.inputs:
            since |= self._since.get(key, {}) if key is not None and len(since) < _MOST_NODES else {}
        since[step.node] = _computes(step)
        for number, (key, output) in enumerate(zip(step.outputs, outputs, strict=False)):
            value = None if key is None else self._values.get(key)
            if key is None or output is None or value is None:
                if key is not None:
                    self._since[key] = since
                continue
            is_scatter = isinstance(step.work, Lookup)  # judged by the bounds of its own reduction
            if output.array is not None and not is_scatter:
                self._check(as_rounded(output), value, since)
            outputs[number] = RoundedTensor(value)
        return outputs

    def _check(self, computed: RoundedTensor, value: Array, since: Mapping[Node, bool]) -> None:
        array = computed.array
        assert array is not None
        nodes = tuple(node for node, computes in since.items() if computes) or tuple(since)
        part = tuple(node.scope for node in nodes), tuple(node.type for node in nodes)
        if array.shape != value.shape or array.dtype != value.dtype:
            if computed.mark is None:
                self.differences.append(PartDifference(*part, True))
            return
        contested = np.zeros(array.shape, np.bool_)
        if computed.mark is not None:
            contested |= True if computed.mark.origins is None else computed.mark.origins != 0
        bound = bound_of(computed, self._precision)
        beyond = elements_beyond(value, array, EXACT, bound=bound, contested=contested)
        if beyond.any():
            allowed = elements_beyond(value, array, default_tolerance(array), contested=contested)
            self.differences.append(PartDifference(*part, bool((beyond & allowed).any())))


def _computes(step: Step) -> bool:
    """Return whether a node computes values; False if it only moves elements, like Transpose."""
    work = step.work
    if isinstance(work, GeneralOp):
        return not work.moved_inputs(len(step.inputs)) or work.copies
    return True
