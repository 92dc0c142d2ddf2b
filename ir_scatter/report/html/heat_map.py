"""Where in a tensor the differences are."""

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from ir_scatter.report.html import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

    from ir_scatter.core.tensors import Array
    from ir_scatter.report.html.deviations import Slice

_OVER, _UNDER, _LOST = (235, 118, 28), (28, 60, 145), (128, 128, 128)
"""Of cells: got is greater, got is less, only one of the two is a finite number.

In grey the first is light and the second dark.
"""
_ON_OVER, _ON_UNDER = "#14171c", "#ffffff"
_FAINTEST = 0.2
_HALF = 130
"""From where on a cell is full enough for letters of a colour of their own."""
_ANNOTATED = (10, 9)
"""Rows and columns up to which numbers are written into the cells."""
_GRID = 48
_SQUARE = (1 / 5, 2.0)
_MARGIN, _CELL = (0.65, 1.3), 0.45
"""What is above and beside the cells, and the greatest height of one, in inches."""
_LABEL = (0.18, 0.1)
"""The height of a number at an axis, and the width of a digit, in inches."""
_MOST_LABELS = 9
_FRAME = 1 / 32
"""The least part of a map that the frame of the worst cell takes."""


def heat_map(found: "Slice", name: str) -> Markup:
    """Return got - expected over two dimensions, the worst element framed.

    Args:
        found: the cells.
        name: makes the identifiers inside unique on the page.
    """
    from matplotlib.figure import Figure

    with svg.drawing(name):
        rows, columns = found.cells.shape
        is_square = _SQUARE[0] <= rows / columns <= _SQUARE[1]
        high = min(_CELL, (svg.HEIGHT - _MARGIN[0]) / rows)
        wide = (svg.WIDTH - _MARGIN[1]) / columns
        if is_square:
            high = wide = min(high, wide)
        figure = Figure(figsize=(svg.WIDTH, _MARGIN[0] + rows * high), layout="constrained")
        axes = figure.add_subplot(anchor="W")
        norm = _norm(found.cells)
        image = _painted(found.cells, norm)
        axes.imshow(image, interpolation="none", aspect="equal" if is_square else "auto")
        _draw_cells(axes, found)
        _name_axes(axes, found, (rows * high, columns * wide))
        if rows <= _ANNOTATED[0] and columns <= _ANNOTATED[1]:
            _annotate(axes, found.cells, image)
        _scale(axes, norm)
        return svg.markup(figure, name, "Heat map of got minus expected")


def _norm(cells: "Array") -> "Normalize":
    """Return a symmetric scale, logarithmic where differences are of very different sizes."""
    from matplotlib.colors import Normalize, SymLogNorm

    sizes = np.abs(cells[np.isfinite(cells) & (cells != 0)])
    most = float(sizes.max()) if sizes.size else 1.0
    if sizes.size and sizes.min() < most / 100:
        return SymLogNorm(max(float(sizes.min()), most / 1e6), vmin=-most, vmax=most)
    return Normalize(-most, most)


def _colors(steps: "Array") -> "Array":
    """Return colours for -1 to 1 that grow out of nothing, so that they suit any paper."""
    image = np.zeros((*steps.shape, 4), np.uint8)
    image[steps > 0, :3] = _OVER
    image[steps < 0, :3] = _UNDER
    size = np.minimum(np.abs(steps), 1.0)
    image[..., 3] = np.where(size > 0, np.rint(255 * (_FAINTEST + (1 - _FAINTEST) * size)), 0)
    return image


def _painted(cells: "Array", norm: "Normalize") -> "Array":
    """Return the cells as colours."""
    steps = 2 * np.asarray(norm(np.nan_to_num(cells)), np.float64) - 1
    image = _colors(np.where(cells == 0, 0.0, steps))
    image[np.isnan(cells)] = (*_LOST, 255)
    return image


def _draw_cells(axes: "Axes", found: "Slice") -> None:
    """Draw the lines between cells, and a frame around the worst one."""
    from matplotlib.patches import Rectangle

    rows, columns = found.cells.shape
    for spine in axes.spines.values():
        spine.set_visible(True)
    if max(rows, columns) <= _GRID:
        axes.vlines(np.arange(1, columns) - 0.5, -0.5, rows - 0.5, color=svg.LINE, linewidth=0.5)
        axes.hlines(np.arange(1, rows) - 0.5, -0.5, columns - 0.5, color=svg.LINE, linewidth=0.5)
    if found.blank:
        tail = Rectangle((columns - 0.5 - found.blank, rows - 1.5), found.blank, 1, color=svg.PAPER)
        axes.add_patch(tail)
    down, across = found.worst
    width, height = max(1.0, columns * _FRAME), max(1.0, rows * _FRAME)
    left = min(max(across - width / 2, -0.5), columns - 0.5 - width)
    top = min(max(down - height / 2, -0.5), rows - 0.5 - height)
    frame = Rectangle(
        (left, top), width, height, fill=False, edgecolor=svg.RULE, linewidth=1.6, clip_on=False
    )
    axes.add_patch(frame)


def _name_axes(axes: "Axes", found: "Slice", room: tuple[float, float]) -> None:
    """Name the dimensions, and number their elements, as many as there is room for."""
    rows, columns = found.cells.shape
    down, across = found.axes
    digits = len(str(columns * found.spans[1])) + 2
    for axis, span, size, most in (
        (axes.yaxis, found.spans[0], rows, room[0] / _LABEL[0]),
        (axes.xaxis, found.spans[1], columns, room[1] / (_LABEL[1] * digits)),
    ):
        places = range(0, size * span, _step(size * span, min(max(int(most), 2), _MOST_LABELS)))
        axis.set_ticks([(place + 0.5) / span - 0.5 for place in places], [str(place) for place in places])
    axes.set_xlabel(f"axis {across}" if down is not None or rows == 1 else f"axis {across}, row after row")
    axes.set_ylabel(f"axis {down}" if down is not None else "")
    if rows == 1:
        axes.set_yticks([])


def _step(size: int, most: int) -> int:
    """Return every how many elements there is a number, a round one."""
    step = 1
    while True:
        for factor in (1, 2, 4, 5, 8):
            if size <= most * step * factor:
                return step * factor
        step *= 10


def _annotate(axes: "Axes", cells: "Array", image: "Array") -> None:
    """Write the numbers into the cells, where there is room."""
    for (row, column), value in np.ndenumerate(cells):
        if value != 0:
            is_full = bool(np.isnan(value)) or image[row, column, 3] > _HALF
            text = "∞" if np.isnan(value) else ("+" if value > 0 else "") + _short(float(value))
            color = svg.RULE if not is_full else _ON_OVER if value > 0 else _ON_UNDER
            axes.text(column, row, text, ha="center", va="center", fontsize=7, color=color)


def _short(value: float) -> str:
    text = f"{value:.2g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return text.replace("-", svg.MINUS)


def _scale(axes: "Axes", norm: "Normalize") -> None:
    """Draw the scale of colours beside the map."""
    most = float(norm.vmax or 1.0)
    bar = axes.inset_axes((1.03, 0.0, 0.035, 1.0))
    image = _colors(np.linspace(-1, 1, 101))[:, None]
    bar.imshow(image, interpolation="none", aspect="auto", origin="lower", extent=(0, 1, 0, 1))
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.set_yticks([0.0, 0.5, 1.0], [svg.number(-most), "0", f"+{svg.number(most)}"])
    for spine in bar.spines.values():
        spine.set_visible(True)
