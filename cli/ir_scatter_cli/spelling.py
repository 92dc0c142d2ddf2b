"""Spells parameters of the library as options of the command line, for messages."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from shlex import quote
from typing import NamedTuple

from click import Option
from click import Parameter as ClickParameter

from ir_scatter.core.parameters import Invocation, Parameter


class OptionSpelling(NamedTuple):
    """Spells parameters as the options of one command, and calls as commands."""

    command: str

    def spell(self, part: Parameter | Invocation) -> str:
        if isinstance(part, Parameter):
            option = option_of(part.function or self.command, part.name)
            return " ".join(_words(option, part.value) or [option])
        words = ["ir-scatter", part.function, *map(_path, part.models)]
        for name, value in part.arguments.items():
            words += _words(option_of(part.function, name), value)
        if part.written_to:
            words += _words(option_of(part.function, "output"), part.written_to)
        return " ".join(words)


def option_of(command: str, name: str) -> str:
    """Return the option of a command that sets a parameter.

    The option declares that parameter ("targets": `--for`), or has the same name. It may be a repeatable
    singular ("map_inputs": `--map-input`), or clear a flag ("reference": `--no-reference`). A worker runs
    jobs of other commands and has no such option; then the option is named like the parameter.
    """
    dashed = "--" + name.replace("_", "-")
    params = [param for param in _parameters_of(command) if isinstance(param, Option)]
    by_name = {param.name: param.opts[0] for param in params}
    options = {option for param in params for option in param.opts}
    ways = (by_name.get(name, ""), dashed, dashed.removesuffix("s"), dashed.replace("--", "--no-", 1))
    return next((option for option in ways if option in options), dashed)


@cache
def _parameters_of(command: str) -> list[ClickParameter]:
    parameters: list[ClickParameter] = import_module(f"ir_scatter_cli.{command}").command.params
    return parameters


def _words(option: str, value: object) -> list[str]:
    """Return an option with its value as words; for a list or mapping the option is repeated."""
    if isinstance(value, Mapping):
        value = [f"{key}={item}" for key, item in value.items()]
    if isinstance(value, list):
        return [word for item in value for word in _words(option, item)]
    return [option] if value is None or isinstance(value, bool) else [option, quote(str(value))]


def _path(path: str) -> str:
    """Return a path in a form that the command line cannot mistake for an option."""
    return quote(f"./{path}" if path.startswith("-") else path)
