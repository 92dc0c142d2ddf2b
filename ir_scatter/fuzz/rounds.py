"""Which cases are drawn: pairs of features that were not seen yet first, then at random."""

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

_CANDIDATES, _OF_BATCHES = 6, 3
"""Of so many forms the one with most new pairs is taken; of fewer where each is for a single case."""
_SHAPES, _FILLS = 64, 4
"""Of one form: a runtime prepares for each shape anew, and to compile a model takes as long as 200 cases."""
_REPEATED, _TWINS = 4, 4
"""So many cases of a form come twice; of a batch one in so many is a twin."""
_ILLEGAL, _OF_VALUES, _TRIES = 24, 4, 60
"""Of a round of illegal cases, after so many tries; and so many times as many break a rule about values."""
_LARGE, _TIMES = 6, 16
"""One form in so many has large data; its cases come so often, which shows races."""
_OF_BATCH = Limits(ranks=8, shapes=(*["static"] * 6, "dynamic", "bounded"), loops=True)
_OF_FORMS = Limits(ranks=8, constants=False, shapes=("dynamic", "bounded"))
_OF_LARGE = Limits(ranks=8, constants=False, shapes=("dynamic",), elements=1 << 15)
_OF_ILLEGAL = Limits(shapes=("static", "static", "dynamic"), values="plain")


@dataclass(slots=True)
class Coverage:
    """What was drawn: how often each value of each feature, and which pairs of them."""

    values: dict[str, Counter[str]] = field(default_factory=dict)
    pairs: set[int] = field(default_factory=set)
    _numbers: dict[tuple[str, str, Feature], int] = field(default_factory=dict)

    def new_pairs(self, operator: str, features: Mapping[str, Feature]) -> int:
        """Return how many pairs of a form were not drawn yet."""
        return len(self._pairs(operator, features) - self.pairs)

    def count(self, operator: str, features: Mapping[str, Feature], cases: int) -> None:
        """Note cases of a form."""
        self.pairs |= self._pairs(operator, features)
        for name, value in [("operator", operator), *features.items()]:
            self.values.setdefault(name, Counter())[str(value)] += cases

    def as_json(self) -> dict[str, object]:
        counted = {name: dict(sorted(found.items())) for name, found in sorted(self.values.items())}
        return {"pairs": len(self.pairs), "features": counted}

    def _pairs(self, operator: str, features: Mapping[str, Feature]) -> set[int]:
        known = self._numbers
        found = [known.setdefault((operator, *item), len(known)) for item in features.items()]
        return {a << 32 | b for a, b in combinations(found, 2)}


def form_features(form: Form) -> dict[str, Feature]:
    """Return what a form says of its cases."""
    found: dict[str, Feature] = {
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
        found |= {"axis": form.axis, "axis is negative": form.is_negative}
    if form.iterations:
        found["inside a loop"] = True
    if form.depth:
        found["coordinates of a tuple"] = form.depth
    found |= {name: value for name, value in form.attributes if name != "reduction"}
    constants = sorted(role.value for role in form.constants if role is not Role.AXIS)
    found["constants"] = " ".join(constants) or "none"
    return found


@dataclass(frozen=True, slots=True)
class Drawer:
    """Draws rounds of cases of one operator; the same ones for the same seed, number and coverage."""

    seed: int
    values: str
    coverage: Coverage

    def forms(self, spec: OpSpec, number: int) -> list[Case]:
        """Draw cases of one form for a model with dynamic dimensions; the first ones come twice."""
        is_large = self._seed(f"large {number}") % _LARGE == 0
        limits = replace(_OF_LARGE if is_large else _OF_FORMS, values=self.values)
        head, form = self._form(spec, f"forms {number}", limits)
        cases: list[Case] = []
        for shape in range(2 if is_large else _SHAPES):
            draws = Draws(self._seed(f"shape {number} {shape}"))
            draws.decisions.extend(head)
            sizes, start = draw_sizes(draws, form), len(draws.decisions)
            for _ in range(1 if is_large else _FILLS):
                del draws.decisions[start:]
                cases.append(draw_values(draws, form, sizes))
        self.coverage.count(str(spec.key), form_features(form), len(cases))
        return cases * _TIMES if is_large else cases + cases[:_REPEATED]

    def batch(self, spec: OpSpec, number: int, count: int) -> list[Case]:
        """Draw cases of many forms for a model that holds them all; some are twins of the one before."""
        names, cases, limits = cycle(TWINS), list[Case](), replace(_OF_BATCH, values=self.values)
        for one in range(count):
            other = twin(cases[-1], next(names)) if one % _TWINS == _TWINS - 1 else None
            if other is not None:
                cases.append(other)
                continue
            head, form = self._form(spec, f"batch {number} {one}", limits, _OF_BATCHES)
            draws = Draws(self._seed(f"batch {number} {one} sizes"))
            draws.decisions.extend(head)
            cases.append(draw_case(draws, form))
            self.coverage.count(str(spec.key), form_features(form), 1)
        return cases

    def illegal(self, spec: OpSpec, number: int) -> list[Case]:
        """Draw cases that break one rule each."""
        ways = [name for name, way in WAYS.items() for _ in range(_OF_VALUES if way.is_of_values else 1)]
        cases = list[Case]()
        for attempt in range(_TRIES):
            way = ways[(number + attempt) % len(ways)]
            case = self.broken(spec, f"illegal {number} {attempt}", way)
            if case is not None:
                cases.append(case)
                self.coverage.count(str(spec.key), {"broken": way, "element type": case.element_type.name}, 1)
            if len(cases) == _ILLEGAL:
                break
        return cases

    def broken(self, spec: OpSpec, word: str, way: str) -> Case | None:
        """Draw a case that breaks a rule, None if the one that was drawn cannot be made to."""
        draws = Draws(self._seed(word))
        return break_case(draws, draw_case(draws, draw_form(draws, spec, _OF_ILLEGAL)), way)

    def one(
        self, spec: OpSpec, word: str, predicates: Sequence[Predicate] = (), *, is_dynamic: bool = False
    ) -> Case:
        """Draw a case whose types and reduction are what predicates allow, if anything is."""
        limits = replace(_OF_FORMS if is_dynamic else _OF_BATCH, values=self.values)
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
        draws = Draws(self._seed(word))
        try:
            form = draw_form(draws, spec, limits)
        except IndexError:  # no type that is allowed has the reduction
            draws = Draws(self._seed(word))
            form = draw_form(draws, spec, replace(_OF_BATCH, values=self.values))
        return draw_case(draws, form)

    def _form(
        self, spec: OpSpec, word: str, limits: Limits, candidates: int = _CANDIDATES
    ) -> tuple[list[int], Form]:
        """Return the form with most new pairs among some, and its decisions."""
        best: tuple[int, list[int], Form] | None = None
        for candidate in range(candidates):
            draws = Draws(self._seed(f"{word} {candidate}"))
            form = draw_form(draws, spec, limits)
            new = self.coverage.new_pairs(str(spec.key), form_features(form))
            if best is None or new > best[0]:
                best = new, draws.decisions, form
        assert best is not None
        return best[1:]

    def _seed(self, word: str) -> int:
        return crc32(f"{self.seed} {word}".encode()) | self.seed << 32


def _allowed(feature: str, values: Sequence[str], predicates: Sequence[Predicate]) -> frozenset[str]:
    """Return the values of a feature that predicates about it allow."""
    about = [one for one in predicates if one.feature == feature]
    return frozenset(value for value in values if all(one.holds({feature: value}) for one in about))


def again(case: Case, decisions: Sequence[int], seed: int | None = None) -> Case | None:
    """Return the case that follows from other decisions, of the same operator and rule; None if none does."""
    draws = Draws(seed, decisions)
    found: Case | None = draw_case(draws, draw_form(draws, case.spec, case.within))
    if case.broken is not None:
        assert found is not None
        found = break_case(draws, found, case.broken)
    if case.twin:
        assert found is not None
        found = twin(found, case.twin)
    return found


def variations(case: Case, count: int) -> Iterator[Case]:
    """Yield cases that have much in common with one: all decisions but one, or the first of them."""
    random, made = Draws(len(case.decisions)), case.decisions
    for number in range(count):
        place = random.below(len(made))
        if number % 2:
            found = again(case, made[:place], number)
        else:
            found = again(case, (*made[:place], random.below(8), *made[place + 1 :]))
        if found is not None:
            yield found
