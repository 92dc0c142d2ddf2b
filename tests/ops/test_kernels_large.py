"""Cases of many blocks, against the statement that NumPy has for them; and what they take of memory."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from ir_scatter import evaluate
from tests.scale import thinned

Array = Any
OVERHEAD = 4 << 20
"""Buffers of blocks, whatever the size of the case."""


def generator() -> np.random.Generator:
    return np.random.default_rng(11)


def factors(*shape: int) -> Array:
    """Make numbers whose products stay in range and whose order of summation matters."""
    return (1 + generator().standard_normal(shape) / 100).astype(np.float32)


def by_numpy(data: Array, places: Any, updates: Array, word: str) -> Array:
    output = data.copy()
    if word == "none":
        output[places] = updates
        return output
    {"add": np.add, "max": np.maximum}[word].at(output, places, updates)
    return output


@pytest.mark.parametrize("word", ["none", "add", "max"])
@pytest.mark.parametrize(
    ("shape", "part", "axis"),
    [
        ((300_000,), (200_000,), 0),
        ((7, 50, 301), (7, 90, 301), 1),
        ((3, 130_000), (3, 130_000), 1),
        ((5, 70_001), (3, 70_001), 0),
        ((70_001, 3), (90_000, 3), 0),
        ((40, 60, 50), (37, 41, 90), 2),
        ((40, 9, 60, 50), (40, 5, 90, 33), 2),
    ],
)
def test_elements(shape: tuple[int, ...], part: tuple[int, ...], axis: int, word: str) -> None:
    data, updates = factors(*shape), factors(*part)
    indices = generator().integers(-shape[axis], shape[axis], part)
    places = list(np.ogrid[tuple(map(slice, part))])
    places[axis] = indices
    expected = by_numpy(data, tuple(places), updates, word)
    given: dict[str, Any] = {"data": data, "indices": indices, "updates": updates, "axis": axis}
    assert np.array_equal(evaluate("ScatterElements-18", **given, reduction=word), expected)


@pytest.mark.parametrize("word", ["none", "add", "max"])
@pytest.mark.parametrize("targets", [1, 90, 4000])
@pytest.mark.parametrize("width", [1, 3, 40, 700])
def test_rows(width: int, targets: int, word: str) -> None:
    rows = 200_000 // width
    data, updates = factors(4000, width), factors(rows, width)
    indices = generator().integers(0, targets, (rows, 1))
    found = evaluate("ScatterND-18", data=data, indices=indices, updates=updates, reduction=word)
    assert np.array_equal(found, by_numpy(data, indices[:, 0], updates, word))


@pytest.mark.parametrize("word", ["none", "add"])
@pytest.mark.parametrize("depth", [0, 1])
def test_long_rows(depth: int, word: str) -> None:
    data = factors(2, 70_001)
    updates = factors(5, 2, 70_001) if depth == 0 else factors(5, 70_001)
    indices = np.array([[1], [0], [1], [1], [0]])[:, :depth]
    found = evaluate("ScatterND-18", data=data, indices=indices, updates=updates, reduction=word)
    expected = data.copy()
    for number, update in enumerate(updates):
        place = tuple(indices[number])
        expected[place] = update if word == "none" else expected[place] + update
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("count", [30, 300])
def test_slices_of_which_the_last_counts(axis: int, count: int) -> None:
    data = factors(60, 70, 80)
    updates = factors(*data.shape[:axis], count, *data.shape[axis + 1 :])
    indices = generator().integers(0, data.shape[axis], count)
    found = evaluate("ScatterUpdate-3", data=data, indices=indices, updates=updates, axis=axis)
    assert np.array_equal(found, by_numpy(data, (slice(None),) * axis + (indices,), updates, "none"))


@pytest.mark.parametrize(
    ("operator", "shape", "indices", "updates", "attributes"),
    [
        ("ScatterElements-18", (400, 3000), (400, 3000), (400, 3000), {"axis": 0, "reduction": "add"}),
        ("ScatterElements-18", (400, 3000), (400, 3000), (400, 3000), {"axis": 1}),
        ("ScatterElementsUpdate-12", (400, 3000), (400, 3000), (400, 3000), {"axis": 1, "reduction": "mean"}),
        ("ScatterND-18", (400, 3000), (900_000, 2), (900_000,), {"reduction": "max"}),
        ("ScatterND-18", (400, 30_000), (50, 1), (50, 30_000), {"reduction": "add"}),
        ("ScatterND-18", (20_000, 64), (20_000, 1), (20_000, 64), {"reduction": "add"}),
        ("ScatterND-18", (4_000_000,), (1, 0), (1, 4_000_000), {"reduction": "mul"}),
        ("ScatterUpdate-3", (1_000_000,), (900_000,), (900_000,), {"axis": 0}),
        ("ScatterUpdate-3", (3, 2_000_000), (5,), (5, 2_000_000), {"axis": 0}),
    ],
)
@pytest.mark.parametrize("kind", thinned([np.float32, np.float16], 2))
def test_memory_is_the_output_and_two_and_a_half_times_indices(
    operator: Any, shape: Any, indices: Any, updates: Any, attributes: dict[str, Any], kind: Any
) -> None:
    given: dict[str, Any] = {
        "data": np.ones(shape, kind),
        "indices": generator().integers(0, min(shape[0], 300), indices),
        "updates": np.ones(updates, kind),
    }
    if "ScatterUpdate" in operator and indices[0] < 10:
        given["indices"] = np.array([2, 0, 1, 1, 2])
    evaluate(operator, **given, **attributes)
    tracemalloc.start()
    output = evaluate(operator, **given, **attributes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= output.nbytes + 2.5 * 8 * given["indices"].size + OVERHEAD
