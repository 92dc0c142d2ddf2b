"""Who says what the outputs of a model are: the evaluator, and the runners."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.errors import BadFeed, BrokenModel, Error, EvaluationFailed, UnknownOperator
from ir_scatter.runners.outcome import Outcome, Status
from ir_scatter.version import versions

if TYPE_CHECKING:
    from ir_scatter.constants import Array
    from ir_scatter.graphs.program import Program

NUMPY = "numpy"


class NumpyVoice:
    """The evaluator as a voice: the document's."""

    def __init__(self, path: "str | Path") -> None:
        self._path = path
        self._program: Program | Error | None = None

    def run(self, feeds: "Mapping[str, Array]") -> Outcome:
        """Compute the outputs of the model.

        Raises:
            BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
            UnreadableModel: the model, or a constant that is needed, cannot be read.
        """
        from ir_scatter.graphs import prepare

        known = versions()
        start = time.perf_counter()
        try:
            if self._program is None:
                self._program = prepare(self._path)
            if isinstance(self._program, Error):
                raise self._program
            outputs = self._program.run(feeds)
        except BadFeed:
            raise
        except UnknownOperator as error:
            self._program = error
            return Outcome(NUMPY, Status.UNSUPPORTED, str(error), versions=known)
        except (BrokenModel, EvaluationFailed) as error:
            return Outcome(NUMPY, Status.REFUSED, str(error), versions=known)
        seconds = time.perf_counter() - start
        return Outcome(NUMPY, Status.OK, runs=(outputs,), seconds=seconds, precision="model", versions=known)
