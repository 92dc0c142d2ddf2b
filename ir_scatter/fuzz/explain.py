"""Turns the failures of one runner into findings: learns when they happen, and shrinks a case that shows it.

A lot is a group of failures with the same operator, symptom and reason. Example:

    failures     [2, 3] of f32 sum, [5] of f32 sum, [4, 1] of f32 max, ...: all wrong values
    shrink       [1] of f32 sum still fails
    learn        "element type is f32 and reduction is sum" is true for it and for most failures
    challenge    fresh cases with both, and with only one of the two, are run; the condition is learned again
    finding      the condition and the smallest case; the remaining failures start again
"""

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
from ir_scatter.cases.judge import Judgement, compare_with_twin, judge
from ir_scatter.cases.twins import TWINS, twin
from ir_scatter.cases.workshop import NODES, Workshop, supports
from ir_scatter.core.arrays import Array
from ir_scatter.core.display import record_html, record_repr
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.conditions import FailureCondition, Predicate, learn
from ir_scatter.fuzz.features import Feature, features_of
from ir_scatter.fuzz.known_defects import known_defects
from ir_scatter.fuzz.rounds import Drawer, variations
from ir_scatter.fuzz.shrink import shrink, size
from ir_scatter.runners.base import Runner, Status, Streamed

_VARIABLE_PARTS = re.compile(r"\b(?:n\d+_)?node\w*|\bn\d+_\w+|\d+|\b[a-z]\w*\d\b|\[[^]]*\]|\{[^}]*\}|'[^']*'")
"""Parts of error messages that vary although the cause is the same: names, types, numbers, shapes and
words of the model."""
_RECENT_CASES, _SAMPLES, _RECENT_FAILURES = 400, 64, 60
"""Sizes of ring buffers: cases with a result per operator; failing and passing samples per finding; failures
of one kind that wait to be explained."""
_FRESH, _VARIED = 150, 200
"""Cases that are run to learn a condition: newly drawn ones, and variations of a failing case."""
_FEW = 16
"""Number of such cases if each failure costs a process, a model or much memory."""
_FATAL = frozenset(symptom for symptom in Symptom if symptom.is_fatal)
"""Symptoms that end the process."""
_COSTLY = frozenset(symptom for symptom in Symptom if symptom.cost > 1)
"""Symptoms after which the other cases of the same model must run again."""
_LEARNING_BUDGET, _SHRINKING_BUDGET = 600, 2400
"""Budgets of one learning and one shrinking step, in the units of `Symptom.cost` rather than seconds, so that
results do not depend on speed."""
_SECONDS, _SHARE, _MOST_WAITING = 25.0, 0.2, 3
"""Limits of each step if the campaign has a time limit: seconds, and share of the remaining time. Both are
divided by 1 + the number of waiting lots, of which at most `_MOST_WAITING` count."""
_SAMPLE_EVERY, _NOTED_PER_FORM = 16, 8
"""Of the cases that a known crash or refusal explains, one in `_SAMPLE_EVERY` runs. Of the cases of one model
with the same symptom, `_NOTED_PER_FORM` are kept to learn from."""
_REPETITIONS, _CONFIRMATIONS = 16, 2
"""Runs of a case to detect changing results; attempts to reproduce a failure. The latter is also the number
of fresh processes in which the smallest case runs (twice as many if they disagree)."""
_CONDITIONS, _CHALLENGE_ROUNDS, _CHALLENGE_CANDIDATES = 6, 4, 400
"""Maximum conditions per lot; maximum attempts to disprove a condition; newly drawn cases per predicate that
are searched for one that may disprove it."""
_PENALTY = 20
"""Rounds by which the explanation of a lot of crashes is postponed, as crashes cost most to explain. Each
finding that the lot may duplicate adds twice as many."""
_DUE_FAILURES, _DUE_COSTLY_FAILURES = 20, 6
"""New failures of one kind after which they are explained; fewer if each costs a process or a model."""
_FAST_BATCH = 0.5
"""Batches faster than this, in seconds, double in size."""
_PATIENCE = 0.08
"""Share of the time limit after which new failures are explained, however few they are."""
_SAME_DEFECT = 0.8
"""A condition that is true for at least this share of a finding's samples describes the same defect."""
_PURE, _STILL_PURE, _FEWEST_COUNTERS = 0.95, 0.9, 4
"""Required purity (share of failing cases among the cases that satisfy a condition): for a learned condition,
and later. Below the latter it is learned again, as soon as `_FEWEST_COUNTERS` passing cases satisfy it; after
that, each time their number has doubled."""
_PASSING_PER_CRASH = 10
"""If passing / failing cases exceed this for the condition of a known crash or hang, the condition is too
wide: then all its cases run, instead of a sample."""

_RIGHT, _NOT_RUN = "right", "not run"


@dataclass(eq=False, slots=True)
class FuzzFinding:
    """A fault of one runner with one operator.

    Attributes:
        signature: operator, runner, symptom and condition, as the name of a folder.
        symptom: what the failing cases show.
        condition: when it happens.
        failing, passing: counts of the cases that satisfy the condition and show the symptom, or disprove it.
        otherwise: counts of the cases that satisfy the condition and show another symptom, which hides the
            finding's own.
        is_explained: whether the condition separates failing cases from passing ones.
        case: the smallest failing case; None if the finding was read from an earlier run.
        judgement: what the runner does with the smallest case.
        others: what other runners do with it, by runner.
        twins: what the same runner does with changed cases of known output (`cases.twins`), by name of the
            change.
        path: the folder that the finding was written to; "" if there is none.
        is_known: whether an earlier run found it; `saved` is its JSON record.
        samples: features of some failing cases, from which the condition was learned.
        counters: features of some passing cases for which the condition holds.
        fresh: outcomes of the smallest case in fresh processes, with their counts.
        also: other symptoms of the same cases, as a damaged process does not always crash.
        reason: the reason of the failures (`_reason_of`); refusals for other reasons are no evidence for the
            condition.
        tried: the number of counterexamples when the condition was last learned.
        defects: codes of the known defects that explain it; empty if the defect is new.
        is_hurried: whether the time limit prevented shrinking and challenging.
    """

    __repr__, _repr_html_ = record_repr, record_html

    signature: str
    runner: str
    operator: str
    symptom: Symptom
    condition: FailureCondition
    failing: int
    passing: int
    case: Case | None
    judgement: Judgement
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
        """The condition as a sentence, with counts of cases and, if necessary, doubts."""
        total = self.failing + self.passing
        sentence = f"{self.condition}: {self.failing} of {total} {self.symptom.verb}"
        for word, count in sorted(self.otherwise.items()):
            sentence += f"; {count} more {Symptom(word).verb}"
        if not self.is_explained:
            sentence += "; no short condition separates them from passing cases"
        if self.is_hurried:
            sentence += "; not examined closely, as the time limit was reached"
        return sentence if self.is_alone else f"{sentence}; only in a process that has run other cases before"

    @property
    def is_steady(self) -> bool:
        """Whether the smallest case fails in the same way in each fresh process."""
        return set(self.fresh) <= {self.symptom.value}

    @property
    def is_alone(self) -> bool:
        """Whether the smallest case fails in a process that has run no other case."""
        return set(self.fresh) != {_RIGHT}

    @property
    def outlier(self) -> str:
        """The name of the runner if at least two other runners ran the case and all of them are right.

        Otherwise "".
        """
        run = [summary for summary in self.others.values() if not summary.startswith(_NOT_RUN)]
        return self.runner if len(run) > 1 and set(run) == {_RIGHT} else ""

    def as_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object of the report."""
        saved = dict(self.saved or {})
        if self.case is not None:
            arrays = {role.value: array for role, array in self.case.arrays().items() if array is not None}
            saved["minimal"] = {
                "shapes": {name: list(array.shape) for name, array in arrays.items()},
                "element_types": {"data": self.case.element_type.name, "indices": self.case.index_type.name},
                "attributes": dict(self.case.attributes)
                | ({} if self.case.axis is None else {"axis": self.case.axis}),
                "constants": sorted(role.value for role in self.case.constants),
                "iterations": self.case.iterations,
                "elements": int(self.case.data.size),
            }
            saved["message"] = self.judgement.message
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
            "minimal": saved.get("minimal", {}),
            "path": self.path,
            "message": saved.get("message", ""),
            "others": dict(self.others),
            "twins": dict(self.twins),
            "outlier": self.outlier,
            "defects": list(self.defects),
            "predicates": self.condition.as_json(),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "FuzzFinding":
        """Read a finding that `as_json` wrote; it has no case."""
        return cls(
            saved["signature"], saved["runner"], saved["operator"], Symptom(saved["symptom"]),
            FailureCondition.from_json(saved["predicates"]), saved["failing"], saved["passing"], None,
            Judgement(Symptom(saved["symptom"]), saved["message"]), saved["others"],
            saved.get("twins", {}), saved["path"], is_known=True, saved=saved,
            fresh=saved.get("fresh", {}), is_explained=saved.get("explained", True),
            otherwise=Counter(saved.get("otherwise", {})), defects=tuple(saved.get("defects", ())),
        )  # fmt: skip


_T = TypeVar("_T")
_Key = tuple[str, Symptom, str]
"""Kind of a failure: operator, symptom and reason (see `_reason_of`)."""


class Explainer:
    """Assigns the failures of one runner to findings, and makes new findings from the others."""

    def __init__(
        self,
        runner: Runner,
        others: Sequence[Runner],
        drawer: Drawer,
        workshop: Workshop,
        *,
        is_illegal: bool,
        until: float = inf,
        earlier: Sequence[FuzzFinding] = (),
    ) -> None:
        """Set up an explainer.

        Args:
            runner: the runner whose failures are explained.
            others: runners that are run on the smallest cases for comparison.
            drawer: draws fresh cases.
            workshop: runs cases.
            is_illegal: whether the cases break rules.
            until: time on the monotonic clock after which failures are not examined closely. If it is
                infinite, results do not depend on the clock.
            earlier: findings of an earlier run.
        """
        self.runner, self.others, self.is_illegal = runner, others, is_illegal
        self._until = until
        self.findings = list(earlier)
        self.skipped = self.judged = self._unexplained = 0
        self.not_judged = Counter[str]()
        self._open: list[Lot] = []
        self._share = _SHARE
        self._drawer, self._workshop = drawer, workshop
        self._recent: dict[str, list[tuple[Case | Mapping[str, Feature], Symptom | None]]] = defaultdict(list)
        self._failures: dict[_Key, list[tuple[Case, Judgement]]] = defaultdict(list)
        self._since: dict[_Key, tuple[int, float]] = {}
        self._patience = _PATIENCE * (until - monotonic())
        self._waiting = set[_Key]()
        self._noted = 0
        self._lock = Lock()  # one thread judges rounds while another one explains groups of failures

    @property
    def unexplained(self) -> int:
        """Number of failures that were not examined, for lack of time or after an interrupt."""
        return self._unexplained

    @property
    def waiting(self) -> int:
        """The number of failures that are not explained yet."""
        lots = sum(len(lot.failing) + len(lot.large_failing) for lot in [*self._open])
        return lots + sum(map(len, [*self._failures.values()]))

    def give_up(self) -> None:
        """End the run: count all remaining failures as unexplained."""
        with self._lock:
            self._unexplained += self.waiting
            self._failures.clear()
            self._open.clear()

    def select(self, cases: Sequence[Case]) -> list[Case]:
        """Return the cases to run.

        Of the cases that a known crash, hang or refusal would explain, only a sample runs.
        """
        selected = list(cases)
        costly = [
            finding for finding in self.findings
            if finding.symptom in _COSTLY and cases and finding.operator == cases[0].operator
            and finding.passing <= finding.failing * (_PASSING_PER_CRASH if finding.symptom in _FATAL else 0)
        ]  # fmt: skip
        if costly:
            offset = self._noted % _SAMPLE_EVERY
            selected = [
                case for number, case in enumerate(cases)
                if number % _SAMPLE_EVERY == offset or not _is_explained_by(costly, features_of(case))
            ]  # fmt: skip
            self.skipped += len(cases) - len(selected)
        return selected

    def judge(self, kind: str, cases: Sequence[Case], answers: Sequence[Streamed]) -> None:
        """Judge the answers of a round.

        Repeated cases must have equal outputs, twins (changed cases) consistent ones.
        """
        first: dict[tuple[int, ...], tuple[Case, Streamed]] = {}
        counts = Counter[object]()
        for case, answer in zip(cases, answers, strict=True):
            original, earlier = first.setdefault(case.decisions, (case, answer))
            is_repeated = earlier is not answer and earlier.status is Status.OK
            repeats = earlier.outputs[:1] if is_repeated and case.twin == original.twin else ()
            judgement = _judge(self.runner, case, answer, repeats)
            if case.twin and case.twin != original.twin:
                judgement = compare_with_twin(case, judgement, earlier.outputs[0] if is_repeated else None)
            counts[judgement.symptom] += 1
            is_alike = kind == "forms" and counts[judgement.symptom] > _NOTED_PER_FORM
            with self._lock:
                self._note(case, judgement, is_alike=is_alike)

    def _note(self, case: Case, judgement: Judgement, *, is_alike: bool) -> None:
        """Count a judged case in the findings that concern it, and keep it as a sample to learn from.

        With `is_alike`, at most a few cases of the same model and symptom are kept.
        """
        self._noted += 1
        if not judgement.is_run:
            self.skipped += 1
            self.not_judged[judgement.message] += 1
            return
        self.judged += 1
        findings = [finding for finding in self.findings if finding.operator == case.operator]
        findings.sort(
            key=lambda finding: not finding.is_explained
        )  # unexplained findings last: they count only cases that no other finding explains
        features, symptom, is_known = features_of(case) if findings else {}, judgement.symptom, False
        for finding in findings:
            if not finding.condition.holds(features):
                continue
            if symptom in {finding.symptom, *finding.also}:
                if not is_known:
                    finding.failing += 1
                    _keep_recent(finding.samples, features, finding.failing, _SAMPLES)
                is_known = True
            elif _disproves(symptom, finding.symptom, features):
                finding.passing += 1
                _keep_recent(finding.counters, features, finding.passing, _SAMPLES)
            elif symptom is not None:
                finding.otherwise[symptom.value] += 1
        if is_alike:
            return
        if symptom not in _COSTLY:
            stored = features or (
                features_of(case) if case.within.elements else case
            )  # a large case is not kept, only its features
            _keep_recent(self._recent[case.operator], (stored, symptom), self._noted, _RECENT_CASES)
        if symptom is not None and not is_known:
            failures = self._failures[case.operator, symptom, _reason_of(case, judgement)]
            _keep_recent(failures, (case, judgement._replace(got=None)), self._noted, _RECENT_FAILURES)

    def due(self, round: int, patience: int, *, is_last: bool) -> "list[Lot]":
        """Return lots of unexplained failures that are large or old enough to be explained now.

        Args:
            round: the number of the current round.
            patience: rounds after which failures are old.
            is_last: whether no more rounds follow.
        """
        with self._lock:
            self._refine()
        lots = list[Lot]()
        for key in sorted(self._failures, key=lambda key: (key[1] in _FATAL, key)):
            operator, symptom, reason = key
            since, begun = self._since.setdefault(key, (round, monotonic()))
            enough = _DUE_COSTLY_FAILURES if symptom in _COSTLY or self.is_illegal else _DUE_FAILURES
            is_old = round - since >= patience or monotonic() - begun > self._patience
            is_due = is_old or len(self._failures[key]) >= enough
            if not is_last and (key in self._waiting or not is_due):
                continue  # a group of the same kind that already waits may explain these failures, too
            self._waiting.add(key)
            del self._since[key]
            lot = Lot(operator, symptom, reason, round, self._failures.pop(key))
            lot.duplicates = sum(
                finding.reason == reason or not self.is_illegal for finding in self._findings_about(lot)
            )
            lots.append(lot)
            self._open.append(lot)
        return lots

    def explain(self, lot: "Lot", waiting: int = 0) -> Iterator[FuzzFinding]:
        """Yield findings, each with its own condition, until their conditions cover all failures of a lot.

        Each finding starts from a smallest case. Its condition is true for that case and for most failures,
        so that it contains only what the fault needs. `waiting` lots share the remaining time.
        """
        self._waiting.discard((lot.operator, lot.symptom, lot.reason))
        self._share = _SHARE / (1 + min(waiting, _MOST_WAITING))
        lot.failing.sort(key=lambda pair: size(pair[0]))
        if self._drop_explained(lot):
            lot.passing += self._counterexamples(lot.symptom, lot.operator, lot.reason)
            yield from self._explain_closely(lot)
        if self._is_late and self._drop_explained(lot):
            yield from self._explain_hastily(lot)
        with self._lock:
            if lot in self._open:  # otherwise its failures were counted when the run ended
                self._open.remove(lot)
                self._unexplained += lot.unexplained

    @property
    def _is_late(self) -> bool:
        return monotonic() > min(self._until, self._workshop.deadline)

    def _explain_hastily(self, lot: "Lot") -> Iterator[FuzzFinding]:
        """Yield findings without shrinking, in the last seconds of a run: the smallest reproducible failures.

        Their conditions are learned from existing cases, and not challenged.
        """
        lot.failing.sort(key=lambda pair: size(pair[0]))
        for _ in range(_CONDITIONS):
            if monotonic() > self._workshop.deadline or not self._drop_explained(lot):
                break
            case = lot.failing[0][0]
            judgement = self._judgements([case], lot.symptom, is_alone=True)[0]
            if not lot.is_same_failure(case, judgement):
                lot.failing += [lot.failing.pop(0)]
                continue
            condition, is_pure = self._learn_condition(lot, case)
            with self._lock:
                finding = self._add_or_merge(lot, case, judgement, Counter(), condition, is_pure)
            if finding is not None:
                finding.is_hurried = True
                finding.defects = self._known_defects(case, finding.symptom)
                yield finding
        if self._drop_explained(lot):
            lot.unexplained = len(lot.features())

    def _explain_closely(self, lot: "Lot") -> Iterator[FuzzFinding]:
        self._run(lot, self._neighbours(lot.failing[0][0], lot))
        for _ in range(_CONDITIONS):
            if self._is_late or not self._drop_explained(lot):
                return
            simplest = self._shrink_first(lot)
            if simplest is None:
                if not self._is_late:  # the failure cannot be reproduced
                    del lot.failing[0]
                continue
            case, judgement, fresh = simplest
            lot.failing.append((case, judgement))
            self._run(lot, variations(case, _FEW if lot.is_costly else _VARIED))
            condition, is_pure = self._learn_condition(lot, case)
            with self._lock:
                finding = self._add_or_merge(lot, case, judgement, fresh, condition, is_pure)
            if finding is not None:
                finding.defects = self._known_defects(case, finding.symptom)
                finding.others, finding.twins = self._outcomes_elsewhere(case), self._outcomes_of_twins(case)
                if finding.symptom is Symptom.NONDETERMINISTIC or not finding.is_steady:
                    finding.twins["on one thread"] = _summarize(self._judge_repeated(case, 1))
                yield finding

    def _drop_explained(self, lot: "Lot") -> bool:
        """Remove the failures of a lot that newer findings explain; return whether any remain."""
        unexplained = list[tuple[Case, Judgement]]()
        for case, judgement in lot.failing:
            findings, features = self._findings_about(lot), features_of(case)
            explanation = next((item for item in findings if item.condition.holds(features)), None)
            if explanation is None:
                unexplained.append((case, judgement))
            else:
                explanation.failing += 1
        lot.failing = unexplained
        return bool(unexplained)

    def _add_or_merge(
        self,
        lot: "Lot",
        case: Case,
        judgement: Judgement,
        fresh: Counter[str],
        condition: FailureCondition,
        is_pure: bool,
    ) -> FuzzFinding | None:
        """Return a new finding, or None after merging the failures into an existing one.

        A pure condition replaces that of an existing finding whose samples it covers. Failures with an impure
        condition are merged into an unexplained finding.
        """
        covered_failures = list(filter(condition.holds, lot.features()))
        lot.failing = [pair for pair in lot.failing if not condition.holds(features_of(pair[0]))]
        lot.large_failing = [features for features in lot.large_failing if not condition.holds(features)]
        symptom = judgement.symptom or lot.symptom
        passing = sum(map(condition.holds, lot.passing))
        signature = self._signature(lot.operator, symptom, condition)
        existing = next((finding for finding in self.findings if finding.signature == signature), None)
        if existing is None:
            similar = [finding for finding in self._similar_findings(lot) if finding.symptom is symptom]
            is_covered = (
                _covers(condition, finding.samples) if is_pure else not finding.is_explained
                for finding in similar
            )
            existing = next(compress(similar, is_covered), None)
        if existing is not None:
            if is_pure:
                existing.condition, existing.is_explained = condition, True
                existing.counters = [features for features in existing.counters if condition.holds(features)]
            existing.failing += len(covered_failures)
            existing.passing = max(existing.passing, passing)
            existing.samples += covered_failures
            del existing.samples[:-_SAMPLES]
            existing.also.add(lot.symptom)
            return None
        finding = FuzzFinding(
            signature, self.runner.name, lot.operator, symptom, condition, len(covered_failures), passing,
            case, judgement,
            samples=covered_failures[:_SAMPLES],
            counters=[features for features in lot.passing if condition.holds(features)][:_SAMPLES],
            fresh=dict(sorted(fresh.items())), is_explained=is_pure, also={lot.symptom}, reason=lot.reason,
        )  # fmt: skip
        self.findings.append(finding)
        return finding

    def _refine(self) -> None:
        """Learn conditions with too many counterexamples again, or mark their findings as unexplained."""
        for finding in self.findings:
            total, count = finding.failing + finding.passing, len(finding.counters)
            is_pure = not finding.samples or finding.failing >= _STILL_PURE * total
            if is_pure or count < max(_FEWEST_COUNTERS, 2 * finding.tried):
                continue
            finding.tried = count
            case_features = features_of(finding.case) if finding.case is not None else None
            key = finding.operator, finding.symptom
            others = [other for other in self.findings if other is not finding]
            similar = [
                other for other in others if other.is_explained and (other.operator, other.symptom) == key
            ]
            failing = [
                *([case_features] if case_features else []),
                *(features for features in finding.samples if not _is_explained_by(similar, features)),
            ]
            broken = str(case_features["broken"]) if case_features else ""
            passing = [*finding.counters, *self._counterexamples(finding.symptom, finding.operator, broken)]
            learned = learn(failing, passing, 1, case_features, _PURE)
            narrower = [features for features in failing if learned and learned[0].holds(features)]
            # otherwise the samples have several causes
            finding.is_explained = 2 * len(narrower) > len(failing)
            if finding.is_explained:
                predicates = finding.condition.predicates
                fixed = tuple(predicate for predicate in predicates if predicate.feature == "broken")
                finding.condition = FailureCondition(tuple(dict.fromkeys(fixed + learned[0].predicates)))
                finding.samples = narrower
                finding.counters = [
                    features for features in finding.counters if finding.condition.holds(features)
                ]
                finding.failing, finding.passing = len(finding.samples), len(finding.counters)
                finding.tried = 0

    def _counterexamples(self, symptom: Symptom, operator: str, broken: str) -> list[Mapping[str, Feature]]:
        """Return the features of recent cases of an operator that are evidence against a symptom.

        `broken` is the broken rule, if any.
        """
        counterexamples = list[Mapping[str, Feature]]()
        for case, case_symptom in self._recent[operator]:
            features = features_of(case) if isinstance(case, Case) else case
            is_same_rule = not self.is_illegal or features["broken"] == broken
            if is_same_rule and _disproves(case_symptom, symptom, features):
                counterexamples.append(features)
        return counterexamples

    def _learn_condition(self, lot: "Lot", simplest: Case) -> tuple[FailureCondition, bool]:
        """Learn the condition for most failures of a lot, and test it with cases drawn to disprove it.

        Return the condition, and whether it is pure: nearly all cases that satisfy it fail.
        """
        condition, case_features = None, features_of(simplest)
        fixed = (Predicate("broken", "is", lot.reason),) if self.is_illegal else ()
        similar = [finding for finding in self._similar_findings(lot) if finding.is_explained]
        earlier = [sample for finding in similar for sample in finding.samples]
        lot.passing += [counter for finding in similar for counter in finding.counters]
        for attempt in range(_CHALLENGE_ROUNDS):
            failing_features = [case_features, *lot.features()]
            # earlier samples count only if one pure condition covers them as well
            pure = learn([*failing_features, *earlier], lot.passing, 1, case_features, _PURE) or learn(
                failing_features, lot.passing, 1, case_features, _PURE
            )
            (learned,) = pure or learn(failing_features, lot.passing, 1, case_features)
            best = FailureCondition(fixed + learned.predicates)
            if best == condition or self._is_late:
                break
            condition = best
            self._run(lot, self._challengers(lot, simplest, condition, attempt))
        failing = sum(map(best.holds, lot.features()))
        passing = sum(map(best.holds, lot.passing))
        return best, failing >= _PURE * (failing + passing)

    def _neighbours(self, case: Case, lot: "Lot") -> Iterator[Case]:
        """Yield variations of a failing case, then newly drawn cases of its operator."""
        is_few = lot.is_costly or self.is_illegal
        yield from variations(case, _FEW if is_few else _VARIED)
        yield from self._fresh_cases(case, f"around {lot.round}", _FEW if is_few else _FRESH)

    def _fresh_cases(
        self, case: Case, seed_word: str, count: int, predicates: Sequence[Predicate] = ()
    ) -> Iterator[Case]:
        """Yield newly drawn cases of a case's operator, with types that the predicates allow.

        Fresh cases break the same rule as an illegal case. If the case has dynamic shapes, every second fresh
        case has them too.
        """
        for number in range(count):
            if case.broken is not None:
                broken_case = self._drawer.illegal_case(case.spec, f"{seed_word} {number}", case.broken)
                if broken_case is not None:
                    yield broken_case
            else:
                is_dynamic = case.shapes != "static" and number % 2 > 0
                yield self._drawer.case(case.spec, f"{seed_word} {number}", predicates, is_dynamic=is_dynamic)

    def _challengers(self, lot: "Lot", first: Case, condition: FailureCondition, attempt: int) -> list[Case]:
        """Return new cases to test a condition.

        Some satisfy it; for each predicate, some satisfy all predicates but that one.
        """
        most = _FEW // 2 if lot.is_costly or self.is_illegal else _FEW
        chosen: list[Case] = []
        for left_out in (None, *condition.predicates):
            other_predicates = [predicate for predicate in condition.predicates if predicate is not left_out]
            room = most
            seed_word = f"challenge {lot.round} {attempt} {left_out}"
            for case in self._fresh_cases(first, seed_word, _CHALLENGE_CANDIDATES, other_predicates):
                features = features_of(case)
                is_apart = left_out is None or not left_out.holds(features)
                if is_apart and all(predicate.holds(features) for predicate in other_predicates):
                    chosen.append(case)
                    room -= 1
                if not room:
                    break
        return chosen

    def _run(self, lot: "Lot", cases: Iterable[Case]) -> None:
        """Run cases, and add to a lot the passing ones and the failures that no finding explains."""
        findings, budget, remaining = self._findings_about(lot), self._budget(_LEARNING_BUDGET), iter(cases)
        is_slow = lot.is_costly or self.is_illegal  # bisecting a large batch may take long
        most = lot.at_once
        step = 1 if is_slow else most if self._until == inf else min(most, NODES // 8)
        while not budget.is_over and (batch := list(islice(remaining, step))):
            started = monotonic()
            judgements = self._judgements(batch, lot.symptom)
            if not is_slow and monotonic() - started < _FAST_BATCH:
                step = min(2 * step, most)
            budget.spend(judgements)
            self._sort(lot, findings, list(zip(batch, judgements, strict=True)))

    def _sort(
        self, lot: "Lot", findings: Sequence[FuzzFinding], pairs: Iterable[tuple[Case, Judgement]]
    ) -> None:
        for case, judgement in pairs:
            features = features_of(case)
            if judgement.is_run and _disproves(judgement.symptom, lot.symptom, features):
                lot.passing.append(features)
            elif lot.is_same_failure(case, judgement) and not _is_explained_by(findings, features):
                if case.within.elements and len(lot.failing) > _FEW:
                    lot.large_failing.append(features)
                else:
                    lot.failing.append((case, judgement._replace(got=None)))

    def _findings_about(self, lot: "Lot") -> list[FuzzFinding]:
        """Return the findings with the operator and symptom of a lot."""
        of_operator = [finding for finding in self.findings if finding.operator == lot.operator]
        return [finding for finding in of_operator if lot.symptom in {finding.symptom, *finding.also}]

    def _similar_findings(self, lot: "Lot") -> list[FuzzFinding]:
        """Return the findings that have samples, and the operator, symptom and reason of a lot."""
        return [
            finding
            for finding in self._findings_about(lot)
            if finding.reason == lot.reason and finding.samples
        ]

    def _budget(self, most: int) -> "_Budget":
        now = monotonic()
        if self._until == inf:
            return _Budget(most, inf)
        return _Budget(most, now + min(_SECONDS * self._share / _SHARE, self._share * (self._until - now)))

    def _judgements(
        self, cases: Sequence[Case], symptom: Symptom, *, is_alone: bool = False
    ) -> list[Judgement]:
        if symptom is Symptom.NONDETERMINISTIC:
            return [self._judge_repeated(case) for case in cases]
        parts = [[case] for case in cases] if is_alone else [cases]
        answers = [answer for part in parts for answer in self._workshop.batch(self.runner, part)]
        return [_judge(self.runner, case, answer) for case, answer in zip(cases, answers, strict=True)]

    def _judge_repeated(self, case: Case, threads: int = 0) -> Judgement:
        answers = self._workshop.stream(self.runner, [case] * _REPETITIONS, threads)
        repeats = [answer.outputs[0] for answer in answers[1:] if answer.status is Status.OK]
        return _judge(self.runner, case, answers[0], repeats)

    def _shrink_first(self, lot: "Lot") -> tuple[Case, Judgement, Counter[str]] | None:
        """Shrink the first failure of a lot.

        Return the smallest case, its judgement, and its outcomes in fresh processes. None if the failure
        cannot be reproduced. If all fresh processes agree on another symptom, the judgement is theirs; if all
        are right, only a process damaged by other cases fails.
        """
        findings, budget = self._findings_about(lot), self._budget(_SHRINKING_BUDGET)
        is_alone = is_costly = self.is_illegal or lot.is_costly

        def shows(cases: Sequence[Case], *, is_alone: bool = is_alone) -> list[bool]:
            if budget.is_over:
                return [False for _ in cases]
            judgements = self._judgements(cases, lot.symptom, is_alone=is_alone)
            budget.spend(judgements)
            pairs = list(zip(cases, judgements, strict=True))
            if is_costly:
                self._sort(lot, findings, pairs)
            return [
                lot.is_same_failure(*pair) and not _is_explained_by(findings, features_of(pair[0]))
                for pair in pairs
            ]

        first, first_judgement = lot.failing[0]
        if not any(shows([first], is_alone=True)[0] for _ in range(_CONFIRMATIONS)):
            return None
        shrunk = shrink(first, shows, lambda: budget.is_over, 1 if is_alone else lot.at_once // 2)
        other_failure: tuple[Case, Judgement, Counter[str]] | None = None
        outcomes = Counter[str]()
        times = 1 if lot.symptom is Symptom.REFUSED else _CONFIRMATIONS  # refusals do not vary
        for case in dict.fromkeys((shrunk, first)):
            fresh = [self._judge_in_fresh_process(case, lot) for _ in range(times)]
            if len({judgement.symptom for judgement in fresh}) > 1:
                fresh += [self._judge_in_fresh_process(case, lot) for _ in range(_CONFIRMATIONS)]
            outcomes = Counter(
                judgement.symptom.value if judgement.symptom else _RIGHT
                for judgement in fresh
                if judgement.is_run
            )
            same_failure = next(
                (judgement for judgement in fresh if lot.is_same_failure(case, judgement)), None
            )
            if same_failure is not None:
                return case, same_failure, outcomes
            if other_failure is None and len(outcomes) == 1 and fresh[0].symptom is not None:
                other_failure = case, fresh[0], outcomes
        return other_failure or (first, first_judgement, outcomes)

    def _judge_in_fresh_process(self, case: Case, lot: "Lot") -> Judgement:
        """Run a case in a fresh process; return the worst judgement."""
        is_race = lot.symptom is Symptom.NONDETERMINISTIC
        answers = self._workshop.fresh(self.runner, case, _REPETITIONS if is_race else 2)
        repeats = (
            [answer.outputs[0] for answer in answers[1:] if answer.status is Status.OK] if is_race else ()
        )
        judgements = [_judge(self.runner, case, answer, repeats) for answer in answers]
        judgements.sort(key=lambda item: (item.symptom not in _FATAL, item.symptom is None, not item.is_run))
        return (
            judgements[0]
            if judgements
            else Judgement(None, "not run: the time limit was reached", is_run=False)
        )

    def _outcomes_elsewhere(self, case: Case) -> dict[str, str]:
        """Return the outcome of a case on every other runner, by runner name."""
        return {
            runner.name: self._outcome(runner, case) for runner in self.others if supports(runner, case.spec)
        }

    def _outcomes_of_twins(self, case: Case) -> dict[str, str]:
        """Run changed copies (twins) of a legal case on the same runner; return outcomes by change.

        The output of a twin follows from that of the original, see `cases.twins`.
        """
        twins = [twin(case, name) for name in TWINS] if case.broken is None else []
        return {
            twin_case.twin: self._outcome(self.runner, twin_case)
            for twin_case in twins
            if twin_case is not None
        }

    def _outcome(self, runner: Runner, case: Case) -> str:
        return _summarize(_judge(runner, case, self._workshop.batch(runner, [case])[0]))

    def _known_defects(self, case: Case, symptom: Symptom) -> tuple[str, ...]:
        release = next(iter(self.runner.versions.values()), "")
        return known_defects(case, self.runner.name, release, symptom)

    def _signature(self, operator: str, symptom: Symptom, condition: FailureCondition) -> str:
        words = [operator, self.runner.name, symptom.value, condition.slug]
        return ".".join(re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)


def _judge(runner: Runner, case: Case, answer: Streamed, repeats: Sequence[Array] = ()) -> Judgement:
    if runner.declines is not None and answer.message.endswith(runner.declines):
        return Judgement(None, answer.message, is_run=False)
    return judge(case, answer, repeats)


@dataclass(slots=True)
class _Budget:
    """The remaining cost units for running cases, and the time limit on the monotonic clock."""

    remaining: int
    until: float

    @property
    def is_over(self) -> bool:
        return self.remaining <= 0 or monotonic() > self.until

    def spend(self, judgements: Iterable[Judgement]) -> None:
        costs = (1 if judgement.symptom is None else judgement.symptom.cost for judgement in judgements)
        self.remaining -= sum(costs)


@dataclass(slots=True)
class Lot:
    """Failures with the same operator, symptom and reason, which are explained together.

    Attributes:
        operator, symptom, reason: common to all failures; see `_reason_of`.
        round: the number of the round in which the lot became due.
        failing: the failures.
        passing: features of cases that are evidence against the symptom.
    """

    operator: str
    symptom: Symptom
    reason: str
    round: int
    failing: list[tuple[Case, Judgement]]
    passing: list[Mapping[str, Feature]] = field(default_factory=list)
    large_failing: list[Mapping[str, Feature]] = field(default_factory=list)
    """Features of further failures whose cases are too large to be kept in memory."""
    unexplained: int = 0
    """Number of failures that were not examined for lack of time."""
    duplicates: int = 0
    """Number of existing findings to which these failures may belong."""

    def __lt__(self, other: "Lot") -> bool:
        """Order lots by age, the oldest first.

        Crashes, and possible duplicates of findings, count as younger.
        """
        return self._turn < other._turn

    @property
    def _turn(self) -> int:
        return self.round + _PENALTY * (2 * self.duplicates + (self.symptom in _FATAL))

    @property
    def is_costly(self) -> bool:
        """Whether each failure ends a process, or lets a model fail (`_COSTLY`)."""
        return self.symptom in _COSTLY

    @property
    def at_once(self) -> int:
        """Number of cases to run in one batch: few if they are large, to save memory."""
        return _FEW if any(case.within.elements for case, _ in self.failing) else NODES

    def features(self) -> list[Mapping[str, Feature]]:
        """Return the features of all failures."""
        return [*(features_of(case) for case, _ in self.failing), *self.large_failing]

    def is_same_failure(self, case: Case, judgement: Judgement) -> bool:
        """Return whether a judgement has the symptom and reason of the lot."""
        return (judgement.symptom, _reason_of(case, judgement)) == (self.symptom, self.reason)


def _keep_recent(recent: list[_T], item: _T, count: int, most: int) -> None:
    """Append to a ring buffer of at most `most` items; `count` is the number of all items so far."""
    if len(recent) < most:
        recent.append(item)
    else:
        recent[count % most] = item


def _covers(condition: FailureCondition, samples: Sequence[Mapping[str, Feature]]) -> bool:
    return sum(map(condition.holds, samples)) >= _SAME_DEFECT * len(samples)


def _disproves(case_symptom: Symptom | None, symptom: Symptom, features: Mapping[str, Feature]) -> bool:
    """Return whether a case with the first symptom (None: it passed) is evidence against the second symptom.

    A case with a result, right or wrong, was not refused and did not end the process. A case without a result
    is no evidence about results; nor is a case without elements about wrong values.
    """
    if case_symptom is None:
        return symptom is not Symptom.WRONG_VALUE or features["elements(data)"] != 0
    return symptom in _COSTLY and case_symptom not in _COSTLY


def _is_explained_by(findings: Iterable[FuzzFinding], features: Mapping[str, Any]) -> bool:
    return any(finding.condition.holds(features) for finding in findings)


def _reason_of(case: Case, judgement: Judgement) -> str:
    """Return the reason of a failure: the broken rule, or the message of a refusal without variable parts.

    "" for any other failure.
    """
    if case.broken is not None:
        return case.broken
    return _VARIABLE_PARTS.sub("", judgement.message) if judgement.symptom is Symptom.REFUSED else ""


def _summarize(judgement: Judgement) -> str:
    if not judgement.is_run:
        return f"{_NOT_RUN}: {judgement.message.removeprefix(f'{_NOT_RUN}: ')}"
    return _RIGHT if judgement.symptom is None else f"{judgement.symptom}: {judgement.message}"
