"""What is new of what goes wrong on one runner: when it happens, and the simplest case that shows it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from math import inf
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

from ir_scatter.cases.case import Case
from ir_scatter.cases.judge import Judged, contradicted, judge
from ir_scatter.cases.twins import TWINS, twin
from ir_scatter.cases.workshop import NODES, Workshop, takes
from ir_scatter.core.arrays import Array
from ir_scatter.core.display import record_html, record_repr
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.conditions import Condition, Predicate, learn
from ir_scatter.fuzz.features import Feature, described
from ir_scatter.fuzz.known_defects import known_defects
from ir_scatter.fuzz.rounds import Drawer, variations
from ir_scatter.fuzz.shrink import shrink, size
from ir_scatter.runners.base import Runner, Status, Streamed

_NAMES = re.compile(r"\b(?:n\d+_)?node\w*|\bn\d+_\w+|\d+|\b[a-z]\w*\d\b|\[[^]]*\]|\{[^}]*\}|'[^']*'")
"""What differs in the messages of one reason: names, types, numbers, shapes and words of the model."""
_KEPT, _SAMPLES, _WAITING = 400, 64, 60
"""To learn from are kept: cases of an operator that give a result, features of cases of a finding that fail
and of as many that do not, and failures that wait to be explained. The latest take the place of the first."""
_FRESH, _VARIED = 150, 200
"""Cases that are drawn anew, and that vary one, when something new goes wrong; fewer where they cost much."""
_FEW = 16
_FATAL = frozenset(symptom for symptom in Symptom if symptom.is_fatal)
_COSTLY = frozenset(symptom for symptom in Symptom if symptom.cost > 1)
_LEARNING, _SHRINKING = 600, 2400
"""What each lot of cases to learn from may cost, and shrinking a finding: counted, and so the same however
long they take."""
_SECONDS, _SHARE, _MOST_WAITING = 25.0, 0.2, 3
"""What each of these may take where a number of seconds was asked for, and which share of those left; at most
so many lots that wait have as much."""
_SELDOM, _ALIKE = 16, 8
"""Of cases that are known to be refused one in so many is asked for; of one form so many are learned from."""
_TIMES, _CONFIRMED = 16, 2
"""How often a case is repeated to see whether it always gives the same, and in how many fresh processes it is
run; in as many again where these differ."""
_CONDITIONS, _CHALLENGES, _CHALLENGING = 6, 4, 400
"""At most so many conditions of one symptom at a time; so often each is challenged, choosing from so many."""
_PAUSE = 20
"""So many rounds what ends processes is taken for younger, as it takes longest to explain; and what may be
the same as findings that are there, twice for each, as what was never told is to come first."""
_ENOUGH, _ENOUGH_COSTLY = 20, 6
"""So many new failures are learned from at once; fewer where each costs a process or a model."""
_BRIEF = 0.5
"""What takes fewer seconds may be twice as much the next time."""
_PATIENCE = 0.08
"""After such a share of the time what is new is old enough to be explained, however seldom it was seen."""
_SAME = 0.8
"""A condition that holds for so large a share of the failures of a finding is about the same defect."""
_PURE, _STILL_PURE, _COUNTERS = 0.95, 0.9, 4
"""Of the cases that meet a condition so large a share fails when it is learned, and as long as it is told:
where it is less, and so many that pass are known, and twice as many each time, it is learned anew."""
_ENDANGERED = 10
"""What ends a process is asked for now and then only, unless so many times as many cases pass."""

_RIGHT, _NOT_RUN = "right", "not run"


@dataclass(eq=False, slots=True)
class Finding:
    """One way in which one runner is wrong with one operator.

    Attributes:
        signature: operator, runner, symptom and condition; a name for a folder.
        failing, passing: of the cases that meet the condition, those that show the symptom, and those that
            show that it is not there.
        otherwise: how many show other symptoms, which hide this one.
        is_explained: whether the condition tells failing cases from passing ones; else no short one does.
        case: the simplest that was found.
        message: what the runner does with it.
        others: what the other runners do with it, by their names.
        twins: what the same runner does with cases that must give the same, by how they differ.
        path: the folder that it was written to; "" without one.
        is_known: whether an earlier run found it, and `saved` what that said.
        samples: features of some that fail, from which the condition was learned.
        counters: features of some that pass although the condition holds.
        fresh: what became of the case in processes that had run nothing else, and how often.
        also: other symptoms of the same cases: a process that is damaged may end, or not.
        reason: see `Lot`: what is refused in other words is no evidence for the condition.
        defects: the codes of the known defects that it shows; none if it is new.
        is_hurried: whether there was no time left to make it simple and to try the condition.
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
    twins: dict[str, str] = field(default_factory=dict)
    path: str = ""
    is_known: bool = False
    saved: Mapping[str, Any] | None = None
    samples: list[Mapping[str, Feature]] = field(default_factory=list)
    counters: list[Mapping[str, Feature]] = field(default_factory=list)
    fresh: Mapping[str, int] = field(default_factory=dict)
    is_explained: bool = True
    also: set[Symptom] = field(default_factory=set)
    otherwise: Counter[str] = field(default_factory=Counter)
    reason: str = ""
    tried: int = 0
    defects: tuple[str, ...] = ()
    is_hurried: bool = False

    @property
    def when(self) -> str:
        """Return the condition as a sentence, with what it rests on."""
        total = self.failing + self.passing
        told = f"{self.condition}: {self.failing} of {total} {self.symptom.verb}"
        for word, count in sorted(self.otherwise.items()):
            told += f"; {count} more {Symptom(word).verb}"
        if not self.is_explained:
            told += "; what tells them from the others was not found"
        if self.is_hurried:
            told += "; there was no time to look closer"
        return told if self.is_alone else f"{told}; only in a process that has run other cases before"

    @property
    def is_steady(self) -> bool:
        """Tell whether the case fails in the same way each time it is run."""
        return set(self.fresh) <= {self.symptom.value}

    @property
    def is_alone(self) -> bool:
        """Tell whether the case fails where no other was run before."""
        return set(self.fresh) != {_RIGHT}

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
                "iterations": self.case.iterations,
                "elements": int(self.case.data.size),
            }
            known["message"] = self.judged.message
        return {
            "signature": self.signature,
            "runner": self.runner,
            "operator": self.operator,
            "symptom": self.symptom.value,
            "when": self.when,
            "explained": self.is_explained,
            "fresh": dict(self.fresh),
            "failing": self.failing,
            "passing": self.passing,
            "otherwise": dict(sorted(self.otherwise.items())),
            "minimal": known.get("minimal", {}),
            "path": self.path,
            "message": known.get("message", ""),
            "others": dict(self.others),
            "twins": dict(self.twins),
            "outlier": self.outlier,
            "defects": list(self.defects),
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
            fresh=found.get("fresh", {}), is_explained=found.get("explained", True),
            otherwise=Counter(found.get("otherwise", {})), defects=tuple(found.get("defects", ())),
        )  # fmt: skip


_T = TypeVar("_T")
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
        until: float = inf,
        known: Sequence[Finding] = (),
    ) -> None:
        """Begin with the findings of an earlier run; the others are asked for the simplest cases.

        After `until`, on the monotonic clock, nothing is looked at closely; where that is infinite, nothing
        hangs on the clock.
        """
        self.runner, self.others, self.is_illegal = runner, others, is_illegal
        self._until = until
        self.findings = list(known)
        self.skipped = self.judged = self._unexplained = 0
        self.not_judged = Counter[str]()
        self._open: list[Lot] = []
        self._share = _SHARE
        self._drawer, self._workshop = drawer, workshop
        self._kept: dict[str, list[tuple[Case | Mapping[str, Feature], Symptom | None]]] = defaultdict(list)
        self._new: dict[_Key, list[tuple[Case, Judged]]] = defaultdict(list)
        self._since: dict[_Key, tuple[int, float]] = {}
        self._patience = _PATIENCE * (until - monotonic())
        self._waiting = set[_Key]()
        self._noted = 0
        self._lock = Lock()  # one thread judges while another explains

    @property
    def unexplained(self) -> int:
        """How many failures were not looked at: no time was left, or the run was interrupted."""
        return self._unexplained

    def give_up(self) -> None:
        """Count as unexplained what waits to be explained, or is being explained: the run has ended."""
        with self._lock:
            waiting = sum(map(len, self._new.values()))
            self._unexplained += waiting + sum(len(lot.failing) + len(lot.more) for lot in self._open)
            self._new.clear()
            self._open.clear()

    def asked(self, cases: Sequence[Case]) -> list[Case]:
        """Return the cases that the runner is to be asked for.

        What is known to end a process, or to be refused with a whole model, is asked for now and then only.
        """
        asked = list(cases)
        known = [
            one for one in self.findings
            if one.symptom in _COSTLY and cases and one.operator == cases[0].operator
            and one.passing <= one.failing * (_ENDANGERED if one.symptom in _FATAL else 0)
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
            with self._lock:
                self._note(case, judged, is_alike=is_alike)

    def _note(self, case: Case, judged: Judged, *, is_alike: bool) -> None:
        """Count a case; one of many of the same form is nothing to learn from."""
        self._noted += 1
        if not judged.is_run:
            self.skipped += 1
            self.not_judged[judged.message] += 1
            return
        self.judged += 1
        known = [one for one in self.findings if one.operator == case.operator]
        known.sort(key=lambda one: not one.is_explained)  # which have what no other explains
        found, shown, is_known = described(case) if known else {}, judged.symptom, False
        for one in known:
            if not one.condition.holds(found):
                continue
            if shown in {one.symptom, *one.also}:
                if not is_known:
                    one.failing += 1
                    _keep(one.samples, found, one.failing, _SAMPLES)
                is_known = True
            elif _disproves(shown, one.symptom, found):
                one.passing += 1
                _keep(one.counters, found, one.passing, _SAMPLES)
            elif shown is not None:
                one.otherwise[shown.value] += 1
        if is_alike:
            return
        if shown not in _COSTLY:
            kept = found or (described(case) if case.within.elements else case)  # which may be large
            _keep(self._kept[case.operator], (kept, shown), self._noted, _KEPT)
        if shown is not None and not is_known:
            new = self._new[case.operator, shown, _reason(case, judged)]
            _keep(new, (case, judged._replace(got=None)), self._noted, _WAITING)

    def due(self, round: int, patience: int, *, is_last: bool) -> "list[Lot]":
        """Return what is new and was seen often enough, or long ago, to be explained.

        Args:
            round: its number.
            patience: so many rounds are long.
            is_last: nothing more is to come.
        """
        with self._lock:
            self._refine()
        found = list[Lot]()
        for key in sorted(self._new, key=lambda key: (key[1] in _FATAL, key)):
            operator, symptom, reason = key
            since, begun = self._since.setdefault(key, (round, monotonic()))
            enough = _ENOUGH_COSTLY if symptom in _COSTLY or self.is_illegal else _ENOUGH
            is_old = round - since >= patience or monotonic() - begun > self._patience
            is_due = is_old or len(self._new[key]) >= enough
            if not is_last and (key in self._waiting or not is_due):
                continue  # what comes while others like it wait may be explained by them
            self._waiting.add(key)
            del self._since[key]
            lot = Lot(operator, symptom, reason, round, self._new.pop(key))
            lot.told = sum(one.reason == reason or not self.is_illegal for one in self._known(lot))
            found.append(lot)
            self._open.append(lot)
        return found

    def explain(self, lot: "Lot", waiting: int = 0) -> Iterator[Finding]:
        """Yield a finding for each condition, until they cover all failures.

        Each begins with a simplest case. What holds for that, and for most failures, is the condition: so it
        says nothing that the defect does not need. Lots that are waiting have their share of the time left.
        """
        self._waiting.discard((lot.operator, lot.symptom, lot.reason))
        self._share = _SHARE / (1 + min(waiting, _MOST_WAITING))
        lot.failing.sort(key=lambda pair: size(pair[0]))
        if self._is_open(lot):
            lot.passing += self._contrary(lot.symptom, lot.operator, lot.reason)
            yield from self._explained(lot)
        if self._is_late and self._is_open(lot):
            yield from self._hurried(lot)
        with self._lock:
            if lot in self._open:  # else it was counted when the run ended
                self._open.remove(lot)
                self._unexplained += lot.left

    @property
    def _is_late(self) -> bool:
        return monotonic() > min(self._until, self._workshop.deadline)

    def _hurried(self, lot: "Lot") -> Iterator[Finding]:
        """Yield what can be said in the last seconds: the smallest failures, when they are seen once more.

        Their conditions are those of what is known, which nobody tried to disprove.
        """
        lot.failing.sort(key=lambda pair: size(pair[0]))
        for _ in range(_CONDITIONS):
            if monotonic() > self._workshop.deadline or not self._is_open(lot):
                break
            case = lot.failing[0][0]
            judged = self._computed([case], lot.symptom, is_alone=True)[0]
            if not lot.is_shown(case, judged):
                lot.failing += [lot.failing.pop(0)]
                continue
            condition, is_pure = self._condition(lot, case)
            with self._lock:
                finding = self._made(lot, case, judged, Counter(), condition, is_pure)
            if finding is not None:
                finding.is_hurried = True
                finding.defects = self._known_defects(case, finding.symptom)
                yield finding
        if self._is_open(lot):
            lot.left = len(lot.described())

    def _explained(self, lot: "Lot") -> Iterator[Finding]:
        self._ask(lot, self._around(lot.failing[0][0], lot))
        for _ in range(_CONDITIONS):
            if self._is_late or not self._is_open(lot):
                return
            shown = self._simplest(lot)
            if shown is None:
                if not self._is_late:  # it is not seen again
                    del lot.failing[0]
                continue
            case, judged, fresh = shown
            lot.failing.append((case, judged))
            self._ask(lot, variations(case, _FEW if lot.is_costly else _VARIED))
            condition, is_pure = self._condition(lot, case)
            with self._lock:
                finding = self._made(lot, case, judged, fresh, condition, is_pure)
            if finding is not None:
                finding.defects = self._known_defects(case, finding.symptom)
                finding.others, finding.twins = self._others(case), self._twins(case)
                if finding.symptom is Symptom.NONDETERMINISTIC or not finding.is_steady:
                    finding.twins["on one thread"] = _told(self._repeated(case, 1))
                yield finding

    def _is_open(self, lot: "Lot") -> bool:
        """Leave out what findings explain that were made in the meantime; tell whether anything is left."""
        open_ = list[tuple[Case, Judged]]()
        for case, judged in lot.failing:
            known = next((one for one in self._known(lot) if one.condition.holds(described(case))), None)
            if known is None:
                open_.append((case, judged))
            else:
                known.failing += 1
        lot.failing = open_
        return bool(open_)

    def _made(
        self, lot: "Lot", case: Case, judged: Judged, fresh: Counter[str], condition: Condition, is_pure: bool
    ) -> Finding | None:
        """Return a finding, None if it is one that is there, of which less was seen before.

        A wider condition takes the place of one that it covers only if it is as pure.
        """
        meeting = list(filter(condition.holds, lot.described()))
        lot.failing = [pair for pair in lot.failing if not condition.holds(described(pair[0]))]
        lot.more = [one for one in lot.more if not condition.holds(one)]
        symptom = judged.symptom or lot.symptom
        passing = sum(map(condition.holds, lot.passing))
        signature = self._signature(lot.operator, symptom, condition)
        same = next((one for one in self.findings if one.signature == signature), None)
        if same is None:
            alike = [one for one in self._alike(lot) if one.symptom is symptom]
            covered = (_covers(condition, one.samples) if is_pure else not one.is_explained for one in alike)
            same = next(compress(alike, covered), None)
        if same is not None:
            if is_pure:
                same.condition, same.is_explained = condition, True
                same.counters = [one for one in same.counters if condition.holds(one)]
            same.failing += len(meeting)
            same.passing = max(same.passing, passing)
            same.samples += meeting
            del same.samples[:-_SAMPLES]
            same.also.add(lot.symptom)
            return None
        finding = Finding(
            signature, self.runner.name, lot.operator, symptom, condition, len(meeting), passing,
            case, judged,
            samples=meeting[:_SAMPLES],
            counters=[one for one in lot.passing if condition.holds(one)][:_SAMPLES],
            fresh=dict(sorted(fresh.items())), is_explained=is_pure, also={lot.symptom}, reason=lot.reason,
        )  # fmt: skip
        self.findings.append(finding)
        return finding

    def _refine(self) -> None:
        """Learn conditions anew that hold for too many cases that pass, or say that none tells them apart."""
        for one in self.findings:
            total, known = one.failing + one.passing, len(one.counters)
            if not one.samples or one.failing >= _STILL_PURE * total or known < max(_COUNTERS, 2 * one.tried):
                continue
            one.tried = known
            own = described(one.case) if one.case is not None else None
            key, others = (one.operator, one.symptom), (each for each in self.findings if each is not one)
            alike = [each for each in others if each.is_explained and (each.operator, each.symptom) == key]
            bad = [*([own] if own else []), *(each for each in one.samples if not _meets(alike, each))]
            broken = str(own["broken"]) if own else ""
            passing = [*one.counters, *self._contrary(one.symptom, one.operator, broken)]
            learned = learn(bad, passing, 1, own, _PURE)
            narrower = [each for each in bad if learned and learned[0].holds(each)]
            one.is_explained = 2 * len(narrower) > len(bad)  # else it is one of several reasons
            if one.is_explained:
                fixed = tuple(each for each in one.condition.predicates if each.feature == "broken")
                one.condition = Condition(tuple(dict.fromkeys(fixed + learned[0].predicates)))
                one.samples = narrower
                one.counters = [each for each in one.counters if one.condition.holds(each)]
                one.failing, one.passing, one.tried = len(one.samples), len(one.counters), 0

    def _contrary(self, symptom: Symptom, operator: str, broken: str) -> list[Mapping[str, Feature]]:
        """Return features of cases that disprove a symptom; of illegal ones, those that break a rule."""
        found = list[Mapping[str, Feature]]()
        for one, shown in self._kept[operator]:
            told = described(one) if isinstance(one, Case) else one
            if _disproves(shown, symptom, told) and not (self.is_illegal and told["broken"] != broken):
                found.append(told)
        return found

    def _condition(self, lot: "Lot", simplest: Case) -> tuple[Condition, bool]:
        """Return when most of what is open fails, held against cases that were drawn to disprove it.

        And whether nearly all cases fail for which it holds: the purest that is found does not always.
        """
        condition, own = None, described(simplest)
        fixed = (Predicate("broken", "is", lot.reason),) if self.is_illegal else ()
        alike = [one for one in self._alike(lot) if one.is_explained]
        earlier = [sample for one in alike for sample in one.samples]
        lot.passing += [counter for one in alike for counter in one.counters]
        for attempt in range(_CHALLENGES):
            bad = [own, *lot.described()]
            # what failed before belongs to it only where one condition can say both
            pure = learn([*bad, *earlier], lot.passing, 1, own, _PURE) or learn(
                bad, lot.passing, 1, own, _PURE
            )
            (learned,) = pure or learn(bad, lot.passing, 1, own)
            best = Condition(fixed + learned.predicates)
            if best == condition or self._is_late:
                break
            condition = best
            self._ask(lot, self._challenging(lot, simplest, condition, attempt))
        failing = sum(map(best.holds, lot.described()))
        passing = sum(map(best.holds, lot.passing))
        return best, failing >= _PURE * (failing + passing)

    def _around(self, case: Case, lot: "Lot") -> Iterator[Case]:
        """Yield cases that have much in common with one that fails, and fresh ones."""
        few = lot.is_costly or self.is_illegal
        yield from variations(case, _FEW if few else _VARIED)
        yield from self._fresh(case, f"around {lot.round}", _FEW if few else _FRESH)

    def _fresh(
        self, case: Case, word: str, count: int, predicates: Sequence[Predicate] = ()
    ) -> Iterator[Case]:
        """Yield fresh cases of the operator of one, of types that predicates allow.

        Illegal ones break the same rule; where the one has dynamic shapes, every other has.
        """
        for number in range(count):
            if case.broken is not None:
                found = self._drawer.broken(case.spec, f"{word} {number}", case.broken)
                if found is not None:
                    yield found
            else:
                is_dynamic = case.shapes != "static" and number % 2 > 0
                yield self._drawer.one(case.spec, f"{word} {number}", predicates, is_dynamic=is_dynamic)

    def _challenging(self, lot: "Lot", first: Case, condition: Condition, attempt: int) -> list[Case]:
        """Return fresh cases that meet a condition, and for each predicate ones that meet all but that."""
        most = _FEW // 2 if lot.is_costly or self.is_illegal else _FEW
        chosen: list[Case] = []
        for left_out in (None, *condition.predicates):
            others = [one for one in condition.predicates if one is not left_out]
            room = most
            word = f"challenge {lot.round} {attempt} {left_out}"
            for case in self._fresh(first, word, _CHALLENGING, others):
                found = described(case)
                is_apart = left_out is None or not left_out.holds(found)
                if is_apart and all(one.holds(found) for one in others):
                    chosen.append(case)
                    room -= 1
                if not room:
                    break
        return chosen

    def _ask(self, lot: "Lot", cases: Iterable[Case]) -> None:
        """Run cases, and add to what is known: failures that no signature explains, and what passes."""
        known, spending, left = self._known(lot), self._spending(_LEARNING), iter(cases)
        is_slow = lot.is_costly or self.is_illegal  # a whole batch may take long to be halved
        most = lot.at_once
        step = 1 if is_slow else most if self._until == inf else min(most, NODES // 8)
        while not spending.is_over and (part := list(islice(left, step))):
            begun = monotonic()
            computed = self._computed(part, lot.symptom)
            if not is_slow and monotonic() - begun < _BRIEF:
                step = min(2 * step, most)
            spending.note(computed)
            self._learn(lot, known, list(zip(part, computed, strict=True)))

    def _learn(self, lot: "Lot", known: Sequence[Finding], pairs: Iterable[tuple[Case, Judged]]) -> None:
        for case, judged in pairs:
            found = described(case)
            if judged.is_run and _disproves(judged.symptom, lot.symptom, found):
                lot.passing.append(found)
            elif lot.is_shown(case, judged) and not _meets(known, found):
                if case.within.elements and len(lot.failing) > _FEW:
                    lot.more.append(found)
                else:
                    lot.failing.append((case, judged._replace(got=None)))

    def _known(self, lot: "Lot") -> list[Finding]:
        """Return the findings about the same symptom of the operator."""
        of_operator = [one for one in self.findings if one.operator == lot.operator]
        return [one for one in of_operator if lot.symptom in {one.symptom, *one.also}]

    def _alike(self, lot: "Lot") -> list[Finding]:
        """Return those of them that may be about the same defect, with evidence."""
        return [one for one in self._known(lot) if one.reason == lot.reason and one.samples]

    def _spending(self, most: int) -> "_Spending":
        now = monotonic()
        if self._until == inf:
            return _Spending(most, inf)
        return _Spending(most, now + min(_SECONDS * self._share / _SHARE, self._share * (self._until - now)))

    def _computed(self, cases: Sequence[Case], symptom: Symptom, *, is_alone: bool = False) -> list[Judged]:
        if symptom is Symptom.NONDETERMINISTIC:
            return [self._repeated(case) for case in cases]
        parts = [[one] for one in cases] if is_alone else [cases]
        answers = [one for part in parts for one in self._workshop.batch(self.runner, part)]
        return [_judged(self.runner, one, answer) for one, answer in zip(cases, answers, strict=True)]

    def _repeated(self, case: Case, threads: int = 0) -> Judged:
        answers = self._workshop.stream(self.runner, [case] * _TIMES, threads)
        again = [answer.outputs[0] for answer in answers[1:] if answer.status is Status.OK]
        return _judged(self.runner, case, answers[0], again)

    def _simplest(self, lot: "Lot") -> tuple[Case, Judged, Counter[str]] | None:
        """Return the simplest case that fails like the first failure, and what fresh processes make of it.

        None if that fails no more when it is alone. Where the case does something else in each fresh process,
        that is what it does; a case that is right there was damaged by others.
        """
        known, spending = self._known(lot), self._spending(_SHRINKING)
        is_alone = is_costly = self.is_illegal or lot.is_costly

        def shows(cases: Sequence[Case], *, is_alone: bool = is_alone) -> list[bool]:
            if spending.is_over:
                return [False for _ in cases]
            computed = self._computed(cases, lot.symptom, is_alone=is_alone)
            spending.note(computed)
            pairs = list(zip(cases, computed, strict=True))
            if is_costly:
                self._learn(lot, known, pairs)
            return [lot.is_shown(*pair) and not _meets(known, described(pair[0])) for pair in pairs]

        first, judged = lot.failing[0]
        if not any(shows([first], is_alone=True)[0] for _ in range(_CONFIRMED)):
            return None
        found = shrink(first, shows, lambda: spending.is_over, 1 if is_alone else lot.at_once // 2)
        others: tuple[Case, Judged, Counter[str]] | None = None
        told = Counter[str]()
        times = 1 if lot.symptom is Symptom.REFUSED else _CONFIRMED  # what is refused once always is
        for case in dict.fromkeys((found, first)):
            fresh = [self._in_fresh(case, lot) for _ in range(times)]
            if len({one.symptom for one in fresh}) > 1:
                fresh += [self._in_fresh(case, lot) for _ in range(_CONFIRMED)]
            told = Counter(one.symptom.value if one.symptom else _RIGHT for one in fresh if one.is_run)
            same = next((one for one in fresh if lot.is_shown(case, one)), None)
            if same is not None:
                return case, same, told
            if others is None and len(told) == 1 and fresh[0].symptom is not None:
                others = case, fresh[0], told
        return others or (first, judged, told)

    def _in_fresh(self, case: Case, lot: "Lot") -> Judged:
        """Return the worst that a fresh process makes of a case."""
        is_race = lot.symptom is Symptom.NONDETERMINISTIC
        answers = self._workshop.fresh(self.runner, case, _TIMES if is_race else 2)
        again = [one.outputs[0] for one in answers[1:] if one.status is Status.OK] if is_race else ()
        found = [_judged(self.runner, case, one, again) for one in answers]
        found.sort(key=lambda one: (one.symptom not in _FATAL, one.symptom is None, not one.is_run))
        return found[0] if found else Judged(None, "not run: the time is over", is_run=False)

    def _others(self, case: Case) -> dict[str, str]:
        """Return what the other runners do with a case."""
        return {one.name: self._on(one, case) for one in self.others if takes(one, case.spec)}

    def _twins(self, case: Case) -> dict[str, str]:
        """Return what the runner itself does with cases that must give the same, or leave data as it is."""
        twins = [twin(case, name) for name in TWINS] if case.broken is None else []
        return {one.twin: self._on(self.runner, one) for one in twins if one is not None}

    def _on(self, runner: Runner, case: Case) -> str:
        return _told(_judged(runner, case, self._workshop.batch(runner, [case])[0]))

    def _known_defects(self, case: Case, symptom: Symptom) -> tuple[str, ...]:
        release = next(iter(self.runner.versions.values()), "")
        return known_defects(case, self.runner.name, release, symptom)

    def _signature(self, operator: str, symptom: Symptom, condition: Condition) -> str:
        words = [operator, self.runner.name, symptom.value, condition.slug]
        return ".".join(re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)


def _judged(runner: Runner, case: Case, answer: Streamed, again: Sequence[Array] = ()) -> Judged:
    if runner.declines is not None and answer.message.endswith(runner.declines):
        return Judged(None, answer.message, is_run=False)
    return judge(case, answer, again)


@dataclass(slots=True)
class _Spending:
    """What may be spent on cases, and until when on the monotonic clock."""

    left: int
    until: float

    @property
    def is_over(self) -> bool:
        return self.left <= 0 or monotonic() > self.until

    def note(self, computed: Iterable[Judged]) -> None:
        self.left -= sum(1 if one.symptom is None else one.symptom.cost for one in computed)


@dataclass(slots=True)
class Lot:
    """What goes wrong in one way with one operator, to be explained, and features of cases that pass."""

    operator: str
    symptom: Symptom
    reason: str
    round: int
    failing: list[tuple[Case, Judged]]
    passing: list[Mapping[str, Feature]] = field(default_factory=list)
    more: list[Mapping[str, Feature]] = field(default_factory=list)
    """Features of what fails as well and is too large to be kept."""
    left: int = 0
    """Failures that there was no time to look at."""
    told: int = 0
    """So many findings it may be more of."""

    def __lt__(self, other: "Lot") -> bool:
        """Tell which is explained first: the older one; what `_PAUSE` says is taken for younger."""
        return self._turn < other._turn

    @property
    def _turn(self) -> int:
        return self.round + _PAUSE * (2 * self.told + (self.symptom in _FATAL))

    @property
    def is_costly(self) -> bool:
        """Tell whether each failure costs a process, or a model that is not made."""
        return self.symptom in _COSTLY

    @property
    def at_once(self) -> int:
        """Return how many cases are computed at once: a whole model of what is large takes much memory."""
        return _FEW if any(case.within.elements for case, _ in self.failing) else NODES

    def described(self) -> list[Mapping[str, Feature]]:
        """Return the features of all that fails."""
        return [*(described(case) for case, _ in self.failing), *self.more]

    def is_shown(self, case: Case, judged: Judged) -> bool:
        """Tell whether a case fails in the same way."""
        return (judged.symptom, _reason(case, judged)) == (self.symptom, self.reason)


def _keep(lately: list[_T], found: _T, count: int, most: int) -> None:
    """Keep so many of those that come."""
    if len(lately) < most:
        lately.append(found)
    else:
        lately[count % most] = found


def _covers(condition: Condition, samples: Sequence[Mapping[str, Feature]]) -> bool:
    return sum(map(condition.holds, samples)) >= _SAME * len(samples)


def _disproves(shown: Symptom | None, symptom: Symptom, found: Mapping[str, Feature]) -> bool:
    """Tell whether a case that shows nothing, or something else, tells that a symptom is not there.

    What gives a result, however wrong, was not refused and did not end the process; what gives none says
    nothing of the result that it hides. And no value is wrong where there is none.
    """
    if shown is None:
        return symptom is not Symptom.WRONG_VALUE or found["elements(data)"] != 0
    return symptom in _COSTLY and shown not in _COSTLY


def _meets(findings: Iterable[Finding], found: Mapping[str, Any]) -> bool:
    return any(one.condition.holds(found) for one in findings)


def _reason(case: Case, judged: Judged) -> str:
    """Return what failures have in common: the rule that is broken, or the words of a refusal."""
    if case.broken is not None:
        return case.broken
    return _NAMES.sub("", judged.message) if judged.symptom is Symptom.REFUSED else ""


def _told(judged: Judged) -> str:
    if not judged.is_run:
        return f"{_NOT_RUN}: {judged.message.removeprefix(f'{_NOT_RUN}: ')}"
    return _RIGHT if judged.symptom is None else f"{judged.symptom}: {judged.message}"
