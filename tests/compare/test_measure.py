import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ir_scatter.compare.measure import are_equal, measure
from ir_scatter.compare.result import Verdict
from ir_scatter.compare.tolerance import Tolerance
from tests.compare.models import Array, floats

EXACT = Tolerance()
SHORT = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu")


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def test_equal_is_bit_by_bit() -> None:
    assert measure(f32(1, 2), f32(1, 2), EXACT).verdict is Verdict.EQUAL
    nan = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert measure(nan, f32(np.nan), EXACT).verdict is Verdict.EQUAL
    found = measure(f32(0.0, 1), f32(-0.0, 1), EXACT)
    assert (found.verdict, found.mismatched, found.max_ulp) == (Verdict.CLOSE, 0, 0)
    assert found.worst is not None
    assert found.worst.index == (0,)


def test_a_mismatch_says_where_and_how_much() -> None:
    expected = floats(2, 3)
    got = expected.copy()
    got[1, 2], got[0, 1] = 9, 0.5 + 2**-20
    found = measure(got, expected, Tolerance(0, 1e-3))
    assert (found.verdict, found.elements, found.mismatched) == (Verdict.MISMATCH, 6, 1)
    assert found.worst is not None
    assert (found.worst.index, found.worst.got, found.worst.expected) == ((1, 2), 9.0, 1.5)
    assert (found.max_abs, found.max_rel) == (7.5, 5.0)
    assert found.tolerance == Tolerance(0, 1e-3)
    assert measure(got, expected, Tolerance(7.5, 0)).verdict is Verdict.CLOSE
    assert measure(got, expected, Tolerance(0, 5)).verdict is Verdict.CLOSE
    assert measure(got, expected, Tolerance(7.4, 0)).verdict is Verdict.MISMATCH


def test_ulps() -> None:
    assert measure(np.nextafter(f32(1), f32(2)), f32(1), EXACT).max_ulp == 1
    assert measure(f32(-1e-45), f32(1e-45), EXACT).max_ulp == 2
    assert measure(f32(np.inf), f32(1), EXACT).max_ulp == 2**63 - 1
    far = measure(np.array([-1.7e308]), np.array([1.7e308]), EXACT).max_ulp
    assert 2**62 < far < 2**63
    one = np.array([1], ml_dtypes.bfloat16)
    assert measure(np.array([1.0078125], ml_dtypes.bfloat16), one, EXACT).max_ulp == 1
    powers = np.array([2.0**-100, 2.0**100], ml_dtypes.float8_e8m0fnu)
    assert measure(powers[:1], powers[1:], EXACT).max_ulp == 200


def test_nan_and_infinity() -> None:
    found = measure(f32(1, np.inf, np.nan, np.nan), f32(np.nan, np.inf, np.nan, 1), Tolerance(9, 9))
    assert (found.verdict, found.mismatched) == (Verdict.MISMATCH, 2)
    assert (found.nans, found.infinities) == ((2, 2), (1, 1))
    assert found.max_abs == np.inf
    assert measure(f32(3e38), f32(np.inf), Tolerance(0, 1e30)).verdict is Verdict.MISMATCH
    assert measure(f32(np.inf), f32(-np.inf), EXACT).max_abs == np.inf


def test_whole_numbers_of_64_bits() -> None:
    found = measure(np.array([2**53 + 1, 5]), np.array([2**53, 5]), EXACT)
    assert (found.verdict, found.max_abs, found.max_ulp) == (Verdict.MISMATCH, 1, 1)
    least, greatest = np.array([-(2**63)]), np.array([2**63 - 1])
    assert measure(least, greatest, EXACT).max_abs == 2.0**64
    assert measure(least, greatest, EXACT).max_ulp == 2**63 - 1
    unsigned = measure(np.array([0], np.uint64), np.array([2**64 - 1], np.uint64), EXACT)
    assert unsigned.worst is not None
    assert unsigned.worst.expected == 2**64 - 1


@pytest.mark.parametrize("name", SHORT)
def test_short_floats(name: str) -> None:
    type = np.dtype(getattr(ml_dtypes, name))
    got, expected = np.array([1, 2, 4]).astype(type), np.array([1, 4, 4]).astype(type)
    found = measure(got, expected, EXACT)
    assert (found.verdict, found.mismatched, found.max_abs) == (Verdict.MISMATCH, 1, 2)
    assert found.worst is not None
    assert (found.worst.got, found.worst.expected) == (2.0, 4.0)
    assert measure(expected, expected.copy(), EXACT).verdict is Verdict.EQUAL


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_whole_numbers_of_4_bits(name: str) -> None:
    type = np.dtype(getattr(ml_dtypes, name))
    found = measure(np.array([1, 7]).astype(type), np.array([1, 5]).astype(type), EXACT)
    assert found.worst is not None
    assert (found.verdict, found.max_abs, found.worst.got) == (Verdict.MISMATCH, 2, 7)
    assert isinstance(found.worst.got, int)


def test_booleans_complex_numbers_and_strings() -> None:
    assert measure(np.array([True]), np.array([False]), EXACT).max_abs == 1
    found = measure(np.array([3 + 4j, 1]), np.array([0j, 1]), EXACT)
    assert (found.verdict, found.mismatched, found.max_abs) == (Verdict.MISMATCH, 1, 5)
    texts = np.array(["a", "\0"], object), np.array(["a", ""], object)
    found = measure(*texts, EXACT)
    assert found.worst is not None
    assert (found.mismatched, found.worst.index, found.worst.got) == (1, (1,), "\0")
    assert measure(texts[0], texts[0].copy(), EXACT).verdict is Verdict.EQUAL


def test_another_shape_or_type_is_a_mismatch_of_everything() -> None:
    found = measure(floats(2, 3), floats(3, 2), Tolerance(9, 9))
    assert (found.verdict, found.mismatched) == (Verdict.MISMATCH, 6)
    assert found.remark == "is float32 [2, 3], expected float32 [3, 2]"
    assert measure(floats(2), np.ones(2), EXACT).remark == "is float32 [2], expected float64 [2]"


def test_nothing_to_compare() -> None:
    assert measure(floats(0, 3), floats(0, 3), EXACT).verdict is Verdict.EQUAL
    assert measure(np.array(1.5), np.array(1.5), EXACT).verdict is Verdict.EQUAL
    found = measure(np.array(1.5), np.array(2.5), EXACT)
    assert found.worst is not None
    assert found.worst.index == ()


def test_contested_elements_are_not_compared() -> None:
    allowed = np.array([True, False, False])
    found = measure(f32(9, 1, 2), f32(1, 1, 2), EXACT, contested=allowed)
    assert (found.verdict, found.contested, found.mismatched) == (Verdict.CONTESTED, 1, 0)
    assert measure(f32(9, 1, 3), f32(1, 1, 2), EXACT, contested=allowed).verdict is Verdict.MISMATCH


def test_what_rounding_may_do_is_allowed_for_each_element() -> None:
    bound = np.array([0, 1.0, np.inf])
    assert measure(f32(1, 3, 9), f32(1, 2, np.inf), EXACT, bound=bound).verdict is Verdict.CLOSE
    assert measure(f32(1.5, 3, 9), f32(1, 2, 0), EXACT, bound=bound).mismatched == 1


@given(
    arrays.arrays(np.float32, 4, elements=st.floats(width=32)),
    arrays.arrays(np.float32, 4, elements=st.floats(width=32)),
)
def test_the_required_tolerance_is_enough(got: Array, expected: Array) -> None:
    found = measure(got, expected, EXACT)
    assert are_equal(got, expected) is (found.verdict is Verdict.EQUAL)
    if np.isfinite(found.max_abs):
        assert measure(got, expected, Tolerance(found.max_abs, 0)).verdict is not Verdict.MISMATCH
        if found.max_abs:
            less = np.nextafter(found.max_abs, 0)
            assert measure(got, expected, Tolerance(less, 0)).verdict is Verdict.MISMATCH
