"""Pictures as SVG inside a page.

Colours are variables of the page's style sheet, so that a picture follows light, dark and paper.
Nothing in a picture comes from a model but numbers.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
