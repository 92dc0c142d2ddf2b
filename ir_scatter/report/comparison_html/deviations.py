"""Where two tensors differ and by how much: what the pictures and the list of elements are made of.

The comparison itself has said already whether the tensors agree; nothing is judged here.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ir_scatter.compare.measure import plain
from ir_scatter.core.arrays import kind

if TYPE_CHECKING:
    from ir_scatter.compare.result import Comparison
    from ir_scatter.core.arrays import Array

_MOST_CELLS = 96
"""Cells of a heat map along one side; larger slices are pooled."""
_LINE = 48
"""Cells per row where a tensor has one dimension only."""


class Element(NamedTuple):
    """One element that differs; the difference is NaN where that is no number."""

    position: tuple[int, ...]
    got: Any
    expected: Any
    difference: float


class Slice(NamedTuple):
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


def differences(one: "Comparison") -> "Array | None":
    """Got - expected as f64: 0.0 where they are the same, NaN where only one is finite.

    Of complex numbers it is the size of the difference, of strings 1.0 where they differ. None without
    two tensors of one type and shape that have elements.
    """
    got, expected = one.got, one.expected
    if got is None or expected is None or not got.size:
        return None
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return None
    what = kind(got)
    if what == "string":
        return np.asarray(got != expected).astype(np.float64)
    with np.errstate(all="ignore"):
        if what in {"signed", "unsigned", "boolean"}:
            whole = np.uint64 if got.dtype == np.uint64 else np.int64
            left, right = got.astype(whole), expected.astype(whole)
            size = np.maximum(left, right).astype(np.uint64) - np.minimum(left, right).astype(np.uint64)
            return np.where(left < right, -1.0, 1.0) * size.astype(np.float64)
        wide = np.complex128 if what == "complex" else np.float64
        left, right = got.astype(wide), expected.astype(wide)
        same = (left == right) | ((left != left) & (right != right))
        found = np.abs(left - right) if what == "complex" else left - right
        return np.where(same, 0.0, np.where(np.isfinite(found), found, np.nan))


def worst_elements(one: "Comparison", found: "Array", most: int = 10) -> list[Element]:
    """Return the elements that are farthest off, the one that the comparison names first.

    Those within the tolerance are left out if others are not. Where the document leaves elements
    open, their differences may be larger than any that counts, and these are left out as well.
    """
    got, expected, measure = one.got, one.expected, one.measure
    assert got is not None
    assert expected is not None
    size = np.where(np.isnan(found), np.inf, np.abs(found))
    if measure.mismatched and kind(got) != "string":
        with np.errstate(all="ignore"):
            wide = np.abs(expected.astype(np.complex128 if kind(got) == "complex" else np.float64))
            relative = np.where(np.isfinite(wide), measure.tolerance.relative * wide, 0.0)
        size[size <= measure.tolerance.absolute + relative] = 0.0
    if measure.contested:
        size[size > measure.max_abs] = 0.0
    flat = size.reshape(-1)
    count = min(most, flat.size)
    chosen = np.argpartition(flat, flat.size - count)[flat.size - count :]
    places = sorted((int(place) for place in chosen if flat[place] > 0), key=lambda at: (-flat[at], at))
    if measure.worst is not None:
        first = int(np.ravel_multi_index(measure.worst.index, got.shape)) if got.ndim else 0
        places = [first, *(place for place in places if place != first)][:most]
    if measure.mismatched and not measure.contested:
        places = places[: measure.mismatched]
    indices = [tuple(map(int, np.unravel_index(place, got.shape))) for place in places]
    return [Element(at, plain(got[at]), plain(expected[at]), float(found[at])) for at in indices]


def worst_slice(one: "Comparison", found: "Array") -> Slice | None:
    """Return the two dimensions around the worst element, pooled if they are large; None of a scalar."""
    worst = one.measure.worst
    if worst is None or found.size == 1:
        return None
    wide = [axis for axis, size in enumerate(found.shape) if size > 1]
    if len(wide) == 1:
        return _line(found.reshape(-1), wide[0], worst.index)
    down, across = wide[-2:]
    key = tuple(slice(None) if axis in {down, across} else place for axis, place in enumerate(worst.index))
    label = ", ".join(":" if isinstance(part, slice) else str(part) for part in key)
    plane = found[key]
    spans = (-(-plane.shape[0] // _MOST_CELLS), -(-plane.shape[1] // _MOST_CELLS))
    cell = (worst.index[down] // spans[0], worst.index[across] // spans[1])
    return Slice(_pooled(plane, spans), f"[{label}]", (down, across), spans, cell)


def _line(found: "Array", axis: int, index: tuple[int, ...]) -> Slice:
    """Return a tensor with one dimension, in rows."""
    label = f"[{', '.join(':' if at == axis else '0' for at in range(len(index)))}]"
    span = -(-found.size // (_LINE * _LINE)) if found.size > _LINE else 1
    cells = _pooled(found[None], (1, span))[0]
    across = min(cells.size, _LINE)
    blank = -cells.size % across
    rows = np.pad(cells, (0, blank)).reshape(-1, across)
    worst = divmod(index[axis] // span, across)
    return Slice(rows, label, (None, axis), (across * span, span), worst, blank)


def _pooled(values: "Array", spans: tuple[int, int]) -> "Array":
    """Return of each block of elements the difference that is largest, NaN before all."""
    down, across = spans
    padded = np.pad(values, [(0, -size % span) for size, span in zip(values.shape, spans, strict=True)])
    blocks = padded.reshape(padded.shape[0] // down, down, padded.shape[1] // across, across)
    flat = blocks.swapaxes(1, 2).reshape(blocks.shape[0], blocks.shape[2], down * across)
    ranked = np.where(np.isnan(flat), np.inf, np.abs(flat))
    return np.take_along_axis(flat, ranked.argmax(axis=2)[..., None], axis=2)[..., 0]
