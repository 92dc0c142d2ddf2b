"""Ranges and repetitions of indices against loops written from the text."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter.core.shapes import Bounds
from ir_scatter.ops import index_values
from ir_scatter.ops.index_values import BadIndices, Repeats
from ir_scatter.ops.spec import Layout

Array = npt.NDArray[Any]
Limits = Sequence[int | None]


def naive(indices: Array, limits: Limits, is_bad: Callable[[int, int | None], bool]) -> BadIndices | None:
    """Look at every number: the last axis runs over the limits if there is more than one."""
    found = []
    for flat, position in enumerate(np.ndindex(indices.shape)):
        size, value = limits[flat % len(limits)], int(indices[position])
        if is_bad(value, size):
            low, high = (-(2**63), 2**63 - 1) if size is None else (-size, size - 1)
            found.append((position, value, low, high))
    return BadIndices(len(found), *found[0]) if found else None


def demand_like_loop(indices: Array, limits: Limits) -> BadIndices | None:
    found = index_values.out_of_range(indices, limits)
    assert found == naive(indices, limits, lambda v, size: size is not None and not -size <= v < size)
    expected = naive(indices, limits, lambda v, size: v < 0 and (size is None or v >= -size))
    assert index_values.negative(indices, limits) == expected
    return found


def naive_repeats(
    layout: Layout, axis: int, indices: Array, limits: Limits, wraps: bool = True
) -> Repeats | None:
    shape = indices.shape[:-1] if layout is Layout.TUPLES else indices.shape
    seen: dict[tuple[int, ...], tuple[int, ...]] = {}
    repeated = []
    for position in np.ndindex(shape):
        numbers = zip(np.atleast_1d(indices[position]).tolist(), limits, strict=True)
        target = tuple(n + size if wraps and n < 0 and size is not None else n for n, size in numbers)
        if layout is Layout.ELEMENTS:
            target = (*position[:axis], *target, *position[axis + 1 :])
        if target in seen:
            repeated.append((position, seen[target]))
        seen.setdefault(target, position)
    return Repeats(len(repeated), int(np.prod(shape)), *repeated[0]) if repeated else None


def arrays(low: int, high: int, shapes: Any, dtypes: Sequence[str] = ("int64", "int32", "int8")) -> Any:
    def fill(shape: tuple[int, ...]) -> Any:
        count = int(np.prod(shape, dtype=int))
        numbers = st.lists(st.integers(low, high), min_size=count, max_size=count)
        return st.tuples(numbers, st.sampled_from(dtypes)).map(
            lambda pair: np.array(pair[0], pair[1]).reshape(shape)
        )

    return shapes.flatmap(fill)


SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
SIZES = st.one_of(st.none(), st.integers(0, 5))


@given(arrays(-7, 7, SHAPES) | arrays(0, 255, SHAPES, ["uint8", "uint64", "uint16"]), SIZES)
def test_one_size(indices: Array, size: int | None) -> None:
    demand_like_loop(indices, [size])


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("uint64", [2**64 - 1, 0]),
        ("uint64", [2**63, 2**63 - 1]),
        ("int64", [-(2**63), 2**63 - 1]),
        ("int8", [-128, 127]),
        ("int8", [127, 0]),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 127, 128, 200, 2**31, 2**62])
def test_extreme_numbers(dtype: str, values: list[int], size: int) -> None:
    indices = np.array(values, dtype)
    demand_like_loop(indices, [size])
    assert index_values.repeats(Layout.SLICES, 0, indices, [size], wraps=True) is None


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
def test_numbers_that_are_far_apart_in_tuples(dtype: str) -> None:
    """A product of ranges too large to number must not be mistaken for a repetition."""
    top = int(np.iinfo(dtype).max)
    indices = np.array([[0, 0, 0], [top, top, top], [top, 0, top]], dtype)
    assert index_values.repeats(Layout.TUPLES, None, indices, [None] * 3, wraps=True) is None
    twice = np.array([[0, top], [top, 0], [0, top]], dtype)
    found = index_values.repeats(Layout.TUPLES, None, twice, [None, None], wraps=True)
    assert found in (None, Repeats(1, 3, (2,), (0,)))


@pytest.mark.parametrize("layout", [Layout.SLICES, Layout.ELEMENTS, Layout.TUPLES])
def test_a_small_world_as_a_whole(layout: Layout) -> None:
    """Every array of four numbers that count on a dimension of 2, and on one of 2 and 3."""
    for values in itertools.product(range(-3, 3), repeat=4):
        indices = np.array(values, "int64").reshape(2, 2)
        limits = [2, 3] if layout is Layout.TUPLES else [2]
        if demand_like_loop(indices, limits) is None:
            for axis, wraps in itertools.product((0, 1), (True, False)):
                found = index_values.repeats(layout, axis, indices, limits, wraps=wraps)
                assert found == naive_repeats(layout, axis, indices, limits, wraps)


def test_tuples_without_coordinates_all_name_the_same() -> None:
    empty = np.zeros((3, 0), "int64")
    assert index_values.repeats(Layout.TUPLES, None, empty, [], wraps=True) == Repeats(2, 3, (1,), (0,))
    assert index_values.repeats(Layout.TUPLES, None, empty[:1], [], wraps=True) is None
    assert index_values.out_of_range(empty, []) is None
    assert index_values.negative(empty, []) is None


def test_what_cannot_be_known() -> None:
    indices = np.array([-1, 4])
    assert index_values.repeats(Layout.SLICES, None, indices, [None], wraps=True) is None
    assert index_values.repeats(Layout.ELEMENTS, None, np.array([1, 1]), [None], wraps=True) is None
    assert index_values.repeats(Layout.SEQUENCE, 1, np.array([1, 1]), [5], wraps=True) is None
    both = index_values.repeats(Layout.SLICES, None, np.array([-1, -1]), [None], wraps=True)
    assert both == Repeats(1, 2, (1,), (0,))


@given(st.data())
def test_sizes(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    axis = data.draw(st.integers(0, len(shape) - 1))
    depth = data.draw(st.integers(0, len(shape)))
    indices, known = (2, depth), tuple(shape)
    for dims in (known, tuple(Bounds(0, dim) for dim in shape)):
        assert index_values.sizes(Layout.TUPLES, dims, None, indices) == shape[:depth]
        assert index_values.sizes(Layout.SLICES, dims, axis, indices) == [shape[axis]]
        assert index_values.sizes(Layout.ELEMENTS, dims, axis, indices) == [shape[axis]]
    assert index_values.sizes(Layout.TUPLES, None, None, indices) == [None] * depth
    assert index_values.sizes(Layout.SLICES, known, None, indices) == [None]
    assert index_values.sizes(Layout.SLICES, (Bounds(), Bounds(2)), 1, indices) == [None]
