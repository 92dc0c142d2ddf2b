"""How far tensors are apart, and how far they may be."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ir_scatter.compare.measure import (
    EXACT,
    Tolerance,
    Tolerances,
    Verdict,
    coarsest,
    default_tolerance,
    measure,
)
from ir_scatter.core.arrays import are_equal
from ir_scatter.core.errors import UsageError
from tests.compare.models import Array, floats


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def short(name: str, *values: float) -> Array:
    return np.array(values).astype(getattr(ml_dtypes, name))


EQUAL, CLOSE, MISMATCH = Verdict.EQUAL, Verdict.CLOSE, Verdict.MISMATCH
NAN, INF = float("nan"), float("inf")
FAR = (floats(2, 3), np.array([[0.25, 0.5 + 2**-20, 0.75], [1, 1.25, 9]], np.float32))
TEXTS = np.array(["a", "\0"], object), np.array(["a", ""], object)
Row = tuple[Array, Array, Tolerance, dict[str, Any]]
ROWS: dict[str, list[Row]] = {
    "equal is bit by bit": [
        (f32(1, 2), f32(1, 2), EXACT, {"verdict": EQUAL}),
        (np.array([0x7FC00001], np.uint32).view(np.float32), f32(NAN), EXACT, {"verdict": EQUAL}),
        (f32(0.0, 1), f32(-0.0, 1), EXACT, {"verdict": CLOSE, "mismatched": 0, "max_ulp": 0, "index": (0,)}),
    ],
    "where and how much": [
        (
            FAR[1], FAR[0], Tolerance(0, 1e-3),
            {
                "verdict": MISMATCH, "elements": 6, "mismatched": 1, "index": (1, 2), "got": 9.0,
                "expected": 1.5, "max_abs": 7.5, "max_rel": 5.0, "tolerance": Tolerance(0, 1e-3),
            },
        ),
        (FAR[1], FAR[0], Tolerance(7.5, 0), {"verdict": CLOSE}),
        (FAR[1], FAR[0], Tolerance(0, 5), {"verdict": CLOSE}),
        (FAR[1], FAR[0], Tolerance(7.4, 0), {"verdict": MISMATCH}),
    ],
    "units in the last place": [
        (np.nextafter(f32(1), f32(2)), f32(1), EXACT, {"max_ulp": 1}),
        (f32(-1e-45), f32(1e-45), EXACT, {"max_ulp": 2}),
        (f32(INF), f32(1), EXACT, {"max_ulp": 2**63 - 1}),
        (np.array([-1.7e308]), np.array([1.7e308]), EXACT, {"max_ulp": 2**63 - 1}),
        (short("bfloat16", 1.0078125), short("bfloat16", 1), EXACT, {"max_ulp": 1}),
        (short("float8_e8m0fnu", 2.0**-100), short("float8_e8m0fnu", 2.0**100), EXACT, {"max_ulp": 200}),
    ],
    "NaN and infinity": [
        (
            f32(1, INF, NAN, NAN), f32(NAN, INF, NAN, 1), Tolerance(9, 9),
            {"verdict": MISMATCH, "mismatched": 2, "nans": (2, 2), "infinities": (1, 1), "max_abs": INF},
        ),
        (f32(3e38), f32(INF), Tolerance(0, 1e30), {"verdict": MISMATCH}),
        (f32(INF), f32(-INF), EXACT, {"max_abs": INF}),
    ],
    "whole numbers": [
        (np.array([2**53 + 1, 5]), np.array([2**53, 5]), EXACT, {"verdict": MISMATCH, "max_abs": 1, "max_ulp": 1}),
        (np.array([-(2**63)]), np.array([2**63 - 1]), EXACT, {"max_abs": 2.0**64, "max_ulp": 2**63 - 1}),
        (np.array([0], np.uint64), np.array([2**64 - 1], np.uint64), EXACT, {"expected": 2**64 - 1}),
        (short("int4", 1, 7), short("int4", 1, 5), EXACT, {"verdict": MISMATCH, "max_abs": 2, "got": 7}),
        (short("uint4", 1, 7), short("uint4", 1, 5), EXACT, {"verdict": MISMATCH, "max_abs": 2, "got": 7}),
    ],
    "short floats": [
        (short(name, 1, 2, 4), short(name, 1, 4, 4), EXACT, {"mismatched": 1, "max_abs": 2, "got": 2.0, "expected": 4.0})
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu")
    ],
    "booleans, complex numbers and strings": [
        (np.array([True]), np.array([False]), EXACT, {"max_abs": 1}),
        (np.array([3 + 4j, 1]), np.array([0j, 1]), EXACT, {"verdict": MISMATCH, "mismatched": 1, "max_abs": 5}),
        (*TEXTS, EXACT, {"mismatched": 1, "index": (1,), "got": "\0"}),
        (TEXTS[0], TEXTS[0].copy(), EXACT, {"verdict": EQUAL}),
    ],
    "another shape or type": [
        (
            floats(2, 3), floats(3, 2), Tolerance(9, 9),
            {"verdict": MISMATCH, "mismatched": 6, "remark": "is float32 [2, 3], expected float32 [3, 2]"},
        ),
        (floats(2), np.ones(2), EXACT, {"remark": "is float32 [2], expected float64 [2]"}),
    ],
    "nothing to compare": [
        (floats(0, 3), floats(0, 3), EXACT, {"verdict": EQUAL}),
        (np.array(1.5), np.array(1.5), EXACT, {"verdict": EQUAL}),
        (np.array(1.5), np.array(2.5), EXACT, {"index": ()}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_what_is_measured(name: str) -> None:
    for got, expected, tolerance, wanted in ROWS[name]:
        found = measure(got, expected, tolerance)
        seen = {key: getattr(found.worst if hasattr(found.worst, key) else found, key) for key in wanted}
        assert seen == wanted
        assert all(type(seen[key]) is type(value) for key, value in wanted.items() if key == "got")


def test_contested_elements_are_not_compared() -> None:
    allowed = np.array([True, False, False])
    found = measure(f32(9, 1, 2), f32(1, 1, 2), EXACT, contested=allowed)
    assert (found.verdict, found.contested, found.mismatched) == (Verdict.CONTESTED, 1, 0)
    assert measure(f32(9, 1, 3), f32(1, 1, 2), EXACT, contested=allowed).verdict is MISMATCH


def test_what_rounding_may_do_is_allowed_for_each_element() -> None:
    bound = np.array([0, 1.0, np.inf])
    assert measure(f32(1, 3, 9), f32(1, 2, np.inf), EXACT, bound=bound).verdict is CLOSE
    assert measure(f32(1.5, 3, 9), f32(1, 2, 0), EXACT, bound=bound).mismatched == 1


FOUR = arrays.arrays(np.float32, 4, elements=st.floats(width=32))


@given(FOUR, FOUR)
def test_the_required_tolerance_is_enough(got: Array, expected: Array) -> None:
    found = measure(got, expected, EXACT)
    assert are_equal(got, expected) is (found.verdict is EQUAL)
    if np.isfinite(found.max_abs):
        assert measure(got, expected, Tolerance(found.max_abs, 0)).verdict is not MISMATCH
        if found.max_abs:
            less = np.nextafter(found.max_abs, 0)
            assert measure(got, expected, Tolerance(less, 0)).verdict is MISMATCH


def test_numbers_names_and_the_default() -> None:
    found = Tolerances(["y=1e-3,1e-2", "a=b=0,1", "0.5"])
    assert found.find("y") == Tolerance(1e-3, 1e-2)
    assert found.find("a=b") == Tolerance(0, 1)
    assert found.find("z", None) == Tolerance(0.5, 0)
    assert Tolerances().find("y") is None
    with pytest.raises(UsageError, match=r"no scatter node 'y' \(did you mean yy\?\)"):
        found.demand_known({"yy", "a=b"})
    found.demand_known({"y", "a=b"})


@pytest.mark.parametrize("text", ["y=", "y=a", "=1,2", "y=1,2,3", "y=-1,0", "y=nan", "1,-2", ""])
def test_what_is_no_tolerance(text: str) -> None:
    with pytest.raises(UsageError, match="is not a tolerance, expected OUTPUT=ABSOLUTE,RELATIVE"):
        Tolerances([text])


def test_whole_numbers_must_be_equal() -> None:
    for array in (np.arange(3), np.array([True]), np.array(["a"], object), np.zeros(1, ml_dtypes.int4)):
        for is_node in (True, False):
            assert default_tolerance(array, "f16", is_node=is_node) == EXACT


def test_a_node_moves_elements_and_a_coarser_precision_rounds_each() -> None:
    found = default_tolerance(floats(3), "f32", is_node=True)
    assert found.relative == 0
    assert 0 < found.absolute < 1.2e-38
    half, narrow = np.ones(3, np.float16), np.ones(3, ml_dtypes.bfloat16)
    assert default_tolerance(half, "f32", is_node=True) == Tolerance(2.0**-24, 0)
    for array, precision, relative in (
        (floats(3), "f16", 2.0**-10), (floats(3), "bf16", 2.0**-7), (half, "bf16", 2.0**-7), (narrow, "f16", 0),
    ):  # fmt: skip
        assert default_tolerance(array, precision, is_node=True).relative == relative


def test_f64_that_is_computed_as_f32_is_found() -> None:
    third = np.array([1 / 3])
    for is_node in (True, False):
        allowed = default_tolerance(third, "f32", is_node=is_node)
        assert abs(third - third.astype(np.float32)) > allowed.absolute + allowed.relative * third


def test_the_output_of_a_model_may_be_off_in_proportion_to_its_elements() -> None:
    small, large = (default_tolerance(floats(4) * scale, "f32") for scale in (1e-3, 1e3))
    assert large.absolute == pytest.approx(small.absolute * 1e6)
    assert large.relative == small.relative == 1024 * 2.0**-24
    assert default_tolerance(floats(4), "f16").relative == 32 * 2.0**-11


def test_one_huge_element_hides_nothing() -> None:
    array = floats(9)
    array[0] = 3e38
    assert default_tolerance(array, "f32").absolute < 1e-3
    array[:] = np.nan
    assert np.isfinite(default_tolerance(array, "f32").absolute)


def test_the_coarsest_precision() -> None:
    assert coarsest("f32", "bf16", "f16") == "bf16"
    assert coarsest("model", "f32") == "f32"
    assert coarsest("model") == "model"
