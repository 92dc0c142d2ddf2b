"""Indices that are not legal, in cases of every row that are legal otherwise."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter import IllegalCase, IllegalIndex, evaluate, evaluate_detailed
from ir_scatter.cases.case import Case
from ir_scatter.ops.kernels import apply, targets
from ir_scatter.ops.spec import IndexRange, Layout
from tests.ops.naive_scatter import positions
from tests.ops.scatter_cases import ROWS, cases

Array = Any
every_row = pytest.mark.parametrize("operator", ROWS)


def limits(case: Case, position: tuple[int, ...]) -> tuple[int, int]:
    """Return the least and the greatest index that the document allows at a position."""
    axis = case.axis or 0
    if case.spec.layout is Layout.SEQUENCE:
        return 0, case.data.shape[axis] - case.updates.shape[axis]
    size = case.data.shape[position[-1] if case.spec.layout is Layout.TUPLES else axis]
    return -size if case.spec.index_range is IndexRange.WRAPPING else 0, size - 1


@every_row
@given(block=st.sampled_from([3, 1 << 16]), choice=st.data())
def test_illegal_indices_are_found_and_counted(operator: Any, block: int, choice: st.DataObject) -> None:
    smallest = choice.draw(st.sampled_from([1, 1, 0]))
    case = choice.draw(cases(ROWS[operator], index_type="i64", smallest=smallest))
    if case.indices is None or case.indices.size == 0 or "mode" in case.attributes:
        return
    before = case.data.copy()
    for _ in range(choice.draw(st.integers(1, 4))):
        place = choice.draw(st.sampled_from(positions(case.indices.shape)))
        low, high = limits(case, place)
        far = [low - 1, high + 1, low - 2**40, high + 2**32, -(2**63), 2**63 - 1]
        case.indices[place] = choice.draw(st.sampled_from(far))
    bad = []
    for place in positions(case.indices.shape):
        low, high = limits(case, place)
        if not low <= int(case.indices[place]) <= high:
            bad.append(place)
    with (
        patch.object(targets, "BLOCK", block),
        patch.object(apply, "BLOCK", 16),
        patch.object(apply, "_FEWEST", 1),
        pytest.raises(IllegalIndex) as caught,
    ):
        evaluate(operator, **case.arguments())
    error = caught.value
    assert (error.position, error.count) == (bad[0], len(bad))
    assert error.value == case.indices[bad[0]]
    assert error.limits == limits(case, bad[0])
    assert str(error.value) in str(error)
    assert case.data.dtype == object or case.data.tobytes() == before.tobytes()
    with pytest.raises(IllegalIndex):
        evaluate_detailed(operator, **case.arguments())


@every_row
@given(choice=st.data())
def test_updates_of_another_shape_are_refused(operator: Any, choice: st.DataObject) -> None:
    case = choice.draw(cases(ROWS[operator]))
    if case.spec.layout is Layout.SEQUENCE:
        wrong = np.concatenate([case.data, case.data[:1]]) if len(case.data) else case.data[None]
    else:
        wrong = np.stack([case.updates, case.updates])
    with pytest.raises(IllegalCase) as caught:
        evaluate(operator, **(case.arguments() | {"updates": wrong}))
    assert not isinstance(caught.value, IllegalIndex)
