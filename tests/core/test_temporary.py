"""Temporary folders: one per process, locked while it lives, removed when it ends, however it ends."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ir_scatter.core import temporary
from ir_scatter.core.errors import CannotWrite

ROOT = Path(__file__).resolve().parents[2]
_HOLD = """
import sys
from ir_scatter.core.temporary import process_folder
print(process_folder(), flush=True)
sys.stdin.read()
"""


def holder(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}){_HOLD}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip


def path_of(process: "subprocess.Popen[str]") -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_a_folder_is_removed_when_its_process_ends(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        folder = path_of(process)
        assert folder.parent == tmp_path
        assert folder.is_dir()
        process.communicate()
    assert list(tmp_path.iterdir()) == []


def test_the_next_process_removes_the_folder_of_a_killed_one_and_no_other(tmp_path: Path) -> None:
    strangers = [tmp_path / "ir_scatter.results", tmp_path / "ir_scatter_fuzz_abcdefgh", tmp_path / "x"]
    for each in strangers:
        each.mkdir()
    (tmp_path / "ir_scatter.1.aaaaaaaa").symlink_to(strangers[0])
    with holder(tmp_path) as living, holder(tmp_path) as killed:
        folders = path_of(living), path_of(killed)
        (folders[1] / "model.xml").touch()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with holder(tmp_path) as process:
            path_of(process)
            assert folders[0].is_dir()
            assert not folders[1].exists()
            process.communicate()
        living.communicate()
    assert {*strangers, tmp_path / "ir_scatter.1.aaaaaaaa"} == set(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "make room there, or set TMPDIR"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EROFS, "set TMPDIR"),
    ],
)
def test_an_error_names_the_folder_and_what_helps(number: int, hint: str) -> None:
    sentence = f"the temporary folder /a/b cannot be written: .*{hint}"
    with pytest.raises(CannotWrite, match=sentence), temporary.explained_temporary("/a/b"):
        raise OSError(number, os.strerror(number))


def test_where_no_folder_can_be_written_all_that_were_tried_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail() -> str:
        raise FileNotFoundError(
            errno.ENOENT, f"No usable temporary directory found in ['{tmp_path}', '/tmp']"
        )

    monkeypatch.setattr(temporary, "_path", "")
    monkeypatch.setattr("tempfile.gettempdir", fail)
    with pytest.raises(CannotWrite, match=f"neither of {tmp_path}, /tmp: make room there, or set TMPDIR"):
        temporary.process_folder()
