"""From paths to files: folders, globs, exclusions, what is skipped."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Cli, codes

FORMATS = ["text", "concise", "json", "sarif", "junit", "github"]


def test_a_folder_of_mixed_files(cli: Cli, broken: Path, warned: Path, elsewhere: Path) -> None:
    (elsewhere / "notes.xml").write_text("<notes><note/></notes>")
    (elsewhere / "readme.txt").write_text("no model")
    quiet = cli("validate", ".", "--format", "concise")
    assert quiet.code == 1
    assert quiet.err == "ir-scatter: 5 errors, 2 warnings in 2 of 2 files (7 scatter nodes)\n"
    assert "notes.xml" not in quiet.out
    loud = cli("validate", ".", "--format", "concise", "-v")
    assert (loud.code, loud.out) == (quiet.code, quiet.out)
    assert loud.err.startswith("ir-scatter: ./notes.xml: skipped: ")
    assert "readme.txt" not in loud.err


def test_a_file_that_is_no_model_is_unreadable_when_named(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "notes.xml").write_text("<notes/>")
    for paths in (["notes.xml"], [".", "notes.xml"], ["notes.xml", "."]):
        result = cli("validate", *paths, "--format", "concise")
        assert result.code == 3
        assert codes(result.out) == ["SCT905"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_without_models(cli: Cli, elsewhere: Path, format: str) -> None:
    (elsewhere / "empty").mkdir()
    result = cli("validate", "empty", "--format", format)
    assert result.code == 3
    assert result.err == "ir-scatter: empty: no .xml or .onnx file in this folder\n"


def test_an_empty_path_is_no_folder(cli: Cli, warned: Path) -> None:
    result = cli("validate", "", "--format", "concise")
    assert result.code == 3
    assert codes(result.out) == ["SCT901"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.timeout(20)
def test_a_pipe_in_a_folder_is_not_waited_for(warned: Path) -> None:
    os.mkfifo("pipe.xml")
    done = subprocess.run(
        [COMMAND, "validate", ".", "--format", "concise"], capture_output=True, timeout=10, check=False
    )
    assert b"SCT401" in done.stdout


def test_a_folder_that_is_gone(elsewhere: Path, broken: Path) -> None:
    gone = elsewhere / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["bash", "-c", f"rmdir '{gone}'; '{COMMAND}' validate '{elsewhere / broken}' --format concise"],
        cwd=gone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "ir-scatter: 5 errors, 1 warning in 1 file (6 scatter nodes)\n"
    assert "SCT203" in done.stdout


def test_a_name_cannot_move_the_cursor(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "folder" / "a\x1b[2J").mkdir(parents=True)
    (elsewhere / "folder" / "b\x1b[2J.xml").write_text("<notes/>")
    (elsewhere / "folder" / "c\x1b[2J.xml").write_text("<net/>")
    for command in ("validate", "inspect"):
        result = cli(command, "folder", "folder/a\x1b[2J", "-v")
        assert "folder/a\\x1b[2J: no .xml or .onnx file" in result.err
        assert "folder/b\\x1b[2J.xml: skipped: " in result.err
        assert "\x1b" not in result.err
