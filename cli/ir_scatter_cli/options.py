"""Options that several sub-commands share, and how commands show and check them."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ir_scatter.core.errors import Absent, CannotWrite, NoInputs, UnreadableModel, UsageError
from ir_scatter.core.shapes import Shape, parse_shape
from ir_scatter.report.characters import visible
from ir_scatter.report.registry import formats
from ir_scatter_cli import exits
from ir_scatter_cli.output import say

if TYPE_CHECKING:  # generic for type checkers only: older releases cannot be subscripted
    from click.shell_completion import CompletionItem

    from ir_scatter.settings import Settings

    _ChoiceType = click.Choice[str]
    _CodesType = click.ParamType[tuple[str, ...]]
    _InputShapeType = click.ParamType[tuple[str, Shape]]
    _SizeType = click.ParamType[int]
else:
    _ChoiceType = click.Choice
    _CodesType = _InputShapeType = _SizeType = click.ParamType


_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


class Command(click.Command):
    """A command that shows examples and groups of options, and says which file cannot be read or written."""

    def __init__(
        self,
        *given: Any,
        examples: Mapping[str, str] | None = None,
        sections: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """Take command lines by what they do, and names of options ("--on --each") by the title of a group.

        Those of no group come last.
        """
        super().__init__(*given, **more)
        self.examples, self.sections = examples or {}, sections or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, and each option in its group."""
        if self.examples:
            with formatter.section("Examples"):
                for what, line in self.examples.items():
                    formatter.write(f"  # {what}\n  {line}\n")
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        left = {option.opts[-1]: option.get_help_record(ctx) for option in options}
        sections = {
            title: [left.pop(name) for name in names.split()] for title, names in self.sections.items()
        }
        last = next(reversed(sections), "Options") if len(left) == 1 else "Options"  # where --help stands
        sections[last] = [*sections.get(last, ()), *left.values()]
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl([record for record in records if record is not None])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (UsageError, NoInputs) as error:
            raise exits.WrongUsage(visible(str(error))) from None
        except Absent as error:
            say(error)
            return exits.RUNTIME
        except (UnreadableModel, CannotWrite) as error:
            say(error)
            return exits.UNREADABLE


class SettingsCommand(Command):
    """A command whose options take their defaults from pyproject.toml; `Settings` are its object."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the defaults, and hold them against the types of their options, before anything is parsed."""
        if extra.get("resilient_parsing"):
            return super().make_context(info_name, args, parent, **extra)
        from ir_scatter.settings import load

        try:
            settings = load()
        except UsageError as error:
            raise exits.WrongUsage(str(error)) from None
        for option in (option for option in self.params if option.name in settings.defaults):
            try:
                option.type_cast_value(click.Context(self, parent, info_name), settings.defaults[option.name])
            except click.BadParameter as error:
                raise exits.WrongUsage(f"{settings.named(option.name)}: {error.message}") from None
        extra["default_map"] = settings.defaults
        extra["obj"] = settings
        return super().make_context(info_name, args, parent, **extra)


def where_from(context: click.Context, name: str) -> str:
    """Return what the user wrote to give an option its value: "--baseline", or the file and the key."""
    settings: Settings = context.obj
    if context.get_parameter_source(name) is click.core.ParameterSource.DEFAULT_MAP:
        return settings.named(name)
    return "--" + name.replace("_", "-")


# Kinds of values


class Choice(_ChoiceType):
    """One of some words; who writes another one hears which was meant."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            from ir_scatter.core.suggestions import did_you_mean

            words = [str(one) for one in self.choices]
            guess = did_you_mean(str(value), words)
            self.fail(f"{value!r} is not one of {', '.join(words)}{guess}", param, ctx)


class Number(click.IntRange):
    """A whole number."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return super().convert(int(value), param, ctx)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no whole number", param, ctx)


class Opset(Number):
    """The number of an opset, which people write with the word before it."""

    name = "opset"

    def _describe_range(self) -> str:
        """Return nothing: the command says which opsets there are."""
        return ""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return super().convert(str(value).lower().removeprefix(self.name), param, ctx)


class Codes(_CodesType):
    """Names of rules and prefixes of codes, separated by commas."""

    name = "CODES"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        from ir_scatter.validate import code_prefixes

        try:
            return value if isinstance(value, tuple) else code_prefixes(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


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


_UNITS = {
    unit.lower(): base**power
    for base, units in ((1000, "B kB MB GB TB"), (1024, "B KiB MiB GiB TiB"))
    for power, unit in enumerate(units.split())
}


class Size(_SizeType):
    """A number of bytes: 1073741824, 500MB, 1.5GiB; 1000 and 1024 are told apart, capitals are not."""

    name = "SIZE"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([a-z]*)", str(value).strip().lower())
        factor = _UNITS.get(found[2] or "b") if found else None
        size = int(float(found[1]) * factor) if found and factor else 0
        if size < 1:
            self.fail(f"{value!r} is no size, expected a number of bytes, or 500MB, 1.5GiB", param, ctx)
        return size


# Options


class Seconds(click.FloatRange):
    """A number of seconds; NaN is none, though it is not below any limit."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return found


def offer(kind: str) -> "Callable[..., list[CompletionItem[str]]]":
    """Return what completes a value of some kind; a shell waits for it, and never sees it fail."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
        try:
            from ir_scatter_cli import completion

            found: list[CompletionItem[str]] = getattr(completion, kind)(ctx, incomplete)
        except Exception:  # whatever a file on the line makes of it
            return []
        return found

    return complete


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
    kind = Number(min=least)
    return click.option(*names, type=kind, default=default, show_default=shown, metavar=metavar, help=help)


def choice_option(
    name: str, choices: Iterable[str], help: str, default: str | None = None, *, shown: bool = True
) -> _Decorator:
    """An option that is one of some words."""
    kind, is_shown = Choice(list(choices)), shown and default is not None
    return click.option(name, type=kind, default=default, show_default=is_shown, help=help)


def input_shape_option(help: str) -> _Decorator:
    return click.option("--input-shape", multiple=True, type=InputShape(), help=help)


def file_option(*names: str, metavar: str, help: str) -> _Decorator:
    """An option that names a file or, with the metavar "DIR", a folder."""
    complete = offer("folders" if metavar == "DIR" else "files")
    return click.option(*names, metavar=metavar, help=help, shell_complete=complete)


def codes_option(name: str, help: str) -> _Decorator:
    return click.option(name, multiple=True, type=Codes(), help=help, shell_complete=offer("codes"))


def words_option(*names: str, kind: str, metavar: str, help: str, multiple: bool = True) -> _Decorator:
    """An option whose values a shell completes with those of a kind."""
    return click.option(*names, metavar=metavar, multiple=multiple, help=help, shell_complete=offer(kind))


def models_argument(name: str = "path", metavar: str = "MODEL", *, several: bool = False) -> _Decorator:
    count, complete = -1 if several else 1, offer("files")
    return click.argument(name, nargs=count, required=True, metavar=metavar, shell_complete=complete)


output_option = file_option(
    "-o", "--output", metavar="FILE", help="Write to a file instead of standard output."
)
exclude_option = click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out paths that match.")
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace files that exist.")

_STDIN_FORMATS = {"ir": "openvino-ir", "onnx": "onnx"}
stdin_format_option = click.option(
    "--stdin-format",
    type=Choice(list(_STDIN_FORMATS)),
    callback=lambda _, __, value: _STDIN_FORMATS.get(value),
    help="What - is; else its content tells.",
)
