"""One renderer for each result and output format: `render` of the module `RESULT_FORMAT` in this folder.

A new output format is a new file. The options of a renderer are its keyword-only arguments.
"""

import pkgutil
from functools import cache
from importlib import import_module

from ir_scatter.core.display import without_commands, without_marks
from ir_scatter.core.errors import UsageError
from ir_scatter.core.suggestions import did_you_mean

_FIRST = ["text", "concise", "json", "sarif", "junit", "github"]
"""Formats listed first, in this order; others follow by name."""
_LINES = {"text", "concise"}
"""Formats with lines that may begin with a name from the model, and so with a workflow command."""
_MARKS = {"github": r"\x23", "junit": "&#35;", "html": "&#35;"}
"""Escape of "#" by format: breaks "##vso[" and "##[", which CI systems run as commands.

The JSON formats escape it themselves.
"""


@cache
def formats(result: str) -> tuple[str, ...]:
    """Return the names of the formats that a result ("findings", "comparison") can be written in."""
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
