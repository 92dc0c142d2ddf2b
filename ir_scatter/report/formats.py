"""The formats of a report by name; only the one that is asked for is imported."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from ir_scatter.core.errors import UsageError
from ir_scatter.lint import Report


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write a report.

    Attributes:
        module: the module whose `render(report, **options)` writes it.
        options: the names of the options that `render` takes, all of them switches.
        shows_versions: whether the versions of packages are written.
    """

    module: str
    options: tuple[str, ...] = ()
    shows_versions: bool = False


FORMATS: Mapping[str, Format] = {
    "text": Format("ir_scatter.report.text", ("color", "quiet", "statistics")),
    "concise": Format("ir_scatter.report.concise", ("statistics",)),
    "json": Format("ir_scatter.report.json", shows_versions=True),
    "sarif": Format("ir_scatter.report.sarif", shows_versions=True),
    "junit": Format("ir_scatter.report.junit", ("strict",)),
    "github": Format("ir_scatter.report.github"),
}


def render(report: Report, format_name: str, **options: bool) -> str:
    """Return the report in a format; options it does not have change nothing.

    Args:
        report: what was found.
        format_name: a key of `FORMATS`.
        options: switches by name, "color".

    Raises:
        UsageError: there is no such format.
    """
    if format_name not in FORMATS:
        raise UsageError(f"the format is {format_name!r}, expected one of {', '.join(FORMATS)}")
    chosen = FORMATS[format_name]
    known = {name: value for name, value in options.items() if name in chosen.options}
    text: str = import_module(chosen.module).render(report, **known)
    return text
