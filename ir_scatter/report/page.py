"""HTML pages from the Jinja templates in `templates`: escapes text, adds the style, spells out unsafe names.

Jinja is imported when the first page is written: no other command needs it.
"""

from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ir_scatter.report.characters import visible
from ir_scatter.version import versions

if TYPE_CHECKING:
    from jinja2 import Environment

_HEAD, _TAIL = 56, 28
"""Characters that remain of the start and the end of a long name."""


def render_page(template: str, **values: Any) -> str:
    """Return a self-contained page without scripts, from a template and its values."""
    return _common_environment().get_template(template).render(values) + "\n"


@cache
def _common_environment() -> "Environment":
    return environment()


def environment() -> "Environment":
    """Return a Jinja environment that escapes every text and spells out invisible characters.

    Each call creates a new one, to which the caller may add filters.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        autoescape=True,
        finalize=_make_visible,
        loader=PackageLoader("ir_scatter.report"),
        auto_reload=False,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {"short": short, "file": lambda path: PurePath(path).name}
    made.globals |= {"style": _style, "versions": versions}
    return made


def _style(name: str) -> Any:
    """Return a style sheet from the folder of templates as markup."""
    from markupsafe import Markup

    return Markup(files(__package__).joinpath("templates", name).read_text(encoding="utf-8"))


def _make_visible(value: Any) -> Any:
    """Spell out invisible characters in every text, except in markup from the templates."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def short(text: str) -> str:
    """Cut the middle out of a long name."""
    text = visible(text)
    return text if len(text) <= _HEAD + _TAIL + 1 else f"{text[:_HEAD]}…{text[-_TAIL:]}"
