"""Fills the template of the page."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ir_scatter.report.characters import visible
from ir_scatter.report.comparison_text import POLICY
from ir_scatter.report.html.difference import size_text, steps_text

if TYPE_CHECKING:
    from jinja2 import Environment

    from ir_scatter.report.html.page import Page

_HEAD, _TAIL = 56, 28


def fill(page: "Page") -> str:
    """Return the page as HTML."""
    template = _environment().get_template("page.html.j2")
    return template.render(page=page, style=Markup(_text("style.css"))) + "\n"


@cache
def _environment() -> "Environment":
    """Return an environment in which no text of a model can become a tag or hide itself."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    names = ("page.html.j2", "model.html.j2", "parts.html.j2")
    environment = Environment(
        autoescape=True,
        finalize=_shown,
        loader=DictLoader({name: _text(name) for name in names}),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"short": short, "size": size_text, "steps": steps_text}
    environment.globals["policy"] = POLICY
    return environment


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _shown(value: Any) -> Any:
    """Spell out what cannot be seen, in every text that is not markup of our own."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def short(text: str) -> str:
    """Return a name without its middle if it is long."""
    text = visible(text)
    return text if len(text) <= _HEAD + _TAIL + 1 else f"{text[:_HEAD]}…{text[-_TAIL:]}"
