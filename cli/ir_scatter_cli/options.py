"""Declares commands and options: shared options, value types, help sections, completion."""

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
from ir_scatter.core.files import expanded
from ir_scatter.core.parameters import spelled
from ir_scatter.core.shapes import Shape, parse_shape
from ir_scatter.core.value_ranges import ValueRange, parse_range
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
"""Title of the help section of each option."""


class Command(click.Command):
    """A command with examples and option sections in its help; turns library errors into exit codes."""

    examples: Sequence[tuple[str, str]] = ()
    """(purpose, arguments) of each example."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then the options by section; options without a section come last."""
        with formatter.section("Examples"):
            for purpose, arguments in self.examples:
                formatter.write(f"  # {purpose}\n  {f'ir-scatter {self.name} {arguments}'.rstrip()}\n")
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
    """Turn a function into a command named after its module."""

    def make(function: Callable[..., Any]) -> Command:
        command = click.command(function.__module__.rpartition(".")[2], cls=kind)(function)
        command.examples = function.__dict__.pop("examples", [])[::-1]
        return command

    return make


def example(purpose: str, arguments: str) -> _Decorator:
    """Add an example to the help: its purpose, and the arguments of the command."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__dict__.setdefault("examples", []).append((purpose, arguments))
        return function

    return add


class SettingsCommand(Command):
    """A command whose option defaults come from pyproject.toml; `ctx.obj` is the `ProjectSettings`."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the defaults and check them against the option types, before arguments are parsed."""
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


# Types of option values


class SuggestingChoice(_ChoiceType):
    """One of several words; the error for any other word suggests the most similar one."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            from ir_scatter.core.suggestions import did_you_mean

            words = [str(choice) for choice in self.choices]
            guess = did_you_mean(str(value), words)
            self.fail(f"{value!r} is not one of {', '.join(words)}{guess}", param, ctx)


class Number(click.IntRange):
    """A whole number."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return super().convert(int(value), param, ctx)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a whole number", param, ctx)


class Parsed(_ParsedType):
    """The result of a parser function, which raises ValueError or UsageError for invalid text."""

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
    """Parse an opset number: "17" or "opset17"."""
    number = text.lower().removeprefix("opset")
    try:
        return int(number)
    except ValueError:
        raise ValueError(f"{number!r} is not a whole number") from None


def _parse_input_shape(text: str) -> tuple[str, Shape]:
    name, equals, shape = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not an input shape, expected NAME=1,3,?")
    try:
        return name, parse_shape(shape)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None


def _parse_input_range(text: str) -> "tuple[str, ValueRange]":
    name, equals, ends = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not an input range, expected NAME=LOW..HIGH")
    try:
        return name, parse_range(ends)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None


def _parse_site(text: str) -> str:
    """Check the address of a documentation site: only http, https and relative paths (no "javascript:")."""
    from urllib.parse import urlsplit

    try:
        split = urlsplit(text)
        is_web = split.scheme in {"http", "https"} and bool(split.hostname)
        is_path = not split.scheme and not split.netloc and bool(split.path)
    except ValueError:
        is_web = is_path = False
    is_none = not text
    if (
        not (is_web or is_path or is_none)
        or not text.isprintable()
        or any(character in text for character in ' \\<>"')
    ):
        raise ValueError(
            f"{text!r} is not a site, expected one like https://example.org/pages or a relative path"
        )
    return text


_UNITS = {
    unit.lower(): base**power
    for base, units in ((1000, "B kB MB GB TB"), (1024, "B KiB MiB GiB TiB"))
    for power, unit in enumerate(units.split())
}


def _parse_size(text: str) -> int:
    """Parse a number of bytes: 1073741824, 500MB (1000s), 1.5GiB (1024s); case does not matter."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([a-z]*)", text.strip().lower())
    factor = _UNITS.get(match[2] or "b") if match else None
    size = int(float(match[1]) * factor) if match and factor else 0
    if size < 1:
        raise ValueError(f"{text!r} is not a size, expected a number of bytes, or 500MB, 1.5GiB")
    return size


class Seconds(click.FloatRange):
    """A number of seconds; rejects NaN, which passes every range check."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return seconds


OPSET = Parsed("opset", _parse_opset)
SIZE = Parsed("SIZE", _parse_size)
_KINDS = {
    "N": Number(min=1),
    "N>=0": Number(min=0),
    "SECONDS": Seconds(0.001),
    "SIZE": SIZE,
    "URL": Parsed("URL", _parse_site),
    "CODES": Parsed("CODES", _parse_codes),
    "FILE": Parsed("FILE", expanded),
    "DIR": Parsed("DIR", expanded),
    "NAME=1,3,?": Parsed("NAME=1,3,?", _parse_input_shape),
    "NAME=LOW..HIGH": Parsed("NAME=LOW..HIGH", _parse_input_range),
}
"""Value type of an option by its metavar."""

# Options


def offer(kind: str) -> "Callable[..., list[CompletionItem[str]]]":
    """Return a completion function for a kind of value; it never raises, as a shell would print the error."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        from ir_scatter_cli import completion

        if kind in {"file", "dir"}:
            return [CompletionItem(incomplete, type=kind)]
        with suppress(Exception):  # the model on the command line may be broken in any way
            return completion.complete(kind, incomplete)
        return []

    return complete


def section(title: str) -> _Decorator:
    """Put all options declared below this, up to the next section, under a title in the help."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        for param in getattr(function, "__click_params__", ()):
            SECTIONS.setdefault(param, title)
        return function

    return mark


_STDIN_FORMATS = {"ir": "openvino-ir", "onnx": "onnx"}
_SHARED: dict[str, dict[str, Any]] = {
    "-o, --output FILE": {"help": "Write to a file instead of standard output."},
    "--exclude GLOB...": {"help": "Skip paths that match."},
    "--overwrite": {"help": "Replace files that exist."},
    "--stdin-format": {
        "help": "Format of standard input; detected by default.",
        "choices": _STDIN_FORMATS,
        "callback": lambda _, __, value: _STDIN_FORMATS.get(value),
    },
    "-q, --quiet": {"help": "Show no progress."},
    "-v, --verbose": {"help": "List the files that were skipped."},
    "--given TEXT...": {"help": 'Condition that inputs satisfy, "position in 0..15"; repeatable, or @FILE.'},
    "--input-range NAME=LOW..HIGH...": {"help": "Generate numbers of this input in this range; repeatable."},
}
"""Options that several commands share without differences."""


def option(declared: str, help: str = "", name: str | None = None, **more: Any) -> _Decorator:
    """Declare an option as its help shows it: "-o, --output FILE"; "GLOB..." may be repeated.

    Without a metavar and without `choices` it is a flag. `name` is the parameter that gets the value,
    `offers` the kind of completion. A default is appended to the help unless the help names it.
    """
    more = {**_SHARED[declared]} if not help else {"help": help, **more}
    words = declared.split(" ")
    names = [word.rstrip(",") for word in words if word.startswith("-")]
    metavar = "".join(words[len(names) :])
    settings: dict[str, Any] = {"show_default": "default" in more and "[default" not in more["help"]}
    if choices := more.pop("choices", ()):
        settings["type"] = SuggestingChoice([str(choice) for choice in choices])
    elif metavar:
        settings["multiple"], metavar = metavar.endswith("..."), metavar.removesuffix("...")
        settings |= {
            "type": _KINDS.get(metavar) or _KINDS.get(metavar.partition(".")[0]),
            "metavar": metavar.partition(">")[0],
        }
    else:
        settings["is_flag"] = True
    if metavar == "RUNNER":
        settings["callback"] = _split_runners
    if offers := more.pop("offers", {"FILE": "file", "DIR": "dir"}.get(metavar.partition(".")[0])):
        settings["shell_complete"] = offer(offers)
    return click.option(*names, *filter(None, [name]), **settings | more)


def formats(result: str, help: str, leave_out: str = "") -> _Decorator:
    """Declare --format with the output formats of a result."""
    names = [name for name in registry.formats(result) if name != leave_out]
    return option("--format", help, choices=names, default="text")


def _split_runners(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Split "CPU,GPU" into names; commas in names of virtual devices stay: "AUTO:GPU,CPU"."""
    names = list[str]()
    for value in values:
        is_virtual = value.rpartition("/")[2].removeprefix("openvino:").upper().startswith(_VIRTUAL)
        names += [value] if is_virtual else [name.strip() for name in value.split(",") if name.strip()]
    return tuple(names)


_VIRTUAL = ("AUTO", "HETERO", "MULTI", "BATCH")
"""First words of names of devices that distribute work to other devices in OpenVINO."""


def argument(metavar: str, name: str, offers: str = "file", **more: Any) -> _Decorator:
    """Declare a positional argument; "PATH..." accepts any number."""
    count, complete = -1 if metavar.endswith("...") else 1, offer(offers)
    return click.argument(
        name,
        nargs=count,
        required=not metavar.startswith("["),
        metavar=metavar,
        shell_complete=complete,
        **more,
    )
