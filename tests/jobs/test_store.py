"""What arrives is checked, kept within a limit, and laid out where it was."""

import os
from collections.abc import Iterator
from hashlib import sha256
from itertools import permutations
from pathlib import Path

import pytest

from ir_scatter.jobs.store import Changed, Finished, NoRoom, Store, pieces
from ir_scatter.jobs.wire import Head, RequestRefused, SentFile


def hash_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def head(path: str, data: bytes) -> Head:
    return Head("validate", "/home", (SentFile(path, hash_of(data), len(data)),))


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "kept").iterdir())


def test_pieces_make_a_whole(tmp_path: Path) -> None:
    store, data = Store(tmp_path, 100), b"0123456789"
    for offset in range(0, 10, 4):
        assert store.missing(head("/m.xml", data)) == [hash_of(data)]
        store.put_piece(hash_of(data), "a", offset, 10, data[offset : offset + 4])
    assert store.missing(head("/m.xml", data)) == []
    with store.mirror(head("/models/m.xml", data)) as root:
        assert (root / "models" / "m.xml").read_bytes() == data
        assert (root / "home").is_dir()
    assert not root.exists()


def test_two_send_the_same(tmp_path: Path) -> None:
    store, data = Store(tmp_path, 100), b"0123456789"
    for offset in (0, 5):
        for token in "ab":
            store.put_piece(hash_of(data), token, offset, 10, data[offset : offset + 5])
    assert kept(tmp_path) == [hash_of(data)]


def test_what_is_not_what_it_should_be_is_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path, 100)
    with pytest.raises(Changed):
        store.put(hash_of(b"a"), b"b")
    store.put_piece(hash_of(b"ab"), "1", 0, 2, b"a")
    with pytest.raises(Changed):
        store.put_piece(hash_of(b"ab"), "1", 1, 2, b"c")
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("hash", "token", "offset", "size", "message"),
    [
        ("../../x", "a", 0, 1, "not a piece"),
        ("0" * 64, "../x", 0, 1, "not a piece"),
        ("0" * 64, "a", 1, 1, "not a piece"),
        ("0" * 64, "a", 5, 9, "missing before"),
    ],
)
def test_what_is_no_piece(
    hash: str, token: str, offset: int, size: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestRefused, match=message):
        Store(tmp_path, 100).put_piece(hash, token, offset, size, b"x")
    assert kept(tmp_path) == []


def test_what_was_used_least_recently_goes_first(tmp_path: Path) -> None:
    store = Store(tmp_path, 10)
    for number, data in enumerate((b"aaaa", b"bbbb")):
        store.put(hash_of(data), data)
        os.utime(tmp_path / "kept" / hash_of(data), (number, number))
    assert store.missing(head("/a", b"aaaa")) == []  # which is a use
    with store.mirror(head("/b", b"bbbb")) as root:
        store.put(hash_of(b"cccc"), b"cccc")
        assert kept(tmp_path) == sorted(map(hash_of, (b"aaaa", b"cccc")))
        assert (root / "b").read_bytes() == b"bbbb"  # who is at it still has it
    with pytest.raises(NoRoom, match="has 11 bytes, more than the limit of 10"):
        store.put(hash_of(bytes(11)), bytes(11))


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 100)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(NoRoom, match="cannot store more: no space left on device"):
        store.put(hash_of(b"a"), b"a")
    assert kept(tmp_path) == []


def test_what_is_finished_is_there_for_who_resumes(tmp_path: Path) -> None:
    first = Finished(tmp_path / "finished", resume=False)
    first.put("a", b"1")
    assert first.get("a") is None
    second = Finished(tmp_path / "finished", resume=True)
    assert (second.get("a"), second.get("b")) == (b"1", None)
    second.put("b", b"2")
    second.forget()
    assert list((tmp_path / "finished").iterdir()) == []
    nowhere = Finished(None, resume=True)
    nowhere.put("a", b"1")
    assert nowhere.get("a") is None


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    Store(tmp_path, 100)
    gone, alive = 2**22 + 1, os.getpid()
    for pid in (gone, alive):
        (tmp_path / "kept" / f"{pid}-x-1.part").touch()
        (tmp_path / "mirrors" / f"{pid}-0" / "x").mkdir(parents=True)
    Store(tmp_path, 100)
    assert kept(tmp_path) == [f"{alive}-x-1.part"]
    assert [path.name for path in (tmp_path / "mirrors").iterdir()] == [f"{alive}-0"]


def test_a_shared_folder_needs_nothing(tmp_path: Path) -> None:
    model = tmp_path / "nfs" / "a" / "m.xml"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"model")
    store = Store(tmp_path / "cache", 1, [str(tmp_path / "nfs")])
    wanted = head(str(model), b"model")
    assert store.missing(wanted) == []
    with store.mirror(wanted) as root:
        assert Path(f"{root}{model}").read_bytes() == b"model"
    assert model.exists()
    assert store.missing(head(str(model), b"other")) == [hash_of(b"other")]


def listing(folder: Path) -> dict[str, bytes]:
    """Return all that is below a folder, and what is in it."""
    return {
        str(one.relative_to(folder)): one.read_bytes() if one.is_file() else b"" for one in folder.rglob("*")
    }


def heads(*files: tuple[str, bytes], folder: str = "/home") -> Iterator[Head]:
    """Yield the head of a job with files in each order."""
    for each in permutations(files):
        yield Head("validate", folder, tuple(SentFile(path, hash_of(data), len(data)) for path, data in each))


def lay_out(store: Store, head: Head, files: dict[str, bytes]) -> None:
    """Let a store get what it misses, and demand that its mirror has each file."""
    for hash in store.missing(head):
        store.put(hash, next(data for data in files.values() if hash_of(data) == hash))
    with store.mirror(head) as root:
        for path, data in files.items():
            assert Path(f"{root}{path}").read_bytes() == data
        assert Path(f"{root}{head.folder}").is_dir()


@pytest.mark.parametrize(
    "names",
    [
        ("m.xml", "m.bin"),
        ("a/m.xml", "a/m.bin"),
        ("m.xml", "a/m.bin"),
        ("a/m.xml", "link/m.bin"),
        ("link/m.xml", "a/m.bin"),
        ("m.xml", "symbolic.bin"),
        ("m.xml", "hard.bin"),
        ("m.xml", "missing.bin"),
        ("m.xml", "new/missing.bin"),
    ],
)
@pytest.mark.parametrize("folder", ["/home", "{nfs}", "{nfs}/a", "{nfs}/nowhere"])
def test_nothing_is_written_into_a_shared_folder(names: tuple[str, str], folder: str, tmp_path: Path) -> None:
    """One file of a job is the same there, and the other is not, or is not there."""
    nfs = tmp_path / "nfs"
    (nfs / "a").mkdir(parents=True)
    for name in ("m.xml", "m.bin", "a/m.xml", "a/m.bin"):
        (nfs / name).write_bytes(b"the same")
    (nfs / "link").symlink_to("a")
    (nfs / "symbolic.bin").symlink_to("m.bin")
    (nfs / "hard.bin").hardlink_to(nfs / "m.bin")
    before, store = listing(nfs), Store(tmp_path / "cache", 1 << 20, [str(nfs)])
    files = {str(nfs / names[0]): b"the same", str(nfs / names[1]): b"another"}
    for head in heads(*files.items(), folder=folder.format(nfs=nfs)):
        lay_out(store, head, files)
        assert listing(nfs) == before


def test_shared_folders_in_each_other(tmp_path: Path) -> None:
    """The inner one is empty, or all in it is the same while something beside it is not."""
    nfs = tmp_path / "nfs"
    (nfs / "inner" / "empty").mkdir(parents=True)
    (nfs / "inner" / "m.xml").write_bytes(b"the same")
    (nfs / "m.xml").write_bytes(b"the same")
    before = listing(nfs)
    for number, shared in enumerate(permutations([nfs, nfs / "inner", nfs / "inner" / "empty"])):
        store = Store(tmp_path / f"cache{number}", 1 << 20, [*map(str, shared)])
        for data in (b"the same", b"another"):
            files = {str(nfs / "inner" / "m.xml"): b"the same", str(nfs / "m.xml"): data}
            for head in heads(*files.items(), folder=str(nfs / "inner" / "empty")):
                lay_out(store, head, files)
                assert listing(nfs) == before


def test_a_job_that_begins_in_a_shared_folder(tmp_path: Path) -> None:
    (tmp_path / "nfs" / "a" / "b").mkdir(parents=True)
    model = tmp_path / "nfs" / "m.xml"
    model.write_bytes(b"the same")
    store = Store(tmp_path / "cache", 1, [str(tmp_path / "nfs")])
    for folder in (tmp_path, tmp_path / "nfs", tmp_path / "nfs" / "a" / "b"):
        (wanted,) = heads((str(model), b"the same"), folder=str(folder))
        assert store.missing(wanted) == []
        lay_out(store, wanted, {str(model): b"the same"})


def test_a_shared_file_that_changes_before_the_job_begins(tmp_path: Path) -> None:
    (tmp_path / "nfs").mkdir()
    model = tmp_path / "nfs" / "m.xml"
    model.write_bytes(b"the same")
    store = Store(tmp_path / "cache", 1, [str(tmp_path / "nfs")])
    wanted = head(str(model), b"the same")
    assert store.missing(wanted) == []
    model.write_bytes(b"another")
    with pytest.raises(Changed), store.mirror(wanted):
        raise AssertionError
    assert model.read_bytes() == b"another"


def test_a_path_with_slashes_that_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "nfs").mkdir()
    (tmp_path / "nfs" / "m.xml").write_bytes(b"the same")
    store = Store(tmp_path / "cache", 100, [str(tmp_path / "nfs")])
    files = {f"{tmp_path}/nfs/m.xml": b"the same", f"/{tmp_path}//nfs/./other": b"another"}
    for wanted in heads(*files.items()):
        lay_out(store, wanted, files)
        assert [one.name for one in (tmp_path / "nfs").iterdir()] == ["m.xml"]


def test_the_same_content_in_a_shared_folder_and_beside_it(tmp_path: Path) -> None:
    (tmp_path / "nfs").mkdir()
    (tmp_path / "nfs" / "m.xml").write_bytes(b"the same")
    store = Store(tmp_path / "cache", 100, [str(tmp_path / "nfs")])
    files = {f"{tmp_path}/nfs/m.xml": b"the same", "/elsewhere/m.xml": b"the same"}
    for wanted in heads(*files.items()):
        lay_out(store, wanted, files)


def test_two_files_of_one_place(tmp_path: Path) -> None:
    """The second would be written into what is kept under the hash of the first."""
    store = Store(tmp_path, 100)
    for wanted in heads(("/m.xml", b"a"), ("//./m.xml", b"b")):
        for data in (b"a", b"b"):
            store.put(hash_of(data), data)
        with pytest.raises(RequestRefused, match="two files of the job are"), store.mirror(wanted):
            raise AssertionError
    assert {(tmp_path / "kept" / hash_of(data)).read_bytes() for data in (b"a", b"b")} == {b"a", b"b"}


def test_a_file_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(range(256)))
    assert b"".join(pieces(str(path))) == b"".join(pieces(path.read_bytes())) == bytes(range(256))
