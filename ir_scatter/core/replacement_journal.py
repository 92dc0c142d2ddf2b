"""Renames that belong together: under a lock, and listed in a file so that a later run can finish them.

The list stands beside the file that is renamed last, from the moment when all that is new is there
under temporary names until the last rename is done. A process that is killed between two renames
leaves it behind, and gives up its lock. Whoever writes to one of the files next, or converts from
them, takes the lock and does the renames that are left.
"""

import json
import os
import stat
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.core.errors import CannotWrite
from ir_scatter.core.temporary_files import is_temporary_name, remove, remove_stale, temporary_name

_PREFIX, _SUFFIX = ".ir_scatter-", ".tmp"
_LARGEST = 1 << 20
_PATIENCE = 60.0
_SHORT_PATIENCE = 1.0
_PAUSE = 0.002


Identity: TypeAlias = "tuple[int, int, int] | None"
"""Inode, time and size of a file; None if there is none."""


class State(Enum):
    """How far a rename got."""

    LEFT = "left"
    DONE = "done"
    OVERTAKEN = "overtaken"


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
    def state(self) -> State:
        """Return how far it got: somebody else may have written the file since."""
        is_there = self.source is not None and identity(self.source) is not None
        found = identity(self.target)
        if found == self.new and not is_there:
            return State.DONE
        return State.LEFT if found == self.old and is_there == (self.source is not None) else State.OVERTAKEN

    def perform(self) -> None:
        """Make it so, if it is left to do."""
        if self.state is not State.LEFT:
            return
        if self.source is None:
            self.target.unlink(missing_ok=True)
        else:
            os.replace(self.source, self.target)


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
            _lock(file, folder, patience)
        yield


def _lock(file: int, folder: Path, patience: float) -> None:
    try:
        import fcntl
    except ImportError:
        return
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                reason = f"another process has locked it for more than {patience:.0f} s"
                raise CannotWrite(f"the folder {folder} cannot be written: {reason}") from None
            time.sleep(_PAUSE)
        except OSError:
            return
        else:
            return


def journal_of(path: Path) -> Path:
    """Return where the list stands if `path` is the last of the files."""
    return path.with_name(f"{_PREFIX}{zlib.crc32(os.fsencode(path.name)):08x}{_SUFFIX}")


def begin(renames: Sequence[Rename]) -> None:
    """Write the list; from here on a later run finishes what this one does not."""
    place = _place(renames)
    file = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    try:
        os.write(file, _listed(renames, place.parent))
    except OSError:
        remove(place)
        raise
    finally:
        os.close(file)


def turn_back(renames: Sequence[Rename], ended: Rename) -> None:
    """Write another list in its place, at once: one that leads back to what was there.

    Args:
        renames: what leads back.
        ended: the last of the renames that were begun.
    """
    place = journal_of(ended.target)
    name = temporary_name(ended.target)
    name.write_bytes(_listed(renames, place.parent))
    os.replace(name, place)


def end(renames: Sequence[Rename]) -> None:
    """Remove the list: all is done."""
    remove(_place(renames))


def _place(renames: Sequence[Rename]) -> Path:
    return journal_of(renames[-1].target)


def _listed(renames: Sequence[Rename], folder: Path) -> bytes:
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


def _read(journal: Path) -> list[Rename]:
    """Return what a list says; nothing if it is none, or was never finished.

    The file may be a stranger's: a rename counts only if it leads from a temporary name for a file to
    that file, and a removal only if the file is the very one that was put there.
    """
    try:
        if not stat.S_ISREG(journal.lstat().st_mode) or journal.stat().st_size > _LARGEST:
            return []
        files = json.loads(journal.read_bytes())["files"]
        return [_rename(journal.parent, one) for one in files]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []


def _rename(folder: Path, listed: Mapping[str, Any]) -> Rename:
    if "\0" in listed["to"]:
        raise ValueError
    path = Path(os.path.normpath(folder / listed["to"]))
    new, old = (None if listed[key] is None else tuple(listed[key]) for key in ("new", "old"))
    if listed["from"] is None:
        return Rename(None, path, new, old)
    name = Path(os.path.normpath(folder / listed["from"]))
    if name.parent != path.parent or not is_temporary_name(name, path):
        raise ValueError
    return Rename(name, path, new, old)


def finish(paths: Sequence[Path]) -> tuple[str, ...]:
    """Do the renames of any of some files that a run did not get to; the caller has their folders locked.

    Returns:
        One sentence for each list that had some left.

    Raises:
        CannotWrite: a rename is not possible.
    """
    said = []
    for place in _journals({path.parent for path in paths}):
        renames = _read(place)
        is_own = any(place == journal_of(path) for path in paths)
        if not is_own and not any(one.target in paths for one in renames):
            continue
        left = _left(renames)
        for one in left:
            try:
                one.perform()
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise CannotWrite(f"{one.target} cannot be written: {reason}") from None
        remove(place)
        for one in renames:
            remove_stale(one.target)
        if left:
            names = ", ".join(one.target.name for one in left)
            done = f"{len(renames) - len(left)} of {len(renames)} files"
            said.append(
                f"a conversion was killed when {done} were replaced: {names} {was_or_were(left)} replaced now"
            )
    return tuple(said)


def was_or_were(things: Sequence[object]) -> str:
    """Return the verb for one thing or several."""
    return "was" if len(things) == 1 else "were"


def _journals(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the lists in some folders."""
    length = len(_PREFIX) + 8 + len(_SUFFIX)
    for folder in sorted(folders):
        with suppress(OSError):
            for name in sorted(entry.name for entry in os.scandir(folder)):
                if name.startswith(_PREFIX) and name.endswith(_SUFFIX) and len(name) == length:
                    yield folder / name


def _left(renames: Sequence[Rename]) -> list[Rename]:
    """Return what is left to do; nothing if somebody has written one of the files since."""
    states = [one.state for one in renames]
    if State.OVERTAKEN in states:
        return []
    return [one for one, state in zip(renames, states, strict=True) if state is State.LEFT]


def finish_reading(path: Path) -> tuple[str, ...]:
    """Do the renames of a model's file, and of those with it, that a run did not get to; see `finish`."""
    known = Path(os.path.realpath(path))
    if not os.path.lexists(journal_of(known)):
        return ()
    with locked([known.parent]):
        return finish([known])


def half_replaced(path: Path) -> str | None:
    """Say of a model whose files were replaced in part what they are; None if they were not.

    A run that is at it is waited for, for a moment.
    """
    known = Path(os.path.realpath(path))
    place = journal_of(known)
    with suppress(CannotWrite):
        if os.path.lexists(place):
            with locked([known.parent], _SHORT_PATIENCE):
                renames = _read(place)
                left = _left(renames)
                if 0 < len(left) < len(renames):
                    done = f"{len(renames) - len(left)} of {len(renames)} files"
                    names = ", ".join(one.target.name for one in left)
                    verb = was_or_were(left)
                    return (
                        f"a conversion was killed when {done} were replaced, and {names} {verb} not: "
                        "expected all of them or none; the next conversion from or to this file finishes it"
                    )
    return None
