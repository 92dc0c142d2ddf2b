"""Arrays of any memory layout, lists and text."""

from typing import Any

import numpy as np
import pytest

from ir_scatter import IllegalCase, evaluate

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


def strided(array: Array) -> Array:
    wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def backwards(array: Array) -> Array:
    return np.ascontiguousarray(array[..., ::-1])[..., ::-1]


def unaligned(array: Array) -> Array:
    room = np.zeros(array.nbytes + 1, np.uint8)
    room[1:] = np.frombuffer(array.tobytes(), np.uint8)
    return room[1:].view(array.dtype).reshape(array.shape)


def read_only(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def swapped(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder(">"))


@pytest.mark.parametrize("form", [strided, backwards, unaligned, read_only, swapped, np.asfortranarray])
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
    rows: dict[str, Any] = {
        "data": form(data),
        "indices": form(indices[0, :5, :1] % 3),
        "updates": form(updates[0, :5, None] + data[:1]),
    }
    plain: dict[str, Any] = {
        "data": data,
        "indices": indices[0, :5, :1] % 3,
        "updates": updates[0, :5, None] + data[:1],
    }
    word = {"sum": "add", "mean": "max"}.get(reduction, "none")
    assert np.array_equal(
        evaluate("ScatterND-18", **rows, reduction=word), evaluate("ScatterND-18", **plain, reduction=word)
    )


def test_text_keeps_its_length() -> None:
    found = evaluate("ScatterElements-18", data=np.array(["a", "b"]), indices=[1], updates=["long"])
    assert found.tolist() == ["a", "long"]
    objects = np.array(["a", "b"], object)
    found = evaluate("ScatterND-18", data=objects, indices=[[0]], updates=np.array(["long"]))
    assert found.tolist() == ["long", "b"]
    assert found.dtype == object
