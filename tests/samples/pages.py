"""Pages whose commands and models are run.

A page shows commands in ```console blocks: `$ ` begins a command, `> ` continues it, the lines
after it are what it prints, on both streams. A line `...` stands for any lines. A command that
fails is followed by `$ echo $?`. A comment before a block of another kind makes files of it, which are
there for the commands after it:

    <!-- file: NAME -->                      the block is the file NAME; a block of kind `onnx` is the text form
                                             of an ONNX model, and a line `<!-- weights: i64 0 1 -->` of an IR
                                             says what its .bin holds
    <!-- file: NAME, broken OTHER -->        the block is a diff that makes NAME of the file OTHER
    <!-- file: NAME, fixed PATH -->          the block is a diff from NAME to the sample PATH, which is
                                             there as fixed.xml as well
"""

import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from onnx import parser

from tests.rules.expectations import write_weights

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "ir_scatter" / "docs"
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("samples/*/README.md")), *sorted(DOCS.glob("**/*.md"))]
IS_UPDATE = "UPDATE_README" in os.environ
BLOCK = re.compile(r"^(?:<!-- file: ([^\n]+?) -->\n+)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
ELISION, MARK = "...\n", "\x1e"

Run = Callable[[Sequence[str], Path], list[tuple[str, int]]]
"""Runs commands one after another in a folder, and returns what each prints, and its status."""


def copy_of_root(target: Path) -> Path:
    """Copy what a user sees of the repository, so that commands may write there."""
    ignored = shutil.ignore_patterns("__pycache__", ".venv")
    shutil.copytree(ROOT / "samples", target / "samples", ignore=ignored)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, target / name)
    return target


def in_a_shell(commands: Sequence[str], folder: Path) -> list[tuple[str, int]]:
    """Run commands in one shell, as a user would."""
    environment = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}}
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    # What was probed on this machine is no part of a page.
    return in_environment(
        commands,
        folder,
        environment
        | {"PATH": path, "COLUMNS": "80", "LC_ALL": "C.UTF-8", "XDG_CACHE_HOME": str(folder / ".cache")},
    )


def in_environment(
    commands: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> list[tuple[str, int]]:
    """Run commands in one shell with these variables."""
    script = [f"{command}\n__s=$?; printf '{MARK}%d{MARK}' $__s; (exit $__s)" for command in commands]
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
    parts = done.stdout.decode().split(MARK)
    outputs = ("".join(f"{line}\n" for line in part.splitlines()) for part in parts[:-1:2])
    return list(zip(outputs, map(int, parts[1::2]), strict=True))


def is_plain(command: str) -> bool:
    """Whether a command needs no shell."""
    return command == "echo $?" or re.fullmatch(r"ir-scatter [^$|&<>;*?`\\]+", command) is not None


def here(call: Callable[[Sequence[str]], tuple[str, int]]) -> Run:
    """Run plain commands with `call`, which takes arguments of ir-scatter."""

    def run(commands: Sequence[str], folder: Path) -> list[tuple[str, int]]:
        done: list[tuple[str, int]] = []
        for command in commands:
            arguments = shlex.split(command)[1:]
            done.append((f"{done[-1][1]}\n", 0) if command == "echo $?" else call(arguments))
        return done

    return run


def matches(expected: str, output: str) -> bool:
    lines = expected.splitlines(keepends=True)
    pattern = "".join(r"(?:.*\n)*" if line == ELISION else re.escape(line) for line in lines)
    return re.fullmatch(pattern, output) is not None


def likeness(text: str, other: str) -> float:
    return difflib.SequenceMatcher(None, text, other, autojunk=False).ratio()


def renewed(expected: str, output: str) -> str:
    """Return what a page shall show of an output.

    That is as much of its begin and end as before, and what is most like the lines between two elisions.
    """
    elisions = expected.splitlines(keepends=True).count(ELISION)
    if elisions in {0, output.splitlines(keepends=True).count(ELISION)}:  # they are of the output itself
        return output
    if matches(expected, output):
        return expected
    parts = [part.splitlines(keepends=True) for part in re.split(r"(?m)^\.\.\.\n", expected)]
    lines = output.splitlines(keepends=True)
    first, *between, last = parts
    shown = ["".join(lines[: len(first)])]
    for part in between:
        wanted = "".join(part)
        windows = ["".join(lines[at : at + len(part)]) for at in range(len(lines) - len(part) + 1)]
        shown.append(max(windows, key=lambda window: likeness(window, wanted), default=""))
    shown.append("".join(lines[len(lines) - len(last) :]))
    return ELISION.join(shown)


def patched(text: str, diff: str, *, is_reversed: bool = False) -> str:
    """Return a text with the lines of a diff replaced; hunks are parted by lines `@@`."""
    for hunk in re.split(r"(?m)^@@.*\n", diff):
        lines = hunk.splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] in f" {sign}") for sign in "-+")
        old, new = (new, old) if is_reversed else (old, new)
        assert old
        assert text.count(old) == 1, f"{text.count(old)} times in the model:\n{old}"
        text = text.replace(old, new)
    return text


class Files:
    """What the blocks of a page write into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.texts: dict[str, tuple[str, str]] = {}

    def add(self, what: str, kind: str, text: str) -> None:
        """Write what a block with this comment stands for."""
        name, _, source = what.partition(", ")
        verb, _, other = source.partition(" ")
        if verb == "broken":
            text = patched(self.texts[other][1], text)
            kind = self.texts[other][0]
        elif verb == "fixed":
            sample = (self.folder / other).read_text(encoding="utf-8")
            text = patched(sample, text, is_reversed=True)
            for stem in (Path(name).stem, "fixed"):
                shutil.copy((self.folder / other).with_suffix(".bin"), self.folder / f"{stem}.bin")
            shutil.copy(self.folder / other, self.folder / "fixed.xml")
        self.texts[name] = kind, text
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == "onnx":
            target.write_bytes(parser.parse_model(text).SerializeToString())
        else:
            target.write_text(text, encoding="utf-8")
            if target.suffix == ".xml":
                write_weights(text, target.with_suffix(".bin"))


def check_block(text: str, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run the commands of a `console` block with these variables; return what is not as shown."""
    commands = list(COMMAND.finditer(text))
    ran = in_environment([command[1].replace("\n> ", "\n") for command in commands], folder, environment)
    return [
        f"$ {command[1]}\n--- expected\n{command[2]}--- printed\n{output}"
        for command, (output, _) in zip(commands, ran, strict=True)
        if not matches(command[2], output)
    ]


def check(page: Path, folder: Path, run: Run) -> None:
    """Do what a page says, and hold the outputs against it; or write what they are now."""
    text = page.read_text(encoding="utf-8")
    files = Files(folder)
    wrong, edits = [], []
    for block in BLOCK.finditer(text):
        if block[1]:
            files.add(*block.groups())
        if block[1] or block[2] != "console":
            continue
        commands = list(COMMAND.finditer(text, block.start(3), block.end(3)))
        assert "".join(command[0] for command in commands) == block[3], "a block begins with a command"
        ran = run([command[1].replace("\n> ", "\n") for command in commands], folder)
        following = [*(command[1] for command in commands[1:]), ""]
        for command, (output, status), then in zip(commands, ran, following, strict=True):
            if not matches(command[2], output) and not IS_UPDATE:
                wrong.append(f"$ {command[1]}\n--- expected\n{command[2]}--- printed\n{output}")
            if status and then != "echo $?":
                wrong.append(f"$ {command[1]}\nends with {status}, expected `$ echo $?` next\n{output}")
            edits.append((command.span(2), renewed(command[2], output)))
    if IS_UPDATE:
        for (start, end), output in reversed(edits):
            text = text[:start] + output + text[end:]
        page.write_text(text, encoding="utf-8")
    assert not wrong, "\n\n".join(wrong)
