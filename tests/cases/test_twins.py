"""Twins give what the case gives, or leave data as it is: NumPy says so, and who breaks that is found."""

from itertools import pairwise

import numpy as np
import pytest

from ir_scatter.cases.case import Case
from ir_scatter.cases.judge import Judgement, compare_with_twin, judge, reference
from ir_scatter.cases.twins import TWINS, expected_of_twin, twin
from ir_scatter.core.arrays import are_equal
from ir_scatter.defects.base import Symptom
from ir_scatter.fuzz.rounds import Drawer, FeatureCoverage
from ir_scatter.ops.lookup import SPECS
from ir_scatter.runners.base import Status, Streamed

ROWS = {str(key): spec for key, spec in SPECS.items() if not spec.is_removed}


def pairs(name: str, kind: str, count: int = 30) -> list[tuple[Case, Case]]:
    cases = Drawer(3, "plain", FeatureCoverage()).batch(ROWS[name], 0, count)
    found = [(case, twin(case, kind)) for case in cases if not case.twin]
    return [(case, other) for case, other in found if other is not None]


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("name", ROWS)
def test_a_twin_gives_what_is_promised(name: str, kind: str) -> None:
    for case, other in pairs(name, kind):
        known = expected_of_twin(other, reference(case).values)
        assert known is not None
        got = reference(other).values
        if case.element_type.kind in {"signed", "unsigned", "boolean", "string"}:
            assert are_equal(got, known)
        assert compare_with_twin(other, judge(other, Streamed(Status.OK, [got])), known).symptom is None


@pytest.mark.parametrize("kind", TWINS)
def test_an_answer_that_contradicts_its_twin_is_a_wrong_value(kind: str) -> None:
    """Of an element that one update hits, however the reference judged it."""
    for case, other in pairs("ScatterUpdate-3", kind, 300):
        if case.element_type.name != "i32" or not case.data.size or reference(case).contested.any():
            continue
        right = reference(case).values
        wrong = np.array(expected_of_twin(other, right))
        wrong.reshape(-1)[0] += 1
        found = compare_with_twin(other, Judgement(None, got=wrong), right)
        assert found.symptom is Symptom.WRONG_VALUE
        told = np.array(expected_of_twin(other, right)).reshape(-1)[0]
        assert f"its twin gives {told}, {kind}" in found.message
        return
    raise AssertionError


def test_batches_have_twins_of_every_kind() -> None:
    cases = Drawer(0, "any", FeatureCoverage()).batch(ROWS["ScatterElementsUpdate-12"], 0, 100)
    assert len(cases) == 100
    assert {case.twin for case in cases} == {"", *TWINS}
    for before, case in pairwise(cases):
        assert not case.twin or case.decisions == before.decisions
