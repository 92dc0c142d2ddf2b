"""Files that belong together are replaced together, whoever else writes them and whenever a run is killed."""

import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

import ir_scatter
from ir_scatter.convert.job import Job, run_job
from ir_scatter.core import atomic_write
from ir_scatter.core.atomic_write import (
    Output,
    finish_reading,
    half_replaced,
    journal_of,
    locked,
    replace_files,
)
from ir_scatter.core.errors import CannotWrite, UnreadableModel
from ir_scatter.core.files import Source
from ir_scatter.lint import Options, check_file
from tests.campaigns.scale import cases
from tests.formats.ir_files import ROOT, SIMPLE, WEIGHTS, check, codes, write

CALLS = (
    "access", "close", "copy_file_range", "fchmod", "fstat", "fsync", "link", "lstat", "open", "posix_fadvise",
    "read", "readlink", "replace", "rename", "rmdir", "scandir", "stat", "unlink", "write",
)  # fmt: skip
KILLED = 9

Tree = Mapping[str, bytes]


@pytest.fixture(params=["without a name", "with a name"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Temporary files with and without names."""
    if request.param == "with a name":
        monkeypatch.setattr(atomic_write, "_open_unnamed", lambda folder: None)
    return str(request.param)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def fill(folder: Path, tree: Tree) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / "sub").mkdir()
    for name, data in tree.items():
        (folder / name).write_bytes(data)


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


@pytest.mark.usefixtures("kind")
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


def half(folder: Path, names: tuple[str, ...] = ("a.bin", "a.xml"), data: bytes = b"new") -> None:
    """Leave files of which only the first was replaced."""

    def work() -> None:
        replace = os.replace

        def rename(source: Path, target: Path) -> None:
            if target.name == Path(names[1]).name:
                os._exit(KILLED)
            replace(source, target)

        vars(os)["replace"] = rename
        replace_files([Output(folder / name, data) for name in names])

    assert in_child(work) == KILLED


def test_the_next_run_that_writes_one_of_them_finishes_first(tmp_path: Path) -> None:
    for names in (["a.bin"], ["a.xml"], ["b.bin", "a.bin"]):
        fill(tmp_path, {"a.bin": b"old", "a.xml": b"old"})
        half(tmp_path)
        (said,) = replace_files([Output(tmp_path / name, b"newest") for name in names])
        assert said == "a conversion was killed when 1 of 2 files were replaced: a.xml was replaced now"
        expected = {"a.bin": b"new", "a.xml": b"new"} | dict.fromkeys(names, b"newest")
        assert files(tmp_path) == expected


def test_other_files_are_written_as_if_nothing_were(tmp_path: Path) -> None:
    fill(tmp_path, {"a.bin": b"old", "a.xml": b"old"})
    half(tmp_path)
    before = files(tmp_path)
    assert replace_files([Output(tmp_path / "b.bin", b"1"), Output(tmp_path / "b.xml", b"2")]) == ()
    assert files(tmp_path) == before | {"b.bin": b"1", "b.xml": b"2"}


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
    temporary = atomic_write.temporary_name(model)
    now = [1, 2, 3]
    for listed in (
        b"",
        b"[" * 200_000,
        b"[]",
        b'{"files": 7}',
        b'{"files": [7]}',
        b'{"files": [{"from": 1, "to": "a.xml", "new": null, "old": null}]}',
        *(
            json.dumps({"files": [{"from": origin, "to": target, "new": now, "old": old}]}).encode()
            for origin, target, old in (
                ("a.bin", "a.xml", now),
                ("../outside", "a.xml", now),
                ("a.xml", "../outside", now),
                (temporary.name, "../outside", now),
                (f"../{temporary.name}", "../outside", now),
                (None, "../outside", now),
                (None, "../outside", None),
                (None, "a\0b", None),
                ("\0", "a.xml", None),
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


def writers(folder: Path, count: int, rounds: int) -> Iterator[int]:
    """Start processes that replace a pair again and again, each with numbers of its own."""
    for writer in range(count):
        child = os.fork()
        if child == 0:
            try:
                for number in range(rounds):
                    text = b"%d of %d;" % (number, writer) * 2000
                    replace_files([Output(folder / "a.bin", text), Output(folder / "a.xml", text)])
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
        yield child


def test_many_at_once_leave_one_pair(tmp_path: Path) -> None:
    replace_files([Output(tmp_path / "a.bin", b"0"), Output(tmp_path / "a.xml", b"0")])
    children = [*writers(tmp_path, 4, len(cases(40)))]
    seen = set()
    while children:
        left, right = pair(tmp_path)
        assert left == right
        seen.add(left)
        for child in [*children]:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                assert status == 0
                children.remove(done)
    assert len(seen) > 5
    assert sorted(files(tmp_path)) == ["a.bin", "a.xml"]


def test_many_at_once_of_which_some_are_killed(tmp_path: Path) -> None:
    chance = random.Random(5)
    replace_files([Output(tmp_path / "a.bin", b"0"), Output(tmp_path / "a.xml", b"0")])
    finished = 0
    for _ in cases(15):
        children = [*writers(tmp_path, 3, 1000)]
        for child in children:
            time.sleep(chance.random() * 0.02)
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
        finished += len(finish_reading(tmp_path / "a.xml"))
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
    wanted = []
    for path in sources:
        run_job(
            Job(
                str(path),
                str(tmp_path / "alone.xml"),
                {"to": "ScatterElementsUpdate", "verify": 0},
                overwrite=True,
            )
        )
        wanted.append(((tmp_path / "alone.bin").read_bytes(), (tmp_path / "alone.xml").read_bytes()))
    assert wanted[0] != wanted[1]

    def convert(path: Path) -> None:
        for _ in cases(20):
            options = {"to": "ScatterElementsUpdate", "verify": 0}
            done = run_job(Job(str(path), str(tmp_path / "a.xml"), options, overwrite=True))
            assert done.written

    convert_once = Job(str(sources[0]), str(tmp_path / "a.xml"), {"to": "ScatterElementsUpdate", "verify": 0})
    run_job(convert_once)
    children = []
    for path in sources:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                convert(path)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    seen = set()
    while children:
        found = pair(tmp_path)
        assert found in wanted
        seen.add(wanted.index(found))
        for child in [*children]:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                assert status == 0
                children.remove(done)
    assert seen == {0, 1}


# As a user sees it.


def command(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ir_scatter_cli", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}"},
    )  # fmt: skip


def half_model(folder: Path) -> dict[str, bytes]:
    """Write a model, and then replace its weights and not its text; return what it should have become."""
    path = source(folder, "a", 0)
    other = source(folder, "b", 64)
    new = {"a.bin": other.with_suffix(".bin").read_bytes(), "a.xml": other.read_bytes()}

    def work() -> None:
        replace = os.replace

        def rename(origin: Path, target: Path) -> None:
            if target.name == "a.xml":
                os._exit(KILLED)
            replace(origin, target)

        vars(os)["replace"] = rename
        replace_files([Output(folder / name, data) for name, data in new.items()])

    assert in_child(work) == KILLED
    assert path.read_bytes() != new["a.xml"]
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
    job = (
        "convert",
        "s.xml",
        "-o",
        "a.xml",
        "--to",
        "ScatterElementsUpdate",
        "--overwrite",
        "--format",
        "json",
    )
    done = command(*job, folder=tmp_path)
    assert done.returncode == 0
    assert "a conversion was killed when 1 of 2 files were replaced: a.xml was replaced now" in done.stdout
    assert codes(check(tmp_path / "a.xml")) == []
    assert (tmp_path / "a.bin").read_bytes()[: len(WEIGHTS) + 16] == WEIGHTS + bytes(16)
    assert not [name for name in files(tmp_path) if name.endswith(".tmp")]


def test_a_fresh_pair_of_which_one_file_is_there(tmp_path: Path) -> None:
    half(tmp_path)
    assert sorted(name for name in files(tmp_path) if not name.endswith(".tmp")) == ["a.bin"]
    assert codes(check_file(Source(str(tmp_path / "a.xml")), Options())) == ["SCT934"]
    assert finish_reading(tmp_path / "a.xml")
    assert files(tmp_path) == {"a.bin": b"new", "a.xml": b"new"}
