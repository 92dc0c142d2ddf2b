"""Partial shapes, against sets of whole numbers."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter.core.shapes import (
    LARGEST_DIM,
    Bounds,
    Dim,
    Shape,
    agree,
    at_most,
    concatenate,
    element_count,
    highest,
    lowest,
    narrow,
    parse_dim,
    parse_shape,
    show,
    show_dim,
    show_numbers,
    static,
)

WORLD = range(0, 12)
"""Above every bound that is drawn, so that an open bound differs from a closed one."""

_LOW = st.integers(0, 5)


def _bounds(low: int, width: int | None) -> Bounds:
    return Bounds(low, None if width is None else low + width)


DIMS: st.SearchStrategy[Dim] = st.one_of(
    _LOW, st.builds(_bounds, _LOW, st.one_of(st.none(), st.integers(1, 4)))
)
SHAPES: st.SearchStrategy[Shape] = st.one_of(st.none(), st.lists(DIMS, max_size=3).map(tuple))


def numbers(dim: Dim) -> set[int]:
    """Return what a dimension can be in a small world."""
    if isinstance(dim, int):
        return {dim}
    return {size for size in WORLD if dim.low <= size and (dim.high is None or size <= dim.high)}


@given(DIMS, DIMS)
def test_at_most_is_possible(dim: Dim, limit: Dim) -> None:
    assert at_most(dim, limit) == any(a <= b for a in numbers(dim) for b in numbers(limit))


@given(DIMS)
def test_extremes(dim: Dim) -> None:
    assert lowest(dim) == min(numbers(dim))
    high = highest(dim)
    assert max(numbers(dim)) == (max(WORLD) if high is None else high)


@given(SHAPES, SHAPES)
def test_shapes_agree_dimension_by_dimension(left: Shape, right: Shape) -> None:
    expected = (
        left is None
        or right is None
        or (
            len(left) == len(right) and all(numbers(a) & numbers(b) for a, b in zip(left, right, strict=True))
        )
    )
    assert agree(left, right) == agree(right, left) == expected
    assert agree(left, left)


@given(SHAPES, SHAPES)
def test_a_narrowed_shape_agrees_with_both(left: Shape, right: Shape) -> None:
    if not agree(left, right):
        return
    found = narrow(left, right)
    assert agree(found, left)
    assert agree(found, right)
    if left is None or right is None:
        assert found == (right if left is None else left)
        return
    assert found is not None
    for dim, a, b in zip(found, left, right, strict=True):
        assert numbers(dim) == numbers(a) & numbers(b)


@given(SHAPES)
def test_static_and_counted(shape: Shape) -> None:
    whole = None if shape is None or any(isinstance(dim, Bounds) for dim in shape) else shape
    assert static(shape) == whole
    count = element_count(shape)
    if shape is None:
        assert count is None
    elif 0 in shape:
        assert count == 0
    else:
        assert count == (None if whole is None else math.prod(lowest(dim) for dim in whole))


@given(st.lists(SHAPES, max_size=3))
def test_concatenated(parts: list[Shape]) -> None:
    joined: list[Dim] = []
    for part in parts:
        joined += part or ()
    assert concatenate(*parts) == (None if None in parts else tuple(joined))


@given(SHAPES)
def test_what_is_shown_can_be_read(shape: Shape) -> None:
    assert parse_shape(show(shape)) == shape
    assert parse_shape(show(shape).replace(", ", ",")) == shape
    if shape:
        assert parse_shape(show(shape)[1:-1]) == shape


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("3", 3), ("0", 0), ("007", 7), (str(LARGEST_DIM), LARGEST_DIM), ("4..4", 4), ("?", Bounds()),
        ("-1", Bounds()), ("..", Bounds()), ("1..5", Bounds(1, 5)), ("[1..5]", Bounds(1, 5)),
        ("2..", Bounds(2)), ("..5", Bounds(0, 5)),
    ],
)  # fmt: skip
def test_dimensions_that_are_read(text: str, dim: Dim) -> None:
    assert parse_dim(text) == dim


@pytest.mark.parametrize(
    "text",
    ["", "-5", "five", "5..3", "1.5", "+3", "1...5", "3 4", "99999999999999999999", "1..99999999999999999999",
     "9223372036854775808", "\u0663", "1_000", "0x3", "-1..3", " 3"],
)  # fmt: skip
def test_dimensions_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not a dimension"):
        parse_dim(text)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("1,3,?", (1, 3, Bounds())), (" [ 1 , 3 ] ", (1, 3)), ("", ()), ("[]", ()), ("...", None),
        ("[...]", None), ("5", (5,)), ("..5,2..", (Bounds(0, 5), Bounds(2))), ("[1..5]", (Bounds(1, 5),)),
    ],
)  # fmt: skip
def test_shapes_that_are_read(text: str, shape: Shape) -> None:
    assert parse_shape(text) == shape


@pytest.mark.parametrize("text", ["1,", ",1", "1,,2", "[1", "1]", "1;2", "...,3", "-5,4", "(1,2)"])
def test_shapes_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not a dimension"):
        parse_shape(text)


@given(st.text(max_size=12))
def test_reading_gives_a_shape_or_a_sentence(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_shape(text)


def test_what_is_shown() -> None:
    assert show((2, Bounds(), Bounds(1, 5), Bounds(2), Bounds(symbol="batch"))) == "[2, ?, 1..5, 2.., batch]"
    assert show(()) == "[]"
    assert show(None) == "[...]"
    assert show_dim(Bounds(0, 5)) == "0..5"
    assert show_numbers([3, -1]) == "[3, -1]"


def test_a_symbol_survives_what_is_known() -> None:
    assert narrow((Bounds(symbol="N"),), (Bounds(2, 5),)) == (Bounds(2, 5, "N"),)
    assert narrow((Bounds(symbol="N"),), (7,)) == (7,)
