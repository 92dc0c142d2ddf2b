"""Runs a model in the process of its runtime, with as many taps as it bears and memory allows.

A tapped value is a pair on the way: the key of an array and how many of the loops around the node have
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
"""So many feeds are tried on a model that refuses each in the same words."""

HELD = 3
"""So often a value is held that is given out: where the runtime computes it, as an output, and as a copy
that is sent."""

_MODELS = 3
"""So many models a runtime keeps, with taps and without: two that are compared, and the one before."""

INSIDE = "it is inside a body"
"""The problem of a tap that was left out because outputs of bodies did not work."""

Value: TypeAlias = tuple[str, int | None]


class TapRun(NamedTuple):
    """Where to find what went in and out of a node, in one way to get there; see `Execution`."""

    inputs: Sequence[Value | None]
    output: Value
    markers: Sequence[Value] = ()
    """What is 1 where a branch around the node was taken, with the loops around the branch."""
    counts: Sequence[Value] = ()
    """The number of iterations of each loop around the node, the outermost first, with the loops around it:
    what is stacked beyond that was never computed. Empty where a runtime stacks what was computed only."""
    caller: str = ""

    def executions(self, arrays: Mapping[str, Array], feeds: Mapping[str, Array]) -> Iterator[Execution]:
        """Yield what was computed in the iterations in which the branches around the node were taken."""

        def array(value: Value) -> Array:
            key, loops = value
            if loops is None:
                return feeds[key]
            index: Any = (*place[:loops], ...)
            found: Array = arrays[key][index]
            return found

        for place in product(*map(range, arrays[self.output[0]].shape[: self.output[1]])):
            is_taken = all(array(marker).all() for marker in self.markers)
            if is_taken and all(place[count[1] or 0] < array(count).max(initial=0) for count in self.counts):
                inputs = (None if value is None else array(value) for value in self.inputs)
                yield Execution(place, tuple(inputs), array(self.output), self.caller)


class Size(NamedTuple):
    """What is known of how much memory a value takes: its type, its shape, and how many loops stack it."""

    type: str = ""
    shape: tuple[int, ...] | None = None
    loops: int = 0


@dataclass(slots=True, eq=False)
class Loaded:
    """A model that a runtime has loaded, with more outputs if nodes are tapped.

    Attributes:
        taps: for each tap where its values are, or what the problem is.
        sizes: of the values that are given out for taps, by key.
        constants: values that the model holds, by key.
        sessions: what runs it, by the options for that.
        shapes: of values, by the shapes of feeds, where these decide; None where they cannot be known.
    """

    model: Any
    taps: "list[list[TapRun] | str]" = field(default_factory=list)
    sizes: dict[str, Size] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    sessions: dict[Hashable, Any] = field(default_factory=dict)
    shapes: "dict[Hashable, Mapping[str, Sequence[int]] | None]" = field(default_factory=dict)


class Answer(NamedTuple):
    """What came of a run."""

    runs: list[dict[str, Array]]
    seconds: float
    taps: "list[list[TapRun] | str]"
    """For each of the first taps where its values are, by key, or what the problem is."""
    arrays: dict[str, Array]
    too_large: int = 0
    """Bytes that taps held, if they are more than is allowed."""
    facts: tuple[NodeFacts, ...] = ()

    def tapped(self, taps: Sequence[Tap], feeds: Mapping[str, Array]) -> Iterator[Tapped]:
        """Yield what came out of the nodes that were tapped: of all that were asked for, or the first."""
        for tap, found in zip(taps, self.taps, strict=False):
            if isinstance(found, str):
                yield Tapped(tap, problem=found)
            else:
                runs = (run.executions(self.arrays, feeds) for run in found)
                yield Tapped(tap, tuple(execution for run in runs for execution in run))


@contextmanager
def told_by(failure: Callable[[Exception], Failure]) -> Iterator[None]:
    """Make whatever a runtime says here the answer to what it was asked."""
    try:
        yield
    except Failure:
        raise
    except Exception as error:
        raise failure(error) from None


class Engine(ABC):
    """One model with its feeds in a runtime: what each runtime does in its own way."""

    fed: tuple[str, ...] = ()
    """The names of the feeds, in the order in which taps want them."""
    names: Sequence[str]
    """Those of the outputs."""
    begins_anew = True
    """Whether states are reset before the next inference."""

    def __init__(self, request: RunRequest, feeds: Mapping[str, Array]) -> None:
        """Read the model; who inherits holds the feeds against its inputs."""
        self.request = request
        self.feeds = feeds
        path = Path(request.model)
        self.file = (request.model, identity(path), identity(path.with_suffix(".bin")))
        self.loaded = _loaded(type(self), self.file)

    def feed(self, feeds: Mapping[str, Array]) -> None:
        """Take other feeds of the same names and types."""
        self.feeds = feeds

    @classmethod
    @abstractmethod
    def read(cls, path: str) -> Any:
        """Return the runtime's model of a file."""

    @classmethod
    @abstractmethod
    def add_taps(cls, path: str, model: Any, taps: Sequence[Tap], fed: Sequence[str], bodies: bool) -> Loaded:
        """Return a copy of a model with taps, inside bodies and functions only if these are wanted."""

    @abstractmethod
    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        """Return the shapes of values with these feeds; None if they cannot be known beforehand."""

    @abstractmethod
    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        """Run once and return arrays of their own: the outputs, and those that taps need."""

    def facts(self) -> tuple[NodeFacts, ...]:
        """Return what the runtime made of the nodes, if it tells anything."""
        return ()


@lru_cache(_MODELS)
def _loaded(engine: type[Engine], file: tuple[Any, ...]) -> Loaded:
    return Loaded(engine.read(file[0]))


@lru_cache(_MODELS)
def _tapped(
    engine: type[Engine], file: tuple[Any, ...], taps: tuple[Tap, ...], fed: tuple[str, ...], bodies: bool
) -> Loaded:
    return engine.add_taps(file[0], _loaded(engine, file).model, taps, fed, bodies)


def run(engine: type[Engine], request: RunRequest, feeds: Mapping[str, Array]) -> Answer:
    """Run with all taps; if that fails without those in bodies; and if that fails too without any.

    Where memory does not allow all taps, the first ones are answered.
    """
    started = perf_counter()
    made = engine(request, feeds)
    seconds = perf_counter() - started
    problem = ""
    for bodies in (True, False) if request.taps else ():
        try:
            tapped = _tapped(engine, made.file, request.taps, made.fed, bodies)
            count, held = _fitting(made, tapped)
            if count < len(request.taps):  # what is made for some taps alone is not kept
                tapped = _tapped.__wrapped__(engine, made.file, request.taps[:count], made.fed, bodies)
            answer = _run(made, tapped)
        except Failure as failure:
            problem = failure.message
            continue
        reason = f"with outputs out of its body the model does not run: {problem}"
        taps = [reason if one == INSIDE else one for one in answer.taps]
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
    """Run a model once for each of many feeds of the same names; a file says how many are done.

    What a runtime refuses of one feed is the answer to that one alone. A model whose first feeds are all
    refused in the same words is refused for all, as each would load it again.
    """
    found: list[Streamed] = []
    with open(progress, "r+b", buffering=0) as file:
        made = engine(request, feeds[0])
        for number, one in enumerate(feeds):
            file.seek(0)
            file.write(number.to_bytes(PROGRESS_BYTES))
            try:
                made.feed(one)
                found.append(Streamed(Status.OK, made.infer(made.loaded, ())))
                made.begins_anew = not request.keeps_states
            except Failure as failure:
                found.append(Streamed(Status(failure.status), message=failure.message))
                messages = {one.message for one in found}
                if number == _REFUSALS - 1 and len(messages) == 1 and messages != {""}:
                    return found[:1] * len(feeds)
    return found


def _run(engine: Engine, loaded: Loaded) -> Answer:
    keys = sorted(set().union(*map(_keys, loaded.taps)) - loaded.constants.keys())
    started, count = perf_counter(), len(engine.names)
    engine.begins_anew = True
    found = engine.infer(loaded, keys)
    engine.begins_anew = not engine.request.keeps_states
    seconds = perf_counter() - started
    arrays = dict(zip(keys, found[count:], strict=True)) | loaded.constants
    runs = [found[:count], *(engine.infer(loaded, ()) for _ in range(engine.request.repeat - 1))]
    return Answer([dict(zip(engine.names, one, strict=True)) for one in runs], seconds, loaded.taps, arrays)


def _fitting(engine: Engine, tapped: Loaded) -> tuple[int, int | None]:
    """Return how many taps are made at once, at least one, and what is held for them, if that is known."""
    sizes = tapped.sizes
    unknown = [key for key, size in sizes.items() if size.shape is None]
    feeds = tuple((name, feed.shape) for name, feed in engine.feeds.items())
    if feeds not in tapped.shapes:
        try:
            tapped.shapes[feeds] = engine.shapes(tapped, unknown) if unknown else {}
        except Failure:  # the run itself will say it
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


class Input(NamedTuple):
    """An input of a model as a runtime has it: all of its names, the usual one first."""

    names: Sequence[str]
    type: str
    """Our name of the element type, or the runtime's if we know none."""
    shape: Shape
    is_optional: bool = False
    """Whether it has a value if it is not given."""


def names_of_feeds(inputs: Sequence[Input], feeds: Mapping[str, Array]) -> tuple[str, ...]:
    """Return for each input the name of its feed; "" for one that is optional and not fed.

    Raises:
        Failure: a feed is missing, superfluous, or of the wrong type or shape.
    """
    try:
        found = feeds_by_input([(input.names, input.is_optional) for input in inputs], feeds)
    except BadFeed as error:
        raise Failure("refused", str(error)) from None
    for input, name in zip(inputs, found, strict=True):
        if not name:
            continue
        row, array = ELEMENT_TYPES.get(input.type), feeds[name]
        expected = None if row is None else dtype(row)
        if expected is None:
            raise Failure("unsupported", f"{name} is {input.type}, which NumPy has no type for")
        if array.dtype != expected:
            raise Failure("refused", f"{name} is {array.dtype.name}, expected {expected.name}")
        if not agree(array.shape, input.shape):
            shown = show(input.shape)
            raise Failure("refused", f"{name} has shape {list(array.shape)}, expected {shown}")
    return tuple(found)
