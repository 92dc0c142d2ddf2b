"""The storage of a worker: keeps received files and arrays by SHA-256, and builds mirrors of them.

A mirror is a folder in which the files of a job have the same paths as on the client, below a root. A shared
folder has the same path on all machines. It becomes a symbolic link in the mirror if all files of the job in
it are equal on both machines. Otherwise its files are written into the mirror, so that a job never changes a
shared folder.
"""

import io
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from pathlib import Path

from ir_scatter.core.files import open_regular, sha256_of
from ir_scatter.jobs.wire import Head, RequestRefused, hash_of

PIECE_BYTES = 4 << 20
_TOKEN = re.compile(r"[0-9a-f]{1,40}")
_NUMBERS = count()


class NoRoom(Exception):
    """Error: data does not fit into the size limit, or onto the disk."""


class Changed(Exception):
    """Error: received data does not have the announced hash."""


class Store:
    """Stores received data in a folder; at the size limit the least recently used data is removed."""

    def __init__(self, folder: Path, limit: int, shared: Sequence[str] = ()) -> None:
        """Open a folder, and remove leftovers of processes that have ended.

        Args:
            folder: created if it does not exist; other processes may use it at the same time.
            limit: maximum total size of stored data, in bytes.
            shared: folders that have the same paths and files on the client.
        """
        self._kept, self._mirrors, self._limit = folder / "kept", folder / "mirrors", limit
        self._shared = tuple(shared)
        for subfolder in (self._kept, self._mirrors):
            subfolder.mkdir(parents=True, exist_ok=True)
        for path in [*self._mirrors.iterdir(), *self._kept.glob("*.part")]:
            if not _is_alive(path.name.partition("-")[0]):
                is_folder = path.is_dir() and not path.is_symlink()
                shutil.rmtree(path) if is_folder else path.unlink(missing_ok=True)

    def missing(self, head: Head) -> list[str]:
        """Return the hashes of data that a job needs and this machine lacks."""
        links = self._links(head)
        there = {file.hash for file in head.files if _is_below(file.path, links)}
        there -= {file.hash for file in head.files if not _is_below(file.path, links)}
        return [hash for hash in head.wanted if hash not in there and not self._touched(hash)]

    def put(self, hash: str, data: bytes) -> None:
        """Store data that arrived in one message.

        Raises:
            Changed: the data has another hash.
            NoRoom: it cannot be stored.
        """
        self.put_piece(hash, f"{next(_NUMBERS):x}", 0, len(data), data)

    def put_piece(self, hash: str, token: str, offset: int, size: int, data: bytes) -> None:
        """Store a piece of data of `size` bytes; pieces of one upload share a token, and come in order.

        Raises:
            Changed: after the last piece, the data has another hash.
            NoRoom: it cannot be stored.
            RequestRefused: the piece does not follow the one before it.
        """
        if not (
            re.fullmatch("[0-9a-f]{64}", hash) and _TOKEN.fullmatch(token) and offset + len(data) <= size
        ):
            raise RequestRefused("this is not a piece of a file")
        part = self._kept / f"{os.getpid()}-{hash}-{token}.part"
        try:
            if offset == 0:
                self._make_room(size)
            with part.open("wb" if offset == 0 else "r+b") as file:
                if file.seek(0, os.SEEK_END) != offset:
                    raise RequestRefused("a piece is missing before this one")
                file.write(data)
            if offset + len(data) < size:
                return
            if (hash_of(data) if len(data) == size else sha256_of(str(part))) != hash:
                raise Changed
            part.chmod(0o444)
            part.replace(self._kept / hash)
        except FileNotFoundError:
            raise RequestRefused("a piece is missing before this one") from None
        except OSError as error:
            part.unlink(missing_ok=True)
            raise NoRoom(f"{self._kept} cannot store more: {(error.strerror or '').lower()}") from None
        except (Changed, RequestRefused):
            part.unlink(missing_ok=True)
            raise

    @contextmanager
    def mirror(self, head: Head) -> Iterator[Path]:
        """Build a mirror and yield its root; it contains the job's files, and its arrays in "/.arrays".

        Raises:
            Changed: a file of a shared folder has changed since it was checked.
            RequestRefused: data is missing, or two files have one path.
            NoRoom: the mirror cannot be created.
        """
        root = self._mirrors / f"{os.getpid()}-{next(_NUMBERS)}"
        try:
            (root / ".arrays").mkdir(parents=True)
            links = self._links(head)
            for folder in links:
                place = _place(root, folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(folder)
            if not _is_below(head.folder, links):
                _place(root, head.folder).mkdir(parents=True, exist_ok=True)
            written = dict[Path, str]()
            for file in head.files:
                if not _is_below(file.path, links):
                    place = _place(root, file.path)
                    if written.setdefault(place, file.hash) != file.hash:
                        raise RequestRefused(f"two files of the job are {file.path[:80]!r}")
                    self._link(file.hash, root, place)
            for hash, _ in head.arrays:
                self._link(hash, root, root / ".arrays" / hash)
            yield root
        except OSError as error:
            raise NoRoom(f"{root} cannot be created: {(error.strerror or '').lower()}") from None
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def _link(self, hash: str, root: Path, place: Path) -> None:
        """Hard-link a stored file into a mirror, or copy it; refuse a path that leads out of the mirror."""
        # a link of the mirror may be on the way, if file names ignore case
        if not place.parent.resolve().is_relative_to(root.resolve()):
            raise RequestRefused(f"{str(place.relative_to(root))[:80]!r} leads out of the mirror")
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(self._kept / hash, place)
        except FileNotFoundError:
            if self._shared:  # not stored: it was in a shared folder when the job was accepted
                raise Changed from None
            raise RequestRefused("data was removed to make room: the limit is too small") from None
        except FileExistsError:  # two files of the job are the same; different ones were refused before
            return
        except OSError:  # this file system has no links
            with (self._kept / hash).open("rb") as source, place.open("xb") as copy:
                shutil.copyfileobj(source, copy)

    def _links(self, head: Head) -> list[str]:
        """Return the outermost shared folders in which all files of the job equal the client's."""
        usable = []
        for folder in self._shared:
            files = [file for file in head.files if _is_below(file.path, [folder])]
            has_folder = not _is_below(head.folder, [folder]) or os.path.isdir(head.folder)
            if files and has_folder and all(_is_same(file.path, file.hash) for file in files):
                usable.append(folder)
        return [
            folder
            for folder in usable
            if not any(folder != outer and _is_below(folder, [outer]) for outer in usable)
        ]

    def _touched(self, hash: str) -> bool:
        try:
            # set the access time only: programs compare the modification time of open models
            file = self._kept / hash
            os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))
        except OSError:
            return False
        return True

    def _make_room(self, size: int) -> None:
        """Remove the least recently used data until `size` more bytes fit."""
        if size > self._limit:
            raise NoRoom(f"it has {size} bytes, more than the limit of {self._limit}")
        files = []
        for path in self._kept.iterdir():
            with suppress(OSError):
                status = path.stat()
                files.append((max(status.st_atime, status.st_mtime), status.st_size, path))
        total = size + sum(bytes for _, bytes, _ in files)
        for _, bytes, path in sorted(files):
            if total <= self._limit:
                return
            if path.suffix != ".part":
                path.unlink(missing_ok=True)
                total -= bytes


class Finished:
    """Results of jobs by the hash of the job, in an optional folder, so that a later run can reuse them."""

    def __init__(self, folder: Path | None, *, resume: bool) -> None:
        """Open a folder, which may not exist yet; earlier results in it are only used with `resume`."""
        self._folder, self._resumes, self._used = folder, resume, set[Path]()

    def get(self, key: str) -> bytes | None:
        if self._folder is None or not self._resumes:
            return None
        try:
            result = (self._folder / key).read_bytes()
        except OSError:
            return None
        self._used.add(self._folder / key)
        return result

    def put(self, key: str, result: bytes) -> None:
        """Store the result of a job; ignore disk errors."""
        if self._folder is None:
            return
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            part = self._folder / f"{key}.{os.getpid()}"
            part.write_bytes(result)
            self._used.add(part.replace(self._folder / key))

    def forget(self) -> None:
        """Remove all results that this run read or stored."""
        for path in self._used:
            path.unlink(missing_ok=True)


def known_hash(path: str) -> str:
    """Return the SHA-256 of a file, cached until its size or modification time changes.

    Raises:
        OSError: it cannot be read.
    """
    status = os.stat(path)
    return _hash(path, status.st_size, status.st_mtime_ns)


@lru_cache(1 << 16)
def _hash(path: str, size: int, time: int) -> str:
    return sha256_of(path)


def forget_hashes() -> None:
    """Clear the cache of hashes: a file may change without changing size or time."""
    _hash.cache_clear()


def pieces(source: str | bytes) -> Iterator[bytes]:
    """Yield a file (given by its path) or bytes in pieces of PIECE_BYTES; stop at a read error."""
    with suppress(OSError), open_regular(source) if isinstance(source, str) else io.BytesIO(source) as file:
        while data := file.read(PIECE_BYTES):
            yield data


def _place(root: Path, path: str) -> Path:
    """Return where a mirror has the file with this absolute path."""
    return root / path.lstrip("/")


def _is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of these folders, or lies in one of them."""
    place, root = _place(Path("/"), path), Path("/")
    return any(place.is_relative_to(_place(root, folder)) for folder in folders)


def _is_same(path: str, hash: str) -> bool:
    """Return whether the file at a path on this machine has this hash."""
    with suppress(OSError):
        return known_hash(path) == hash
    return False


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (OSError, ValueError):
        return False
    return True
