"""What is new of what goes wrong on one runner: when it happens, and the simplest case that shows it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.core.display import record_html, record_repr
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.conditions import Condition, Predicate, learn
from ir_scatter.fuzz.draw import Drawer, variations
from ir_scatter.fuzz.execute import NODES, Workshop, takes
from ir_scatter.fuzz.judge import Judged, contradicted, described, judge
from ir_scatter.fuzz.shrink import shrink
from ir_scatter.inputs.cases import Case, Feature
from ir_scatter.inputs.twins import TWINS, twin
from ir_scatter.runners.base import Runner, Status, Streamed

_NAMES = re.compile(r"\b(?:n\d+_)?node\w*|\bn\d+_\w+|\d+|\b[a-z]\w*\d\b|\[[^]]*\]|\{[^}]*\}|'[^']*'")
"""What differs in the messages of one reason: names, types, numbers, shapes and words of the model."""
_KEPT = 400
"""Passing cases of an operator that are kept, to learn from."""
_FRESH, _VARIED = 150, 200
"""Cases that are drawn anew, and that vary one, when something new goes wrong; fewer where they cost much."""
_FEW = 24
_FATAL = frozenset({Symptom.CRASHED, Symptom.HUNG})
_COSTLY = _FATAL | {Symptom.REFUSED}
_SHRINKING, _LEARNING, _SHARE = 25.0, 8.0, 0.2
"""Seconds at most for one finding, and for each lot of cases to learn from; and of those that are left."""
_SELDOM, _ALIKE = 16, 8
"""Of cases that are known to be refused one in so many is asked for; of one form so many are learned from."""
_TIMES, _CONFIRMED = 8, 3
"""How often a case is repeated to see whether it always gives the same, and whether it fails each time."""
_CONDITIONS, _CHALLENGES, _CHALLENGING = 6, 3, 400
"""At most so many conditions of one symptom at a time; so often each is challenged, choosing from so many."""
_ENOUGH, _ENOUGH_COSTLY = 20, 6
"""So many new failures are learned from at once; fewer where each costs a process or a model."""
_SAME = 0.8
"""A condition that holds for so large a share of the failures of a finding is about the same defect."""


_RIGHT, _NOT_RUN = "right", "not run"


@dataclass(eq=False, slots=True)
class Finding:
    """One way in which one runner is wrong with one operator.

    Attributes:
        signature: operator, runner, symptom and condition; a name for a folder.
        failing, passing: of the cases that meet the condition.
        case: the simplest that was found.
        message: what the runner does with it.
        others: what the other runners do with it, by their names.
        twins: what the same runner does with cases that must give the same, by how they differ.
        path: the folder that it was written to; "" without one.
        is_known: whether an earlier run found it, and `saved` what that said.
        samples: features of cases that fail, from which the condition was learned.
        is_steady: whether the case fails each time it is run.
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
    twins: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    is_known: bool = False
    saved: Mapping[str, Any] | None = None
    samples: Sequence[Mapping[str, Feature]] = ()
    is_steady: bool = True

    @property
    def when(self) -> str:
        """Return the condition as a sentence, with what it rests on."""
        total = self.failing + self.passing
        what = "gives no error" if self.symptom is Symptom.ACCEPTED_ILLEGAL else "fail"
        return f"{self.condition}: {self.failing} of {total} {what}"

    @property
    def outlier(self) -> str:
        """Return the runner if it stands alone against two or more that are right; else ""."""
        run = [told for told in self.others.values() if not told.startswith(_NOT_RUN)]
        return self.runner if len(run) > 1 and set(run) == {_RIGHT} else ""

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
            "twins": dict(self.twins),
            "outlier": self.outlier,
            "predicates": self.condition.as_json(),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Finding":
        """Read a finding of an earlier run, without its case."""
        return cls(
            found["signature"], found["runner"], found["operator"], Symptom(found["symptom"]),
            Condition.from_json(found["predicates"]), found["failing"], found["passing"], None,
            Judged(Symptom(found["symptom"]), found["message"]), found["others"],
            found.get("twins", {}), found["path"], is_known=True, saved=found,
        )  # fmt: skip


_Key = tuple[str, Symptom, str]
"""Operator, symptom, and the rule that is broken or the words of a refusal."""


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

    def asked(self, cases: Sequence[Case]) -> list[Case]:
        """Return the cases that the runner is to be asked for.

        What is known to end a process, or to be refused with a whole model, is asked for now and then only.
        """
        asked = list(cases)
        known = [
            one for one in self.findings
            if one.symptom in _COSTLY and not one.passing and cases and one.operator == cases[0].operator
        ]  # fmt: skip
        if known:
            now_and_then = self._noted % _SELDOM
            asked = [
                case for number, case in enumerate(cases)
                if number % _SELDOM == now_and_then or not _meets(known, described(case))
            ]  # fmt: skip
            self.skipped += len(cases) - len(asked)
        return asked

    def judge(self, kind: str, cases: Sequence[Case], answers: Sequence[Streamed]) -> None:
        """Count what is known, and note what is new; a case that comes twice must give the same."""
        first: dict[tuple[int, ...], tuple[Case, Streamed]] = {}
        few = Counter[object]()
        for case, answer in zip(cases, answers, strict=True):
            other, earlier = first.setdefault(case.decisions, (case, answer))
            is_again = earlier is not answer and earlier.status is Status.OK
            again = earlier.outputs[:1] if is_again and case.twin == other.twin else ()
            judged = _judged(self.runner, case, answer, again)
            if case.twin and case.twin != other.twin:
                judged = contradicted(case, judged, earlier.outputs[0] if is_again else None)
            few[judged.symptom] += 1
            is_alike = kind == "forms" and few[judged.symptom] > _ALIKE
            self._note(case, judged, is_alike=is_alike)

    def _note(self, case: Case, judged: Judged, *, is_alike: bool) -> None:
        """Count a case; one of many of the same form is nothing to learn from."""
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
                kept += [] if is_alike else [case]
            elif not is_alike:
                kept[self._noted % _KEPT] = case
            return
        for one in known:
            if one.symptom is judged.symptom and one.condition.holds(found):
                one.failing += 1
                return
        if not is_alike:
            self._new[case.operator, judged.symptom, _reason(case, judged)].append((case, judged))

    def investigate(self, round: int, patience: int, *, is_last: bool) -> Iterator[Finding]:
        """Yield findings of what is new and was seen often enough, or long ago.

        Args:
            round: its number.
            patience: so many rounds are long.
            is_last: nothing more is to come.
        """
        self._round = round
        for key in sorted(self._new):
            operator, symptom, reason = key
            self._since.setdefault(key, round)
            enough = _ENOUGH_COSTLY if symptom in _COSTLY or self.is_illegal else _ENOUGH
            is_due = len(self._new[key]) >= enough or round - self._since[key] >= patience
            if monotonic() > self._workshop.deadline or not (is_last or is_due):
                continue
            del self._since[key]
            evidence = _Evidence(symptom, reason, self._new.pop(key))
            kept = [described(case) for case in self._kept[operator] if self._is_apt(case, evidence)]
            evidence.passing += [one for one in kept if _can_show(symptom, one)]
            yield from self._explained(operator, evidence)

    def _explained(self, operator: str, evidence: "_Evidence") -> Iterator[Finding]:
        """Yield a finding for each condition, until they cover all failures.

        Each begins with a simplest case. What holds for that, and for most failures, is the condition: so it
        says nothing that the defect does not need.
        """
        self._ask(evidence, self._around(evidence.failing[0][0], evidence))
        for _ in range(_CONDITIONS):
            if not evidence.failing or monotonic() > self._workshop.deadline:
                return
            shown = self._simplest(evidence)
            if shown is None:  # it is not seen again
                del evidence.failing[0]
                continue
            case, judged, is_steady = shown
            evidence.failing.append((case, judged))
            self._ask(
                evidence, list(variations(case, self._drawer.values, _FEW if evidence.is_costly else _VARIED))
            )
            alike = [
                one for one in self.findings if (one.operator, one.symptom) == (operator, evidence.symptom)
            ]
            samples = [sample for one in alike for sample in one.samples if self._is_apt(one.case, evidence)]
            condition = self._condition(evidence, case, samples)
            meeting = [pair for pair in evidence.failing if condition.holds(described(pair[0]))]
            evidence.failing = [pair for pair in evidence.failing if pair not in meeting]
            passing = sum(map(condition.holds, evidence.passing))
            wider = next((one for one in alike if one.samples and _covers(condition, one.samples)), None)
            signature = self._signature(operator, evidence.symptom, condition)
            same = next((one for one in self.findings if one.signature == signature), wider)
            if same is not None:  # the same defect, of which less was seen before
                same.condition = condition
                same.failing += len(meeting)
                same.passing = max(same.passing, passing)
                continue
            finding = Finding(
                signature, self.runner.name, operator, evidence.symptom, condition, len(meeting), passing,
                case, judged, self._others(case), self._twins(case), is_steady=is_steady,
                samples=[described(case) for case, _ in meeting[:_KEPT]],
            )  # fmt: skip
            self.findings.append(finding)
            yield finding

    def _is_apt(self, case: Case | None, evidence: "_Evidence") -> bool:
        """Tell whether a case may be evidence: of illegal ones, those that break the same rule."""
        return not self.is_illegal or (case is not None and case.broken == evidence.reason)

    def _condition(
        self, evidence: "_Evidence", simplest: Case, earlier: Sequence[Mapping[str, Feature]]
    ) -> Condition:
        """Return when most of what is open fails, held against cases that were drawn to disprove it."""
        condition, own = None, described(simplest)
        fixed = (Predicate("broken", "is", evidence.reason),) if self.is_illegal else ()
        for attempt in range(_CHALLENGES + 1):
            bad = [own, *(described(case) for case, _ in evidence.failing), *earlier]
            (learned,) = learn(bad, evidence.passing, 1, own)
            best = Condition(fixed + learned.predicates)
            if best == condition or attempt == _CHALLENGES or monotonic() > self._workshop.deadline:
                return best
            condition = best
            self._ask(evidence, self._challenging(evidence, simplest, condition, attempt))
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

        Illegal ones break the same rule; where the one has dynamic shapes, every other has.
        """
        word = f"{word} {self._round}"
        for number in range(count):
            if case.broken is not None:
                found = self._drawer.broken(case.spec, f"{word} {number}", case.broken)
                if found is not None:
                    yield found
            else:
                is_dynamic = case.shapes != "static" and number % 2 > 0
                yield self._drawer.one(case.spec, f"{word} {number}", predicates, is_dynamic=is_dynamic)

    def _challenging(
        self, evidence: "_Evidence", first: Case, condition: Condition, attempt: int
    ) -> list[Case]:
        """Return fresh cases that meet a condition, and for each predicate ones that meet all but that."""
        most = _FEW // 2 if evidence.is_costly or self.is_illegal else _FEW
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
        known = self._known(evidence)
        limit = self._until(_LEARNING)
        step = 1 if evidence.symptom in _FATAL or self.is_illegal else NODES
        for start in range(0, len(cases), step):
            if monotonic() > limit:
                return
            part = cases[start : start + step]
            computed = self._computed(part, evidence.symptom)
            self._learn(evidence, known, list(zip(part, computed, strict=True)))

    def _learn(
        self, evidence: "_Evidence", known: Sequence[Finding], pairs: Iterable[tuple[Case, Judged]]
    ) -> None:
        for case, judged in pairs:
            found = described(case)
            if judged.is_run and judged.symptom is None:
                evidence.passing += [found] if _can_show(evidence.symptom, found) else []
            elif evidence.is_shown(case, judged) and not _meets(known, found):
                evidence.failing.append((case, judged))

    def _known(self, evidence: "_Evidence") -> list[Finding]:
        operator = evidence.failing[0][0].operator if evidence.failing else ""
        return [one for one in self.findings if (one.operator, one.symptom) == (operator, evidence.symptom)]

    def _until(self, most: float) -> float:
        """Return when to stop something that takes so many seconds at most, and a share of those left."""
        now = monotonic()
        return min(now + most, now + _SHARE * (self._workshop.deadline - now))

    def _computed(self, cases: Sequence[Case], symptom: Symptom, *, is_alone: bool = False) -> list[Judged]:
        if symptom is Symptom.NONDETERMINISTIC:
            return [self._repeated(case) for case in cases]
        if is_alone:
            answers = [self._workshop.batch(self.runner, [one])[0] for one in cases]
        else:
            answers = self._workshop.batch(self.runner, cases)
        return [_judged(self.runner, one, answer) for one, answer in zip(cases, answers, strict=True)]

    def _repeated(self, case: Case) -> Judged:
        answers = self._workshop.stream(self.runner, [case] * _TIMES)
        again = [answer.outputs[0] for answer in answers[1:] if answer.status is Status.OK]
        return _judged(self.runner, case, answers[0], again)

    def _simplest(self, evidence: "_Evidence") -> tuple[Case, Judged, bool] | None:
        """Return the simplest case that fails like the first failure, and whether it does each time.

        None if that fails no more when it is alone.
        """
        known = self._known(evidence)
        is_alone = is_costly = self.is_illegal or evidence.is_costly

        def shows(cases: Sequence[Case], *, is_alone: bool = is_alone) -> list[bool]:
            computed = self._computed(cases, evidence.symptom, is_alone=is_alone)
            pairs = list(zip(cases, computed, strict=True))
            if is_costly:
                self._learn(evidence, known, pairs)
            return [evidence.is_shown(*pair) and not _meets(known, described(pair[0])) for pair in pairs]

        first, judged = evidence.failing[0]
        if not any(shows([first], is_alone=True)[0] for _ in range(_CONFIRMED)):
            return None
        at_once = 1 if is_alone else NODES // 2
        found = shrink(first, shows, self._drawer.values, self._until(_SHRINKING), at_once)
        for case in (found, first):
            computed = [self._computed([case], evidence.symptom, is_alone=True)[0] for _ in range(_CONFIRMED)]
            same = [one for one in computed if evidence.is_shown(case, one)]
            if same:
                return case, same[0], len(same) == len(computed)
        return first, judged, False

    def _others(self, case: Case) -> dict[str, str]:
        """Return what the other runners do with a case."""
        return {
            other.name: _told(_judged(other, case, self._workshop.batch(other, [case])[0]))
            for other in self.others
            if takes(other, case.spec)
        }

    def _twins(self, case: Case) -> dict[str, str]:
        """Return what the runner itself does with cases that must give the same, or leave data as it is."""
        twins = [twin(case, name) for name in TWINS] if case.broken is None else []
        return {
            other.twin: _told(_judged(self.runner, other, self._workshop.batch(self.runner, [other])[0]))
            for other in twins
            if other is not None
        }

    def _signature(self, operator: str, symptom: Symptom, condition: Condition) -> str:
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
        return self.symptom in _COSTLY

    def is_shown(self, case: Case, judged: Judged) -> bool:
        """Tell whether a case fails in the same way."""
        return (judged.symptom, _reason(case, judged)) == (self.symptom, self.reason)


def _covers(condition: Condition, samples: Sequence[Mapping[str, Feature]]) -> bool:
    return sum(map(condition.holds, samples)) >= _SAME * len(samples)


def _can_show(symptom: Symptom, found: Mapping[str, Feature]) -> bool:
    """Tell whether a case that passes tells anything: no value is wrong where there is none."""
    return symptom is not Symptom.WRONG_VALUE or found["elements(data)"] != 0


def _meets(findings: Iterable[Finding], found: Mapping[str, Any]) -> bool:
    return any(one.condition.holds(found) for one in findings)


def _reason(case: Case, judged: Judged) -> str:
    """Return what failures have in common: the rule that is broken, or the words of a refusal."""
    if case.broken is not None:
        return case.broken
    return _NAMES.sub("", judged.message) if judged.symptom is Symptom.REFUSED else ""


def _told(judged: Judged) -> str:
    if not judged.is_run:
        return f"{_NOT_RUN}: {judged.message}"
    return _RIGHT if judged.symptom is None else f"{judged.symptom}: {judged.message}"
