import random

import numpy as np
import pytest

from ir_scatter.cases.case import Limits
from ir_scatter.cases.draw import Draws, draw_case, draw_form
from ir_scatter.cases.judge import judge
from ir_scatter.fuzz.campaign import operators
from ir_scatter.fuzz.conditions import FailureCondition, Predicate, learn
from ir_scatter.fuzz.features import Feature, features_of
from ir_scatter.fuzz.rounds import Drawer, FeatureCoverage
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.runners.base import Status, Streamed

Features = dict[str, Feature]


def drawn(count: int) -> list[Features]:
    chance = random.Random(3)
    return [
        {
            "axis is negative": chance.random() < 0.4,
            "rank(data)": chance.randint(1, 6),
            "element type": chance.choice(["f32", "i64", "u8", "f16"]),
            "elements(data)": chance.randint(0, 90),
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("predicates", "sentence"),
    [
        ((Predicate("axis is negative", "is", True),), "axis is negative"),
        ((Predicate("axis is negative", "is", False),), "axis is not negative"),
        (
            (Predicate("axis is negative", "is", True), Predicate("rank(data)", "below", 4)),
            "axis is negative and rank(data) < 4",
        ),
        (
            (Predicate("element type", "is", "u8"), Predicate("rank(data)", "above", 2)),
            "element type is u8 and ",
        ),
        ((Predicate("element type", "in", ("f16", "u8")),), "element type is f16 or u8"),
    ],
)
def test_the_condition_that_was_planted_is_learned(predicates: tuple[Predicate, ...], sentence: str) -> None:
    planted = FailureCondition(predicates)
    cases = drawn(600)
    failing = [case for case in cases if planted.holds(case)]
    found = learn(failing, [case for case in cases if not planted.holds(case)])
    assert len(found) == 1
    assert all(found[0].holds(case) == planted.holds(case) for case in cases)
    assert str(found[0]).startswith(sentence)


def test_two_defects_are_two_conditions() -> None:
    one, two = (FailureCondition((Predicate("element type", "is", name),)) for name in ("u8", "f16"))
    second = FailureCondition((*two.predicates, Predicate("rank(data)", "below", 3)))
    cases = drawn(800)
    failing = [case for case in cases if one.holds(case) or second.holds(case)]
    found = learn(failing, [case for case in cases if case not in failing])
    assert {str(condition) for condition in found} == {str(one), str(second)}


def test_what_always_fails_has_no_condition() -> None:
    assert learn(drawn(50), []) == [FailureCondition()]
    assert str(FailureCondition()) == "always"
    assert FailureCondition().holds({})


def test_a_name_is_one_for_a_folder_and_comes_back_from_json() -> None:
    condition = FailureCondition(
        (Predicate("element type", "in", ("f16", "u8")), Predicate("rank(data)", "below", 4))
    )
    assert condition.slug == "element-type-is-f16-or-u8-and-rank-data-below-4"
    assert FailureCondition.from_json(condition.as_json()) == condition
    long = FailureCondition(
        tuple(Predicate(f"elements(data {number})", "above", number) for number in range(9))
    )
    assert len(long.slug) < 70
    assert set(long.slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")


def test_what_only_some_cases_have_is_not_denied() -> None:
    """That no value is NaN would say of whole numbers nothing, and mean that there are none."""
    passing: list[Features] = [{"element type": "i32", "rank(data)": rank} for rank in (1, 2, 3)]
    failing: list[Features] = [
        {"element type": "f32", "a value is NaN": False, "rank(data)": rank} for rank in (1, 2, 3)
    ]
    assert [str(one) for one in learn(failing, passing)] == ["element type is f32"]


def test_what_no_short_conjunction_tells_apart_has_no_pure_condition() -> None:
    cases, chance = drawn(400), random.Random(5)
    failing = [case for case in cases if case["axis is negative"] and chance.random() < 0.4]
    passing = [case for case in cases if case not in failing]
    assert learn(failing, passing, 1, purity=0.95) == []
    (blurred,) = learn(failing, passing, 1)
    assert any(one.feature == "axis is negative" for one in blurred.predicates) or not blurred.predicates


def test_a_pure_condition_is_found_among_failures_that_have_none() -> None:
    """One defect can be said, another one cannot: that it is wider does not make it the condition."""
    said = FailureCondition((Predicate("element type", "is", "u8"),))
    cases, chance = drawn(600), random.Random(5)
    failing = [case for case in cases if said.holds(case) or chance.random() < 0.3]
    passing = [case for case in cases if case not in failing]
    assert learn(failing, passing, 1, purity=0.95) == [said]


@pytest.mark.parametrize(("share", "count"), [(0.1, 60), (0.3, 60), (0.5, 80), (0.3, 200)])
def test_what_fails_by_chance_has_no_pure_condition(share: float, count: int) -> None:
    """Among thousands of conjunctions one that holds for some failures and nothing else is no reason."""
    drawer, chance = Drawer(3, "any", FeatureCoverage()), random.Random(4)
    (spec,) = operators(["ScatterElementsUpdate-12"])
    known = [dict(features_of(case)) for case in drawer.batch(spec, 0, count)]
    failing = [one for one in known if chance.random() < share]
    passing = [one for one in known if not any(one is other for other in failing)]
    assert learn(failing, passing, 1, purity=0.95) == []


@pytest.mark.parametrize(
    ("name", "type", "sentence"),
    [("ScatterNDUpdate-15", "f64", "a result differs in f32"),
     ("ScatterElementsUpdate-12", "i64", "a negative mean is rounded")],
)  # fmt: skip
def test_what_a_narrower_type_gets_wrong_is_one_sentence(name: str, type: str, sentence: str) -> None:
    """Of a runtime that computes f64 as f32, or cuts means off, as those do that are known."""
    (spec,) = operators([name])
    limits = Limits(element_types=frozenset({type}), values="any" if type == "f64" else "plain")
    failing, passing = list[Features](), list[Features]()
    for seed in range(300):
        draws = Draws(seed)
        case = draw_case(draws, draw_form(draws, spec, limits))
        operation = case.operation()
        with np.errstate(all="ignore"):
            narrow = np.float32 if type == "f64" else np.float64
            given = operation.data.astype(narrow), operation.indices, operation.updates.astype(narrow)
            got = scatter(operation.task, *given).astype(case.data.dtype)
        is_wrong = judge(case, Streamed(Status.OK, [got])).symptom is not None
        (failing if is_wrong else passing).append(dict(features_of(case)))
    assert len(failing) > 10
    assert [str(one) for one in learn(failing, passing, purity=0.95)] == [sentence]
