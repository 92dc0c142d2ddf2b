"""Pictures as SVG inside a page.

Colours are variables of the page's style sheet, so that a picture follows light, dark and paper.
Nothing in a picture comes from a model but numbers.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, floor, log10
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from ir_scatter.core.arrays import Array
    from ir_scatter.report.comparison_html.deviations import Sizes, Slice


INK, LINE, BAR, RULE, PAPER = "#010203", "#020304", "#030405", "#040506", "#050607"
_VARIABLES = {INK: "--soft", LINE: "--rule", BAR: "--bar", RULE: "--strong", PAPER: "--card"}
"""Colours that stand for variables of the style sheet while matplotlib draws."""

WIDTH, HEIGHT = 5.0, 2.7
"""In inches; the page scales it."""
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.image_inline": True,
    "font.size": 9.0,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.color": LINE,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
MINUS = "\N{MINUS SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Draw with settings of our own, whatever the user's are.

    Args:
        name: makes the identifiers inside a picture unique on the page.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)  # type: ignore[arg-type]
        matplotlib.rcParams["svg.hashsalt"] = name
        yield


def power(exponent: int) -> str:
    """Return "10⁻³"."""
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def number(value: float) -> str:
    """Return a number in few characters, with a real minus sign."""
    return f"{value:.3g}".replace("-", MINUS)


def markup(figure: "Figure", name: str, title: str) -> Markup:
    """Return a figure as an element of a page: without a date, without sizes and fonts of its own."""
    buffer = io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue().decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<style.*?</style>|<metadata.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", text)
    for color, variable in _VARIABLES.items():
        text = text.replace(color, f"var({variable})")
    text = _own_names(text, name)
    box = re.search(r'viewBox="([^"]*)"', text)
    size = box[1] if box else f"0 0 {WIDTH * 72} {HEIGHT * 72}"
    start = f'<svg class="plot" role="img" aria-label="{escape(title)}" viewBox="{size}">'
    return Markup(start + text[text.index(">") + 1 :].strip())


def _own_names(text: str, name: str) -> str:
    """Keep the identifiers that are referred to, and make them unique on the page."""
    known = set(re.findall(r' id="([^"]*)"', text)) & set(re.findall(r"#([\w-]+)", text))

    def renamed(found: re.Match[str]) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in known else ""

    def referred(found: re.Match[str]) -> str:
        return f"#{name}-{found[1]}" if found[1] in known else found[0]

    text = re.sub(r' id="([^"]*)"', renamed, text)
    return re.sub(r"#([\w-]+)", referred, text)


_BINS = 30
_MOST_PER_DECADE = 8
_LEAST, _MOST = -323, 308
"""Powers of ten that f64 has."""
_TICKS = 7
_LEAST_COUNT = 0.7
_STEEP = 50
"""Where the highest bar is so many times the lowest, heights are logarithmic."""


def histogram(found: "Sizes", allowed: float, name: str) -> Markup:
    """Return a picture with a logarithmic scale of errors.

    Args:
        found: the sizes, at least one.
        allowed: the absolute tolerance; 0 for none.
        name: makes the identifiers inside unique on the page.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with drawing(name):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        logarithms = np.log10(found.sizes)
        low, high = _range(logarithms, allowed)
        each = min(max(1, round(_BINS / (high - low))), _MOST_PER_DECADE)
        bins = min((high - low) * each, 2 * _BINS)
        counts, edges = np.histogram(logarithms, bins, (low, high))
        axes.bar(edges[:-1], counts, np.diff(edges) * 0.94, align="edge", color=BAR, linewidth=0)
        axes.set_xlim(low, high)
        step = ceil((high - low) / _TICKS)
        powers = range(low, high + 1, step)
        axes.set_xticks(list(powers), [power(one) for one in powers])
        if counts.max() > _STEEP * counts[counts > 0].min():
            _count_in_powers(axes, int(counts.max()))
        else:
            axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.set_ylim(0, counts.max() * 1.15)
        if allowed > 0 and low <= log10(allowed) <= high:
            _mark(axes, log10(allowed), is_left=log10(allowed) > (low + high) / 2)
        axes.set_xlabel(f"|got {MINUS} expected|")
        axes.set_ylabel("elements")
        return markup(figure, name, "Histogram of the absolute error")


def _range(logarithms: "Array", allowed: float) -> tuple[int, int]:
    """Return the powers of ten at both ends, at least two apart."""
    low, high = floor(logarithms.min()), floor(logarithms.max()) + 1
    if allowed > 0:
        tolerance = log10(allowed)
        if low - _BINS / 2 < tolerance < high + _BINS / 2:
            low, high = min(low, floor(tolerance)), max(high, floor(tolerance) + 1)
    if high - low < 3:
        low, high = low - 1, high + 1
    return max(low, _LEAST - 1), min(high, _MOST + 1)


def _count_in_powers(axes: "Axes", most: int) -> None:
    axes.set_yscale("log")
    axes.set_ylim(_LEAST_COUNT, most * (most / _LEAST_COUNT) ** 0.15)
    powers = range(0, floor(log10(most)) + 1, 1 + floor(log10(most)) // 5)
    axes.set_yticks([10.0**one for one in powers], [f"{10**one:,}" for one in powers])
    axes.minorticks_off()


def _mark(axes: "Axes", place: float, *, is_left: bool) -> None:
    """Draw where the absolute tolerance is."""
    axes.axvline(place, color=RULE, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.annotate(
        "absolute tolerance",
        (place, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if is_left else 5, -1),
        textcoords="offset points",
        ha="right" if is_left else "left",
        va="top",
        color=RULE,
    )


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

    with drawing(name):
        rows, columns = found.cells.shape
        is_square = _SQUARE[0] <= rows / columns <= _SQUARE[1]
        high = min(_CELL, (HEIGHT - _MARGIN[0]) / rows)
        wide = (WIDTH - _MARGIN[1]) / columns
        if is_square:
            high = wide = min(high, wide)
        figure = Figure(figsize=(WIDTH, _MARGIN[0] + rows * high), layout="constrained")
        axes = figure.add_subplot(anchor="W")
        norm = _norm(found.cells)
        image = _painted(found.cells, norm)
        axes.imshow(image, interpolation="none", aspect="equal" if is_square else "auto")
        _draw_cells(axes, found)
        _name_axes(axes, found, (rows * high, columns * wide))
        if rows <= _ANNOTATED[0] and columns <= _ANNOTATED[1]:
            _annotate(axes, found.cells, image)
        _scale(axes, norm)
        return markup(figure, name, "Heat map of got minus expected")


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
        axes.vlines(np.arange(1, columns) - 0.5, -0.5, rows - 0.5, color=LINE, linewidth=0.5)
        axes.hlines(np.arange(1, rows) - 0.5, -0.5, columns - 0.5, color=LINE, linewidth=0.5)
    if found.blank:
        tail = Rectangle((columns - 0.5 - found.blank, rows - 1.5), found.blank, 1, color=PAPER)
        axes.add_patch(tail)
    down, across = found.worst
    width, height = max(1.0, columns * _FRAME), max(1.0, rows * _FRAME)
    left = min(max(across - width / 2, -0.5), columns - 0.5 - width)
    top = min(max(down - height / 2, -0.5), rows - 0.5 - height)
    frame = Rectangle((left, top), width, height, fill=False, edgecolor=RULE, linewidth=1.6, clip_on=False)
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
            color = RULE if not is_full else _ON_OVER if value > 0 else _ON_UNDER
            axes.text(column, row, text, ha="center", va="center", fontsize=7, color=color)


def _short(value: float) -> str:
    text = f"{value:.2g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return text.replace("-", MINUS)


def _scale(axes: "Axes", norm: "Normalize") -> None:
    """Draw the scale of colours beside the map."""
    most = float(norm.vmax or 1.0)
    bar = axes.inset_axes((1.03, 0.0, 0.035, 1.0))
    image = _colors(np.linspace(-1, 1, 101))[:, None]
    bar.imshow(image, interpolation="none", aspect="auto", origin="lower", extent=(0, 1, 0, 1))
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.set_yticks([0.0, 0.5, 1.0], [number(-most), "0", f"+{number(most)}"])
    for spine in bar.spines.values():
        spine.set_visible(True)
