"""Learns when cases fail: the shortest conjunctions of predicates that together cover the failures.

The inputs are features of failing and of passing cases. A beam search, as in rule learners like CN2, looks
for a conjunction that covers most failures and fewest passing cases with fewest words. The failures that it
covers are removed, and the search starts again with the rest:

    failing   (f32, sum), (f32, sum), (i8, max)     passing   (f32, max), (i8, sum)
    first     element type is f32 and reduction is sum
    second    reduction is max and element type is i8
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.fuzz.features import Feature

_MOST_PREDICATES = 3
"""Maximum predicates of a condition; longer conditions describe single cases rather than a cause."""
_BEAM_WIDTH, _CANDIDATES_PER_STATE = 120, 8
"""Beam width of the search (conjunctions kept in each step), and predicates tried to extend each of them;
many of these cover the same cases."""
_MOST_CONDITIONS = 4
_COST_OF_PASSING, _COST_OF_WORDS = 3.0, 0.05
"""Penalties, where one covered failure scores 1: for a covered passing case, and for each word of the
condition (as a share of all failures)."""
_COSTS = {"is": 1.0, "is not": 1.5, "below": 1.2, "above": 1.2}
"""Cost of a predicate, counted in words, by its relation."""
_COST_OF_ONE_NUMBER, _COST_OF_ONE_VALUE = 1.8, 0.7
"""Cost, in words, of "is NUMBER", which is rarely the cause; and of each value in the list of "in"."""
_COST_OF_LARGE_NUMBER = 2.5
"""Cost, in words, of a comparison with a number above `_GREATEST_NUMBER`, which is rarely the cause."""
_NEGLIGIBLE_SHARE = 0.03
"""Share of the failures that may stay uncovered."""
_FEWEST_COVERED, _LEAST_COVERED, _CHANCE = 2, 0.1, 0.01
"""Requirements for a condition: minimum number of covered failures, and minimum share of all failures.

The third number is the maximum probability that a conjunction as good arises by chance.
"""
_FEW_VALUES = 12
"""Maximum thresholds that are tried for a numeric feature."""
_GREATEST_NUMBER, _SIZES = 4, ("elements", "dimension")
"""Largest number in a predicate "is NUMBER". For features whose names begin with one of the words in
`_SIZES`, only 0 and 1 are tried."""
_LONGEST_NAME = 60
"""Characters after which a slug is cut and completed by a hash."""


class Predicate(NamedTuple):
    """A requirement on one feature of a case, such as "element type is f32" or "rank above 2".

    The relation is "is", "is not", "in", "below" or "above".
    """

    feature: str
    relation: str
    value: Any

    def holds(self, features: Mapping[str, Feature]) -> bool:
        """Return whether the features of a case satisfy this predicate.

        False if the case does not have the feature.
        """
        if self.feature not in features:
            return False
        value = features[self.feature]
        if self.relation == "is":
            return bool(value == self.value)
        if self.relation == "is not":
            return bool(value != self.value)
        if self.relation == "in":
            return value in self.value
        assert not isinstance(value, str)
        return bool(value < self.value if self.relation == "below" else value > self.value)

    @property
    def cost(self) -> float:
        """The length of the predicate, in words; unlikely causes cost more."""
        if self.relation == "in":
            return 0.5 + _COST_OF_ONE_VALUE * len(self.value)
        is_number = isinstance(self.value, int) and not isinstance(self.value, bool)
        if is_number and self.value > _GREATEST_NUMBER:
            return _COST_OF_LARGE_NUMBER
        return _COST_OF_ONE_NUMBER if is_number and self.relation == "is" else _COSTS[self.relation]

    def __str__(self) -> str:
        feature, value = self.feature, self.value
        if feature == "broken":
            return f"{value} {self.relation} broken"
        if isinstance(value, bool):
            return feature if (self.relation == "is") is value else _negated(feature)
        is_many = feature.endswith("s")
        if self.relation == "in":
            return f"{feature} {'are' if is_many else 'is'} {', '.join(map(str, value[:-1]))} or {value[-1]}"
        if isinstance(value, int):
            sign = {"is": "=", "is not": "!=", "below": "<", "above": ">"}[self.relation]
            return f"{feature} {sign} {value}"
        relation = self.relation.replace("is", "are") if is_many else self.relation
        return f"{feature} {relation} {value}"


def _negated(feature: str) -> str:
    if feature.startswith("a "):
        return f"no {feature[2:]}"
    if feature.startswith("every "):
        return f"not {feature}"
    for verb in ("is", "are"):
        if f" {verb} " in feature:
            return feature.replace(f" {verb} ", f" {verb} not ", 1)
    return f"not: {feature}"


@dataclass(frozen=True, slots=True)
class FailureCondition:
    """A conjunction of predicates that failing cases satisfy; the empty one is always true."""

    predicates: tuple[Predicate, ...] = ()

    def holds(self, features: Mapping[str, Feature]) -> bool:
        return all(predicate.holds(features) for predicate in self.predicates)

    def __str__(self) -> str:
        return " and ".join(map(str, self.predicates)) or "always"

    @property
    def slug(self) -> str:
        """The condition as part of a file name: lower case letters, digits and hyphens."""
        text = str(self).replace("<", "below").replace(">", "above").replace("!=", "not").replace("=", "")
        name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        if len(name) <= _LONGEST_NAME:
            return name
        return f"{name[:_LONGEST_NAME].rstrip('-')}-{sha256(text.encode()).hexdigest()[:6]}"

    def as_json(self) -> list[dict[str, Any]]:
        return [predicate._asdict() for predicate in self.predicates]

    @classmethod
    def from_json(cls, rows: Iterable[Mapping[str, Any]]) -> "FailureCondition":
        """Return the condition that `as_json` wrote."""
        triples = [(row["feature"], row["relation"], row["value"]) for row in rows]
        predicates = [
            Predicate(feature, relation, tuple(value) if isinstance(value, list) else value)
            for feature, relation, value in triples
        ]
        return cls(tuple(predicates))


def learn(
    failing: Sequence[Mapping[str, Feature]],
    passing: Sequence[Mapping[str, Feature]],
    most: int = _MOST_CONDITIONS,
    always: Mapping[str, Feature] | None = None,
    purity: float = 0.0,
) -> list[FailureCondition]:
    """Return conditions that together cover the failing cases; the one that covers most comes first.

    Args:
        failing: features of failing cases.
        passing: features of passing cases; without any, the only condition is the empty one.
        most: maximum number of conditions.
        always: features that must satisfy every condition.
        purity: minimum share of failing cases among those that satisfy a condition. If it is positive and no
            conjunction reaches it, the result is empty.
    """
    if not passing:
        return [FailureCondition()]
    cases = [*failing, *passing]
    predicates = sorted(
        _candidate_predicates(failing, passing, always or {}), key=lambda predicate: predicate.cost
    )
    predicates = [predicate for predicate in predicates if always is None or predicate.holds(always)]
    masks = np.array([_mask(predicate, cases) for predicate in predicates], np.float32).reshape(
        -1, len(cases)
    )
    is_failing = np.zeros(len(cases), np.float32)
    is_failing[: len(failing)] = 1
    conditions, uncovered = list[FailureCondition](), is_failing.copy()
    while uncovered.sum() > _NEGLIGIBLE_SHARE * len(failing) and len(conditions) < most:
        best, covered = _best_conjunction(predicates, masks, uncovered, 1 - is_failing, purity)
        if best is None or not (covered * uncovered).any():
            break
        conditions.append(best)
        uncovered = uncovered * (1 - covered)
    return conditions if conditions or purity else [FailureCondition()]


def _best_conjunction(
    predicates: Sequence[Predicate], masks: Array, uncovered: Array, is_passing: Array, purity: float
) -> tuple[FailureCondition | None, Array]:
    """Return the best conjunction and its mask of covered cases; None if no conjunction is pure enough.

    The beam keeps the conjunctions with the best F1 score (`quality`), as they can still be extended. The
    winner has the best balance of covered failures, covered passing cases and words (`points`).
    """
    if not predicates:
        return None if purity else FailureCondition(), np.ones_like(uncovered)
    count = float(uncovered.sum())
    share = count / (count + float(is_passing.sum()))
    costs = np.array([item.cost for item in predicates], np.float32)
    covered = np.ones((1, masks.shape[1]), np.float32)
    words = np.zeros(1, np.float32)
    chosen: list[tuple[int, ...]] = [()]
    best: tuple[int, ...] | None = () if not purity else None
    best_points, best_covered = count - _COST_OF_PASSING * float(is_passing.sum()), covered[0]
    if purity:
        best_points = -np.inf
    for length in range(_MOST_PREDICATES):
        fewest = 1.0
        if purity:  # a smaller number may be chance, as many conjunctions are tried
            chance = np.log(_CHANCE) - (length + 1) * np.log(len(predicates))
            fewest = max(_LEAST_COVERED * count, chance / np.log(share), _FEWEST_COVERED)
        hits, misses = _count_cases(masks, covered * uncovered), _count_cases(masks, covered * is_passing)
        points = hits - _COST_OF_PASSING * misses - _COST_OF_WORDS * count * (words + costs[:, None])
        quality = np.where(hits > 0, 2 * hits / (count + hits + misses), -1.0)
        is_allowed = (hits >= fewest) & (hits >= purity * (hits + misses))
        points = np.where(is_allowed, points, -np.inf)
        winner = np.unravel_index(int(np.argmax(points)), points.shape)
        if points[winner] > best_points:
            best_points = float(points[winner])
            best = (*chosen[winner[1]], int(winner[0]))
            best_covered = covered[winner[1]] * masks[winner[0]]
        grown: dict[bytes, tuple[tuple[int, ...], Array, float]] = {}
        for position in np.argsort(-quality, axis=None, kind="stable")[: _BEAM_WIDTH * _CANDIDATES_PER_STATE]:
            number, state = divmod(int(position), quality.shape[1])
            if quality[number, state] < 0 or len(grown) == _BEAM_WIDTH:
                break
            both = covered[state] * masks[number]
            cost = float(words[state] + costs[number])
            grown.setdefault(both.astype(bool).tobytes(), ((*chosen[state], int(number)), both, cost))
        if not grown:
            break
        chosen = [item for item, _, _ in grown.values()]
        covered = np.array([both for _, both, _ in grown.values()])
        words = np.array([cost for _, _, cost in grown.values()], np.float32)
    if best is None:
        return None, best_covered
    return FailureCondition(tuple(sorted({predicates[number] for number in best}, key=str))), best_covered


def _count_cases(masks: Array, states: Array) -> Array:
    """Return the number of cases in each pair of a mask and a state.

    This is a matrix product without BLAS: its threads deadlocked when several of our threads multiplied.
    """
    counts: Array = np.einsum("pc,sc->ps", masks, states, optimize=False)
    return counts


def _mask(predicate: Predicate, cases: Sequence[Mapping[str, Feature]]) -> Array:
    return np.fromiter((predicate.holds(case) for case in cases), bool, len(cases))


def _candidate_predicates(
    failing: Sequence[Mapping[str, Feature]],
    passing: Sequence[Mapping[str, Feature]],
    always: Mapping[str, Feature],
) -> list[Predicate]:
    """Return the predicates that may separate failing cases from passing ones, the simplest first.

    "is not" is tried for words that no failing case has; if `always` has the feature, for all its other
    words.
    """
    predicates: list[Predicate] = []
    for name in sorted({name for features in failing for name in features}):
        bad = [features[name] for features in failing if name in features]
        good = [features[name] for features in passing if name in features]
        values = sorted(set(bad), key=str)
        if all(isinstance(value, bool) for value in [*bad, *good]):
            is_everywhere = len(bad) + len(good) == len(failing) + len(passing)
            predicates += [Predicate(name, "is", value) for value in values if value or is_everywhere]
        elif all(isinstance(value, int) for value in [*bad, *good]):
            numbers = sorted({int(value) for value in [*bad, *good]})
            greatest = 1 if name.startswith(_SIZES) else _GREATEST_NUMBER
            predicates += [Predicate(name, "is", value) for value in values if int(value) <= greatest]
            predicates += [Predicate(name, "below", value) for value in numbers[1 : _FEW_VALUES + 1]]
            predicates += [Predicate(name, "above", value) for value in numbers[:_FEW_VALUES]]
        else:
            predicates += [Predicate(name, "is", value) for value in values]
            absent = set(good) - ({always[name]} if name in always else set(bad))
            predicates += [Predicate(name, "is not", value) for value in sorted(absent, key=str)]
            share = {value: bad.count(value) / (bad.count(value) + good.count(value)) for value in values}
            for fewest_share in (0.9, 0.5):
                frequent = tuple(value for value in values if share[value] >= fewest_share)
                if 1 < len(frequent) < len({*bad, *good}):
                    predicates.append(Predicate(name, "in", frequent))
            if 1 < len(values) < len({*bad, *good}):
                predicates.append(Predicate(name, "in", tuple(values)))
    return list(dict.fromkeys(predicates))
