"""Runs a model in the process of its runtime, and returns the inputs and outputs of requested nodes (taps).

As many nodes are tapped at once as the runtime and memory allow. A tapped value is a pair: the key of an
array, and the number of loops around the node, each of which has stacked the value on one leading dimension;
or the name of a feed (model input) and None.
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
"""After this many feeds are refused with the same message, the other feeds are not tried."""

HELD = 3
"""Copies of an output in memory at the same time: in the runtime, as its output array, and the copy to be
sent.
"""

_MODELS = 3
"""Number of loaded models that a runtime keeps: two that are compared, and the one before."""

INSIDE = "it is inside a body"
"""The problem of a tapped node in a body that was left out because the runtime refuses outputs of bodies."""

Value: TypeAlias = tuple[str, int | None]


class TapRun(NamedTuple):
    """Where the inputs and the output of one tapped node are among the outputs of the tapped model.

    A node of a function has one record for each call.
    """

    inputs: Sequence[Value | None]
    output: Value
    markers: Sequence[Value] = ()
    """Values that are 1 if a branch around the node was taken, each with the number of loops around that
    branch.
    """
    counts: Sequence[Value] = ()
    """The number of iterations of each loop around the node, the outermost first, each with the number of
    loops around it. Stacked values beyond that were never computed. Empty if the runtime stacks computed
    values only.
    """
    caller: str = ""

    def executions(self, arrays: Mapping[str, Array], feeds: Mapping[str, Array]) -> Iterator[Execution]:
        """Yield the tapped inputs and output for each iteration in which the node was executed."""

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
    """What is known of the size of a tapped value: type, shape, and how many loops stack it."""

    type: str = ""
    shape: tuple[int, ...] | None = None
    loops: int = 0


@dataclass(slots=True, eq=False)
class Loaded:
    """A model that a runtime has loaded, with additional outputs for tapped nodes.

    Attributes:
        taps: for each tapped node the places of its values, or why there are none.
        sizes: sizes of the additional outputs, by key.
        constants: arrays of constants that need no output, by key.
        sessions: the loaded sessions, by their options.
        shapes: shapes of values, by the shapes of feeds; None if they cannot be inferred.
    """

    model: Any
    taps: "list[list[TapRun] | str]" = field(default_factory=list)
    sizes: dict[str, TappedSize] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    sessions: dict[Hashable, Any] = field(default_factory=dict)
    shapes: "dict[Hashable, Mapping[str, Sequence[int]] | None]" = field(default_factory=dict)


class RunAnswer(NamedTuple):
    """The outputs of a run, and which tapped values they contain."""

    runs: list[dict[str, Array]]
    seconds: float
    taps: "list[list[TapRun] | str]"
    """For each of the first taps where its values are, or why there are none."""
    arrays: dict[str, Array]
    too_large: int = 0
    """Bytes of the tapped values, if they exceed the limit; 0 otherwise."""
    facts: tuple[NodeFacts, ...] = ()

    def tapped(self, taps: Sequence[Tap], feeds: Mapping[str, Array]) -> Iterator[Tapped]:
        """Yield the executions of the tapped nodes, for all requested taps or only the first ones."""
        for tap, places in zip(taps, self.taps, strict=False):
            if isinstance(places, str):
                yield Tapped(tap, problem=places)
            else:
                runs = (run.executions(self.arrays, feeds) for run in places)
                yield Tapped(tap, tuple(execution for run in runs for execution in run))


@contextmanager
def as_failures(failure: Callable[[Exception], Failure], *, at_inference: bool = False) -> Iterator[None]:
    """Convert exceptions of a runtime in this block to failures; `at_inference` is noted in them."""
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
    """The names of the feeds (model inputs), in the order that `add_taps` expects."""
    names: Sequence[str]
    """The names of the model's outputs."""
    begins_anew = True
    """Whether states are reset before the next inference."""

    def __init__(self, request: RunRequest, feeds: Mapping[str, Array]) -> None:
        """Read the model; subclasses check the feeds against the model's inputs."""
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
        """Return a copy of a model with outputs for tapped nodes; with `bodies` also for nodes in bodies."""

    @abstractmethod
    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        """Return the shapes of values for these feeds; None if they cannot be inferred."""

    @abstractmethod
    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        """Run once; return the outputs and the tapped values as arrays that own their memory."""

    def facts(self) -> tuple[NodeFacts, ...]:
        """Return how the runtime executes nodes (kernels, times), if it reports that."""
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
    """Run with all taps; if that fails, without taps in bodies; if that fails too, without taps.

    If memory does not allow all taps, only the first ones are returned.
    """
    started = perf_counter()
    made = engine(request, feeds)
    seconds = perf_counter() - started
    problem = ""
    for bodies in (True, False) if request.taps else ():
        try:
            tapped = _tapped(engine, made.file, request.taps, made.fed, bodies)
            count, held = _fitting(made, tapped)
            if count < len(request.taps):  # not kept for later runs: it has only some of the taps
                tapped = _tapped.__wrapped__(engine, made.file, request.taps[:count], made.fed, bodies)
            answer = _run(made, tapped)
        except Failure as failure:
            problem = failure.message
            continue
        reason = f"the model does not run if values of its bodies are outputs: {problem}"
        taps = [reason if tap == INSIDE else tap for tap in answer.taps]
        if held is None:
            held = HELD * sum(array.nbytes for array in answer.arrays.values())
        answer = answer._replace(taps=taps, too_large=held if held > request.tap_memory else 0)
        break
    else:
        reason = f"the model does not run if inputs of nodes are outputs: {problem}"
        answer = _run(made, made.loaded)._replace(taps=[reason for _ in request.taps])
    facts = made.facts() if request.profile else ()
    return answer._replace(seconds=answer.seconds + seconds, facts=facts)


def stream(
    engine: type[Engine], request: RunRequest, feeds: Sequence[Mapping[str, Array]], progress: str
) -> list[Streamed]:
    """Run a model once for each feed; the file `progress` holds the number of the current one.

    All feeds have the same names. A refusal concerns one feed only; but if the first feeds are all refused
    with the same message, all are refused, since each would load the model again.
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
    """Return how many taps fit into memory, at least one, and their size in bytes, if known."""
    sizes = tapped.sizes
    unknown = [key for key, size in sizes.items() if size.shape is None]
    feeds = tuple((name, feed.shape) for name, feed in engine.feeds.items())
    if feeds not in tapped.shapes:
        try:
            tapped.shapes[feeds] = engine.shapes(tapped, unknown) if unknown else {}
        except Failure:  # the run itself will report the failure
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
    """Return the keys of the arrays that hold the values of a tap."""
    runs = () if isinstance(tap, str) else tap
    values = [value for run in runs for value in (*run.inputs, run.output, *run.markers, *run.counts)]
    return {value[0] for value in values if value is not None and value[1] is not None}


class ModelInput(NamedTuple):
    """An input of a model as its runtime describes it: all names, the usual one first."""

    names: Sequence[str]
    type: str
    """Our name of the element type, or the runtime's if we have none."""
    shape: Shape
    is_optional: bool = False
    """Whether the input has a default value, so that it need not be fed."""


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
