"""Temporary files beside the file that they are to become.

Whoever has one holds a lock on it, so that a later run knows those of the dead and removes them.
"""

import os
import zlib
from contextlib import suppress
from pathlib import Path


def open_beside(path: Path) -> tuple[int, Path | None]:
    """Open a new file in the folder of `path`, and give its name if it has one."""
    file = _open_unnamed(path.parent)
    if file is not None:
        return file, None
    while True:
        name = temporary_name(path)
        file = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        _lock(file)
        if os.fstat(file).st_nlink:
            return file, name
        os.close(file)  # another run took it for one of the dead before it was locked


def _open_unnamed(folder: Path) -> int | None:
    """Open a new file without a name, which is gone if this process is; None where that cannot be."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        file = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
    if not os.path.exists(_in_proc(file)):
        os.close(file)
        return None
    _lock(file)
    return file


def name_file(file: int, path: Path) -> Path:
    """Give a file without a name one beside `path`."""
    name = temporary_name(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # a folder makes Python call linkat, which follows the link in /proc to the file
        os.link(_in_proc(file), name, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
    return name


def _in_proc(file: int) -> str:
    return f"/proc/self/fd/{file}"


def _prefix(path: Path) -> str:
    return f".ir_scatter-{zlib.crc32(os.fsencode(path.name)):08x}-"


def temporary_name(path: Path) -> Path:
    """Return a new name for a temporary file that is to become `path`."""
    return path.with_name(f"{_prefix(path)}{os.urandom(4).hex()}.tmp")


def is_temporary_name(name: Path, path: Path) -> bool:
    """Tell whether a file may have got its name from `temporary_name`."""
    return name.name.startswith(_prefix(path)) and name.name.endswith(".tmp")


def remove_stale(path: Path) -> None:
    """Remove the temporary files for `path` of runs that were killed."""
    prefix = _prefix(path)
    with suppress(OSError):
        for entry in list(os.scandir(path.parent)):
            if entry.name.startswith(prefix) and entry.name.endswith(".tmp"):
                _remove_if_dead(Path(entry.path))


def _remove_if_dead(name: Path) -> None:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if _lock(file):
            remove(name)
    finally:
        os.close(file)


def _lock(file: int) -> bool:
    """Lock a file until it is closed; False if another process has it, or if nobody can tell."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove(name: Path) -> None:
    """Remove a file if it is there."""
    with suppress(OSError):
        name.unlink()
