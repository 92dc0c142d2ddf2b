"""Runs NumPy as the reference: it computes a model in a thread while other processes run the runtimes."""

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

from ir_scatter.analysis.interpreter import NotComputed, OutOfTime
from ir_scatter.compare.first_difference import PartDifference, find_first_difference
from ir_scatter.compare.guard import (
    ContestedMasks,
    MarkedTensor,
    Observations,
    Unspecified,
    Watcher,
    watch_partially,
)
from ir_scatter.compare.rounding import MODEL_TYPES, Precision, Roundings, measure_rounding
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import Key
from ir_scatter.core.errors import BrokenModel, Error, EvaluationFailed, UnknownOperator, UnreadableModel
from ir_scatter.core.model import Model
from ir_scatter.core.words import counted
from ir_scatter.evaluate.model import Computed, Program, Sketch, check_feeds, make_sketch, prepare
from ir_scatter.inputs.coverage import OptionalBody, optional_bodies
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.runners.base import Outcome, Status
from ir_scatter.runners.defaults import NUMPY
from ir_scatter.version import versions

_MOST_ENDS = 3
"""Maximum unsupported nodes that a message names: more would not fit a line."""

_MOST_OUTPUTS = 8
"""Maximum outputs downstream of an unsupported node that a message names."""


class Reference:
    """Computes one model with NumPy in a thread, and records the indices that its scatter nodes get."""

    def __init__(self, model: Model, *, has_taps: bool = True) -> None:
        """Prepare a model; `has_taps` says whether runners read the tensors at its scatter nodes."""
        self._model, self._has_taps = model, has_taps
        self._nodes = frozenset(node.scope for node in model.walk(scatter_types(model.domain)))
        self._timed_out: Outcome | None = None

    def start(
        self, feeds: Mapping[str, Array], times: int = 1, timeout: float | None = None
    ) -> Callable[[float], tuple[Outcome, Observations]]:
        """Start computing in a thread, unless an earlier run timed out; return a function that waits.

        The returned function takes a time limit in seconds from the start. Its observations are empty if the
        limit is exceeded. It raises BadFeed if feeds do not fit the model, and UnreadableModel if the model
        or a needed constant cannot be read.

        Args:
            feeds: the inputs by name.
            times: number of consecutive inferences, if the model keeps states.
            timeout: the time limit; a loop that will surely exceed it is aborted early.
        """
        observations, earlier, started = Observations(self._nodes), self._timed_out, time.monotonic()
        deadline = None if timeout is None else started + timeout
        work = partial(self._compute, feeds, observations, times, deadline)
        future = run_in_background(work if earlier is None else lambda: earlier)

        def finish(timeout: float) -> tuple[Outcome, Observations]:
            try:
                outcome: Outcome = future.result(max(timeout - (time.monotonic() - started), 0))
            except TimeoutError:
                message = f"no answer within {counted(timeout, 'second')}"
                outcome = self._timed_out = self._outcome(Status.TIMEOUT, message)
            return outcome, Observations() if outcome is self._timed_out else observations

        return finish

    def optional_bodies(self, *, has_scatter: bool) -> list[OptionalBody]:
        """Return the branches and loop bodies that may not run; [] if the model cannot be analysed."""
        program = self.__dict__.get("_program")  # only if it was prepared before
        model = program if isinstance(program, Sketch) else self._sketch
        return [] if model is None else optional_bodies(model, has_scatter=has_scatter)

    def find_unspecified(
        self, feeds: Mapping[str, Array], masks: ContestedMasks, timeout: float
    ) -> Mapping[str, Unspecified]:
        """Return the outputs with unspecified elements of a model that NumPy cannot compute, by output name.

        Args:
            feeds: the inputs by name.
            masks: the contested elements seen in tensors from runners.
            timeout: seconds for each of two attempts. The first computes what NumPy supports; the second
                computes nothing and only propagates marks of contested elements.
        """
        sketch, ways = self._sketch, (True, False) if self._timed_out is None else (False,)
        for computes in ways if sketch is not None else ():
            assert sketch is not None
            observations = Observations(self._nodes)
            with suppress(TimeoutError, Error):
                work = partial(watch_partially, sketch, feeds, observations, masks, computes=computes)
                run_in_background(work).result(timeout)
            if observations.unspecified is not None:
                return observations.unspecified
        return {}

    def measure_rounding(
        self,
        feeds: Mapping[str, Array],
        times: int,
        timeout: float,
        precision: Precision = MODEL_TYPES,
        seeds: Sequence[int] = (),
    ) -> list[Roundings]:
        """Return the rounding errors of all outputs, per inference; [] if NumPy cannot compute the model.

        Args:
            feeds: the inputs by name.
            times: number of consecutive inferences, if the model keeps states.
            timeout: in seconds.
            precision: the precision in which the runner computes.
            seeds: see `rounding.measure_rounding`.
        """
        program = self.program
        if program is None:
            return []
        times = times if program.plan.assigned else 1
        with suppress(TimeoutError, Error, MemoryError):
            deadline = time.monotonic() + timeout
            work = partial(measure_rounding, program, feeds, times, precision, seeds, deadline)
            roundings: list[Roundings] = run_in_background(work).result(timeout)
            return roundings
        return []

    @property
    def program(self) -> Program | None:
        """The model prepared for NumPy; None if NumPy cannot compute it, or an earlier run timed out."""
        program = self._program if self._timed_out is None else None
        return program if isinstance(program, Program) else None

    def find_first_difference(
        self, feeds: Mapping[str, Array], values: Mapping[Key, Array], precision: Precision, timeout: float
    ) -> PartDifference | None:
        """Return the first part of the model that adds a difference; None if no part does, or time runs out.

        Args:
            feeds: the inputs by name.
            values: tensors that were read from a runner.
            precision: the precision in which that runner computes.
            timeout: in seconds.
        """
        if self.program is None:
            return None
        with suppress(TimeoutError, Error, MemoryError):
            deadline = time.monotonic() + timeout
            work = partial(find_first_difference, self.program, feeds, values, precision, deadline)
            part: PartDifference | None = run_in_background(work).result(timeout)
            return part
        return None

    @cached_property
    def _program(self) -> "Program | Error":
        """The model prepared for NumPy, or the error that explains why NumPy cannot compute it."""
        try:
            return prepare(self._model)
        except (BrokenModel, UnknownOperator, EvaluationFailed) as error:
            return error

    @cached_property
    def _sketch(self) -> "Sketch | None":
        """The part of the model that NumPy supports; None if the model cannot be analysed."""
        with suppress(Error):
            return make_sketch(self._model)
        return None

    def _compute(
        self, feeds: Mapping[str, Array], observations: Observations, times: int, deadline: float | None
    ) -> Outcome:
        """Compute the model; if it has states, run `times` consecutive inferences."""
        start, program = time.perf_counter(), self._program
        if isinstance(program, Error):
            if self._sketch is not None:
                with suppress(EvaluationFailed, UnreadableModel):
                    watch_partially(self._sketch, feeds, observations, {})
                observations.unspecified = None  # unknown until runners have shown contested elements
            is_unknown = isinstance(program, UnknownOperator)
            return self._outcome(Status.UNSUPPORTED if is_unknown else Status.REFUSED, str(program))
        try:
            watcher, runs = Watcher(program.plans, observations), list[dict[str, Array]]()
            watcher.deadline = deadline
            arrays, unspecified = check_feeds(program.inputs, feeds), dict[str, Unspecified]()
            for _ in range(times if program.plan.assigned else 1):
                tensors = watcher.watch(program.plan, arrays)
                runs.append(program.named([_cell(tensor) for tensor in tensors]).outputs)
                unspecified = {**(observations.unspecified or {}), **unspecified}
                observations.unspecified = unspecified
        except OutOfTime as error:
            self._timed_out = self._outcome(Status.TIMEOUT, str(error))
            return self._timed_out
        except EvaluationFailed as error:
            return replace(self._outcome(Status.REFUSED, str(error)), at_inference=not error.breaks_rule)
        except MemoryError:
            return self._outcome(Status.REFUSED, "there is not enough memory")
        message = self._describe_ends(observations.not_computed)
        if not any(runs) and observations.not_computed:
            refusals = [end.refusal for end in observations.not_computed.values()]
            if None in refusals:
                return self._outcome(Status.UNSUPPORTED, message)
            return replace(self._outcome(Status.REFUSED, str(refusals[0])), at_inference=True)
        seconds, not_computed = time.perf_counter() - start, tuple(observations.not_computed)
        outcome = self._outcome(Status.OK, message)
        fails = any(end.refusal is not None for end in observations.not_computed.values())
        return replace(
            outcome, runs=tuple(runs), seconds=seconds, not_computed=not_computed, at_inference=fails
        )

    def _describe_ends(self, not_computed: Mapping[str, NotComputed]) -> str:
        """Describe the nodes that NumPy does not support, and the outputs that depend on them."""
        outputs_of = dict[str, list[str]]()
        for name, end in not_computed.items():
            outputs_of.setdefault(end.source, []).append(name)
        parts = [f"after {source}: {self._without_reference(names)}" for source, names in outputs_of.items()]
        if len(parts) > _MOST_ENDS:
            rest = [name for names in [*outputs_of.values()][_MOST_ENDS:] for name in names]
            more = counted(len(parts) - _MOST_ENDS, "further node")
            parts = [*parts[:_MOST_ENDS], f"after {more}: {self._without_reference(rest)}"]
        return f"NumPy computes nothing {'; nothing '.join(parts)}" if parts else ""

    def _without_reference(self, names: Sequence[str]) -> str:
        shown = ", ".join(names[:_MOST_OUTPUTS])
        more = f" and {len(names) - _MOST_OUTPUTS} more" if len(names) > _MOST_OUTPUTS else ""
        subject, is_one = f"output{'s' * (len(names) > 1)} {shown}{more}", len(names) == 1
        if self._has_taps:
            return f"{subject} {'is' if is_one else 'are'} judged by node only"
        return f"{subject} {'has' if is_one else 'have'} no reference"

    def _outcome(self, status: Status, message: str = "") -> Outcome:
        # reports name the model anyway; in a model from memory, nodes have another path than the model
        paths = {self._model.path, *(node.location.path for node in islice(self._model.walk(), 1))}
        path = f"(?:{'|'.join(map(re.escape, sorted(paths)))})"
        message = re.sub(rf" \({path}(?::\d+)?\)", "", re.sub(rf"^{path}: ", "", message))
        return Outcome(NUMPY, status, message, precision="model", versions=versions())


def _cell(tensor: MarkedTensor | None) -> Computed | None:
    """Return a tensor's array, or the unsupported node that prevented computing it."""
    return None if tensor is None else tensor.end if tensor.array is None else tensor.array


def run_in_background(work: Callable[[], Any]) -> "Future[Any]":
    """Call a function in a daemon thread, so that the process can exit without waiting for it."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised where the result is read
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
