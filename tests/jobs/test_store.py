"""What arrives is checked, kept within a limit, and laid out where it was."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from ir_scatter.jobs.store import Changed, Finished, NoRoom, Store, pieces
from ir_scatter.jobs.wire import Head, Refused, Sent


def hash_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def head(path: str, data: bytes) -> Head:
    return Head("validate", "/home", (Sent(path, hash_of(data), len(data)),))


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
        ("../../x", "a", 0, 1, "no piece"),
        ("0" * 64, "../x", 0, 1, "no piece"),
        ("0" * 64, "a", 1, 1, "no piece"),
        ("0" * 64, "a", 5, 9, "missing before"),
    ],
)
def test_what_is_no_piece(
    hash: str, token: str, offset: int, size: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match=message):
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
    with pytest.raises(NoRoom, match="has 11 bytes, and all that is kept may have 10"):
        store.put(hash_of(bytes(11)), bytes(11))


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 100)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(NoRoom, match="takes no more: no space left on device"):
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


def test_a_file_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(range(256)))
    assert b"".join(pieces(str(path))) == b"".join(pieces(path.read_bytes())) == bytes(range(256))
