"""What has arrived on a machine: files and arrays by SHA-256, within a limit, and mirrors of where they were.

A mirror is a folder in which files have the paths that they have where a job was made, below a root. A
folder that all machines share is a symbolic link in it if all files of the job below that folder are the
same there; else all of them are written into the mirror. So nothing is written through the link.
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
from ir_scatter.jobs.wire import Head, Refused, hash_of

PIECE_BYTES = 4 << 20
_TOKEN = re.compile(r"[0-9a-f]{1,40}")
_NUMBERS = count()


class NoRoom(Exception):
    """What should be kept does not fit into the limit, or onto the disk."""


class Changed(Exception):
    """What arrived is not what was announced."""


class Store:
    """Keeps what arrives in a folder; what was used least recently goes first when the limit is reached."""

    def __init__(self, folder: Path, limit: int, shared: Sequence[str] = ()) -> None:
        """Open a folder, and remove what processes left behind that are no more.

        Args:
            folder: which may not be there yet; others may use it, too.
            limit: in bytes, for what is kept.
            shared: folders that have the same paths and files where jobs are made.
        """
        self._kept, self._mirrors, self._limit = folder / "kept", folder / "mirrors", limit
        self._shared = tuple(shared)
        for made in (self._kept, self._mirrors):
            made.mkdir(parents=True, exist_ok=True)
        for left in [*self._mirrors.iterdir(), *self._kept.glob("*.part")]:
            if not _is_alive(left.name.partition("-")[0]):
                is_folder = left.is_dir() and not left.is_symlink()
                shutil.rmtree(left) if is_folder else left.unlink(missing_ok=True)

    def missing(self, head: Head) -> list[str]:
        """Return the hashes of what a job needs and is not here."""
        links = self._links(head)
        there = {file.hash for file in head.files if _is_below(file.path, links)}
        there -= {file.hash for file in head.files if not _is_below(file.path, links)}
        return [hash for hash in head.wanted if hash not in there and not self._touched(hash)]

    def put(self, hash: str, data: bytes) -> None:
        """Keep something that came whole.

        Raises:
            Changed: it has another hash.
            NoRoom: it cannot be kept.
        """
        self.put_piece(hash, f"{next(_NUMBERS):x}", 0, len(data), data)

    def put_piece(self, hash: str, token: str, offset: int, size: int, data: bytes) -> None:
        """Keep a piece of something of a size; pieces of one sender have a token, and come in their order.

        Raises:
            Changed: with the last piece the whole has another hash.
            NoRoom: it cannot be kept.
            Refused: the piece does not fit what came before.
        """
        if not (
            re.fullmatch("[0-9a-f]{64}", hash) and _TOKEN.fullmatch(token) and offset + len(data) <= size
        ):
            raise Refused("this is no piece of a file")
        part = self._kept / f"{os.getpid()}-{hash}-{token}.part"
        try:
            if offset == 0:
                self._make_room(size)
            with part.open("wb" if offset == 0 else "r+b") as file:
                if file.seek(0, os.SEEK_END) != offset:
                    raise Refused("a piece is missing before this one")
                file.write(data)
            if offset + len(data) < size:
                return
            if (hash_of(data) if len(data) == size else sha256_of(str(part))) != hash:
                raise Changed
            part.chmod(0o444)
            part.replace(self._kept / hash)
        except FileNotFoundError:
            raise Refused("a piece is missing before this one") from None
        except OSError as error:
            part.unlink(missing_ok=True)
            raise NoRoom(f"{self._kept} takes no more: {(error.strerror or '').lower()}") from None
        except (Changed, Refused):
            part.unlink(missing_ok=True)
            raise

    @contextmanager
    def mirror(self, head: Head) -> Iterator[Path]:
        """Give a root below which all that a job needs is where its paths say, and arrays in "/.arrays".

        Raises:
            Changed: a file of a shared folder is not what it was a moment ago.
            Refused: something is not here, or two files have one place.
            NoRoom: the mirror cannot be made.
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
                        raise Refused(f"two files of the job are {file.path[:80]!r}")
                    self._link(file.hash, root, place)
            for hash, _ in head.arrays:
                self._link(hash, root, root / ".arrays" / hash)
            yield root
        except OSError as error:
            raise NoRoom(f"{root} cannot be made: {(error.strerror or '').lower()}") from None
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def _link(self, hash: str, root: Path, place: Path) -> None:
        """Give a file that is kept a place in a mirror, which must not lead out of it."""
        if not place.parent.resolve().is_relative_to(root.resolve()):  # where capitals do not count
            raise Refused(f"{str(place.relative_to(root))[:80]!r} leads out of the mirror")
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(self._kept / hash, place)
        except FileNotFoundError:
            if self._shared:  # it was in a shared folder when the job was accepted
                raise Changed from None
            raise Refused("what was here has gone to make room: the limit is too small") from None
        except FileExistsError:  # the same file twice; another one was refused before
            return
        except OSError:  # a file system without links
            with (self._kept / hash).open("rb") as source, place.open("xb") as copy:
                shutil.copyfileobj(source, copy)

    def _links(self, head: Head) -> list[str]:
        """Return the shared folders to link to: the outermost ones in which all files are the same."""
        usable = []
        for folder in self._shared:
            files = [file for file in head.files if _is_below(file.path, [folder])]
            has_folder = not _is_below(head.folder, [folder]) or os.path.isdir(head.folder)
            if files and has_folder and all(_is_same(file.path, file.hash) for file in files):
                usable.append(folder)
        return [
            one for one in usable if not any(one != other and _is_below(one, [other]) for other in usable)
        ]

    def _touched(self, hash: str) -> bool:
        try:
            kept = self._kept / hash  # read now; mtime stays, as held models compare it
            os.utime(kept, ns=(time.time_ns(), kept.stat().st_mtime_ns))
        except OSError:
            return False
        return True

    def _make_room(self, size: int) -> None:
        """Remove what was used least recently until so many bytes fit."""
        if size > self._limit:
            raise NoRoom(f"it has {size} bytes, and all that is kept may have {self._limit}")
        found = []
        for path in self._kept.iterdir():
            with suppress(OSError):
                told = path.stat()
                found.append((max(told.st_atime, told.st_mtime), told.st_size, path))
        total = size + sum(one[1] for one in found)
        for _, bytes, path in sorted(found):
            if total <= self._limit:
                return
            if path.suffix != ".part":
                path.unlink(missing_ok=True)
                total -= bytes


class Finished:
    """Results in a folder, if there is one, by what was asked, so that another run need not ask again."""

    def __init__(self, folder: Path | None, *, resume: bool) -> None:
        """Open a folder, which may not be there yet; only who resumes gets what is in it."""
        self._folder, self._resumes, self._used = folder, resume, set[Path]()

    def get(self, key: str) -> bytes | None:
        if self._folder is None or not self._resumes:
            return None
        try:
            found = (self._folder / key).read_bytes()
        except OSError:
            return None
        self._used.add(self._folder / key)
        return found

    def put(self, key: str, result: bytes) -> None:
        """Keep a result if the disk takes it."""
        if self._folder is None:
            return
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            part = self._folder / f"{key}.{os.getpid()}"
            part.write_bytes(result)
            self._used.add(part.replace(self._folder / key))

    def forget(self) -> None:
        """Remove what was got and put."""
        for path in self._used:
            path.unlink(missing_ok=True)


def known_hash(path: str) -> str:
    """Return the SHA-256 of a file, which is computed anew when its size or time changes.

    Raises:
        OSError: it cannot be read.
    """
    told = os.stat(path)
    return _hash(path, told.st_size, told.st_mtime_ns)


@lru_cache(1 << 16)
def _hash(path: str, size: int, time: int) -> str:
    return sha256_of(path)


def forget_hashes() -> None:
    """Compute all anew: a file may have changed without a trace."""
    _hash.cache_clear()


def pieces(source: str | bytes) -> Iterator[bytes]:
    """Yield what is sent at a time of a file, by its path, or of bytes; no more of what cannot be read."""
    with suppress(OSError), open_regular(source) if isinstance(source, str) else io.BytesIO(source) as file:
        while data := file.read(PIECE_BYTES):
            yield data


def _place(root: Path, path: str) -> Path:
    """Return where a mirror has an absolute path."""
    return root / path.lstrip("/")


def _is_below(path: str, folders: Iterable[str]) -> bool:
    """Tell whether a mirror has a path in one of some folders, or as one of them."""
    place, root = _place(Path("/"), path), Path("/")
    return any(place.is_relative_to(_place(root, folder)) for folder in folders)


def _is_same(path: str, hash: str) -> bool:
    """Tell whether this machine has a file of a hash at a path."""
    with suppress(OSError):
        return known_hash(path) == hash
    return False


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (OSError, ValueError):
        return False
    return True
