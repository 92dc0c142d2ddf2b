"""The commands of every README and page do what it says.

`UPDATE_README=1 pytest tests/samples` writes what they do now. Commands of a README run in its folder,
those of ir_scatter/docs at the root. Pages of rules have a test of their own.
"""

import shutil
from pathlib import Path

import pytest

from tests.samples.pages import DOCS, PAGES, ROOT, check, copy_of_root, in_a_shell, matches, patched, renewed


def has_commands(page: Path) -> bool:
    return page.parent != DOCS / "rules" and "```console" in page.read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if has_commands(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    copy = copy_of_root(tmp_path / "ir_scatter")
    folder = copy if page.is_relative_to(DOCS) else copy / page.parent.relative_to(ROOT)
    check(page, folder, in_a_shell)


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
    assert renewed("", "a\n...\nb\n") == "a\n...\nb\n"
    assert renewed("a\n...\n", "a\nb\n") == "a\n...\n"
    assert renewed("one 1\n...\ntwo 1\n...\nend\n", "one 2\nx\ntwo 2\ny\nend\n") == (
        "one 2\n...\ntwo 2\n...\nend\n"
    )
    assert renewed("a\n...\nb\n", "a\nx\n...\ny\nb\n") == "a\nx\n...\ny\nb\n"
    assert renewed("...\nend 1\n", "a\nend 2\n") == "...\nend 2\n"


def test_a_diff_is_applied() -> None:
    diff = " a\n-b\n+c\n@@\n-e\n"
    assert patched("a\nb\nd\ne\n", diff) == "a\nc\nd\n"
    with pytest.raises(AssertionError, match="2 times"):
        patched("a\nb\na\nb\n", " a\n-b\n")
    assert patched("a\nc\n", " a\n-b\n+c\n", is_reversed=True) == "a\nb\n"
