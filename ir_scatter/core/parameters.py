"""Spells parameters in messages as the caller writes them: `guard="drop"` or `--guard drop`.

A message contains `Parameter("guard", "drop")`, never an option. Callers from Python read `guard="drop"`. The
command line sets another spelling (`spelled`), so that its users read `--guard drop`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import NamedTuple, TypeAlias


class Parameter(NamedTuple):
    """A parameter of a function, alone or with a recommended value.

    Attributes:
        name: the argument's name in Python, "map_inputs".
        value: the recommended value, None to name the parameter only; True and False set and clear a flag.
        function: the function that has the parameter, "convert"; "" for the function that was called.
    """

    name: str
    value: object = None
    function: str = ""

    def __str__(self) -> str:
        return _spelling[-1](self)


class Invocation(NamedTuple):
    """A recommended call of a function: `convert(guard="clamp")`.

    Attributes:
        arguments: values by the name of their parameter, in this order.
        models: the paths of the models, which come before the arguments.
        written_to: the file for the result; "" if it is not written.
    """

    function: str
    arguments: Mapping[str, object]
    models: tuple[str, ...] = ()
    written_to: str = ""

    def __str__(self) -> str:
        return _spelling[-1](self)

    def for_model(self, path: str) -> "Invocation":
        """Return the call with a model, and a new file beside it that the result is written to."""
        return self._replace(models=(path,), written_to=f"NEW{PurePath(path).suffix}")


class Text:
    """A text that contains parameters or calls; they are spelled when the text is read."""

    def __init__(self, template: str, *parts: Parameter | Invocation) -> None:
        """Set a template in which each `{}` stands for one of the parts."""
        self.template, self.parts = template, parts

    def __str__(self) -> str:
        return self.template.format(*self.parts)


Spelling: TypeAlias = "Callable[[Parameter | Invocation], str]"
"""A function that spells a parameter or a call; pickled by reference for the processes of a pool."""


def in_python(part: Parameter | Invocation) -> str:
    """Return the Python source of an argument or a call."""
    if isinstance(part, Invocation):
        arguments = [in_python(Parameter(*pair)) for pair in part.arguments.items()]
        call = f"{part.function}({', '.join([*map(_literal, part.models), *arguments])})"
        return f"{call}.write({_literal(part.written_to)})" if part.written_to else call
    return part.name if part.value is None else f"{part.name}={_literal(part.value)}"


def _literal(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


_spelling: list[Spelling] = [in_python]


def current_spelling() -> Spelling:
    """Return the current spelling, for use by child processes."""
    return _spelling[-1]


def use_spelling(spelling: Spelling) -> None:
    """Set the spelling of parameters for this process, as received from its parent."""
    _spelling[:] = [spelling]


@contextmanager
def spelled(spelling: Spelling) -> Iterator[None]:
    """Change the spelling of parameters within this block."""
    _spelling.append(spelling)
    try:
        yield
    finally:
        _spelling.pop()
