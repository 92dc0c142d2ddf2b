"""From the paths that a user names to the files that are read."""

import os
from pathlib import Path

import pytest

from ir_scatter.core.files import Source, find_files, is_excluded

FILES = (
    "a.xml", "b.onnx", "B.ONNX", "notes.txt", "model.xml.bak", "deep/c.xml", "deep/er/d.onnx",
    "deep/er/e.bin", "other/f.xml", "empty/readme.md", "we[i]rd/g.xml",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def named(*paths: str, exclude: tuple[str, ...] = ()) -> list[str]:
    return [source.path.replace(os.sep, "/") for source in find_files(paths, exclude).sources]


def test_a_folder_is_searched_sorted(folder: Path) -> None:
    found = named(".")
    expected = ["./B.ONNX", "./a.xml", "./b.onnx", "./deep/c.xml", "./deep/er/d.onnx", "./other/f.xml"]
    assert found == [*expected, "./we[i]rd/g.xml"]
    assert not any(source.is_named for source in find_files(["."]).sources)


def test_named_files_stay_as_they_are(folder: Path) -> None:
    found = find_files(["notes.txt", "missing.xml", "-", "b.onnx"])
    assert found.sources == tuple(Source(path) for path in ("notes.txt", "missing.xml", "-", "b.onnx"))


def test_globs(folder: Path) -> None:
    assert named("*.xml") == ["a.xml"]
    assert named("deep/**/*.onnx") == ["deep/er/d.onnx"]
    assert named("**/*.xml") == ["a.xml", "deep/c.xml", "other/f.xml", "we[i]rd/g.xml"]
    assert named("[ab].*") == ["a.xml", "b.onnx"]
    assert named("o*") == ["other/f.xml"]
    assert all(source.is_named for source in find_files(["*.xml"]).sources)


def test_a_glob_that_matches_nothing_stays_to_be_reported(folder: Path) -> None:
    assert find_files(["nothing*.xml"]).sources == (Source("nothing*.xml"),)


def test_a_path_that_only_looks_like_a_glob(folder: Path) -> None:
    assert named("we[i]rd") == ["we[i]rd/g.xml"]
    assert named("we[i]rd/g.xml") == ["we[i]rd/g.xml"]


def test_each_file_once(folder: Path) -> None:
    assert named("a.xml", "a.xml") == ["a.xml"]
    assert named("deep", "deep/c.xml") == ["deep/c.xml", "deep/er/d.onnx"]


def test_a_file_that_is_named_too_is_a_named_one(folder: Path) -> None:
    for paths in (["deep", "deep/c.xml"], ["deep/c.xml", "deep"]):
        sources = {source.path.replace(os.sep, "/"): source.is_named for source in find_files(paths).sources}
        assert sources == {"deep/c.xml": True, "deep/er/d.onnx": False}


def test_empty_folders_are_told(folder: Path) -> None:
    found = find_files(["empty", "other"])
    assert found.empty_folders == ("empty",)
    assert len(found.sources) == 1
    assert find_files(["other"], ["*.xml"]).empty_folders == ()


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("*.onnx", ["a.xml", "deep/c.xml", "other/f.xml"]),
        ("deep", ["a.xml", "b.onnx", "other/f.xml"]),
        ("deep/", ["a.xml", "b.onnx", "other/f.xml"]),
        ("er", ["a.xml", "b.onnx", "deep/c.xml", "other/f.xml"]),
        ("deep/*.xml", ["a.xml", "b.onnx", "deep/er/d.onnx", "other/f.xml"]),
        ("deep/er", ["a.xml", "b.onnx", "deep/c.xml", "other/f.xml"]),
        ("nothing", ["a.xml", "b.onnx", "deep/c.xml", "deep/er/d.onnx", "other/f.xml"]),
        ("*", []),
    ],
)
def test_excludes(pattern: str, left: list[str], folder: Path) -> None:
    assert named("a.xml", "b.onnx", "deep", "other", exclude=(pattern,)) == left


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a/b/c.xml", "c.xml", True), ("a/b/c.xml", "b", True), ("a/b/c.xml", "b/c.xml", True),
        ("a/b/c.xml", "a/c.xml", False), ("a/b/c.xml", "/b/c.xml", False), ("/x/a/c.xml", "/x/a", True),
        ("/x/a/c.xml", "/x/*.xml", True), ("ab/c.xml", "b/c.xml", False), ("c.xml", "C.XML", False),
    ],
)  # fmt: skip
def test_patterns(path: str, pattern: str, expected: bool) -> None:
    assert is_excluded(path, [pattern]) == expected


def test_a_folder_that_is_a_link_to_itself(folder: Path) -> None:
    (folder / "deep" / "again").symlink_to(folder)
    assert len(named("deep")) == 2
