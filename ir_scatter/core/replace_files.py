"""Files that appear whole or not at all.

What is new is written beside its target under no name, where the system has such files, or under a
temporary one. Only when all of it is on the disk do the targets change, one rename behind the other,
as `replacement_journal` has it: no other run comes between, and what a kill cuts short is finished later.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ir_scatter.core import replacement_journal as journal
from ir_scatter.core.errors import CannotWrite
from ir_scatter.core.late_signals import without_signals
from ir_scatter.core.replacement_journal import Identity, Rename
from ir_scatter.core.shapes import counted
from ir_scatter.core.temporary_files import name_file, open_beside, remove, remove_stale, temporary_name

_CHUNK = 1 << 26
_BUFFER = 1 << 18
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
        sources: files that must be what they were when they were read, with what they were.
    """

    path: Path
    content: bytes = b""
    copied: Path | None = None
    copied_size: int | None = None
    sources: tuple[tuple[Path, Identity], ...] = ()


def replace_files(outputs: Sequence[Output]) -> tuple[str, ...]:
    """Write files, replacing those that exist: all of them or none.

    They change in the given order, with nothing in between but the renames themselves. A kill in the
    microseconds between two renames leaves the first one new and the second one old, and a list of what
    is left to do: the next run that writes one of the files does it first. Files that exist keep their
    permissions.

    Returns:
        A sentence for each such list that was found.

    Raises:
        CannotWrite: with the file and the reason; nothing has changed, and no temporary file is left.
    """
    targets = [_Target(output) for output in outputs]
    if len({target.path for target in targets}) < len(targets):
        raise CannotWrite("the same file is to be written twice, expected different ones")
    paths = [target.path for target in targets]
    with ExitStack() as opened:
        with journal.locked(path.parent for path in paths):
            finished = journal.finish(paths)
            for target in targets:
                target.clean()
        for target in targets:
            target.prepare(opened)
        changing = [target for target in targets if target.file >= 0]
        with journal.locked(path.parent for path in paths), without_signals():
            finished += journal.finish(paths)
            for target in targets:
                target.check_sources()
            backups = [target.back_up(opened) if len(changing) > 1 else None for target in changing]
            if changing:
                _rename_all(changing, backups)
    for folder in {target.path.parent for target in changing}:
        _sync_folder(folder)
    return finished


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

    def clean(self) -> None:
        """Remove what runs that were killed have left of this file."""
        with self.explained():
            remove_stale(self.path)

    def prepare(self, opened: ExitStack) -> None:
        """Write what is new beside the target, down to the disk; nothing if the file is to stay as it is."""
        source = self.output.copied
        with self.explained():
            if source and not self.output.content and _is_same(source, self.path):
                self._check_size(source, self.path.stat().st_size)
                return
            self.file, self.temporary = open_beside(self.path)
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

    def check_sources(self) -> None:
        """Demand that what was read is still there: files of two versions must not come together."""
        for source, known in self.output.sources:
            if known is not None and journal.identity_behind(source) != known:
                raise CannotWrite(
                    f"{source} is not the file that was read, expected the same: it has changed meanwhile"
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

    def named(self) -> Rename:
        """Give what is new a name, and return how it comes to its place."""
        with self.explained():
            if self.temporary is None:
                self.temporary = name_file(self.file, self.path)
        assert self.temporary is not None
        return Rename(
            self.temporary, self.path, journal.identity(self.temporary), journal.identity(self.path)
        )

    def rename(self) -> None:
        """Put what is new in its place."""
        assert self.temporary is not None
        with self.explained():
            os.replace(self.temporary, self.path)
            self.temporary = None

    def back(self, backup: Path | None) -> Rename | None:
        """Return what puts back what was there before; None if it has no name any more."""
        found = journal.identity(self.path)
        if self.temporary is not None:
            return Rename(None, self.path, found, None)
        if backup is None and self.mode is not None:
            return None
        return Rename(backup, self.path, None if backup is None else journal.identity(backup), found)

    def _discard(self) -> None:
        os.close(self.file)
        if self.temporary is not None:
            remove(self.temporary)


def _rename_all(targets: Sequence[_Target], backups: Sequence[Path | None]) -> None:
    """Rename one after the other; if one cannot be, put back those before it."""
    renames = [target.named() for target in targets]
    if len(targets) > 1:
        with targets[-1].explained():
            journal.begin(renames)
    try:
        for target in targets:
            target.rename()
    except BaseException:
        _turn_back(targets, backups, renames[-1])
        journal.end(renames)
        raise
    journal.end(renames)


def _turn_back(targets: Sequence[_Target], backups: Sequence[Path | None], last: Rename) -> None:
    """Put back what was there before, as far as that is possible."""
    back = [target.back(backup) for target, backup in zip(targets, backups, strict=True)]
    known = [one for one in reversed(back) if one is not None]
    with suppress(OSError):
        if len(targets) > 1:
            journal.turn_back(known, last)
        for one in known:
            one.perform()


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
