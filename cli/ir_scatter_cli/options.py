"""Options that several sub-commands share."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ir_scatter.core.errors import CannotWrite, NoInputs, UnreadableModel, UsageError
from ir_scatter.core.shapes import Shape, parse_shape
from ir_scatter.report.characters import visible
from ir_scatter.report.registry import formats
from ir_scatter_cli import exits
from ir_scatter_cli.output import say

if TYPE_CHECKING:  # generic for type checkers only: older releases cannot be subscripted
    _CodesType = click.ParamType[tuple[str, ...]]
    _InputShapeType = click.ParamType[tuple[str, Shape]]
else:
    _CodesType = _InputShapeType = click.ParamType


_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


class Command(click.Command):
    """A command that says what is wrong with its options, and which file cannot be read or written."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (UsageError, NoInputs) as error:
            raise click.UsageError(visible(str(error)), ctx) from None
        except (UnreadableModel, CannotWrite) as error:
            say(error)
            return exits.UNREADABLE


class SettingsCommand(Command):
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
    """Prefixes of codes, separated by commas; each begins a code."""

    name = "CODES"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
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

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, Shape]:
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
    return choice_option(
        "--format", [name for name in formats(result) if name not in leave_out], help, "text"
    )


def number_option(
    *names: str, default: int, help: str, least: int = 1, metavar: str | None = "N", shown: bool = True
) -> _Decorator:
    """An option that is a whole number."""
    kind = click.IntRange(min=least)
    return click.option(*names, type=kind, default=default, show_default=shown, metavar=metavar, help=help)


def choice_option(name: str, choices: Iterable[str], help: str, default: str | None = None) -> _Decorator:
    """An option that is one of some words."""
    kind = click.Choice(list(choices))
    return click.option(name, type=kind, default=default, show_default=default is not None, help=help)


def input_shape_option(help: str) -> _Decorator:
    return click.option("--input-shape", multiple=True, type=InputShape(), help=help)


output_option = click.option(
    "-o", "--output", metavar="FILE", help="Write to a file instead of standard output."
)
exclude_option = click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out paths that match.")
