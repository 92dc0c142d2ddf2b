"""NumPy beside the runners: what the documents say a model computes, and what its indices were."""

import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.interpreter import Frame, Machine, Plan, Plans, Step, failure
from ir_scatter.compare.contested import (
    COMPUTED,
    Marked,
    Open,
    OpenOutput,
    Register,
    scattered,
    shape_of,
    spread,
    whole,
)
from ir_scatter.compare.result import NUMPY, Guarded
from ir_scatter.core.dataflow import Call, Choice, Dataflow, Key, Nested, Repeat, Source
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import (
    BrokenModel,
    Error,
    EvaluationFailed,
    IllegalCase,
    UnknownOperator,
    UnreadableModel,
)
from ir_scatter.core.model import Model, Value
from ir_scatter.core.shapes import counted, static
from ir_scatter.evaluate.certainty import detail
from ir_scatter.evaluate.model import (
    Program,
    Sketch,
    arguments_of,
    by_role,
    check_feeds,
    compute_node,
    site_of,
)
from ir_scatter.evaluate.operator import case_of, run
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.general_kernels.base import kind
from ir_scatter.ops.lookup import Lookup, scatter_types
from ir_scatter.ops.spec import Reduction, Role
from ir_scatter.runners.base import Outcome, Status
from ir_scatter.version import versions

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array
    from ir_scatter.evaluate.certainty import DetailedResult
    from ir_scatter.evaluate.operator import Case


_Depends = Callable[[Key | None], bool]


def reached(
    nested: Nested,
    inputs: Sequence[Key | None],
    count: int,
    scopes: Collection[str],
    depends: _Depends,
) -> list[bool]:
    """Tell of each output of a node whether it depends on one of some nodes, or on some values.

    Args:
        nested: the bodies of the node.
        inputs: of the node.
        count: of its outputs.
        scopes: the nodes as `validate` prints them; they may be in bodies and functions.
        depends: tells it of the node's inputs, and of what its bodies take from outside.
    """
    if isinstance(nested, Call):
        return _call(inputs, nested, scopes, depends)
    if isinstance(nested, Choice):
        return _choice(inputs, nested, count, scopes, depends)
    return _repeat(inputs, nested, count, scopes, depends)


def _call(inputs: Sequence[Key | None], call: Call, scopes: Collection[str], depends: _Depends) -> list[bool]:
    open = (
        number
        for number, outer in enumerate(call.inputs)
        if outer is not None and outer < len(inputs) and depends(inputs[outer])
    )
    found = _body(call.body, frozenset(open), scopes, depends)
    return [found[number] for number in call.outputs]


def _choice(
    inputs: Sequence[Key | None], choice: Choice, count: int, scopes: Collection[str], depends: _Depends
) -> list[bool]:
    """Either branch may be taken; if a node decides which, everything depends on it."""
    if depends(inputs[choice.condition]):
        return [True] * count
    branches = [_call(inputs, branch, scopes, depends) for branch in choice.branches.values()]
    return [any(pair) for pair in zip(*branches, strict=False)]


def _repeat(
    inputs: Sequence[Key | None], loop: Repeat, count: int, scopes: Collection[str], depends: _Depends
) -> list[bool]:
    """Go through the body until what one iteration hands to the next changes nothing any more."""
    control = [inputs[number] for number in (loop.trips, loop.condition) if number is not None]
    outer = [None if input.outer is None else inputs[input.outer] for input in loop.inputs]
    open = {number for number, key in enumerate(outer) if depends(key)}
    while True:
        found = _body(loop.body, frozenset(open), scopes, depends)
        more = {
            number
            for number, input in enumerate(loop.inputs)
            if input.source is Source.CARRIED and input.successor is not None and found[input.successor]
        }
        if more <= open:
            break
        open |= more
    if any(map(depends, control)) or (loop.goes_on is not None and found[loop.goes_on]):
        return [True] * count
    initial = {
        input.successor
        for number, input in enumerate(loop.inputs)
        if input.source is Source.CARRIED and number in open
    }
    return [found[output.inner] or output.inner in initial for output in loop.outputs]


def _body(wiring: Dataflow, inputs: frozenset[int], scopes: Collection[str], depends: _Depends) -> list[bool]:
    """Tell of each output of a body whether it depends on a node, or on what is given to the body."""
    known: dict[Key, bool] = {input.key: number in inputs for number, input in enumerate(wiring.inputs)}
    known |= {key: depends(key) for key in wiring.captured}
    return [_depends(output.key, wiring, known, scopes) for output in wiring.outputs]


def _depends(key: Key, wiring: Dataflow, known: dict[Key, bool], scopes: Collection[str]) -> bool:
    """Tell whether a value in a body depends on one of the nodes; without recursion, as chains are long."""
    pending, opened = [key], set[Key]()
    while pending:
        current = pending[-1]
        if current in known:
            pending.pop()
            continue
        link = wiring.link(current)
        if link is None or printed(link.node.scope, scopes) is not None:
            known[current] = link is not None
            continue
        nested = wiring.nested(link.node)
        sources = [key for key in (*link.inputs, *_captured(nested)) if key is not None]
        missing = [source for source in sources if source not in known]
        if missing and current not in opened:
            opened.add(current)
            pending += missing
            continue

        def tell(key: Key | None) -> bool:
            return key is not None and known.get(key, False)

        count = len(link.outputs)
        if nested is None:
            found = [any(map(tell, link.inputs))] * count
        else:
            found = reached(nested, link.inputs, count, scopes, tell)
        for output, depends in zip(link.outputs, found, strict=False):
            if output is not None:
                known.setdefault(output, depends)
        known.setdefault(current, any(found))
    return known[key]


def _captured(nested: Nested | None) -> list[Key]:
    """Return what the bodies of a node take from the graph around it."""
    if isinstance(nested, Choice):
        bodies = [branch.body for branch in nested.branches.values()]
    else:
        bodies = [] if nested is None else [nested.body]
    return [key for body in bodies for key in body.captured]


Seeds = Mapping[str, "Sequence[Array]"]
"""By the scope of a scatter node: where runners found it contested, once for each computation."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is to be said of the indices of a node.

    Attributes:
        scope: of the node.
        operator: "ScatterUpdate-3".
        error: what is not legal; None if all is.
        contested: in how many elements the document leaves open which value stays.
        elements: how many there are.
        is_nan: whether that is because NaN meets numbers, and not because of repeated indices.
    """

    scope: str
    operator: str
    error: IllegalCase | None = None
    contested: int = 0
    elements: int = 0
    is_nan: bool = False


@dataclass(slots=True, eq=False)
class Sight:
    """What was seen while a model was computed; of each node once.

    Attributes:
        nodes: those that there are, as `validate` prints them.
        seen: what is to be said of some of them.
        open: the outputs of the model of which something is open, by name; None if that is not known.
    """

    nodes: Collection[str] = ()
    seen: dict[str, Seen] = field(default_factory=dict)
    open: Mapping[str, OpenOutput] | None = None

    def add(self, one: Seen) -> None:
        """Enter what is to be said of a node; the first illegal computation is the one that counts."""
        scope = printed(one.scope, self.nodes) or one.scope
        known = self.seen.get(scope)
        if known is None or (one.error is not None and known.error is None):
            self.seen[scope] = replace(one, scope=scope)

    @property
    def contested(self) -> set[str]:
        """Return the nodes whose result the document leaves open."""
        return {scope for scope, one in self.seen.items() if one.contested}


def run_watched(program: Program, feeds: Mapping[str, Any], sight: Sight) -> "dict[str, Array]":
    """Compute the outputs of a model by name.

    Args:
        program: the model.
        feeds: arrays by any name of an input.
        sight: gets what is seen, even if the computation fails.

    Raises:
        BadFeed: the feeds are not what the model asks for.
        EvaluationFailed: a node cannot be computed with the values that reach it.
    """
    watcher = _Watcher(program.plans, sight)
    cells = watcher.run(program.plan, [Marked(array) for array in check_feeds(program.inputs, feeds)])
    sight.open = _open(program.plan, cells, watcher.register)
    return program.named([None if cell is None else cell.array for cell in cells])


def _open(plan: Plan, cells: Sequence[Marked | None], register: Register) -> dict[str, OpenOutput]:
    """Return the outputs of which something is open."""
    return {
        output.name: OpenOutput(cell.open, register)
        for output, cell in zip(plan.outputs, cells, strict=True)
        if cell is not None and cell.open is not None
    }


class _Marking(Machine[Marked]):
    """Moves marks where arrays are moved."""

    def __init__(self, plans: Plans) -> None:
        super().__init__(plans)
        self.register = Register()
        self._undecided: dict[Step, str] = {}

    def lift(self, array: "Array") -> Marked:
        """Make a cell of an array that no input has a part in."""
        return Marked(array)

    def array(self, cell: Marked) -> "Array":
        """Return the array."""
        assert cell.array is not None
        return cell.array

    def move(self, function: "Callable[..., Array]", *cells: Marked) -> Marked:
        """Move elements, and the numbers of those that are open."""
        array = function(*map(self.array, cells))
        marks = [cell.open for cell in cells if cell.open is not None]
        if not marks:
            return Marked(array)
        why = next((one.why for one in marks if one.why), "")
        if any(one.origins is None for one in marks):
            return Marked(array, Open(None, why))
        numbers = [
            np.zeros(self.array(cell).shape, np.int64)
            if cell.open is None or cell.open.origins is None
            else cell.open.origins
            for cell in cells
        ]
        return Marked(array, Open(function(*numbers), why))

    def scalar(self, step: Step, cell: Marked | None, what: str) -> Any:
        """Return one element that decides what is computed; if it is open, everything behind it is."""
        if cell is not None and cell.open is not None:
            self._undecided[step] = (
                f"{what} of {step.node.type} {step.node.scope} depends on a contested element"
            )
        return super().scalar(step, cell, what)

    def step(self, step: Step, cells: list[Marked | None]) -> Frame[Marked]:
        """Compute a node; as a generator, which asks for bodies to be computed."""
        found = yield from super().step(step, cells)
        why = self._undecided.pop(step, None)
        if why is None:
            return found
        return [None if cell is None else Marked(cell.array, Open(None, why)) for cell in found]


class _Watcher(_Marking):
    """Computes, and enters what it sees."""

    def __init__(self, plans: Plans, sight: Sight) -> None:
        super().__init__(plans)
        self._sight = sight

    def compute(self, step: Step, cells: list[Marked | None]) -> Sequence[Marked | None]:
        """Return the outputs of a node without bodies."""
        if isinstance(step.work, Lookup):
            return [_watched(step, cells, self._sight, self.register)]
        arrays = compute_node(step, [None if cell is None else cell.array for cell in cells])
        if all(cell is None or cell.open is None for cell in cells):
            return [Marked(array) for array in arrays]
        return [Marked(array, open) for array, open in zip(arrays, spread(step, cells, arrays), strict=False)]


def _watched(step: Step, cells: Sequence[Marked | None], sight: Sight, register: Register) -> Marked:
    """Return the output of a scatter node."""
    site = site_of(step)
    scope, text = step.node.scope, str(site.spec.key)
    marked = by_role(site.lookup, cells)
    try:
        arrays = {role: cell.array for role, cell in marked.items() if cell.array is not None}
        operator, arguments = arguments_of(site, arrays)
        case = case_of(operator, **arguments)
        result = detail(case) if _may_be_contested(case) else None
        values = run(case) if result is None else result.values
    except Error as error:
        if isinstance(error, IllegalCase):
            sight.add(Seen(scope, text, error))
        raise failure(step, str(error), breaks_rule=isinstance(error, IllegalCase)) from error
    except MemoryError as error:
        raise failure(step, "there is not enough memory") from error
    if result is not None and result.contested.any():
        is_nan = site.reduction is not Reduction.NONE
        sight.add(Seen(scope, text, None, int(np.count_nonzero(result.contested)), values.size, is_nan))
    marks = {role.value: cell.open for role, cell in marked.items() if cell.open is not None}
    return Marked(values, _scattered(step, case, result, marks, register))


def _may_be_contested(case: "Case") -> bool:
    """Tell whether some element may have several values: repeated ones, and in extremes those beside NaN."""
    if case.task.reduction in {Reduction.MIN, Reduction.MAX} and kind(case.data) == "float":
        return bool((case.data != case.data).any() or (case.updates != case.updates).any())
    return case.task.reduction is Reduction.NONE


def _scattered(
    step: Step,
    case: "Case",
    result: "DetailedResult | None",
    marks: Mapping[str, Open],
    register: Register,
) -> Open | None:
    """Return what of the output of a scatter node is open."""
    if not marks.keys() <= {Role.DATA.value, Role.UPDATES.value}:
        role = next(role for role in marks if role not in {Role.DATA.value, Role.UPDATES.value})
        why = f"{role} of {step.node.type} {step.node.scope} depend on a contested element"
        is_free = any(one.origins is None for one in marks.values())
        return Open(None, why) if is_free else whole(why, case.data.shape)
    if any(one.origins is None for one in marks.values()):
        return Open(None, next((one.why for one in marks.values() if one.why), ""))
    return scattered(case, result, marks, register)


def foresee(
    sketch: Sketch,
    feeds: Mapping[str, Any],
    sight: Sight,
    seeds: Seeds | None = None,
    *,
    computes: bool = True,
) -> None:
    """Compute as much of the main graph as NumPy knows: for its indices, and for what is open.

    Args:
        sketch: a model with operators that NumPy does not compute, or one that breaks rules.
        feeds: arrays by any name of an input.
        sight: gets what is seen.
        seeds: what runners saw of contested nodes.
        computes: False to follow contested elements alone.

    Raises:
        BadFeed: the feeds are not what the model asks for.
    """
    arrays = check_feeds(sketch.inputs, feeds)
    foresight = _Foresight(sketch, sight, seeds or {}, computes=computes)
    cells = foresight.run(sketch.plan, [Marked(array) for array in arrays])
    sight.open = _open(sketch.plan, cells, foresight.register)


class _Unknown(Exception):
    """Something about a node cannot be known before it is computed."""


class _Foresight(_Marking):
    """Computes a graph of which some values stay unknown, and no body."""

    def __init__(self, sketch: Sketch, sight: Sight, seeds: Seeds, *, computes: bool) -> None:
        super().__init__(sketch.plans)
        self._sight, self._seeds, self._computes = sight, seeds, computes
        self._facts = Facts()

    def fetch(self, plan: Plan, values: dict[Key, Marked | None], key: Key) -> Marked | None:
        """Return the cell of a key; what cannot be had is not known."""
        if key not in plan.constants:
            return values.get(key)
        try:
            return super().fetch(plan, values, key)
        except Error:
            return Marked(None)

    def step(self, step: Step, cells: list[Marked | None]) -> Frame[Marked]:
        """Return what is known of the outputs of a node."""
        yield from ()  # no body is asked for
        if isinstance(step.work, Call | Choice | Repeat):
            return self._nested(step, step.work, cells)
        return self.compute(step, cells)

    def compute(self, step: Step, cells: list[Marked | None]) -> "list[Marked | None]":
        """Return what is known of the outputs of a node without bodies."""
        if isinstance(step.work, Lookup):
            return [self._scatter(step, cells)]
        arrays: Sequence[Array | None] = [None] * len(step.outputs)
        if isinstance(step.work, GeneralOp) and self._computes and _are_known(cells):
            with suppress(Error, MemoryError):  # then what comes of it is not known
                arrays = compute_node(step, [None if cell is None else cell.array for cell in cells])
        known = [self._shaped(step, number, cell) for number, cell in enumerate(cells)]
        marks = spread(step, known, arrays)
        missing = [None] * (len(marks) - len(arrays))
        return [Marked(array, open) for array, open in zip([*arrays, *missing], marks, strict=False)]

    def _nested(
        self, step: Step, work: "Call | Choice | Repeat", cells: list[Marked | None]
    ) -> "list[Marked | None]":
        open = {
            key
            for key, cell in zip(step.inputs, cells, strict=True)
            if key is not None and cell is not None and cell.open is not None
        }
        count = len(step.outputs)
        if not open and not self._seeds:
            return [Marked(None)] * count
        try:
            found = reached(work, step.inputs, count, frozenset(self._seeds), open.__contains__)
        except Error:  # its bodies do not fit together
            found = [True] * count
        why = f"what {step.node.type} {step.node.scope} computes depends on a contested element"
        return [
            Marked(None, whole(why, shape_of(step, number, None)) if depends else None)
            for number, depends in enumerate(found)
        ]

    def _scatter(self, step: Step, cells: list[Marked | None]) -> Marked:
        """Watch a scatter node, or look at its indices alone; or take what runners saw."""
        assert isinstance(step.work, Lookup)
        if self._computes:
            try:
                if _are_known(cells):
                    return _watched(step, cells, self._sight, self.register)
                looked = _watched(step, self._alike(step, cells), self._sight, self.register)
            except (Error, MemoryError, _Unknown):  # what is to be said was entered
                pass
            else:
                return Marked(None, _without_values(looked.open))
        marks = [cell.open for cell in cells if cell is not None and cell.open is not None]
        seen = self._seeds.get(printed(step.node.scope, self._seeds) or "", ())
        if not marks and not seen:
            return Marked(None)
        if not marks and len({one.shape for one in seen}) == 1:
            return Marked(None, Open(np.where(np.any(seen, axis=0), np.int64(COMPUTED), np.int64(0))))
        why = f"behind {step.node.type} {step.node.scope} every element may depend on a contested one"
        return Marked(None, whole(why, shape_of(step, 0, None)))

    def _alike(self, step: Step, cells: Sequence[Marked | None]) -> list[Marked | None]:
        """Return the inputs of a scatter node; unknown data and updates as something that looks like them."""
        assert isinstance(step.work, Lookup)
        assert step.work.spec is not None
        roles = [port.role for port in step.work.spec.ports]
        found = list(cells)
        for number, cell in enumerate(cells):
            if cell is None or cell.array is not None:
                continue
            if number >= len(roles) or roles[number] not in {Role.DATA, Role.UPDATES}:
                raise _Unknown
            value = step.node.inputs[number].value
            found[number] = Marked(self._like(value), cell.open)
        return found

    def _like(self, value: Value | None) -> "Array":
        """Return zeros of the type and shape of a value; they take no memory.

        Raises:
            _Unknown: type or shape are not known.
        """
        shape = None if value is None else static(self._facts.shape(value))
        type = None if value is None or value.element_type is None else dtype(value.element_type)
        if shape is None or type is None or type.hasobject:
            raise _Unknown
        return np.broadcast_to(np.zeros((), type), shape)

    def _shaped(self, step: Step, number: int, cell: Marked | None) -> Marked | None:
        """Give a value that is not known, and of which nothing is open, the shape that it will have."""
        if cell is None or cell.shape is not None or cell.open is not None:
            return cell
        inputs = step.node.inputs
        value = inputs[number].value if number < len(inputs) else None
        shape = None if value is None else static(self._facts.shape(value))
        return cell if shape is None else Marked(None, None, shape)


def _are_known(cells: Sequence[Marked | None]) -> bool:
    return all(cell is None or cell.array is not None for cell in cells)


def _without_values(open: Open | None) -> Open | None:
    """Say nothing of the values that contested elements may have."""
    if open is None or open.origins is None:
        return open
    return Open(np.where(open.origins != 0, np.int64(COMPUTED), np.int64(0)), open.why)


def printed(scope: str, known: Collection[str]) -> str | None:
    """Return the path by which `validate` prints a node, None if it is no known one.

    Args:
        scope: the path through all calls: "call:own::Store/written".
        known: paths as they are printed: "own::Store/written".
    """
    if scope in known:
        return scope
    at = scope.find(":")
    while at >= 0:
        if scope[at + 1 :] in known:
            return scope[at + 1 :]
        at = scope.find(":", at + 1)
    return None


class Reference:
    """Computes one model while runners do, in a thread, and watches the indices of its scatter nodes."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._nodes = frozenset(node.scope for node in model.walk(scatter_types(model.domain)))
        self._timed_out: Outcome | None = None

    def start(self, feeds: "Mapping[str, Array]") -> Callable[[float], tuple[Outcome, Sight]]:
        """Begin to compute, unless that took too long before.

        Returns:
            What waits for the end, and gives it and what was seen: nothing if it takes longer than a time
            in seconds from now on. It raises BadFeed if a feed is missing, superfluous, or of the wrong
            type or shape, and UnreadableModel if the model, or a constant that is needed, cannot be read.
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

    def foresee(self, feeds: "Mapping[str, Array]", seeds: Seeds, timeout: float) -> Mapping[str, OpenOutput]:
        """Return the outputs of which something is open, as far as that can be told of a model that fails.

        Args:
            feeds: of the case.
            seeds: what runners saw of contested nodes in it.
            timeout: in seconds, for each of two ways: with what NumPy can compute, and without.
        """
        sketch = self._sketch
        for computes in (True, False) if self._timed_out is None else (False,):
            if sketch is None:
                break
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
        from ir_scatter.evaluate.model import prepare

        try:
            return prepare(self._model)
        except (BrokenModel, UnknownOperator) as error:
            return error

    @cached_property
    def _sketch(self) -> "Sketch | None":
        """Return what is known of a model that cannot be computed; None if that is nothing."""
        from ir_scatter.evaluate.model import make_sketch

        try:
            return make_sketch(self._model)
        except Error:
            return None

    def _compute(self, feeds: "Mapping[str, Array]", sight: Sight) -> Outcome:
        start, program = time.perf_counter(), self._program
        if isinstance(program, Error):
            if self._sketch is not None:
                with suppress(EvaluationFailed, UnreadableModel):
                    foresee(self._sketch, feeds, sight)
                sight.open = None  # as it does not know what runners saw
            is_unknown = isinstance(program, UnknownOperator)
            return self._ended(Status.UNSUPPORTED if is_unknown else Status.REFUSED, str(program))
        try:
            outputs = run_watched(program, feeds, sight)
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


def guarded_by(sight: Sight, case: int) -> Iterator[Guarded]:
    """Yield what there is to say of indices that NumPy saw."""
    for one in sight.seen.values():
        if one.error is not None:
            yield Guarded.illegal(NUMPY, one.scope, one.operator, case, one.error)
        elif one.contested:
            yield Guarded.contested(
                NUMPY, one.scope, one.operator, case, one.contested, one.elements, is_nan=one.is_nan
            )
