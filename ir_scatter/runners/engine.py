"""Runs a model in the process of its runtime, with as many taps as the runtime and memory allow.

A tapped value is stored as a pair: the key of an array and the number of loops around the node that have
stacked it, each on one leading dimension; or the name of a feed and None.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.core.arrays import Array
from ir_scatter.core.atomic_write import identity
from ir_scatter.core.dataflow import feeds_by_input
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.process import Failure
from ir_scatter.core.shapes import Shape, agree, show
from ir_scatter.runners.base import (
    PROGRESS_BYTES,
    Execution,
    NodeFacts,
    RunRequest,
    Status,
    Streamed,
    Tap,
    Tapped,
)

_REFUSALS = 3
"""Number of feeds refused with the same message after which the other feeds are not tried."""

HELD = 3
"""Copies of an output value in memory: in the runtime, as its output, and as the copy that is sent."""

_MODELS = 3
"""Number of models that a runtime keeps, with taps and without: two that are compared, and the one before."""

INSIDE = "it is inside a body"
"""The problem of a tap that was left out because outputs of bodies did not work."""

Value: TypeAlias = tuple[str, int | None]


class TapRun(NamedTuple):
    """Which outputs of the tapped model hold the inputs and the output of a node.

    A node of a function has one such record for each call. `executions` reads the values back.
    """

    inputs: Sequence[Value | None]
    output: Value
    markers: Sequence[Value] = ()
    """Values that are 1 if a branch around the node was taken, with the loops around the branch."""
    counts: Sequence[Value] = ()
    """The number of iterations of each loop around the node, the outermost first, with the loops around it:
    stacked values beyond that were never computed. Empty if the runtime stacks computed values only."""
    caller: str = ""

    def executions(self, arrays: Mapping[str, Array], feeds: Mapping[str, Array]) -> Iterator[Execution]:
        """Yield one execution for each iteration in which the branches around the node were taken."""

        def array(value: Value) -> Array:
            key, loops = value
            if loops is None:
                return feeds[key]
            index: Any = (*place[:loops], ...)
            element: Array = arrays[key][index]
            return element

        for place in product(*map(range, arrays[self.output[0]].shape[: self.output[1]])):
            is_taken = all(array(marker).all() for marker in self.markers)
            if is_taken and all(place[count[1] or 0] < array(count).max(initial=0) for count in self.counts):
                inputs = (None if value is None else array(value) for value in self.inputs)
                yield Execution(place, tuple(inputs), array(self.output), self.caller)


class TappedSize(NamedTuple):
    """The known facts about the memory of a value: its type, its shape, and how many loops stack it."""

    type: str = ""
    shape: tuple[int, ...] | None = None
    loops: int = 0


@dataclass(slots=True, eq=False)
class Loaded:
    """A model that a runtime has loaded, with more outputs if nodes are tapped.

    Attributes:
        taps: for each tap the places of its values, or the problem.
        sizes: of the values that are outputs for taps, by key.
        constants: values that the model holds, by key.
        sessions: the loaded sessions, by their options.
        shapes: of values, by the shapes of feeds; None if they cannot be inferred.
    """

    model: Any
    taps: "list[list[TapRun] | str]" = field(default_factory=list)
    sizes: dict[str, TappedSize] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    sessions: dict[Hashable, Any] = field(default_factory=dict)
    shapes: "dict[Hashable, Mapping[str, Sequence[int]] | None]" = field(default_factory=dict)


class RunAnswer(NamedTuple):
    """The result of a run."""

    runs: list[dict[str, Array]]
    seconds: float
    taps: "list[list[TapRun] | str]"
    """For each of the first taps the places of its values by key, or the problem."""
    arrays: dict[str, Array]
    too_large: int = 0
    """Bytes that taps held, if they exceed the limit; 0 otherwise."""
    facts: tuple[NodeFacts, ...] = ()

    def tapped(self, taps: Sequence[Tap], feeds: Mapping[str, Array]) -> Iterator[Tapped]:
        """Yield the executions of the tapped nodes, of all requested taps or the first ones."""
        for tap, places in zip(taps, self.taps, strict=False):
            if isinstance(places, str):
                yield Tapped(tap, problem=places)
            else:
                runs = (run.executions(self.arrays, feeds) for run in places)
                yield Tapped(tap, tuple(execution for run in runs for execution in run))


@contextmanager
def as_failures(failure: Callable[[Exception], Failure], *, at_inference: bool = False) -> Iterator[None]:
    """Convert exceptions of a runtime in this block to failures, which say whether this is the inference."""
    try:
        yield
    except Failure:
        raise
    except Exception as error:
        converted = failure(error)
        converted.at_inference = at_inference
        raise converted from None


class Engine(ABC):
    """One model with its feeds in a runtime; each runtime has a subclass."""

    fed: tuple[str, ...] = ()
    """The names of the feeds, in the order that taps expect."""
    names: Sequence[str]
    """The names of the outputs."""
    begins_anew = True
    """Whether states are reset before the next inference."""

    def __init__(self, request: RunRequest, feeds: Mapping[str, Array]) -> None:
        """Read the model; subclasses check the feeds against its inputs."""
        self.request = request
        self.feeds = feeds
        path = Path(request.model)
        self.file = (request.model, identity(path), identity(path.with_suffix(".bin")))
        self.loaded = _loaded(type(self), self.file)

    def feed(self, feeds: Mapping[str, Array]) -> None:
        """Replace the feeds by others of the same names and types."""
        self.feeds = feeds

    @classmethod
    @abstractmethod
    def read(cls, path: str) -> Any:
        """Return the runtime's model of a file."""

    @classmethod
    @abstractmethod
    def add_taps(cls, path: str, model: Any, taps: Sequence[Tap], fed: Sequence[str], bodies: bool) -> Loaded:
        """Return a copy of a model with taps, inside bodies and functions only with `bodies`."""

    @abstractmethod
    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        """Return the shapes of values for these feeds; None if they cannot be inferred."""

    @abstractmethod
    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        """Run once and return arrays that own their memory: the outputs, and those that taps need."""

    def facts(self) -> tuple[NodeFacts, ...]:
        """Return how the runtime executes nodes, if it reports that."""
        return ()


@lru_cache(_MODELS)
def _loaded(engine: type[Engine], file: tuple[Any, ...]) -> Loaded:
    return Loaded(engine.read(file[0]))


@lru_cache(_MODELS)
def _tapped(
    engine: type[Engine], file: tuple[Any, ...], taps: tuple[Tap, ...], fed: tuple[str, ...], bodies: bool
) -> Loaded:
    return engine.add_taps(file[0], _loaded(engine, file).model, taps, fed, bodies)


def run(engine: type[Engine], request: RunRequest, feeds: Mapping[str, Array]) -> RunAnswer:
    """Run with all taps; if that fails without taps in bodies; and if that fails too without taps.

    If memory does not allow all taps, only the first ones are answered.
    """
    started = perf_counter()
    made = engine(request, feeds)
    seconds = perf_counter() - started
    problem = ""
    for bodies in (True, False) if request.taps else ():
        try:
            tapped = _tapped(engine, made.file, request.taps, made.fed, bodies)
            count, held = _fitting(made, tapped)
            if count < len(request.taps):  # a model with some of the taps is not kept
                tapped = _tapped.__wrapped__(engine, made.file, request.taps[:count], made.fed, bodies)
            answer = _run(made, tapped)
        except Failure as failure:
            problem = failure.message
            continue
        reason = f"with outputs out of its body the model does not run: {problem}"
        taps = [reason if tap == INSIDE else tap for tap in answer.taps]
        if held is None:
            held = HELD * sum(array.nbytes for array in answer.arrays.values())
        answer = answer._replace(taps=taps, too_large=held if held > request.tap_memory else 0)
        break
    else:
        reason = f"with its inputs as outputs the model does not run: {problem}"
        answer = _run(made, made.loaded)._replace(taps=[reason for _ in request.taps])
    facts = made.facts() if request.profile else ()
    return answer._replace(seconds=answer.seconds + seconds, facts=facts)


def stream(
    engine: type[Engine], request: RunRequest, feeds: Sequence[Mapping[str, Array]], progress: str
) -> list[Streamed]:
    """Run a model once for each of many feeds of the same names; a file holds the number of the current one.

    A refusal concerns one feed only. But if the first feeds are all refused with the same message, all are
    refused, as each would load the model again.
    """
    answers: list[Streamed] = []
    with open(progress, "r+b", buffering=0) as file:
        made = engine(request, feeds[0])
        for number, arrays in enumerate(feeds):
            file.seek(0)
            file.write(number.to_bytes(PROGRESS_BYTES))
            try:
                made.feed(arrays)
                answers.append(Streamed(Status.OK, made.infer(made.loaded, ())))
                made.begins_anew = not request.keeps_states
            except Failure as failure:
                answers.append(Streamed(Status(failure.status), message=failure.message))
                messages = {answer.message for answer in answers}
                if number == _REFUSALS - 1 and len(messages) == 1 and messages != {""}:
                    return answers[:1] * len(feeds)
    return answers


def _run(engine: Engine, loaded: Loaded) -> RunAnswer:
    keys = sorted(set().union(*map(_keys, loaded.taps)) - loaded.constants.keys())
    started, count = perf_counter(), len(engine.names)
    engine.begins_anew = True
    outputs = engine.infer(loaded, keys)
    engine.begins_anew = not engine.request.keeps_states
    seconds = perf_counter() - started
    arrays = dict(zip(keys, outputs[count:], strict=True)) | loaded.constants
    runs = [outputs[:count], *(engine.infer(loaded, ()) for _ in range(engine.request.repeat - 1))]
    return RunAnswer(
        [dict(zip(engine.names, run, strict=True)) for run in runs], seconds, loaded.taps, arrays
    )


def _fitting(engine: Engine, tapped: Loaded) -> tuple[int, int | None]:
    """Return the number of taps that fit into memory, at least one, and their bytes, if known."""
    sizes = tapped.sizes
    unknown = [key for key, size in sizes.items() if size.shape is None]
    feeds = tuple((name, feed.shape) for name, feed in engine.feeds.items())
    if feeds not in tapped.shapes:
        try:
            tapped.shapes[feeds] = engine.shapes(tapped, unknown) if unknown else {}
        except Failure:  # the run itself will report it
            tapped.shapes[feeds] = None
    shapes = tapped.shapes[feeds]
    if shapes is None or any(size.type not in ELEMENT_TYPES for size in sizes.values()):
        return 1, None
    seen: set[str] = set()
    count = total = held = 0
    for tap in tapped.taps:
        for key in _keys(tap) & sizes.keys() - seen:
            shape = shapes.get(key) or sizes[key].shape or ()
            total += HELD * ELEMENT_TYPES[sizes[key].type].byte_size(prod(map(int, shape)))
            seen.add(key)
        if count and total > engine.request.tap_memory:
            break
        count, held = count + 1, total
    return count, held


def _keys(tap: "Sequence[TapRun] | str") -> set[str]:
    """Return the keys of the arrays that a tap needs."""
    runs = () if isinstance(tap, str) else tap
    values = [value for run in runs for value in (*run.inputs, run.output, *run.markers, *run.counts)]
    return {value[0] for value in values if value is not None and value[1] is not None}


class ModelInput(NamedTuple):
    """An input of a model in a runtime: all of its names, the usual one first."""

    names: Sequence[str]
    type: str
    """Our name of the element type, or the runtime's if we have none."""
    shape: Shape
    is_optional: bool = False
    """Whether it has a default value."""


def names_of_feeds(inputs: Sequence[ModelInput], feeds: Mapping[str, Array]) -> tuple[str, ...]:
    """Return for each input the name of its feed; "" for one that is optional and not fed.

    Raises:
        Failure: a feed is missing, superfluous, or of the wrong type or shape.
    """
    try:
        feed_names = feeds_by_input([(input.names, input.is_optional) for input in inputs], feeds)
    except BadFeed as error:
        raise Failure("refused", str(error)) from None
    for input, name in zip(inputs, feed_names, strict=True):
        if not name:
            continue
        row, array = ELEMENT_TYPES.get(input.type), feeds[name]
        expected = None if row is None else dtype(row)
        if expected is None:
            raise Failure("unsupported", f"{name} is {input.type}, which NumPy has no type for")
        if array.dtype != expected:
            raise Failure("refused", f"{name} is {array.dtype.name}, expected {expected.name}")
        if not agree(array.shape, input.shape):
            expected_shape = show(input.shape)
            raise Failure("refused", f"{name} has shape {list(array.shape)}, expected {expected_shape}")
    return tuple(feed_names)
