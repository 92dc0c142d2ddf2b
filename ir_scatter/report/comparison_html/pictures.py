"""Geometry of the pictures of a page, which `pictures.html.j2` draws as SVG.

A picture contains no text from a model, only numbers.
"""

import struct
import zlib
from base64 import b64encode
from math import ceil, floor, log10
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array

_WIDTH, _HEIGHT = 360.0, 194.0
"""Size of a picture in its own units; the page scales it."""
_DIGIT, _BELOW = 5.0, 30.0
"""Width of a digit; height of the labels below the horizontal axis."""
MINUS = "\N{MINUS SIGN}"
_PNG = b"\x89PNG\r\n\x1a\n"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_BINS = 30
"""Approximate number of bins of a histogram."""
_MOST_PER_DECADE = 8
"""Maximum bins per power of ten."""
_LEAST, _MOST = -323, 308
"""Smallest and largest power of ten in f64."""
_TICKS = 7
"""Maximum labels on the horizontal axis of a histogram."""
_LEAST_COUNT = 0.7
"""Bottom of a logarithmic count axis: below 1, so that a bar of one element has a height."""
_STEEP = 50
"""The count axis is logarithmic if the highest bar is more than this many times the lowest."""


def histogram(sizes: Array, allowed: float) -> dict[str, Any]:
    """Return a histogram of errors (above 0) on a logarithmic axis, with the absolute tolerance marked."""
    logarithms = np.log10(sizes)
    low, high = _range(logarithms, allowed)
    each = min(max(1, round(_BINS / (high - low))), _MOST_PER_DECADE)
    counts, edges = np.histogram(logarithms, min((high - low) * each, 2 * _BINS), (low, high))
    most = int(counts.max())
    if most > _STEEP * counts[counts > 0].min():
        powers = range(0, floor(log10(most)) + 1, 1 + floor(log10(most)) // 5)
        ticks = [10**power for power in powers]
        top = log10(most / _LEAST_COUNT) * 1.15

        def height(count: float) -> float:
            return log10(count / _LEAST_COUNT) / top if count else 0.0
    else:
        ticks = list(range(0, most + 1, _step(most, 5)))

        def height(count: float) -> float:
            return count / (most * 1.15)

    left = 22 + _DIGIT * len(f"{ticks[-1]:,}")
    wide, tall = _WIDTH - left - 12, _HEIGHT - _BELOW - 6

    def across(logarithm: float) -> float:
        return left + wide * (logarithm - low) / (high - low)

    base = 6 + tall
    width = wide / len(counts)
    mark = log10(allowed) if allowed > 0 else None
    return {
        "size": (_WIDTH, _HEIGHT),
        "frame": (left, 6.0, wide, tall),
        "bars": [
            (across(edge) + width * 0.03, base - tall * height(count), width * 0.94, tall * height(count))
            for edge, count in zip(edges, counts.tolist(), strict=False)
            if count
        ],
        "across": [
            (across(at), f"10{str(at).translate(_SUPERSCRIPTS)}")
            for at in range(low, high + 1, ceil((high - low) / _TICKS))
        ],
        "down": [(base - tall * height(tick), f"{tick:,}") for tick in ticks],
        "mark": None if mark is None or not low <= mark <= high else across(mark),
        "marks_left": mark is not None and mark > (low + high) / 2,
    }


def _range(logarithms: Array, allowed: float) -> tuple[int, int]:
    """Return the powers of ten at the ends of the axis; the second is at least two greater."""
    low, high = floor(logarithms.min()), floor(logarithms.max()) + 1
    if allowed > 0:
        tolerance = log10(allowed)
        if low - _BINS / 2 < tolerance < high + _BINS / 2:
            low, high = min(low, floor(tolerance)), max(high, floor(tolerance) + 1)
    if high - low < 3:
        low, high = low - 1, high + 1
    return max(low, _LEAST - 1), min(high, _MOST + 1)


_OVER, _UNDER, _LOST = (235, 118, 28), (28, 60, 145), (128, 128, 128)
"""Colours of cells: got is greater; got is less; only one of the two is finite.

Printed in grey, the first is light and the second dark.
"""
_FAINTEST = 0.2
"""Opacity of the smallest difference, so that it remains visible."""
_HALF = 130
"""Opacity (of 255) above which the number in a cell needs a contrasting colour."""
_ANNOTATED = (10, 9)
"""Maximum rows and columns of a map with numbers in its cells."""
_GRID = 48
"""Maximum rows and columns of a map with lines between its cells."""
_TALLEST, _TALLEST_MAP = 40.0, 250.0
"""Maximum height of a cell, and of a map."""
_MOST_LABELS = 9
"""Maximum numbers along an axis of a map."""
_FRAME = 1 / 32
"""Minimum size of the frame around the worst cell, as a share of the map."""


class TensorSlice(NamedTuple):
    """A slice of a tensor in two dimensions, around its worst element.

    Attributes:
        cells: got - expected, NaN where only one of the two is finite.
        label: the slice in NumPy notation, "[2, :, :]".
        axes: the vertical and the horizontal dimension; the first is None if one dimension is wrapped into
            rows.
        spans: number of elements per cell, vertically and horizontally; a cell shows the worst of them.
        worst: the cell of the worst element.
        blank: padding cells at the end of the last row.
    """

    cells: Array
    label: str
    axes: tuple[int | None, int]
    spans: tuple[int, int]
    worst: tuple[int, int]
    blank: int = 0


def heat_map(plane: TensorSlice) -> dict[str, Any]:
    """Return a heat map of got - expected over two dimensions, with the worst element framed."""
    rows, columns = plane.cells.shape
    down, across = plane.axes
    left = 30 + _DIGIT * (len(str(rows * plane.spans[0])) if rows > 1 else 0)
    steps, most = _steps(plane.cells)
    ends = (f"+{most:.3g}", "0", f"{MINUS}{most:.3g}")
    beside = 26 + 1.2 * _DIGIT * max(map(len, ends))  # the scale of colours and its numbers
    wide = (_WIDTH - left - beside) / columns  # as wide as there is room, and no taller than wide
    high = min(wide, _TALLEST, _TALLEST_MAP / rows)
    pixels = _colors(steps)
    columns_shown = int(columns * wide / (_DIGIT * (len(str(columns * plane.spans[1])) + 2)))
    letters = []
    if rows <= _ANNOTATED[0] and columns <= _ANNOTATED[1]:
        for (row, column), value in np.ndenumerate(plane.cells):
            if value != 0:
                is_full = pixels[row, column, 3] > _HALF
                kind = "" if not is_full else "over" if value > 0 else "under"
                place = (left + (column + 0.5) * wide, 6 + (row + 0.5) * high)
                letters.append((*place, _short(float(value)), kind))
    name = f"axis {across}" if down is not None or rows == 1 else f"axis {across}, row after row"
    return {
        "size": (_WIDTH, 6 + rows * high + _BELOW),
        "frame": (left, 6.0, columns * wide, rows * high),
        "image": _png(pixels),
        "grid": max(rows, columns) <= _GRID,
        "lines_across": [left + at * wide for at in range(1, columns)],
        "lines_down": [6 + at * high for at in range(1, rows)],
        "blank": (left + (columns - plane.blank) * wide, 6 + (rows - 1) * high, plane.blank * wide, high),
        "worst": (
            *_frame_span(plane.worst[1], columns, left, wide),
            *_frame_span(plane.worst[0], rows, 6.0, high),
        ),
        "across": _axis_labels(columns, plane.spans[1], columns_shown, left, wide),
        "down": _axis_labels(rows, plane.spans[0], int(rows * high / 13), 6.0, high) if rows > 1 else [],
        "names": (name, "" if down is None else f"axis {down}"),
        "letters": letters,
        "scale": _png(_colors(np.linspace(1, -1, 101)[:, None])),
        "ends": ends,
    }


def _steps(cells: Array) -> tuple[Array, float]:
    """Scale cells to -1 ... 1; return them with the difference that 1 stands for.

    The scale is logarithmic (linear near 0) if the largest difference is more than 100 times the smallest.
    """
    sizes = np.abs(cells[np.isfinite(cells) & (cells != 0)])
    most = float(sizes.max()) if sizes.size else 1.0
    if not sizes.size or sizes.min() >= most / 100:
        return cells / most, most
    least = max(float(sizes.min()), most / 1e6)
    parts = np.abs(cells) / least
    with np.errstate(divide="ignore"):
        grown = np.where(parts < 1, parts, 1 + np.log10(parts)) / (1 + log10(most / least))
    return np.sign(cells) * grown, most


def _colors(steps: Array) -> Array:
    """Map -1 ... 1 to diverging colours with opacity by magnitude, for light and dark pages; NaN is grey."""
    image = np.zeros((*steps.shape, 4), np.uint8)
    image[steps > 0, :3] = _OVER
    image[steps < 0, :3] = _UNDER
    size = np.nan_to_num(np.minimum(np.abs(steps), 1.0))
    image[..., 3] = np.where(size > 0, np.rint(255 * (_FAINTEST + (1 - _FAINTEST) * size)), 0)
    image[np.isnan(steps)] = (*_LOST, 255)
    return image


def _png(pixels: Array) -> str:
    """Return an image as a data URL (PNG, RGBA with 8 bits each)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns, _ = pixels.shape
    header = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    lines = np.pad(pixels.reshape(rows, -1), ((0, 0), (1, 0)))  # filter type 0 before each row
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{b64encode(_PNG + data).decode()}"


def _frame_span(place: int, count: int, start: float, size: float) -> tuple[float, float]:
    length = max(1.0, count * _FRAME)
    first = min(max(place + 0.5 - length / 2, 0.0), count - length)
    return start + first * size, length * size


def _axis_labels(count: int, span: int, most: int, start: float, size: float) -> list[tuple[float, str]]:
    """Return (position, text) of at most `most` labels along an axis."""
    total = count * span
    places = range(0, total, _step(total, min(max(most, 2), _MOST_LABELS)))
    return [(start + (place + 0.5) / span * size, str(place)) for place in places]


def _step(size: int, most: int) -> int:
    step = 1
    while True:
        for factor in (1, 2, 4, 5, 8):
            if size <= most * step * factor:
                return step * factor
        step *= 10


def _short(value: float) -> str:
    if np.isnan(value):
        return "∞"
    text = f"{value:+.2g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return text.replace("-", MINUS)
