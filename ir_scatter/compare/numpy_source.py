"""NumPy as a source of tensors: computes a model in a thread while runners do."""

import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

from ir_scatter.compare.guard import Open, Seeds, Sight, Watcher, arrays_of, foresee
from ir_scatter.compare.result import NUMPY
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import BrokenModel, Error, EvaluationFailed, UnknownOperator, UnreadableModel
from ir_scatter.core.model import Model
from ir_scatter.core.words import counted
from ir_scatter.evaluate.model import Program, Sketch, check_feeds, make_sketch, prepare
from ir_scatter.inputs.coverage import OptionalBody, optional_bodies
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.runners.base import Outcome, Status
from ir_scatter.version import versions


class Reference:
    """Computes one model while runners do, in a thread, and watches the indices of its scatter nodes."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._nodes = frozenset(node.scope for node in model.walk(scatter_types(model.domain)))
        self._timed_out: Outcome | None = None

    def start(self, feeds: Mapping[str, Array], times: int = 1) -> Callable[[float], tuple[Outcome, Sight]]:
        """Begin to compute, unless that took too long before; return what waits for the end.

        That takes a time limit in seconds from now on, beyond which nothing is seen. It raises BadFeed if
        feeds do not fit the model, and UnreadableModel if it, or a constant that is needed, cannot be read.
        """
        sight, known, started = Sight(self._nodes), self._timed_out, time.monotonic()
        work = partial(self._compute, feeds, sight, times)
        future = in_background(work if known is None else lambda: known)

        def finish(timeout: float) -> tuple[Outcome, Sight]:
            try:
                outcome: Outcome = future.result(max(timeout - (time.monotonic() - started), 0))
            except TimeoutError:
                message = f"no answer within {counted(timeout, 'second')}"
                outcome = self._timed_out = self._ended(Status.TIMEOUT, message)
            return outcome, Sight() if outcome is self._timed_out else sight

        return finish

    def optional_bodies(self, *, has_scatter: bool) -> list[OptionalBody]:
        """Return the bodies that may not run; none of a model of which nothing is known."""
        program = self.__dict__.get("_program")  # not made anew only for that
        model = program if isinstance(program, Sketch) else self._sketch
        return [] if model is None else optional_bodies(model, has_scatter=has_scatter)

    def foresee(self, feeds: Mapping[str, Array], seeds: Seeds, timeout: float) -> Mapping[str, Open]:
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
        except (BrokenModel, UnknownOperator, EvaluationFailed) as error:
            return error

    @cached_property
    def _sketch(self) -> "Sketch | None":
        """Return what is known of a model that cannot be computed; None if that is nothing."""
        with suppress(Error):
            return make_sketch(self._model)
        return None

    def _compute(self, feeds: Mapping[str, Array], sight: Sight, times: int) -> Outcome:
        """Compute the model, and so many times in a row if it assigns states."""
        start, program = time.perf_counter(), self._program
        if isinstance(program, Error):
            if self._sketch is not None:
                with suppress(EvaluationFailed, UnreadableModel):
                    foresee(self._sketch, feeds, sight, {})
                sight.open = None  # as it does not know what runners saw
            is_unknown = isinstance(program, UnknownOperator)
            return self._ended(Status.UNSUPPORTED if is_unknown else Status.REFUSED, str(program))
        try:
            watcher, runs = Watcher(program.plans, sight), list[dict[str, Array]]()
            arrays, opened = check_feeds(program.inputs, feeds), dict[str, Open]()
            for _ in range(times if program.plan.assigned else 1):
                runs.append(program.named(arrays_of(watcher.watch(program.plan, arrays))))
                opened = {**(sight.open or {}), **opened}
                sight.open = opened
        except EvaluationFailed as error:
            return self._ended(Status.REFUSED, str(error))
        except MemoryError:
            return self._ended(Status.REFUSED, "there is not enough memory")
        seconds = time.perf_counter() - start
        return replace(self._ended(Status.OK), runs=tuple(runs), seconds=seconds)

    def _ended(self, status: Status, message: str = "") -> Outcome:
        # reports name the model anyway; one from memory has another path in the places of its nodes
        paths = {self._model.path, *(node.location.path for node in islice(self._model.walk(), 1))}
        path = f"(?:{'|'.join(map(re.escape, sorted(paths)))})"
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
