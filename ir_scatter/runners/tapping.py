"""Runs a model with as many taps as it bears and memory allows, and says what came out of them.

A handler answers in the process of a runtime; `decode` reads the answer where it was asked for. A tapped
value is a pair in between: a feed and None, or the key of an array and how many of the loops around the
node have stacked it, each on one leading dimension.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.runners.base import Execution, RunRequest, Tap, Tapped
from ir_scatter.runners.transport import ON_DISK, Answer, Failure, Handler

HELD = 3
"""So often a value is held that is given out: where the runtime computes it, as an output, and as a copy
that is sent."""

KEPT = 3
"""So many models a runtime keeps, with taps and without: two that are compared, and the one before."""

INSIDE = "it is inside a body"
"""The problem of a tap that was left out because outputs of bodies did not work."""

Value: TypeAlias = tuple[str, int | None]


def identity(path: str) -> tuple[Hashable, ...]:
    """Return what tells one state of a file, and of the weights beside it, from another."""
    found: list[Hashable] = [path]
    for name in (path, str(Path(path).with_suffix(".bin"))):
        try:
            state = os.stat(name)
            found.append((state.st_mtime_ns, state.st_size, state.st_ino, state.st_dev))
        except OSError:
            found.append(None)
    return tuple(found)


class CannotTap(Exception):
    """A value cannot be made an output; the message says why."""


class TapRun(NamedTuple):
    """Where to find what went in and out of a node, in one way to get there.

    Attributes:
        inputs: None for one that was left out.
        output: the first one.
        markers: what is 1 where a branch around the node was taken, with the loops around the branch.
        caller: for a node of a function the path to the node that calls it.
    """

    inputs: list[Value | None]
    output: Value
    markers: Sequence[Value] = ()
    caller: str = ""

    def keys(self) -> set[str]:
        """Return the keys of the arrays that are needed."""
        values = [*self.inputs, self.output, *self.markers]
        return {value[0] for value in values if value is not None and value[1] is not None}


class Size(NamedTuple):
    """What is known of how much memory a value takes.

    Attributes:
        type: the element type; any other word if it is not known.
        shape: None if it is not known.
        loops: how many loops stack it.
    """

    type: str = ""
    shape: tuple[int, ...] | None = None
    loops: int = 0


@dataclass(slots=True, eq=False)
class Loaded:
    """A model that a runtime has loaded, with more outputs if nodes are tapped.

    Attributes:
        model: of the runtime.
        taps: for each tap where its values are, or what the problem is.
        sizes: of the values that are given out for taps, by key.
        constants: values that the model holds, by key.
        sessions: what runs it, by the options for that.
        totals: how many taps fit, and what they hold, by the shapes of feeds.
        seconds: that were spent on it ahead of the first run.
    """

    model: Any
    taps: "list[list[TapRun] | str]" = field(default_factory=list)
    sizes: dict[str, Size] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    sessions: dict[Hashable, Any] = field(default_factory=dict)
    totals: dict[Hashable, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def session(self, options: Hashable, make: Callable[[], Any]) -> Any:
        """Return what runs the model with some options."""
        if options not in self.sessions:
            self.sessions[options] = make()
        return self.sessions[options]


class Engine(ABC):
    """One model with its feeds in a runtime: what each runtime does in its own way.

    Attributes:
        request: what is asked for.
        feeds: by the names that the caller uses.
        loaded: the model without taps.
        names: of the outputs.
    """

    loaded: Loaded
    names: Sequence[str]

    def __init__(self, request: RunRequest, arrays: Sequence[Array]) -> None:
        """Read the model, and hold the feeds against its inputs.

        Raises:
            Failure: the runtime does not want the model or a feed.
        """
        self.request = request
        self.feeds = dict(zip(request.feeds, arrays, strict=True))

    @abstractmethod
    def tap(self, taps: tuple[Tap, ...], *, bodies: bool, keep: bool) -> Loaded:
        """Return a copy of the model with taps.

        Args:
            taps: what is asked for.
            bodies: whether to tap inside bodies and functions as well.
            keep: whether the same will be asked for again.
        """

    @abstractmethod
    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        """Return the shapes of values with these feeds; None if they cannot be known beforehand."""

    @abstractmethod
    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        """Run once and return arrays of their own: the outputs, and those that taps need."""

    def facts(self) -> list[dict[str, Any]]:
        """Return of each node what `NodeFacts` holds, if the runtime tells anything."""
        return []


def handler_of(engine: type[Engine]) -> Handler:
    """Return what runs a model and answers with its outputs and taps."""

    def answer(asked: Mapping[str, Any], arrays: Sequence[Array]) -> Answer:
        started = perf_counter()
        made = engine(RunRequest.of(asked), arrays)
        seconds = perf_counter() - started + made.loaded.seconds
        made.loaded.seconds = 0.0
        found, given = _run_tapped(made, made.request)
        found["seconds"] += seconds
        if made.request.profile:
            found["facts"] = made.facts()
        return found, given

    return answer


def _run_tapped(engine: Engine, request: RunRequest) -> Answer:
    """Run with all taps; if that fails without those in bodies; and if that fails too without any."""
    problem = ""
    for bodies in (True, False) if request.taps else ():
        try:
            whole = engine.tap(request.taps, bodies=bodies, keep=not request.is_rest)
            count, held = _fitting(engine, whole, request.tap_memory)
            is_part = request.is_rest or count < len(request.taps)
            if count < len(request.taps):  # what is made for these alone must not be kept
                whole = engine.tap(request.taps[:count], bodies=bodies, keep=False)
            answer, arrays = _run(engine, whole, request)
        except Failure as failure:
            problem = failure.message
            continue
        reason = f"with outputs out of its body the model does not run: {problem}"
        taps = [reason if one == INSIDE else one for one in whole.taps]
        if held is None:
            held = HELD * sum(array.nbytes for array in arrays[len(engine.names) * request.repeat :])
        answer |= {"too_large": held if held > request.tap_memory else 0, ON_DISK: is_part}
        break
    else:
        answer, arrays = _run(engine, engine.loaded, request)
        reason = f"with its inputs as outputs the model does not run: {problem}"
        taps = [reason for _ in request.taps]
    answer["taps"] = taps
    return answer, arrays


def _run(engine: Engine, loaded: Loaded, request: RunRequest) -> Answer:
    keys = sorted(set().union(*map(_keys, loaded.taps)))
    given = [key for key in keys if key not in loaded.constants]
    started, count = perf_counter(), len(engine.names)
    first = engine.infer(loaded, given)
    seconds = perf_counter() - started
    found = dict(zip(given, first[count:], strict=True)) | loaded.constants
    outputs = first[:count]
    for _ in range(request.repeat - 1):
        outputs += engine.infer(loaded, ())
    answer = {"names": engine.names, "repeat": request.repeat, "keys": keys, "seconds": seconds}
    return answer, outputs + [found[key] for key in keys]


def _fitting(engine: Engine, tapped: Loaded, limit: int) -> tuple[int, int | None]:
    """Return how many taps are made at once, at least one, and what is held for them, if that is known."""
    shapes = tuple((name, feed.shape) for name, feed in engine.feeds.items())
    if shapes not in tapped.totals:
        try:
            tapped.totals[shapes] = _totals(engine, tapped)
        except Failure:  # the run itself will say it
            tapped.totals[shapes] = None
    totals = tapped.totals[shapes]
    if totals is None:
        return 1, None
    count = max(sum(total <= limit for total in totals), 1)
    return count, totals[count - 1]


def _totals(engine: Engine, tapped: Loaded) -> list[int] | None:
    """Return the bytes that are held for the first tap, for the first two, and so on."""
    keys_of = [_keys(tap) & tapped.sizes.keys() for tap in tapped.taps]
    sizes = {key: tapped.sizes[key] for keys in keys_of for key in keys}
    if any(size.type not in ELEMENT_TYPES for size in sizes.values()):
        return None
    unknown = [key for key, size in sizes.items() if size.shape is None]
    known = engine.shapes(tapped, unknown) if unknown else {}
    if known is None:
        return None
    held: set[str] = set()
    totals, total = [], 0
    for keys in keys_of:
        for key in keys - held:
            shape = known.get(key) or sizes[key].shape or ()
            total += HELD * ELEMENT_TYPES[sizes[key].type].byte_size(prod(map(int, shape)))
        held |= keys
        totals.append(total)
    return totals


def _keys(tap: "Sequence[TapRun] | str") -> set[str]:
    """Return the keys of the arrays that a tap needs."""
    return set() if isinstance(tap, str) else set().union(*(run.keys() for run in tap))


def decode(
    taps: Sequence[Tap], answer: Mapping[str, Any], arrays: Sequence[Array], feeds: Mapping[str, Array]
) -> tuple[list[dict[str, Array]], list[Tapped]]:
    """Return the outputs of each run by name, and what came out of each tapped node.

    Args:
        taps: what was asked for; the answer may have fewer.
        answer: of the runtime's process.
        arrays: that came with it.
        feeds: that were sent.
    """
    names, rest, runs = answer.get("names", ()), iter(arrays), []
    for _ in range(answer.get("repeat", 0)):
        runs.append({name: next(rest) for name in names})
    found = dict(zip(answer.get("keys", ()), rest, strict=True))
    tapped = []
    for tap, one in zip(taps, answer.get("taps", ()), strict=False):
        problem, told = (one, ()) if isinstance(one, str) else ("", one)
        executions = [execution for run in told for execution in _executions(TapRun(*run), found, feeds)]
        tapped.append(Tapped(tap, tuple(executions), problem))
    return runs, tapped


def _executions(run: TapRun, arrays: Mapping[str, Array], feeds: Mapping[str, Array]) -> Iterator[Execution]:
    """Yield what was computed in the iterations in which the branches around the node were taken."""
    key, loops = run.output
    for place in product(*map(range, arrays[key].shape[:loops])):
        if all(arrays[marker][place[:depth]].all() for marker, depth in run.markers):
            value = partial(_value, place=place, arrays=arrays, feeds=feeds)
            found = value(run.output)
            assert found is not None
            yield Execution(place, tuple(map(value, run.inputs)), found, run.caller)


def _value(
    source: Value | None, place: tuple[int, ...], arrays: Mapping[str, Array], feeds: Mapping[str, Array]
) -> Array | None:
    if source is None:
        return None
    key, loops = source
    if loops is None:
        return feeds[key]
    array: Any = arrays[key]
    found: Array = array[(*place[:loops], ...)]
    return found
