"""What is new of what goes wrong on one runner: when it happens, and the simplest case that shows it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.core.display import record_html, record_repr
from ir_scatter.fuzz.conditions import Condition, Predicate, learn
from ir_scatter.fuzz.draw import Drawer, variations
from ir_scatter.fuzz.execute import NODES, Workshop, takes
from ir_scatter.fuzz.judge import Judged, Symptom, described, judge
from ir_scatter.fuzz.shrink import shrink
from ir_scatter.inputs.cases import WAYS, Case, Feature
from ir_scatter.runners.base import Runner, Status, Streamed

_NAMES = re.compile(r"\b(?:n\d+_)?node\w*|\bn\d+_\w+|\d+|\b[a-z]\w*\d\b|\[[^]]*\]|\{[^}]*\}")
"""What differs in the messages of one reason: names, types, numbers and shapes."""
_KEPT = 400
"""Passing cases of an operator that are kept, to learn from."""
_FRESH, _VARIED = 150, 200
"""Cases that are drawn anew, and that vary one, when something new goes wrong; fewer where they cost much."""
_FEW = 24
_FATAL = frozenset({Symptom.CRASHED, Symptom.HUNG})
_SHRINKING, _LEARNING = 12.0, 5.0
"""Seconds at most for one finding, and for each lot of cases to learn from."""
_CONDITIONS, _CHALLENGES, _CHALLENGING = 4, 3, 400
"""At most so many conditions of one symptom at a time; so often each is challenged, choosing from so many."""
_ENOUGH = 20
"""So many new failures are learned from at once."""
_SAME = 0.8
"""A condition that holds for so large a share of the failures of a finding is about the same defect."""


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


_Key = tuple[str, Symptom, str]
"""Operator, symptom, and for a refusal the words that cases have in common."""


class Explainer:
    """What goes wrong on one runner: counted where a finding explains it, else made into one."""

    def __init__(
        self,
        runner: Runner,
        others: Sequence[Runner],
        drawer: Drawer,
        workshop: Workshop,
        *,
        is_illegal: bool,
        known: Sequence[Finding] = (),
    ) -> None:
        """Begin with the findings of an earlier run; the others are asked for the simplest cases."""
        self.runner, self.others, self.is_illegal = runner, others, is_illegal
        self.findings = list(known)
        self.skipped = 0
        self._drawer, self._workshop = drawer, workshop
        self._kept: dict[str, list[Case]] = defaultdict(list)
        self._new: dict[_Key, list[tuple[Case, Judged]]] = defaultdict(list)
        self._since: dict[_Key, int] = {}
        self._noted = self._round = 0

    def answers(self, kind: str, cases: Sequence[Case]) -> tuple[list[Case], list[Streamed]]:
        """Return the cases that the runner was asked for, and its answers."""
        fatal = [one for one in self.findings if one.symptom in {*_FATAL, Symptom.REFUSED}]
        asked = list(cases)
        if fatal:  # what is known to end a process, or a whole model, is counted and not asked again
            own = [one for one in fatal if cases and one.operator == cases[0].operator]
            asked = [case for case in cases if not own or not _meets(own, described(case))]
            self.skipped += len(cases) - len(asked)
        if not asked:
            return [], []
        if kind == "forms":
            return asked, self._workshop.stream(self.runner, asked)
        if kind == "batches":
            return asked, self._workshop.batch(self.runner, asked)
        return asked, [self._workshop.batch(self.runner, [case])[0] for case in asked]

    def judge(self, cases: Sequence[Case], answers: Sequence[Streamed]) -> None:
        """Count what is known, and note what is new; a case that comes twice must give the same."""
        first: dict[tuple[int, ...], Streamed] = {}
        for case, answer in zip(cases, answers, strict=True):
            earlier = first.setdefault(case.decisions, answer)
            is_again = earlier is not answer and earlier.status is Status.OK
            self._note(case, _judged(self.runner, case, answer, earlier.outputs[:1] if is_again else ()))

    def _note(self, case: Case, judged: Judged) -> None:
        self._noted += 1
        if not judged.is_run:
            self.skipped += 1
            return
        known = [one for one in self.findings if one.operator == case.operator]
        found = described(case) if known else {}
        if judged.symptom is None:
            for one in known:
                one.passing += _can_show(one.symptom, found) and one.condition.holds(found)
            kept = self._kept[case.operator]
            if len(kept) < _KEPT:
                kept.append(case)
            else:
                kept[self._noted % _KEPT] = case
            return
        for one in known:
            if one.symptom is judged.symptom and one.condition.holds(found):
                one.failing += 1
                return
        self._new[case.operator, judged.symptom, _reason(judged)].append((case, judged))

    def investigate(self, round: int, patience: int, *, is_last: bool) -> Iterator[Finding]:
        """Yield findings of what is new and was seen often enough, or long ago, or costs a process.

        Args:
            round: its number.
            patience: so many rounds are long.
            is_last: nothing more is to come.
        """
        self._round = round
        for key in sorted(self._new):
            operator, symptom, _ = key
            self._since.setdefault(key, self._round)
            is_due = len(self._new[key]) >= _ENOUGH or self._round - self._since[key] >= patience
            if monotonic() > self._workshop.deadline or not (is_last or is_due or symptom in _FATAL):
                continue
            del self._since[key]
            seen = self._new.pop(key)
            evidence = _Evidence(symptom, _reason(seen[0][1]), list(seen))
            kept = [described(case) for case in self._kept[operator]]
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
                if (one.operator, one.symptom) == key[:2] and one.samples
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
                signature, self.runner.name, key[0], key[1], condition, len(meeting), passing, *meeting[0],
                samples=[described(case) for case, _ in meeting[:_KEPT]],
            )  # fmt: skip
            self._make_minimal(finding)
            self.findings.append(finding)
            yield finding

    def _condition(self, evidence: "_Evidence", earlier: Sequence[Mapping[str, Feature]]) -> Condition:
        """Return when most of what is open fails, held against cases that were drawn to disprove it."""
        condition = None
        for attempt in range(_CHALLENGES + 1):
            bad = [described(case) for case, _ in evidence.failing]
            best = learn([*bad, *earlier], evidence.passing, 1)[0]
            if best == condition or attempt == _CHALLENGES or monotonic() > self._workshop.deadline:
                return best
            condition = best
            self._ask(evidence, self._challenging(evidence, condition, attempt))
        raise AssertionError

    def _around(self, case: Case, evidence: "_Evidence") -> list[Case]:
        """Return cases that have much in common with one that fails, and fresh ones."""
        few = evidence.is_costly or self.is_illegal
        found = list(variations(case, self._drawer.values, _FEW if few else _VARIED))
        return found + list(self._fresh(case, "around", _FEW if few else _FRESH))

    def _fresh(
        self, case: Case, word: str, count: int, predicates: Sequence[Predicate] = ()
    ) -> Iterator[Case]:
        """Yield fresh cases of the operator of one, of types that predicates allow.

        Of illegal ones every other breaks the same rule; where the one has dynamic shapes, every other has.
        """
        word = f"{word} {self._round}"
        if self.is_illegal:
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
            if one.operator == evidence.failing[0][0].operator
        ]  # fmt: skip
        limit = min(self._workshop.deadline, monotonic() + _LEARNING)
        step = 1 if evidence.is_costly or self.is_illegal else NODES
        for start in range(0, len(cases), step):
            if monotonic() > limit:
                return
            part = cases[start : start + step]
            answers = self._workshop.batch(self.runner, part)
            for one, answer in zip(part, answers, strict=True):
                judged = _judged(self.runner, one, answer)
                found = described(one)
                if judged.is_run and judged.symptom is None:
                    evidence.passing += [found] if _can_show(evidence.symptom, found) else []
                elif (judged.symptom, _reason(judged)) != (evidence.symptom, evidence.reason):
                    continue
                elif not _meets(known, found):
                    evidence.failing.append((one, judged))

    def _make_minimal(self, finding: Finding) -> None:
        """Put the simplest case in the place of the one that was found, and ask the other runners for it."""
        assert finding.case is not None
        reason = _reason(finding.judged)
        is_alone = self.is_illegal or finding.symptom in _FATAL or finding.symptom is Symptom.REFUSED

        def judged(cases: Sequence[Case]) -> list[Judged]:
            answers = (
                [self._workshop.batch(self.runner, [one])[0] for one in cases]
                if is_alone
                else self._workshop.batch(self.runner, cases)
            )
            return [_judged(self.runner, one, answer) for one, answer in zip(cases, answers, strict=True)]

        def shows(cases: Sequence[Case]) -> list[bool]:
            return [
                found.symptom is finding.symptom
                and _reason(found) == reason
                and finding.condition.holds(described(case))
                for case, found in zip(cases, judged(cases), strict=True)
            ]

        deadline = min(self._workshop.deadline, monotonic() + _SHRINKING)
        at_once = 1 if is_alone else NODES // 2
        found = finding.case
        if shows([found])[0]:
            found = shrink(found, shows, self._drawer.values, deadline, at_once)
            finding.case, finding.judged = found, judged([found])[0]
        finding.others = {
            other.name: _told(_judged(other, found, self._workshop.batch(other, [found])[0]))
            for other in self.others
            if takes(other, found.spec)
        }

    def _signature(self, key: _Key, condition: Condition) -> str:
        operator, symptom, _ = key
        words = [operator, self.runner.name, symptom.value, condition.slug]
        return ".".join(re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)


def _judged(runner: Runner, case: Case, answer: Streamed, again: Sequence[Array] = ()) -> Judged:
    if runner.declines is not None and answer.message.endswith(runner.declines):
        return Judged(None, answer.message, is_run=False)
    return judge(case, answer, again)


@dataclass(slots=True)
class _Evidence:
    """What is known of one thing that goes wrong: cases that fail so, and features of cases that pass."""

    symptom: Symptom
    reason: str
    failing: list[tuple[Case, Judged]]
    passing: list[Mapping[str, Feature]] = field(default_factory=list)

    @property
    def is_costly(self) -> bool:
        """Tell whether each failure costs a process, or a model that is not made."""
        return self.symptom in {*_FATAL, Symptom.REFUSED}


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
