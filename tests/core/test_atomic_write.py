"""Files appear whole or not at all, and those that belong together, together: whatever happens meanwhile."""

import errno
import fcntl
import json
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest

import ir_scatter
from ir_scatter.core.atomic_write import (
    Output,
    finish_reading,
    half_replaced,
    journal_of,
    locked,
    replace_files,
    temporary_name,
)
from ir_scatter.core.errors import CannotWrite, UnreadableModel, UsageError
from ir_scatter.core.files import Source
from ir_scatter.lint import Options, check_file
from tests.formats.ir_files import ROOT, SIMPLE, WEIGHTS, check, codes, write
from tests.scale import cases

PATTERN = random.Random(0).randbytes(1 << 20)
CALLS = (
    "chmod", "close", "copy_file_range", "fchmod", "fstat", "fsync", "link", "lstat", "open", "read", "readlink",
    "replace", "scandir", "stat", "unlink", "write",
)  # fmt: skip
KILLED, REFUSED = 9, 3
NOT_PERMITTED = errno.EPERM, "Operation not permitted"


def files(folder: Path, *, all_of_them: bool = True) -> dict[str, bytes]:
    """Return the files of a folder by name, those that are temporary among them or not."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in found
        if all_of_them or path.suffix != ".tmp"
    }


def fill(folder: Path, tree: Mapping[str, bytes]) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / "sub").mkdir()
    for name, data in tree.items():
        (folder / name).write_bytes(data)


def replace_all(folder: Path, tree: Mapping[str, bytes]) -> tuple[str, ...]:
    return replace_files([Output(folder / name, data) for name, data in tree.items()])


def forked(work: Callable[[], object]) -> int:
    """Do something in a forked process and return that process; it ends with 3 if nothing can be written."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except CannotWrite:
            code = REFUSED
        finally:
            os._exit(code)
    return child


def in_child(work: Callable[[], object]) -> int:
    """Do something in a forked process; return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(forked(work), 0)[1])


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
            replace_all(tmp_path, {"old": b"new", "new": b"new"})
        finally:
            os.umask(before)
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("old", "new")]
        assert modes == [mode, 0o666 & ~mask]


def test_symbolic_links_stay_and_other_links_keep_the_old_file(tmp_path: Path) -> None:
    fill(tmp_path, {"sub/old": b"old"})
    (tmp_path / "other").hardlink_to(tmp_path / "sub/old")
    links = [tmp_path / "link_to_old", tmp_path / "link_to_new"]
    for link in links:
        link.symlink_to(f"sub/{link.name[-3:]}")
    replace_files([Output(links[0], b"1"), Output(links[1], b"2")])
    assert [link.is_symlink() for link in links] == [True, True]
    assert files(tmp_path / "sub") == {"old": b"1", "new": b"2"}
    assert (tmp_path / "other").read_bytes() == b"old"


def refused_outputs(folder: Path) -> Iterator[tuple[Output, str]]:
    """Yield what cannot be written, and the end of the reason."""
    (folder / "folder").mkdir()
    yield Output(folder / "folder", b"x"), "folder cannot be written: is a directory"
    os.mkfifo(folder / "pipe")
    yield Output(folder / "pipe", b"x"), "pipe cannot be written: it is not a regular file"
    (folder / "circle").symlink_to("circle")
    yield Output(folder / "circle", b"x"), "circle cannot be written: too many levels of symbolic links"
    yield Output(folder / "none/a", b"x"), "a cannot be written: no such file or directory"
    yield Output(folder / "first/a", b"x"), "a cannot be written: not a directory"
    yield Output(folder / ("a" * 300), b"x"), "a cannot be written: file name too long"
    none, inside = folder / "none", folder / "folder"
    yield Output(folder / "a", copied=none), "none cannot be read: no such file or directory"
    yield Output(folder / "a", copied=inside), "folder cannot be read: it is not a regular file"
    changed = "first has 3 bytes, expected 4: it has changed meanwhile"
    yield Output(folder / "a", copied=folder / "first", copied_size=4), changed
    again = "two outputs have the same path, expected different ones"
    yield Output(folder / "folder/../first", b"x"), again


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "first").write_bytes(b"old")
    first = Output(tmp_path / "first", b"new")
    for output, reason in refused_outputs(tmp_path):
        for outputs in ([first, output], [output, first]):
            with pytest.raises(CannotWrite) as caught:
                replace_files(outputs)
            assert str(caught.value).endswith(reason)
            assert files(tmp_path) == {"first": b"old"}


@pytest.mark.parametrize(
    "error", [PermissionError(*NOT_PERMITTED), KeyboardInterrupt()], ids=["error", "key"]
)
@pytest.mark.parametrize("call", ["replace", "fsync", "write", "fchmod", "link", "open"])
def test_a_call_that_fails_changes_all_files_or_none(
    call: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the calls it is; what was renamed before is put back, and no temporary file is left."""
    old = {"last": b"last", "old": b"old"}
    new = dict.fromkeys(["new", "old", "last"], b"changed")
    real, left, reasons = getattr(os, call), 0, []

    def fail(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left == -1:
            raise error
        return real(*arguments, **named)

    monkeypatch.setattr(os, call, fail)
    for number in count():
        left = number
        fill(tmp_path, old)
        try:
            replace_all(tmp_path, new)
        except (CannotWrite, KeyboardInterrupt) as raised:
            reasons.append(str(raised))
        assert files(tmp_path) in (old, new)
        if left >= 0:
            break
        if call in {"replace", "write"}:
            assert files(tmp_path) == old
    assert number > 1
    if isinstance(error, OSError) and call != "link":
        assert reasons
        assert all(reason.endswith(" cannot be written: operation not permitted") for reason in reasons)


# Files that are to be new.


def new_pair(folder: Path, text: bytes) -> list[Output]:
    return [Output(folder / name, text + name.encode(), is_new=True) for name in ("a.bin", "a.xml")]


@pytest.mark.parametrize("there", ["a.bin", "a.xml"])
def test_a_new_file_replaces_none(there: str, tmp_path: Path) -> None:
    (tmp_path / there).write_bytes(b"old")
    with pytest.raises(UsageError, match=rf"{there} exists, expected a path that is free or overwrite=True"):
        replace_files(new_pair(tmp_path, b""))
    assert files(tmp_path) == {there: b"old"}
    (tmp_path / there).unlink()
    assert replace_files(new_pair(tmp_path, b"")) == ()
    assert files(tmp_path) == {"a.bin": b"a.bin", "a.xml": b"a.xml"}
    assert {path.stat().st_nlink for path in tmp_path.iterdir()} == {1}


def test_a_new_file_does_not_follow_a_link_to_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a.xml").symlink_to("nowhere")
    with pytest.raises(UsageError, match=r"a\.xml exists"):
        replace_files(new_pair(tmp_path, b""))
    assert [path.name for path in tmp_path.iterdir()] == ["a.xml"]


def test_of_two_runs_at_once_the_first_that_is_done_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has found both paths free, and written its temporary files, when the first begins."""
    real, finished = os.fsync, []

    def other_run_first(file: int) -> None:
        monkeypatch.setattr(os, "fsync", real)
        finished.append(replace_files(new_pair(tmp_path, b"first ")))
        real(file)

    monkeypatch.setattr(os, "fsync", other_run_first)
    with pytest.raises(UsageError, match="exists, expected a path that is free or overwrite=True"):
        replace_files(new_pair(tmp_path, b"second "))
    assert finished == [()]
    assert files(tmp_path) == {"a.bin": b"first a.bin", "a.xml": b"first a.xml"}


@pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("name", ["a.bin", "a.xml"])
def test_what_another_program_writes_at_the_last_moment_stays(
    name: str, has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes no locks, and creates a file between the last look and the rename."""
    real = os.link

    def link(source: Path, target: Path) -> None:
        if not has_links:
            if target.name == name:
                target.write_bytes(b"stranger")
            raise PermissionError(*NOT_PERMITTED)
        if target.name == name and source.suffix == ".tmp":
            target.write_bytes(b"stranger")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(UsageError, match=f"{name} exists"):
        replace_files(new_pair(tmp_path, b""))
    assert files(tmp_path) == {name: b"stranger"}


@pytest.mark.parametrize("call", ["replace", "fsync", "write", "link", "unlink", "open"])
def test_new_files_are_all_there_or_none(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of the calls is interrupted."""
    real, left, whole = getattr(os, call), 0, {"a.bin": b"a.bin", "a.xml": b"a.xml"}

    def interrupt(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left == -1:
            raise KeyboardInterrupt
        return real(*arguments, **named)

    monkeypatch.setattr(os, call, interrupt)
    for number in range(40):
        left = number
        fill(tmp_path, {})
        with suppress(KeyboardInterrupt):
            replace_files(new_pair(tmp_path, b""))
        assert files(tmp_path, all_of_them=call != "unlink") in ({}, whole)
        if left >= 0:
            break
    assert left >= 0
    assert files(tmp_path) == whole


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


def test_no_permission_changes_nothing(tmp_path: Path) -> None:
    def work() -> None:
        os.chdir(tmp_path)
        if os.geteuid() == 0:  # nobody cannot go through the folders above, but sees where it is
            os.setgid(65534)
            os.setuid(65534)
        vars(os.path)["realpath"] = os.fspath
        replace_files([Output(Path("a.bin"), b"new")])

    fill(tmp_path, {"a.bin": b"old"})
    (tmp_path / "a.bin").chmod(0o444)
    tmp_path.chmod(0o777)
    assert in_child(work) == REFUSED
    assert files(tmp_path) == {"a.bin": b"old"}
    fill(tmp_path, {})
    tmp_path.chmod(0o555)
    assert in_child(work) == REFUSED
    assert files(tmp_path) == {}
    tmp_path.chmod(0o777)


def test_the_temporary_files_of_the_living_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    dead, of_another = [temporary_name(one) for one in (path, tmp_path / "b")]
    sync = os.fsync

    def write_between(file: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        dead.write_bytes(b"of a dead run")
        of_another.write_bytes(b"of a dead run")
        replace_files([Output(path, b"quick")])
        assert path.read_bytes() == b"quick"
        assert not dead.exists()
        assert len(files(tmp_path)) == 3
        sync(file)

    monkeypatch.setattr(os, "fsync", write_between)
    replace_files([Output(path, b"slow")])
    assert files(tmp_path) == {"a": b"slow", of_another.name: b"of a dead run"}


def test_a_large_copy_takes_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "source").open("wb") as file:
        for _ in range(64):
            file.write(PATTERN)

    def work() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        replace_files([Output(tmp_path / "a", b"end", copied=tmp_path / "source")])
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024

    assert in_child(work) == 0
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
    replace_all(tmp_path, {"a.bin": b"1", "a.xml": b"2"})
    assert steps == ["file", "file", "a.bin", "a.xml", "folder"]


# A run that is killed.


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


PAIR, EXTERNAL = ["a.bin", "a.xml"], ["sub/w.bin", "v.bin", "a.onnx"]


@pytest.mark.parametrize(
    ("wanted", "is_there", "broken"),
    [
        *((PAIR, is_there, broken) for is_there in (True, False) for broken in (None, *PAIR)),
        (EXTERNAL, True, "a.onnx"),
        (EXTERNAL, False, None),
        (["a.xml"], True, None),
    ],
)
def test_a_kill_at_any_call(
    tmp_path: Path, wanted: list[str], is_there: bool, broken: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are all old or all new after the next run, also where a rename fails before the kill."""
    monkeypatch.setattr(os, "fsync", lambda file: None)  # a kill loses nothing that was written
    old = {"source": b"source", "other": b"other"} | (dict.fromkeys(wanted, b"old") if is_there else {})
    new = old | dict.fromkeys(wanted, b"sourcenew")
    outputs = [Output(tmp_path / name, b"new", copied=tmp_path / "source") for name in wanted]
    last = tmp_path / wanted[-1]

    def work() -> None:
        replace = os.replace

        def rename(source: Path, target: Path) -> None:
            if broken and target == tmp_path / broken and b"new" in source.read_bytes():
                raise OSError(*NOT_PERMITTED)
            replace(source, target)

        vars(os)["replace"] = rename
        replace_files(outputs)

    halves, number, code = 0, 0, KILLED
    while code == KILLED:
        fill(tmp_path, old)
        code = killed_at(number, work)
        number += 1
        found, problem = files(tmp_path, all_of_them=False), half_replaced(last)
        assert (problem is not None) == (found not in (old, new)), (number, found, problem)
        finished = finish_reading(last)
        assert finished or problem is None
        halves += problem is not None
        assert files(tmp_path, all_of_them=False) in (old, new), number
        assert half_replaced(last) is None
        replace_all(tmp_path, dict.fromkeys(wanted, b"newest"))
        assert files(tmp_path) == old | dict.fromkeys(wanted, b"newest")
    assert code == (REFUSED if broken else 0)
    assert number > 20
    assert (halves > 0) == (len(wanted) > 1 and broken != wanted[0])


OLD, NEW = dict.fromkeys(PAIR, b"old"), dict.fromkeys(PAIR, b"new")
FINISHED = "a conversion was killed when 1 of 2 files were replaced: a.xml was replaced now"


def half(folder: Path, new: Mapping[str, bytes] = NEW, old: Mapping[str, bytes] | None = OLD) -> None:
    """Leave files of which only the first was replaced."""
    if old is not None:
        fill(folder, old)

    def work() -> None:
        replace = os.replace

        def rename(source: Path, target: Path) -> None:
            if target.name == "a.xml":
                os._exit(KILLED)
            replace(source, target)

        vars(os)["replace"] = rename
        replace_all(folder, new)

    assert in_child(work) == KILLED


def test_the_next_run_that_writes_one_of_them_finishes_first(tmp_path: Path) -> None:
    for names in (["a.bin"], ["a.xml"], ["b.bin", "a.bin"]):
        half(tmp_path)
        newest = dict.fromkeys(names, b"newest")
        assert replace_all(tmp_path, newest) == (FINISHED,)
        assert files(tmp_path) == NEW | newest


@pytest.mark.parametrize("name", PAIR)
def test_what_somebody_wrote_since_stays(tmp_path: Path, name: str) -> None:
    half(tmp_path)
    (tmp_path / name).write_bytes(b"by hand")
    before = files(tmp_path, all_of_them=False)
    assert half_replaced(tmp_path / "a.xml") is None
    assert finish_reading(tmp_path / "a.xml") == ()
    assert replace_all(tmp_path, {"a.xml": b"newest"}) == ()
    assert replace_all(tmp_path, {"a.bin": before["a.bin"]}) == ()
    assert files(tmp_path) == before | {"a.xml": b"newest"}


def test_links_lead_to_the_journal(tmp_path: Path) -> None:
    fill(tmp_path, {})
    half(tmp_path / "sub")
    (tmp_path / "b.xml").symlink_to("sub/a.xml")
    assert half_replaced(tmp_path / "b.xml") is not None
    assert finish_reading(tmp_path / "b.xml")
    assert files(tmp_path / "sub") == NEW


def test_a_journal_of_a_stranger_moves_nothing(tmp_path: Path) -> None:
    """Only a temporary file of ours becomes the file that it is for, and only what we wrote is removed."""
    model, now = tmp_path / "sub" / "a.xml", [1, 2, 3]
    temporary = temporary_name(model)
    renames = (
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
    texts = [b"", b"[" * 200_000, b"[]", b"7", b"[7]", b'[[1, "a.xml", null, null]]']
    old = {"sub/a.xml": b"model", "sub/a.bin": b"weights", "outside": b"outside"}
    for journal in [*texts, *(json.dumps([[*rename, now]]).encode() for rename in renames)]:
        fill(tmp_path, old)
        temporary.write_bytes(b"evil")
        journal_of(model).write_bytes(journal)
        assert half_replaced(model) is None
        assert finish_reading(model) == ()
        replace_files([Output(model, b"new")])
        assert files(tmp_path) == old | {"sub/a.xml": b"new"}


def test_a_journal_that_is_no_file(tmp_path: Path) -> None:
    fill(tmp_path, {"a.xml": b"model"})
    os.mkfifo(journal_of(tmp_path / "a.xml"))
    assert half_replaced(tmp_path / "a.xml") is None
    assert replace_all(tmp_path, NEW) == ()
    assert files(tmp_path) == NEW


def test_a_folder_that_stays_locked(tmp_path: Path) -> None:
    half(tmp_path)
    message = "another process has locked it for more than 0 s"
    with locked([tmp_path]):
        with pytest.raises(CannotWrite, match=message), locked([tmp_path], 0.05):
            pass
        assert half_replaced(tmp_path / "a.xml") is None
    assert half_replaced(tmp_path / "a.xml") is not None


def test_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: int, operation: int) -> NoReturn:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    half(tmp_path)
    assert finish_reading(tmp_path / "a.xml")
    newest = dict.fromkeys(PAIR, b"newest")
    replace_all(tmp_path, newest)
    assert files(tmp_path).items() >= newest.items()


# Several processes.


def pair(folder: Path) -> tuple[bytes, bytes]:
    """Read two files while nobody may replace them."""
    with locked([folder]):
        return (folder / "a.bin").read_bytes(), (folder / "a.xml").read_bytes()


def write_pairs(folder: Path, number: int, rounds: int) -> None:
    """Replace a pair again and again, with contents of its own."""
    for again in range(rounds):
        replace_all(folder, dict.fromkeys(PAIR, b"%d of %d;" % (again, number) * 2000))


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
    replace_all(tmp_path, NEW)
    children = [forked(partial(write_pairs, tmp_path, number, len(cases(40)))) for number in range(4)]
    seen = {*pairs_until_the_end(tmp_path, children)}
    assert all(left == right for left, right in seen)
    assert len(seen) > 5
    assert [*files(tmp_path)] == PAIR


def test_many_at_once_of_which_some_are_killed(tmp_path: Path) -> None:
    chance = random.Random(5)
    replace_all(tmp_path, NEW)
    for _ in cases(15):
        children = [forked(partial(write_pairs, tmp_path, number, 1000)) for number in range(3)]
        for child in children:
            time.sleep(chance.random() * 0.02)
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
        finish_reading(tmp_path / "a.xml")
        left, right = pair(tmp_path)
        assert left == right
    replace_all(tmp_path, NEW)
    assert [*files(tmp_path)] == PAIR


# As a user sees it.


def source(folder: Path, name: str, size: int) -> Path:
    """Write a model of its own: another file name, another size of the weights."""
    legal = SIMPLE.replace('offset="8"', 'offset="0"')
    return write(folder, legal.replace('name="m"', f'name="{name}"'), WEIGHTS + bytes(size), name)


def command(folder: Path, arguments: str) -> tuple[int, str]:
    """Run a command line in a folder; return its exit code and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "ir_scatter_cli", *arguments.split()],
        cwd=folder, capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def half_model(folder: Path) -> dict[str, bytes]:
    """Write a model, and then replace its weights and not its text; return what it should have become."""
    source(folder, "a", 0)
    other = source(folder, "b", 64)
    new = {"a.bin": other.with_suffix(".bin").read_bytes(), "a.xml": other.read_bytes()}
    half(folder, new, None)
    return new


def test_whoever_reads_half_a_pair_is_told(tmp_path: Path) -> None:
    half_model(tmp_path)
    result = check_file(Source(str(tmp_path / "a.xml")), Options())
    (found,) = result.diagnostics
    assert (found.code, found.rule) == ("SCT934", "half-replaced")
    assert found.message == (
        "a conversion was killed when 1 of 2 files were replaced, and a.xml was not: expected all of them or "
        "none; the next conversion from or to this file finishes it"
    )
    for arguments in ("validate a.xml", "inspect a.xml", "run a.xml", "convert a.xml --dry-run"):
        code, text = command(tmp_path, arguments)
        assert code == 3
        assert "1 of 2 files were replaced" in " ".join(text.split())
    with pytest.raises(UnreadableModel, match="1 of 2 files were replaced"):
        ir_scatter.convert(tmp_path / "a.xml")
    (tmp_path / "a.xml").unlink()
    assert codes(check_file(Source(str(tmp_path / "a.xml")), Options())) == ["SCT901"]


@pytest.mark.parametrize("arguments", ["a.xml -o c.xml", "s.xml -o a.xml --overwrite --format json"])
def test_the_next_conversion_from_it_or_to_it_finishes_it(tmp_path: Path, arguments: str) -> None:
    new = half_model(tmp_path)
    written = source(tmp_path, "s", 16).with_name("a.xml" if "-o a.xml" in arguments else "c.xml")
    code, text = command(tmp_path, f"convert {arguments} --to ScatterElementsUpdate")
    assert code == 0
    assert FINISHED in text
    assert codes(check(tmp_path / "a.xml")) == codes(check(written)) == []
    found = files(tmp_path)
    assert not [name for name in found if name.endswith(".tmp")]
    if written.name == "c.xml":
        assert found.items() >= new.items()
    else:
        assert found["a.bin"].startswith(WEIGHTS + bytes(16))
