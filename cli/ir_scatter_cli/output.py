"""Output of commands: results on standard output or in files, remarks and progress on standard error."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias, TypedDict

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
_FRAME_SECONDS, _LINE_SECONDS = 0.1, 10.0
"""Seconds between frames on a terminal, and between lines where there is none."""

Update: TypeAlias = Callable[[object], None]
"""Sets the phase of a spinner. A phase is any object; its `str()` is computed whenever it is shown."""


class Clock:
    """The clock of a spinner, which tests replace."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, ended: threading.Event, seconds: float) -> bool:
        """Wait at most so long for the end of the work; return whether it has ended."""
        return ended.wait(seconds)


@contextmanager
def spinner(
    begun: object = "starting", *, quiet: bool = False, may_fork: bool = False, clock: Clock | None = None
) -> Iterator[Update]:
    """Show progress on standard error within this block; yield a function to change the phase.

    A terminal gets a line that is drawn again and again, followed by further lines of the phase. Without a
    terminal a line is written every ten seconds, with the first line of the phase.

    Args:
        begun: the first phase.
        quiet: whether to show nothing; so does the environment variable IR_SCATTER_NO_PROGRESS.
        may_fork: whether this process may fork before the first change of the phase, which is unsafe beside
            a thread: lines are then written from that change on.
        clock: replaces the system's clock.
    """
    phase, ended, clock = [begun], threading.Event(), clock or Clock()
    show = _draw if is_animated() else _write_lines
    quiet = quiet or bool(os.environ.get("IR_SCATTER_NO_PROGRESS"))
    thread = threading.Thread(target=show, args=(phase, ended, clock), daemon=True)

    def start() -> None:
        if not quiet and thread.ident is None:
            thread.start()

    def update(next_phase: object) -> None:
        phase[0] = next_phase
        start()

    if is_animated() or not may_fork:
        start()
    try:
        yield update
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()


def is_animated() -> bool:
    """Return whether progress is drawn on a terminal."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def _draw(phase: Sequence[object], ended: threading.Event, clock: Clock) -> None:
    """Draw the phase on the terminal until the work has ended, then erase it."""
    started = clock.now()
    is_utf8 = (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"
    frames = _FRAMES if is_utf8 else _PLAIN_FRAMES
    for number in count():
        if clock.wait(ended, _PATIENCE if not number else _FRAME_SECONDS):
            break
        first, *rest = str(phase[0]).split("\n")
        first = f"{frames[number % len(frames)]} {visible(first)}, {clock.now() - started:.0f} s"
        size = shutil.get_terminal_size()
        rest = [visible(line) for line in rest[: size.lines - 2]]
        lines = [f"{without_middle(line, size.columns - 1)}\x1b[K" for line in (first, *rest)]
        back = f"\x1b[{len(rest)}A" if rest else ""
        sys.stderr.write("\r" + "\n".join(lines) + back)
        sys.stderr.flush()
    if number:
        sys.stderr.write("\r\x1b[J" if back else "\r\x1b[K")
        sys.stderr.flush()


def _write_lines(phase: Sequence[object], ended: threading.Event, clock: Clock) -> None:
    """Write a line with the phase every ten seconds until the work has ended."""
    started = clock.now()
    while not clock.wait(ended, _LINE_SECONDS):
        first = str(phase[0]).partition("\n")[0]
        say(f"{first}, {clock.now() - started:.0f} s")
