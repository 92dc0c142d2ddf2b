"""Runs cases on a runner: many feeds of one model, or many nodes in one model."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from time import monotonic

from ir_scatter.core.errors import Error
from ir_scatter.core.model import ONNX
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import IR, ONNX_FORMAT
from ir_scatter.inputs.cases import Case
from ir_scatter.ops.spec import OpSpec
from ir_scatter.runners.base import Runner, Status, Streamed

NODES = 100
"""Of one model: more of them in one model cost more to compile than they save."""

_HOPELESS, _NEVER = 3, 1 << 30
"""So many single nodes of the same types are refused before others are passed over, unless one was not."""
_NAMED = re.compile(r"\bn(\d+)_")
_OUT = {Status.CRASHED, Status.TIMEOUT, Status.REFUSED, Status.UNSUPPORTED}


class Workshop:
    """Writes models of cases to a folder and has them run."""

    def __init__(self, folder: str, timeout: float, deadline: float = inf) -> None:
        """Begin with nothing; after the deadline, on the monotonic clock, nothing more is run."""
        self.timeout, self.deadline, self._folder = timeout, deadline, Path(folder)
        self._refusals: Counter[tuple[str, ...]] = Counter()
        self._numbers = itertools.count()

    def stream(self, runner: Runner, cases: Sequence[Case]) -> list[Streamed]:
        """Run cases of one form, whose model has dynamic dimensions, one after the other."""
        model = self._write(cases[:1], [""])
        try:
            return runner.stream(model, [case.feeds() for case in cases], timeout=self._limit)
        finally:
            self._remove(model)

    def batch(self, runner: Runner, cases: Sequence[Case]) -> list[Streamed]:
        """Run cases of one operator, each a node of one model.

        A model that is refused, or ends the process, is halved until the guilty nodes are alone, beginning
        with the one that the message names. Of types that were refused alone so often no more are run.
        """
        found: dict[int, Streamed] = {}
        kinds = [(runner.name, *_kind(case)) for case in cases]
        open_ = [
            number for number, kind in enumerate(kinds) if len(cases) == 1 or self._refusals[kind] < _HOPELESS
        ]
        for start in range(0, len(open_), NODES):
            part = open_[start : start + NODES]
            answers = self._halved(runner, [cases[number] for number in part])
            found.update(zip(part, answers, strict=True))
        missing = Streamed(Status.UNAVAILABLE, message="not run: its types are refused")
        return [found.get(number, missing) for number in range(len(cases))]

    def _halved(self, runner: Runner, cases: Sequence[Case]) -> list[Streamed]:
        kinds = {(runner.name, *_kind(case)) for case in cases}
        if monotonic() > self.deadline:
            return [Streamed(Status.UNAVAILABLE, message="not run: the time is over") for _ in cases]
        if len(cases) > 1 and all(self._refusals[kind] >= _HOPELESS for kind in kinds):
            return [Streamed(Status.UNAVAILABLE, message="not run: its types are refused") for _ in cases]
        answer = self._together(runner, cases)
        if len(cases) == 1:
            for kind in kinds:
                is_refused = answer.status in {Status.REFUSED, Status.UNSUPPORTED}
                self._refusals[kind] += 1 if is_refused else -_NEVER
            return [answer]
        if answer.status is Status.OK:
            for kind in kinds:
                self._refusals[kind] = -_NEVER
            return [Streamed(Status.OK, [output]) for output in answer.outputs]
        if answer.status not in _OUT:
            return [answer for _ in cases]
        named = {int(number) for number in _NAMED.findall(answer.message)} & set(range(len(cases)))
        if answer.status is not Status.CRASHED and len(named) == 1:
            (guilty,) = named
            alone = self._halved(runner, cases[guilty : guilty + 1])
            rest = self._halved(runner, [*cases[:guilty], *cases[guilty + 1 :]])
            return [*rest[:guilty], *alone, *rest[guilty:]]
        middle = len(cases) // 2
        return [*self._halved(runner, cases[:middle]), *self._halved(runner, cases[middle:])]

    def _together(self, runner: Runner, cases: Sequence[Case]) -> Streamed:
        """Run cases as nodes of one model; what a format cannot say is not run."""
        prefixes = [""] if len(cases) == 1 else [f"n{number}_" for number in range(len(cases))]
        try:
            model = self._write(cases, prefixes)
        except (Error, TypeError, ValueError) as error:
            status = Status.UNAVAILABLE if len(cases) == 1 else Status.REFUSED
            return Streamed(status, message=f"cannot be written: {error}")
        feeds = {
            name: array
            for case, prefix in zip(cases, prefixes, strict=True)
            for name, array in case.feeds(prefix).items()
        }
        try:
            return runner.stream(model, [feeds], timeout=self._limit)[0]
        finally:
            self._remove(model)

    @property
    def _limit(self) -> float:
        """Seconds for one question, within the time that is left but for a moment."""
        return max(min(self.timeout, self.deadline - monotonic()), 1.0)

    def _write(self, cases: Sequence[Case], prefixes: Sequence[str]) -> Path:
        nodes = [
            replace(case.node(prefix), prefix=prefix) for case, prefix in zip(cases, prefixes, strict=True)
        ]
        files = FORMATS[cases[0].format].nodes(nodes)
        stem = self._folder / f"m{next(self._numbers)}"
        for suffix, data in files.items():
            stem.with_suffix(suffix).write_bytes(data)
        return stem.with_suffix(next(iter(files)))

    def _remove(self, model: Path) -> None:
        for path in model.parent.glob(f"{model.stem}.*"):
            path.unlink(missing_ok=True)


def _kind(case: Case) -> tuple[str, ...]:
    return str(case.spec.key), case.element_type.name, case.index_type.name, str(case.broken)


def takes(runner: Runner, spec: OpSpec) -> bool:
    """Tell whether a runner reads models with an operator."""
    return (ONNX_FORMAT if spec.key.domain == ONNX else IR) in runner.formats
