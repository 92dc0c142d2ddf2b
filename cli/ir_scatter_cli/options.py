"""Options that several sub-commands share."""

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ir_scatter.core.errors import UsageError
from ir_scatter.core.shapes import Shape, parse_shape
from ir_scatter_cli import exits

if TYPE_CHECKING:  # generic for type checkers only: older releases cannot be subscripted
    _CodesType = click.ParamType[tuple[str, ...]]
    _InputShapeType = click.ParamType[tuple[str, Shape]]
else:
    _CodesType = _InputShapeType = click.ParamType


class SettingsCommand(click.Command):
    """A command whose options take their defaults from pyproject.toml."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the defaults before the command line is parsed."""
        from ir_scatter_cli import settings

        defaults, ignores = settings.load()
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


def use_color(is_file: bool) -> bool:
    """Tell whether to colour standard output: on a terminal, unless NO_COLOR says otherwise."""
    return not is_file and not os.environ.get("NO_COLOR") and sys.stdout.isatty()


def write(text: str, output: str | None) -> None:
    """Write to standard output, or to a file that appears whole or not at all."""
    data = text.encode("utf-8", "backslashreplace")
    if output is None:
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise exits.ReaderGone from None
        return
    write_file(output, lambda file: file.write(data))


def write_file(output: str, save: Callable[[IO[bytes]], object]) -> None:
    """Write a file that appears whole or not at all.

    Args:
        output: the file.
        save: writes the contents.
    """
    target = Path(output)
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as device:
                save(device)
            return
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".ir-scatter-", delete=False) as file:
            try:
                save(file)
                os.chmod(file.name, target.stat().st_mode if target.exists() else 0o666 & ~_umask())
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        click.echo(f"ir-scatter: {output}: cannot be written: {(error.strerror or '').lower()}", err=True)
        raise click.exceptions.Exit(exits.UNREADABLE) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
