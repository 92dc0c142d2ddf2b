"""Temporary files: one folder per process, which is removed when the process ends.

A process locks its folder while it lives. A later process recognises the unlocked folders of killed processes
and removes them. Unlike a process number, a lock works across containers that share the folder.
"""

import atexit
import errno
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

from ir_scatter.core.errors import CannotWrite

_NAME = re.compile(r"ir_scatter\.\d+\.[a-z0-9_]{8}")
"""Names of this library's folders: process number and a random part."""
_ATTEMPTS = 3
"""Attempts to remove a folder that a child still writes to, or to create one that another process may
remove.
"""
_WAITS, _PAUSE = 20, 0.05
"""Attempts of a child to get a lock that another process holds, and the pause between them in seconds."""
_HINTS = {
    errno.ENOSPC: "make room there, or set TMPDIR to a folder with room",
    errno.EDQUOT: "make room there, or set TMPDIR to a folder with room",
    errno.EFBIG: "the limit of file sizes is too low (ulimit -f)",
    errno.EMFILE: "the limit of open files is too low (ulimit -n)",
    errno.ENFILE: "the system has too many open files",
}
_WITHOUT = "set TMPDIR to a folder that can be written"

_lock = Lock()
_path = ""
_owner = 0
_descriptor = -1
_is_ending = False


@contextmanager
def explained_temporary(path: str = "") -> Iterator[None]:
    """Convert a system error in this block to an error that names the temporary folder and a remedy.

    Raises:
        CannotWrite: something in the folder cannot be written.
    """
    try:
        yield
    except OSError as error:
        place = path or _path or "no temporary folder"
        reason = (error.strerror or str(error)).lower()
        hint = _HINTS.get(error.errno or 0, _WITHOUT)
        raise CannotWrite(f"the temporary folder {place} cannot be written: {reason}; {hint}") from None


def process_folder() -> str:
    """Return the temporary folder of this process; the first call creates it and removes abandoned ones.

    Raises:
        CannotWrite: it cannot be created.
    """
    global _path, _owner, _descriptor
    with _lock:
        if _path:
            return _path
        if _is_ending:
            raise CannotWrite("no temporary folder can be created: the program is ending")
        parent = _parent()
        remove_abandoned(parent)
        with explained_temporary(parent):
            _path, _descriptor = _created(parent)
        _owner = os.getpid()
        atexit.register(remove_process_folder)
        return _path


def _parent() -> str:
    try:
        return os.path.abspath(tempfile.gettempdir())
    except OSError as error:
        tried = re.findall(r"'([^']+)'", str(error))
        names = ", ".join(dict.fromkeys(tried)) or "any usual place"
        message = f"no temporary folder can be written, neither of {names}: make room there, or {_WITHOUT}"
        raise CannotWrite(message) from None


def _created(parent: str) -> tuple[str, int]:
    """Create a locked folder; return its path and descriptor, -1 if locks are not supported."""
    path = ""
    for _ in range(_ATTEMPTS):
        path = tempfile.mkdtemp(prefix=f"ir_scatter.{os.getpid()}.", dir=parent)
        try:
            descriptor = _locked(path, is_patient=True)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        if descriptor is None:
            return path, -1
        with suppress(FileNotFoundError):  # another process removed it before it was locked
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                return path, descriptor
        os.close(descriptor)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _locked(path: str, *, is_patient: bool = False) -> int | None:
    """Lock a folder; return its descriptor, None if locks are not supported.

    Raises:
        BlockingIOError: another process holds the lock.
        OSError: the folder cannot be opened.
    """
    try:
        import fcntl
    except ImportError:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if is_patient else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:  # the file system has no locks
        os.close(descriptor)
        return None
    return descriptor


def remove_abandoned(parent: str) -> None:
    """Remove the folders that ended processes of this user have left."""
    names = []
    with suppress(OSError), os.scandir(parent) as entries:
        names = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
    for path in names:
        remove_if_abandoned(path)


def remove_after_parent(path: str) -> None:
    """Remove the folder of a parent process that was killed; several children may try at once."""
    for _ in range(_WAITS):
        remove_if_abandoned(path)
        if not os.path.lexists(path):
            return
        time.sleep(_PAUSE)


def remove_if_abandoned(path: str) -> None:
    """Remove the folder of a process that has ended."""
    if not _NAME.fullmatch(os.path.basename(path)):
        return
    with suppress(OSError):
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
            return
        descriptor = _locked(path)
        if descriptor is not None:
            _remove(path)
            os.close(descriptor)


def _remove(path: str) -> None:
    for _ in range(_ATTEMPTS):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return


def remove_process_folder() -> None:
    """Remove the temporary folder of this process, which must not create files any more."""
    global _path, _descriptor, _is_ending
    with _lock:
        if _owner != os.getpid() or not _path:
            return
        _is_ending = True
        _remove(_path)
        if _descriptor >= 0:
            os.close(_descriptor)
        _path, _descriptor = "", -1


def new_folder() -> str:
    """Create a temporary folder for the caller to remove; it is removed at the latest with the process.

    Raises:
        CannotWrite: it cannot be created.
    """
    parent = process_folder()
    with explained_temporary():
        return tempfile.mkdtemp(dir=parent)


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Create a temporary folder, and remove it at the end of the `with` block.

    Raises:
        CannotWrite: it cannot be created.
    """
    path = new_folder()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _after_fork() -> None:
    """Make a forked process forget its parent's folder, so that it creates its own."""
    global _lock, _path, _descriptor
    _lock, _path = Lock(), ""
    if _descriptor >= 0:
        with suppress(OSError):
            os.close(_descriptor)
    _descriptor = -1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
