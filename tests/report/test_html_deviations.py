import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ir_scatter.compare.measure import Tolerance
from ir_scatter.compare.result import Comparison
from ir_scatter.report.comparison_html import difference
from ir_scatter.report.comparison_html.difference import DifferingElement
from ir_scatter.report.comparison_html.pictures import TensorSlice
from ir_scatter.report.comparison_text import text
from tests.report.comparisons import compared, of_node, page_text, parse_page

EXTREMES = {"int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1), "int8": (-128, 127), "bool": (0, 1)}


def differences(got: Any, expected: Any) -> Any:
    return difference.differences(of_node("n", got, expected))


def worst_elements(one: Comparison) -> list[DifferingElement]:
    found = difference.differences(one)
    assert found is not None
    return difference.worst_elements(one, found)


def worst_slice(one: Comparison) -> TensorSlice | None:
    found = difference.differences(one)
    assert found is not None
    return difference.worst_slice(one, found)


@pytest.mark.parametrize("name", EXTREMES)
def test_differences_of_whole_numbers_do_not_overflow(name: str) -> None:
    least, most = EXTREMES[name]
    left = np.array([most, least, most], name)
    right = np.array([least, most, most], name)
    assert differences(left, right).tolist() == [float(most - least), float(least - most), 0.0]


def test_what_is_not_finite_has_no_difference() -> None:
    nan, inf = np.nan, np.inf
    got = np.array([nan, inf, nan, inf, -inf, 1.0, 3e38], np.float32)
    expected = np.array([nan, inf, 1.0, 1.0, inf, nan, -3e38], np.float32)
    found = differences(got, expected)
    assert found[:2].tolist() == [0.0, 0.0]
    assert np.isnan(found[2:6]).all()
    assert found[6] == pytest.approx(6e38)


def test_strings_and_complex_numbers() -> None:
    assert differences(np.array(["a", "b"], object), np.array(["a", "c"], object)).tolist() == [0.0, 1.0]
    assert differences(np.array([3 + 4j]), np.array([0j])).tolist() == [5.0]


SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=6)


@given(SHAPES.flatmap(lambda shape: st.tuples(*[arrays.arrays(np.int16, shape)] * 2)))
def test_the_worst_elements_are_the_worst(pair: tuple[Any, Any]) -> None:
    got, expected = pair
    one = of_node("n", got, expected)
    found = worst_elements(one)
    distance = np.abs(got.astype(np.int64) - expected.astype(np.int64))
    assert [abs(element.difference) for element in found] == sorted(distance[distance > 0], reverse=True)[:10]
    assert len({element.position for element in found}) == len(found)
    for at, left, right, apart in found:
        assert (left, right, apart) == (got[at], expected[at], left - right)
    if found:
        assert one.measure.worst is not None
        assert found[0].position == one.measure.worst.index


def test_what_counts_for_nothing_is_not_the_worst() -> None:
    expected = np.array([1e6, 1e-3, 5.0])
    got = np.array([1e6 + 10, 2e-3, 5.0])
    one = of_node("n", got, expected, tolerance=Tolerance(0.0, 1e-3))
    assert [element.position for element in worst_elements(one)] == [(1,)]
    assert worst_elements(of_node("n", got, got)) == []
    left_open = np.array([100, 0, 2, 1], np.int32)
    one = of_node("n", left_open, 0 * left_open, contested=left_open == 100)
    assert [element.position for element in worst_elements(one)] == [(2,), (3,)]


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_a_large_slice_keeps_every_difference(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = np.zeros((2, rows, columns), np.int32)
    got = expected.copy()
    for _ in range(4):
        got[rng.integers(2), rng.integers(rows), rng.integers(columns)] = rng.integers(-9, 10)
    one = of_node("n", got, expected)
    found = worst_slice(one)
    if one.measure.worst is None:
        assert found is None
        return
    assert found is not None
    assert max(found.cells.shape) <= 96
    assert found.cells[found.worst] == got[one.measure.worst.index]
    plane = np.abs(got[one.measure.worst.index[0]])
    if min(rows, columns) > 1:
        for place, value in np.ndenumerate(plane):
            cell = found.cells[place[0] // found.spans[0], place[1] // found.spans[1]]
            assert abs(cell) >= value
        assert np.count_nonzero(found.cells) <= np.count_nonzero(plane)


def test_a_line_is_wrapped() -> None:
    expected = np.zeros((1, 1000, 1))
    got = expected.copy()
    got[0, 777, 0] = -3.0
    found = worst_slice(of_node("n", got, expected))
    assert found is not None
    assert (found.label, found.axes, found.spans) == ("[0, :, 0]", (None, 1), (48, 1))
    assert found.worst == divmod(777, 48)
    assert found.cells[found.worst] == -3.0
    assert found.cells.size - found.blank == 1000


def test_the_slice_is_that_of_the_worst_element() -> None:
    expected = np.zeros((3, 1, 4, 1, 5))
    got = expected.copy()
    got[1, 0, 2, 0, 3] = 1.0
    got[2, 0, 0, 0, 0] = np.nan
    found = worst_slice(of_node("n", got, expected))
    assert found is not None
    assert (found.label, found.axes, found.worst) == ("[2, 0, :, 0, :]", (2, 4), (0, 0))
    assert np.isnan(found.cells[0, 0])
    assert np.count_nonzero(found.cells) == 1


def changed(array: Any) -> Any:
    """Return a copy whose last element is another."""
    found = array.copy()
    last = found.reshape(-1)[-1:]
    if array.dtype.kind in "OUST":
        last[:] = "other"
    else:
        last[:] = ~last if array.dtype.kind == "b" else last + np.ones(1, array.dtype)
    return found


NAMES = [
    "bool", "int8", "uint64", "float16", "float32", "float64", "complex64",
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, object,
]  # fmt: skip
SIZES = [(), (1,), (7,), (3, 4), (2,) * 10, (1, 1, 1), (200, 300)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("dtype", NAMES, ids=lambda dtype: np.dtype(dtype).name)
def test_every_type_and_rank_has_its_difference(dtype: Any, shape: tuple[int, ...]) -> None:
    expected = np.full(shape, "text", object) if dtype is object else np.ones(shape, dtype)
    found = of_node("n", changed(expected), expected, tolerance=Tolerance())
    assert found.measure.verdict.is_difference
    (one,) = parse_page(page_text((compared(found),))).iter("article")
    (table,) = one.find_class("numbers")
    assert len(list(table.iter("tr"))) == 2
    index = ", ".join(str(size - 1) for size in shape)
    assert table.findtext(".//tbody//th") == f"[{index}]"
    assert pictures(one) == ["Heat"] * (expected.size > 1)  # a handful of errors is no distribution


def pictures(article: Any) -> list[str]:
    return [svg.get("aria-label").split()[0] for svg in article.iter("svg")]


@pytest.mark.parametrize("dtype", NAMES, ids=lambda dtype: np.dtype(dtype).name)
def test_many_errors_have_a_histogram(dtype: Any) -> None:
    expected = np.full((5, 6), "text", object) if dtype is object else np.ones((5, 6), dtype)
    got = ~expected if dtype == "bool" else expected + expected
    (one,) = parse_page(page_text((compared(of_node("n", got, expected)),))).iter("article")
    assert pictures(one) == ["Histogram"] * (dtype not in {"bool", object}) + ["Heat"]


@pytest.mark.parametrize("shape", [(2, 2), (3, 50), (50, 3), (7,), (90,), (96, 96), (200, 4)], ids=str)
def test_a_heat_map_is_as_wide_as_its_card(shape: tuple[int, ...]) -> None:
    expected = np.zeros(shape, np.float32)
    (svg,) = parse_page(page_text((compared(of_node("n", changed(expected), expected)),))).iter("svg")
    width, height = map(float, svg.get("viewbox").split()[2:])
    first = svg.find("image")
    assert float(first.get("x")) + float(first.get("width")) > 0.75 * width
    assert height < 300


def test_units_in_the_last_place_are_a_number_where_the_text_has_one() -> None:
    least, most = EXTREMES["int64"]
    cases = [
        (np.array([least, 0]), np.array([most, 0])),
        (np.array([1.0, 2.0], np.float32), np.array([-1e30, 2.0], np.float32)),
        (np.array([1e300]), np.array([-1e300])),
        (np.array([np.nan, 2.0]), np.array([1.0, 2.0])),
        (np.array([1.0]), np.array([0.0])),
    ]
    for got, expected in cases:
        found = compared(of_node("n", got, expected))
        page = " ".join(parse_page(page_text((found,))).find_class("facts")[0].itertext())
        assert "∞" not in page
        has_number = re.search(r"\((\d+) ulp\)", text(found))
        shown = re.search(r"Required ULP\s+([\d,]+)", page)
        assert (has_number is None) == (shown is None)
        if has_number and shown:
            assert has_number[1] == shown[1].replace(",", "")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [
    [np.nan, 0.0], [np.inf, 1.0], [-np.inf, np.inf], [5e-324, 0.0], [1.7e308, -1.7e308], [1e300, 1e-300],
    [0.0, -0.0],
])  # fmt: skip
def test_extreme_values_can_be_drawn(values: list[float]) -> None:
    expected = np.array([[1.0, 2.0], [3.0, values[1]]])
    got = np.array([[1.0, 2.0], [3.0, values[0]]])
    text = page_text((compared(of_node("n", got, expected, tolerance=Tolerance(0.0, 0.0))),))
    assert ("<article" in text) == (values[0] != 0.0)
    assert len(text) < 100_000


def test_an_empty_tensor_has_no_elements() -> None:
    assert differences(np.zeros((0, 3)), np.zeros((0, 3))) is None
    assert differences(np.zeros((0, 3)), np.zeros((0, 4))) is None


def test_a_page_with_a_large_tensor_is_small() -> None:
    rng = np.random.default_rng(0)
    expected = rng.normal(size=(3, 1000, 1000)).astype(np.float32)
    got = expected + rng.normal(size=expected.shape).astype(np.float32)
    assert len(page_text((compared(of_node("y", got, expected)),))) < 150_000
