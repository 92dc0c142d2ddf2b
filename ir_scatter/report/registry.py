"""One renderer for each result and output format: `render` of the module `RESULT_FORMAT` in this folder.

A new output format is a new file. What a renderer can be told are its keyword-only arguments.
"""

import pkgutil
from functools import cache
from importlib import import_module

from ir_scatter.core.display import without_commands, without_marks
from ir_scatter.core.errors import UsageError
from ir_scatter.core.suggestions import did_you_mean

_FIRST = ["text", "concise", "json", "sarif", "junit", "github"]
"""The order in which formats are listed; others follow by name."""
_LINES = {"text", "concise"}
"""Formats whose lines may begin with a name of a model."""
_MARKS = {"github": r"\x23", "junit": "&#35;", "html": "&#35;"}
"""How other formats spell the "#" of a command that may stand anywhere in a line; JSON does so itself."""


@cache
def formats(result: str) -> tuple[str, ...]:
    """Names of the formats that a result ("findings", "comparison") can be written in."""
    modules = (module.name for module in pkgutil.iter_modules(import_module(__package__).__path__))
    names = {name.removeprefix(f"{result}_") for name in modules if name.startswith(f"{result}_")}
    return (*(name for name in _FIRST if name in names), *sorted(names.difference(_FIRST)))


def render(result: str, format: str, value: object, **options: object) -> str:
    """Write what was found; options that the format does not have change nothing.

    Raises:
        UsageError: there is no such format.
    """
    if format not in formats(result):
        guess = did_you_mean(format, formats(result))
        raise UsageError(f"the format is {format!r}{guess}, expected one of {', '.join(formats(result))}")
    renderer = import_module(f"{__package__}.{result}_{format}").render
    accepted = renderer.__kwdefaults__ or {}
    text: str = renderer(value, **{name: value for name, value in options.items() if name in accepted})
    if format in _LINES:
        return without_commands(text)
    return without_marks(text, _MARKS[format]) if format in _MARKS else text
