"""Finds the renderer of a result and output format: the function `render` in the module `RESULT_FORMAT` here.

A new output format is a new file. The options of a renderer are its keyword-only arguments, which
`RenderOptions` lists; a new result is an overload of `render`.
"""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, overload

from ir_scatter.core.display import without_commands, without_marks
from ir_scatter.core.errors import UsageError
from ir_scatter.core.suggestions import did_you_mean

if TYPE_CHECKING:
    from ir_scatter.compare.request import ComparedModels
    from ir_scatter.contract import Contract
    from ir_scatter.convert.conversion import ConversionRun
    from ir_scatter.core.arrays import Array
    from ir_scatter.doctor import Diagnosis
    from ir_scatter.explain import Entry
    from ir_scatter.fuzz.campaign import Campaign
    from ir_scatter.fuzz.replay import ReplayOutcome
    from ir_scatter.inspect import Inspection
    from ir_scatter.jobs.machine import Machine
    from ir_scatter.lint import Report
    from ir_scatter.rewrites.base import Rewrite
    from ir_scatter.runners.base import Availability
    from ir_scatter.runners.releases.environments import Environment

_FIRST = ["text", "concise", "json", "sarif", "junit", "github"]
"""Formats listed first, in this order; others follow by name."""
_LINES = {"text", "concise"}
"""Formats whose lines may begin with a name from the model; a CI system could run that as a command."""
_MARKS = {"github": r"\x23", "junit": "&#35;", "html": "&#35;"}
"""Escape of "#" by format: it breaks up "##vso[" and "##[", which CI systems run as commands.

The JSON formats escape it in `characters.dumps`.
"""


@cache
def formats(result: str) -> tuple[str, ...]:
    """Return the names of the output formats of a result ("findings", "comparison")."""
    modules = (module.name for module in pkgutil.iter_modules(import_module(__package__).__path__))
    names = {name.removeprefix(f"{result}_") for name in modules if name.startswith(f"{result}_")}
    return (*(name for name in _FIRST if name in names), *sorted(names.difference(_FIRST)))


class RenderOptions(TypedDict, total=False):
    """Options of renderers; each format uses some, and ignores the others."""

    color: bool
    width: int | None
    """Cells of the terminal; None for no wrapping."""
    verbose: bool
    quiet: bool
    statistics: bool
    strict: bool
    hint: str
    """What else can be checked, if nothing was found."""
    docs_url: str | None
    each: bool
    environments: "Sequence[Environment]"
    machines: "Sequence[Machine]"
    inputs: str | None
    against: str | None
    command: str
    date: str
    host: str
    not_computed: Mapping[str, str]
    """Outputs without a result, each with the node that NumPy does not support."""


@overload
def render(
    result: Literal["comparison"], format: str, value: "ComparedModels", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["contract"], format: str, value: "Sequence[Contract]", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["conversion"], format: str, value: "ConversionRun", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["devices"], format: str, value: "Sequence[Availability]", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["doctor"], format: str, value: "Sequence[Diagnosis]", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["findings"], format: str, value: "Report", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["fuzz"], format: str, value: "Campaign", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["inspection"],
    format: str,
    value: "Sequence[Inspection]",
    **options: Unpack[RenderOptions],
) -> str: ...


@overload
def render(
    result: Literal["outputs"], format: str, value: "Mapping[str, Array]", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["replay"], format: str, value: "Sequence[ReplayOutcome]", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["routes"], format: str, value: "Sequence[Rewrite]", **options: Unpack[RenderOptions]
) -> str: ...


@overload
def render(
    result: Literal["rules"], format: str, value: "Sequence[Entry]", **options: Unpack[RenderOptions]
) -> str: ...


def render(result: str, format: str, value: object, **options: object) -> str:
    """Return a result in an output format; options that the format does not have are ignored.

    Raises:
        UsageError: there is no such format.
    """
    if format not in formats(result):
        guess = did_you_mean(format, formats(result))
        raise UsageError(f"the format is {format!r}{guess}, expected one of {', '.join(formats(result))}")
    renderer: Callable[..., str] = import_module(f"{__package__}.{result}_{format}").render
    accepted = getattr(renderer, "__kwdefaults__", None) or {}
    text = renderer(value, **{name: option for name, option in options.items() if name in accepted})
    if format in _LINES:
        return without_commands(text)
    return without_marks(text, _MARKS[format]) if format in _MARKS else text
