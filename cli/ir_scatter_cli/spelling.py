"""Parameters of the library as options of the command line."""

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
        if part.written_to:
            words += _words(option_of(part.function, "output"), part.written_to)
        for name, value in part.arguments.items():
            words += _words(option_of(part.function, name), value)
        return " ".join(words)


def option_of(command: str, name: str) -> str:
    """Return the option of a command that sets a parameter.

    It is the one that hands its value to that name ("targets": `--for`), or is called like it; it may be
    repeatable where the parameter is a plural ("map_inputs": `--map-input`), or clear a flag that is set by
    default ("reference": `--no-reference`). A command that has none of these runs for another one, whose
    options are called like its parameters: a worker.
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
    """Return an option with its value; it is repeated for each item of a list or a mapping."""
    if isinstance(value, Mapping):
        value = [f"{key}={item}" for key, item in value.items()]
    if isinstance(value, list):
        return [word for item in value for word in _words(option, item)]
    return [option] if value is None or isinstance(value, bool) else [option, quote(str(value))]


def _path(path: str) -> str:
    """Return a path that no command line takes for an option."""
    return quote(f"./{path}" if path.startswith("-") else path)
