"""How many elements are off by how much."""

from math import ceil, floor, log10
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from ir_scatter.report.html import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ir_scatter.core.tensors import Array
    from ir_scatter.report.html.deviations import Sizes

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

    with svg.drawing(name):
        figure = Figure(figsize=(svg.WIDTH, svg.HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        logarithms = np.log10(found.sizes)
        low, high = _range(logarithms, allowed)
        each = min(max(1, round(_BINS / (high - low))), _MOST_PER_DECADE)
        bins = min((high - low) * each, 2 * _BINS)
        counts, edges = np.histogram(logarithms, bins, (low, high))
        axes.bar(edges[:-1], counts, np.diff(edges) * 0.94, align="edge", color=svg.BAR, linewidth=0)
        axes.set_xlim(low, high)
        step = ceil((high - low) / _TICKS)
        powers = range(low, high + 1, step)
        axes.set_xticks(list(powers), [svg.power(one) for one in powers])
        if counts.max() > _STEEP * counts[counts > 0].min():
            _count_in_powers(axes, int(counts.max()))
        else:
            axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.set_ylim(0, counts.max() * 1.15)
        if allowed > 0 and low <= log10(allowed) <= high:
            _mark(axes, log10(allowed), is_left=log10(allowed) > (low + high) / 2)
        axes.set_xlabel(f"|got {svg.MINUS} expected|")
        axes.set_ylabel("elements")
        return svg.markup(figure, name, "Histogram of the absolute error")


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
    axes.axvline(place, color=svg.RULE, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.annotate(
        "absolute tolerance",
        (place, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if is_left else 5, -1),
        textcoords="offset points",
        ha="right" if is_left else "left",
        va="top",
        color=svg.RULE,
    )
