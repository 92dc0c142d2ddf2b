"""The commands of every README do what it says. UPDATE_README=1 writes what they do now.

A README shows commands in ```console blocks: `$ ` begins a command, `> ` continues it, the lines
after it are what it prints, on both streams. A line `...` stands for any lines. A command that
fails is followed by `$ echo $?`. `<!-- file: NAME -->` before a block of any other kind says that
the block is the file NAME, which is written before the commands after it are run.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("samples/**/README.md"))]
BLOCK = re.compile(r"^(?:<!-- file: (\S+) -->\n+)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
ELISION, MARK = "...\n", "\x1e"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what a user sees of the repository, where commands may write."""
    target = tmp_path / "ir_scatter"
    ignored = shutil.ignore_patterns("__pycache__", ".venv")
    shutil.copytree(ROOT / "samples", target / "samples", ignore=ignored)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, target / name)
    return target


def run(commands: list[str], folder: Path) -> list[tuple[str, int]]:
    """Run commands in one shell, as a user would in that folder; return what each prints, and its status."""
    script = [f"{command}\n__s=$?; printf '{MARK}%d{MARK}' $__s; (exit $__s)" for command in commands]
    environment = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}}
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=environment | {"PATH": path, "COLUMNS": "80", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    parts = done.stdout.decode().split(MARK)
    outputs = ("".join(f"{line}\n" for line in part.splitlines()) for part in parts[:-1:2])
    return list(zip(outputs, map(int, parts[1::2]), strict=True))


def matches(expected: str, output: str) -> bool:
    lines = expected.splitlines(keepends=True)
    pattern = "".join(r"(?:.*\n)*" if line == ELISION else re.escape(line) for line in lines)
    return re.fullmatch(pattern, output) is not None


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", READMES)
def test_commands_do_what_the_readme_says(name: str, copy: Path) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    folder = (copy / name).parent
    wrong, edits, count = [], [], 0
    for block in BLOCK.finditer(text):
        if block[1]:
            target = folder / block[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block[3], encoding="utf-8")
        if block[1] or block[2] != "console":
            continue
        commands = list(COMMAND.finditer(text, block.start(3), block.end(3)))
        assert "".join(command[0] for command in commands) == block[3], "a block begins with a command"
        ran = run([command[1].replace("\n> ", "\n") for command in commands], folder)
        texts = [*(command[1] for command in commands[1:]), ""]
        for command, (output, status), following in zip(commands, ran, texts, strict=True):
            if not matches(command[2], output):
                wrong.append(f"$ {command[1]}\n--- expected\n{command[2]}--- printed\n{output}")
            if status and following != "echo $?":
                wrong.append(f"$ {command[1]}\nends with {status}, expected `$ echo $?` next")
            if ELISION not in command[2].splitlines(keepends=True):
                edits.append((command.span(2), output))
        count += len(commands)
    if os.environ.get("UPDATE_README"):
        for (start, end), output in reversed(edits):
            text = text[:start] + output + text[end:]
        (ROOT / name).write_text(text, encoding="utf-8")
    assert not wrong, "\n\n".join(wrong)
    assert count


def test_every_sample_folder_has_a_readme() -> None:
    folders = [path for path in (ROOT / "samples").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert len(folders) >= 4
    assert [folder.name for folder in folders if not (folder / "README.md").is_file()] == []


def test_an_elision_stands_for_any_lines() -> None:
    assert matches("a\n...\nc\n", "a\nb\nb\nc\n")
    assert matches("...\n", "")
    assert not matches("a\n...\nc\n", "a\nb\n")
    assert not matches("a\n", "a\nb\n")
