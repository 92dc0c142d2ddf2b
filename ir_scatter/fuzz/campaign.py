"""Draws cases, has every runner compute them, and makes findings of what goes wrong: one for a signature."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from ir_scatter.core.errors import UsageError
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.fuzz.draw import Coverage, Drawer
from ir_scatter.fuzz.execute import NODES, Workshop, takes
from ir_scatter.fuzz.explain import Explainer, Finding
from ir_scatter.inputs.cases import Case
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import OpSpec
from ir_scatter.runners.base import Runner, Streamed
from ir_scatter.version import versions

SCHEMA = 1
_LIMIT = 60.0
"""Seconds that a runner has for one model and all its cases."""
_PATIENCE = 4
"""What is new is explained after so many rounds of every operator, however seldom it was seen."""
_RESERVE = 0.1
"""The share of the time in which nothing new is drawn."""


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


@dataclass(slots=True)
class Rates:
    """Judged cases and the seconds that they took, by stream."""

    cases: dict[str, int] = field(default_factory=lambda: {"forms": 0, "batches": 0})
    seconds: dict[str, float] = field(default_factory=lambda: {"forms": 0.0, "batches": 0.0})

    def as_json(self) -> dict[str, float]:
        return {
            name: round(self.cases[name] / self.seconds[name], 1) if self.seconds[name] else 0.0
            for name in self.cases
        }


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
        self._round = self._first = int((earlier or {}).get("rounds", 0))
        self._drawer = Drawer(plan.seed, plan.values, self.coverage)
        self._explainers: list[Explainer] = []
        self._specs = [
            spec
            for spec in plan.operators
            if not spec.is_removed and any(takes(runner, spec) for runner in runners)
        ]
        if not self._specs:
            raise UsageError("no runner that was named reads models with these operators")

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

    def run(self) -> Iterator[Finding]:
        """Yield findings as they come, until the time is over or all cases were drawn."""
        with Workshop(_LIMIT, self.deadline) as workshop, ThreadPoolExecutor(len(self.runners)) as pool:
            for runner in self.runners:
                runner.start()
                others = [one for one in self.runners if one is not runner]
                known = [one for one in self.findings if one.runner == runner.name]
                self._explainers.append(
                    Explainer(
                        runner, others, self._drawer, workshop, is_illegal=self.plan.is_illegal, known=known
                    )
                )
            waiting: _Round | None = None
            while True:
                drawn = None if self._is_over() else self._draw(pool)
                if waiting is not None:
                    self._judge(waiting)
                    patience = _PATIENCE * len(self._specs)
                    for explainer in self._explainers:
                        for found in explainer.investigate(self._round, patience, is_last=drawn is None):
                            self.findings.append(found)
                            yield found
                    self._last = monotonic()  # what explaining takes is no part of a rate
                if drawn is None:
                    break
                waiting = drawn

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
            "rates": self.rates.as_json(),
            "coverage": self.coverage.as_json(),
            "findings": [one.as_json() for one in self.findings],
        }

    # One round: cases of one operator, on every runner that takes it.

    def _is_over(self) -> bool:
        plan = self.plan
        if plan.cases is not None and self.cases >= plan.cases:
            return True
        return plan.seconds is not None and monotonic() > self.deadline - _RESERVE * plan.seconds

    def _draw(self, pool: ThreadPoolExecutor) -> "_Round":
        number, plan = self._round, self.plan
        self._round += 1
        spec = self._specs[number % len(self._specs)]
        turn = number // len(self._specs)
        room = None if plan.cases is None else plan.cases - self.cases
        if plan.is_illegal:
            kind, cases = "illegal", self._drawer.illegal(spec, number)
        elif turn % 2:
            kind, cases = (
                "batches",
                self._drawer.batch(spec, number, NODES if room is None else min(room, NODES)),
            )
        else:
            kind, cases = "forms", self._drawer.forms(spec, number)
        cases = cases[:room]
        self.cases += len(cases)
        answers = [
            (one, pool.submit(one.answers, kind, cases))
            for one in self._explainers
            if takes(one.runner, spec)
        ]
        return _Round(kind, answers, monotonic())

    def _judge(self, done: "_Round") -> None:
        for explainer, future in done.answers:
            cases, answers = future.result()
            explainer.judge(cases, answers)
            if done.kind in self.rates.cases:
                self.rates.cases[done.kind] += len(cases)
        if done.kind in self.rates.seconds:
            now = monotonic()
            self.rates.seconds[done.kind] += now - max(done.started, self._last)
            self._last = now

    _last = 0.0


@dataclass(slots=True)
class _Round:
    kind: str
    answers: "list[tuple[Explainer, Future[tuple[list[Case], list[Streamed]]]]]"
    started: float


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
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise UsageError(f"{path} is no report of fuzz")
    return found
