"""What of a model's outputs the document leaves open: elements that a contested one can reach.

Where several updates meet in an element without a reduction, any of them may stay. Operators that move
elements, and those that work element by element, hand that on for single elements: what moves is a
number for each element, beside the element. Behind every other operator a whole tensor is open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ir_scatter.analysis.interpreter import Step
from ir_scatter.compare.measure import measure
from ir_scatter.compare.result import Excuse, Measure, Verdict
from ir_scatter.compare.tolerance import Tolerance
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import Error
from ir_scatter.core.shapes import static
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.evaluate.model import compute_node
from ir_scatter.evaluate.operator import Case
from ir_scatter.ops.general import GeneralOp, find
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.ops.kernels.certainty import count_hits
from ir_scatter.ops.spec import Reduction, Role

COMPUTED = np.int64(-1)
"""The number of an element that was computed from a contested one, or may be one: nothing is known of it."""

_CERTAIN = np.int64(0)

_ROUNDS = 16
"""So many copies of one contested element are looked at; further ones are open."""


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """What of a tensor is open.

    Attributes:
        origins: i64 of the tensor's shape: 0 for an element that is not open, the number of a contested
            element that only was moved, or `COMPUTED`. None if not even the shape is certain.
        why: which operator made more of it open than the elements that are reached; "" if none did.
    """

    origins: Array | None
    why: str = ""


def computed(where: Array, why: str = "") -> Open:
    """Say that some elements are open, and nothing of their values."""
    return Open(np.where(where, COMPUTED, _CERTAIN), why)


def whole(why: str, shape: tuple[int, ...] | None) -> Open:
    """Say that all of a tensor is open, its shape as well if that is not known."""
    return Open(None if shape is None else np.broadcast_to(COMPUTED, shape), why)


@dataclass(frozen=True, slots=True, eq=False)
class Marked:
    """A tensor on its way through a model, as far as it is known, and what of it is open.

    `declared` is its shape where nothing else is known.
    """

    array: Array | None
    open: Open | None = None
    declared: tuple[int, ...] | None = None

    @property
    def origins(self) -> Array | None:
        return None if self.open is None else self.open.origins

    @property
    def shape(self) -> tuple[int, ...] | None:
        known = self.origins if self.array is None else self.array
        return self.declared if known is None else tuple(known.shape)

    @property
    def numbers(self) -> Array:
        """Return a number for each element, 0 for those that are not open; the shape must be known."""
        assert self.shape is not None
        return np.broadcast_to(_CERTAIN, self.shape) if self.origins is None else self.origins


class Register:
    """Gives contested elements their numbers, and knows which values each of them may have."""

    def __init__(self) -> None:
        self._results: list[tuple[int, DetailedResult]] = []
        self._next = 1

    def add(self, result: DetailedResult) -> Array:
        """Return the numbers of all elements of a result."""
        start, count = self._next, result.values.size
        self._results.append((start, result))
        self._next += count
        return np.arange(start, start + count, dtype=np.int64).reshape(result.values.shape)

    def allowed(self, numbers: Array, values: Array, tolerance: Tolerance) -> Array:
        """Tell for each contested element whether a value is one of those that the document allows.

        A number may occur more than once.
        """
        found = np.ones(numbers.shape, np.bool_)
        for start, result in self._results:
            flat = result.values.reshape(-1)
            left = np.flatnonzero((numbers >= start) & (numbers < start + flat.size))
            for _ in range(_ROUNDS if flat.dtype == values.dtype else 0):
                places, first = np.unique(numbers[left] - start, return_index=True)
                if not places.size:
                    break
                probe = flat.copy()
                probe[places] = values[left[first]]
                probe = probe.reshape(result.values.shape)
                allowed = result.allows(probe, tolerance.absolute, tolerance.relative)
                found[left[first]] = allowed.reshape(-1)[places]
                left = np.delete(left, first)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class OpenOutput:
    """What of an output of a model is open, and which values its contested elements may have."""

    open: Open
    register: Register

    @property
    def excuse(self) -> Excuse:
        origins = self.open.origins
        return Excuse(None if origins is None else int(np.count_nonzero(origins)), self.open.why)

    def where(self, tolerance: Tolerance, *arrays: Array) -> Array:
        """Tell which elements are open; those that none of the allowed updates can have become are not."""
        origins, shape = self.open.origins, arrays[0].shape
        if origins is None:
            return np.ones(shape, np.bool_)
        if origins.shape != shape:
            return np.zeros(shape, np.bool_)
        numbers = origins.reshape(-1)
        found = numbers != 0
        moved = np.flatnonzero(numbers > 0)
        for array in arrays if moved.size else ():
            found[moved] &= self.register.allowed(numbers[moved], array.reshape(-1)[moved], tolerance)
        where: Array = found.reshape(shape)
        return where


def excused(
    found: Measure,
    got: Array,
    expected: Array,
    of_subject: OpenOutput | None,
    of_reference: OpenOutput | None,
) -> Measure:
    """Leave out of a mismatch what the document leaves open in the model of either side."""
    sides = [(of_subject, [got]), (of_reference, [expected])]
    if of_subject is of_reference:
        sides = [(of_subject, [got, expected])]
    known = [(one, arrays) for one, arrays in sides if one is not None]
    if found.verdict is not Verdict.MISMATCH or not known:
        return found
    excuse = max((one.excuse for one, _ in known), key=lambda one: (one.is_whole, bool(one.elements)))
    if found.remark:
        is_open = any(one.open.origins is None for one, _ in known) and got.dtype == expected.dtype
        return replace(found, verdict=Verdict.CONTESTED, excuse=excuse) if is_open else found
    where = np.any([one.where(found.tolerance, *arrays) for one, arrays in known], axis=0)
    rest = measure(got, expected, found.tolerance, contested=where)
    if rest.verdict is Verdict.MISMATCH:
        return replace(rest, excuse=excuse)
    return replace(found, verdict=Verdict.CONTESTED, contested=rest.contested, excuse=excuse)


# How nodes hand it on.


def shape_of(step: Step, number: int, array: Array | None = None) -> tuple[int, ...] | None:
    """Return the shape of an output, computed or declared; None if it is not known."""
    if array is not None:
        return tuple(array.shape)
    outputs = step.node.outputs
    return static(outputs[number].shape) if number < len(outputs) else None


def scattered(
    step: Step, case: Case, result: DetailedResult, cells: Mapping[Role, Marked], register: Register
) -> Open | None:
    """Return what of the output of a scatter node is open."""
    marks = {role: cell.open for role, cell in cells.items() if cell.open is not None}
    is_free = any(one.origins is None for one in marks.values())
    deciding = next((role for role in marks if role not in {Role.DATA, Role.UPDATES}), None)
    if deciding is not None:
        why = f"{deciding} of {step.node.type} {step.node.scope} depend on a contested element"
        return whole(why, None if is_free else case.data.shape)
    why = next((one.why for one in marks.values() if one.why), "")
    if is_free:
        return Open(None, why)
    contested, task = result.contested, case.task
    if not marks and not contested.any():
        return None
    data, updates = cells[Role.DATA].numbers, cells[Role.UPDATES].numbers
    # elements that are hit by an open update
    hit = replace(task, reduction=Reduction.MAX, keeps_initial=True)
    is_hit = scatter(hit, np.zeros(data.shape, np.int8), case.indices, (updates != 0).astype(np.int8)) != 0
    if task.reduction is Reduction.NONE:
        found = scatter(task, data, case.indices, updates)
    else:
        computed = np.where((data != 0) & task.keeps_initial, COMPUTED, _CERTAIN)
        found = np.where(count_hits(task, data.shape, case.indices, updates.shape) > 0, computed, data)
        found[is_hit] = COMPUTED
    if contested.any():
        found[contested] = register.add(result)[contested]
        found[contested & is_hit] = COMPUTED
    return Open(found, why) if found.any() else None


def spread(step: Step, cells: Sequence[Marked | None], arrays: Sequence[Array | None]) -> list[Open | None]:
    """Return what of the outputs of a node is open; of one without bodies that is no scatter node.

    `arrays` are the outputs, as far as they were computed.
    """
    count = len(step.outputs)
    touched = {number for number, cell in enumerate(cells) if cell is not None and cell.open is not None}
    op = find(step.node.domain, step.node.type) if touched else None
    if op is not None and op.copies:
        touched &= {0}  # a second input only tells the type
    is_free = any(cell is not None and cell.origins is None for cell in (cells[number] for number in touched))
    if not touched or (op is not None and op.reads_shapes_only and not is_free):
        return [None] * count
    before = next((cell.open.why for cell in cells if cell and cell.open and cell.open.why), "")
    found = None if op is None or is_free else _moved(step, op, cells, touched, arrays)
    if found is not None:
        return [Open(one, before) if one.any() else None for one in found]
    why = before or f"behind {step.node.type} {step.node.scope} every element may depend on a contested one"
    constraints = step.work.constraints_in(step.node.domain) if isinstance(step.work, GeneralOp) else ()
    if is_free or any(one.port in touched and one.decides_shape for one in constraints):
        return [Open(None, why)] * count
    known = [*arrays, *[None] * (count - len(arrays))]
    return [whole(why, shape_of(step, number, known[number])) for number in range(count)]


def _moved(
    step: Step,
    op: GeneralOp,
    cells: Sequence[Marked | None],
    touched: set[int],
    arrays: Sequence[Array | None],
) -> Sequence[Array] | None:
    """Return the numbers of the elements of the outputs, None if single elements cannot be followed."""
    first, is_computed = cells[0], isinstance(step.work, GeneralOp)
    if op.copies:
        assert first is not None
        output = arrays[0] if arrays else None
        if first.array is not None and output is not None and first.array.dtype == output.dtype:
            return [first.numbers]
        return [np.where(first.numbers != 0, COMPUTED, _CERTAIN)]  # of another type
    if (
        is_computed
        and op.is_elementwise
        and op.moves
        and len(cells) == 3
        and first
        and first.array is not None
    ):
        found = _followed(step, cells, (1, 2))  # a choice between two tensors
        if found is None or first.open is None:
            return found
        try:  # an open condition may choose either
            return [np.where(np.broadcast_to(first.numbers != 0, found[0].shape), COMPUTED, found[0])]
        except ValueError:
            return None
    moving = op.moved_inputs(len(cells)) if is_computed and not (op.is_elementwise and op.moves) else ()
    if moving:
        return _followed(step, cells, moving) if touched <= set(moving) else None
    by_element = len(cells) if op.is_elementwise else 1 if op.is_pointwise else 0
    return _by_element(cells[:by_element], step) if touched <= set(range(by_element)) else None


def _followed(step: Step, cells: Sequence[Marked | None], moving: Sequence[int]) -> Sequence[Array] | None:
    """Let an operator that moves elements move their numbers."""
    inputs = [None if cell is None else cell.array for cell in cells]
    for number in moving:
        cell = cells[number]
        if cell is not None:
            inputs[number] = None if cell.shape is None else cell.numbers
    if any(cell is not None and array is None for cell, array in zip(cells, inputs, strict=True)):
        return None
    try:
        return compute_node(step, inputs)
    except (Error, MemoryError):
        return None


def _by_element(cells: Sequence[Marked | None], step: Step) -> Sequence[Array] | None:
    """Return which elements of the output are made of open ones, if shapes meet at their ends."""
    known = [cell for cell in cells if cell is not None and cell.shape is not None]
    is_numpy = str(step.node.attributes.get("auto_broadcast", "numpy")).lower() == "numpy"
    if len(known) < len(cells) or (len({cell.shape for cell in known}) > 1 and not is_numpy):
        return None
    try:
        open = np.broadcast_arrays(*(cell.numbers != 0 for cell in known))
    except ValueError:
        return None
    return [np.where(np.any(open, axis=0), COMPUTED, _CERTAIN)]
