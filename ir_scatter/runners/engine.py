"""Runs a model inside the runtime's child process, and returns the inputs and outputs of tapped nodes.

A tap is a request for the inputs and the output of one node (`runners.base.Tap`); a feed is a set of model
inputs. As many nodes are tapped at once as the runtime and memory allow.

A tapped value (`Value`) is (key of an array, number of loops around the node) or (name of a feed, None).
Each loop adds a leading dimension to the array, with one entry for each iteration.
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
"""Number of feeds that are refused with equal messages before the other feeds are skipped."""

COPIES = 3
"""Copies of an output in memory at once: the runtime's, the output array, and the copy to be sent."""

_MODELS = 3
"""Number of loaded models to keep: two that are compared, and the previous one."""

IN_BODY = "it is inside a body"
"""The problem of a tap inside a body, if the runtime refuses outputs from bodies."""

Value: TypeAlias = tuple[str, int | None]


class TapRun(NamedTuple):
    """Where a node's inputs and output are found among the outputs of the tapped model.

    A node of a function has one record for each call.
    """

    inputs: Sequence[Value | None]
    output: Value
    markers: Sequence[Value] = ()
    """Values that are 1 if a branch around the node was executed, each with the number of loops around the
    branch.
    """
    counts: Sequence[Value] = ()
    """Number of iterations of each loop around the node, outermost first, as values of the loop itself.

    Later entries of stacked values were not computed. Empty if the runtime stacks only computed entries.
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
    """The known size of a tapped value: element type, shape, and number of loops that stack it."""

    type: str = ""
    shape: tuple[int, ...] | None = None
    loops: int = 0


@dataclass(slots=True, eq=False)
class Loaded:
    """A model that a runtime has loaded, with additional outputs for tapped nodes.

    Attributes:
        taps: for each tap the places of its values, or the reason why there are none.
        sizes: sizes of the additional outputs, by key.
        constants: arrays of constants that need no output, by key.
        sessions: compiled models, by their options.
        shapes: inferred shapes of additional outputs, by shapes of the feed; None if inference fails.
    """

    model: Any
    taps: "list[list[TapRun] | str]" = field(default_factory=list)
    sizes: dict[str, TappedSize] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    sessions: dict[Hashable, Any] = field(default_factory=dict)
    shapes: "dict[Hashable, Mapping[str, Sequence[int]] | None]" = field(default_factory=dict)


class RunAnswer(NamedTuple):
    """The outputs of a run, and the places of tapped values among them."""

    runs: list[dict[str, Array]]
    seconds: float
    taps: "list[list[TapRun] | str]"
    """For each of the first taps the places of its values, or the reason why there are none."""
    arrays: dict[str, Array]
    too_large: int = 0
    """Bytes of the tapped values if they exceed the limit; otherwise 0."""
    facts: tuple[NodeFacts, ...] = ()

    def tapped(self, taps: Sequence[Tap], feeds: Mapping[str, Array]) -> Iterator[Tapped]:
        """Yield the results of the taps, all or only the first ones."""
        for tap, places in zip(taps, self.taps, strict=False):
            if isinstance(places, str):
                yield Tapped(tap, problem=places)
            else:
                runs = (run.executions(self.arrays, feeds) for run in places)
                yield Tapped(tap, tuple(execution for run in runs for execution in run))


@contextmanager
def as_failures(failure: Callable[[Exception], Failure], *, at_inference: bool = False) -> Iterator[None]:
    """Convert exceptions in this block to failures. `at_inference` marks a failure during inference."""
    try:
        yield
    except Failure:
        raise
    except Exception as error:
        converted = failure(error)
        converted.at_inference = at_inference
        raise converted from None


class Engine(ABC):
    """A model and a feed inside a runtime; each runtime has a subclass."""

    fed: tuple[str, ...] = ()
    """The names of the feed's arrays, in the order that `add_taps` expects."""
    names: Sequence[str]
    """The names of the model's outputs."""
    resets_states = True
    """Whether to reset states before the next inference."""

    def __init__(self, request: RunRequest, feeds: Mapping[str, Array]) -> None:
        """Read the model. Subclasses check the feed against the model's inputs."""
        self.request = request
        self.feeds = feeds
        path = Path(request.model)
        self.file = (request.model, identity(path), identity(path.with_suffix(".bin")))
        self.loaded = _loaded(type(self), self.file)

    def feed(self, feeds: Mapping[str, Array]) -> None:
        """Replace the feed by another with equal names and types."""
        self.feeds = feeds

    @classmethod
    @abstractmethod
    def read(cls, path: str) -> Any:
        """Return the runtime's representation of a model file."""

    @classmethod
    @abstractmethod
    def add_taps(cls, path: str, model: Any, taps: Sequence[Tap], fed: Sequence[str], bodies: bool) -> Loaded:
        """Return a copy of a model with outputs for taps; nodes in bodies are included only with `bodies`."""

    @abstractmethod
    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        """Return the shapes of additional outputs for the current feed; None if they cannot be inferred."""

    @abstractmethod
    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        """Run once. Return the outputs and the tapped values, as arrays that own their memory."""

    def facts(self) -> tuple[NodeFacts, ...]:
        """Return how the runtime executes nodes (kernels, times); empty if it does not report that."""
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
    """Run with all taps. If that fails, run without taps in bodies, then without any taps.

    If memory does not suffice for all taps, only the first ones are returned.
    """
    started = perf_counter()
    instance = engine(request, feeds)
    seconds = perf_counter() - started
    problem = ""
    for bodies in (True, False) if request.taps else ():
        try:
            tapped = _tapped(engine, instance.file, request.taps, instance.fed, bodies)
            count, held = _count_fitting_taps(instance, tapped)
            if count < len(request.taps):  # not kept for later runs: it has only some of the taps
                tapped = _tapped.__wrapped__(
                    engine, instance.file, request.taps[:count], instance.fed, bodies
                )
            answer = _run(instance, tapped)
        except Failure as failure:
            problem = failure.message
            continue
        reason = f"the model fails if values in its bodies are added as outputs: {problem}"
        taps = [reason if tap == IN_BODY else tap for tap in answer.taps]
        if held is None:
            held = COPIES * sum(array.nbytes for array in answer.arrays.values())
        answer = answer._replace(taps=taps, too_large=held if held > request.tap_memory else 0)
        break
    else:
        reason = f"the model fails if inputs of nodes are added as outputs: {problem}"
        answer = _run(instance, instance.loaded)._replace(taps=[reason for _ in request.taps])
    facts = instance.facts() if request.profile else ()
    return answer._replace(seconds=answer.seconds + seconds, facts=facts)


def stream(
    engine: type[Engine], request: RunRequest, feeds: Sequence[Mapping[str, Array]], progress: str
) -> list[Streamed]:
    """Run a model once for each feed. The file `progress` contains the number of the current feed.

    All feeds have equal names. If the first feeds are all refused with the same message, the other feeds are
    refused without a run, because each would load the model again.
    """
    answers: list[Streamed] = []
    with open(progress, "r+b", buffering=0) as file:
        instance = engine(request, feeds[0])
        for number, arrays in enumerate(feeds):
            file.seek(0)
            file.write(number.to_bytes(PROGRESS_BYTES))
            try:
                instance.feed(arrays)
                answers.append(Streamed(Status.OK, instance.infer(instance.loaded, ())))
                instance.resets_states = not request.keeps_states
            except Failure as failure:
                answers.append(Streamed(Status(failure.status), message=failure.message))
                messages = {answer.message for answer in answers}
                if number == _REFUSALS - 1 and len(messages) == 1 and messages != {""}:
                    return answers[:1] * len(feeds)
    return answers


def _run(engine: Engine, loaded: Loaded) -> RunAnswer:
    keys = sorted(set().union(*map(_array_keys, loaded.taps)) - loaded.constants.keys())
    started, count = perf_counter(), len(engine.names)
    engine.resets_states = True
    outputs = engine.infer(loaded, keys)
    engine.resets_states = not engine.request.keeps_states
    seconds = perf_counter() - started
    arrays = dict(zip(keys, outputs[count:], strict=True)) | loaded.constants
    runs = [outputs[:count], *(engine.infer(loaded, ()) for _ in range(engine.request.repeat - 1))]
    return RunAnswer(
        [dict(zip(engine.names, run, strict=True)) for run in runs], seconds, loaded.taps, arrays
    )


def _count_fitting_taps(engine: Engine, tapped: Loaded) -> tuple[int, int | None]:
    """Return the number of taps that fit into memory, at least one, and their bytes (None if unknown)."""
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
        for key in _array_keys(tap) & sizes.keys() - seen:
            shape = shapes.get(key) or sizes[key].shape or ()
            total += COPIES * ELEMENT_TYPES[sizes[key].type].byte_size(prod(map(int, shape)))
            seen.add(key)
        if count and total > engine.request.tap_memory:
            break
        count, held = count + 1, total
    return count, held


def _array_keys(tap: "Sequence[TapRun] | str") -> set[str]:
    """Return the keys of the arrays that contain the values of a tap."""
    runs = () if isinstance(tap, str) else tap
    values = [value for run in runs for value in (*run.inputs, run.output, *run.markers, *run.counts)]
    return {value[0] for value in values if value is not None and value[1] is not None}


class ModelInput(NamedTuple):
    """An input of a model as its runtime describes it. The first of its names is the usual one."""

    names: Sequence[str]
    type: str
    """Our name of the element type; the runtime's name for unknown types."""
    shape: Shape
    is_optional: bool = False
    """Whether the input has a default value."""


def names_of_feeds(inputs: Sequence[ModelInput], feeds: Mapping[str, Array]) -> tuple[str, ...]:
    """Return the name in the feed for each input; "" for an optional input without a feed.

    Raises:
        Failure: an array is missing, superfluous, or of the wrong type or shape.
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
