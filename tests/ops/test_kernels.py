"""Every row against a loop over elements that shares no code with the kernels."""

from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter import evaluate
from ir_scatter.cases.case import Case
from ir_scatter.ops.kernels import apply, targets
from tests.ops import naive_scatter
from tests.ops.scatter_cases import ROWS, cases

Array = Any
every_row = pytest.mark.parametrize("operator", ROWS)
reducing_rows = pytest.mark.parametrize("operator", [name for name in ROWS if ROWS[name].reductions])


def by_loop(case: Case) -> Array:
    return naive_scatter.scatter(case.spec.key.type, **case.arguments())


def differences(left: Array, right: Array, *, zeros_differ: bool = True) -> Array:
    """Compare bit by bit, but for the payload of NaN; tell where two arrays differ."""
    assert left.dtype == right.dtype
    assert left.shape == right.shape
    if left.dtype.kind in "biuO" or "int" in left.dtype.name:
        return left != right
    if left.dtype.kind == "c":
        return differences(left.real, right.real) | differences(left.imag, right.imag)
    with np.errstate(all="ignore"):
        wide_left, wide_right = left.astype(np.float64), right.astype(np.float64)
    is_same = wide_left == wide_right
    if zeros_differ:
        is_same &= np.signbit(wide_left) == np.signbit(wide_right)
    return ~(is_same | (np.isnan(wide_left) & np.isnan(wide_right)))


def demand_like_loop(case: Case) -> None:
    """Demand the loop's bits; of two zeros of different sign min and max may give either."""
    before = [None if array is None else array.copy() for array in (case.data, case.indices, case.updates)]
    found, expected = evaluate(case.operator, **case.arguments()), by_loop(case)
    is_order = case.attributes.get("reduction") in {"min", "max"}
    bad = differences(found, expected, zeros_differ=not is_order)
    assert not bad.any(), f"{found[bad]} instead of {expected[bad]}"
    assert found.flags.c_contiguous
    assert not np.shares_memory(found, case.data)
    for array, old in zip((case.data, case.indices, case.updates), before, strict=True):
        assert array is None or not differences(array, old).any()


@every_row
@given(choice=st.data())
def test_a_row_is_what_the_loop_computes(operator: str, choice: st.DataObject) -> None:
    demand_like_loop(choice.draw(cases(ROWS[operator])))


@every_row
@given(block=st.sampled_from([1, 2, 5, 16]), choice=st.data())
def test_blocks_of_any_size_give_the_same(operator: str, block: int, choice: st.DataObject) -> None:
    case = choice.draw(cases(ROWS[operator]))
    with ExitStack() as stack:
        for module in (targets, apply):
            stack.enter_context(patch.object(module, "BLOCK", block))
        stack.enter_context(patch.object(apply, "_NARROW", 2))
        stack.enter_context(patch.object(apply, "_WIDENED", block))
        stack.enter_context(patch.object(apply, "_FEWEST", 1))
        demand_like_loop(case)


@reducing_rows
@given(choice=st.data())
def test_elements_that_nothing_hits_keep_their_bits(operator: str, choice: st.DataObject) -> None:
    case = choice.draw(cases(ROWS[operator]))
    names = {"data", "indices", "updates", "axis", "mode"}
    arguments = {name: value for name, value in case.arguments().items() if name in names}
    is_hit = np.zeros(case.data.shape, bool)
    for position, _ in naive_scatter.hits(case.spec.key.type, **arguments):
        is_hit[position] = True
    found = evaluate(case.operator, **case.arguments())
    assert found[~is_hit].tobytes() == case.data[~is_hit].tobytes()
