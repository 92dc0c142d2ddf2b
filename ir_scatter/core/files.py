"""Finds the files for a user's paths, reads regular files safely, and locates the cache folder."""

import errno
import glob
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

SUFFIXES = (".xml", ".onnx")
STANDARD_INPUT = "-"
STDIN_NAME = "<stdin>"
"""Path of standard input in findings."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read.

    `is_named` is False for a file that was found in a folder; such a file need not be a model.
    """

    path: str
    is_named: bool = True


class FoundFiles(NamedTuple):
    """The files of the user's paths, each once and in order, and the folders without models."""

    sources: tuple[Source, ...]
    empty_folders: tuple[str, ...]


def find_files(paths: Sequence[str], exclude: Sequence[str] = ()) -> FoundFiles:
    """Search folders for models and expand globs; missing paths are kept, for a later error."""
    sources: dict[str, Source] = {}
    empty: list[str] = []
    for path in map(expanded, paths):
        is_plain = path == STANDARD_INPUT or os.path.lexists(path) or not glob.has_magic(path)
        for name in [path] if is_plain else sorted(glob.glob(path, recursive=True)) or [path]:
            files = [Source(name)]
            if path not in ("", STANDARD_INPUT) and Path(name).is_dir():
                files = [Source(file, is_named=False) for file in search(name)]
                if not files:
                    empty.append(name)
            for source in files:
                is_new = source.is_named or source.path not in sources
                if is_new and not is_excluded(source.path, exclude):
                    sources[source.path] = source
    return FoundFiles(tuple(sources.values()), tuple(empty))


def is_excluded(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a glob matches the path; a glob without a slash may match any part of the path."""
    text = path.replace(os.sep, "/")
    for pattern in patterns:
        bare = pattern.rstrip("/")
        globs = (pattern, f"*/{pattern}", f"{bare}/*", f"*/{bare}/*")
        if "/" not in bare:
            if any(fnmatch(part, bare) for part in text.split("/")):
                return True
        elif any(fnmatch(text, glob) for glob in globs):
            return True
    return False


def expanded(path: str) -> str:
    """Replace "~" at the beginning of a path by the home folder, unless a file of this name exists."""
    return os.path.expanduser(path) if path.startswith("~") and not os.path.lexists(path) else path


def search(folder: str) -> Iterator[str]:
    """Yield the files in a folder and its subfolders that have the suffix of a model."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(root, name)
            if name.lower().endswith(SUFFIXES) and os.path.isfile(path):
                yield path


MOST_TEXT = 1 << 28
"""Largest size in bytes of a baseline, a report or a record; larger files were not written by this
library.
"""

_PART = 1 << 20
"""Bytes per read; reading in parts keeps a growing file from exhausting memory."""


def open_regular(path: str | Path, most: int | None = None) -> BufferedReader:
    """Open a file whose name comes from settings, options or another file.

    Other kinds of files are refused: reading a pipe may block for ever, and a device may never end.

    Raises:
        OSError: there is no such file, it is of another kind, or has more than `most` bytes.
    """
    _demand_regular(os.stat(path), most)  # checked before opening, which may block or have an effect
    nonblocking = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    file = os.fdopen(os.open(path, os.O_RDONLY | nonblocking), "rb")
    try:
        _demand_regular(os.fstat(file.fileno()), most)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: str | Path, most: int = MOST_TEXT) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError: there is no such file, it is of another kind, or has more than `most` bytes.
    """
    parts, size = [], 0
    with open_regular(path, most) as file:  # read in parts: one large read would allocate its size at once
        while size <= most and (part := file.read(min(_PART, most + 1 - size))):
            parts.append(part)
            size += len(part)
    if size > most:  # the file is growing
        raise OSError(errno.EFBIG, _too_large(size, most))
    return b"".join(parts)


def _demand_regular(status: os.stat_result, most: int | None) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if most is not None and status.st_size > most:
        raise OSError(errno.EFBIG, _too_large(status.st_size, most))


def _too_large(size: int, most: int) -> str:
    return f"it has {size} bytes, expected at most {most}"


_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LFS_SIZE = re.compile(rb"^size ([0-9]{1,15})\s*$", re.MULTILINE)
LFS_HELP = "fetch it with `git lfs pull`"
LONGEST_POINTER = 1024
"""Bytes of the longest Git LFS pointer, by its specification."""


def is_lfs_pointer(head: bytes) -> bool:
    """Return whether the beginning of a file shows that it is a Git LFS pointer.

    Git LFS stores such a small text file in place of a large file that was not downloaded.
    """
    return head.startswith(_LFS_POINTER)


def show_lfs_pointer(name: str, head: bytes) -> str:
    """Describe a Git LFS pointer: "w.bin is a Git LFS pointer to a file of 2,048 bytes ..."."""
    size = _LFS_SIZE.search(head)
    target = f" to a file of {int(size[1]):,} bytes" if size else ""
    return f"{name} is a Git LFS pointer{target}, not the file itself"


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file."""
    from hashlib import file_digest

    with open_regular(path) as file:
        return file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path | None:
    """Return this library's folder in the user's cache, which may not exist yet; None without a home."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            home = Path.home()
        except RuntimeError:
            return None
        usual = {"win32": home / "AppData" / "Local", "darwin": home / "Library" / "Caches"}
        base = usual.get(sys.platform, home / ".cache")
    return base / "ir-scatter"
