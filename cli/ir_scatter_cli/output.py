"""What commands write: results in a format, to standard output or to a file, and what is being done."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import click

from ir_scatter.core.errors import explained
from ir_scatter.report.characters import visible, without_commands, without_middle
from ir_scatter.report.registry import render
from ir_scatter_cli import exits


def say(line: object) -> None:
    """Say something on standard error that belongs to no result."""
    click.echo(without_commands(f"ir-scatter: {visible(str(line))}"), err=True)


def report(
    result: str,
    format: str,
    found: object,
    output: str | None = None,
    *,
    is_new: bool = False,
    **options: object,
) -> None:
    """Write a result in a format; coloured and as wide as the terminal if that is where it goes.

    If it `is_new`, nothing may stand at the path of a file by the time it is written.
    """
    color = use_color(is_file=output is not None)
    width = terminal_width() if output is None else None
    write(render(result, format, found, color=color, width=width, **options), output, is_new=is_new)


def terminal_width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def use_color(*, is_file: bool = False) -> bool:
    """Tell whether to colour standard output: on a terminal, or if FORCE_COLOR asks for it.

    NO_COLOR counts more, and TERM=dumb less; no file is coloured.
    """
    if is_file or os.environ.get("NO_COLOR"):
        return False
    is_smart = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return bool(os.environ.get("FORCE_COLOR")) or is_smart


def write(content: str | bytes, output: str | None = None, *, is_new: bool = False) -> None:
    """Write to standard output, or to a file that appears whole or not at all.

    If it `is_new`, nothing may stand at its path by the time it is written.
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
        # What standard output leads to may be a file with more in it.
        with explained(output), open(output, "ab") as device:
            device.write(data)


def is_device(path: str) -> bool:
    """Tell whether something is written into, not replaced: a pipe, or /dev/stdout, wherever that leads."""
    folder = Path(os.path.abspath(path)).parts[1:2]
    return folder in {("dev",), ("proc",)} or (os.path.exists(path) and not os.path.isfile(path))


def circumstances() -> dict[str, str]:
    """Return what a page says of its making: the command, when and where it ran."""
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
"""Seconds before anything is shown, and between phases that nobody could read."""


@contextmanager
def spinner(begun: object = "starting") -> Iterator[Callable[[object], None] | None]:
    """Say on standard error what is being done, and give a function to say more; None if nobody would see it.

    What is said is asked for its text again and again; lines behind the first stand below it.
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
