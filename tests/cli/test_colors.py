"""Colours: on a terminal only, and never with NO_COLOR."""

import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ir_scatter_cli.output import use_color
from tests.cli.conftest import Cli, copy_sample
from tests.prefork import Prefork

if sys.platform == "win32":
    pytest.skip("needs a pseudo terminal", allow_module_level=True)


OnTerminal = Callable[..., str]


@pytest.fixture
def on_a_terminal(prefork: Prefork) -> OnTerminal:
    """Run a command with standard output and error on a pseudo terminal, without what is shown while one waits."""

    def run(*arguments: str | Path, **environment: str) -> str:
        ours, theirs = os.openpty()
        chunks: list[bytes] = []

        def drain() -> None:
            with suppress(OSError):  # raised where the terminal is closed
                while chunk := os.read(ours, 65536):
                    chunks.append(chunk)

        thread = threading.Thread(target=drain)
        thread.start()
        settings = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "CI": "1", **environment}
        with open(os.devnull, "rb") as nothing:
            prefork.run([*map(str, arguments)], settings, [nothing.fileno(), theirs, theirs])
        os.close(theirs)
        thread.join()
        os.close(ours)
        return b"".join(chunks).decode()

    return run


@pytest.mark.parametrize("command", ["validate", "inspect"])
def test_only_a_terminal_gets_colours(
    script: Cli, on_a_terminal: OnTerminal, broken: Path, command: str
) -> None:
    assert "\x1b[" in on_a_terminal(command, broken)
    assert "\x1b" not in on_a_terminal(command, broken, NO_COLOR="1")
    result = script(command, broken)
    assert "\x1b" not in result.out + result.err


@pytest.mark.parametrize(
    ("environment", "on_terminal", "in_pipe"),
    [
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"FORCE_COLOR": "", "NO_COLOR": ""}, True, False),
    ],
)
def test_what_the_environment_asks_for(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], on_terminal: bool, in_pipe: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for is_terminal, expected in ((True, on_terminal), (False, in_pipe)):
        monkeypatch.setattr(sys.stdout, "isatty", lambda seen=is_terminal: seen)
        assert use_color() is expected
        assert use_color(is_file=True) is False


def test_only_a_terminal_has_a_width(script: Cli, on_a_terminal: OnTerminal, clean: Path) -> None:
    pipe = script("inspect", clean, COLUMNS="60").out
    assert max(map(len, pipe.splitlines())) > 100
    shown = on_a_terminal("inspect", clean, COLUMNS="60", TERM="dumb")
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 60
    forced = script("inspect", clean, FORCE_COLOR="1", TERM="dumb").out
    assert "\x1b[" in forced
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", forced).splitlines())) > 100


@pytest.mark.parametrize("command", ["validate", "inspect"])
@pytest.mark.parametrize("columns", [80, 101])
def test_nothing_is_wider_than_the_terminal(
    on_a_terminal: OnTerminal, command: str, columns: int, elsewhere: Path
) -> None:
    """Nor in a file of one line, in a folder with a long name."""
    folder = elsewhere / ("folder" * 8) / ("another" * 8)
    folder.mkdir(parents=True)
    for name in ("broken/scatter_update.xml", "nested/branch.xml"):
        copy = copy_sample(name, folder)
        text = copy.read_text(encoding="utf-8")
        line = re.sub(r">\s+<", "><", text)
        copy.with_name(f"line_{copy.name}").write_text(line, encoding="utf-8")
        copy.with_name(f"line_{copy.stem}.bin").write_bytes(copy.with_suffix(".bin").read_bytes())
    for environment in ({}, {"NO_COLOR": "1"}):
        text = on_a_terminal(command, folder, COLUMNS=str(columns), **environment)
        lines = re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()
        assert max(map(len, lines)) <= columns
        assert sum("line_scatter_update.xml" in line for line in lines) >= 1


@pytest.mark.parametrize("format", ["concise", "json", "sarif", "junit", "github"])
def test_formats_for_programs_have_none(on_a_terminal: OnTerminal, broken: Path, format: str) -> None:
    assert "\x1b" not in on_a_terminal("validate", broken, "--format", format)


def test_a_file_gets_none(on_a_terminal: OnTerminal, broken: Path) -> None:
    on_a_terminal("validate", broken, "-o", "report")
    assert "\x1b" not in Path("report").read_text()
