"""The commands of every README and page do what it says.

`UPDATE_README=1 pytest tests/samples` writes what they do now.

A page shows commands in ```console blocks: `$ ` begins a command, `> ` continues it, the lines
after it are what it prints, on both streams. A line `...` stands for any lines. A command that
fails is followed by `$ echo $?`. `<!-- file: NAME -->` before a block of any other kind says that
the block is the file NAME, which is written before the commands after it are run. Commands of a
README run in its folder, those of ir_scatter/docs at the root.
"""

import difflib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = "ir_scatter/docs"
PAGES = [
    "README.md",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("samples/**/README.md")),
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(f"{DOCS}/**/*.md")),
]
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


def likeness(text: str, other: str) -> float:
    return difflib.SequenceMatcher(None, text, other, autojunk=False).ratio()


def renewed(expected: str, output: str) -> str:
    """Return what a page shall show of an output: as much of its begin and end as before, and what is
    most like the lines between two elisions."""
    if matches(expected, output) or ELISION not in expected.splitlines(keepends=True):
        return expected if matches(expected, output) else output
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


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", [name for name in PAGES if "```console" in (ROOT / name).read_text("utf-8")])
def test_commands_do_what_the_page_says(name: str, copy: Path) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    folder = copy if name.startswith(DOCS) else (copy / name).parent
    wrong, edits, is_update = [], [], "UPDATE_README" in os.environ
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
            if not matches(command[2], output) and not is_update:
                wrong.append(f"$ {command[1]}\n--- expected\n{command[2]}--- printed\n{output}")
            if status and following != "echo $?":
                wrong.append(f"$ {command[1]}\nends with {status}, expected `$ echo $?` next")
            edits.append((command.span(2), renewed(command[2], output)))
    if is_update:
        for (start, end), output in reversed(edits):
            text = text[:start] + output + text[end:]
        (ROOT / name).write_text(text, encoding="utf-8")
    assert not wrong, "\n\n".join(wrong)


def test_every_sample_folder_has_a_readme() -> None:
    folders = [path for path in (ROOT / "samples").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert len(folders) >= 4
    assert [folder.name for folder in folders if not (folder / "README.md").is_file()] == []


def test_an_elision_stands_for_any_lines() -> None:
    assert matches("a\n...\nc\n", "a\nb\nb\nc\n")
    assert matches("...\n", "")
    assert not matches("a\n...\nc\n", "a\nb\n")
    assert not matches("a\n", "a\nb\n")


def test_what_a_page_shows_is_renewed() -> None:
    assert renewed("a\n", "b\nc\n") == "b\nc\n"
    assert renewed("a\n...\n", "a\nb\n") == "a\n...\n"
    assert renewed("one 1\n...\ntwo 1\n...\nend\n", "one 2\nx\ntwo 2\ny\nend\n") == (
        "one 2\n...\ntwo 2\n...\nend\n"
    )
    assert renewed("...\nend 1\n", "a\nend 2\n") == "...\nend 2\n"
