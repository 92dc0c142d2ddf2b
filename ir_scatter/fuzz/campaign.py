"""Draws cases, has every runner compute them, and makes findings of what goes wrong: one for a signature."""

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
from ir_scatter.formats import FORMATS
from ir_scatter.fuzz.explain import Explainer, Finding, Lot
from ir_scatter.fuzz.rounds import Coverage, Drawer
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import OpSpec
from ir_scatter.runners.base import Runner, Streamed
from ir_scatter.version import versions

SCHEMA = 1
_LIMIT = 60.0
"""Seconds that a runner has for one model and all its cases."""
_PATIENCE = 4
"""What is new is explained after so many rounds of every operator, however seldom it was seen."""
_LANES, _AHEAD = 4, 6
"""In so many processes a runner computes at most, where nobody else needs the processors; and it is asked for
so many rounds before one is judged."""
_ITS_OWN = 4
"""Of so many forms one is run on as many threads as a runtime takes by itself, which shows races; the others
on one, as what is small is done sooner so."""
_DRAWING, _BACKLOG, _PAUSE = 0.5, 6, 0.05
"""After this share of the time nothing more is drawn for a runner while so many lots wait to be explained; it
looks again after so many seconds."""
_RESERVE = 0.1
"""The share of the time in which nothing new is drawn."""
_HURRY, _HURRYING, _WRITING = 0.07, 60.0, 0.06
"""Such a share of the time, but no more seconds, is for what is too late to look at; the last for files."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be fuzzed.

    Attributes:
        operators: rows of the table.
        seconds: of wall time for everything; None for no limit.
        cases: how many to draw; None for no limit.
        values: "any", "plain" or "edge".
        is_illegal: whether cases break a rule each.
    """

    operators: tuple[OpSpec, ...]
    seconds: float | None = 60.0
    cases: int | None = None
    seed: int = 0
    values: str = "any"
    is_illegal: bool = False


class Answers(NamedTuple):
    """What came of one runner.

    Attributes:
        judged: answers that were checked against NumPy.
        not_run: cases without an answer, and those that are known to fail.
        why_not: the most frequent reason where nothing was judged, else "".
    """

    judged: int
    not_run: int
    why_not: str


class Rates:
    """Judged cases for each second of the time spent on a stream; those of runners add up.

    The time of a runner, from its first round to the last that was judged, belongs to a stream by the share
    of it that its processes worked for that.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[int, float]] = {}
        self._passed: dict[str, float] = {}

    def count(self, kind: str, runner: str, cases: int, busy: float, passed: float) -> None:
        """Note cases that were judged, how long a process worked for them, and how much time passed."""
        before = self._known.get((kind, runner), (0, 0.0))
        self._known[kind, runner] = before[0] + cases, before[1] + busy
        self._passed[runner] = self._passed.get(runner, 0.0) + passed

    def as_json(self) -> dict[str, float]:
        found, known = dict.fromkeys(("forms", "batches"), 0.0), dict(self._known)
        for (kind, runner), (cases, busy) in known.items():
            whole = sum(one for (_, name), (_, one) in known.items() if name == runner)
            if kind in found and busy:
                found[kind] += cases / max(self._passed[runner] * busy / whole, 1e-9)
        return {kind: round(rate, 1) for kind, rate in found.items()}


class Campaign:
    """A run of the fuzzer, which can be looked at while it goes on and afterwards."""

    def __init__(
        self, plan: Plan, runners: Sequence[Runner], earlier: Mapping[str, Any] | None = None
    ) -> None:
        """Begin nothing yet.

        Args:
            plan: what is drawn.
            runners: who computes.
            earlier: the report of a run that this one goes on from.

        Raises:
            UsageError: no runner takes any of the operators.
        """
        self.plan, self.runners = plan, runners
        self.started = monotonic()
        self.coverage, self.rates = Coverage(), Rates()
        self.findings = [Finding.from_json(one) for one in (earlier or {}).get("findings", [])]
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

    @property
    def versions(self) -> dict[str, str]:
        """The versions of everything that takes part."""
        used = dict(versions())
        for runner in self.runners:
            used |= runner.versions
        return dict(sorted(used.items()))

    @property
    def deadline(self) -> float:
        return self.started + (self.plan.seconds if self.plan.seconds is not None else 1e9)

    @property
    def skipped(self) -> int:
        """How many answers were not judged."""
        return sum(one.skipped for one in self._explainers)

    @property
    def unexplained(self) -> int:
        """How many failures there was no time to look at."""
        return sum(one.unexplained for one in self._explainers)

    def answers(self) -> dict[str, "Answers"]:
        """Return what came of each runner, by its name."""
        return {
            one.runner.name: Answers(one.judged, one.skipped, self._why_not(one)) for one in self._explainers
        }

    def _why_not(self, explainer: Explainer) -> str:
        """Return why nothing of a runner was judged; "" if something was."""
        if explainer.judged:
            return ""
        runner = explainer.runner
        if not any(supports(runner, spec) for spec in self._specs):
            return f"it reads {' and '.join(FORMATS[format].title for format in runner.formats)} only, " + (
                "which has none of the operators that were asked for"
            )
        ((reason, _),) = explainer.not_judged.most_common(1) or [("no answer came before the end", 0)]
        return reason

    def __str__(self) -> str:
        """Say how far it is, to whoever waits for it."""
        pace = self.cases / max(monotonic() - self.started, 0.1)
        told = f"{self.cases} cases, {pace:.0f}/s, {len(self.findings)} findings"
        return f"{told}, {len(self.coverage.pairs)} pairs"

    def run(self) -> Generator[Finding, None, None]:
        """Yield findings as they come, until the time is over or all cases were drawn."""
        told: SimpleQueue[Finding | BaseException | None] = SimpleQueue()
        with temporary_folder() as folder:
            # each learns what is refused from what it runs, rounds in their order; what explains runs all
            hurry = min(_HURRY * (self.plan.seconds or 0), _HURRYING)
            workshop = Workshop(folder, _LIMIT, self.deadline - _WRITING * hurry, passes_over=False)
            rounds = Workshop(folder, _LIMIT, self.deadline)
            until = inf if self.plan.seconds is None else self.deadline - hurry
            for runner in self.runners:
                runner.start()
                others = [one for one in self.runners if one is not runner]
                own = [one for one in self.findings if one.runner == runner.name]
                is_illegal = self.plan.is_illegal
                self._explainers.append(
                    Explainer(
                        runner, others, self._drawer, workshop, is_illegal=is_illegal, until=until, known=own
                    )
                )
            for explainer in self._explainers:
                Thread(target=self._work, args=(explainer, rounds, told), daemon=True).start()
            working = len(self._explainers)
            try:
                while working:
                    found = told.get()
                    if isinstance(found, BaseException):
                        raise found
                    if found is None:
                        working -= 1
                    else:
                        self.findings.append(found)
                        yield found
            finally:
                with self._drawn:
                    self._is_stopped = True
                    self._drawn.notify_all()
                for explainer in self._explainers:
                    explainer.give_up()
                workshop.deadline = rounds.deadline = min(workshop.deadline, monotonic())
                while not told.empty():
                    if isinstance(found := told.get(), Finding):
                        self.findings.append(found)

    def as_json(self) -> dict[str, Any]:
        """Return the report."""
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
            "answers": {name: one._asdict() for name, one in self.answers().items()},
            "rates": self.rates.as_json(),
            "coverage": self.coverage.as_json(),
            "findings": [one.as_json() for one in self.findings],
        }

    # One round: cases of one operator, on every runner that takes it.

    def _is_ending(self) -> bool:
        return self._is_stopped or self._is_late(_RESERVE)

    def _is_late(self, share: float) -> bool:
        """Tell whether no more than a share of the time is left."""
        seconds = self.plan.seconds
        return seconds is not None and monotonic() > self.deadline - share * seconds

    def _next(self, runner: Runner) -> "_Round | None":
        """Return the round that comes next for a runner, None if it is over.

        Each has its own pace. One far behind leaves out whole cycles of operators, and what nobody takes is
        not drawn; but where a number of cases was asked for, who is in front waits, as all have the same.
        """
        taken, cases = [supports(runner, spec) for spec in self._specs], self.plan.cases
        with self._drawn:
            while True:
                position = self._positions[runner.name]
                behind = self._round - position
                if cases is None:
                    position += behind // self._cycle * self._cycle
                elif position - min(self._positions.values()) >= self._cycle and not self._is_stopped:
                    self._drawn.wait()
                    continue
                is_over = position == self._round and cases is not None and self.cases >= cases
                if is_over or not any(taken) or self._is_ending():
                    self._positions[runner.name] = 1 << 62
                    self._drawn.notify_all()
                    return None
                if position == self._round:
                    self._round += 1
                    self._rounds.append(None)
                self._positions[runner.name] = position + 1
                self._drawn.notify_all()
                place, is_taken = position - self._round, taken[position % len(taken)]
                if self._rounds[place] is None and (is_taken or cases is not None):
                    self._rounds[place] = self._draw(position)
                if is_taken:
                    return self._rounds[place]

    def _draw(self, number: int) -> "_Round":
        turn, place = divmod(number, len(self._specs))
        plan, spec = self.plan, self._specs[place]
        room = None if plan.cases is None else plan.cases - self.cases
        if plan.is_illegal:
            kind, cases = "illegal", self._drawer.illegal(spec, number)
        elif turn % 2:
            kind, cases = "batches", self._drawer.batch(spec, number, min(room or NODES, NODES))
        else:
            kind, cases = "forms", self._drawer.forms(spec, number)
        cases = cases[:room]
        self.cases += len(cases)
        threads = 0 if turn // 2 % _ITS_OWN == 0 or cases[0].within.elements else 1
        return _Round(number, spec, kind, cases, threads)

    def _work(
        self, explainer: Explainer, workshop: Workshop, told: "SimpleQueue[Finding | BaseException | None]"
    ) -> None:
        """Have a runner compute rounds, some ahead of what is judged; judge them, and explain what is new.

        What a round leaves out as known follows from the rounds that were judged when it was asked for, which
        are always as many: so it does not hang on who is quicker. What is new is explained meanwhile, where
        the clock rules, and before the next round is judged where it must not.
        """
        asked, lots = SimpleQueue[_Task | None](), PriorityQueue[Lot]()
        runner, patience, refusals = explainer.runner, _PATIENCE * len(self._specs), Refusals()
        room = (os.cpu_count() or 1) // len(self.runners)
        lanes = [runner.another() for _ in range(min(max(room, 1), _LANES))]
        waiting, drawn, number, is_beside = deque[_Task](), True, 0, self.plan.seconds is not None
        beside = Thread(target=_explain, args=(explainer, lots, told), daemon=True)
        try:
            for lane in lanes:
                lane.start()
                Thread(target=_compute, args=(workshop, lane, asked), daemon=True).start()
            if is_beside:
                beside.start()
            last = monotonic()
            while True:
                is_free = lots.qsize() < _BACKLOG or self._is_ending() or not self._is_late(1 - _DRAWING)
                while is_free and drawn and len(waiting) < _AHEAD:
                    found = self._next(runner)
                    drawn = found is not None
                    if found is not None:
                        found = replace(found, cases=explainer.asked(found.cases))
                        waiting.append(_Task(found, refusals.copy()))
                        asked.put(waiting[-1])
                if drawn and not waiting:
                    sleep(_PAUSE)
                    last = monotonic()  # which is no part of a rate
                    continue
                if waiting:
                    task = waiting.popleft()
                    round, number = task.round, task.round.number
                    answers, busy = task.answers.result()
                    refusals.learn(task.refusals)
                    skipped = explainer.skipped
                    explainer.judge(round.kind, round.cases, answers)
                    judged = len(round.cases) - (explainer.skipped - skipped)
                    now = monotonic()
                    self.rates.count(round.kind, runner.name, judged, busy, now - last)
                    last = now
                is_last = not (waiting or drawn)
                for lot in explainer.due(number, patience, is_last=is_last):
                    if is_beside:
                        lots.put(lot)
                    else:
                        for finding in explainer.explain(lot):
                            told.put(finding)
                        last = monotonic()  # nor is what explaining supports
                if is_last:
                    break
            if is_beside:
                lots.join()
            told.put(None)
        except BaseException as error:
            told.put(error)
        finally:
            for lane in lanes:
                asked.put(None)
                lane.close()


def _compute(workshop: Workshop, runner: Runner, asked: "SimpleQueue[_Task | None]") -> None:
    """Compute rounds in one process until there are no more."""
    while (task := asked.get()) is not None:
        started, round = monotonic(), task.round
        try:
            found = workshop.answers(runner, round.kind, round.cases, round.threads, task.refusals)
            task.answers.set_result((found, monotonic() - started))
        except BaseException as error:
            task.answers.set_exception(error)


def _explain(
    explainer: Explainer, lots: "PriorityQueue[Lot]", told: "SimpleQueue[Finding | BaseException | None]"
) -> None:
    """Explain what goes wrong, what costs least first, for as long as the program runs."""
    while True:
        lot = lots.get()
        try:
            for finding in explainer.explain(lot, lots.qsize()):
                told.put(finding)
        except BaseException as error:
            told.put(error)
        lots.task_done()


@dataclass(frozen=True, slots=True)
class _Task:
    """A round that is asked for, what was known to be refused then, and what will come of it."""

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
    """Return the rows that words name, "ScatterNDUpdate-15" or "ScatterNDUpdate"; all without any.

    Raises:
        UsageError: a word names none.
    """
    found: list[OpSpec] = []
    for word in words:
        rows = [spec for key, spec in SPECS.items() if word.lower() in {str(key).lower(), key.type.lower()}]
        if not rows:
            guess = did_you_mean(word, [name for key in SPECS for name in (key.type, str(key))])
            raise UsageError(f"operator is {word!r}{guess}, expected one of {', '.join(map(str, SPECS))}")
        found += rows
    return tuple({spec.key: spec for spec in found or SPECS.values()}.values())


def read_report(path: Path) -> dict[str, Any]:
    """Read the report of an earlier run.

    Raises:
        UsageError: there is none, or it is not one.
    """
    try:
        found = json.loads(read_regular(path).decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise UsageError(f"{path} is no report of fuzz")
    return found
