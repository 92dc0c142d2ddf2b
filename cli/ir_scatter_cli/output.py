"""Output of commands: results on standard output or in files, remarks and progress on standard error."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypedDict

import click

from ir_scatter.core.errors import explained
from ir_scatter.report.characters import visible, without_commands, without_middle
from ir_scatter_cli import exits


def say(line: object) -> None:
    """Print a remark on standard error, apart from results."""
    click.echo(without_commands(f"ir-scatter: {visible(str(line))}"), err=True)


class OutputStyle(TypedDict):
    """Options of `render` for the terminal."""

    color: bool
    width: int | None


def style(output: str | None = None) -> OutputStyle:
    """Return options of `render`: colour and width of the terminal, if the result is written to one."""
    return {
        "color": use_color(is_file=output is not None),
        "width": terminal_width() if output is None else None,
    }


def terminal_width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def use_color(*, is_file: bool = False) -> bool:
    """Whether to colour standard output: on a terminal (unless TERM=dumb), or with FORCE_COLOR.

    NO_COLOR overrides both. Files are never coloured.
    """
    if is_file or os.environ.get("NO_COLOR"):
        return False
    is_smart = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return bool(os.environ.get("FORCE_COLOR")) or is_smart


def write(content: str | bytes, output: str | None = None, *, is_new: bool = False) -> None:
    """Write to standard output, or atomically to a file.

    With `is_new`, fails if a file exists at the path by the time of writing.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    if output is None:
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise exits.ReaderGone from None
    elif not is_device(output):
        from ir_scatter.core.atomic_write import Output, replace_files

        replace_files([Output(Path(output), data, is_new=is_new)])
    else:
        # /dev/stdout may be a file with earlier content: append.
        with explained(output), open(output, "ab") as device:
            device.write(data)


def is_device(path: str) -> bool:
    """Whether a path must be written into, not replaced: a pipe, a device, /dev/stdout."""
    folder = Path(os.path.abspath(path)).parts[1:2]
    return folder in {("dev",), ("proc",)} or (os.path.exists(path) and not os.path.isfile(path))


class Circumstances(TypedDict):
    """Options of `render` for the header of an HTML report."""

    command: str
    date: str
    host: str


def circumstances() -> Circumstances:
    """Return command, date and machine, for the header of an HTML report."""
    import platform
    import shlex
    from datetime import datetime

    machine = [platform.node(), platform.platform(), f"Python {platform.python_version()}"]
    return {
        "command": shlex.join(["ir-scatter", *sys.argv[1:]]),
        "date": f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %z}",
        "host": ", ".join([*filter(None, machine), f"{os.cpu_count()} processors"]),
    }


_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES = "|/-\\"
_PATIENCE = 0.4
"""Seconds before the spinner appears: shorter work shows nothing."""


@contextmanager
def spinner(begun: object = "starting") -> Iterator[Callable[[object], None] | None]:
    """Show progress on standard error; yield a function to change the phase, or None without a terminal.

    A phase is any object; its `str()` is computed for every frame, so that it can change. Further lines
    appear below the first.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or os.environ.get("CI"):
        yield None
        return
    import threading
    import time

    phase, ended, started = [begun], threading.Event(), time.monotonic()
    is_utf8 = (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"
    frames = _FRAMES if is_utf8 else _PLAIN_FRAMES

    def draw() -> None:
        for number in count():
            if ended.wait(_PATIENCE if not number else 0.1):
                break
            first, *rest = str(phase[0]).split("\n")
            first = f"{frames[number % len(frames)]} {visible(first)}, {time.monotonic() - started:.0f} s"
            size = shutil.get_terminal_size()
            rest = [visible(line) for line in rest[: size.lines - 2]]
            lines = [f"{without_middle(line, size.columns - 1)}\x1b[K" for line in (first, *rest)]
            back = f"\x1b[{len(rest)}A" if rest else ""
            sys.stderr.write("\r" + "\n".join(lines) + back)
            sys.stderr.flush()
        if number:
            sys.stderr.write("\r\x1b[J" if back else "\r\x1b[K")
            sys.stderr.flush()

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield lambda next: phase.__setitem__(0, next)
    finally:
        ended.set()
        thread.join()
