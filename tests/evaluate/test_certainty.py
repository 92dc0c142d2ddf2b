"""What `evaluate_detailed` says beside the values."""

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter import IllegalIndex, UsageError, evaluate, evaluate_detailed
from ir_scatter.cases.case import Case
from ir_scatter.compare.measure import Verdict, measure_node
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.ops.spec import Reduction
from tests.ops import naive_scatter
from tests.ops.scatter_cases import ROWS, cases

Array = Any
every_row = pytest.mark.parametrize("operator", ROWS)


def reduced(data: Any, indices: Any, updates: Any, reduction: str, **more: Any) -> DetailedResult:
    given: dict[str, Any] = {"data": data, "indices": indices, "updates": updates, "axis": 0, **more}
    return evaluate_detailed("ScatterElementsUpdate-12", **given, reduction=reduction)


def summed(values: Array, reduction: str = "sum") -> DetailedResult:
    """Join all values into one element, the first of them being there."""
    return reduced(values[:1], np.zeros(len(values) - 1, np.int64), values[1:], reduction)


def hits_by_loop(case: Case) -> dict[tuple[int, ...], list[Any]]:
    kept = {"data", "indices", "updates", "axis", "mode"}
    arguments = {name: value for name, value in case.arguments().items() if name in kept}
    found: dict[tuple[int, ...], list[Any]] = {}
    for position, update in naive_scatter.hits(case.spec.key.type, **arguments):
        found.setdefault(position, []).append(update)
    return found


@every_row
@given(choice=st.data())
def test_hits_and_candidates_are_those_of_the_loop(operator: str, choice: st.DataObject) -> None:
    case = choice.draw(cases(ROWS[operator]))
    found, by_loop = evaluate_detailed(case.operator, **case.arguments()), hits_by_loop(case)
    plain = evaluate(case.operator, **case.arguments())
    assert found.values.tobytes() == plain.tobytes() or found.values.dtype == object
    reduction = case.attributes.get("reduction", "none")
    keeps_old = case.attributes.get("use_init_val", True)
    for position in naive_scatter.positions(case.data.shape):
        updates = by_loop.get(position, [])
        meeting = [*([case.data[position]] if keeps_old else []), *updates] if updates else []
        has_nan = len({bool(value != value) for value in meeting}) == 2
        differ = len({update if isinstance(update, str) else update.tobytes() for update in updates}) > 1
        is_open = differ if reduction == "none" else reduction in {"min", "max"} and has_nan
        assert found.hits[position] == len(updates)
        assert found.contested[position] == is_open
        values = updates if reduction == "none" and updates else [found.values[position]]
        values = meeting if is_open and reduction != "none" else values
        expected = np.array(values, case.data.dtype)
        assert found.candidates(position).dtype == case.data.dtype
        if case.data.dtype == object:
            assert found.candidates(position).tolist() == expected.tolist()
        else:
            assert found.candidates(position).tobytes() == expected.tobytes()
    for array in (found.hits, found.contested, found.rounding_bound):
        assert array.shape == case.data.shape


def test_a_position_may_count_from_the_end_but_must_exist() -> None:
    found = evaluate_detailed("ScatterUpdate-3", data=[1.0, 2.0], indices=[1, 1], updates=[3.0, 4.0], axis=0)
    assert found.candidates([-1]).tolist() == [3, 4]
    assert found.candidates([0]).tolist() == [1]
    for position in ([2], [-3], [], [0, 0]):
        with pytest.raises(UsageError, match="expected one of data"):
            found.candidates(position)


def test_it_refuses_what_evaluate_refuses() -> None:
    with pytest.raises(IllegalIndex):
        evaluate_detailed("ScatterUpdate-3", data=[1.0, 2.0], indices=[2], updates=[3.0], axis=0)


def exact(word: str, values: list[Any]) -> Fraction:
    numbers = [Fraction(float(value)) for value in values]
    if word in {"sum", "mean"}:
        return sum(numbers, Fraction(0)) / (len(numbers) if word == "mean" else 1)
    product = Fraction(1)
    for number in numbers:
        product *= number
    return product


@pytest.mark.parametrize(
    "kind", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
)
@pytest.mark.parametrize("word", ["sum", "mean", "prod"])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 12), spread=st.integers(0, 4))
def test_no_order_is_further_from_exact_than_the_bound(
    kind: Any, word: str, seed: int, count: int, spread: int
) -> None:
    generator = np.random.default_rng(seed)
    factors = 10.0 ** generator.uniform(-spread, spread, count + 1)
    values = (generator.standard_normal(count + 1) * factors).astype(kind)
    if not np.isfinite(values.astype(np.float64)).all():
        return
    detailed = summed(values, word)
    bound = float(detailed.rounding_bound[0])
    right = exact(word, list(values))
    results = [float(detailed.values[0])]
    for _ in range(5):
        generator.shuffle(values)
        results.append(float(in_own_type(word, values)))
    for result in results:
        if np.isfinite(bound):
            assert abs(Fraction(result) - right) <= Fraction(bound), (result, float(right), bound)


def in_own_type(word: str, values: Array) -> Any:
    number = values.dtype.type
    result = values[0]
    with np.errstate(all="ignore"):
        for value in values[1:]:
            result = number(result * value) if word == "prod" else number(result + value)
        return number(result / number(len(values))) if word == "mean" else result


@pytest.mark.parametrize(("values", "word"), [([3e38, 3e38, -3e38], "sum"), ([1e30, 1e30, 1e-30], "prod")])
def test_the_bound_is_infinite_where_only_some_order_overflows(values: list[float], word: str) -> None:
    assert summed(np.array(values, np.float32), word).rounding_bound.tolist() == [np.inf]


def test_nothing_is_rounded_without_arithmetic_nor_in_integers_nor_where_nothing_hits() -> None:
    for word in ("none", "min", "max"):
        assert reduced([0.1, 0.2], [1, 1], [0.3, 0.4], word).rounding_bound.tolist() == [0, 0]
    assert reduced([1, 2], [1], [3], "sum").rounding_bound.tolist() == [0, 0]
    floating = reduced([0.1, 0.2], [1], [0.3], "sum")
    assert floating.rounding_bound[0] == 0 < floating.rounding_bound[1] < 1e-15


@pytest.mark.parametrize("reduction", ["sum", "mean", "prod"])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_bound_is_never_nan(reduction: str, odd: float) -> None:
    for kind in (np.float64, np.float32, np.float16, np.complex64):
        if (reduction, kind) == ("mean", np.complex64):
            continue
        operator: Any = "ScatterElementsUpdate-12" if kind is not np.complex64 else "ScatterElements-18"
        word = {"sum": "add", "prod": "mul"}.get(reduction, reduction) if kind is np.complex64 else reduction
        found = evaluate_detailed(
            operator,
            data=np.array([odd, 0, 1, np.nan], kind),
            indices=[0, 1, 1, 2, 2, 2],
            updates=np.array([1, odd, 0, odd, -odd, 3e4], kind),
            axis=0,
            reduction=word,
        )
        assert not np.isnan(found.rounding_bound).any()
        assert not np.isnan(found.bound_from_values(8.0)).any()


@pytest.mark.parametrize(
    ("kind", "most"),
    [(np.float64, 2**53), (np.float32, 2**24), (np.float16, 2**11), (ml_dtypes.bfloat16, 2**8)],
)
@pytest.mark.parametrize("power", [-3, 0, 4])
def test_sums_of_whole_numbers_are_exact_as_long_as_they_fit(kind: Any, most: int, power: int) -> None:
    one = 2.0**power
    fits = np.array([most - 8, -5, 7], np.float64) * one
    assert summed(fits.astype(kind)).rounding_bound.tolist() == [0]
    grows = np.array([most - 4, 3, 7], np.float64) * one
    assert summed(grows.astype(kind)).rounding_bound[0] > 0
    assert summed(np.array([4, 2, 9], kind) * kind(one), "mean").rounding_bound.tolist() == [0]
    assert summed(np.array([4, 2, 8], kind) * kind(one), "mean").rounding_bound[0] > 0
    assert summed(np.array([3, -5, 4], kind), "prod").rounding_bound.tolist() == [0]


def test_errors_of_one_direction_add_up() -> None:
    """Each of the numbers is lost in another order, beside the great one, which is the last here."""
    found = summed(np.array([0.75] * 1000 + [2**24], np.float32))
    assert found.values[0] == 2**24 + 750
    assert 750 <= found.rounding_bound[0] < 1500


def test_what_rounding_loses_is_less_than_a_lost_update() -> None:
    generator = np.random.default_rng(5)
    values = generator.random(20_001).astype(np.float32)
    assert values[-20:].sum() > 8 * summed(values).rounding_bound[0]
    few = generator.random(65).astype(np.float16)
    assert few.max() > 2 * summed(few).rounding_bound[0]
    signed = generator.standard_normal(65).astype(np.float16)
    assert abs(signed).max() > 2 * summed(signed).rounding_bound[0]


@pytest.mark.parametrize("word", ["min", "max"])
def test_nan_leaves_open_which_value_stays(word: str) -> None:
    data, updates = [1.0, np.nan, np.nan, 4.0, np.nan], [np.nan, 7.0, 2.0, 5.0, np.nan]
    found = reduced(data, [0, 0, 1, 3, 4], updates, word)
    assert found.contested.tolist() == [True, True, False, False, False]
    assert found.candidates([0]).tolist()[::2] == [1, 7]
    assert np.isnan(found.candidates([1])[0])
    assert found.candidates([3]).tolist() == [4 if word == "min" else 5]
    assert found.allows(np.array([7.0, 2.0, 9, 9, 9])).tolist() == [True, True, False, False, False]
    assert found.allows(np.array([3.0, np.nan, 9, 9, 9])).tolist() == [False, True, False, False, False]
    without = reduced([1.0], [0, 0], [np.nan, 7.0], word, use_init_val=False)
    assert without.candidates([0]).tolist()[1:] == [7]


def test_candidates_of_text_of_any_width() -> None:
    text = np.dtypes.StringDType()
    data, updates = np.array(["a", "b", "c"], text), np.array(["x", "längerer Text"], text)
    found = evaluate_detailed("ScatterElements-18", data=data, indices=[0, 0], updates=updates)
    assert found.candidates([0]).tolist() == ["x", "längerer Text"]
    assert found.candidates([2]).tolist() == ["c"]
    assert found.candidates([2]).dtype == text


def cut(value: Any, kind: Any) -> Any:
    """Return what is left of a number when what its type does not hold is cut off."""
    found = np.asarray(value, np.float64).astype(kind)
    below = np.nextafter(found, kind(0)) if abs(float(found)) > abs(float(value)) else found
    return below[()] if below.ndim == 0 else below


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("word", ["sum", "mean", "prod"])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 24))
def test_a_short_type_may_be_cut_off_after_each_step(kind: Any, word: str, seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.uniform(-2, 2, count + 1).astype(kind)
    found = summed(values, word)
    result = values[0]
    for value in values[1:]:
        other = float(value)
        result = cut(float(result) * other if word == "prod" else float(result) + other, kind)
    if word == "mean":
        result = cut(float(result) / len(values), kind)
    assert abs(float(result) - float(found.values[0])) <= float(found.bound_from_values()[0])


def test_a_product_of_bf16_may_be_one_unit_off_and_not_two() -> None:
    kind = ml_dtypes.bfloat16
    found = summed(np.array([5.625, -3.75], kind), "prod")
    assert float(found.values[0]) == -21.125
    bound = float(found.bound_from_values()[0])
    assert abs(-21.0 + 21.125) <= bound < abs(-20.875 + 21.125)
    exact = summed(np.array([5.5, -3.0], kind), "prod")
    assert exact.bound_from_values().tolist() == [0]


@pytest.mark.parametrize(
    ("kind", "values", "word"),
    [(ml_dtypes.float8_e8m0fnu, [2.0, 2.0], "sub"), (ml_dtypes.float8_e4m3fn, [448.0, 448.0], "sum")],
)
def test_what_a_type_cannot_say_is_open(kind: Any, values: list[float], word: str) -> None:
    """No document says whether a number beyond a type without infinity becomes its greatest one, or NaN."""
    data, updates = np.array(values, kind)[:1], np.array(values, kind)[1:]
    given: dict[str, Any] = {"indices": np.zeros((1, 1), np.int64), "updates": updates, "reduction": word}
    found = evaluate_detailed("ScatterNDUpdate-15", data=data, **given)
    assert np.isnan(found.values.astype(np.float64)).all()
    for other in (found.values, data):
        assert measure_node(found, other, Reduction.SUM).verdict is not Verdict.MISMATCH
    nothing = evaluate_detailed("ScatterNDUpdate-15", data=np.array([np.nan], kind), **given)
    assert measure_node(nothing, data, Reduction.SUM).verdict is Verdict.MISMATCH


PAYLOADS = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("updates", "is_open"),
    [
        ([7.0, 7.0], False),
        ([7.0, 8.0], True),
        ([0.0, -0.0], True),
        ([np.inf, np.inf], False),
        ([np.nan, np.nan], False),
        (PAYLOADS, True),
        ([1 + 2j, 1 + 2j], False),
        (["a", "a"], False),
        (["a", "b"], True),
        (np.ones(2, ml_dtypes.bfloat16), False),
        (np.ones(2, ml_dtypes.int4), False),
    ],
)
def test_equal_updates_leave_nothing_open(updates: Any, is_open: bool) -> None:
    """Whichever of them stays, it is the same: two updates are equal if their bits are."""
    array = np.array(updates, object) if isinstance(updates[0], str) else np.asarray(updates)
    data = np.array(["x", "y"], object) if array.dtype == object else np.zeros(2, array.dtype)
    is_onnx = array.dtype == object or array.dtype.kind == "c"
    given: dict[str, Any] = {"data": data, "indices": [1, 1], "updates": array, "axis": 0}
    found = evaluate_detailed("ScatterElements-18" if is_onnx else "ScatterElementsUpdate-12", **given)
    assert found.hits.tolist() == [0, 2]
    assert found.contested.tolist() == [False, is_open]
    assert len(found.candidates([1])) == 2
