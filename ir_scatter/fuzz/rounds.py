"""Draws the cases of a round, preferring pairs of features that were not drawn before.

A form is the common part of cases that can run in one model with dynamic dimensions (`cases.draw.Form`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, cycle
from zlib import crc32

from ir_scatter.cases.broken import WAYS, break_case
from ir_scatter.cases.case import Case, Limits
from ir_scatter.cases.draw import Draws, Form, draw_case, draw_form, draw_sizes, draw_values, types_of
from ir_scatter.cases.twins import TWINS, twin
from ir_scatter.fuzz.conditions import Predicate
from ir_scatter.fuzz.features import Feature
from ir_scatter.ops.spec import OpSpec, Role

_FORM_CANDIDATES, _BATCH_CANDIDATES = 6, 3
"""Random forms (see the module) among which the one with most new feature pairs is chosen: for a round of one
form, and for each case of a batch."""
_SHAPES_PER_FORM, _CASES_PER_SHAPE = 64, 4
"""Shapes per form, and cases per shape. A runtime prepares for each new shape; compiling a model takes as
long as running 200 cases."""
_REPEATED_CASES, _TWIN_EVERY = 4, 4
"""Number of cases of a form that run twice; in a batch, one in this many cases is a twin: a changed copy of
the previous case whose output follows from that of the original."""
_ILLEGAL_CASES, _VALUE_RULE_WEIGHT, _MOST_TRIES = 24, 4, 60
"""Illegal cases per round; weight of a rule about values in the random choice, where other rules have 1;
maximum attempts to draw a case."""
_LARGE_EVERY, _LARGE_REPETITIONS = 6, 16
"""One form in this many gets large data, and its cases run this often, to expose races."""
_BATCH_LIMITS = Limits(ranks=8, shapes=(*["static"] * 6, "dynamic", "bounded"), loops=True)
_FORM_LIMITS = Limits(ranks=8, constants=False, shapes=("dynamic", "bounded"))
_LARGE_LIMITS = Limits(ranks=8, constants=False, shapes=("dynamic",), elements=1 << 15)
_ILLEGAL_LIMITS = Limits(shapes=("static", "static", "dynamic"), values="plain")


@dataclass(slots=True)
class FeatureCoverage:
    """Counts how often each value of a feature was drawn, and remembers pairs of values drawn together."""

    values: dict[str, Counter[str]] = field(default_factory=dict)
    pairs: set[int] = field(default_factory=set)
    _numbers: dict[tuple[str, str, Feature], int] = field(default_factory=dict)

    def new_pairs(self, operator: str, features: Mapping[str, Feature]) -> int:
        """Return how many pairs of these features have never been drawn together."""
        return len(self._pairs(operator, features) - self.pairs)

    def count(self, operator: str, features: Mapping[str, Feature], cases: int) -> None:
        """Record `cases` drawn cases with these features."""
        self.pairs |= self._pairs(operator, features)
        for name, value in [("operator", operator), *features.items()]:
            self.values.setdefault(name, Counter())[str(value)] += cases

    def as_json(self) -> dict[str, object]:
        counted = {name: dict(sorted(counter.items())) for name, counter in sorted(self.values.items())}
        return {"pairs": len(self.pairs), "features": counted}

    def _pairs(self, operator: str, features: Mapping[str, Feature]) -> set[int]:
        numbers = self._numbers
        item_numbers = [numbers.setdefault((operator, *item), len(numbers)) for item in features.items()]
        return {low << 32 | high for low, high in combinations(item_numbers, 2)}


def form_features(form: Form) -> dict[str, Feature]:
    """Return the features shared by all cases of a form (cases that can run in one model)."""
    features: dict[str, Feature] = {
        "element type": form.element_type.name,
        "index type": form.index_type.name,
        "reduction": form.reduction.value,
        "rank(data)": form.rank,
        "rank(indices)": -1 if form.index_rank is None else form.index_rank,
        "shapes": form.shapes,
        "edge values": form.has_edges,
        "unique targets": form.is_unique,
    }
    if form.spec.axis is not None:
        features |= {"axis": form.axis, "axis is negative": form.is_negative}
    if form.iterations:
        features["inside a loop"] = True
    if form.depth:
        features["coordinates of a tuple"] = form.depth
    features |= {name: value for name, value in form.attributes if name != "reduction"}
    constants = sorted(role.value for role in form.constants if role is not Role.AXIS)
    features["constants"] = " ".join(constants) or "none"
    return features


@dataclass(frozen=True, slots=True)
class Drawer:
    """Draws the cases of rounds; they only depend on the seed, the number of the round and the coverage."""

    seed: int
    values: str
    coverage: FeatureCoverage

    def forms(self, spec: OpSpec, number: int) -> list[Case]:
        """Draw cases that share one form, to run in one model with dynamic dimensions.

        The first cases are repeated, to detect changing results.
        """
        is_large = self._seed(f"large {number}") % _LARGE_EVERY == 0
        limits = replace(_LARGE_LIMITS if is_large else _FORM_LIMITS, values=self.values)
        head, form = self._form(spec, f"forms {number}", limits)
        cases: list[Case] = []
        for shape in range(2 if is_large else _SHAPES_PER_FORM):
            draws = Draws(self._seed(f"shape {number} {shape}"))
            draws.decisions.extend(head)
            sizes, start = draw_sizes(draws, form), len(draws.decisions)
            for _ in range(1 if is_large else _CASES_PER_SHAPE):
                del draws.decisions[start:]
                cases.append(draw_values(draws, form, sizes))
        self.coverage.count(str(spec.key), form_features(form), len(cases))
        return cases * _LARGE_REPETITIONS if is_large else cases + cases[:_REPEATED_CASES]

    def batch(self, spec: OpSpec, number: int, count: int) -> list[Case]:
        """Draw cases of many forms, to run as separate nodes of one model.

        Some are twins: changed copies of the previous case, whose output follows from that of the original
        (`cases.twins`).
        """
        names, cases, limits = cycle(TWINS), list[Case](), replace(_BATCH_LIMITS, values=self.values)
        for position in range(count):
            twin_case = twin(cases[-1], next(names)) if position % _TWIN_EVERY == _TWIN_EVERY - 1 else None
            if twin_case is not None:
                cases.append(twin_case)
                continue
            head, form = self._form(spec, f"batch {number} {position}", limits, _BATCH_CANDIDATES)
            draws = Draws(self._seed(f"batch {number} {position} sizes"))
            draws.decisions.extend(head)
            cases.append(draw_case(draws, form))
            self.coverage.count(str(spec.key), form_features(form), 1)
        return cases

    def illegal_cases(self, spec: OpSpec, number: int) -> list[Case]:
        """Draw cases that each break one rule."""
        ways = [
            name for name, way in WAYS.items() for _ in range(_VALUE_RULE_WEIGHT if way.is_of_values else 1)
        ]
        cases = list[Case]()
        for attempt in range(_MOST_TRIES):
            way = ways[(number + attempt) % len(ways)]
            case = self.illegal_case(spec, f"illegal {number} {attempt}", way)
            if case is not None:
                cases.append(case)
                self.coverage.count(str(spec.key), {"broken": way, "element type": case.element_type.name}, 1)
            if len(cases) == _ILLEGAL_CASES:
                break
        return cases

    def illegal_case(self, spec: OpSpec, seed_word: str, way: str) -> Case | None:
        """Draw a case that breaks a rule; None if the drawn case cannot break it."""
        draws = Draws(self._seed(seed_word))
        return break_case(draws, draw_case(draws, draw_form(draws, spec, _ILLEGAL_LIMITS)), way)

    def case(
        self, spec: OpSpec, seed_word: str, predicates: Sequence[Predicate] = (), *, is_dynamic: bool = False
    ) -> Case:
        """Draw a case with types and a reduction that all predicates allow."""
        limits = replace(_FORM_LIMITS if is_dynamic else _BATCH_LIMITS, values=self.values)
        of_data, of_indices = (
            [row.name for row in types_of(spec, role)] for role in (Role.DATA, Role.INDICES)
        )
        words = _allowed("reduction", list(spec.reductions), predicates)
        limits = replace(
            limits,
            element_types=_allowed("element type", of_data, predicates) or None,
            index_types=_allowed("index type", of_indices, predicates) or None,
            reductions=frozenset(spec.reductions[word] for word in words) or None,
        )
        draws = Draws(self._seed(seed_word))
        try:
            form = draw_form(draws, spec, limits)
        except IndexError:  # no allowed type supports the reduction
            draws = Draws(self._seed(seed_word))
            form = draw_form(draws, spec, replace(_BATCH_LIMITS, values=self.values))
        return draw_case(draws, form)

    def _form(
        self, spec: OpSpec, seed_word: str, limits: Limits, candidates: int = _FORM_CANDIDATES
    ) -> tuple[list[int], Form]:
        """Draw several random forms; return the one with most pairs of features not drawn before.

        Also return the random decisions from which it was drawn.
        """
        best: tuple[int, list[int], Form] | None = None
        for candidate in range(candidates):
            draws = Draws(self._seed(f"{seed_word} {candidate}"))
            form = draw_form(draws, spec, limits)
            new = self.coverage.new_pairs(str(spec.key), form_features(form))
            if best is None or new > best[0]:
                best = new, draws.decisions, form
        assert best is not None
        return best[1:]

    def _seed(self, word: str) -> int:
        return crc32(f"{self.seed} {word}".encode()) | self.seed << 32


def _allowed(feature: str, values: Sequence[str], predicates: Sequence[Predicate]) -> frozenset[str]:
    """Return the values of a feature that all predicates about it allow."""
    relevant = [predicate for predicate in predicates if predicate.feature == feature]
    return frozenset(
        value for value in values if all(predicate.holds({feature: value}) for predicate in relevant)
    )


def redraw(case: Case, decisions: Sequence[int], seed: int | None = None) -> Case | None:
    """Draw a case again with changed random decisions; None if no such case exists.

    With some decisions the rule that the case breaks cannot be broken, or its twin is impossible.
    """
    draws = Draws(seed, decisions)
    drawn: Case | None = draw_case(draws, draw_form(draws, case.spec, case.within))
    if case.broken is not None:
        assert drawn is not None
        drawn = break_case(draws, drawn, case.broken)
    if case.twin:
        assert drawn is not None
        drawn = twin(drawn, case.twin)
    return drawn


def variations(case: Case, count: int) -> Iterator[Case]:
    """Yield variations of a case: one random decision is changed, or all after some position."""
    random, decisions = Draws(len(case.decisions)), case.decisions
    for number in range(count):
        position = random.below(len(decisions))
        if number % 2:
            variation = redraw(case, decisions[:position], number)
        else:
            variation = redraw(case, (*decisions[:position], random.below(8), *decisions[position + 1 :]))
        if variation is not None:
            yield variation
