"""What of a model's outputs the document leaves open, and what its indices were: NumPy computes both.

Where several updates that differ meet in an element without a reduction, any of them may stay. Operators
that move elements, and those that work element by element, hand that on for single elements: what moves is
a number for each element, beside the element. Behind every other operator a whole tensor is open. Where
NumPy does not know an operator, or a model breaks a rule, as much is computed as can be.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.interpreter import Forward, Plan, Plans, Step, failure
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
from ir_scatter.compare.result import NUMPY, Guarded
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import Call, Choice, Key, Repeat
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import Error, IllegalCase
from ir_scatter.core.shapes import static
from ir_scatter.evaluate.certainty import DetailedResult, detail
from ir_scatter.evaluate.model import (
    Sketch,
    by_role,
    case_of_node,
    check_feeds,
    compute_node,
    scatter_node_of,
)
from ir_scatter.evaluate.operator import CheckedCase
from ir_scatter.ops.general import GeneralOp, find
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.ops.kernels.certainty import count_hits
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Reduction, Role

COMPUTED = np.int64(-1)
"""The number of an element that was computed from a contested one, or may be one: nothing is known of it."""

_CERTAIN = np.int64(0)

_ROUNDS = 16
"""So many copies of one contested element are looked at; further ones are open."""


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
class Open:
    origins: Array | None
    """i64 of the tensor's shape: 0 for an element that is not open, the number of a contested one that
    only was moved, or `COMPUTED`. None if not even the shape is certain."""
    why: str = ""
    """Which operator made more of it open than the elements that are reached."""
    register: Register = field(default_factory=Register)
    """Of an output of a model: which values its contested elements may have."""

    @property
    def excuse(self) -> Excuse:
        return Excuse(None if self.origins is None else int(np.count_nonzero(self.origins)), self.why)

    def where(self, tolerance: Tolerance, *arrays: Array) -> Array:
        """Tell which elements are open; those that none of the allowed updates can have become are not."""
        shape = arrays[0].shape
        if self.origins is None or self.origins.shape != shape:
            return np.full(shape, self.origins is None)
        numbers = self.origins.reshape(-1)
        found = numbers != 0
        moved = np.flatnonzero(numbers > 0)
        for array in arrays if moved.size else ():
            found[moved] &= self.register.allowed(numbers[moved], array.reshape(-1)[moved], tolerance)
        where: Array = found.reshape(shape)
        return where


def why_of(marks: Iterable[Open | None]) -> str:
    return next((one.why for one in marks if one is not None and one.why), "")


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


def excused(
    found: Measure, got: Array, expected: Array, of_subject: Open | None, of_reference: Open | None
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
        is_open = any(one.origins is None for one, _ in known) and got.dtype == expected.dtype
        return replace(found, verdict=Verdict.CONTESTED, excuse=excuse) if is_open else found
    where = np.any([one.where(found.tolerance, *arrays) for one, arrays in known], axis=0)
    rest = measure(got, expected, found.tolerance, contested=where)
    if rest.verdict is Verdict.MISMATCH:
        return replace(rest, excuse=excuse)
    return replace(found, verdict=Verdict.CONTESTED, contested=rest.contested, excuse=excuse)


def open_once(
    found: Measure, got: Array, expected: Array, of_subject: Open | None, of_reference: Open | None
) -> Measure | None:
    """Return a mismatch of two models where one of them leaves an element open, and the other one does not.

    The second model may compute what the first one leaves open, if that is a value which it allows. None if
    there is no such mismatch, or nothing can be said of single elements.
    """
    sides = [one for one in (of_subject, of_reference) if one is not None]
    if found.verdict is not Verdict.MISMATCH or found.remark or not sides:
        return None
    if any(one.origins is None or one.excuse.is_random for one in sides):
        return None
    nowhere, tolerance = np.zeros(got.shape, np.bool_), found.tolerance
    of_got = nowhere if of_subject is None else of_subject.where(tolerance, got)
    of_expected = nowhere if of_reference is None else of_reference.where(tolerance, expected)
    narrowed = nowhere if of_reference is None else of_reference.where(tolerance, expected, got)
    where = (of_got & of_expected) | (~of_got & narrowed)
    rest = measure(got, expected, tolerance, contested=where)
    if rest.verdict is not Verdict.MISMATCH:
        return None
    if measure(got, expected, tolerance, contested=of_got | of_expected).verdict is Verdict.MISMATCH:
        return None  # they differ elsewhere, too
    rest_of_got = measure(got, expected, tolerance, contested=where | of_expected)
    side = SUBJECT if rest_of_got.verdict is Verdict.MISMATCH else REFERENCE
    return replace(rest, open_once=side)


# How nodes hand it on.


def declared_shape(step: Step, number: int) -> tuple[int, ...] | None:
    outputs = step.node.outputs
    return static(outputs[number].shape) if number < len(outputs) else None


def scattered(
    step: Step, case: CheckedCase, result: DetailedResult, cells: Mapping[Role, Marked], register: Register
) -> Open | None:
    """Return what of the output of a scatter node is open."""
    marks = {role: cell.open for role, cell in cells.items() if cell.open is not None}
    is_free = any(one.origins is None for one in marks.values())
    deciding = next((role for role in marks if role not in {Role.DATA, Role.UPDATES}), None)
    if deciding is not None:
        why = marks[deciding].why
        why = why or f"{deciding} of {step.node.type} {step.node.scope} depend on a contested element"
        return whole(why, None if is_free else case.data.shape)
    why = why_of(marks.values())
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
    if is_hit.any():  # which may be other numbers in another run, though they were equal in this one
        several = result.hits > 1 if task.reduction is Reduction.NONE else contested
        found[several & is_hit] = COMPUTED
    return Open(found, why) if found.any() else None


def draws_numbers(step: Step, cells: Sequence[Marked | None]) -> bool:
    """Tell whether a node draws random numbers, or may."""
    op = find(step.node.domain, step.node.type)
    if op is None or not op.draws or op.draws_if is None:
        return op is not None and op.draws
    condition = cells[op.draws_if] if op.draws_if < len(cells) else None
    return condition is not None and (condition.array is None or bool(condition.array.any()))


def spread(step: Step, cells: Sequence[Marked | None], arrays: Sequence[Array | None]) -> list[Open | None]:
    """Return what of the outputs of a node is open; of one without bodies that is no scatter node.

    `arrays` are the outputs, as far as they were computed.
    """
    count = len(step.outputs)
    marks = {number: cell.open for number, cell in enumerate(cells) if cell is not None and cell.open}
    op = find(step.node.domain, step.node.type) if marks else None
    if op is not None and op.copies:
        marks = {number: one for number, one in marks.items() if number == 0}  # a second tells only the type
    is_free = any(one.origins is None for one in marks.values())
    if not marks or (op is not None and op.reads_shapes_only and not is_free):
        return [None] * count
    before = why_of(marks.values())
    found = None if op is None or is_free else _moved(step, op, cells, set(marks), arrays)
    if found is not None:
        return [Open(one, before) if one.any() else None for one in found]
    why = before or f"behind {step.node.type} {step.node.scope} every element may depend on a contested one"
    constraints = step.work.constraints_in(step.node.domain) if isinstance(step.work, GeneralOp) else ()
    if is_free or any(one.port in marks and one.decides_shape for one in constraints):
        return [Open(None, why)] * count
    return [
        whole(why, declared_shape(step, number) if array is None else array.shape)
        for number, array in enumerate(arrays)
    ]


def _moved(
    step: Step,
    op: GeneralOp,
    cells: Sequence[Marked | None],
    touched: set[int],
    arrays: Sequence[Array | None],
) -> Sequence[Array] | None:
    """Return the numbers of the elements of the outputs, None if single elements cannot be followed."""
    first, is_computed, is_choice = cells[0], isinstance(step.work, GeneralOp), op.is_elementwise and op.moves
    if op.copies:
        assert first is not None
        output = arrays[0] if arrays else None
        if first.array is not None and output is not None and first.array.dtype == output.dtype:
            return [first.numbers]
        return [np.where(first.numbers != 0, COMPUTED, _CERTAIN)]  # of another type
    try:
        if is_computed and is_choice and len(cells) == 3 and first and first.array is not None:
            found = _followed(step, cells, (1, 2))  # a choice between two tensors
            if found is None or first.open is None:
                return found
            # an open condition may choose either
            return [np.where(np.broadcast_to(first.numbers != 0, found[0].shape), COMPUTED, found[0])]
        moving = op.moved_inputs(len(cells)) if is_computed and not is_choice else ()
        if moving:
            return _followed(step, cells, moving) if touched <= set(moving) else None
        count = len(cells) if op.is_elementwise else 1 if op.is_pointwise else 0
        known = [cell for cell in cells[:count] if cell is not None and cell.shape is not None]
        is_numpy = str(step.node.attributes.get("auto_broadcast", "numpy")).lower() == "numpy"
        is_alike = is_numpy or len({cell.shape for cell in known}) < 2
        if not touched <= set(range(count)) or len(known) < count or not is_alike:
            return None
        open = np.broadcast_arrays(*(cell.numbers != 0 for cell in known))
        return [np.where(np.any(open, axis=0), COMPUTED, _CERTAIN)]
    except ValueError:  # shapes do not meet
        return None


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


Seeds = Mapping[str, Sequence[Array]]
"""By the scope of a scatter node: where runners found it contested, once for each computation."""


@dataclass(slots=True, eq=False)
class Sight:
    """What was seen while a model was computed."""

    nodes: Collection[str] = ()
    """Those that there are, as `validate` prints them."""
    seen: dict[str, Guarded] = field(default_factory=dict)
    """What is to be said of some of them, once of each."""
    open: Mapping[str, Open] | None = None
    """The outputs of the model of which something is open; None if that is not known."""
    entered: set[str] = field(default_factory=set)
    """The scopes of the bodies that ran."""

    def add(self, one: Guarded) -> None:
        """Enter what is to be said of a node; the first illegal computation is the one that counts."""
        scope = printed(one.node, self.nodes) or one.node
        known = self.seen.get(scope)
        if known is None or (one.is_illegal and not known.is_illegal):
            self.seen[scope] = replace(one, node=scope)

    @property
    def contested(self) -> set[str]:
        """Return the nodes whose result the document leaves open."""
        return {scope for scope, one in self.seen.items() if not one.is_illegal}


def printed(scope: str, known: Collection[str]) -> str | None:
    """Return the path by which `validate` prints a node, None if it is no known one.

    That of "call:own::Store/written", the path through all calls, is "own::Store/written".
    """
    while scope not in known:
        _, colon, scope = scope.partition(":")
        if not colon:
            return None
    return scope


# A model that NumPy computes.


class Watcher(Forward[Marked]):
    """Computes, moves marks where arrays are moved, and enters what it sees."""

    def __init__(self, plans: Plans, sight: Sight) -> None:
        super().__init__(plans)
        self.register = Register()
        self._sight = sight
        self._undecided: dict[Step, str] = {}
        self._scopes = {plan: flow.graph.scope for flow, plan in plans.items() if plan.is_body}

    def graph(self, plan: Plan, cells: Sequence[Marked | None]) -> list[Marked | None]:
        if plan.is_body:
            self.note_body(self._scopes[plan])
        return super().graph(plan, cells)

    def note_body(self, scope: str) -> None:
        self._sight.entered.add(scope)

    def lift(self, array: Array) -> Marked:
        return Marked(array)

    def array(self, cell: Marked) -> Array:
        assert cell.array is not None
        return cell.array

    def move(self, function: Callable[..., Array], *cells: Marked) -> Marked:
        array = function(*map(self.array, cells))
        marks = [cell.open for cell in cells if cell.open is not None]
        if not marks:
            return Marked(array)
        is_free = any(one.origins is None for one in marks)
        origins = None if is_free else function(*(cell.numbers for cell in cells))
        return Marked(array, Open(origins, why_of(marks)))

    def scalar(self, step: Step, cell: Marked | None, what: str) -> Any:
        """Return one element that decides what is computed; if it is open, everything behind it is."""
        if _is_open(cell):
            self._undecided[step] = (
                f"{what} of {step.node.type} {step.node.scope} depends on a contested element"
            )
        return super().scalar(step, cell, what)

    def step(self, step: Step, cells: list[Marked | None]) -> Sequence[Marked | None]:
        found = super().step(step, cells)
        why = self._undecided.pop(step, None)
        if why is None:
            return found
        return [None if cell is None else Marked(cell.array, Open(None, why)) for cell in found]

    def compute(self, step: Step, cells: list[Marked | None]) -> Sequence[Marked | None]:
        if isinstance(step.work, Lookup):
            return [self.scatter(step, cells)]
        arrays = self.outputs(step, cells)
        return [Marked(array, open) for array, open in zip(arrays, spread(step, cells, arrays), strict=False)]

    def outputs(self, step: Step, cells: Sequence[Marked | None]) -> Sequence[Array | None]:
        return compute_node(step, arrays_of(cells))

    def scatter(self, step: Step, cells: Sequence[Marked | None], *, knows_updates: bool = True) -> Marked:
        """Return the output of a scatter node, and enter what is to be said of its indices.

        Without `knows_updates` the updates are any of their shape.
        """
        scatter = scatter_node_of(step)
        try:
            case = case_of_node(scatter, arrays_of(cells))
            result = detail(case, knows_updates=knows_updates or scatter.has_equal_updates)
        except Error as error:
            if isinstance(error, IllegalCase):
                self._sight.add(Guarded.illegal(NUMPY, scatter, 0, error))
            raise failure(step, str(error), breaks_rule=isinstance(error, IllegalCase)) from error
        except MemoryError as error:
            raise failure(step, "there is not enough memory") from error
        if guarded := Guarded.contested(NUMPY, scatter, 0, result):
            self._sight.add(guarded)
        return Marked(
            result.values, scattered(step, case, result, by_role(scatter.lookup, cells), self.register)
        )

    def watch(self, plan: Plan, arrays: Sequence[Array]) -> list[Marked | None]:
        """Compute the main graph, and enter which of its outputs are open."""
        cells = self.run(plan, list(map(Marked, arrays)))
        self._sight.open = {
            output.name: replace(cell.open, register=self.register)
            for output, cell in zip(plan.outputs, cells, strict=True)
            if cell is not None and cell.open is not None
        }
        return cells


def arrays_of(cells: Sequence[Marked | None]) -> list[Array | None]:
    return [None if cell is None else cell.array for cell in cells]


# A model that NumPy does not compute as a whole.


def foresee(
    sketch: Sketch, feeds: Mapping[str, Any], sight: Sight, seeds: Seeds, *, computes: bool = True
) -> None:
    """Compute as much of the main graph as NumPy knows: for its indices, and for what is open.

    The seeds are what runners saw; without `computes` contested elements alone are followed.
    """
    watcher = _Foresight(sketch.plans, sight, seeds, computes=computes)
    watcher.watch(sketch.plan, check_feeds(sketch.inputs, feeds))


class _Foresight(Watcher):
    """Computes a graph of which some values stay unknown, and no body."""

    def __init__(self, plans: Plans, sight: Sight, seeds: Seeds, *, computes: bool) -> None:
        super().__init__(plans, sight)
        self._seeds, self._computes = seeds, computes
        self._facts = Facts()
        self._drawn = ""
        """Which operator drew random numbers last."""

    def fetch(self, plan: Plan, values: dict[Key, Marked | None], key: Key) -> Marked | None:
        """Return the cell of a key; what cannot be had is not known."""
        if key not in plan.constants:
            return values.get(key)
        try:
            return super().fetch(plan, values, key)
        except Error:
            return Marked(None)

    def note_body(self, scope: str) -> None:
        """Note nothing: bodies are looked at whether they run or not."""

    def step(self, step: Step, cells: list[Marked | None]) -> Sequence[Marked | None]:
        if isinstance(step.work, Call | Choice | Repeat):
            self._drawn = ""
            depends = self._depends(step, step.work, cells)
            why = why_of([cell.open for cell in cells if cell is not None]) or self._drawn
            why = why or f"what {step.node.type} {step.node.scope} computes depends on a contested element"
            found = [
                Marked(None, whole(why, declared_shape(step, number)) if one else None)
                for number, one in enumerate(depends)
            ]
        elif draws_numbers(step, cells):
            self._drawn = f"{step.node.type} {step.node.scope} {RANDOM}"
            shapes = [static(self._facts.shape(value)) for value in step.node.outputs]
            found = [Marked(None, whole(self._drawn, shape)) for shape in shapes]
        else:
            found = [one or Marked(None) for one in self.compute(step, cells)]
        for number, (one, value) in enumerate(zip(found, step.node.outputs, strict=False)):
            if one.array is None:
                found[number] = Marked(None, one.open, static(self._facts.shape(value)))
        return found

    def _depends(self, step: Step, work: Call | Choice | Repeat, cells: list[Marked | None]) -> list[bool]:
        """Tell which outputs depend on what is open, whatever a branch or a loop may do."""
        inputs: list[Marked | None] = [_OPEN if _is_open(cell) else _UNKNOWN for cell in cells]
        computes, self._computes = self._computes, False
        try:
            if isinstance(work, Repeat):
                return self._loop_depends(step, work, inputs)
            calls = work.branches.values() if isinstance(work, Choice) else [work]
            outputs = zip(*(self.call(step, call, inputs) for call in calls), strict=True)
            is_any = isinstance(work, Choice) and _is_open(inputs[work.condition])
            return [is_any or any(map(_is_open, ways)) for ways in outputs]
        finally:
            self._computes = computes

    def _loop_depends(self, step: Step, work: Repeat, inputs: list[Marked | None]) -> list[bool]:
        """Compute the body until what one iteration hands to the next changes nothing any more."""
        plan = self.plans[work.body]
        captured = self.captured(step, plan, inputs)
        given = [None if input.outer is None else inputs[input.outer] for input in work.inputs]
        carried = [
            (number, one.successor) for number, one in enumerate(work.inputs) if one.successor is not None
        ]
        before = None
        while before != given:
            before, outputs = list(given), self.graph(plan, [*given, *captured])
            for number, successor in carried:
                if _is_open(outputs[successor]):
                    given[number] = _OPEN
        control = [inputs[number] for number in (work.trips, work.condition) if number is not None]
        control += [] if work.goes_on is None else [outputs[work.goes_on]]
        if any(map(_is_open, control)):
            return [True] * len(step.outputs)
        initial = {successor for number, successor in carried if _is_open(given[number])}
        return [one.inner in initial or _is_open(outputs[one.inner]) for one in work.outputs]

    def outputs(self, step: Step, cells: Sequence[Marked | None]) -> Sequence[Array | None]:
        arrays: Sequence[Array | None] = ()
        if isinstance(step.work, GeneralOp) and self._computes and _are_known(cells):
            with suppress(Error, MemoryError):  # then what comes of it is not known
                arrays = compute_node(step, arrays_of(cells))
        return [*arrays, *[None] * (len(step.outputs) - len(arrays))]

    def scatter(self, step: Step, cells: Sequence[Marked | None], *, knows_updates: bool = True) -> Marked:
        """Watch a scatter node, with zeros for unknown data and updates; or take what runners saw."""
        assert isinstance(step.work, Lookup)
        assert step.work.spec is not None
        alike = list(cells)
        for number, (port, cell) in enumerate(zip(step.work.spec.ports, cells, strict=False)):
            if cell is not None and cell.array is None and port.role in {Role.DATA, Role.UPDATES}:
                value = step.node.inputs[number].value
                type = None if value is None or value.element_type is None else dtype(value.element_type)
                if cell.declared is not None and type is not None and not type.hasobject:
                    alike[number] = Marked(np.broadcast_to(np.zeros((), type), cell.declared), cell.open)
        if self._computes and _are_known(alike):
            with suppress(Error, MemoryError):  # what is to be said was entered
                place = step.work.spec.port_index(Role.UPDATES)
                updates = None if place is None or place >= len(cells) else cells[place]
                knows_updates = updates is not None and updates.array is not None
                found = super().scatter(step, alike, knows_updates=knows_updates)
                if _are_known(cells):
                    return found
                if found.open is None or found.open.origins is None:
                    return Marked(None, found.open)
                return Marked(None, computed(found.open.origins != 0, found.open.why))
        seen = self._seeds.get(printed(step.node.scope, self._seeds) or "", ())
        is_touched = any(map(_is_open, cells))
        if not is_touched and not seen:
            return Marked(None)
        if not is_touched and len({one.shape for one in seen}) == 1:
            return Marked(None, computed(np.any(seen, axis=0)))
        why = f"behind {step.node.type} {step.node.scope} every element may depend on a contested one"
        return Marked(None, whole(why, declared_shape(step, 0)))


def _are_known(cells: Sequence[Marked | None]) -> bool:
    return all(cell is None or cell.array is not None for cell in cells)


_UNKNOWN, _OPEN = Marked(None), Marked(None, whole("", None))


def _is_open(cell: Marked | None) -> bool:
    return cell is not None and cell.open is not None
