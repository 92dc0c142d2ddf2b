"""Arrays of any memory layout, lists and text."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ir_scatter import IllegalCase, UsageError, evaluate, evaluate_detailed
from tests.ops.strange_arrays import FORMS

Array = Any


def test_lists_take_the_type_of_data() -> None:
    data = np.zeros(3, np.float16)
    assert evaluate("ScatterUpdate-3", data=data, indices=[1], updates=[2], axis=0).dtype == np.float16
    small = np.zeros(3, np.uint8)
    with pytest.raises(IllegalCase, match="updates is i64, expected u8 like data"):
        evaluate("ScatterUpdate-3", data=small, indices=[1], updates=[300], axis=0)
    with pytest.raises(IllegalCase, match="updates is f64, expected u8 like data"):
        evaluate("ScatterUpdate-3", data=small, indices=[1], updates=[1.5], axis=0)
    assert evaluate("ScatterUpdate-3", data=data, indices=[], updates=[], axis=0).tolist() == [0, 0, 0]


def backwards(array: Array) -> Array:
    return np.ascontiguousarray(array[..., ::-1])[..., ::-1]


@pytest.mark.parametrize("form", [*FORMS.values(), backwards, np.asfortranarray])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_memory_may_lie_in_any_way(form: Any, reduction: str) -> None:
    generator = np.random.default_rng(5)
    data = generator.standard_normal((3, 4, 40)).astype(np.float32)
    updates = generator.standard_normal((3, 6, 40)).astype(np.float32)
    indices = generator.integers(-4, 4, updates.shape)
    expected = evaluate(
        "ScatterElementsUpdate-12", data=data, indices=indices, updates=updates, axis=1, reduction=reduction
    )
    given: dict[str, Any] = {"data": form(data), "indices": form(indices), "updates": form(updates)}
    found = evaluate("ScatterElementsUpdate-12", **given, axis=1, reduction=reduction)
    assert np.array_equal(found, expected)
    assert found.dtype == given["data"].dtype
    plain = (data, indices[0, :5, :1] % 3, updates[0, :5, None] + data[:1])
    word = {"sum": "add", "mean": "max"}.get(reduction, "none")
    rows, expected = (
        evaluate("ScatterND-18", **dict(zip(given, parts, strict=True)), reduction=word)
        for parts in (map(form, plain), plain)
    )
    assert np.array_equal(rows, expected)


def test_text_keeps_its_length() -> None:
    found = evaluate("ScatterElements-18", data=np.array(["a", "b"]), indices=[1], updates=["long"])
    assert found.tolist() == ["a", "long"]
    objects = np.array(["a", "b"], object)
    found = evaluate("ScatterND-18", data=objects, indices=[[0]], updates=np.array(["long"]))
    assert found.tolist() == ["long", "b"]
    assert found.dtype == object


@pytest.mark.parametrize("order", ["strange", "plain"])
@pytest.mark.long
def test_no_array_spoils_what_is_known_of_its_type(order: str) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.ops.strange_first", order]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200, check=False)
    count, *wrong = done.stdout.split("\n")
    assert done.returncode == 0, done.stderr
    assert [line for line in wrong if line] == []
    assert int(count) > 500


@pytest.mark.parametrize("kind", [np.uint64, np.uint32, np.int64, np.int32, np.float64, np.float32])
def test_lists_change_no_number_on_the_way(kind: Any) -> None:
    """Whatever is not what it was is refused, at 64 bits as at 32."""
    for number in (-(2**63), -1, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1):
        given: dict[str, Any] = {"data": np.zeros(2, kind), "indices": [0], "updates": [number], "axis": 0}
        fits = Fraction(number) == _as(kind, number)
        if fits:
            assert int(evaluate("ScatterUpdate-3", **given)[0]) == number
            continue
        with pytest.raises(IllegalCase, match=r"updates is [iu]64, expected"):
            evaluate("ScatterUpdate-3", **given)


def _as(kind: Any, number: int) -> Fraction:
    if np.dtype(kind).kind == "f":
        return Fraction(float(kind(number)))
    limits = np.iinfo(kind)
    return Fraction(min(max(number, int(limits.min)), int(limits.max)))


@pytest.mark.parametrize("role", ["data", "indices", "updates", "axis"])
def test_whole_numbers_that_no_type_holds_are_refused(role: str) -> None:
    given: dict[str, Any] = {"data": np.zeros(2), "indices": [0, 1], "updates": [1.0, 2.0], "axis": 0}
    given[role] = [2**63 + 1, -1]
    with pytest.raises(IllegalCase, match=f"{role} holds -1 and 9223372036854775809, expected whole numbers"):
        evaluate("ScatterUpdate-3", **given)


def test_an_unknown_keyword_is_refused_whatever_its_value() -> None:
    given: dict[str, Any] = {"data": [1, 2], "indices": [0], "updates": [3], "axis": 0}
    for value in (None, 1, "a"):
        with pytest.raises(IllegalCase, match="attribute frobnicate is not documented"):
            evaluate("ScatterElementsUpdate-12", **given, frobnicate=value)  # type: ignore[arg-type]
    assert evaluate("ScatterElementsUpdate-12", **given, reduction=None, use_init_val=None).tolist() == [3, 2]


@pytest.mark.parametrize("updates", [[2**63 + 1, 0], [2**63, 0], [2**64 - 1, 2**63]])
def test_whole_numbers_that_one_type_holds_are_taken(updates: list[int]) -> None:
    found = evaluate("ScatterUpdate-3", data=np.zeros(2, np.uint64), indices=[0, 1], updates=updates, axis=0)
    assert found.tolist() == updates
    assert evaluate("ScatterUpdate-3", data=updates, indices=[0], updates=[1], axis=0).tolist() == [
        1,
        updates[1],
    ]


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (np.float16, 1e6), (np.float32, 1e300), (ml_dtypes.float8_e4m3fn, 1e4), (ml_dtypes.float8_e4m3fn, np.inf),
        (ml_dtypes.float8_e8m0fnu, -1.0), (ml_dtypes.float4_e2m1fn, np.nan),
    ],
)  # fmt: skip
def test_numbers_that_a_narrow_type_has_no_room_for_are_refused(kind: Any, number: float) -> None:
    with pytest.raises(IllegalCase, match="updates is f64, expected"):
        evaluate("ScatterUpdate-3", data=np.ones(1).astype(kind), indices=[0], updates=[number], axis=0)


def test_places_and_values_of_another_kind_are_refused() -> None:
    found = evaluate_detailed("ScatterElementsUpdate-12", data=[1.0, 2.0], indices=[0], updates=[3.0], axis=0)
    for position in ([0.5], ["0"], [None], 0):
        with pytest.raises(UsageError, match="position is"):
            found.candidates(position)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"values have shape \[3\], expected \[2\]"):
        found.allows(np.zeros(3))
    found.allows(found.values)[:] = True
    assert not found.contested.any()
    with pytest.raises(UsageError, match=r"axis has shape \[1, 1\], expected \[\] or \[1\]"):
        evaluate("ScatterElements-13", data=[1.0, 2.0], indices=[0], updates=[3.0], axis=[[0]])  # type: ignore[list-item]


@pytest.mark.parametrize("role", ["data", "indices", "updates"])
def test_masked_arrays_are_taken_only_if_nothing_is_masked(role: str) -> None:
    """What a mask hides would count as a number."""
    given: dict[str, Any] = {"data": np.zeros(3), "indices": np.array([1]), "updates": np.ones(1)}
    masked = np.ma.masked_array(given[role], np.arange(given[role].size) == 0)
    for array in (masked, [*masked[:0], masked]):
        with pytest.raises(
            UsageError, match=f"{role} cannot be read as an array: 1 of its elements are masked"
        ):
            evaluate("ScatterUpdate-3", **given | {role: array}, axis=0)
    plain = np.ma.masked_array(given[role])
    assert evaluate("ScatterUpdate-3", **given | {role: plain}, axis=0).tolist() == [0, 1, 0]


@pytest.mark.parametrize("role", ["data", "indices", "updates"])
def test_arrays_of_objects_that_are_numbers_are_refused(role: str) -> None:
    given: dict[str, Any] = {"data": np.zeros(3), "indices": np.array([1]), "updates": np.ones(1)}
    with pytest.raises(
        UsageError, match=f"{role} holds objects of type (int|float), expected numbers or text"
    ):
        evaluate("ScatterUpdate-3", **given | {role: given[role].astype(object)}, axis=0)
