"""Options that several sub-commands share, and how commands show and check them."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

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
    _ParsedType = click.ParamType[Any]
else:
    _ChoiceType, _ParsedType = click.Choice, click.ParamType

_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

SECTIONS = WeakKeyDictionary[click.Parameter, str]()
"""The titles of the sections that options are shown in."""


class Command(click.Command):
    """A command that shows examples and groups of options, and says which file cannot be read or written."""

    def __init__(self, *given: Any, examples: Mapping[str, str], **more: Any) -> None:
        """Take command lines by what they do."""
        super().__init__(*given, **more)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, and each option in its section; those of none come last."""
        with formatter.section("Examples"):
            for what, line in self.examples.items():
                formatter.write(f"  # {what}\n  {line}\n")
        sections: dict[str, list[tuple[str, str] | None]] = {}
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        is_help_alone = sum(option not in SECTIONS for option in options) == 1
        for option in options:
            last = next(reversed(sections), "Options") if is_help_alone else "Options"
            sections.setdefault(SECTIONS.get(option, last), []).append(option.get_help_record(ctx))
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


class Parsed(_ParsedType):
    """What a function makes of a text; it raises ValueError or UsageError if that is nothing."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self.parse = name, parse

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return value if isinstance(value, tuple | int) else self.parse(str(value))
        except (ValueError, UsageError) as error:
            self.fail(str(error), param, ctx)


def _parse_codes(text: str) -> tuple[str, ...]:
    from ir_scatter.validate import code_prefixes

    return code_prefixes(text)


def _parse_input_shape(text: str) -> tuple[str, Shape]:
    name, equals, shape = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is no input shape, expected NAME=1,3,?")
    try:
        return name, parse_shape(shape)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None


_UNITS = {
    unit.lower(): base**power
    for base, units in ((1000, "B kB MB GB TB"), (1024, "B KiB MiB GiB TiB"))
    for power, unit in enumerate(units.split())
}


def _parse_size(text: str) -> int:
    """Return a number of bytes: 1073741824, 500MB, 1.5GiB; 1000 and 1024 are told apart, capitals are not."""
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([a-z]*)", text.strip().lower())
    factor = _UNITS.get(found[2] or "b") if found else None
    size = int(float(found[1]) * factor) if found and factor else 0
    if size < 1:
        raise ValueError(f"{text!r} is no size, expected a number of bytes, or 500MB, 1.5GiB")
    return size


class Seconds(click.FloatRange):
    """A number of seconds; NaN is none, though it is not below any limit."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return found


INPUT_SHAPE = Parsed("NAME=1,3,?", _parse_input_shape)
CODES = Parsed("CODES", _parse_codes)
SIZE = Parsed("SIZE", _parse_size)

# Options


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


def section(title: str) -> _Decorator:
    """Show the options below this, up to the next section, under a title."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        for param in getattr(function, "__click_params__", ()):
            SECTIONS.setdefault(param, title)
        return function

    return mark


def flag(*names: str, help: str) -> _Decorator:
    return click.option(*names, is_flag=True, help=help)


def texts(name: str, metavar: str, help: str) -> _Decorator:
    """An option that is given as often as one likes."""
    return click.option(name, multiple=True, metavar=metavar, help=help)


def format(result: str, help: str, leave_out: Sequence[str] = ()) -> _Decorator:
    """--format, with the formats that a result can be written in."""
    return choice("--format", [name for name in formats(result) if name not in leave_out], help, "text")


def number(*names: str, default: int, help: str, least: int = 1, shown: bool = True) -> _Decorator:
    """An option that is a whole number."""
    kind = Number(min=least)
    return click.option(*names, type=kind, default=default, show_default=shown, metavar="N", help=help)


def seconds(
    name: str, *, least: float, help: str, most: float | None = None, default: float | None = None,
    metavar: str = "SECONDS",
) -> _Decorator:  # fmt: skip
    return click.option(name, type=Seconds(least, most), default=default, metavar=metavar, help=help)


def choice(
    name: str, choices: Iterable[str], help: str, default: str | None = None, *, shown: bool = True
) -> _Decorator:
    """An option that is one of some words."""
    kind, is_shown = Choice(list(choices)), shown and default is not None
    return click.option(name, type=kind, default=default, show_default=is_shown, help=help)


def input_shape(help: str) -> _Decorator:
    return click.option("--input-shape", multiple=True, type=INPUT_SHAPE, help=help)


def file(*names: str, metavar: str, help: str) -> _Decorator:
    """An option that names a file or, with the metavar "DIR", a folder."""
    complete = offer("folders" if metavar == "DIR" else "files")
    return click.option(*names, metavar=metavar, help=help, shell_complete=complete)


def codes(name: str, help: str) -> _Decorator:
    """Names of rules and prefixes of codes, separated by commas."""
    return click.option(name, multiple=True, type=CODES, help=help, shell_complete=offer("codes"))


def size(name: str, default: str, help: str) -> _Decorator:
    return click.option(name, type=SIZE, default=default, help=help)


def words(*names: str, kind: str, metavar: str, help: str, multiple: bool = True) -> _Decorator:
    """An option whose values a shell completes with those of a kind."""
    return click.option(*names, metavar=metavar, multiple=multiple, help=help, shell_complete=offer(kind))


def models(name: str = "path", metavar: str = "MODEL", *, several: bool = False) -> _Decorator:
    count, complete = -1 if several else 1, offer("files")
    return click.argument(name, nargs=count, required=True, metavar=metavar, shell_complete=complete)


output = file("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
exclude = texts("--exclude", "GLOB", "Leave out paths that match.")
overwrite = flag("--overwrite", help="Replace files that exist.")
verbose = flag("-v", "--verbose", help="Say what was passed over.")

_STDIN_FORMATS = {"ir": "openvino-ir", "onnx": "onnx"}
stdin_format = click.option(
    "--stdin-format",
    type=Choice(list(_STDIN_FORMATS)),
    callback=lambda _, __, value: _STDIN_FORMATS.get(value),
    help="What - is; else its content tells.",
)
