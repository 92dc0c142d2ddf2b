"""When something fails: the shortest conjunctions of features that together cover the failures.

Learned from cases that failed and cases that passed, each by its features. A conjunction is searched for
with a beam: what covers most failures and fewest passing cases with fewest words. What it covers is taken
away, and the next one is searched for in the rest.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.fuzz.features import Feature

_LONGEST = 3
"""More features in one sentence are an anecdote."""
_BEAM, _MORE = 120, 8
"""So many conjunctions grow; many cover the same."""
_MOST = 4
_COST_OF_PASSING, _COST_OF_WORDS = 3.0, 0.05
"""What a passing case, and a further word as a share of all failures, weigh against a failure covered."""
_COSTS = {"is": 1.0, "is not": 1.5, "below": 1.2, "above": 1.2}
_COST_OF_ONE_NUMBER, _COST_OF_ONE_VALUE = 1.8, 0.7
"""Of saying that a feature is a number, which is seldom the reason, and of each of several values."""
_COST_OF_LARGE = 2.5
"""Of saying that a size is beyond a large number, which seldom is the reason either."""
_REST = 0.03
"""So small a share of the failures is not explained further."""
_LEAST, _LEAST_COVERED, _BY_CHANCE = 2, 0.1, 0.01
"""A pure condition covers so many failures and such a share of them; and as many cases at random would all
fail with so small a probability, however many conjunctions of its length were tried."""
_FEW_VALUES = 12
_GREATEST, _SIZES = 4, ("elements", "dimension")
"""No number above this is a reason for itself, and of sizes none but 0 and 1."""
_LONGEST_NAME = 60


class Predicate(NamedTuple):
    """One feature and what it must be: `relation` is "is", "is not", "in", "below" or "above"."""

    feature: str
    relation: str
    value: Any

    def holds(self, features: Mapping[str, Feature]) -> bool:
        """Tell whether a case has it; one without the feature has not."""
        if self.feature not in features:
            return False
        found = features[self.feature]
        if self.relation == "is":
            return bool(found == self.value)
        if self.relation == "is not":
            return bool(found != self.value)
        if self.relation == "in":
            return found in self.value
        assert not isinstance(found, str)
        return bool(found < self.value if self.relation == "below" else found > self.value)

    @property
    def cost(self) -> float:
        """Return how much there is to say, in words."""
        if self.relation == "in":
            return 0.5 + _COST_OF_ONE_VALUE * len(self.value)
        is_number = isinstance(self.value, int) and not isinstance(self.value, bool)
        if is_number and self.value > _GREATEST:
            return _COST_OF_LARGE
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
class Condition:
    """A conjunction of predicates; without any it always holds."""

    predicates: tuple[Predicate, ...] = ()

    def holds(self, features: Mapping[str, Feature]) -> bool:
        return all(one.holds(features) for one in self.predicates)

    def __str__(self) -> str:
        return " and ".join(map(str, self.predicates)) or "always"

    @property
    def slug(self) -> str:
        """Return the condition as part of a name: small letters, digits, dots and hyphens."""
        text = str(self).replace("<", "below").replace(">", "above").replace("!=", "not").replace("=", "")
        name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        if len(name) <= _LONGEST_NAME:
            return name
        return f"{name[:_LONGEST_NAME].rstrip('-')}-{sha256(text.encode()).hexdigest()[:6]}"

    def as_json(self) -> list[dict[str, Any]]:
        return [one._asdict() for one in self.predicates]

    @classmethod
    def from_json(cls, found: Iterable[Mapping[str, Any]]) -> "Condition":
        """Read what `as_json` gave."""
        rows = [(one["feature"], one["relation"], one["value"]) for one in found]
        return cls(tuple(Predicate(a, b, tuple(c) if isinstance(c, list) else c) for a, b, c in rows))


def learn(
    failing: Sequence[Mapping[str, Feature]],
    passing: Sequence[Mapping[str, Feature]],
    most: int = _MOST,
    always: Mapping[str, Feature] | None = None,
    purity: float = 0.0,
) -> list[Condition]:
    """Return at most some conditions that together cover the failures, those that cover most first.

    Each holds for the features that are given as `always`. Of the cases for which it holds at least a share,
    the purity, fail; where one is asked for and no short conjunction has it, there is no condition.
    """
    if not passing:
        return [Condition()]
    cases = [*failing, *passing]
    predicates = sorted(_predicates(failing, passing, always or {}), key=lambda one: one.cost)
    predicates = [one for one in predicates if always is None or one.holds(always)]
    masks = np.array([_mask(one, cases) for one in predicates], np.float32).reshape(-1, len(cases))
    bad = np.zeros(len(cases), np.float32)
    bad[: len(failing)] = 1
    found, open_ = list[Condition](), bad.copy()
    while open_.sum() > _REST * len(failing) and len(found) < most:
        best, covered = _search(predicates, masks, open_, 1 - bad, purity)
        if best is None or not (covered * open_).any():
            break
        found.append(best)
        open_ = open_ * (1 - covered)
    return found if found or purity else [Condition()]


def _search(
    predicates: Sequence[Predicate], masks: Array, open_: Array, good: Array, purity: float
) -> tuple[Condition | None, Array]:
    """Return the best conjunction for failures that are open, and what it covers, as ones and zeros.

    None if none is pure enough.

    What grows is what separates best as far as it goes; what wins says most with fewest words.
    """
    if not predicates:
        return None if purity else Condition(), np.ones_like(open_)
    count = float(open_.sum())
    share = count / (count + float(good.sum()))
    costs = np.array([one.cost for one in predicates], np.float32)
    covered = np.ones((1, masks.shape[1]), np.float32)
    words = np.zeros(1, np.float32)
    chosen: list[tuple[int, ...]] = [()]
    best: tuple[int, ...] | None = () if not purity else None
    best_points, best_covered = count - _COST_OF_PASSING * float(good.sum()), covered[0]
    if purity:
        best_points = -np.inf
    for length in range(_LONGEST):
        least = 1.0
        if purity:  # fewer may be chance, among so many conjunctions
            chance = np.log(_BY_CHANCE) - (length + 1) * np.log(len(predicates))
            least = max(_LEAST_COVERED * count, chance / np.log(share), _LEAST)
        hits, misses = _counted(masks, covered * open_), _counted(masks, covered * good)
        points = hits - _COST_OF_PASSING * misses - _COST_OF_WORDS * count * (words + costs[:, None])
        quality = np.where(hits > 0, 2 * hits / (count + hits + misses), -1.0)
        is_said = (hits >= least) & (hits >= purity * (hits + misses))
        points = np.where(is_said, points, -np.inf)
        winner = np.unravel_index(int(np.argmax(points)), points.shape)
        if points[winner] > best_points:
            best_points = float(points[winner])
            best = (*chosen[winner[1]], int(winner[0]))
            best_covered = covered[winner[1]] * masks[winner[0]]
        grown: dict[bytes, tuple[tuple[int, ...], Array, float]] = {}
        for place in np.argsort(-quality, axis=None, kind="stable")[: _BEAM * _MORE]:
            number, state = divmod(int(place), quality.shape[1])
            if quality[number, state] < 0 or len(grown) == _BEAM:
                break
            both = covered[state] * masks[number]
            cost = float(words[state] + costs[number])
            grown.setdefault(both.astype(bool).tobytes(), ((*chosen[state], int(number)), both, cost))
        if not grown:
            break
        chosen = [one for one, _, _ in grown.values()]
        covered = np.array([both for _, both, _ in grown.values()])
        words = np.array([cost for _, _, cost in grown.values()], np.float32)
    if best is None:
        return None, best_covered
    return Condition(tuple(sorted({predicates[number] for number in best}, key=str))), best_covered


def _counted(masks: Array, states: Array) -> Array:
    """Return how many cases are in each mask and each state.

    It is a product of matrices, but not one of BLAS, whose own threads were seen to wait for each other for
    ever where several of ours multiply at once.
    """
    found: Array = np.einsum("pc,sc->ps", masks, states, optimize=False)
    return found


def _mask(predicate: Predicate, cases: Sequence[Mapping[str, Feature]]) -> Array:
    return np.fromiter((predicate.holds(case) for case in cases), bool, len(cases))


def _predicates(
    failing: Sequence[Mapping[str, Feature]],
    passing: Sequence[Mapping[str, Feature]],
    always: Mapping[str, Feature],
) -> list[Predicate]:
    """Return what may tell failing cases from passing ones, the plainest first.

    That a word is not another one may be said where no failing case has that, or where `always` has it not.
    """
    found: list[Predicate] = []
    for name in sorted({name for one in failing for name in one}):
        bad = [one[name] for one in failing if name in one]
        good = [one[name] for one in passing if name in one]
        values = sorted(set(bad), key=str)
        if all(isinstance(value, bool) for value in [*bad, *good]):
            is_everywhere = len(bad) + len(good) == len(failing) + len(passing)
            found += [Predicate(name, "is", value) for value in values if value or is_everywhere]
        elif all(isinstance(value, int) for value in [*bad, *good]):
            numbers = sorted({int(value) for value in [*bad, *good]})
            greatest = 1 if name.startswith(_SIZES) else _GREATEST
            found += [Predicate(name, "is", value) for value in values if int(value) <= greatest]
            found += [Predicate(name, "below", value) for value in numbers[1 : _FEW_VALUES + 1]]
            found += [Predicate(name, "above", value) for value in numbers[:_FEW_VALUES]]
        else:
            found += [Predicate(name, "is", value) for value in values]
            others = set(good) - ({always[name]} if name in always else set(bad))
            found += [Predicate(name, "is not", value) for value in sorted(others, key=str)]
            share = {value: bad.count(value) / (bad.count(value) + good.count(value)) for value in values}
            for least in (0.9, 0.5):
                many = tuple(value for value in values if share[value] >= least)
                if 1 < len(many) < len({*bad, *good}):
                    found.append(Predicate(name, "in", many))
            if 1 < len(values) < len({*bad, *good}):
                found.append(Predicate(name, "in", tuple(values)))
    return list(dict.fromkeys(found))
