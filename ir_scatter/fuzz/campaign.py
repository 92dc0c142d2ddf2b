"""Runs the fuzzer: draws inputs for operators, runs them on every runner, and turns failures into findings.

A case is the inputs and attributes of one node (`cases.case`). A round is a set of cases that run together. A
lot is a group of failures that are explained together (`explain`).
"""

import json
import os
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from queue import PriorityQueue, SimpleQueue
from threading import Condition, Thread
from time import monotonic, sleep
from typing import Any, NamedTuple

from ir_scatter.cases.case import Case
from ir_scatter.cases.workshop import NODES, Refusals, Workshop, supports
from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import read_regular
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.core.temporary import temporary_folder
from ir_scatter.core.words import counted
from ir_scatter.formats import FORMATS
from ir_scatter.fuzz.explain import Explainer, FuzzFinding, Lot
from ir_scatter.fuzz.rounds import Drawer, FeatureCoverage
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import OpSpec
from ir_scatter.runners.base import Runner, Streamed
from ir_scatter.version import versions

SCHEMA = 1
_MODEL_SECONDS = 60.0
"""Time limit of a model with all its cases, in seconds."""
_PATIENCE = 4
"""Rounds per operator after which new failures are explained even if they are few."""
_MOST_PROCESSES, _ROUNDS_AHEAD = 4, 6
"""Maximum processes per runner (fewer on machines with fewer processors); rounds that are submitted before
the oldest one is judged."""
_DEFAULT_THREADS_EVERY = 4
"""One in this many models runs on the runtime's default number of threads, which exposes races. The others
run on one thread, which is faster for small tensors."""
_DRAWING_SHARE, _MOST_WAITING_LOTS, _PAUSE_SECONDS = 0.5, 6, 0.05
"""After this share of the time limit, a runner draws no new cases while this many lots wait to be explained.
The last number is the pause between checks, in seconds."""
_RESERVED_SHARE = 0.1
"""Share of the time limit that is reserved, at the end, for explaining failures: no new cases are drawn."""
_HURRY_SHARE, _HURRY_SECONDS, _WRITING_SHARE = 0.07, 60.0, 0.06
"""At the end failures are explained without shrinking: share of the time limit for this, and maximum in
seconds. The third number is the share of the time limit for writing files."""


@dataclass(frozen=True, slots=True)
class FuzzPlan:
    """What a run of the fuzzer draws, and its limits.

    Attributes:
        operators: the operator versions to test.
        seconds: limit of the wall time; None for no limit.
        cases: number of cases to draw; None for no limit.
        seed: seed of all random decisions.
        values: "any", "plain" or "edge".
        is_illegal: whether each case breaks a rule.
        is_new_only: whether reports leave out findings that known defects explain.
    """

    operators: tuple[OpSpec, ...]
    seconds: float | None = 60.0
    cases: int | None = None
    seed: int = 0
    values: str = "any"
    is_illegal: bool = False
    is_new_only: bool = False


class AnswerCounts(NamedTuple):
    """Counts of the answers of one runner.

    Attributes:
        judged: answers that were checked against NumPy.
        not_run: cases without an answer, and cases skipped because they are known to fail.
        why_not: the most frequent reason if no answer was judged; otherwise "".
    """

    judged: int
    not_run: int
    why_not: str


class Rates:
    """Judged cases per second of all runners, for each kind of round.

    The kinds are cases in one model, batches of nodes, and illegal cases. The wall time of a runner is
    divided among the kinds in proportion to the busy time of its processes.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], tuple[int, float]] = {}
        self._passed: dict[str, float] = {}

    def count(self, kind: str, runner: str, cases: int, busy: float, passed: float) -> None:
        """Add judged cases, the busy seconds of the process, and the wall-clock seconds that passed."""
        before = self._counts.get((kind, runner), (0, 0.0))
        self._counts[kind, runner] = before[0] + cases, before[1] + busy
        self._passed[runner] = self._passed.get(runner, 0.0) + passed

    def as_json(self) -> dict[str, float]:
        rates, counts = dict.fromkeys(("forms", "batches"), 0.0), dict(self._counts)
        for (kind, runner), (cases, busy) in counts.items():
            runner_seconds = sum(seconds for (_, name), (_, seconds) in counts.items() if name == runner)
            if kind in rates and busy:
                rates[kind] += cases / max(self._passed[runner] * busy / runner_seconds, 1e-9)
        return {kind: round(rate, 1) for kind, rate in rates.items()}


class Campaign:
    """A run of the fuzzer; its state can be read during and after the run."""

    def __init__(
        self, plan: FuzzPlan, runners: Sequence[Runner], earlier: Mapping[str, Any] | None = None
    ) -> None:
        """Prepare a run; `run` starts it.

        Args:
            plan: what to draw.
            runners: the runners that run the cases.
            earlier: the report of an earlier run to continue.

        Raises:
            UsageError: no runner supports any of the operators.
        """
        self.plan, self.runners = plan, runners
        self.started = monotonic()
        self.coverage, self.rates = FeatureCoverage(), Rates()
        self.findings = [FuzzFinding.from_json(finding) for finding in (earlier or {}).get("findings", [])]
        self.cases = int((earlier or {}).get("cases", 0))
        self._seconds = float((earlier or {}).get("seconds", 0.0))
        self._round = first = int((earlier or {}).get("rounds", 0))
        self._drawer = Drawer(plan.seed, plan.values, self.coverage)
        self._specs = [
            spec
            for spec in plan.operators
            if not spec.is_removed and any(supports(runner, spec) for runner in runners)
        ]
        if not self._specs:
            raise UsageError("no runner that was named reads models with these operators")
        self._explainers: list[Explainer] = []
        self._cycle = 2 * len(self._specs)
        self._rounds: deque[_Round | None] = deque(maxlen=self._cycle + 1)
        self._positions = {runner.name: first for runner in runners}
        self._drawn = Condition()
        self._is_stopped = False
        self.is_interrupted = False

    @property
    def reported(self) -> list[FuzzFinding]:
        """The findings of reports: all, or those that no known defect explains."""
        return [finding for finding in self.findings if not (self.plan.is_new_only and finding.defects)]

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the library and of all runtimes."""
        all_versions = dict(versions())
        for runner in self.runners:
            all_versions |= runner.versions
        return dict(sorted(all_versions.items()))

    @property
    def deadline(self) -> float:
        return self.started + (self.plan.seconds if self.plan.seconds is not None else 1e9)

    @property
    def skipped(self) -> int:
        """The number of answers that were not compared with NumPy."""
        return sum(explainer.skipped for explainer in self._explainers)

    @property
    def unexplained(self) -> int:
        """The number of failures that were not examined for lack of time."""
        return sum(explainer.unexplained for explainer in self._explainers)

    def answers(self) -> dict[str, "AnswerCounts"]:
        """Return the counts of answers by name of the runner."""
        return {
            explainer.runner.name: AnswerCounts(explainer.judged, explainer.skipped, self._why_not(explainer))
            for explainer in self._explainers
        }

    def _why_not(self, explainer: Explainer) -> str:
        """Return the most frequent reason if no answer of a runner was judged; "" if one was."""
        if explainer.judged:
            return ""
        runner = explainer.runner
        if not any(supports(runner, spec) for spec in self._specs):
            return f"it reads {' and '.join(FORMATS[format].title for format in runner.formats)} only, " + (
                "which has none of the requested operators"
            )
        ((reason, _),) = explainer.not_judged.most_common(1) or [("no answer came before the end", 0)]
        return reason

    def __str__(self) -> str:
        """Return the progress in one line."""
        pace = self.cases / max(monotonic() - self.started, 0.1)
        progress = f"{counted(self.cases, 'case')}, {pace:.0f}/s, {counted(len(self.findings), 'finding')}"
        waiting = sum(explainer.waiting for explainer in self._explainers)
        return f"{progress}, {counted(waiting, 'failure')} to examine" if waiting else progress

    def run(self) -> Generator[FuzzFinding, None, None]:
        """Yield each finding as soon as it is made, until the time is over or all cases are judged."""
        results: SimpleQueue[FuzzFinding | BaseException | None] = SimpleQueue()
        with temporary_folder() as folder:
            # The first workshop learns refusals, so that rounds skip likely ones; the second, for explaining,
            # runs every case.
            hurry = min(_HURRY_SHARE * (self.plan.seconds or 0), _HURRY_SECONDS)
            workshop = Workshop(
                folder, _MODEL_SECONDS, self.deadline - _WRITING_SHARE * hurry, passes_over=False
            )
            rounds = Workshop(folder, _MODEL_SECONDS, self.deadline)
            until = inf if self.plan.seconds is None else self.deadline - hurry
            for runner in self.runners:
                runner.start()
                other_runners = [other for other in self.runners if other is not runner]
                earlier = [finding for finding in self.findings if finding.runner == runner.name]
                is_illegal = self.plan.is_illegal
                self._explainers.append(
                    Explainer(
                        runner,
                        other_runners,
                        self._drawer,
                        workshop,
                        is_illegal=is_illegal,
                        until=until,
                        earlier=earlier,
                    )
                )
            for explainer in self._explainers:
                Thread(target=self._work, args=(explainer, rounds, results), daemon=True).start()
            working = len(self._explainers)
            try:
                while working:
                    result = results.get()
                    if isinstance(result, BaseException):
                        raise result
                    if result is None:
                        working -= 1
                    else:
                        self.findings.append(result)
                        yield result
            finally:
                with self._drawn:
                    self._is_stopped = True
                    self._drawn.notify_all()
                for explainer in self._explainers:
                    explainer.give_up()
                workshop.deadline = rounds.deadline = min(workshop.deadline, monotonic())
                while not results.empty():
                    if isinstance(result := results.get(), FuzzFinding):
                        self.findings.append(result)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        seconds = self._seconds + monotonic() - self.started
        return {
            "schema": SCHEMA,
            "versions": self.versions,
            "runners": [runner.name for runner in self.runners],
            "seed": self.plan.seed,
            "seconds": round(seconds, 1),
            "cases": self.cases,
            "rounds": self._round,
            "illegal": self.plan.is_illegal,
            "not_run": self.skipped,
            "unexplained": self.unexplained,
            "answers": {name: counts._asdict() for name, counts in self.answers().items()},
            "rates": self.rates.as_json(),
            "coverage": self.coverage.as_json(),
            "findings": [finding.as_json() for finding in self.reported],
        }

    # One round: cases of one operator that run on every runner that supports it.

    def _is_ending(self) -> bool:
        return self._is_stopped or self._is_late(_RESERVED_SHARE)

    def _is_late(self, share: float) -> bool:
        """Return whether at most this share of the time limit is left."""
        seconds = self.plan.seconds
        return seconds is not None and monotonic() > self.deadline - share * seconds

    def _next(self, runner: Runner) -> "_Round | None":
        """Return the next round (cases to run together) for a runner, or None at the end.

        Runners proceed at their own pace: a slow one skips whole cycles of operators, and rounds that no
        runner supports are not drawn. With a given number of cases all runners get the same rounds, so the
        fastest one waits.
        """
        is_supported, cases = [supports(runner, spec) for spec in self._specs], self.plan.cases
        with self._drawn:
            while True:
                position = self._positions[runner.name]
                lag = self._round - position
                if cases is None:
                    position += lag // self._cycle * self._cycle
                elif position - min(self._positions.values()) >= self._cycle and not self._is_stopped:
                    self._drawn.wait()
                    continue
                is_over = position == self._round and cases is not None and self.cases >= cases
                if is_over or not any(is_supported) or self._is_ending():
                    self._positions[runner.name] = 1 << 62
                    self._drawn.notify_all()
                    return None
                if position == self._round:
                    self._round += 1
                    self._rounds.append(None)
                self._positions[runner.name] = position + 1
                self._drawn.notify_all()
                offset, supports_operator = position - self._round, is_supported[position % len(is_supported)]
                if self._rounds[offset] is None and (supports_operator or cases is not None):
                    self._rounds[offset] = self._draw(position)
                if supports_operator:
                    return self._rounds[offset]

    def _draw(self, number: int) -> "_Round":
        turn, place = divmod(number, len(self._specs))
        plan, spec = self.plan, self._specs[place]
        room = None if plan.cases is None else plan.cases - self.cases
        if plan.is_illegal:
            kind, cases = "illegal", self._drawer.illegal_cases(spec, number)
        elif turn % 2:
            kind, cases = "batches", self._drawer.batch(spec, number, min(room or NODES, NODES))
        else:
            kind, cases = "forms", self._drawer.forms(spec, number)
        cases = cases[:room]
        self.cases += len(cases)
        threads = 0 if turn // 2 % _DEFAULT_THREADS_EVERY == 0 or cases[0].within.elements else 1
        return _Round(number, spec, kind, cases, threads)

    def _work(
        self,
        explainer: Explainer,
        workshop: Workshop,
        results: "SimpleQueue[FuzzFinding | BaseException | None]",
    ) -> None:
        """Run rounds on one runner, submitting some ahead; judge the answers, and explain new failures.

        Which cases a round skips depends on the rounds judged when it was submitted. That is always the same
        number of rounds, so results do not depend on speed. With a time limit, another thread explains
        failures in the meantime; otherwise they are explained before the next round is judged.
        """
        tasks, lots = SimpleQueue[_Task | None](), PriorityQueue[Lot]()
        runner, patience, refusals = explainer.runner, _PATIENCE * len(self._specs), Refusals()
        room = (os.cpu_count() or 1) // len(self.runners)
        lanes = [runner.another() for _ in range(min(max(room, 1), _MOST_PROCESSES))]
        waiting, drawn, number, is_parallel = deque[_Task](), True, 0, self.plan.seconds is not None
        thread = Thread(target=_explain, args=(explainer, lots, results), daemon=True)
        try:
            for lane in lanes:
                lane.start()
                Thread(target=_compute, args=(workshop, lane, tasks), daemon=True).start()
            if is_parallel:
                thread.start()
            last = monotonic()
            while True:
                may_draw = lots.qsize() < _MOST_WAITING_LOTS or not self._is_late(1 - _DRAWING_SHARE)
                may_draw = may_draw or self._is_ending()
                while may_draw and drawn and len(waiting) < _ROUNDS_AHEAD:
                    next_round = self._next(runner)
                    drawn = next_round is not None
                    if next_round is not None:
                        next_round = replace(next_round, cases=explainer.select(next_round.cases))
                        waiting.append(_Task(next_round, refusals.copy()))
                        tasks.put(waiting[-1])
                if drawn and not waiting:
                    sleep(_PAUSE_SECONDS)
                    last = monotonic()  # pauses do not count in rates
                    continue
                if waiting:
                    task = waiting.popleft()
                    round, number = task.round, task.round.number
                    answers, busy = task.answers.result()
                    refusals.merge(task.refusals)
                    skipped = explainer.skipped
                    explainer.judge(round.kind, round.cases, answers)
                    judged = len(round.cases) - (explainer.skipped - skipped)
                    now = monotonic()
                    self.rates.count(round.kind, runner.name, judged, busy, now - last)
                    last = now
                is_last = not (waiting or drawn)
                for lot in explainer.due(number, patience, is_last=is_last):
                    if is_parallel:
                        lots.put(lot)
                    else:
                        for finding in explainer.explain(lot):
                            results.put(finding)
                        last = monotonic()  # explaining does not count in rates either
                if is_last:
                    break
            if is_parallel:
                lots.join()
            results.put(None)
        except BaseException as error:
            results.put(error)
        finally:
            for lane in lanes:
                tasks.put(None)
                lane.close()


def _compute(workshop: Workshop, runner: Runner, tasks: "SimpleQueue[_Task | None]") -> None:
    """Run tasks from a queue in one process, until the queue returns None."""
    while (task := tasks.get()) is not None:
        started, round = monotonic(), task.round
        try:
            answers = workshop.answers(runner, round.kind, round.cases, round.threads, task.refusals)
            task.answers.set_result((answers, monotonic() - started))
        except BaseException as error:
            task.answers.set_exception(error)


def _explain(
    explainer: Explainer,
    lots: "PriorityQueue[Lot]",
    results: "SimpleQueue[FuzzFinding | BaseException | None]",
) -> None:
    """Explain lots of failures, the cheapest first, until the program ends."""
    while True:
        lot = lots.get()
        try:
            for finding in explainer.explain(lot, lots.qsize()):
                results.put(finding)
        except BaseException as error:
            results.put(error)
        lots.task_done()


@dataclass(frozen=True, slots=True)
class _Task:
    """A submitted round: its cases, the refusals known when it was submitted, and its future answers."""

    round: "_Round"
    refusals: Refusals
    answers: "Future[tuple[Sequence[Streamed], float]]" = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _Round:
    number: int
    spec: OpSpec
    kind: str
    cases: Sequence[Case]
    threads: int


def operators(words: Iterable[str]) -> tuple[OpSpec, ...]:
    """Return operator versions by name: "ScatterNDUpdate-15" for one, "ScatterNDUpdate" for all versions.

    Without names, return all operators.

    Raises:
        UsageError: a name is unknown.
    """
    specs: list[OpSpec] = []
    for word in words:
        rows = [spec for key, spec in SPECS.items() if word.lower() in {str(key).lower(), key.type.lower()}]
        if not rows:
            guess = did_you_mean(word, [name for key in SPECS for name in (key.type, str(key))])
            raise UsageError(f"operator is {word!r}{guess}, expected one of {', '.join(map(str, SPECS))}")
        specs += rows
    return tuple({spec.key: spec for spec in specs or SPECS.values()}.values())


def read_report(path: Path) -> dict[str, Any]:
    """Read the report of an earlier run; {} if the file does not exist.

    Raises:
        UsageError: the file cannot be read, or is not a report.
    """
    try:
        report = json.loads(read_regular(path).decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise UsageError(f"{path} is not a report of fuzz")
    return report
