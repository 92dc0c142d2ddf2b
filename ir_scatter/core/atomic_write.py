"""Files that appear whole or not at all, and several of them together, even if a run is killed.

What is new is written beside its target under no name, where the system has such files, or under a
temporary one; whoever has one holds a lock on it, so that a later run knows those of the dead and removes
them. Only when all of it is on the disk do the targets change, one rename behind the other, while their
folders are locked. Until the last rename is done a list of them, the journal, stands beside the file that
is renamed last. A process that is killed between two renames leaves it behind, and gives up its locks.
Whoever writes to one of the files next, or converts from them, does the renames that are left.
"""

import errno
import os
import signal
import stat
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.core.errors import CannotWrite
from ir_scatter.core.shapes import counted

_CHUNK = 1 << 26
_BUFFER = 1 << 18
_LARGEST_JOURNAL = 1 << 20
_PREFIX, _SUFFIX = ".ir_scatter-", ".tmp"
_PATIENCE = 60.0
_SHORT_PATIENCE = 1.0
_PAUSE = 0.002
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IRREGULAR = "it is no regular file"
_NO_KERNEL_COPY = frozenset(
    {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.ETXTBSY, errno.EBADF}
)

Identity: TypeAlias = "tuple[int, int, int] | None"
"""Inode, time and size of a file; None if there is none."""


@dataclass(frozen=True, slots=True)
class Output:
    """A file to write: a copy of another file, if one is named, and bytes behind it.

    Attributes:
        path: the file; a symbolic link stands for what it points to.
        content: the bytes.
        copied: the file whose bytes come first; it may be the one that is written.
        copied_size: the size that it must have, if that matters.
        sources: files that must be what they were when they were read, with what they were.
    """

    path: Path
    content: bytes = b""
    copied: Path | None = None
    copied_size: int | None = None
    sources: tuple[tuple[Path, Identity], ...] = ()


def replace_files(outputs: Sequence[Output]) -> tuple[str, ...]:
    """Write files, replacing those that exist: all of them or none.

    They change in the given order, with nothing in between but the renames themselves. Files that exist
    keep their permissions.

    Returns:
        A sentence for each journal of a killed run whose renames were done first.

    Raises:
        CannotWrite: with the file and the reason; nothing has changed, and no temporary file is left.
    """
    targets = [_Target(output) for output in outputs]
    paths = [target.path for target in targets]
    if len({*paths}) < len(paths):
        raise CannotWrite("the same file is to be written twice, expected different ones")
    folders = {path.parent for path in paths}
    with ExitStack() as opened:
        with locked(folders):
            finished = _finish(paths)
            for target in targets:
                _remove_stale(target.path)
        for target in targets:
            target.prepare(opened)
        changing = [target for target in targets if target.file >= 0]
        with locked(folders), _late_signals():
            finished += _finish(paths)
            for target in targets:
                target.check_sources()
            if len(changing) > 1:
                for target in changing:
                    target.back_up(opened)
            if changing:
                _rename_all(changing)
    for folder in {target.path.parent for target in changing}:
        _sync_folder(folder)
    return finished


def finish_reading(path: Path) -> tuple[str, ...]:
    """Do the renames of a model's file, and of those with it, that a killed run did not get to.

    Returns:
        A sentence for each journal that had some left.
    """
    known = Path(os.path.realpath(path))
    if not os.path.lexists(journal_of(known)):
        return ()
    with locked([known.parent]):
        return _finish([known])


def half_replaced(path: Path) -> str | None:
    """Say of a model whose files were replaced in part what they are; None if they were not.

    A run that is at it is waited for, for a moment.
    """
    known = Path(os.path.realpath(path))
    journal = journal_of(known)
    with suppress(CannotWrite):
        if os.path.lexists(journal):
            with locked([known.parent], _SHORT_PATIENCE):
                renames = _read_journal(journal)
                left = _left(renames)
                if 0 < len(left) < len(renames):
                    names, verb = _names(left)
                    return (
                        f"{_killed(renames, left)}, and {names} {verb} not: expected all of them or none; "
                        "the next conversion from or to this file finishes it"
                    )
    return None


def identity(path: Path) -> Identity:
    """Return what tells a file from one that somebody puts in its place."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def identity_behind(path: Path) -> Identity:
    """Return the identity of what a path leads to, links followed."""
    try:
        return identity(Path(os.path.realpath(path)))
    except (OSError, ValueError):
        return None


# One file.


class _Target:
    """A file to write.

    Attributes:
        output: what the caller wants.
        path: the file itself, behind all symbolic links.
        file: the descriptor of what is new; -1 if nothing is.
        temporary: the name of what is new, if it has one.
        backup: a second name of the file that exists, if it could be given one.
        mode: the permissions of the file that exists, if one does.
    """

    def __init__(self, output: Output) -> None:
        self.output = output
        self.path = Path(os.path.realpath(output.path))
        self.file = -1
        self.temporary: Path | None = None
        self.backup: Path | None = None
        self.mode: int | None = None
        with self.explained():
            self._check()

    def _check(self) -> None:
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return
        if stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, _IRREGULAR)
        if not os.access(self.path, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        self.mode = stat.S_IMODE(status.st_mode)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say of an error of the system which file cannot be written."""
        try:
            yield
        except OSError as error:
            raise CannotWrite(f"{self.output.path} cannot be written: {_reason(error)}") from None

    def prepare(self, opened: ExitStack) -> None:
        """Write what is new beside the target, down to the disk; nothing if the file is to stay as it is."""
        source = self.output.copied
        with self.explained():
            if source and not self.output.content and _is_same(source, self.path):
                self._check_size(source, self.path.stat().st_size)
                return
            self.file, self.temporary = _open_beside(self.path)
        opened.callback(self._discard)
        if source:
            self._copy(source)
        with self.explained():
            _write(self.file, self.output.content)
            if self.mode is not None:
                os.fchmod(self.file, self.mode)
            os.fsync(self.file)

    def _copy(self, source: Path) -> None:
        try:
            origin = _open_source(source)
        except OSError as error:
            raise CannotWrite(f"{source} cannot be read: {_reason(error)}") from None
        try:
            with self.explained():
                size = _copy(origin, self.file)
        finally:
            os.close(origin)
        self._check_size(source, size)

    def _check_size(self, source: Path, size: int) -> None:
        wanted = self.output.copied_size
        if wanted is not None and size != wanted:
            raise CannotWrite(
                f"{source} has {counted(size, 'byte')}, expected {wanted}: it has changed meanwhile"
            )

    def check_sources(self) -> None:
        """Demand that what was read is still there: files of two versions must not come together."""
        for source, known in self.output.sources:
            if known is not None and identity_behind(source) != known:
                raise CannotWrite(
                    f"{source} is not the file that was read, expected the same: it has changed meanwhile"
                )

    def back_up(self, opened: ExitStack) -> None:
        """Give the file that exists a second name, where that is possible."""
        name = temporary_name(self.path)
        with suppress(OSError):
            os.link(self.path, name)
            opened.callback(_remove, name)
            self.backup = name

    def forth(self) -> "Rename":
        """Give what is new a name, and return how it comes to its place."""
        with self.explained():
            if self.temporary is None:
                self.temporary = _name_file(self.file, self.path)
        return Rename(self.temporary, self.path, identity(self.temporary), identity(self.path))

    def rename(self) -> None:
        """Put what is new in its place."""
        assert self.temporary is not None
        with self.explained():
            os.replace(self.temporary, self.path)
            self.temporary = None

    def back(self) -> "Rename | None":
        """Return what puts back what was there before; None if it has no name any more."""
        found = identity(self.path)
        if self.temporary is not None:
            return Rename(None, self.path, found, None)
        if self.backup is None and self.mode is not None:
            return None
        return Rename(self.backup, self.path, None if self.backup is None else identity(self.backup), found)

    def _discard(self) -> None:
        os.close(self.file)
        if self.temporary is not None:
            _remove(self.temporary)


def _is_same(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return False


def _open_source(path: Path) -> int:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # to open a pipe is to wait
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, _IRREGULAR)
    return file


def _write(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _copy(origin: int, file: int) -> int:
    """Copy the rest of a file, by the kernel alone where it can; return the bytes."""
    size = 0
    try:
        while hasattr(os, "copy_file_range") and (count := os.copy_file_range(origin, file, _CHUNK)):
            size += count
    except OSError as error:
        if error.errno not in _NO_KERNEL_COPY:
            raise
    while piece := os.read(origin, _BUFFER):
        _write(file, piece)
        size += len(piece)
    return size


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # the files themselves are on the disk; not every system syncs folders
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _remove(name: Path) -> None:
    with suppress(OSError):
        name.unlink()


# Temporary files.


def _mark(path: Path) -> str:
    return f"{_PREFIX}{zlib.crc32(os.fsencode(path.name)):08x}"


def temporary_name(path: Path) -> Path:
    """Return a new name for a temporary file that is to become `path`."""
    return path.with_name(f"{_mark(path)}-{os.urandom(4).hex()}{_SUFFIX}")


def _is_temporary_name(name: str, path: Path) -> bool:
    return name.startswith(f"{_mark(path)}-") and name.endswith(_SUFFIX)


def _open_beside(path: Path) -> tuple[int, Path | None]:
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


def _name_file(file: int, path: Path) -> Path:
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


def _remove_stale(path: Path) -> None:
    """Remove the temporary files for `path` of runs that were killed."""
    for name in _listed(path.parent):
        if _is_temporary_name(name, path):
            with suppress(OSError):
                file = os.open(
                    path.with_name(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                )
                try:
                    if _lock(file):
                        _remove(path.with_name(name))
                finally:
                    os.close(file)


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.name.startswith(_PREFIX))
    except OSError:
        return []


# Locks and signals.


def _lock(file: int) -> bool | None:
    """Lock a file until it is closed; False if another process has it, None where nobody can tell."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


@contextmanager
def locked(folders: Iterable[Path], patience: float = _PATIENCE) -> Iterator[None]:
    """Keep other runs out of folders; where a system has no such locks, go on without.

    The lock is one on the folder itself, so that nothing is left behind when a process is killed.

    Raises:
        CannotWrite: another process does not give one of them up.
    """
    with ExitStack() as opened:
        for folder in sorted(set(folders)):
            try:
                file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
            opened.callback(os.close, file)
            end = time.monotonic() + patience
            while _lock(file) is False:
                if time.monotonic() > end:
                    reason = f"another process has locked it for more than {patience:.0f} s"
                    raise CannotWrite(f"the folder {folder} cannot be written: {reason}") from None
                time.sleep(_PAUSE)
        yield


@contextmanager
def _late_signals() -> Iterator[None]:
    """Let signals wait that a user or a build sends to end the process.

    To block them would not do: another thread, one of a library, would take them.
    """
    seen: list[int] = []
    known = {}
    if threading.current_thread() is threading.main_thread():
        known = {number: handler for number in _ENDING if (handler := signal.getsignal(number)) is not None}
    try:
        for number in known:
            signal.signal(number, lambda number, _: seen.append(number))
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
        for late in seen:
            signal.raise_signal(late)


# Renames and their journal.


class _State(Enum):
    LEFT = "left"
    DONE = "done"
    OVERTAKEN = "somebody else has written the file since"


class Rename(NamedTuple):
    """What is to become of one file.

    Attributes:
        source: the temporary name of what is to stand there; None if nothing new is to.
        target: the file.
        new: what is to stand there; where that is no `source`, it stands there already, or nothing is to.
        old: what stands there before.
    """

    source: Path | None
    target: Path
    new: Identity
    old: Identity

    @property
    def state(self) -> _State:
        """Return how far it got."""
        is_there = self.source is not None and identity(self.source) is not None
        found = identity(self.target)
        if found == self.new and not is_there:
            return _State.DONE
        is_left = found == self.old and is_there == (self.source is not None)
        return _State.LEFT if is_left else _State.OVERTAKEN

    def perform(self) -> None:
        """Make it so, if it is left to do."""
        if self.state is not _State.LEFT:
            return
        if self.source is None:
            self.target.unlink(missing_ok=True)
        else:
            os.replace(self.source, self.target)


def _rename_all(targets: Sequence[_Target]) -> None:
    """Rename one after the other; if one cannot be, put back those before it."""
    renames = [target.forth() for target in targets]
    journal = journal_of(targets[-1].path)
    if len(targets) > 1:
        with targets[-1].explained():
            _begin(journal, renames)
    try:
        for target in targets:
            target.rename()
    except BaseException:
        back = [rename for target in reversed(targets) if (rename := target.back()) is not None]
        with suppress(OSError):
            if len(targets) > 1:  # a kill from here on leads back to what was there
                name = temporary_name(targets[-1].path)
                name.write_bytes(_as_journal(back, journal.parent))
                os.replace(name, journal)
            for rename in back:
                rename.perform()
        raise
    finally:
        if len(targets) > 1:
            _remove(journal)


def journal_of(path: Path) -> Path:
    """Return where the journal stands if `path` is the last of the files."""
    return path.with_name(f"{_mark(path)}{_SUFFIX}")


def _begin(journal: Path, renames: Sequence[Rename]) -> None:
    """Write a journal; from here on a later run finishes what this one does not."""
    file = os.open(journal, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    try:
        os.write(file, _as_journal(renames, journal.parent))
    except OSError:
        _remove(journal)
        raise
    finally:
        os.close(file)


def _as_journal(renames: Sequence[Rename], folder: Path) -> bytes:
    import json

    files = [
        {
            "from": None if one.source is None else os.path.relpath(one.source, folder),
            "to": os.path.relpath(one.target, folder),
            "new": one.new,
            "old": one.old,
        }
        for one in renames
    ]
    return json.dumps({"files": files}).encode()


def _read_journal(journal: Path) -> list[Rename]:
    """Return what a journal says; nothing if it is none, or was never finished.

    The file may be a stranger's: a rename counts only if it leads from a temporary name for a file to
    that file, and a removal only if the file is the very one that was put there.
    """
    import json

    try:
        if not stat.S_ISREG(journal.lstat().st_mode) or journal.stat().st_size > _LARGEST_JOURNAL:
            return []
        files = json.loads(journal.read_bytes())["files"]
        return [_read_rename(journal.parent, one) for one in files]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []


def _read_rename(folder: Path, listed: Mapping[str, Any]) -> Rename:
    if "\0" in listed["to"]:
        raise ValueError
    path = Path(os.path.normpath(folder / listed["to"]))
    new, old = (None if listed[key] is None else tuple(listed[key]) for key in ("new", "old"))
    if listed["from"] is None:
        return Rename(None, path, new, old)
    name = Path(os.path.normpath(folder / listed["from"]))
    if name.parent != path.parent or not _is_temporary_name(name.name, path):
        raise ValueError
    return Rename(name, path, new, old)


def _finish(paths: Sequence[Path]) -> tuple[str, ...]:
    """Do the renames of any of some files that a run did not get to; the caller has their folders locked."""
    sentences = []
    for journal in _journals({path.parent for path in paths}):
        renames = _read_journal(journal)
        is_own = any(journal == journal_of(path) for path in paths)
        if not is_own and not any(one.target in paths for one in renames):
            continue
        left = _left(renames)
        for one in left:
            try:
                one.perform()
            except OSError as error:
                raise CannotWrite(f"{one.target} cannot be written: {_reason(error)}") from None
        _remove(journal)
        for one in renames:
            _remove_stale(one.target)
        if left:
            names, verb = _names(left)
            sentences.append(f"{_killed(renames, left)}: {names} {verb} replaced now")
    return tuple(sentences)


def _journals(folders: Iterable[Path]) -> Iterator[Path]:
    length = len(_PREFIX) + 8 + len(_SUFFIX)
    for folder in sorted(folders):
        for name in _listed(folder):
            if name.endswith(_SUFFIX) and len(name) == length:
                yield folder / name


def _left(renames: Sequence[Rename]) -> list[Rename]:
    """Return what is left to do; nothing if somebody has written one of the files since."""
    states = [one.state for one in renames]
    if _State.OVERTAKEN in states:
        return []
    return [one for one, state in zip(renames, states, strict=True) if state is _State.LEFT]


def _killed(renames: Sequence[Rename], left: Sequence[Rename]) -> str:
    done = f"{len(renames) - len(left)} of {len(renames)} files"
    return f"a conversion was killed when {done} were replaced"


def _names(left: Sequence[Rename]) -> tuple[str, str]:
    """Return the names of files, and the verb for so many."""
    return ", ".join(one.target.name for one in left), "was" if len(left) == 1 else "were"
