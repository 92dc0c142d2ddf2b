"""Files appear whole or not at all, whatever happens meanwhile."""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ir_scatter.core import temporary_files
from ir_scatter.core.errors import CannotWrite
from ir_scatter.core.replace_files import Output, replace_files
from tests.formats.ir_files import ROOT

PATTERN = random.Random(0).randbytes(1 << 20)


@pytest.fixture(params=["without a name", "with a name"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Temporary files with and without names."""
    if request.param == "with a name":
        monkeypatch.setattr(temporary_files, "_open_unnamed", lambda folder: None)
    return str(request.param)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("kind")
class TestFiles:
    def test_new_files_appear(self, tmp_path: Path) -> None:
        replace_files(
            [Output(tmp_path / "a.bin", b"1"), Output(tmp_path / "a.xml", b"22"), Output(tmp_path / "e")]
        )
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
            "a.bin": b"1",
            "a.xml": b"22",
            "e": b"",
        }

    def test_files_are_replaced(self, tmp_path: Path) -> None:
        for name in ("a.bin", "a.xml"):
            (tmp_path / name).write_bytes(b"a longer one")
        replace_files([Output(tmp_path / "a.bin", b"1"), Output(tmp_path / "a.xml", b"22")])
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
            "a.bin": b"1",
            "a.xml": b"22",
        }

    def test_a_copy_has_bytes_behind_it(self, tmp_path: Path) -> None:
        source = tmp_path / "source"
        source.write_bytes(PATTERN)
        replace_files([Output(tmp_path / "target", b"end", copied=source, copied_size=len(PATTERN))])
        assert (tmp_path / "target").read_bytes() == PATTERN + b"end"
        assert source.read_bytes() == PATTERN
        assert names(tmp_path) == ["source", "target"]

    def test_a_file_may_be_the_copy_of_itself(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_bytes(PATTERN)
        replace_files([Output(path, b"end", copied=path)])
        assert path.read_bytes() == PATTERN + b"end"

    def test_targets_may_be_sources_of_each_other(self, tmp_path: Path) -> None:
        left, right = tmp_path / "left", tmp_path / "right"
        left.write_bytes(b"left")
        right.write_bytes(b"right")
        replace_files([Output(left, copied=right), Output(right, copied=left)])
        assert (left.read_bytes(), right.read_bytes()) == (b"right", b"left")

    def test_a_copy_of_itself_and_nothing_more_is_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_bytes(b"old")
        (tmp_path / "same").hardlink_to(path)
        before = path.stat()
        replace_files([Output(tmp_path / "same", copied=path, copied_size=3), Output(tmp_path / "b", b"new")])
        assert path.stat() == before
        with pytest.raises(CannotWrite, match="has 3 bytes, expected 4"):
            replace_files([Output(path, copied=path, copied_size=4)])

    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o777])
    def test_permissions_stay(self, tmp_path: Path, mode: int) -> None:
        path = tmp_path / "a"
        path.write_bytes(b"old")
        path.chmod(mode)
        replace_files([Output(path, b"new")])
        assert stat.S_IMODE(path.stat().st_mode) == mode

    @pytest.mark.parametrize("mask", [0o022, 0o077])
    def test_permissions_of_new_files_are_those_of_any_new_file(self, tmp_path: Path, mask: int) -> None:
        before = os.umask(mask)
        try:
            replace_files([Output(tmp_path / "a", b"new")])
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask

    def test_a_symbolic_link_stays_one(self, tmp_path: Path) -> None:
        inner = tmp_path / "inner"
        inner.mkdir()
        (inner / "old").write_bytes(b"old")
        (tmp_path / "link").symlink_to("inner/old")
        (tmp_path / "dangling").symlink_to("inner/new")
        replace_files([Output(tmp_path / "link", b"1"), Output(tmp_path / "dangling", b"2")])
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "dangling").is_symlink()
        assert {path.name: path.read_bytes() for path in inner.iterdir()} == {"old": b"1", "new": b"2"}

    def test_other_links_to_a_file_keep_the_old_one(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_bytes(b"old")
        (tmp_path / "other").hardlink_to(path)
        replace_files([Output(path, b"new")])
        assert (tmp_path / "other").read_bytes() == b"old"

    def test_what_is_refused_changes_nothing(self, tmp_path: Path) -> None:
        for name, (make, reason) in REFUSED.items():
            folder = tmp_path / name
            folder.mkdir()
            (folder / "first").write_bytes(b"old")
            output = make(folder)
            before = names(folder)
            for outputs in (
                [Output(folder / "first", b"new"), output],
                [output, Output(folder / "first", b"new")],
            ):
                with pytest.raises(CannotWrite) as caught:
                    replace_files(outputs)
                assert str(caught.value).endswith(reason)
                assert names(folder) == before
                assert (folder / "first").read_bytes() == b"old"

    def test_a_rename_that_fails_puts_back_those_before_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "old").write_bytes(b"old")
        (tmp_path / "last").write_bytes(b"last")
        replace = os.replace

        def fail(source: Path, target: Path) -> None:
            if target.name == "last":
                raise OSError(errno.EPERM, "Operation not permitted")
            replace(source, target)

        monkeypatch.setattr(os, "replace", fail)
        outputs = [Output(tmp_path / name, b"changed") for name in ("new", "old", "last")]
        with pytest.raises(CannotWrite, match="last cannot be written: operation not permitted"):
            replace_files(outputs)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
            "old": b"old",
            "last": b"last",
        }

    def test_an_interrupt_leaves_nothing_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(file: int) -> None:
            raise KeyboardInterrupt

        (tmp_path / "a").write_bytes(b"old")
        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            replace_files([Output(tmp_path / "a", b"new")])
        assert (tmp_path / "a").read_bytes() == b"old"
        assert names(tmp_path) == ["a"]

    def test_no_descriptor_stays_open(self, tmp_path: Path) -> None:
        before = os.listdir("/proc/self/fd")
        replace_files([Output(tmp_path / "a", b"new")])
        with pytest.raises(CannotWrite):
            replace_files([Output(tmp_path / "a", b"new"), Output(tmp_path / "b", copied=tmp_path / "none")])
        assert os.listdir("/proc/self/fd") == before


def a_folder(folder: Path) -> Output:
    (folder / "a").mkdir()
    return Output(folder / "a", b"new")


def a_pipe(folder: Path) -> Output:
    os.mkfifo(folder / "a")
    return Output(folder / "a", b"new")


def a_circle(folder: Path) -> Output:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    return Output(folder / "a", b"new")


def a_changed_source(folder: Path) -> Output:
    (folder / "source").write_bytes(b"12345")
    return Output(folder / "a", b"new", copied=folder / "source", copied_size=4)


REFUSED: dict[str, tuple[Callable[[Path], Output], str]] = {
    "folder": (a_folder, "a cannot be written: is a directory"),
    "pipe": (a_pipe, "a cannot be written: it is no regular file"),
    "circle": (a_circle, "a cannot be written: too many levels of symbolic links"),
    "no folder": (
        lambda folder: Output(folder / "none/a", b"x"),
        "a cannot be written: no such file or directory",
    ),
    "a file as folder": (
        lambda folder: Output(folder / "first/a", b"x"),
        "a cannot be written: not a directory",
    ),
    "long name": (
        lambda folder: Output(folder / ("a" * 300), b"x"),
        "a cannot be written: file name too long",
    ),
    "no source": (
        lambda folder: Output(folder / "a", copied=folder / "none"),
        "none cannot be read: no such file or directory",
    ),
    "a folder as source": (
        lambda folder: Output(folder / "a", copied=folder),
        "a folder as source cannot be read: it is no regular file",
    ),
    "changed source": (a_changed_source, "source has 5 bytes, expected 4: it has changed meanwhile"),
    "twice": (
        lambda folder: Output(folder / "x/../first", b"x"),
        "the same file is to be written twice, expected different ones",
    ),
}


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
def test_a_copy_works_where_the_kernel_does_not_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    calls: list[int] = []
    copy = os.copy_file_range

    def stop(origin: int, file: int, size: int) -> int:
        calls.append(size)
        if len(calls) > 1:
            raise OSError(code, "no")
        return copy(origin, file, 1000)

    monkeypatch.setattr(os, "copy_file_range", stop)
    (tmp_path / "source").write_bytes(PATTERN)
    replace_files([Output(tmp_path / "target", b"end", copied=tmp_path / "source")])
    assert (tmp_path / "target").read_bytes() == PATTERN + b"end"
    assert len(calls) == 2


def test_another_error_of_the_kernel_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(origin: int, file: int, size: int) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "copy_file_range", fail)
    (tmp_path / "source").write_bytes(PATTERN)
    with pytest.raises(CannotWrite, match="target cannot be written: input/output error"):
        replace_files([Output(tmp_path / "target", b"end", copied=tmp_path / "source")])
    assert names(tmp_path) == ["source"]


def test_the_folder_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    replace_files([Output(Path("a"), b"new")])
    assert names(tmp_path) == ["a"]


# In a process of its own.

CHILD = """
import os, resource, sys
from pathlib import Path
from ir_scatter.core.errors import CannotWrite
from ir_scatter.core.replace_files import Output, replace_files
"""


def run(code: str, folder: Path) -> str:
    """Run code in a child process; return what it prints, without its end."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD + code],
        cwd=folder,
        env=environment(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}


TRY = """
try:
    replace_files([Output(Path("a.bin"), b"y" * 3000, copied=Path("source")), Output(Path("a.xml"), b"z" * 3000)])
except CannotWrite as error:
    print(error)
"""


def test_no_space_changes_nothing(tmp_path: Path) -> None:
    for name in ("a.bin", "a.xml"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "source").write_bytes(bytes(5000))
    for limit, name in ((4000, "a.bin"), (7000, "a.bin"), (2000, "a.bin")):
        code = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))" + TRY
        assert run(code, tmp_path) == f"{name} cannot be written: file too large"
        assert names(tmp_path) == ["a.bin", "a.xml", "source"]
        assert (tmp_path / "a.bin").read_bytes() == (tmp_path / "a.xml").read_bytes() == b"old"
    assert run(TRY, tmp_path) == ""
    assert (tmp_path / "a.bin").stat().st_size == 8000


def test_no_permission_changes_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("open")
    (folder / "source").write_bytes(b"")
    (folder / "a.bin").write_bytes(b"old")
    (folder / "a.bin").chmod(0o444)
    # A child that is root and enters the folder before it becomes nobody sees what is in it.
    become = "os.setgid(65534); os.setuid(65534)" if os.geteuid() == 0 else ""
    direct = become + "\nos.path.realpath = os.fspath"
    folder.chmod(0o777)
    assert run(direct + TRY, folder) == "a.bin cannot be written: permission denied"
    (folder / "a.bin").unlink()
    folder.chmod(0o555)
    assert run(direct + TRY, folder) == "a.bin cannot be written: permission denied"
    assert names(folder) == ["source"]
    folder.chmod(0o777)


LOOP = """
number = int(sys.argv[1]) if len(sys.argv) > 1 else 0
print("ready", flush=True)
while True:
    number += 1
    text = b"%d" % number * 20000
    replace_files([Output(Path("a.bin"), text, copied=Path("source")), Output(Path("a.xml"), text)])
"""
NAMED = "from ir_scatter.core import temporary_files; temporary_files._open_unnamed = lambda folder: None"


def kills(folder: Path, code: str, rounds: int) -> Iterator[list[str]]:
    """Kill a child that writes files again and again at random moments; yield what it leaves behind."""
    times = random.Random(1)
    for _ in range(rounds):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD + code + LOOP], cwd=folder, env=environment(), stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(times.random() * 0.03)
        child.kill()
        child.communicate()
        yield names(folder)


@pytest.mark.parametrize("code", ["", NAMED], ids=["without a name", "with a name"])
def test_a_kill_leaves_the_old_or_the_new_and_nothing_in_the_way(tmp_path: Path, code: str) -> None:
    (tmp_path / "source").write_bytes(PATTERN)
    left = 0
    for found in kills(tmp_path, code, 8):
        left += any(name.endswith(".tmp") for name in found)
        contents = {}
        for name, first in (("a.bin", PATTERN), ("a.xml", b"")):
            if name in found:
                data = (tmp_path / name).read_bytes()
                assert data.startswith(first)
                text = data[len(first) :]
                contents[name] = int(text[: len(text) // 20000])
                assert text == b"%d" % contents[name] * 20000
        assert contents.get("a.bin", 0) - contents.get("a.xml", 0) in {0, 1}
        replace_files(
            [
                Output(tmp_path / "a.bin", b"1" * 20000, copied=tmp_path / "source"),
                Output(tmp_path / "a.xml", b"1" * 20000),
            ]
        )
        assert names(tmp_path) == ["a.bin", "a.xml", "source"]
    if code:
        assert left


def test_the_temporary_files_of_the_living_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary_files, "_open_unnamed", lambda folder: None)
    path, other = tmp_path / "a", tmp_path / "b"
    reached, go_on = threading.Event(), threading.Event()
    sync = os.fsync

    def wait(file: int) -> None:
        if threading.current_thread() is not threading.main_thread() and not go_on.is_set():
            reached.set()
            go_on.wait(10)
        sync(file)

    monkeypatch.setattr(os, "fsync", wait)
    slow = threading.Thread(target=replace_files, args=([Output(path, b"slow")],))
    slow.start()
    assert reached.wait(10)
    stale = [temporary_files.temporary_name(one) for one in (path, other)]
    for name in stale:
        name.write_bytes(b"of a dead run")
    replace_files([Output(path, b"quick")])
    assert path.read_bytes() == b"quick"
    assert not stale[0].exists()
    assert stale[1].exists()
    assert len(names(tmp_path)) == 3
    go_on.set()
    slow.join()
    assert path.read_bytes() == b"slow"
    assert names(tmp_path) == sorted([path.name, stale[1].name])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait_while_files_are_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    replace = os.replace
    seen: list[str] = []

    def interrupted(source: Path, target: Path) -> None:
        os.kill(os.getpid(), number)
        seen.append(target.name)
        replace(source, target)

    def end(number: int, _: object) -> None:
        raise InterruptedError(number)

    monkeypatch.setattr(os, "replace", interrupted)
    before = signal.signal(number, end)
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)  # signals may reach any thread
    other.start()
    try:
        with pytest.raises(InterruptedError):
            replace_files([Output(tmp_path / name, b"new") for name in ("a", "b")])
        assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)
        stop.set()
        other.join()
    assert seen == ["a", "b"]
    assert names(tmp_path) == ["a", "b"]


def test_a_large_copy_takes_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "source").open("wb") as file:
        for _ in range(64):
            file.write(PATTERN)
    code = """
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
replace_files([Output(Path("a"), b"end", copied=Path("source"))])
print(peak() - before)
"""
    assert int(run(code, tmp_path)) < 8 * 1024
    assert (tmp_path / "a").stat().st_size == 64 * len(PATTERN) + 3


def test_all_is_on_the_disk_before_anything_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def note_sync(file: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        sync(file)

    def note_replace(source: Path, target: Path) -> None:
        steps.append(target.name)
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    replace_files([Output(tmp_path / "a.bin", b"1"), Output(tmp_path / "a.xml", b"2")])
    assert steps == ["file", "file", "a.bin", "a.xml", "folder"]
