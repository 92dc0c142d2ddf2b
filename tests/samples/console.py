"""Commands in a README, and how they are run.

A README shows commands in ```console blocks: `$ ` begins a command, `> ` continues it, the lines
after it are what it prints, on both streams. A line `...` stands for any lines. A command that
fails is followed by `$ echo $?`. `<!-- file: NAME -->` before a block of any other kind says that
the block is the file NAME, which is written before the commands after it are run.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ELISION = "..."
_MARK = "\x1e"
_FILE = re.compile(r"<!-- file: (\S+) -->")


@dataclass(frozen=True, slots=True)
class Command:
    """One command, what it is to print, and the lines (from 0) of the README that say so."""

    text: str
    expected: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: commands, or a file to write."""

    line: int
    commands: tuple[Command, ...] = ()
    file: str | None = None
    content: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    output: tuple[str, ...]
    status: int


def blocks(markdown: str) -> Iterator[Block]:
    """Yield the blocks of a README that mean something."""
    lines = markdown.splitlines()
    number, file = 0, None
    while number < len(lines):
        named = _FILE.fullmatch(lines[number])
        if lines[number].startswith("```"):
            end = lines.index("```", number + 1)
            if file is not None:
                yield Block(number + 1, file=file, content="\n".join(lines[number + 1 : end]) + "\n")
            elif lines[number] == "```console":
                yield Block(number + 1, commands=tuple(_commands(lines, number + 1, end)))
            number = end
        if lines[number].strip():
            file = named[1] if named else None
        number += 1


def _commands(lines: list[str], start: int, end: int) -> Iterator[Command]:
    number = start
    while number < end:
        assert lines[number].startswith("$ "), f"line {number + 1}: {lines[number]}"
        text, number = lines[number][2:], number + 1
        while number < end and lines[number].startswith("> "):
            text, number = f"{text}\n{lines[number][2:]}", number + 1
        first = number
        while number < end and not lines[number].startswith("$ "):
            number += 1
        yield Command(text, tuple(lines[first:number]), first, number)


def run(block: Block, folder: Path) -> list[Ran]:
    """Run the commands of a block in one shell, as a user would in that folder."""
    script = [
        f"{command.text}\n__s=$?; printf '{_MARK}%d{_MARK}' $__s; (exit $__s)" for command in block.commands
    ]
    scripts = str(Path(sys.executable).parent)
    environment = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}}
    environment |= {
        "PATH": f"{scripts}{os.pathsep}{environment['PATH']}",
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    parts = done.stdout.decode().split(_MARK)
    outputs, statuses = parts[:-1:2], parts[1::2]
    return [Ran(tuple(o.splitlines()), int(s)) for o, s in zip(outputs, statuses, strict=True)]


def matches(expected: tuple[str, ...], output: tuple[str, ...]) -> bool:
    """Tell whether an output is the expected one, where `...` stands for any lines."""
    if ELISION not in expected:
        return expected == output
    at = expected.index(ELISION)
    if expected[:at] != output[:at]:
        return False
    rest = expected[at + 1 :]
    return any(matches(rest, output[start:]) for start in range(at, len(output) + 1))


def updated(markdown: str, ran: dict[Command, Ran]) -> str:
    """Return a README with new outputs where they are given whole."""
    lines = markdown.splitlines()
    for command in sorted(ran, key=lambda command: -command.first):
        if ELISION not in command.expected:
            lines[command.first : command.last] = ran[command].output
    return "\n".join(lines) + "\n"
