"""What the document says the outputs of a model are, as the evaluator computes them."""

import re
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ir_scatter.compare.background import Background
from ir_scatter.compare.contested import OpenOutput
from ir_scatter.compare.guard import Seeds, Sight, foresee, run_watched
from ir_scatter.core.errors import (
    BadFeed,
    BrokenModel,
    Error,
    EvaluationFailed,
    UnknownOperator,
    UnreadableModel,
)
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import counted
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.runners.base import Outcome, Status
from ir_scatter.version import versions

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array
    from ir_scatter.evaluate.model import Program, Sketch

NUMPY = "numpy"
_PRECISION = "model"


class NumpyVoice:
    """The evaluator as a voice: the document's. It computes while others do.

    Attributes:
        is_wanted: whether its outputs are; the indices are watched anyway.
    """

    def __init__(self, model: Model, *, is_wanted: bool) -> None:
        self.is_wanted = is_wanted
        self._model = model
        self._nodes = frozenset(node.scope for node in model.walk(scatter_types(model.domain)))
        self._program: Program | Error | None = None
        self._sketch: Sketch | Error | None = None
        self._background = Background()
        self._outcome: Outcome | None = None

    def start(self, feeds: "Mapping[str, Array]") -> "Running":
        """Begin to compute."""
        sight = Sight(self._nodes)
        if self._outcome is not None and self._outcome.status is Status.TIMEOUT:
            return Running(None, sight, time.monotonic())
        future = self._background.submit(lambda: self._run(feeds, sight))
        return Running(future, sight, time.monotonic())

    def finish(self, running: "Running", timeout: float) -> Outcome:
        """Return how it ended.

        Args:
            running: what was started.
            timeout: in seconds, from the start; if it takes longer it is not asked again.

        Raises:
            BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
            UnreadableModel: the model, or a constant that is needed, cannot be read.
        """
        if running.future is not None:
            try:
                self._outcome = running.future.result(max(timeout - (time.monotonic() - running.started), 0))
            except TookTooLong:
                message = f"no answer within {counted(timeout, 'second')}"
                self._outcome = Outcome(
                    NUMPY, Status.TIMEOUT, message, precision=_PRECISION, versions=versions()
                )
        assert self._outcome is not None
        return replace(self._outcome, message=self._shortened(self._outcome.message))

    def open_outputs(
        self, feeds: "Mapping[str, Array]", sight: Sight, seeds: Seeds, timeout: float
    ) -> Mapping[str, OpenOutput]:
        """Return the outputs of which something is open, by name.

        That is what came of the computation, if there was one; else as much as can be told without.

        Args:
            feeds: of the case.
            sight: what was seen in that case.
            seeds: what runners saw of contested nodes in it.
            timeout: in seconds, for the computation.
        """
        has_begun = self._outcome is not None and self._outcome.status is Status.TIMEOUT
        if sight.open is None and not has_begun and self._is_computable:
            running = self.start(feeds)
            with suppress(Error):
                has_begun = self.finish(running, timeout).status is Status.TIMEOUT
            sight = sight if has_begun else running.sight
        if sight.open is not None:
            return sight.open
        sketch = self._sketched()
        if sketch is None:
            return {}
        found = Sight(self._nodes)
        if not has_begun:
            future = self._background.submit(lambda: foresee(sketch, feeds, found, seeds))
            with suppress(TookTooLong, Error):
                future.result(timeout)
        if found.open is None:
            found = Sight(self._nodes)
            with suppress(Error):
                foresee(sketch, feeds, found, seeds, computes=False)
        return found.open or {}

    @property
    def _is_computable(self) -> bool:
        """Tell whether it was not found out that NumPy cannot compute the model."""
        return not isinstance(self._program, Error)

    def close(self) -> None:
        """Let the thread end."""
        self._background.close()

    def _run(self, feeds: "Mapping[str, Array]", sight: Sight) -> Outcome:
        start = time.perf_counter()
        try:
            outputs = run_watched(self._prepared(), feeds, sight)
        except BadFeed:
            raise
        except UnknownOperator as error:
            self._foresee(feeds, sight)
            return _failed(Status.UNSUPPORTED, error)
        except BrokenModel as error:
            self._foresee(feeds, sight)
            return _failed(Status.REFUSED, error)
        except EvaluationFailed as error:
            return _failed(Status.REFUSED, error)
        except MemoryError:
            return _failed(Status.REFUSED, Error("there is not enough memory"))
        seconds = time.perf_counter() - start
        return Outcome(
            NUMPY, Status.OK, runs=(outputs,), seconds=seconds, precision=_PRECISION, versions=versions()
        )

    def _prepared(self) -> "Program":
        """Return the model made ready to be run.

        Raises:
            UnreadableModel: it cannot be read.
            BrokenModel: its operators, or the file itself, break rules.
            UnknownOperator: NumPy does not compute one of its nodes.
        """
        if self._program is None:
            from ir_scatter.evaluate.model import prepare

            try:
                self._program = prepare(self._model)
            except (BrokenModel, UnknownOperator) as error:
                self._program = error
        if isinstance(self._program, Error):
            raise self._program
        return self._program

    def _foresee(self, feeds: "Mapping[str, Array]", sight: Sight) -> None:
        """Watch the indices of a model that cannot be computed, as far as they can be."""
        sketch = self._sketched()
        if sketch is None:
            return
        with suppress(EvaluationFailed, UnreadableModel):
            foresee(sketch, feeds, sight)
        sight.open = None  # as it does not know what runners saw

    def _sketched(self) -> "Sketch | None":
        """Return what is known of a model that cannot be computed; None if that is nothing."""
        from ir_scatter.evaluate.model import make_sketch

        if self._sketch is None:
            try:
                self._sketch = make_sketch(self._model)
            except Error as error:
                self._sketch = error
        return None if isinstance(self._sketch, Error) else self._sketch

    def _shortened(self, message: str) -> str:
        """Leave out the path, which everybody knows."""
        path = re.escape(self._model.path)
        return re.sub(rf" \({path}(?::\d+)?\)", "", re.sub(rf"^{path}: ", "", message))


class Running:
    """A computation that was started.

    Attributes:
        future: its end; None if it was not even begun.
        sight: what is seen on the way.
        started: when.
    """

    __slots__ = ("future", "sight", "started")

    def __init__(self, future: "Future[Outcome] | None", sight: Sight, started: float) -> None:
        self.future, self.sight, self.started = future, sight, started


def _failed(status: Status, error: Error) -> Outcome:
    return Outcome(NUMPY, status, str(error), precision=_PRECISION, versions=versions())
