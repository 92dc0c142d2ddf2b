"""Atomic replacement of several files: all appear whole or none does, even if the process is killed.

1. Each new file is written beside its target under a temporary name and locked; an unlocked temporary file
   belongs to a killed process, and a later run removes it.
2. When all new files are on the disk, their folders are locked and a journal with all renames is written
   beside the file that is renamed last.
3. The files are renamed one after the other, and the journal is removed.

If a process is killed between two renames, its journal stays and its locks are released. The next run that
writes one of these files, or converts from them, completes the renames.
"""

import errno
import os
import stat
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ir_scatter.core.errors import CannotWrite, UsageError, explained
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.words import counted

_CHUNK = 1 << 26
_BUFFER = 1 << 18
_LARGEST_JOURNAL = 1 << 20
_PREFIX, _SUFFIX = ".ir_scatter-", ".tmp"
_PATIENCE = 60.0
_SHORT_PATIENCE = 1.0
_PAUSE = 0.002
_IRREGULAR = "it is not a regular file"

Identity: TypeAlias = "tuple[int, int, int] | None"
"""Inode, modification time and size of a file, which change if it is modified or replaced; None if it is
missing.
"""


@dataclass(frozen=True, slots=True)
class Output:
    """A file to write: the content of the file `copied`, if set, followed by `content`.

    Attributes:
        copied_size: the size that the copied file must have, None for any.
        sources: files that must be unchanged, with their identities when they were read.
        is_new: whether the path must be free, checked again just before the rename.
    """

    path: Path
    content: bytes = b""
    copied: Path | None = None
    copied_size: int | None = None
    sources: tuple[tuple[Path, Identity], ...] = ()
    is_new: bool = False


class Rename(NamedTuple):
    """One planned rename: the temporary file with identity `new` replaces the target with identity `old`.

    With `is_new` the target must not exist. The journal does not store `is_new`: an unfinished rename is
    completed only if its target is still the `old` one.
    """

    source: Path
    target: Path
    old: Identity
    new: Identity
    is_new: bool = False


def replace_files(outputs: Sequence[Output]) -> tuple[str, ...]:
    """Write several files: all of them or none.

    They are renamed in the given order. Existing files are replaced and keep their permissions.

    Returns:
        A sentence for each killed run whose renames were completed first.

    Raises:
        CannotWrite: a file cannot be written; nothing has changed, and no temporary file is left.
        UsageError: a file exists that must be new; nothing has changed either.
    """
    targets = {Path(os.path.realpath(output.path)): output for output in outputs}
    for path, output in targets.items():
        with explained(output.path), suppress(FileNotFoundError), path.open("r+b", buffering=0) as old:
            if not stat.S_ISREG(os.fstat(old.fileno()).st_mode):
                raise OSError(errno.EINVAL, _IRREGULAR)
    if not outputs:
        return ()
    if len(targets) < len(outputs):
        raise CannotWrite("two outputs have the same path, expected different ones")
    folders = {path.parent for path in targets}
    with ExitStack() as opened:
        new = {}
        with locked(folders):
            finished = _finish(targets)
            for path, output in targets.items():
                name = temporary_name(path)
                with explained(output.path):
                    file = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
                opened.callback(_remove, name)
                opened.callback(os.close, file)
                _lock(file)
                new[path] = name, file
        for path, (_, file) in new.items():
            _fill(file, path, targets[path])
        with locked(folders) as locks:
            finished += _finish(targets)
            for source, expected in [pair for output in outputs for pair in output.sources]:
                if expected is not None and identity(source) != expected:
                    message = f"{source} is not the file that was read, expected the same"
                    raise CannotWrite(f"{message}: it has changed meanwhile")
            for output in outputs:
                if output.is_new and os.path.lexists(output.path):
                    raise UsageError(already_exists(output.path))
            _rename_all([
                Rename(name, path, identity(path), identity(name), targets[path].is_new)
                for path, (name, _) in new.items()
            ])  # fmt: skip
            for folder in locks:
                # the files themselves are on the disk; not every system can sync folders
                with suppress(OSError):
                    os.fsync(folder)
    return finished


def finish_reading(path: Path) -> tuple[str, ...]:
    """Complete the renames of a killed run before a model's file is read.

    Returns:
        A sentence for each killed run whose renames were completed.
    """
    target = Path(os.path.realpath(path))
    if not os.path.lexists(journal_of(target)):
        return ()
    with locked([target.parent]):
        return _finish([target])


def half_replaced(path: Path) -> str | None:
    """Return a message if a killed run has replaced only some files of a model, else None.

    Waits a moment for a run that is replacing them now.
    """
    target = Path(os.path.realpath(path))
    if os.path.lexists(journal_of(target)):
        with suppress(CannotWrite), locked([target.parent], _SHORT_PATIENCE):
            renames = _read_journal(journal_of(target))
            unfinished = _unfinished(renames)
            if 0 < len(unfinished) < len(renames):
                return (
                    f"{_killed(renames, unfinished, ', and')} not: expected all of them or none; "
                    "the next conversion from or to this file finishes it"
                )
    return None


def identity(path: Path) -> Identity:
    """Return the identity of the file at a path; it changes when the file is modified or replaced."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _fill(file: int, path: Path, output: Output) -> None:
    """Write the content of an output to its temporary file and flush it to disk.

    Files are copied inside the kernel where it supports that.
    """
    source, size = output.copied, output.copied_size
    if source:
        with explained(source, "read"):
            if not stat.S_ISREG(source.stat().st_mode):
                raise OSError(errno.EINVAL, _IRREGULAR)
            origin = source.open("rb", buffering=0)
        with origin, explained(output.path):
            with suppress(OSError, AttributeError):  # errors that matter occur again in the loop below
                while os.copy_file_range(origin.fileno(), file, _CHUNK):
                    pass
            while piece := origin.read(_BUFFER):
                _write(file, piece)
        copied_bytes = os.fstat(file).st_size
        if size is not None and copied_bytes != size:
            message = (
                f"{source} has {counted(copied_bytes, 'byte')}, expected {size}: it has changed meanwhile"
            )
            raise CannotWrite(message)
    with explained(output.path):
        _write(file, output.content)
        with suppress(FileNotFoundError):
            os.fchmod(file, stat.S_IMODE(path.stat().st_mode))
        os.fsync(file)


def _write(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _mark(path: Path) -> str:
    return f"{_PREFIX}{zlib.crc32(os.fsencode(path.name)):08x}"


def temporary_name(path: Path) -> Path:
    """Return a new name for a temporary file that is to become `path`."""
    return path.with_name(f"{_mark(path)}-{os.urandom(4).hex()}{_SUFFIX}")


def journal_of(path: Path) -> Path:
    """Return the path of the journal if `path` is the file that is renamed last."""
    return path.with_name(f"{_mark(path)}{_SUFFIX}")


def _remove(name: Path) -> None:
    with suppress(OSError):
        name.unlink()


def _lock(file: int) -> bool | None:
    """Lock a file until it is closed.

    Return False if another process holds it, None if locks are not supported.
    """
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


@contextmanager
def locked(folders: Iterable[Path], patience: float = _PATIENCE) -> Iterator[list[int]]:
    """Lock folders against other runs and yield their descriptors; without lock support only open them.

    The folder itself is locked, so that a killed process leaves no lock file.

    Raises:
        CannotWrite: another process holds a lock for longer than `patience` seconds.
    """
    files: list[int] = []
    try:
        for folder in sorted(set(folders)):
            with suppress(OSError):
                files.append(os.open(folder, os.O_RDONLY | os.O_CLOEXEC))
                end = time.monotonic() + patience
                while _lock(files[-1]) is False:
                    if time.monotonic() > end:
                        reason = f"another process has locked it for more than {patience:.0f} s"
                        raise CannotWrite(f"the folder {folder} cannot be written: {reason}")
                    time.sleep(_PAUSE)
        yield files
    finally:
        for file in files:
            os.close(file)


def _rename_all(renames: Sequence[Rename]) -> None:
    """Rename one file after the other; after a failure restore the earlier ones.

    The journal is valid at every moment: a restored file counts as not yet renamed.
    """
    import json

    journal = journal_of(renames[-1].target)
    backups = [temporary_name(rename.target) for rename in renames]
    try:
        if len(renames) > 1:
            place = partial(os.path.relpath, start=journal.parent)
            files = [
                (place(rename.source), place(rename.target), rename.old, rename.new) for rename in renames
            ]
            with explained(renames[-1].target):
                journal.write_text(json.dumps(files))
            for rename, backup in zip(renames, backups, strict=True):
                with suppress(OSError):  # the target is new, or the system has no hard links
                    os.link(rename.target, backup)
        for rename in renames:
            with explained(rename.target):
                _create(rename) if rename.is_new else os.replace(rename.source, rename.target)
    except BaseException:
        for rename, backup in reversed([*zip(renames, backups, strict=True)]):
            if identity(rename.target) != rename.new:
                continue  # not renamed yet, or written by another program since
            with suppress(OSError):
                if rename.old:
                    os.link(rename.target, rename.source)
                    os.replace(backup, rename.target)
                else:
                    _remove(rename.source)  # renaming between two hard links of one file does nothing
                    os.replace(rename.target, rename.source)
        raise
    finally:
        for name in (journal, *backups):
            _remove(name)


def _create(rename: Rename) -> None:
    """Give a new file its name, unless a file of that name exists.

    Locks exclude other runs, but not other programs: a rename would replace their file, a hard link never
    does. Without hard links the target is checked once more, just before the rename.
    """
    try:
        os.link(rename.source, rename.target)
    except FileExistsError:
        raise UsageError(already_exists(rename.target)) from None
    except OSError:
        if os.path.lexists(rename.target):
            raise UsageError(already_exists(rename.target)) from None
        os.replace(rename.source, rename.target)
    else:
        _remove(rename.source)


def already_exists(path: Path) -> str:
    """Return the message for a file that must not be replaced."""
    return f"{path} exists, expected a path that is free or {Parameter('overwrite', True)}"


def _read_journal(journal: Path) -> list[Rename]:
    """Return the renames of a journal; none if it is incomplete or not a journal.

    The file may come from another program, so every source must be a temporary file for its target.
    """
    import json

    renames = []
    try:
        status = journal.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_JOURNAL:
            return []
        for *names, old, new in json.loads(journal.read_bytes()):
            source, target = (Path(os.path.normpath(journal.parent / name)) for name in names)
            is_ours = source.parent == target.parent and source.match(f"{_mark(target)}-*")
            if not is_ours or "\0" in str(target):
                return []
            renames.append(Rename(source, target, old and tuple(old), new and tuple(new)))
    except (OSError, ValueError, TypeError, RecursionError):
        return []
    return renames


def _unfinished(renames: Sequence[Rename]) -> list[Rename]:
    """Return the renames that are not done; none if another program has changed one of the files."""
    unfinished = [rename for rename in renames if identity(rename.target) != rename.new]
    is_true = all(
        (identity(rename.target), identity(rename.source)) == (rename.old, rename.new)
        for rename in unfinished
    )
    return unfinished if is_true else []


def _finish(paths: Collection[Path]) -> tuple[str, ...]:
    """Complete the renames of killed runs that concern these files, and remove their temporary files.

    The caller holds the locks of the folders.
    """
    sentences, written = [], {*paths}
    for folder in sorted({path.parent for path in paths}):
        for journal in sorted(folder.glob(f"{_PREFIX}{'?' * 8}{_SUFFIX}")):
            renames = _read_journal(journal)
            targets = {rename.target for rename in renames}
            if journal not in map(journal_of, paths) and targets.isdisjoint(paths):
                continue
            unfinished = _unfinished(renames)
            for rename in unfinished:
                with explained(rename.target):
                    os.replace(rename.source, rename.target)
            _remove(journal)
            written |= targets
            if unfinished:
                sentences.append(f"{_killed(renames, unfinished, ':')} replaced now")
    for path in written:
        for name in path.parent.glob(f"{_mark(path)}-*{_SUFFIX}"):
            with suppress(OSError):
                if name.is_file():
                    with name.open("rb") as file:
                        if _lock(file.fileno()):
                            _remove(name)
    return tuple(sentences)


def _killed(renames: Sequence[Rename], unfinished: Sequence[Rename], so: str) -> str:
    names, verb = (
        ", ".join(rename.target.name for rename in unfinished),
        "was" if len(unfinished) == 1 else "were",
    )
    done = f"{len(renames) - len(unfinished)} of {len(renames)} files"
    return f"a conversion was killed when {done} were replaced{so} {names} {verb}"
