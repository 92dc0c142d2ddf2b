"""NumPy reference run that tracks indices and which output elements are unspecified.

If several different updates target one element and there is no reduction, the specification allows any of
them: the element is contested. The run stores, beside each tensor, where each of its elements comes from:

    scatter:      data [5, 6, 7], indices [1, 1], updates [8, 9] -> origins [0, 2, 0]    2 is contested
    Reverse:      operators that move elements move the origins  -> origins [0, 2, 0]
    Add:          element by element: the value is computed      -> origins [0, -1, 0]   -1 is `COMPUTED`
    any other:    the whole tensor may depend on the element     -> origins [-1, -1, -1]

An element that was only moved must have one of the values that the specification allows; an element that was
computed from a contested one may have any value. If NumPy does not support an operator, or a model breaks a
rule, the run computes as much of the model as possible.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.interpreter import (
    Forward,
    LoopProgress,
    NotComputed,
    Plan,
    Plans,
    Shortcut,
    Step,
    failure,
)
from ir_scatter.compare.measure import (
    RANDOM,
    REFERENCE,
    SUBJECT,
    Excuse,
    Measure,
    Tolerance,
    Verdict,
    measure,
)
from ir_scatter.compare.result import Guarded
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import Call, Choice, Key, Repeat
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import Error, EvaluationFailed, IllegalCase
from ir_scatter.core.shapes import static
from ir_scatter.evaluate.certainty import DetailedResult, detail
from ir_scatter.evaluate.model import (
    Sketch,
    advance_arrays,
    bind_node,
    by_role,
    case_of_node,
    check_feeds,
    compute_node,
    end_by_refusal,
    end_of_computation,
    scatter_node_of,
)
from ir_scatter.evaluate.operator import CheckedCase
from ir_scatter.ops.general import GeneralOp, find
from ir_scatter.ops.general_kernels import BoundKernel
from ir_scatter.ops.general_kernels.bound import Unbound
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.ops.kernels.certainty import count_hits
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Reduction, Role
from ir_scatter.runners.defaults import NUMPY

COMPUTED = np.int64(-1)
"""Origin of an element that was, or may have been, computed from a contested element: any value is
accepted."""

_CERTAIN = np.int64(0)
"""Origin of an element that depends on no contested element."""

_MOST_COPIES = 16
"""Maximum checked copies of a contested element, as each costs a pass; further copies count as allowed."""


class ContestedElements:
    """Numbers the contested elements of a run, and checks values of these elements."""

    def __init__(self) -> None:
        self._results: list[tuple[int, DetailedResult]] = []
        self._next = 1

    def add(self, result: DetailedResult) -> Array:
        """Return an array of new element numbers, in the shape of a scatter result."""
        start, count = self._next, result.values.size
        self._results.append((start, result))
        self._next += count
        return np.arange(start, start + count, dtype=np.int64).reshape(result.values.shape)

    def allows(self, numbers: Array, values: Array, tolerance: Tolerance) -> Array:
        """Return a mask: whether the specification allows `values[i]` for the contested element `numbers[i]`.

        A number occurs several times if the element was copied. `DetailedResult.allows` checks one value for
        each element, so each round of the loop checks one copy of every number.
        """
        are_allowed = np.ones(numbers.shape, np.bool_)
        for start, result in self._results:
            flat = result.values.reshape(-1)
            remaining = np.flatnonzero((numbers >= start) & (numbers < start + flat.size))
            for _ in range(_MOST_COPIES if flat.dtype == values.dtype else 0):
                places, first = np.unique(numbers[remaining] - start, return_index=True)
                if not places.size:
                    break
                probe = flat.copy()
                probe[places] = values[remaining[first]]
                probe = probe.reshape(result.values.shape)
                allowed = result.allows(probe, tolerance.absolute, tolerance.relative)
                are_allowed[remaining[first]] = allowed.reshape(-1)[places]
                remaining = np.delete(remaining, first)
        return are_allowed


@dataclass(frozen=True, slots=True, eq=False)
class Unspecified:
    """Marks the elements of a tensor whose values the specification does not determine (its "mark")."""

    origins: Array | None
    """i64 array of the tensor's shape: 0 for a determined element, the number of a contested element that was
    only moved, or `COMPUTED`. None if even the shape is undetermined."""
    why: str = ""
    """The operator for which a whole output was marked, as its effect on elements is unknown; else ""."""
    contested: ContestedElements = field(default_factory=ContestedElements)
    """Set for model outputs: checks which values the contested elements may have."""

    @property
    def excuse(self) -> Excuse:
        if self.origins is None:
            return Excuse(None, self.why, bool(self.why))
        count = int(np.count_nonzero(self.origins))
        return Excuse(count, self.why, bool(self.why) and count == self.origins.size)

    def mask(self, tolerance: Tolerance, *arrays: Array) -> Array:
        """Return a mask of the unspecified elements.

        An element that was only moved is excluded if one of the arrays has a value for it that the
        specification does not allow: such a value is wrong.
        """
        shape = arrays[0].shape
        if self.origins is None or self.origins.shape != shape:
            return np.full(shape, self.origins is None)
        numbers = self.origins.reshape(-1)
        are_unspecified = numbers != 0
        moved = np.flatnonzero(numbers > 0)
        for array in arrays if moved.size else ():
            values = array.reshape(-1)[moved]
            are_unspecified[moved] &= self.contested.allows(numbers[moved], values, tolerance)
        mask: Array = are_unspecified.reshape(shape)
        return mask


def first_reason(marks: Iterable[Unspecified | None]) -> str:
    return next((mark.why for mark in marks if mark is not None and mark.why), "")


def unspecified_where(mask: Array, why: str = "") -> Unspecified:
    """Mark elements as unspecified, with unknown values."""
    return Unspecified(np.where(mask, COMPUTED, _CERTAIN), why)


def whole_tensor(why: str, shape: tuple[int, ...] | None) -> Unspecified:
    """Mark all elements of a tensor as computed from unspecified ones; with shape None, the shape as well."""
    return Unspecified(None if shape is None else np.broadcast_to(COMPUTED, shape), why)


@dataclass(frozen=True, slots=True, eq=False)
class MarkedTensor:
    """A tensor during the NumPy run, with the mark of its unspecified elements.

    Attributes:
        array: its values; None if they are unknown.
        declared: the shape that the model declares, used if neither array nor mark has one.
        end: the unsupported node because of which the values are unknown.
    """

    array: Array | None
    mark: Unspecified | None = None
    declared: tuple[int, ...] | None = None
    end: NotComputed | None = None

    @property
    def origins(self) -> Array | None:
        return None if self.mark is None else self.mark.origins

    @property
    def shape(self) -> tuple[int, ...] | None:
        source = self.origins if self.array is None else self.array
        return self.declared if source is None else tuple(source.shape)

    @property
    def numbers(self) -> Array:
        """The origin of each element, 0 if the specification determines it; the shape must be known."""
        assert self.shape is not None
        return np.broadcast_to(_CERTAIN, self.shape) if self.origins is None else self.origins


def excuse_unspecified(
    difference: Measure,
    got: Array,
    expected: Array,
    of_subject: Unspecified | None,
    of_reference: Unspecified | None,
) -> Measure:
    """Change a mismatch to "contested" if only unspecified elements differ.

    An element is unspecified if the model of the subject or that of the reference does not specify it.
    """
    sides = [(of_subject, [got]), (of_reference, [expected])]
    if of_subject is of_reference:
        sides = [(of_subject, [got, expected])]
    marked = [(mark, arrays) for mark, arrays in sides if mark is not None]
    if difference.verdict is not Verdict.MISMATCH or not marked:
        return difference
    excuses = [mark.excuse for mark, _ in marked]
    excuse = max(excuses, key=lambda excuse: (excuse.is_whole, bool(excuse.elements)))
    if difference.remark:  # shapes or types differ
        is_shape_unknown = any(mark.origins is None for mark, _ in marked) and got.dtype == expected.dtype
        if is_shape_unknown:
            return replace(difference, verdict=Verdict.CONTESTED, excuse=excuse)
        return difference
    mask = np.any([mark.mask(difference.tolerance, *arrays) for mark, arrays in marked], axis=0)
    rest = measure(got, expected, difference.tolerance, contested=mask)
    if rest.verdict is Verdict.MISMATCH:
        return replace(rest, excuse=excuse)
    return replace(difference, verdict=Verdict.CONTESTED, contested=rest.contested, excuse=excuse)


def find_one_sided(
    difference: Measure,
    got: Array,
    expected: Array,
    of_subject: Unspecified | None,
    of_reference: Unspecified | None,
    bound: Array | None = None,
) -> Measure | None:
    """Return a mismatch in elements that only one of two models specifies; None if there is none.

    If the first model does not specify an element, the second may compute any value that the first allows.
    Also None if the origins of single elements are unknown. Elements may differ by their `bound`.
    """
    marks = [mark for mark in (of_subject, of_reference) if mark is not None]
    if difference.verdict is not Verdict.MISMATCH or difference.remark or not marks:
        return None
    if any(mark.origins is None or mark.excuse.is_random for mark in marks):
        return None
    nowhere, tolerance = np.zeros(got.shape, np.bool_), difference.tolerance
    of_got = nowhere if of_subject is None else of_subject.mask(tolerance, got)
    of_expected = nowhere if of_reference is None else of_reference.mask(tolerance, expected)
    narrowed = nowhere if of_reference is None else of_reference.mask(tolerance, expected, got)
    mask = (of_got & of_expected) | (~of_got & narrowed)
    rest = measure(got, expected, tolerance, bound=bound, contested=mask)
    if rest.verdict is not Verdict.MISMATCH:
        return None
    of_both = measure(got, expected, tolerance, bound=bound, contested=of_got | of_expected)
    if of_both.verdict is Verdict.MISMATCH:
        return None  # elements that both models specify differ as well
    rest_of_got = measure(got, expected, tolerance, bound=bound, contested=mask | of_expected)
    side = SUBJECT if rest_of_got.verdict is Verdict.MISMATCH else REFERENCE
    return replace(rest, unspecified_in=side)


# How nodes propagate marks.


def declared_shape(step: Step, number: int) -> tuple[int, ...] | None:
    outputs = step.node.outputs
    return static(outputs[number].shape) if number < len(outputs) else None


def mark_scatter(
    step: Step,
    case: CheckedCase,
    result: DetailedResult,
    tensors: Mapping[Role, MarkedTensor],
    elements: ContestedElements,
) -> Unspecified | None:
    """Return the mark of a scatter node's output, and number its contested elements in `elements`."""
    marks = {role: tensor.mark for role, tensor in tensors.items() if tensor.mark is not None}
    is_shape_unknown = any(mark.origins is None for mark in marks.values())
    deciding = next((role for role in marks if role not in {Role.DATA, Role.UPDATES}), None)
    if deciding is not None:
        why = marks[deciding].why
        why = why or f"{deciding} of {step.node.type} {step.node.scope} depend on a contested element"
        return whole_tensor(why, None if is_shape_unknown else case.data.shape)
    why = first_reason(marks.values())
    if is_shape_unknown:
        return Unspecified(None, why)
    contested, task = result.contested, case.task
    if not marks and not contested.any():
        return None
    data, updates = tensors[Role.DATA].numbers, tensors[Role.UPDATES].numbers
    # elements that an unspecified update targets: scatter a mask of these updates with "max"
    hit = replace(task, reduction=Reduction.MAX, keeps_initial=True)
    is_hit = scatter(hit, np.zeros(data.shape, np.int8), case.indices, (updates != 0).astype(np.int8)) != 0
    if task.reduction is Reduction.NONE:
        origins = scatter(task, data, case.indices, updates)
    else:
        computed = np.where((data != 0) & task.keeps_initial, COMPUTED, _CERTAIN)
        origins = np.where(count_hits(task, data.shape, case.indices, updates.shape) > 0, computed, data)
        origins[is_hit] = COMPUTED
    if contested.any():
        origins[contested] = elements.add(result)[contested]
    if is_hit.any():  # unspecified updates may be equal in this run and different in another
        several = result.hits > 1 if task.reduction is Reduction.NONE else contested
        origins[several & is_hit] = COMPUTED
    return Unspecified(origins, why) if origins.any() else None


def mark_general(
    step: Step, tensors: Sequence[MarkedTensor | None], arrays: Sequence[Array | None]
) -> list[Unspecified | None]:
    """Return the mark of each output of a general operator's node that has no bodies.

    Args:
        step: the node.
        tensors: its inputs.
        arrays: its outputs, None for those that were not computed.
    """
    count = len(step.outputs)
    marks = {
        number: tensor.mark
        for number, tensor in enumerate(tensors)
        if tensor is not None and tensor.mark is not None
    }
    op = find(step.node.domain, step.node.type) if marks else None
    if op is not None and op.copies:  # a second input only sets the type
        marks = {number: mark for number, mark in marks.items() if number == 0}
    is_shape_unknown = any(mark.origins is None for mark in marks.values())
    if not marks or (op is not None and op.reads_shapes_only and not is_shape_unknown):
        return [None] * count
    upstream_reason = first_reason(marks.values())
    origins = None
    if op is not None and not is_shape_unknown:
        origins = _propagate_origins(step, op, tensors, set(marks), arrays)
    if origins is not None:
        return [Unspecified(array, upstream_reason) if array.any() else None for array in origins]
    why = upstream_reason or _reason_of_whole(step)
    constraints = step.work.constraints_in(step.node.domain) if isinstance(step.work, GeneralOp) else ()
    decides_shape = any(constraint.port in marks and constraint.decides_shape for constraint in constraints)
    if is_shape_unknown or decides_shape:
        return [Unspecified(None, why)] * count
    return [
        whole_tensor(why, declared_shape(step, number) if array is None else array.shape)
        for number, array in enumerate(arrays)
    ]


def _reason_of_whole(step: Step) -> str:
    return f"downstream of {step.node.type} {step.node.scope} every element may depend on a contested one"


def _propagate_origins(
    step: Step,
    op: GeneralOp,
    tensors: Sequence[MarkedTensor | None],
    marked_ports: set[int],
    arrays: Sequence[Array | None],
) -> Sequence[Array] | None:
    """Return the origins of all output elements; None if marks can only be given for whole tensors."""
    first, is_computed = tensors[0], isinstance(step.work, GeneralOp)
    is_choice = op.is_elementwise and op.moves
    if op.copies:
        assert first is not None
        output = arrays[0] if arrays else None
        if first.array is not None and output is not None and first.array.dtype == output.dtype:
            return [first.numbers]
        return [np.where(first.numbers != 0, COMPUTED, _CERTAIN)]  # converted to another type
    try:
        if is_computed and is_choice and len(tensors) == 3 and first and first.array is not None:
            origins = _move_origins(step, tensors, (1, 2))  # a choice between two tensors
            if origins is None or first.mark is None:
                return origins
            # where the condition is unspecified, either tensor may be chosen
            condition = np.broadcast_to(first.numbers != 0, origins[0].shape)
            return [np.where(condition, COMPUTED, origins[0])]
        moving = op.moved_inputs(len(tensors)) if is_computed and not is_choice else ()
        if moving:
            return _move_origins(step, tensors, moving) if marked_ports <= set(moving) else None
        count = len(tensors) if op.is_elementwise else 1 if op.is_pointwise else 0
        operands = [tensor for tensor in tensors[:count] if tensor is not None and tensor.shape is not None]
        is_numpy = str(step.node.attributes.get("auto_broadcast", "numpy")).lower() == "numpy"
        can_broadcast = is_numpy or len({tensor.shape for tensor in operands}) < 2
        if not marked_ports <= set(range(count)) or len(operands) < count or not can_broadcast:
            return None
        masks = np.broadcast_arrays(*(tensor.numbers != 0 for tensor in operands))
        return [np.where(np.any(masks, axis=0), COMPUTED, _CERTAIN)]
    except ValueError:  # shapes cannot be broadcast
        return None


def _move_origins(
    step: Step, tensors: Sequence[MarkedTensor | None], moving: Sequence[int]
) -> Sequence[Array] | None:
    """Return the origins of the outputs of a node that only moves elements, such as Transpose.

    The node's kernel runs on arrays of origins in place of the inputs numbered `moving`.
    """
    inputs = [None if tensor is None else tensor.array for tensor in tensors]
    for number in moving:
        tensor = tensors[number]
        if tensor is not None:
            inputs[number] = None if tensor.shape is None else tensor.numbers
    pairs = zip(tensors, inputs, strict=True)
    if any(tensor is not None and array is None for tensor, array in pairs):
        return None
    try:
        return compute_node(step, inputs)
    except (Error, MemoryError):
        return None


ContestedMasks = Mapping[str, Sequence[Array]]
"""Masks of contested elements seen in tensors from runners, by scope of the scatter node.

A node has one mask for each time that it was computed, for example in a loop.
"""


@dataclass(slots=True, eq=False)
class Observations:
    """What NumPy observes while it computes a model."""

    nodes: Collection[str] = ()
    """The scopes of all scatter nodes, as `validate` prints them."""
    guarded: dict[str, Guarded] = field(default_factory=dict)
    """A remark on the indices or values that a node got, by scope; only for nodes with something to remark.
    """
    unspecified: Mapping[str, Unspecified] | None = None
    """The marks of model outputs with unspecified elements, by output name; None if they are unknown."""
    entered: set[str] = field(default_factory=set)
    """The scopes of the branches, loop bodies and functions that ran."""
    unsure: set[str] = field(default_factory=set)
    """The scopes of branches and bodies that may have run; an unknown value decides."""
    not_computed: dict[str, NotComputed] = field(default_factory=dict)
    """The model outputs that NumPy does not compute, each with the node that prevents it."""

    def add(self, remark: Guarded) -> None:
        """Store a remark on a node, unless the node already has one.

        A remark on illegal inputs replaces one on legal inputs.
        """
        scope = scope_in_report(remark.node, self.nodes) or remark.node
        earlier = self.guarded.get(scope)
        if earlier is None or (remark.is_illegal and not earlier.is_illegal):
            self.guarded[scope] = replace(remark, node=scope)

    @property
    def contested(self) -> set[str]:
        """The scopes of the nodes with contested elements."""
        return {scope for scope, remark in self.guarded.items() if not remark.is_illegal}


def scope_in_report(scope: str, scopes: Collection[str]) -> str | None:
    """Return the shorter scope under which `validate` prints a node; None if it is not among `scopes`.

    Example: the full path through a call, "call:own::Store/written", is printed as "own::Store/written".
    """
    while scope not in scopes:
        _, colon, scope = scope.partition(":")
        if not colon:
            return None
    return scope


# A model that NumPy computes, except for values downstream of an unsupported operator.


class Watcher(Forward[MarkedTensor]):
    """Computes a model in NumPy, propagates marks of unspecified elements, and records observations.

    Tensors downstream of an operator that NumPy does not support have no values, but they have marks.
    """

    def __init__(self, plans: Plans, observations: Observations) -> None:
        super().__init__(plans)
        self.elements = ContestedElements()
        self._observations = observations
        self._undecided: dict[Step, str] = {}
        """For nodes whose branch or trip count depends on an unspecified element: the reason, as text."""
        self._scopes = {plan: flow.graph.scope for flow, plan in plans.items() if plan.is_body}
        self._facts = Facts()
        self._random_source = ""
        """Text about the operator that drew random numbers last."""
        self._computes, self._follows = True, False

    def graph(self, plan: Plan, cells: Sequence[MarkedTensor | None]) -> list[MarkedTensor | None]:
        if plan.is_body:
            self.note_body(self._scopes[plan])
        return super().graph(plan, cells)

    def note_body(self, scope: str) -> None:
        (self._observations.unsure if self._follows else self._observations.entered).add(scope)

    def lift(self, array: Array) -> MarkedTensor:
        return MarkedTensor(array)

    def array(self, cell: MarkedTensor) -> Array:
        assert cell.array is not None
        return cell.array

    def move(self, function: Callable[..., Array], *cells: MarkedTensor) -> MarkedTensor:
        marks = [cell.mark for cell in cells if cell.mark is not None]
        is_shape_unknown = any(mark.origins is None for mark in marks)
        if any(cell.array is None for cell in cells):
            mark = Unspecified(None, first_reason(marks)) if marks else None
            return MarkedTensor(None, mark, end=first_end(cells))
        array = function(*map(self.array, cells))
        if not marks:
            return MarkedTensor(array)
        origins = None if is_shape_unknown else function(*(cell.numbers for cell in cells))
        return MarkedTensor(array, Unspecified(origins, first_reason(marks)))

    def is_unknown(self, cell: MarkedTensor | None) -> bool:
        return cell is not None and cell.array is None

    def uncontrolled(
        self, step: Step, cells: list[MarkedTensor | None], control: MarkedTensor
    ) -> Sequence[MarkedTensor | None]:
        return self.follow(step, cells, control.end)

    def scalar(self, step: Step, cell: MarkedTensor | None, noun: str) -> Any:
        """Return the scalar that selects a branch or bounds a loop.

        If it is unspecified, all outputs of the node become unspecified.
        """
        if _is_unspecified(cell):
            node = step.node
            self._undecided[step] = f"{noun} of {node.type} {node.scope} depends on a contested element"
        return super().scalar(step, cell, noun)

    def step(self, step: Step, cells: list[MarkedTensor | None]) -> Sequence[MarkedTensor | None]:
        if self._follows and isinstance(step.work, Choice | Repeat):
            return self.follow(step, cells, None)
        outputs = super().step(step, cells)
        why = self._undecided.pop(step, None)
        if why is None:
            return outputs
        return [
            None if output is None else MarkedTensor(output.array, Unspecified(None, why), end=output.end)
            for output in outputs
        ]

    def advance(
        self,
        step: Step,
        work: Repeat,
        carried: Sequence[MarkedTensor | None],
        captured: Sequence[MarkedTensor | None],
        outputs: Sequence[MarkedTensor | None],
        fast: Shortcut,
        done: int,
        limit: int | None,
    ) -> LoopProgress[MarkedTensor] | None:
        """Compute loop iterations on plain arrays, which is faster, until one would produce a mark.

        The caller computes that iteration with marks.
        """
        if self._follows:
            return None
        progress = advance_arrays(
            self, work, carried, captured, fast, done, limit, _array_without_mark, _bind_node
        )
        if progress is None:
            return None
        results = [None if array is None else MarkedTensor(array) for array in progress.outputs]
        parts = [[*map(MarkedTensor, of_output)] for of_output in progress.parts]
        return LoopProgress(progress.done, results, parts, progress.goes_on)

    def compute(self, step: Step, cells: list[MarkedTensor | None]) -> Sequence[MarkedTensor | None]:
        outputs: list[MarkedTensor]
        end = end_of_computation(step, [_any_truth(cell) for cell in cells]) or first_end(cells)
        if end is not None and end.is_random and end.node is step.node:
            self._random_source = f"{step.node.type} {step.node.scope} {RANDOM}"
            shapes = [static(self._facts.shape(value)) for value in step.node.outputs]
            outputs = [MarkedTensor(None, whole_tensor(self._random_source, shape)) for shape in shapes]
        elif isinstance(step.work, Lookup):
            outputs = [self.compute_scatter(step, cells)]
        else:
            try:
                arrays = self.compute_general(step, cells)
            except EvaluationFailed as error:
                end, arrays = end_by_refusal(step, error), [None] * len(step.outputs)
            marks = mark_general(step, cells, arrays)
            outputs = [MarkedTensor(array, mark) for array, mark in zip(arrays, marks, strict=False)]
        return self.with_declared_shapes(step, outputs, end)

    def with_declared_shapes(
        self, step: Step, outputs: Sequence[MarkedTensor], end: NotComputed | None
    ) -> list[MarkedTensor]:
        """Complete the outputs that have no array.

        Each gets its declared shape, and `end`, the unsupported node.
        """
        values, complete = step.node.outputs, list[MarkedTensor]()
        for number, output in enumerate(outputs):
            if output.array is None:
                shape = static(self._facts.shape(values[number])) if number < len(values) else None
                output = MarkedTensor(None, output.mark, shape, end)
            complete.append(output)
        return complete

    def compute_general(self, step: Step, tensors: Sequence[MarkedTensor | None]) -> Sequence[Array | None]:
        if isinstance(step.work, GeneralOp) and self._computes and _are_known(tensors):
            return compute_node(step, arrays_of(tensors))
        return [None] * len(step.outputs)

    def compute_scatter(self, step: Step, tensors: Sequence[MarkedTensor | None]) -> MarkedTensor:
        """Compute a scatter node to check its indices, even if data or updates are unknown.

        Zeros replace unknown data and updates; the output then has a mark but no array.
        """
        assert isinstance(step.work, Lookup)
        assert step.work.spec is not None
        if not self._computes:
            return self.unknown_scatter(step, tensors)
        if _are_known(tensors):
            return self.compute_known_scatter(step, tensors)
        completed = list(tensors)
        for number, (port, tensor) in enumerate(zip(step.work.spec.ports, tensors, strict=False)):
            if tensor is not None and tensor.array is None and port.role in {Role.DATA, Role.UPDATES}:
                value = step.node.inputs[number].value
                type = None if value is None or value.element_type is None else dtype(value.element_type)
                if tensor.declared is not None and type is not None and not type.hasobject:
                    zeros = np.broadcast_to(np.zeros((), type), tensor.declared)
                    completed[number] = MarkedTensor(zeros, tensor.mark)
        if _are_known(completed):
            with suppress(Error, MemoryError):  # the remark was entered
                place = step.work.spec.port_index(Role.UPDATES)
                updates = None if place is None or place >= len(tensors) else tensors[place]
                knows_updates = updates is not None and updates.array is not None
                output = self.compute_known_scatter(step, completed, knows_updates=knows_updates)
                if output.mark is None or output.mark.origins is None:
                    return MarkedTensor(None, output.mark)
                return MarkedTensor(None, unspecified_where(output.mark.origins != 0, output.mark.why))
        return self.unknown_scatter(step, tensors)

    def unknown_scatter(self, step: Step, tensors: Sequence[MarkedTensor | None]) -> MarkedTensor:
        """Return an output without an array, for a node that is not computed or has unknown indices."""
        if not any(map(_is_unspecified, tensors)):
            return MarkedTensor(None)
        return MarkedTensor(None, whole_tensor(_reason_of_whole(step), declared_shape(step, 0)))

    def compute_known_scatter(
        self, step: Step, tensors: Sequence[MarkedTensor | None], *, knows_updates: bool = True
    ) -> MarkedTensor:
        """Compute a scatter node whose inputs have arrays, and store a remark on its indices.

        With `knows_updates` False the updates are placeholders: they may differ in truth.
        """
        scatter = scatter_node_of(step)
        try:
            case = case_of_node(scatter, arrays_of(tensors))
            result = detail(case, knows_updates=knows_updates or scatter.has_equal_updates)
        except Error as error:
            if isinstance(error, IllegalCase):
                self._observations.add(Guarded.illegal(NUMPY, scatter, 0, error))
            raise failure(step, str(error), breaks_rule=isinstance(error, IllegalCase)) from error
        except MemoryError as error:
            raise failure(step, "there is not enough memory") from error
        if remark := Guarded.contested(NUMPY, scatter, 0, result):
            self._observations.add(remark)
        mark = mark_scatter(step, case, result, by_role(scatter.lookup, tensors), self.elements)
        self.note_scatter(case, result)
        return MarkedTensor(result.values, mark)

    def note_scatter(self, case: CheckedCase, result: DetailedResult) -> None:
        """Do nothing; a subclass may record each computed scatter node here."""

    def follow(
        self, step: Step, cells: list[MarkedTensor | None], end: NotComputed | None
    ) -> list[MarkedTensor | None]:
        """Return outputs without arrays for a node with bodies.

        Outputs that depend on an unspecified value get a mark.
        """
        self._random_source = ""
        depends = self._find_dependent_outputs(step, cells)
        why = first_reason([cell.mark for cell in cells if cell is not None]) or self._random_source
        why = why or f"the result of {step.node.type} {step.node.scope} depends on a contested element"
        outputs = [
            MarkedTensor(None, whole_tensor(why, declared_shape(step, number)) if is_dependent else None)
            for number, is_dependent in enumerate(depends)
        ]
        return [*self.with_declared_shapes(step, outputs, end)]

    def _find_dependent_outputs(self, step: Step, cells: list[MarkedTensor | None]) -> list[bool]:
        """Return a flag per output: whether it depends on an unspecified value in any branch or iteration."""
        work = step.work
        inputs: list[MarkedTensor | None] = [
            _UNSPECIFIED if _is_unspecified(cell) else _UNKNOWN for cell in cells
        ]
        before = self._computes, self._follows
        self._computes, self._follows = False, True
        try:
            if isinstance(work, Repeat):
                return self._find_dependent_outputs_of_loop(step, work, inputs)
            assert isinstance(work, Call | Choice)
            calls = work.branches.values() if isinstance(work, Choice) else [work]
            outputs = zip(*(self.call(step, call, inputs) for call in calls), strict=True)
            is_any = isinstance(work, Choice) and _is_unspecified(inputs[work.condition])
            return [is_any or any(map(_is_unspecified, alternatives)) for alternatives in outputs]
        finally:
            self._computes, self._follows = before

    def _find_dependent_outputs_of_loop(
        self, step: Step, work: Repeat, inputs: list[MarkedTensor | None]
    ) -> list[bool]:
        """Iterate the loop body until the marks of loop-carried values stop changing.

        Return a flag per output: whether it may depend on an unspecified value.
        """
        plan = self.plans[work.body]
        captured = self.captured(step, plan, inputs)
        body_inputs = [None if input.outer is None else inputs[input.outer] for input in work.inputs]
        carried = [
            (number, input.successor)
            for number, input in enumerate(work.inputs)
            if input.successor is not None
        ]
        before = None
        while before != body_inputs:
            before, outputs = list(body_inputs), self.graph(plan, [*body_inputs, *captured])
            for number, successor in carried:
                if _is_unspecified(outputs[successor]):
                    body_inputs[number] = _UNSPECIFIED
        control = [inputs[number] for number in (work.trips, work.condition) if number is not None]
        control += [] if work.goes_on is None else [outputs[work.goes_on]]
        if any(map(_is_unspecified, control)):
            return [True] * len(step.outputs)
        # without iterations an output of a carried value is its initial value
        initial = {successor for number, successor in carried if _is_unspecified(body_inputs[number])}
        return [output.inner in initial or _is_unspecified(outputs[output.inner]) for output in work.outputs]

    def watch(self, plan: Plan, arrays: Sequence[Array]) -> list[MarkedTensor | None]:
        """Compute the main graph; record which outputs have marks, and which could not be computed."""
        tensors = self.run(plan, list(map(MarkedTensor, arrays)))
        named = {output.name: tensor for output, tensor in zip(plan.outputs, tensors, strict=True)}
        self._observations.unspecified = {
            name: replace(tensor.mark, contested=self.elements)
            for name, tensor in named.items()
            if tensor is not None and tensor.mark is not None
        }
        self._observations.not_computed |= {
            name: tensor.end
            for name, tensor in named.items()
            if tensor is not None and tensor.array is None and tensor.end is not None
        }
        return tensors


def _array_without_mark(tensor: MarkedTensor) -> Array | None:
    return tensor.array if tensor.mark is None else None


def _bind_node(step: Step, arrays: Sequence[Array | None], fixed: Sequence[bool]) -> BoundKernel:
    if end_of_computation(step, arrays) is not None:
        raise Unbound
    return bind_node(step, arrays, fixed, refuses_repeats=True)


def first_end(tensors: Iterable[MarkedTensor | None]) -> NotComputed | None:
    """Return the unsupported node that made the first of these tensors unknown; None if all are known."""
    return next((tensor.end for tensor in tensors if tensor is not None and tensor.end is not None), None)


def arrays_of(tensors: Sequence[MarkedTensor | None]) -> list[Array | None]:
    return [None if tensor is None else tensor.array for tensor in tensors]


# A model that NumPy can compute only in part.


def watch_partially(
    sketch: Sketch,
    feeds: Mapping[str, Any],
    observations: Observations,
    masks: ContestedMasks,
    *,
    computes: bool = True,
) -> None:
    """Compute the part of the main graph that NumPy supports, to observe indices and unspecified outputs.

    Args:
        sketch: the model.
        feeds: its inputs by name.
        observations: receives what is observed.
        masks: the contested elements seen in tensors from runners.
        computes: False to only propagate marks, which takes less time.
    """
    watcher = _PartialWatcher(sketch.plans, observations, masks, computes=computes)
    watcher.watch(sketch.plan, check_feeds(sketch.inputs, feeds))


class _PartialWatcher(Watcher):
    """Computes the supported part of a graph; in bodies it only propagates marks."""

    def __init__(
        self, plans: Plans, observations: Observations, masks: ContestedMasks, *, computes: bool
    ) -> None:
        super().__init__(plans, observations)
        self._masks, self._computes = masks, computes

    def fetch(self, plan: Plan, values: dict[Key, MarkedTensor | None], key: Key) -> MarkedTensor | None:
        """Like `Forward.fetch`, but with an unknown tensor for a constant that cannot be read."""
        if key not in plan.constants:
            return values.get(key)
        try:
            return super().fetch(plan, values, key)
        except Error:
            return MarkedTensor(None)

    def note_body(self, scope: str) -> None:
        """Do nothing.

        Marks are propagated through every body, so entering one does not mean that it runs.
        """

    def step(self, step: Step, cells: list[MarkedTensor | None]) -> Sequence[MarkedTensor | None]:
        if isinstance(step.work, Call | Choice | Repeat):
            return self.follow(step, cells, None)
        outputs = [output or MarkedTensor(None) for output in super().step(step, cells)]
        return self.with_declared_shapes(step, outputs, None)

    def compute_general(self, step: Step, tensors: Sequence[MarkedTensor | None]) -> Sequence[Array | None]:
        arrays: Sequence[Array | None] = ()
        with suppress(Error, MemoryError):  # the outputs stay unknown
            arrays = super().compute_general(step, tensors)
        return [*arrays, *[None] * (len(step.outputs) - len(arrays))]

    def compute_known_scatter(
        self, step: Step, tensors: Sequence[MarkedTensor | None], *, knows_updates: bool = True
    ) -> MarkedTensor:
        """Compute a scatter node; if its inputs are illegal, store a remark and return an unknown output."""
        try:
            return super().compute_known_scatter(step, tensors, knows_updates=knows_updates)
        except (Error, MemoryError):
            return self.unknown_scatter(step, tensors)

    def unknown_scatter(self, step: Step, tensors: Sequence[MarkedTensor | None]) -> MarkedTensor:
        """Return an output without an array, with a mark from the masks of contested elements."""
        masks = self._masks.get(scope_in_report(step.node.scope, self._masks) or "", ())
        if any(map(_is_unspecified, tensors)) or not masks:
            return super().unknown_scatter(step, tensors)
        if len({mask.shape for mask in masks}) == 1:
            return MarkedTensor(None, unspecified_where(np.any(masks, axis=0)))
        return MarkedTensor(None, whole_tensor(_reason_of_whole(step), declared_shape(step, 0)))


_TRUE = np.ones((), np.bool_)


def _any_truth(tensor: MarkedTensor | None) -> Array | None:
    """Return a tensor's array; for an unknown tensor, an array of true.

    With an unknown training mode, an operator such as Dropout then counts as random.
    """
    return None if tensor is None else _TRUE if tensor.array is None else tensor.array


def _are_known(tensors: Sequence[MarkedTensor | None]) -> bool:
    return all(tensor is None or tensor.array is not None for tensor in tensors)


_UNKNOWN, _UNSPECIFIED = MarkedTensor(None), MarkedTensor(None, whole_tensor("", None))


def _is_unspecified(tensor: MarkedTensor | None) -> bool:
    return tensor is not None and tensor.mark is not None
