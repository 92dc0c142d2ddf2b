"""Files that appear whole or not at all.

What is new is written beside its target under no name, where the system has such files, or under a
temporary one. Only when all of it is on the disk do the targets change, one rename behind the other.
"""

import errno
import os
import signal
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ir_scatter.errors import CannotWrite
from ir_scatter.formats.temporary_files import name_file, open_beside, remove, remove_stale, temporary_name
from ir_scatter.shapes import counted

_CHUNK = 1 << 26
_BUFFER = 1 << 18
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IRREGULAR = "it is no regular file"
_NO_KERNEL_COPY = frozenset(
    {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.ETXTBSY, errno.EBADF}
)


@dataclass(frozen=True, slots=True)
class Output:
    """A file to write: a copy of another file, if one is named, and bytes behind it.

    Attributes:
        path: the file; a symbolic link stands for what it points to.
        content: the bytes.
        copied: the file whose bytes come first; it may be the one that is written.
        copied_size: the size that it must have, if that matters.
    """

    path: Path
    content: bytes = b""
    copied: Path | None = None
    copied_size: int | None = None


def replace_files(outputs: Sequence[Output]) -> None:
    """Write files, replacing those that exist: all of them or none.

    They change in the given order, with nothing in between but the renames themselves: only a kill
    in the microseconds between two renames leaves the first one new and the second one old. Files
    that exist keep their permissions.

    Raises:
        CannotWrite: with the file and the reason; nothing has changed, and no temporary file is left.
    """
    targets = [_Target(output) for output in outputs]
    if len({target.path for target in targets}) < len(targets):
        raise CannotWrite("the same file is to be written twice, expected different ones")
    with ExitStack() as opened:
        for target in targets:
            target.prepare(opened)
        changing = [target for target in targets if target.file >= 0]
        backups = [target.back_up(opened) if len(changing) > 1 else None for target in changing]
        with _without_signals():
            _rename_all(changing, backups)
    for folder in {target.path.parent for target in changing}:
        _sync_folder(folder)


class _Target:
    """A file to write.

    Attributes:
        output: what the caller asked for.
        path: the file itself, behind all symbolic links.
        file: the descriptor of what is new; -1 if nothing is.
        temporary: the name of what is new, if it has one.
        mode: the permissions of the file that exists, if one does.
    """

    def __init__(self, output: Output) -> None:
        self.output = output
        self.path = Path(os.path.realpath(output.path))
        self.file = -1
        self.temporary: Path | None = None
        self.mode: int | None = None
        with self._explained():
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
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CannotWrite(f"{self.output.path} cannot be written: {_reason(error)}") from None

    def prepare(self, opened: ExitStack) -> None:
        """Write what is new beside the target, down to the disk; nothing if the file is to stay as it is."""
        source = self.output.copied
        with self._explained():
            remove_stale(self.path)
            if source and not self.output.content and _is_same(source, self.path):
                self._check_size(source, self.path.stat().st_size)
                return
            self.file, self.temporary = open_beside(self.path)
        opened.callback(self._discard)
        if source:
            self._copy(source)
        with self._explained():
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
            with self._explained():
                if self.mode is not None:
                    _forget_pages(self.path)
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

    def back_up(self, opened: ExitStack) -> Path | None:
        """Give the file that exists a second name, where that is possible."""
        name = temporary_name(self.path)
        try:
            os.link(self.path, name)
        except OSError:
            return None
        opened.callback(remove, name)
        return name

    def rename(self) -> None:
        """Put what is new in its place."""
        with self._explained():
            if self.temporary is None:
                self.temporary = name_file(self.file, self.path)
            os.replace(self.temporary, self.path)
            self.temporary = None

    def restore(self, backup: Path | None) -> None:
        """Put back what was there before."""
        with suppress(OSError):
            if backup is not None:
                os.replace(backup, self.path)
            elif self.mode is None:
                self.path.unlink()

    def _discard(self) -> None:
        os.close(self.file)
        if self.temporary is not None:
            remove(self.temporary)


def _rename_all(targets: Sequence[_Target], backups: Sequence[Path | None]) -> None:
    """Rename one after the other; if one cannot be, put back those before it."""
    done: list[tuple[_Target, Path | None]] = []
    try:
        for target, backup in zip(targets, backups, strict=True):
            target.rename()
            done.append((target, backup))
    except CannotWrite:
        for target, backup in reversed(done):
            target.restore(backup)
        raise


@contextmanager
def _without_signals() -> Iterator[None]:
    """Let signals wait that a user or a build sends to end the process.

    To block them would not do: another thread, one of a library, would take them.
    """
    seen: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in _ENDING}
    known = {number: handler for number, handler in before.items() if handler is not None}
    try:
        for number in known:
            signal.signal(number, lambda number, _: seen.append(number))
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
        for late in seen:
            signal.raise_signal(late)


def _is_same(left: Path, right: Path) -> bool:
    try:
        return os.path.samefile(left, right)
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


def _forget_pages(path: Path) -> None:
    """Free the memory that caches a file soon to be replaced: what takes its place can use it."""
    with suppress(OSError, AttributeError):  # not every system takes advice, and not every file can be read
        file = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # the files themselves are on the disk; not every system syncs folders
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
