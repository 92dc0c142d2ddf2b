"""What `evaluate_detailed` says beside the values."""

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter import IllegalIndex, UsageError, evaluate, evaluate_detailed
from tests.ops import naive_scatter
from tests.ops.scatter_cases import ROWS, Case, cases

Array = Any
every_row = pytest.mark.parametrize("operator", ROWS)


def hits_by_loop(case: Case) -> dict[tuple[int, ...], list[Any]]:
    default = {"axis": -2} if case.spec.key.type == "TensorScatter" else {}
    kept = {"data", "indices", "updates", "axis", "mode"}
    arguments = {name: value for name, value in (default | case.arguments()).items() if name in kept}
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
    is_none = case.attributes.get("reduction", "none") == "none"
    for position in naive_scatter.positions(case.data.shape):
        updates = by_loop.get(position, [])
        assert found.hits[position] == len(updates)
        assert found.contested[position] == (is_none and len(updates) > 1)
        values = updates if is_none and updates else [found.values[position]]
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
    detailed = evaluate_detailed(
        "ScatterElementsUpdate-12",
        data=values[:1],
        indices=np.zeros(count, np.int64),
        updates=values[1:],
        axis=0,
        reduction=word,
    )
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
    found = evaluate_detailed(
        "ScatterElementsUpdate-12",
        data=np.array(values[:1], np.float32),
        indices=[0, 0],
        updates=np.array(values[1:], np.float32),
        axis=0,
        reduction=word,
    )
    assert found.rounding_bound.tolist() == [np.inf]


@pytest.mark.parametrize("word", ["none", "min", "max"])
def test_nothing_is_rounded_without_arithmetic(word: str) -> None:
    found = evaluate_detailed(
        "ScatterElementsUpdate-12",
        data=[0.1, 0.2],
        indices=[1, 1],
        updates=[0.3, 0.4],
        axis=0,
        reduction=word,
    )
    assert found.rounding_bound.tolist() == [0, 0]


def test_integers_have_no_bound_and_untouched_elements_neither() -> None:
    arguments: dict[str, Any] = {"indices": [1], "axis": 0, "reduction": "sum"}
    whole = evaluate_detailed("ScatterElementsUpdate-12", data=[1, 2], updates=[3], **arguments)
    assert whole.rounding_bound.tolist() == [0, 0]
    floating = evaluate_detailed("ScatterElementsUpdate-12", data=[0.1, 0.2], updates=[0.3], **arguments)
    assert floating.rounding_bound[0] == 0 < floating.rounding_bound[1] < 1e-15
