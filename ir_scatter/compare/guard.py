"""NumPy beside the runners: what the documents say a model computes, and what its indices were.

Beside every array goes what of it is open (`ir_scatter.compare.contested`). Where NumPy does not know
an operator, or a model breaks a rule, as much is computed as can be.
"""

import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.interpreter import Forward, Plan, Plans, Step, failure
from ir_scatter.compare.contested import (
    Marked,
    Open,
    OpenOutput,
    Register,
    computed,
    scattered,
    shape_of,
    spread,
    whole,
)
from ir_scatter.compare.result import NUMPY, Guarded
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import Call, Choice, Key, Repeat
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import (
    BrokenModel,
    Error,
    EvaluationFailed,
    IllegalCase,
    UnknownOperator,
    UnreadableModel,
)
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import counted, static
from ir_scatter.evaluate.certainty import detail
from ir_scatter.evaluate.model import (
    Program,
    Sketch,
    by_role,
    case_of_node,
    check_feeds,
    compute_node,
    make_sketch,
    prepare,
    site_of,
)
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.lookup import Lookup, scatter_types
from ir_scatter.ops.spec import Role
from ir_scatter.runners.base import Outcome, Status
from ir_scatter.version import versions

Seeds = Mapping[str, Sequence[Array]]
"""By the scope of a scatter node: where runners found it contested, once for each computation."""


@dataclass(slots=True, eq=False)
class Sight:
    """What was seen while a model was computed.

    Attributes:
        nodes: those that there are, as `validate` prints them.
        seen: what is to be said of some of them, once of each.
        open: the outputs of the model of which something is open, by name; None if that is not known.
    """

    nodes: Collection[str] = ()
    seen: dict[str, Guarded] = field(default_factory=dict)
    open: Mapping[str, OpenOutput] | None = None

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


class _Watcher(Forward[Marked]):
    """Computes, moves marks where arrays are moved, and enters what it sees."""

    def __init__(self, plans: Plans, sight: Sight) -> None:
        super().__init__(plans)
        self.register = Register()
        self._sight = sight
        self._undecided: dict[Step, str] = {}

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
        why = next((one.why for one in marks if one.why), "")
        if any(one.origins is None for one in marks):
            return Marked(array, Open(None, why))
        return Marked(array, Open(function(*(cell.numbers for cell in cells)), why))

    def scalar(self, step: Step, cell: Marked | None, what: str) -> Any:
        """Return one element that decides what is computed; if it is open, everything behind it is."""
        if cell is not None and cell.open is not None:
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
        return compute_node(step, _arrays(cells))

    def scatter(self, step: Step, cells: Sequence[Marked | None]) -> Marked:
        """Return the output of a scatter node, and enter what is to be said of its indices."""
        scatter = site_of(step)
        try:
            case = case_of_node(scatter, _arrays(cells))
            result = detail(case)
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
            output.name: OpenOutput(cell.open, self.register)
            for output, cell in zip(plan.outputs, cells, strict=True)
            if cell is not None and cell.open is not None
        }
        return cells


def _arrays(cells: Sequence[Marked | None]) -> list[Array | None]:
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


class _Foresight(_Watcher):
    """Computes a graph of which some values stay unknown, and no body."""

    def __init__(self, plans: Plans, sight: Sight, seeds: Seeds, *, computes: bool) -> None:
        super().__init__(plans, sight)
        self._seeds, self._computes = seeds, computes
        self._facts = Facts()

    def fetch(self, plan: Plan, values: dict[Key, Marked | None], key: Key) -> Marked | None:
        """Return the cell of a key; what cannot be had is not known."""
        if key not in plan.constants:
            return values.get(key)
        try:
            return super().fetch(plan, values, key)
        except Error:
            return Marked(None)

    def step(self, step: Step, cells: list[Marked | None]) -> Sequence[Marked | None]:
        if isinstance(step.work, Call | Choice | Repeat):
            why = f"what {step.node.type} {step.node.scope} computes depends on a contested element"
            found = [
                Marked(None, whole(why, shape_of(step, number)) if one else None)
                for number, one in enumerate(self._depends(step, step.work, cells))
            ]
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
                arrays = compute_node(step, _arrays(cells))
        return [*arrays, *[None] * (len(step.outputs) - len(arrays))]

    def scatter(self, step: Step, cells: Sequence[Marked | None]) -> Marked:
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
                found = super().scatter(step, alike)
                if _are_known(cells):
                    return found
                if found.open is None or found.open.origins is None:
                    return Marked(None, found.open)
                return Marked(None, computed(found.open.origins != 0, found.open.why))
        seen = self._seeds.get(printed(step.node.scope, self._seeds) or "", ())
        is_touched = any(cell is not None and cell.open is not None for cell in cells)
        if not is_touched and not seen:
            return Marked(None)
        if not is_touched and len({one.shape for one in seen}) == 1:
            return Marked(None, computed(np.any(seen, axis=0)))
        why = f"behind {step.node.type} {step.node.scope} every element may depend on a contested one"
        return Marked(None, whole(why, shape_of(step, 0)))


def _are_known(cells: Sequence[Marked | None]) -> bool:
    return all(cell is None or cell.array is not None for cell in cells)


_UNKNOWN, _OPEN = Marked(None), Marked(None, whole("", None))


def _is_open(cell: Marked | None) -> bool:
    return cell is not None and cell.open is not None


# Beside the runners.


class Reference:
    """Computes one model while runners do, in a thread, and watches the indices of its scatter nodes."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._nodes = frozenset(node.scope for node in model.walk(scatter_types(model.domain)))
        self._timed_out: Outcome | None = None

    def start(self, feeds: Mapping[str, Array]) -> Callable[[float], tuple[Outcome, Sight]]:
        """Begin to compute, unless that took too long before.

        Returns:
            What waits for the end, and gives it and what was seen: nothing if it takes longer than a time
            in seconds from now on. It raises BadFeed if feeds do not fit the model, and UnreadableModel if
            the model, or a constant that is needed, cannot be read.
        """
        sight, known, started = Sight(self._nodes), self._timed_out, time.monotonic()
        future = in_background(partial(self._compute, feeds, sight) if known is None else lambda: known)

        def finish(timeout: float) -> tuple[Outcome, Sight]:
            try:
                outcome: Outcome = future.result(max(timeout - (time.monotonic() - started), 0))
            except TimeoutError:
                message = f"no answer within {counted(timeout, 'second')}"
                outcome = self._timed_out = self._ended(Status.TIMEOUT, message)
            return outcome, Sight() if outcome is self._timed_out else sight

        return finish

    def foresee(self, feeds: Mapping[str, Array], seeds: Seeds, timeout: float) -> Mapping[str, OpenOutput]:
        """Return the outputs of which something is open, as far as that can be told of a model that fails.

        The time limit is for each of two ways: with what NumPy can compute, and without.
        """
        sketch, ways = self._sketch, (True, False) if self._timed_out is None else (False,)
        for computes in ways if sketch is not None else ():
            assert sketch is not None
            found = Sight(self._nodes)
            with suppress(TimeoutError, Error):
                work = partial(foresee, sketch, feeds, found, seeds, computes=computes)
                in_background(work).result(timeout)
            if found.open is not None:
                return found.open
        return {}

    @cached_property
    def _program(self) -> "Program | Error":
        """Return the model made ready to be run, or why NumPy cannot compute it."""
        try:
            return prepare(self._model)
        except (BrokenModel, UnknownOperator) as error:
            return error

    @cached_property
    def _sketch(self) -> "Sketch | None":
        """Return what is known of a model that cannot be computed; None if that is nothing."""
        with suppress(Error):
            return make_sketch(self._model)
        return None

    def _compute(self, feeds: Mapping[str, Array], sight: Sight) -> Outcome:
        start, program = time.perf_counter(), self._program
        if isinstance(program, Error):
            if self._sketch is not None:
                with suppress(EvaluationFailed, UnreadableModel):
                    foresee(self._sketch, feeds, sight, {})
                sight.open = None  # as it does not know what runners saw
            is_unknown = isinstance(program, UnknownOperator)
            return self._ended(Status.UNSUPPORTED if is_unknown else Status.REFUSED, str(program))
        try:
            watcher = _Watcher(program.plans, sight)
            cells = watcher.watch(program.plan, check_feeds(program.inputs, feeds))
            outputs = program.named(_arrays(cells))
        except EvaluationFailed as error:
            return self._ended(Status.REFUSED, str(error))
        except MemoryError:
            return self._ended(Status.REFUSED, "there is not enough memory")
        seconds = time.perf_counter() - start
        return replace(self._ended(Status.OK), runs=(outputs,), seconds=seconds)

    def _ended(self, status: Status, message: str = "") -> Outcome:
        path = re.escape(self._model.path)  # everybody knows it
        message = re.sub(rf" \({path}(?::\d+)?\)", "", re.sub(rf"^{path}: ", "", message))
        return Outcome(NUMPY, status, message, precision="model", versions=versions())


def in_background(work: Callable[[], Any]) -> "Future[Any]":
    """Do something in a thread that nobody has to wait for, not even at the end of the process."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # whoever asks for the result gets it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
