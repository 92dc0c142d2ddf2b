"""Options that several sub-commands share."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ir_scatter.core.errors import UsageError
from ir_scatter.core.shapes import Shape, parse_shape
from ir_scatter.report.registry import formats

if TYPE_CHECKING:  # generic for type checkers only: older releases cannot be subscripted
    _CodesType = click.ParamType[tuple[str, ...]]
    _InputShapeType = click.ParamType[tuple[str, Shape]]
else:
    _CodesType = _InputShapeType = click.ParamType


_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


class SettingsCommand(click.Command):
    """A command whose options take their defaults from pyproject.toml."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the defaults before the command line is parsed."""
        from ir_scatter.settings import load

        try:
            defaults, ignores = load()
        except UsageError as error:
            raise click.UsageError(str(error)) from None
        known = {option.name for option in self.params}
        extra["default_map"] = {key: value for key, value in defaults.items() if key in known}
        extra["obj"] = ignores
        return super().make_context(info_name, args, parent, **extra)


class Codes(_CodesType):
    """Prefixes of codes, separated by commas."""

    name = "CODES"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split the text and demand that each prefix begins a code."""
        from ir_scatter.validate import check_codes

        codes = tuple(code.strip().upper() for code in str(value).split(",") if code.strip())
        try:
            check_codes(codes or [""])
        except UsageError as error:
            self.fail(str(error), param, ctx)
        return codes


class InputShape(_InputShapeType):
    """NAME=1,3,?: the shape of one input."""

    name = "NAME=1,3,?"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Shape]:
        """Split at the last equals sign and read the shape."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).rpartition("=")
        if not equals or not name:
            self.fail(f"{value!r} is no input shape, expected NAME=1,3,?", param, ctx)
        try:
            return name, parse_shape(text)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


def flatten(groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Join the values of an option that was given several times."""
    return tuple(item for group in groups for item in group)


def format_option(result: str, help: str, leave_out: Sequence[str] = ()) -> _Decorator:
    """--format, with the formats that a result can be written in."""
    known = [name for name in formats(result) if name not in leave_out]
    return click.option("--format", type=click.Choice(known), default="text", show_default=True, help=help)


output_option = click.option(
    "-o", "--output", metavar="FILE", help="Write to a file instead of standard output."
)
exclude_option = click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out paths that match.")
