import ml_dtypes
import numpy as np
import pytest

from ir_scatter.compare.tolerance import EXACT, Tolerance, Tolerances, coarser, default_tolerance
from ir_scatter.core.errors import UsageError
from tests.compare.models import floats


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
    with pytest.raises(UsageError, match="is no tolerance, expected OUTPUT=ABSOLUTE,RELATIVE"):
        Tolerances([text])


def test_whole_numbers_must_be_equal() -> None:
    for array in (np.arange(3), np.array([True]), np.array(["a"], object), np.zeros(1, ml_dtypes.int4)):
        for is_node in (True, False):
            assert default_tolerance(array, "f16", is_node=is_node) == EXACT


def test_a_node_moves_elements_and_a_coarser_precision_rounds_each() -> None:
    found = default_tolerance(floats(3), "f32", is_node=True)
    assert found.relative == 0
    assert 0 < found.absolute < 1.2e-38
    half, short = np.ones(3, np.float16), np.ones(3, ml_dtypes.bfloat16)
    assert default_tolerance(half, "f32", is_node=True) == Tolerance(2.0**-24, 0)
    for array, precision, relative in (
        (floats(3), "f16", 2.0**-10), (floats(3), "bf16", 2.0**-7), (half, "bf16", 2.0**-7), (short, "f16", 0),
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
    assert coarser("f32", "bf16", "f16") == "bf16"
    assert coarser("model", "f32") == "f32"
    assert coarser("model") == "model"
