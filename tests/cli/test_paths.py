"""From paths to files: folders, globs, exclusions, what is passed over."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Cli, codes, copy_sample

FORMATS = ["text", "concise", "json", "sarif", "junit", "github"]


def test_a_folder_of_mixed_files(cli: Cli, broken: Path, warned: Path, elsewhere: Path) -> None:
    (elsewhere / "notes.xml").write_text("<notes><note/></notes>")
    (elsewhere / "readme.txt").write_text("no model")
    quiet = cli("validate", ".", "--format", "concise")
    assert quiet.code == 1
    assert quiet.err == ""
    assert "notes.xml" not in quiet.out
    loud = cli("validate", ".", "--format", "concise", "-v")
    assert (loud.code, loud.out) == (quiet.code, quiet.out)
    assert loud.err.startswith("ir-scatter: ./notes.xml: passed over: ")
    assert "readme.txt" not in loud.err


def test_what_is_passed_over_is_not_counted(cli: Cli, elsewhere: Path) -> None:
    copy_sample("kv_cache/decoder.xml", elsewhere)
    (elsewhere / "notes.xml").write_text("<notes/>")
    result = cli("validate", ".")
    assert (result.code, result.out) == (0, "no findings in 1 file (2 scatter nodes)\n")


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
    assert result.code == 0
    assert result.err == "ir-scatter: empty: no .xml or .onnx file in this folder\n"


def test_folders_are_searched_in_order(cli: Cli, elsewhere: Path) -> None:
    for name in ("b", "a", "a/deep"):
        (elsewhere / name).mkdir(exist_ok=True)
        copy_sample("documented/scatter_1.onnx", elsewhere / name)
    lines = cli("validate", "b", "a", "--format", "concise").out.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        f"{folder}/scatter_1.onnx" for folder in ("b", "a", "a/deep")
    ]


def test_a_file_named_twice_is_checked_once(cli: Cli, warned: Path) -> None:
    result = cli("validate", warned, warned, f"./{warned}", "--format", "concise")
    assert len(result.out.splitlines()) in {1, 2}
    assert len(cli("validate", warned, warned, "--format", "concise").out.splitlines()) == 1


def test_globs(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "deep" / "er").mkdir(parents=True)
    for folder in (elsewhere, elsewhere / "deep", elsewhere / "deep" / "er"):
        copy_sample("documented/scatter_1.onnx", folder)
    assert len(cli("validate", "*.onnx", "--format", "concise").out.splitlines()) == 1
    assert len(cli("validate", "**/*.onnx", "--format", "concise").out.splitlines()) == 3
    assert len(cli("validate", "deep/*", "--format", "concise").out.splitlines()) == 2
    nothing = cli("validate", "*.pb", "--format", "concise")
    assert nothing.code == 3
    assert "*.pb" in nothing.out


def test_a_name_with_glob_characters_is_a_name_if_it_exists(cli: Cli, warned: Path) -> None:
    name = Path("scatter[1]*.onnx")
    warned.rename(name)
    result = cli("validate", name, "--format", "concise")
    assert result.code == 0
    assert result.out.startswith(f"{name}: warning")


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("*.onnx", set()),
        ("old", {"scatter_1.onnx", "new/scatter_1.onnx"}),
        ("old/", {"scatter_1.onnx", "new/scatter_1.onnx"}),
        ("old/*", {"scatter_1.onnx", "new/scatter_1.onnx"}),
        ("new/scatter_*.onnx", {"scatter_1.onnx", "old/scatter_1.onnx"}),
        ("nothing", {"scatter_1.onnx", "new/scatter_1.onnx", "old/scatter_1.onnx"}),
    ],
)
def test_exclude(cli: Cli, warned: Path, elsewhere: Path, pattern: str, left: set[str]) -> None:
    for folder in ("old", "new"):
        (elsewhere / folder).mkdir()
        copy_sample("documented/scatter_1.onnx", elsewhere / folder)
    result = cli("validate", ".", "--exclude", pattern, "--format", "concise")
    assert result.code == 0
    assert {line.split(": ")[0].removeprefix("./") for line in result.out.splitlines()} == left
    assert set(os.listdir()) == {"scatter_1.onnx", "old", "new"}


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
    assert (done.returncode, done.stderr) == (1, "")
    assert "SCT203" in done.stdout
