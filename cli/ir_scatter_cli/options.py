"""Options that several sub-commands share, and how commands show and check them."""

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import click

from ir_scatter.core.errors import (
    Absent,
    CannotWrite,
    EvaluationFailed,
    NoInputs,
    UnreadableModel,
    UsageError,
)
from ir_scatter.core.parameters import spelled
from ir_scatter.core.shapes import Shape, parse_shape
from ir_scatter.report import registry
from ir_scatter.report.characters import visible
from ir_scatter_cli import exits
from ir_scatter_cli.output import say
from ir_scatter_cli.spelling import OptionSpelling

if TYPE_CHECKING:  # generic for type checkers only: older releases cannot be subscripted
    from click.shell_completion import CompletionItem

    _ChoiceType = click.Choice[str]
    _ParsedType = click.ParamType[Any]
else:
    _ChoiceType, _ParsedType = click.Choice, click.ParamType

_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

SECTIONS = WeakKeyDictionary[click.Parameter, str]()
"""The titles of the sections that options are shown in."""


class Command(click.Command):
    """A command that shows examples and groups of options, and says which file cannot be read or written."""

    examples: Sequence[tuple[str, str]] = ()
    """What the command does with some arguments."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, and each option in its section; those of none come last."""
        with formatter.section("Examples"):
            for what, arguments in self.examples:
                formatter.write(f"  # {what}\n  {f'ir-scatter {self.name} {arguments}'.rstrip()}\n")
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
            with spelled(OptionSpelling(ctx.command.name or "").spell):
                return super().invoke(ctx)
        except (UsageError, NoInputs) as error:
            raise exits.WrongUsage(visible(str(error))) from None
        except (Absent, EvaluationFailed) as error:
            say(error)
            return exits.RUNTIME
        except (UnreadableModel, CannotWrite) as error:
            say(error)
            return exits.UNREADABLE


def sub_command(kind: type[Command] = Command) -> Callable[[Callable[..., Any]], Command]:
    """Make a function the command that is called like its module."""

    def make(function: Callable[..., Any]) -> Command:
        made = click.command(function.__module__.rpartition(".")[2], cls=kind)(function)
        made.examples = function.__dict__.pop("examples", [])[::-1]
        return made

    return make


def example(what: str, arguments: str) -> _Decorator:
    """A line of the help: what the command does with some arguments."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__dict__.setdefault("examples", []).append((what, arguments))
        return function

    return add


class SettingsCommand(Command):
    """A command whose options take their defaults from pyproject.toml; `ProjectSettings` are its object."""

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
    from ir_scatter.rules.selection import code_prefixes

    return code_prefixes(text)


def _parse_opset(text: str) -> int:
    """Return the number of an opset, which people write with the word before it."""
    number = text.lower().removeprefix("opset")
    try:
        return int(number)
    except ValueError:
        raise ValueError(f"{number!r} is no whole number") from None


def _parse_input_shape(text: str) -> tuple[str, Shape]:
    name, equals, shape = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is no input shape, expected NAME=1,3,?")
    try:
        return name, parse_shape(shape)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None


def _parse_site(text: str) -> str:
    """Return where pages are: a link of another scheme, "javascript:", would do something else."""
    from urllib.parse import urlsplit

    try:
        split = urlsplit(text)
        is_web = split.scheme in {"http", "https"} and bool(split.hostname)
        is_path = not split.scheme and not split.netloc and bool(split.path)
    except ValueError:
        is_web = is_path = False
    is_none = not text
    if not (is_web or is_path or is_none) or not text.isprintable() or any(one in text for one in ' \\<>"'):
        raise ValueError(
            f"{text!r} is no site, expected one like https://example.org/pages or a relative path"
        )
    return text


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


OPSET = Parsed("opset", _parse_opset)
SIZE = Parsed("SIZE", _parse_size)
_KINDS = {
    "N": Number(min=1),
    "N>=0": Number(min=0),
    "SECONDS": Seconds(0.001),
    "SIZE": SIZE,
    "URL": Parsed("URL", _parse_site),
    "CODES": Parsed("CODES", _parse_codes),
    "NAME=1,3,?": Parsed("NAME=1,3,?", _parse_input_shape),
}
"""What the word behind the name of an option says of its values."""

# Options


def offer(kind: str) -> "Callable[..., list[CompletionItem[str]]]":
    """Return what completes a value of some kind; a shell waits for it, and never sees it fail."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        from ir_scatter_cli import completion

        if kind in {"file", "dir"}:
            return [CompletionItem(incomplete, type=kind)]
        with suppress(Exception):  # whatever a file on the line makes of it
            return completion.complete(kind, incomplete)
        return []

    return complete


def section(title: str) -> _Decorator:
    """Show the options below this, up to the next section, under a title."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        for param in getattr(function, "__click_params__", ()):
            SECTIONS.setdefault(param, title)
        return function

    return mark


_STDIN_FORMATS = {"ir": "openvino-ir", "onnx": "onnx"}
_SHARED: dict[str, dict[str, Any]] = {
    "-o, --output FILE": {"help": "Write to a file instead of standard output."},
    "--exclude GLOB...": {"help": "Leave out paths that match."},
    "--overwrite": {"help": "Replace files that exist."},
    "--stdin-format": {
        "help": "What - is; else its content tells.",
        "choices": _STDIN_FORMATS,
        "callback": lambda _, __, value: _STDIN_FORMATS.get(value),
    },
    "-v, --verbose": {"help": "Say what was passed over."},
}
"""Options that several commands have."""


def option(declared: str, help: str = "", name: str | None = None, **more: Any) -> _Decorator:
    """An option as its help shows it, "-o, --output FILE"; with dots, "GLOB...", it may be repeated.

    Where nothing stands behind its names, and there are no `choices`, it is a flag. Its value goes to the
    parameter of that name; `offers` says what a shell completes it with. A default is shown unless the help
    says it.
    """
    more = {**_SHARED[declared]} if not help else {"help": help, **more}
    words = declared.split(" ")
    names = [word.rstrip(",") for word in words if word.startswith("-")]
    metavar = "".join(words[len(names) :])
    known: dict[str, Any] = {"show_default": "default" in more and "[default" not in more["help"]}
    if choices := more.pop("choices", ()):
        known["type"] = Choice([str(one) for one in choices])
    elif metavar:
        known["multiple"], metavar = metavar.endswith("..."), metavar.removesuffix("...")
        known |= {"type": _KINDS.get(metavar), "metavar": metavar.partition(">")[0]}
    else:
        known["is_flag"] = True
    if offers := more.pop("offers", {"FILE": "file", "DIR": "dir"}.get(metavar.partition(".")[0])):
        known["shell_complete"] = offer(offers)
    return click.option(*names, *filter(None, [name]), **known | more)


def formats(result: str, help: str, leave_out: str = "") -> _Decorator:
    """--format, with the formats that a result can be written in."""
    names = [name for name in registry.formats(result) if name != leave_out]
    return option("--format", help, choices=names, default="text")


def argument(metavar: str, name: str, offers: str = "file", **more: Any) -> _Decorator:
    """What stands on the line without the name of an option; with dots, "PATH...", any number."""
    count, complete = -1 if metavar.endswith("...") else 1, offer(offers)
    return click.argument(name, nargs=count, required=True, metavar=metavar, shell_complete=complete, **more)
