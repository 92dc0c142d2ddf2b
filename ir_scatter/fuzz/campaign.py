"""Draws cases, has every runner compute them, and makes findings of what goes wrong: one for a signature."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.core.display import record_html, record_repr
from ir_scatter.core.errors import UsageError
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.fuzz.conditions import Condition, Predicate, learn
from ir_scatter.fuzz.draw import Coverage, Drawer, variations
from ir_scatter.fuzz.execute import NODES, Workshop
from ir_scatter.fuzz.judge import Judged, Symptom, described, judge
from ir_scatter.fuzz.shrink import shrink
from ir_scatter.inputs.cases import WAYS, Case, Feature
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import OpSpec
from ir_scatter.runners.base import Runner, Status, Streamed
from ir_scatter.version import versions

SCHEMA = 1
_NAMES = re.compile(r"\b(?:n\d+_)?node\w*|\bn\d+_\w+|\d+|\b[a-z]\w*\d\b|\[[^]]*\]|\{[^}]*\}")
"""What differs in the messages of one reason: names, types, numbers and shapes."""
_LIMIT = 60.0
"""Seconds that a runner has for one model and all its cases."""
_KEPT = 400
"""Passing cases of an operator that are kept for each runner, to learn from."""
_FRESH, _VARIED = 150, 200
"""Cases that are drawn anew, and that vary one, when something new goes wrong; fewer where they cost much."""
_FEW = 24
_FATAL = frozenset({Symptom.CRASHED, Symptom.HUNG})
_SHRINKING, _LEARNING = 12.0, 5.0
"""Seconds at most for one finding, and for each lot of cases to learn from."""
_CONDITIONS, _CHALLENGES, _CHALLENGING = 4, 3, 400
"""At most so many conditions of one symptom at a time; so often each is challenged, choosing from so many."""
_ENOUGH, _PATIENCE = 20, 4
"""So many new failures are learned from at once, or fewer after so many rounds of every operator."""
_SAME = 0.8
"""A condition that holds for so large a share of the failures of a finding is about the same defect."""
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


@dataclass(eq=False, slots=True)
class Finding:
    """One way in which one runner is wrong with one operator.

    Attributes:
        signature: operator, runner, symptom and condition; a name for a folder.
        failing, passing: of the cases that meet the condition.
        case: the simplest that was found.
        message: what the runner does with it.
        others: what the other runners do with it, by their names.
        path: the folder that it was written to; "" without one.
        is_known: whether an earlier run found it, and `saved` what that said.
        samples: features of cases that fail, from which the condition was learned.
    """

    __repr__, _repr_html_ = record_repr, record_html

    signature: str
    runner: str
    operator: str
    symptom: Symptom
    condition: Condition
    failing: int
    passing: int
    case: Case | None
    judged: Judged
    others: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    is_known: bool = False
    saved: Mapping[str, Any] | None = None
    samples: Sequence[Mapping[str, Feature]] = ()

    @property
    def when(self) -> str:
        """Return the condition as a sentence, with what it rests on."""
        total = self.failing + self.passing
        what = "gives no error" if self.symptom is Symptom.ACCEPTED_ILLEGAL else "fail"
        return f"{self.condition}: {self.failing} of {total} {what}"

    def as_json(self) -> dict[str, Any]:
        """Return the finding as the report has it."""
        known = dict(self.saved or {})
        if self.case is not None:
            arrays = {role.value: array for role, array in self.case.arrays().items() if array is not None}
            known["minimal"] = {
                "shapes": {name: list(array.shape) for name, array in arrays.items()},
                "element_types": {"data": self.case.element_type.name, "indices": self.case.index_type.name},
                "attributes": dict(self.case.attributes)
                | ({} if self.case.axis is None else {"axis": self.case.axis}),
                "constants": sorted(role.value for role in self.case.constants),
                "elements": int(self.case.data.size),
            }
            known["message"] = self.judged.message
        return {
            "signature": self.signature,
            "runner": self.runner,
            "operator": self.operator,
            "symptom": self.symptom.value,
            "when": self.when,
            "failing": self.failing,
            "passing": self.passing,
            "minimal": known.get("minimal", {}),
            "path": self.path,
            "message": known.get("message", ""),
            "others": dict(self.others),
            "predicates": self.condition.as_json(),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Finding":
        """Read a finding of an earlier run, without its case."""
        return cls(
            found["signature"], found["runner"], found["operator"], Symptom(found["symptom"]),
            Condition.from_json(found["predicates"]), found["failing"], found["passing"], None,
            Judged(Symptom(found["symptom"]), found["message"]), found["others"], found["path"],
            is_known=True, saved=found,
        )  # fmt: skip


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


_Key = tuple[str, str, Symptom, str]
"""Operator, runner, symptom, and for a refusal the words that cases have in common."""


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
        self.skipped = 0
        self._seconds = float((earlier or {}).get("seconds", 0.0))
        self._round = self._first = int((earlier or {}).get("rounds", 0))
        self._drawer = Drawer(plan.seed, plan.values, self.coverage)
        self._kept: dict[tuple[str, str], list[Case]] = defaultdict(list)
        self._new: dict[_Key, list[tuple[Case, Judged]]] = defaultdict(list)
        self._since: dict[_Key, int] = {}
        self._specs = [
            spec
            for spec in plan.operators
            if not spec.is_removed and any(_takes(runner, spec) for runner in runners)
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

    def run(self) -> Iterator[Finding]:
        """Yield findings as they come, until the time is over or all cases were drawn."""
        with Workshop(_LIMIT, self.deadline) as workshop, ThreadPoolExecutor(len(self.runners)) as pool:
            for runner in self.runners:
                runner.start()
            waiting: _Round | None = None
            while True:
                drawn = None if self._is_over() else self._draw(workshop, pool)
                if waiting is not None:
                    self._judge(waiting)
                    yield from self._investigate(workshop, is_last=drawn is None)
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

    def _draw(self, workshop: Workshop, pool: ThreadPoolExecutor) -> "_Round":
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
        runners = [runner for runner in self.runners if _takes(runner, spec)]
        answers: dict[str, Future[tuple[list[Case], list[Streamed]]]] = {
            runner.name: pool.submit(self._answers, workshop, runner, kind, cases) for runner in runners
        }
        return _Round(kind, str(spec.key), cases, answers, monotonic())

    def _answers(
        self, workshop: Workshop, runner: Runner, kind: str, cases: Sequence[Case]
    ) -> tuple[list[Case], list[Streamed]]:
        """Return the cases that a runner was asked for, and its answers."""
        fatal = [
            one for one in self.findings
            if one.runner == runner.name and (one.symptom in _FATAL or one.symptom is Symptom.REFUSED)
        ]  # fmt: skip
        asked = list(cases)
        if fatal:  # what is known to end a process, or a whole model, is counted and not asked again
            own = [one for one in fatal if cases and one.operator == cases[0].operator]
            asked = [case for case in cases if not own or not _meets(own, described(case))]
            self.skipped += len(cases) - len(asked)
        if not asked:
            return [], []
        if kind == "forms":
            return asked, workshop.stream(runner, asked)
        if kind == "batches":
            return asked, workshop.batch(runner, asked)
        return asked, [workshop.batch(runner, [case])[0] for case in asked]

    def _judged(self, runner: Runner, case: Case, answer: Streamed, again: Sequence[Array] = ()) -> Judged:
        if runner.declines is not None and answer.message.endswith(runner.declines):
            return Judged(None, answer.message, is_run=False)
        return judge(case, answer, again)

    def _judge(self, done: "_Round") -> None:
        runners = {runner.name: runner for runner in self.runners}
        for name, future in done.answers.items():
            cases, answers = future.result()
            known = [one for one in self.findings if (one.operator, one.runner) == (done.operator, name)]
            first: dict[tuple[int, ...], Streamed] = {}
            for case, answer in zip(cases, answers, strict=True):
                earlier = first.setdefault(case.decisions, answer)
                is_again = earlier is not answer and earlier.status is Status.OK
                judged = self._judged(runners[name], case, answer, earlier.outputs[:1] if is_again else ())
                self._note(name, case, judged, known)
            if done.kind in self.rates.cases:
                self.rates.cases[done.kind] += len(cases)
        if done.kind in self.rates.seconds:
            now = monotonic()
            self.rates.seconds[done.kind] += now - max(done.started, self._last)
            self._last = now

    _last = 0.0

    def _note(self, runner: str, case: Case, judged: Judged, known: Sequence[Finding]) -> None:
        """Count a case of known signatures; keep it if what goes wrong is new, or nothing does."""
        if not judged.is_run:
            self.skipped += 1
            return
        found = described(case) if known else {}
        if judged.symptom is None:
            for one in known:
                one.passing += _can_show(one.symptom, found) and one.condition.holds(found)
            kept = self._kept[case.operator, runner]
            if len(kept) < _KEPT:
                kept.append(case)
            else:
                kept[self.cases % _KEPT] = case
            return
        for one in known:
            if one.symptom is judged.symptom and one.condition.holds(found):
                one.failing += 1
                return
        self._new[case.operator, runner, judged.symptom, _reason(judged)].append((case, judged))

    # What is new: when it happens, and the simplest case.

    def _investigate(self, workshop: Workshop, *, is_last: bool) -> Iterator[Finding]:
        """Yield findings of what is new and was seen often enough, or long ago, or costs a process."""
        waited = _PATIENCE * len(self._specs)
        for key in sorted(self._new):
            operator, name, symptom, _ = key
            self._since.setdefault(key, self._round)
            is_due = len(self._new[key]) >= _ENOUGH or self._round - self._since[key] >= waited
            if monotonic() > self.deadline or not (is_last or is_due or symptom in _FATAL):
                continue
            del self._since[key]
            runner = next(one for one in self.runners if one.name == name)
            seen = self._new.pop(key)
            evidence = _Evidence(workshop, runner, symptom, _reason(seen[0][1]), list(seen))
            kept = [described(case) for case in self._kept[operator, name]]
            evidence.passing += [one for one in kept if _can_show(symptom, one)]
            self._ask(evidence, self._around(seen[0][0], evidence))
            yield from self._explained(key, evidence)

    def _explained(self, key: _Key, evidence: "_Evidence") -> Iterator[Finding]:
        """Yield a finding for each condition, until they cover all failures."""
        for _ in range(_CONDITIONS):
            if not evidence.failing:
                return
            alike = [
                one for one in self.findings
                if (one.operator, one.runner, one.symptom) == key[:3] and one.samples
            ]  # fmt: skip
            condition = self._condition(evidence, [sample for one in alike for sample in one.samples])
            both = [(pair, described(pair[0])) for pair in evidence.failing]
            meeting = [pair for pair, found in both if condition.holds(found)] or evidence.failing
            taken = {id(case) for case, _ in meeting}
            evidence.failing = [pair for pair in evidence.failing if id(pair[0]) not in taken]
            passing = sum(map(condition.holds, evidence.passing))
            wider = next((one for one in alike if _covers(condition, one.samples)), None)
            signature = self._signature(key, condition)
            same = next((one for one in self.findings if one.signature == signature), wider)
            if same is not None:  # the same defect, of which less was seen before
                same.condition = condition
                same.failing += len(meeting)
                same.passing = max(same.passing, passing)
                continue
            finding = Finding(
                signature, key[1], key[0], key[2], condition, len(meeting), passing, *meeting[0],
                samples=[described(case) for case, _ in meeting[:_KEPT]],
            )  # fmt: skip
            self._make_minimal(evidence.workshop, evidence.runner, finding)
            self.findings.append(finding)
            yield finding

    def _condition(self, evidence: "_Evidence", earlier: Sequence[Mapping[str, Feature]]) -> Condition:
        """Return when most of what is open fails, held against cases that were drawn to disprove it."""
        condition = None
        for attempt in range(_CHALLENGES + 1):
            bad = [described(case) for case, _ in evidence.failing]
            best = learn([*bad, *earlier], evidence.passing, 1)[0]
            if best == condition or attempt == _CHALLENGES or monotonic() > self.deadline:
                return best
            condition = best
            self._ask(evidence, self._challenging(evidence, condition, attempt))
        raise AssertionError

    def _around(self, case: Case, evidence: "_Evidence") -> list[Case]:
        """Return cases that have much in common with one that fails, and fresh ones."""
        few = evidence.is_costly or self.plan.is_illegal
        found = list(variations(case, self.plan.values, _FEW if few else _VARIED))
        return found + list(self._fresh(case, "around", _FEW if few else _FRESH))

    def _fresh(
        self, case: Case, word: str, count: int, predicates: Sequence[Predicate] = ()
    ) -> Iterator[Case]:
        """Yield fresh cases of the operator of one, of types that predicates allow.

        Of illegal ones every other breaks the same rule; where the one has dynamic shapes, every other has.
        """
        word = f"{word} {self._round}"
        if self.plan.is_illegal:
            ways = list(WAYS)
            for number in range(count):
                way = case.broken or "" if number % 2 else ways[number // 2 % len(ways)]
                found = self._drawer.broken(case.spec, f"{word} {number}", way)
                if found is not None:
                    yield found
            return
        for number in range(count):
            is_dynamic = case.shapes != "static" and number % 2 > 0
            yield self._drawer.one(case.spec, f"{word} {number}", predicates, is_dynamic=is_dynamic)

    def _challenging(self, evidence: "_Evidence", condition: Condition, attempt: int) -> list[Case]:
        """Return fresh cases that meet a condition, and for each predicate ones that meet all but that."""
        first, most = evidence.failing[0][0], _FEW // 2 if evidence.is_costly else _FEW
        chosen: list[Case] = []
        for left_out in (None, *condition.predicates):
            others = [one for one in condition.predicates if one is not left_out]
            room = most
            for case in self._fresh(first, f"challenge {attempt} {left_out}", _CHALLENGING, others):
                found = described(case)
                is_apart = left_out is None or not left_out.holds(found)
                if is_apart and all(one.holds(found) for one in others):
                    chosen.append(case)
                    room -= 1
                if not room:
                    break
        return chosen

    def _ask(self, evidence: "_Evidence", cases: Sequence[Case]) -> None:
        """Run cases, and add to what is known: failures that no signature explains, and what passes."""
        known = [
            one for one in self.findings
            if (one.operator, one.runner) == (evidence.failing[0][0].operator, evidence.runner.name)
        ]  # fmt: skip
        limit = min(self.deadline, monotonic() + _LEARNING)
        step = 1 if evidence.is_costly or self.plan.is_illegal else NODES
        for start in range(0, len(cases), step):
            if monotonic() > limit:
                return
            part = cases[start : start + step]
            answers = evidence.workshop.mixed(evidence.runner, part)
            for one, answer in zip(part, answers, strict=True):
                judged = self._judged(evidence.runner, one, answer)
                found = described(one)
                if judged.is_run and judged.symptom is None:
                    evidence.passing += [found] if _can_show(evidence.symptom, found) else []
                elif (judged.symptom, _reason(judged)) != (evidence.symptom, evidence.reason):
                    continue
                elif not _meets(known, found):
                    evidence.failing.append((one, judged))

    def _make_minimal(self, workshop: Workshop, runner: Runner, finding: Finding) -> None:
        """Put the simplest case in the place of the one that was found, and ask the other runners for it."""
        assert finding.case is not None

        def judged(cases: Sequence[Case]) -> list[Judged]:
            answers = (
                [workshop.batch(runner, [one])[0] for one in cases]
                if is_alone
                else workshop.mixed(runner, cases)
            )
            return [self._judged(runner, one, answer) for one, answer in zip(cases, answers, strict=True)]

        def shows(cases: Sequence[Case]) -> list[bool]:
            pairs = zip(cases, judged(cases), strict=True)
            return [
                found.symptom is finding.symptom
                and _reason(found) == reason
                and finding.condition.holds(described(case))
                for case, found in pairs
            ]

        reason = _reason(finding.judged)

        is_alone = self.plan.is_illegal or finding.symptom in _FATAL or finding.symptom is Symptom.REFUSED
        deadline = min(self.deadline, monotonic() + _SHRINKING)
        at_once = 1 if is_alone else NODES // 2
        found = finding.case
        if shows([found])[0]:
            found = shrink(found, shows, self.plan.values, deadline, at_once)
            finding.case, finding.judged = found, judged([found])[0]
        finding.others = {
            other.name: _told(self._judged(other, found, workshop.batch(other, [found])[0]))
            for other in self.runners
            if other is not runner and _takes(other, found.spec)
        }

    def _signature(self, key: _Key, condition: Condition) -> str:
        operator, runner, symptom, _ = key
        words = [operator, runner, symptom.value, condition.slug]
        return ".".join(re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)


@dataclass(slots=True)
class _Evidence:
    """What is known of one thing that goes wrong: cases that fail so, and features of cases that pass."""

    workshop: Workshop
    runner: Runner
    symptom: Symptom
    reason: str
    failing: list[tuple[Case, Judged]]
    passing: list[Mapping[str, Feature]] = field(default_factory=list)

    @property
    def is_costly(self) -> bool:
        """Tell whether each failure costs a process, or a model that is not made."""
        return self.symptom in {*_FATAL, Symptom.REFUSED}


@dataclass(slots=True)
class _Round:
    kind: str
    operator: str
    cases: Sequence[Case]
    answers: "Mapping[str, Future[tuple[list[Case], list[Streamed]]]]"
    started: float


def _takes(runner: Runner, spec: OpSpec) -> bool:
    from ir_scatter.core.model import ONNX
    from ir_scatter.formats.base import IR, ONNX_FORMAT

    return (ONNX_FORMAT if spec.key.domain == ONNX else IR) in runner.formats


def _covers(condition: Condition, samples: Sequence[Mapping[str, Feature]]) -> bool:
    return sum(map(condition.holds, samples)) >= _SAME * len(samples)


def _can_show(symptom: Symptom, found: Mapping[str, Feature]) -> bool:
    """Tell whether a case that passes tells anything: no value is wrong where there is none."""
    return symptom is not Symptom.WRONG_VALUE or found["elements(data)"] != 0


def _meets(findings: Iterable[Finding], found: Mapping[str, Any]) -> bool:
    return any(one.condition.holds(found) for one in findings)


def _reason(judged: Judged) -> str:
    """Return what messages of one reason have in common; only those of refusals tell reasons apart."""
    return _NAMES.sub("", judged.message) if judged.symptom is Symptom.REFUSED else ""


def _told(judged: Judged) -> str:
    if not judged.is_run:
        return f"not run: {judged.message}"
    return "right" if judged.symptom is None else f"{judged.symptom}: {judged.message}"


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
