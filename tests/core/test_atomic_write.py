"""Files appear whole or not at all, and those that belong together, together: whatever happens meanwhile."""

import errno
import fcntl
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

import ir_scatter
from ir_scatter.convert.job import Job, run_job
from ir_scatter.core.atomic_write import (
    Output,
    finish_reading,
    half_replaced,
    journal_of,
    locked,
    replace_files,
    temporary_name,
)
from ir_scatter.core.errors import CannotWrite, UnreadableModel
from ir_scatter.core.files import Source
from ir_scatter.lint import Options, check_file
from tests.campaigns.scale import cases
from tests.formats.ir_files import ROOT, SIMPLE, WEIGHTS, check, codes, write

PATTERN = random.Random(0).randbytes(1 << 20)
CALLS = (
    "chmod", "close", "copy_file_range", "fchmod", "fstat", "fsync", "link", "lstat", "open", "read", "readlink",
    "replace", "scandir", "stat", "unlink", "write",
)  # fmt: skip
KILLED = 9


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def fill(folder: Path, tree: Mapping[str, bytes]) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / "sub").mkdir()
    for name, data in tree.items():
        (folder / name).write_bytes(data)


# What is written.


def test_files_appear_and_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path, {"a.bin": b"a longer one", "left": b"left", "right": b"right", "own": PATTERN})
    replace_files([Output(Path("a.bin"), b"1"), Output(tmp_path / "a.xml", b"22"), Output(Path("e"))])
    replace_files([Output(Path("left"), copied=Path("right")), Output(Path("right"), copied=Path("left"))])
    replace_files([Output(Path("own"), b"end", copied=Path("own"), copied_size=len(PATTERN))])
    assert replace_files([]) == ()
    assert files(tmp_path) == {
        "a.bin": b"1", "a.xml": b"22", "e": b"", "left": b"right", "right": b"left", "own": PATTERN + b"end",
    }  # fmt: skip


def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path: Path) -> None:
    for mode, mask in ((0o600, 0o022), (0o777, 0o077)):
        fill(tmp_path, {"old": b"old"})
        (tmp_path / "old").chmod(mode)
        before = os.umask(mask)
        try:
            replace_files([Output(tmp_path / "old", b"new"), Output(tmp_path / "new", b"new")])
        finally:
            os.umask(before)
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("old", "new")]
        assert modes == [mode, 0o666 & ~mask]


def test_symbolic_links_stay_and_other_links_keep_the_old_file(tmp_path: Path) -> None:
    fill(tmp_path, {"sub/old": b"old"})
    (tmp_path / "other").hardlink_to(tmp_path / "sub/old")
    for name in ("old", "new"):
        (tmp_path / f"link_to_{name}").symlink_to(f"sub/{name}")
    replace_files([Output(tmp_path / "link_to_old", b"1"), Output(tmp_path / "link_to_new", b"2")])
    assert (tmp_path / "link_to_old").is_symlink()
    assert (tmp_path / "link_to_new").is_symlink()
    assert files(tmp_path / "sub") == {"old": b"1", "new": b"2"}
    assert (tmp_path / "other").read_bytes() == b"old"


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


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    for name, (make, reason) in REFUSED.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "first").write_bytes(b"old")
        output = make(folder)
        before = files(folder)
        for outputs in (
            [Output(folder / "first", b"new"), output],
            [output, Output(folder / "first", b"new")],
        ):
            with pytest.raises(CannotWrite) as caught:
                replace_files(outputs)
            assert str(caught.value).endswith(reason)
            assert files(folder) == before
            assert (folder / "first").read_bytes() == b"old"


@pytest.mark.parametrize(
    "error", [PermissionError(errno.EPERM, "Operation not permitted"), KeyboardInterrupt()]
)
def test_a_rename_that_fails_puts_back_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    fill(tmp_path, {"old": b"old", "last": b"last"})
    replace = os.replace

    def fail(source: Path, target: Path) -> None:
        if target.name == "last":
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    outputs = [Output(tmp_path / name, b"changed") for name in ("new", "old", "last")]
    message = "last cannot be written: operation not permitted"
    with pytest.raises((CannotWrite, KeyboardInterrupt), match=message if error.args else None):
        replace_files(outputs)
    assert files(tmp_path) == {"old": b"old", "last": b"last"}


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(file: int) -> None:
        raise KeyboardInterrupt

    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_files([Output(tmp_path / "a", b"new")])
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [*files(tmp_path)] == ["a"]


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    replace_files([Output(tmp_path / "a", b"new")])
    with pytest.raises(CannotWrite):
        replace_files([Output(tmp_path / "a", b"new"), Output(tmp_path / "b", copied=tmp_path / "none")])
    assert os.listdir("/proc/self/fd") == before


def test_a_copy_works_where_the_kernel_does_not_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    copy = os.copy_file_range

    def stop(origin: int, file: int, size: int) -> int:
        calls.append(size)
        if len(calls) > 1:
            raise OSError(errno.EXDEV, "no")
        return copy(origin, file, 1000)

    monkeypatch.setattr(os, "copy_file_range", stop)
    (tmp_path / "source").write_bytes(PATTERN)
    replace_files([Output(tmp_path / "target", b"end", copied=tmp_path / "source")])
    assert (tmp_path / "target").read_bytes() == PATTERN + b"end"
    assert len(calls) == 2


# In a process of its own.

CHILD = """
import os, resource, sys
from pathlib import Path
from ir_scatter.core.errors import CannotWrite
from ir_scatter.core.atomic_write import Output, replace_files
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
        assert [*files(tmp_path)] == ["a.bin", "a.xml", "source"]
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
    assert [*files(folder)] == ["source"]
    folder.chmod(0o777)


def test_the_temporary_files_of_the_living_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    stale = [temporary_name(one) for one in (path, other)]
    for name in stale:
        name.write_bytes(b"of a dead run")
    replace_files([Output(path, b"quick")])
    assert path.read_bytes() == b"quick"
    assert not stale[0].exists()
    assert stale[1].exists()
    assert len(files(tmp_path)) == 3
    go_on.set()
    slow.join()
    assert path.read_bytes() == b"slow"
    assert [*files(tmp_path)] == sorted([path.name, stale[1].name])


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


# A run that is killed.


def in_child(work: Callable[[], object]) -> int:
    """Do something in a forked process; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except CannotWrite:
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(number: int, work: Callable[[], object]) -> int:
    """Do something in a process that ends hard before a call of the system; return its exit code."""

    def run() -> None:
        left = number

        def counted(call: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*arguments: Any, **named: Any) -> Any:
                nonlocal left
                if left == 0:
                    os._exit(KILLED)
                left -= 1
                return call(*arguments, **named)

            return wrapper

        for name in CALLS:
            setattr(os, name, counted(getattr(os, name)))
        fcntl.flock = counted(fcntl.flock)
        work()

    return in_child(run)


SETS: dict[str, list[str]] = {
    "a pair": ["a.bin", "a.xml"],
    "external data": ["sub/w.bin", "v.bin", "a.onnx"],
    "one file": ["a.xml"],
}


@pytest.mark.parametrize(
    ("names", "is_there", "fails"),
    [
        *(("a pair", is_there, fails) for is_there in (True, False) for fails in (None, "first", "last")),
        ("external data", True, "last"),
        ("external data", False, None),
        ("one file", True, None),
    ],
)
def test_a_kill_at_any_call(
    tmp_path: Path, names: str, is_there: bool, fails: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are all old or all new after the next run, also where a rename fails before the kill."""
    monkeypatch.setattr(os, "fsync", lambda file: None)  # a kill loses nothing that was written
    wanted = SETS[names]
    old = {"source": b"source", "other": b"other"} | (dict.fromkeys(wanted, b"old") if is_there else {})
    new = old | dict.fromkeys(wanted, b"sourcenew")
    outputs = [Output(tmp_path / name, b"new", copied=tmp_path / "source") for name in wanted]
    broken = {"first": wanted[0], "last": wanted[-1], None: ""}[fails]

    def work() -> None:
        replace = os.replace

        def rename(source: Path, target: Path) -> None:
            if fails and target == tmp_path / broken and b"new" in source.read_bytes():
                raise OSError(errno.EPERM, "Operation not permitted")
            replace(source, target)

        vars(os)["replace"] = rename
        replace_files(outputs)

    halves, number, code = 0, 0, KILLED
    while code == KILLED:
        fill(tmp_path, old)
        code = killed_at(number, work)
        number += 1
        found = {name: data for name, data in files(tmp_path).items() if not name.endswith(".tmp")}
        problem = half_replaced(tmp_path / wanted[-1])
        assert (problem is not None) == (found not in (old, new)), (number, found, problem)
        said = finish_reading(tmp_path / wanted[-1])
        assert bool(said) or problem is None
        halves += problem is not None
        found = {name: data for name, data in files(tmp_path).items() if not name.endswith(".tmp")}
        assert found in (old, new), (number, found)
        assert half_replaced(tmp_path / wanted[-1]) is None
        replace_files([Output(tmp_path / name, b"newest") for name in wanted])
        assert files(tmp_path) == old | dict.fromkeys(wanted, b"newest")
    assert code == (3 if fails else 0)
    assert number > 20
    assert (halves > 0) == (len(wanted) > 1 and fails != "first")


def half(folder: Path, new: Mapping[str, bytes] = {"a.bin": b"new", "a.xml": b"new"}) -> None:
    """Leave files of which only the first was replaced."""

    def work() -> None:
        replace = os.replace

        def rename(source: Path, target: Path) -> None:
            if target.name == "a.xml":
                os._exit(KILLED)
            replace(source, target)

        vars(os)["replace"] = rename
        replace_files([Output(folder / name, data) for name, data in new.items()])

    assert in_child(work) == KILLED


def test_the_next_run_that_writes_one_of_them_finishes_first(tmp_path: Path) -> None:
    for names in (["a.bin"], ["a.xml"], ["b.bin", "a.bin"]):
        fill(tmp_path, {"a.bin": b"old", "a.xml": b"old"})
        half(tmp_path)
        (said,) = replace_files([Output(tmp_path / name, b"newest") for name in names])
        assert said == "a conversion was killed when 1 of 2 files were replaced: a.xml was replaced now"
        expected = {"a.bin": b"new", "a.xml": b"new"} | dict.fromkeys(names, b"newest")
        assert files(tmp_path) == expected


@pytest.mark.parametrize("name", ["a.bin", "a.xml"])
def test_what_somebody_wrote_since_stays(tmp_path: Path, name: str) -> None:
    fill(tmp_path, {"a.bin": b"old", "a.xml": b"old"})
    half(tmp_path)
    (tmp_path / name).write_bytes(b"by hand")
    before = {name: data for name, data in files(tmp_path).items() if not name.endswith(".tmp")}
    assert half_replaced(tmp_path / "a.xml") is None
    assert finish_reading(tmp_path / "a.xml") == ()
    assert replace_files([Output(tmp_path / "a.xml", b"newest")]) == ()
    assert replace_files([Output(tmp_path / "a.bin", before["a.bin"])]) == ()
    assert files(tmp_path) == before | {"a.xml": b"newest"}


def test_links_lead_to_the_list(tmp_path: Path) -> None:
    fill(tmp_path, {"sub/a.bin": b"old", "sub/a.xml": b"old"})
    half(tmp_path / "sub")
    (tmp_path / "b.xml").symlink_to("sub/a.xml")
    assert half_replaced(tmp_path / "b.xml") is not None
    assert finish_reading(tmp_path / "b.xml")
    assert files(tmp_path / "sub") == {"a.bin": b"new", "a.xml": b"new"}


def test_a_list_of_a_stranger_moves_nothing(tmp_path: Path) -> None:
    """Only a temporary file of ours becomes the file that it is for, and only what we wrote is removed."""
    model, outside = tmp_path / "sub" / "a.xml", tmp_path / "outside"
    temporary = temporary_name(model)
    now = [1, 2, 3]
    for listed in (
        b"",
        b"[" * 200_000,
        b"[]",
        b"7",
        b"[7]",
        b'[[1, "a.xml", null, null]]',
        *(
            json.dumps([[origin, target, old, now]]).encode()
            for origin, target, old in (
                ("a.bin", "a.xml", now),
                ("../outside", "a.xml", now),
                ("a.xml", "../outside", now),
                (temporary.name, "../outside", now),
                (f"../{temporary.name}", "../outside", now),
                (None, "../outside", None),
                ("\0", "a.xml", None),
                (temporary_name(Path("a\0b")).name, "a\0b", None),
                (temporary.name, "a.xml", now),
            )
        ),
    ):
        fill(tmp_path, {"sub/a.xml": b"model", "sub/a.bin": b"weights", "outside": b"outside"})
        temporary.write_bytes(b"evil")
        journal_of(model).write_bytes(listed)
        assert half_replaced(model) is None
        assert finish_reading(model) == ()
        replace_files([Output(model, b"new")])
        assert files(tmp_path) == {
            "sub/a.xml": b"new",
            "sub/a.bin": b"weights",
            "outside": outside.read_bytes(),
        }
        assert outside.read_bytes() == b"outside"


def test_a_list_that_is_no_file(tmp_path: Path) -> None:
    fill(tmp_path, {"a.xml": b"model"})
    os.mkfifo(journal_of(tmp_path / "a.xml"))
    assert half_replaced(tmp_path / "a.xml") is None
    assert replace_files([Output(tmp_path / "a.bin", b"1"), Output(tmp_path / "a.xml", b"2")]) == ()
    assert files(tmp_path) == {"a.bin": b"1", "a.xml": b"2"}


def test_a_folder_that_stays_locked(tmp_path: Path) -> None:
    fill(tmp_path, {"a.xml": b"model"})
    message = "another process has locked it for more than 0 s"
    with locked([tmp_path]):
        with pytest.raises(CannotWrite, match=message), locked([tmp_path], 0.05):
            pass
        half_is_unknown = half_replaced(tmp_path / "a.xml")
    assert half_is_unknown is None


def test_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: int, operation: int) -> NoReturn:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    fill(tmp_path, {"a.bin": b"old", "a.xml": b"old"})
    half(tmp_path)
    assert finish_reading(tmp_path / "a.xml")
    replace_files([Output(tmp_path / "a.bin", b"1"), Output(tmp_path / "a.xml", b"2")])
    assert (tmp_path / "a.bin").read_bytes() == b"1"
    assert (tmp_path / "a.xml").read_bytes() == b"2"


# Several processes.


def pair(folder: Path) -> tuple[bytes, bytes]:
    """Read two files while nobody may replace them."""
    with locked([folder]):
        return (folder / "a.bin").read_bytes(), (folder / "a.xml").read_bytes()


def forked(work: Callable[[], object]) -> int:
    """Do something in a forked process and return that process."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    return child


def writer(folder: Path, number: int, rounds: int) -> Callable[[], object]:
    """Return what replaces a pair again and again, with contents of its own."""

    def work() -> None:
        for again in range(rounds):
            text = b"%d of %d;" % (again, number) * 2000
            replace_files([Output(folder / "a.bin", text), Output(folder / "a.xml", text)])

    return work


def pairs_until_the_end(folder: Path, children: list[int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pair again and again until all processes are through."""
    while children:
        yield pair(folder)
        for child in [*children]:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                assert status == 0
                children.remove(done)


def test_many_at_once_leave_one_pair(tmp_path: Path) -> None:
    replace_files([Output(tmp_path / "a.bin", b"0"), Output(tmp_path / "a.xml", b"0")])
    children = [forked(writer(tmp_path, number, len(cases(40)))) for number in range(4)]
    seen = {*pairs_until_the_end(tmp_path, children)}
    assert all(left == right for left, right in seen)
    assert len(seen) > 5
    assert sorted(files(tmp_path)) == ["a.bin", "a.xml"]


def test_many_at_once_of_which_some_are_killed(tmp_path: Path) -> None:
    chance = random.Random(5)
    replace_files([Output(tmp_path / "a.bin", b"0"), Output(tmp_path / "a.xml", b"0")])
    for _ in cases(15):
        children = [forked(writer(tmp_path, number, 1000)) for number in range(3)]
        for child in children:
            time.sleep(chance.random() * 0.02)
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
        finish_reading(tmp_path / "a.xml")
        left, right = pair(tmp_path)
        assert left == right
    replace_files([Output(tmp_path / "a.bin", b"1"), Output(tmp_path / "a.xml", b"1")])
    assert sorted(files(tmp_path)) == ["a.bin", "a.xml"]


def source(folder: Path, name: str, size: int) -> Path:
    """Write a model of its own: another file name, another size of the weights."""
    legal = SIMPLE.replace('offset="8"', 'offset="0"')
    return write(folder, legal.replace('name="m"', f'name="{name}"'), WEIGHTS + bytes(size), name)


def test_conversions_to_one_destination_leave_one_pair(tmp_path: Path) -> None:
    sources = [source(tmp_path, name, 100_000 * number) for number, name in enumerate(("x", "y"))]

    def convert(path: Path, times: int) -> None:
        for _ in range(times):
            options = {"to": "ScatterElementsUpdate", "verify": 0}
            assert run_job(Job(str(path), str(tmp_path / "a.xml"), options, overwrite=True)).written

    wanted = []
    for path in sources:
        convert(path, 1)
        wanted.append(pair(tmp_path))
    assert wanted[0] != wanted[1]
    children = [forked(partial(convert, path, len(cases(20)))) for path in sources]
    assert {*pairs_until_the_end(tmp_path, children)} == {*wanted}


# As a user sees it.


def command(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ir_scatter_cli", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}"},
    )  # fmt: skip


def half_model(folder: Path) -> dict[str, bytes]:
    """Write a model, and then replace its weights and not its text; return what it should have become."""
    source(folder, "a", 0)
    other = source(folder, "b", 64)
    new = {"a.bin": other.with_suffix(".bin").read_bytes(), "a.xml": other.read_bytes()}
    half(folder, new)
    return new


def test_whoever_reads_half_a_pair_is_told(tmp_path: Path) -> None:
    half_model(tmp_path)
    result = check_file(Source(str(tmp_path / "a.xml")), Options()).result
    assert result is not None
    (found,) = result.diagnostics
    assert (found.code, found.rule) == ("SCT934", "half-replaced")
    assert found.message == (
        "a conversion was killed when 1 of 2 files were replaced, and a.xml was not: expected all of them or "
        "none; the next conversion from or to this file finishes it"
    )
    done = command("validate", "a.xml", "--format", "concise", folder=tmp_path)
    assert done.returncode == 3
    assert "SCT934" in done.stdout
    for arguments in (("inspect", "a.xml"), ("run", "a.xml"), ("convert", "a.xml", "--dry-run")):
        done = command(*arguments, folder=tmp_path)
        assert done.returncode == 3
        assert "1 of 2 files were replaced" in done.stdout + done.stderr
    with pytest.raises(UnreadableModel, match="1 of 2 files were replaced"):
        ir_scatter.convert(tmp_path / "a.xml")
    (tmp_path / "a.xml").unlink()
    assert codes(check_file(Source(str(tmp_path / "a.xml")), Options())) == ["SCT901"]


def test_the_next_conversion_from_it_finishes_it(tmp_path: Path) -> None:
    new = half_model(tmp_path)
    done = command("convert", "a.xml", "-o", "c.xml", "--to", "ScatterElementsUpdate", folder=tmp_path)
    assert done.returncode == 0
    assert "a conversion was killed when 1 of 2 files were replaced: a.xml was replaced now" in done.stdout
    assert {name: files(tmp_path)[name] for name in new} == new
    assert codes(check(tmp_path / "a.xml")) == codes(check(tmp_path / "c.xml")) == []


def test_the_next_conversion_to_it_finishes_it(tmp_path: Path) -> None:
    half_model(tmp_path)
    source(tmp_path, "s", 16)
    job = ["s.xml", "-o", "a.xml", "--to", "ScatterElementsUpdate", "--overwrite", "--format", "json"]
    done = command("convert", *job, folder=tmp_path)
    assert done.returncode == 0
    assert "a conversion was killed when 1 of 2 files were replaced: a.xml was replaced now" in done.stdout
    assert codes(check(tmp_path / "a.xml")) == []
    assert (tmp_path / "a.bin").read_bytes()[: len(WEIGHTS) + 16] == WEIGHTS + bytes(16)
    assert not [name for name in files(tmp_path) if name.endswith(".tmp")]
