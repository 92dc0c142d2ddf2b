"""Where two tensors differ and by how much: what the pictures and the list of elements are made of.

Everything goes through a tensor in pieces, so that one of ten million elements takes no memory to
speak of. The comparison itself has said already whether the tensors agree; nothing is judged here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.compare.measure import plain
from ir_scatter.core.arrays import kind

if TYPE_CHECKING:
    from ir_scatter.compare.result import Comparison
    from ir_scatter.compare.tolerance import Tolerance
    from ir_scatter.core.arrays import Array

_PIECE = 1 << 20
_SAMPLE = 2_000_000
"""Elements that a histogram looks at; more are sampled evenly."""
_MOST_CELLS = 96
"""Cells of a heat map along one side; larger slices are pooled."""
_LINE = 48
"""Cells per row where a tensor has one dimension only."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element that differs.

    Attributes:
        index: its position.
        got: the subject's value.
        expected: the reference's value.
        difference: got - expected; NaN where that is no number.
    """

    index: tuple[int, ...]
    got: Any
    expected: Any
    difference: float


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """How large the differences of a tensor are.

    Attributes:
        sizes: absolute differences above 0, all finite.
        looked_at: elements that were looked at.
        lost: elements among them where only one of the two is NaN or infinite.
        step: every how many elements; 1 for all.
    """

    sizes: "Array"
    looked_at: int
    lost: int
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Two dimensions of a tensor around its worst element.

    Attributes:
        cells: got - expected, NaN where only one of the two is finite, 0.0 where they are the same.
        label: the slice as NumPy writes it, "[2, :, :]".
        axes: the dimensions down and across; None where a line is wrapped into rows.
        spans: how many elements one cell covers, down and across; the worst of them is shown.
        worst: the cell of the worst element.
        blank: cells at the end of the last row that stand for nothing.
    """

    cells: "Array"
    label: str
    axes: tuple[int | None, int]
    spans: tuple[int, int]
    worst: tuple[int, int]
    blank: int = 0


def is_comparable(one: "Comparison") -> bool:
    """Tell whether there are two tensors of one type and shape, with elements."""
    got, expected = one.got, one.expected
    if got is None or expected is None or got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    return got.size > 0


def differences(got: "Array", expected: "Array") -> "Array":
    """Return got - expected as f64: 0.0 where they are the same, NaN where only one is finite.

    Of complex numbers it is the size of the difference, of strings 1.0 where they differ.
    """
    what = kind(got)
    if what == "string":
        return np.asarray(got != expected).astype(np.float64)
    with np.errstate(all="ignore"):
        if what in {"signed", "unsigned", "boolean"}:
            return _whole(got, expected)
        wide = np.complex128 if what == "complex" else np.float64
        left, right = got.astype(wide), expected.astype(wide)
        same = (left == right) | ((left != left) & (right != right))
        found = np.abs(left - right) if what == "complex" else left - right
        return np.where(same, 0.0, np.where(np.isfinite(found), found, np.nan))


def _whole(got: "Array", expected: "Array") -> "Array":
    """Return the difference of whole numbers without an overflow."""
    wide = np.uint64 if got.dtype == np.uint64 else np.int64
    left, right = got.astype(wide), expected.astype(wide)
    size = np.maximum(left, right).astype(np.uint64) - np.minimum(left, right).astype(np.uint64)
    return np.where(left < right, -1.0, 1.0) * size.astype(np.float64)


def _pieces(got: "Array", expected: "Array") -> "Iterator[tuple[int, Array, Array]]":
    """Yield where a piece begins, and both sides of it."""
    left, right = got.reshape(-1), expected.reshape(-1)
    for start in range(0, left.size, _PIECE):
        yield start, left[start : start + _PIECE], right[start : start + _PIECE]


def worst_elements(one: "Comparison", most: int = 10) -> list[Element]:
    """Return the elements that are farthest off, the one that the comparison names first.

    Those within the tolerance are left out if others are not. Where the document leaves elements
    open, their differences may be larger than any that counts, and these are left out as well.
    """
    got, expected, found = one.got, one.expected, one.measure
    if got is None or expected is None or not is_comparable(one):
        return []
    limit = found.max_abs if found.contested else np.inf
    tolerance = found.tolerance if found.mismatched else None
    best: list[tuple[float, int]] = []
    for start, left, right in _pieces(got, expected):
        ranked = _ranked(left, right, tolerance)
        ranked[ranked > limit] = 0.0
        count = min(most, ranked.size)
        chosen = np.argpartition(ranked, ranked.size - count)[ranked.size - count :]
        best += [(float(ranked[place]), -start - int(place)) for place in chosen if ranked[place] > 0]
        best = nlargest(most, best)
    places = [-negated for _, negated in best]
    if found.worst is not None:
        first = int(np.ravel_multi_index(found.worst.index, got.shape)) if got.ndim else 0
        places = [first, *(place for place in places if place != first)][:most]
    if found.mismatched and not found.contested:
        places = places[: found.mismatched]
    return [_element(got, expected, place) for place in places]


def _ranked(got: "Array", expected: "Array", tolerance: "Tolerance | None") -> "Array":
    """Return how far off each element is; 0.0 for what is the same or within the tolerance."""
    size = np.abs(differences(got, expected))
    if tolerance is not None and kind(got) != "string":
        with np.errstate(all="ignore"):
            wide = np.abs(expected.astype(np.complex128 if kind(got) == "complex" else np.float64))
            allowed = tolerance.absolute + np.where(np.isfinite(wide), tolerance.relative * wide, 0.0)
        size = np.where(size <= allowed, 0.0, size)
    return np.where(np.isnan(size), np.inf, size)


def _element(got: "Array", expected: "Array", place: int) -> Element:
    index = tuple(int(part) for part in np.unravel_index(place, got.shape))
    left, right = got[index], expected[index]
    difference = differences(np.asarray(left, got.dtype), np.asarray(right, got.dtype))
    return Element(index, python_element(left), python_element(right), float(difference))


def python_element(element: Any) -> Any:
    """Return an element as Python has it; whole numbers below a byte are no floats."""
    what = "string" if isinstance(element, str | bytes) else kind(np.asarray(element))
    if what == "string":
        return str(element)
    return int(element) if what in {"signed", "unsigned"} else plain(element)


def sizes(one: "Comparison") -> Sizes:
    """Return how large the differences are, for a histogram."""
    got, expected = one.got, one.expected
    if got is None or expected is None or not is_comparable(one) or kind(got) == "string":
        return Sizes(np.zeros(0), 0, 0, 1)
    step = -(-got.size // _SAMPLE)
    found = differences(got.reshape(-1)[::step], expected.reshape(-1)[::step])
    finite = np.abs(found[~np.isnan(found)])
    return Sizes(finite[finite > 0], found.size, int(np.isnan(found).sum()), step)


def worst_slice(one: "Comparison") -> Slice | None:
    """Return the two dimensions around the worst element, pooled if they are large; None of a scalar."""
    got, expected, worst = one.got, one.expected, one.measure.worst
    if got is None or expected is None or worst is None or not is_comparable(one) or got.size == 1:
        return None
    wide = [axis for axis, size in enumerate(got.shape) if size > 1]
    if len(wide) == 1:
        return _line(got.reshape(-1), expected.reshape(-1), wide[0], worst.index, got.ndim)
    down, across = wide[-2:]
    key = tuple(slice(None) if axis in {down, across} else place for axis, place in enumerate(worst.index))
    label = ", ".join(":" if isinstance(part, slice) else str(part) for part in key)
    left, right = got[key], expected[key]
    spans = (-(-left.shape[0] // _MOST_CELLS), -(-left.shape[1] // _MOST_CELLS))
    place = (worst.index[down], worst.index[across])
    cells = _pooled(left, right, spans)
    cell = (place[0] // spans[0], place[1] // spans[1])
    return Slice(cells, f"[{label}]", (down, across), spans, cell)


def _line(got: "Array", expected: "Array", axis: int, index: tuple[int, ...], rank: int) -> Slice:
    """Return a tensor with one dimension, in rows."""
    place, size = index[axis], got.size
    label = f"[{', '.join(':' if at == axis else '0' for at in range(rank))}]"
    span = -(-size // (_LINE * _LINE)) if size > _LINE else 1
    found = _pooled(got[None], expected[None], (1, span))[0]
    across = min(found.size, _LINE)
    rows = -(-found.size // across)
    cells = np.zeros(rows * across)
    cells[: found.size] = found
    worst = divmod(place // span, across)
    blank = rows * across - found.size
    return Slice(cells.reshape(rows, across), label, (None, axis), (across * span, span), worst, blank)


def _pooled(got: "Array", expected: "Array", spans: tuple[int, int]) -> "Array":
    """Return for each block of elements the difference that is largest, NaN before all."""
    rows = max(1, _PIECE // (max(got.shape[1], 1) * spans[0])) * spans[0]
    found = []
    for start in range(0, got.shape[0], rows):
        part = differences(got[start : start + rows], expected[start : start + rows])
        if prod(spans) > 1:
            part = _strongest(part, spans)
        found.append(part)
    return np.concatenate(found)


def _strongest(values: "Array", spans: tuple[int, int]) -> "Array":
    down, across = spans
    padding = [(0, -size % span) for size, span in zip(values.shape, spans, strict=True)]
    padded = np.pad(values, padding)
    blocks = padded.reshape(padded.shape[0] // down, down, padded.shape[1] // across, across)
    flat = blocks.swapaxes(1, 2).reshape(blocks.shape[0], blocks.shape[2], down * across)
    ranked = np.where(np.isnan(flat), np.inf, np.abs(flat))
    place = ranked.argmax(axis=2)[..., None]
    return np.take_along_axis(flat, place, axis=2)[..., 0]
