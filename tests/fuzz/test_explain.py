"""Findings and the cases that come later: what disproves a condition makes it narrower, or unexplained."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from ir_scatter import read
from ir_scatter.cases.case import Case
from ir_scatter.cases.judge import Judged, reference
from ir_scatter.cases.workshop import Workshop
from ir_scatter.core.arrays import Array
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.campaign import operators
from ir_scatter.fuzz.conditions import Condition, Predicate
from ir_scatter.fuzz.explain import Explainer, Finding, Lot
from ir_scatter.fuzz.features import described
from ir_scatter.fuzz.rounds import Coverage, Drawer, variations
from ir_scatter.runners.base import Runner, Status, Streamed

(SPEC,) = operators(["ScatterUpdate-3"])
WIDE = Condition((Predicate("element type", "is", "f32"),))


class Nobody(Runner):
    name, packages = "nobody", ()


def _is_f32(case: Case) -> bool:
    return case.element_type.name == "f32" and case.data.size > 0


@pytest.mark.parametrize(
    ("is_wrong", "condition", "is_explained"),
    [
        (lambda case: True, "element type is f32", True),
        pytest.param(
            lambda case: case.data.ndim > 1,
            "element type is f32 and rank(data) > 1",
            True,
            marks=pytest.mark.long,
        ),
        pytest.param(
            lambda case: case.decisions[-1] % 2 == 0, "element type is f32", False, marks=pytest.mark.long
        ),
    ],
)
def test_a_condition_that_later_cases_disprove_is_learned_anew(
    tmp_path: Path, is_wrong: Callable[[Case], bool], condition: str, is_explained: bool
) -> None:
    drawer = Drawer(0, "plain", Coverage())
    cases = [case for number in range(24) for case in drawer.batch(SPEC, number, 60) if not case.twin]
    bad = [case for case in cases if _is_f32(case) and is_wrong(case)]
    known = Finding(
        "name", "nobody", str(SPEC.key), Symptom.WRONG_VALUE, WIDE, len(bad), 0, bad[0],
        Judged(Symptom.WRONG_VALUE), samples=[described(case) for case in bad],
    )  # fmt: skip
    explainer = Explainer(
        Nobody(), [], drawer, Workshop(str(tmp_path), 60.0), is_illegal=False, known=[known]
    )

    def answer(case: Case) -> Array:
        found = np.array(reference(case).values)
        if _is_f32(case) and is_wrong(case):
            found.reshape(-1)[0] += 3
        return found

    explainer.judge("batches", cases, [Streamed(Status.OK, [answer(case)]) for case in cases])
    assert explainer.due(0, 99, is_last=False) == []
    assert (str(known.condition), known.is_explained) == (condition, is_explained)
    assert known.failing >= 0.9 * (known.failing + known.passing) or "was not found" in known.when


def test_what_is_kept_to_learn_from_is_bounded(tmp_path: Path) -> None:
    """Whoever explains may be slow, and a finding may be met for hours."""
    drawer = Drawer(0, "plain", Coverage())
    first = next(case for case in drawer.batch(SPEC, 0, 60) if _is_f32(case))
    known = Finding(
        "name", "nobody", str(SPEC.key), Symptom.WRONG_VALUE, WIDE, 1, 0, first, Judged(Symptom.WRONG_VALUE)
    )
    explainer = Explainer(
        Nobody(), [], drawer, Workshop(str(tmp_path), 60.0), is_illegal=False, known=[known]
    )
    lots = []
    for number in range(30):
        cases = [case for case in drawer.batch(SPEC, number, 40) if case.data.size and not case.twin]
        explainer.judge("batches", cases, [Streamed(Status.OK, [np.zeros((7, 7, 7))]) for _ in cases])
        lots += explainer.due(number, 99, is_last=False)
    assert known.failing > len(known.samples) == 64
    assert len(lots) == 1
    (last,) = explainer.due(99, 99, is_last=True)
    assert len(last.failing) == 60
    assert all(judged.got is None for _, judged in last.failing)


class Nought(Nobody):
    """Gives zeros."""

    def stream(self, model_path: Any, feeds: Sequence[Mapping[str, Array]], **_: Any) -> list[Streamed]:
        (node,) = read(model_path).graph.walk(frozenset({"ScatterUpdate"}))
        data = node.inputs[0].value
        assert data is not None
        assert data.shape is not None
        return [Streamed(Status.OK, [np.zeros([int(str(dim)) for dim in data.shape])]) for _ in feeds]


def test_what_there_is_no_time_to_look_at_closely_is_a_finding_all_the_same(tmp_path: Path) -> None:
    """The smallest failure, as it is seen once more, and a condition that nobody tried to disprove."""
    drawer = Drawer(0, "plain", Coverage())
    workshop = Workshop(str(tmp_path), 60.0)
    explainer = Explainer(Nought(), [], drawer, workshop, is_illegal=False, until=monotonic())
    cases = [
        one for one in drawer.batch(SPEC, 0, 60) if one.data.size and not one.twin and one.shapes == "static"
    ]
    explainer.judge("batches", cases, [Streamed(Status.OK, [np.zeros(one.data.shape)]) for one in cases])
    (lot,) = explainer.due(0, 0, is_last=True)
    found = next(explainer.explain(lot))
    assert found.symptom is Symptom.WRONG_VALUE
    assert found.case is not None
    assert found.case.data.size == min(one.data.size for one, _ in [*lot.failing, (found.case, found.judged)])
    assert found.when.endswith("; there was no time to look closer")
    assert found.as_json()["fresh"] == {}
    workshop.deadline = monotonic()
    assert [*explainer.explain(lot)] == []
    assert explainer.unexplained == len(lot.failing)


def test_of_large_cases_that_fail_few_are_kept(tmp_path: Path) -> None:
    """The others are known by their features, and fewer are computed at once."""
    drawer = Drawer(0, "plain", Coverage())
    rounds = (drawer.forms(SPEC, number) for number in count())
    large = next(cases[0] for cases in rounds if cases[0].within.elements)
    wrong = Judged(Symptom.WRONG_VALUE, got=large.data)
    small, lot = (
        Lot(str(SPEC.key), Symptom.WRONG_VALUE, "", 0, [(one, wrong)])
        for one in (drawer.batch(SPEC, 0, 1)[0], large)
    )
    explainer = Explainer(Nobody(), [], drawer, Workshop(str(tmp_path), 60.0), is_illegal=False)
    explainer._learn(lot, [], [(one, wrong) for one in variations(large, 100)])
    assert 1 < len(lot.failing) < 20 < len(lot.described())
    assert all(judged.got is None for _, judged in lot.failing[1:])
    assert lot.at_once < small.at_once
