"""Runs many cases on a runner: as successive inputs of one model, or as many nodes of one model.

Running many cases at once is much faster than one model per case, but a single node that a runtime refuses
makes it refuse the whole model. So a workshop counts which *traits* refused nodes have in common, such as
(element type f16, reduction sum), and keeps likely refused nodes apart.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, combinations_with_replacement, count
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from ir_scatter.cases.case import Case
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import CannotWrite, Error
from ir_scatter.core.model import ONNX
from ir_scatter.core.temporary import explained_temporary
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import IR, ONNX_FORMAT
from ir_scatter.ops.spec import Layout, OpSpec
from ir_scatter.runners.base import Runner, Status, Streamed

NODES = 100
"""Most nodes per model; above that, compile time grows faster than the saving."""

_CERTAIN_REFUSALS = 3
"""Refused nodes after which a trait is a certain cause of refusal, if no node with it was accepted."""
_REFUSED_PER_ACCEPTED = 4
"""A trait is a suspected cause of refusal if refused / accepted exceeds this ratio."""
_NODE_NUMBER = re.compile(r"\bn(\d+)_")
_NOT_RUN = Streamed(Status.UNAVAILABLE, message="not run: similar cases were refused")
_TIME_OVER = Streamed(Status.UNAVAILABLE, message="not run: the time limit was reached")
_SHORTEST_LIMIT = 1.0
"""Shortest time limit of a run, in seconds, however close the deadline is."""
_MODEL_NUMBERS = count()
_MODELS_PER_PROCESS = 5
"""Models of one case that are loaded in a new process."""
_FAILURES = {Status.CRASHED, Status.TIMEOUT, Status.REFUSED, Status.UNSUPPORTED}


class Workshop:
    """Writes cases as models to a folder, runs them, and counts what each runner refuses."""

    def __init__(
        self, folder: str, timeout: float, deadline: float = inf, *, passes_over: bool = True
    ) -> None:
        """Set up a workshop.

        Args:
            folder: where models are written while they run.
            timeout: time limit of one model, in seconds.
            deadline: the time on the monotonic clock after which nothing is run.
            passes_over: whether cases similar to many refused ones are skipped.
        """
        self.timeout, self.deadline, self._folder = timeout, deadline, Path(folder)
        self._passes_over = passes_over
        self._refusals: defaultdict[str, Refusals] = defaultdict(Refusals)

    def answers(
        self,
        runner: Runner,
        kind: str,
        cases: Sequence[Case],
        threads: int = 0,
        refusals: "Refusals | None" = None,
    ) -> Sequence[Streamed]:
        """Run cases: kind "forms" in one model, "batches" as nodes of models, "illegal" each alone.

        `refusals` are counts to use instead of those of this workshop.
        """
        if not cases:
            return []
        if kind == "forms":
            return self.stream(runner, cases, threads, refusals)
        if kind == "batches":
            return self.batch(runner, cases, refusals)
        return [self.batch(runner, [case], refusals)[0] for case in cases]

    def fresh(self, runner: Runner, case: Case, runs_per_model: int = 2) -> list[Streamed]:
        """Run a case repeatedly in a new process, until a run fails.

        A runner keeps several models loaded. This loads more than that, as discarding a model can reveal
        memory that it damaged.
        """
        process, answers = runner.another(), list[Streamed]()
        try:
            while len(answers) < _MODELS_PER_PROCESS * runs_per_model and monotonic() < self.deadline:
                model = self._write([case], [""])
                try:
                    feeds = [case.feeds()] * runs_per_model
                    answers += self._stream_in_time(process, model, feeds, most_deaths=1)
                finally:
                    self._remove(model)
                if answers[-1].status is not Status.OK:
                    break
        finally:
            process.close()
        return answers

    def stream(
        self,
        runner: Runner,
        cases: Sequence[Case],
        threads: int = 0,
        refusals: "Refusals | None" = None,
        *,
        keeps_states: bool = False,
    ) -> list[Streamed]:
        """Run cases one after the other in one model with dynamic dimensions; they must share a `Form`.

        With `keeps_states`, the states of the model are not reset between cases.
        """
        refusals = self._refusals[runner.name] if refusals is None else refusals
        traits = _traits(cases[0])
        if self._passes_over and refusals.is_certain(traits):
            return [_NOT_RUN] * len(cases)
        model = self._write(cases[:1], [""])
        try:
            feeds = [case.feeds() for case in cases]
            answers = self._stream_in_time(runner, model, feeds, threads, keeps_states=keeps_states)
        finally:
            self._remove(model)
        refusals.count(traits, is_refused=all(answer.status is not Status.OK for answer in answers))
        return answers

    def batch(
        self, runner: Runner, cases: Sequence[Case], refusals: "Refusals | None" = None
    ) -> list[Streamed]:
        """Run cases of one operator as nodes of common models; return one answer per case.

        If a model is refused or crashes the process, the guilty node is found by bisection, and its traits
        become suspects. Nodes with suspected traits wait, and then run in small groups, so that the cause of
        a refusal is searched only once:

            nodes   a b C d E c      the runner refuses C, c (for one reason) and E (for another one)
            models  abCdEc -> abC -> ab, accepted -> C, refused
                    dE -> d, accepted -> E, refused      c waits, as it shares traits with C
                    c, refused
        """
        refusals = self._refusals[runner.name] if refusals is None else refusals
        traits = [_traits(case) for case in cases]
        answers, remaining = dict[int, Streamed](), list(range(len(cases)))
        while remaining:
            if self._passes_over and len(cases) > 1:
                answers |= {number: _NOT_RUN for number in remaining if refusals.is_certain(traits[number])}
            remaining = [number for number in remaining if number not in answers]
            evidence = {number: refusals.evidence(traits[number]) for number in remaining}
            remaining.sort(key=evidence.__getitem__)
            part = [number for number in remaining if not any(evidence[number])]
            if not part:  # nodes that only one refusal makes suspect are likely innocent
                part = [number for number in remaining if evidence[number][0] == 1]
                part = part[: (len(part) + 1) // 2] or remaining[:1]
            chosen = {number: cases[number] for number in part[:NODES]}
            answers |= self._run_part(runner, chosen, refusals) if chosen else {}
        return [answers[number] for number in range(len(cases))]

    def _run_part(
        self, runner: Runner, cases: Mapping[int, Case], refusals: "Refusals"
    ) -> dict[int, Streamed]:
        """Run cases as nodes of one model; return all answers, or those up to the first failing node."""
        answers: dict[int, Streamed] = {}
        remaining = list(cases)
        part = remaining
        while True:
            answer = self._run_as_one_model(runner, [cases[number] for number in part], refusals)
            if answer.status is Status.OK:
                outputs = zip(part, answer.outputs, strict=True)
                answers |= {number: Streamed(Status.OK, [output]) for number, output in outputs}
                remaining = [number for number in remaining if number not in answers]
            elif len(part) == 1 or answer.status not in _FAILURES:
                return answers | dict.fromkeys(part, answer)
            else:
                remaining = part
            if not remaining:
                return answers
            named = set(map(int, _NODE_NUMBER.findall(answer.message))) & set(range(len(part)))
            part = [part[named.pop()]] if len(named) == 1 else remaining[: (len(remaining) + 1) // 2]

    def _run_as_one_model(self, runner: Runner, cases: Sequence[Case], refusals: "Refusals") -> Streamed:
        """Run cases as nodes of one model, and return one answer with all outputs."""
        if monotonic() > self.deadline:
            return _TIME_OVER
        is_alone = len(cases) == 1
        prefixes = [""] if is_alone else [f"n{number}_" for number in range(len(cases))]
        try:
            model = self._write(cases, prefixes)
        except CannotWrite:  # the folder is at fault, not a case
            raise
        except (Error, TypeError, ValueError) as error:
            status = Status.UNAVAILABLE if is_alone else Status.REFUSED
            answer = Streamed(status, message=f"cannot be written: {error}")
        else:
            feeds = [case.feeds(prefix).items() for case, prefix in zip(cases, prefixes, strict=True)]
            try:
                (answer,) = self._stream_in_time(runner, model, [dict(chain(*feeds))])
            finally:
                self._remove(model)
        if is_alone or answer.status is Status.OK:
            for case in cases:
                refusals.count(_traits(case), is_refused=answer.status is not Status.OK)
        return answer

    def _stream_in_time(
        self,
        runner: Runner,
        model: Path,
        feeds: Sequence[Mapping[str, Array]],
        threads: int = 0,
        **options: Any,
    ) -> list[Streamed]:
        """Run a model within the remaining time; a run that exceeds the deadline does not count as hung."""
        limit = min(self.timeout, max(self.deadline - monotonic(), _SHORTEST_LIMIT))
        try:
            answers = runner.stream(model, feeds, timeout=limit, threads=threads, **options)
        except RuntimeError as error:  # a plugin that writes out of bounds may damage the process in any way
            message = f"the process is damaged: {str(error).strip().splitlines()[-1]}"
            return [Streamed(Status.CRASHED, message=message)] * len(feeds)
        if limit == self.timeout:
            return answers
        return [_TIME_OVER if answer.status is Status.TIMEOUT else answer for answer in answers]

    def _write(self, cases: Sequence[Case], prefixes: Sequence[str]) -> Path:
        nodes = [
            replace(case.node(prefix), prefix=prefix) for case, prefix in zip(cases, prefixes, strict=True)
        ]
        files = FORMATS[cases[0].format].nodes(nodes)
        stem = self._folder / f"m{next(_MODEL_NUMBERS)}"
        with explained_temporary(str(self._folder)):
            for suffix, data in files.items():
                stem.with_suffix(suffix).write_bytes(data)
        return stem.with_suffix(next(iter(files)))

    def _remove(self, model: Path) -> None:
        for path in model.parent.glob(f"{model.stem}.*"):
            path.unlink(missing_ok=True)


_Pair: TypeAlias = tuple[str, str, str]
_Traits: TypeAlias = frozenset[_Pair]
"""The traits of a node: pairs of its properties, once with its operator and once with "" for all operators.

Example: ("ScatterUpdate-3", "f16", "sum") and ("", "f16", "sum").
"""


class Refusals:
    """Counts, for each trait, how many nodes with it a runner refused and accepted.

    Attributes:
        newly_counted: in a copy, the nodes that were counted since it was copied; None in an original.
    """

    def __init__(self) -> None:
        self.newly_counted: list[tuple[_Traits, bool]] | None = None
        self._refused, self._accepted = Counter[_Pair](), Counter[_Pair]()
        self._suspects = set[_Pair]()

    def copy(self) -> "Refusals":
        """Return an independent copy, for another thread; `merge` adds its new counts to the original."""
        copied = Refusals()
        copied.newly_counted = []
        copied._refused, copied._accepted = self._refused.copy(), self._accepted.copy()
        copied._suspects = self._suspects.copy()
        return copied

    def merge(self, copied: "Refusals") -> None:
        """Count all nodes that were counted in a copy since it was copied."""
        for traits, is_refused in copied.newly_counted or ():
            self.count(traits, is_refused=is_refused)

    def count(self, traits: _Traits, *, is_refused: bool) -> None:
        """Count a refused or accepted node with its traits.

        If traits that are certain causes explain a refusal, the other traits of the node are not counted.
        """
        if self.newly_counted is not None:
            self.newly_counted.append((traits, is_refused))
        changed = self._certain_traits(traits) or traits if is_refused else self._suspects & traits
        (self._refused if is_refused else self._accepted).update(changed if is_refused else traits)
        for key in changed:
            is_suspect = self._refused[key] > _REFUSED_PER_ACCEPTED * self._accepted[key]
            (self._suspects.add if is_suspect else self._suspects.discard)(key)

    def evidence(self, traits: _Traits) -> tuple[int, int]:
        """Return the evidence that a node will be refused: (most refusals of a trait, suspected traits)."""
        counts = [self._refused[key] for key in self._suspects & traits]
        return max(counts, default=0), len(counts)

    def is_certain(self, traits: _Traits) -> bool:
        """Return whether a node can be skipped, as one of its traits is a certain cause of refusal."""
        return bool(self._certain_traits(traits))

    def _certain_traits(self, traits: _Traits) -> set[_Pair]:
        frequent = {key for key in self._suspects & traits if self._refused[key] >= _CERTAIN_REFUSALS}
        return {key for key in frequent if key[0] and not self._accepted[key]}


@lru_cache(2 * NODES)
def _traits(case: Case) -> _Traits:
    data, indices, updates = case.data, case.indices, case.updates
    traits = [
        case.element_type.name, case.reduction, case.shapes, case.broken or "", f"rank {data.ndim}",
        f"empty {data.size == 0} {updates.size == 0}", f"odd {data.size % 2}", f"axis {case.axis}",
        f"loop {case.iterations > 0}",
        f"constant {' '.join(sorted(case.constants))}",
    ]  # fmt: skip
    if indices is not None:
        slice_rank = (
            data.ndim - indices.shape[-1] if case.spec.layout is Layout.TUPLES and indices.ndim else 0
        )
        traits += [f"{case.index_type.name} indices", f"rank(indices) {indices.ndim}", f"rows {slice_rank}"]
        traits.append(f"ranks {indices.ndim} {updates.ndim} {slice_rank}")
    pairs = list(combinations_with_replacement(traits, 2))
    return frozenset((operator, *pair) for operator in ("", str(case.spec.key)) for pair in pairs)


def supports(runner: Runner, spec: OpSpec) -> bool:
    """Return whether a runner reads models in the format (IR or ONNX) of an operator."""
    return (ONNX_FORMAT if spec.key.domain == ONNX else IR) in runner.formats
