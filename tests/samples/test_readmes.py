"""The commands of every README do what it says. UPDATE_README=1 writes what they do now."""

import os
import shutil
from pathlib import Path

import pytest

from tests.samples.console import Command, Ran, blocks, matches, run, updated

ROOT = Path(__file__).parents[2]
READMES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("samples/**/README.md"))]

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@needs_bash
@pytest.mark.parametrize("name", READMES)
def test_commands_do_what_the_readme_says(name: str, copy: Path) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    folder = (copy / name).parent
    ran: dict[Command, Ran] = {}
    for block in blocks(text):
        if block.file is not None:
            target = folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.content, encoding="utf-8")
        elif block.commands:
            ran.update(zip(block.commands, run(block, folder), strict=True))
    if os.environ.get("UPDATE_README"):
        (ROOT / name).write_text(updated(text, ran), encoding="utf-8")
    wrong = [
        _difference(command, done)
        for command, done in ran.items()
        if not matches(command.expected, done.output)
    ]
    assert not wrong, "\n\n".join(wrong)
    _demand_statuses(list(ran.items()))


def _difference(command: Command, done: Ran) -> str:
    expected, output = "\n".join(command.expected), "\n".join(done.output)
    return f"line {command.first}: $ {command.text}\n--- expected\n{expected}\n--- printed\n{output}"


def _demand_statuses(ran: list[tuple[Command, Ran]]) -> None:
    """A reader learns of every exit code but 0."""
    for position, (command, done) in enumerate(ran):
        if done.status:
            following = ran[position + 1][0].text if position + 1 < len(ran) else ""
            assert following == "echo $?", (
                f"line {command.first}: ends with {done.status}, expected `$ echo $?` next"
            )


@pytest.mark.parametrize("name", READMES)
def test_every_readme_has_commands(name: str) -> None:
    assert any(block.commands for block in blocks((ROOT / name).read_text(encoding="utf-8")))


def test_every_sample_folder_has_a_readme() -> None:
    folders = [path for path in (ROOT / "samples").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert len(folders) >= 4
    assert [folder.name for folder in folders if not (folder / "README.md").is_file()] == []


def test_an_elision_stands_for_any_lines() -> None:
    assert matches(("a", "...", "c"), ("a", "b", "b", "c"))
    assert matches(("...",), ())
    assert not matches(("a", "...", "c"), ("a", "b"))
    assert not matches(("a",), ("a", "b"))
