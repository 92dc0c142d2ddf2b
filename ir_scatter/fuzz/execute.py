"""Runs cases on a runner: many feeds of one model, or many nodes in one model."""

import itertools
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ir_scatter.core.errors import Error
from ir_scatter.formats import FORMATS
from ir_scatter.inputs.cases import Case
from ir_scatter.runners.base import Runner, Status, Streamed

NODES = 100
"""Of one model: more of them in one model cost more to compile than they save."""

_OUT = {Status.CRASHED, Status.TIMEOUT, Status.REFUSED, Status.UNSUPPORTED}


class Workshop:
    """Writes models of cases to a folder of its own and has them run."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="ir_scatter_fuzz_")
        self._numbers = itertools.count()

    def close(self) -> None:
        self._folder.cleanup()

    def __enter__(self) -> "Workshop":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stream(self, runner: Runner, cases: Sequence[Case]) -> list[Streamed]:
        """Run cases of one form, whose model has dynamic dimensions, one after the other."""
        model = self._write(cases[:1], [""])
        try:
            return runner.stream(model, [case.feeds() for case in cases], timeout=self.timeout)
        finally:
            self._remove(model)

    def batch(self, runner: Runner, cases: Sequence[Case]) -> list[Streamed]:
        """Run cases of one operator, each a node of one model.

        A model that is refused, or ends the process, is halved until the guilty nodes are alone.
        """
        found: list[Streamed] = []
        for start in range(0, len(cases), NODES):
            found += self._halved(runner, cases[start : start + NODES])
        return found

    def mixed(self, runner: Runner, cases: Sequence[Case]) -> list[Streamed]:
        """Run any cases, those of one operator together."""
        by_operator = defaultdict(list)
        for number, case in enumerate(cases):
            by_operator[case.spec.key].append(number)
        found: dict[int, Streamed] = {}
        for numbers in by_operator.values():
            answers = self.batch(runner, [cases[number] for number in numbers])
            found.update(zip(numbers, answers, strict=True))
        return [found[number] for number in range(len(cases))]

    def _halved(self, runner: Runner, cases: Sequence[Case]) -> list[Streamed]:
        prefixes = [""] if len(cases) == 1 else [f"n{number}_" for number in range(len(cases))]
        try:
            model = self._write(cases, prefixes)
        except (Error, TypeError, ValueError) as error:  # what a format cannot say is not run
            if len(cases) == 1:
                return [Streamed(Status.UNAVAILABLE, message=f"cannot be written: {error}")]
            model = None
        answer = None
        if model is not None:
            feeds = {
                name: array
                for case, prefix in zip(cases, prefixes, strict=True)
                for name, array in case.feeds(prefix).items()
            }
            try:
                answer = runner.stream(model, [feeds], timeout=self.timeout)[0]
            finally:
                self._remove(model)
            if len(cases) == 1:
                return [answer]
        if answer is not None and answer.status is Status.OK:
            return [Streamed(Status.OK, [output]) for output in answer.outputs]
        if answer is not None and answer.status not in _OUT:
            return [answer for _ in cases]
        middle = len(cases) // 2
        return [*self._halved(runner, cases[:middle]), *self._halved(runner, cases[middle:])]

    def _write(self, cases: Sequence[Case], prefixes: Sequence[str]) -> Path:
        nodes = [
            replace(case.node(prefix), prefix=prefix) for case, prefix in zip(cases, prefixes, strict=True)
        ]
        files = FORMATS[cases[0].format].nodes(nodes)
        stem = Path(self._folder.name) / f"m{next(self._numbers)}"
        for suffix, data in files.items():
            stem.with_suffix(suffix).write_bytes(data)
        return stem.with_suffix(next(iter(files)))

    def _remove(self, model: Path) -> None:
        for path in model.parent.glob(f"{model.stem}.*"):
            path.unlink(missing_ok=True)
