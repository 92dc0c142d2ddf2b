"""From the paths that a user names to the files that are read, and that none of them is written over."""

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from ir_scatter.core.errors import UsageError

SUFFIXES = (".xml", ".onnx")
STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read; not named if it was found in a folder, so that it may turn out to be no model."""

    path: str
    is_named: bool = True


class Found(NamedTuple):
    """What named paths lead to: each file once, in their order, and the folders without any."""

    sources: tuple[Source, ...]
    empty_folders: tuple[str, ...]


def find_files(paths: Sequence[str], exclude: Sequence[str] = ()) -> Found:
    """Search folders for models and expand globs.

    Args:
        paths: files, folders, globs, or `-`. What does not exist stays, to be reported.
        exclude: globs of paths to leave out; a glob without a slash matches any part of a path.
    """
    sources: dict[str, Source] = {}
    empty: list[str] = []
    for path in paths:
        is_plain = path == STANDARD_INPUT or os.path.lexists(path) or not glob.has_magic(path)
        for name in [path] if is_plain else sorted(glob.glob(path, recursive=True)) or [path]:
            files = [Source(name)]
            if path not in ("", STANDARD_INPUT) and Path(name).is_dir():
                files = [Source(file, is_named=False) for file in _search(name)]
                if not files:
                    empty.append(name)
            for source in files:
                is_new = source.is_named or source.path not in sources
                if is_new and not is_excluded(source.path, exclude):
                    sources[source.path] = source
    return Found(tuple(sources.values()), tuple(empty))


def is_excluded(path: str, patterns: Sequence[str]) -> bool:
    """Tell whether a glob matches the path, or, without a slash in it, any part of the path."""
    text = path.replace(os.sep, "/")
    for pattern in patterns:
        bare = pattern.rstrip("/")
        globs = (pattern, f"*/{pattern}", f"{bare}/*", f"*/{bare}/*")
        if "/" not in bare:
            if any(fnmatch(part, bare) for part in text.split("/")):
                return True
        elif any(fnmatch(text, one) for one in globs):
            return True
    return False


def _search(folder: str) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(root, name)
            if name.lower().endswith(SUFFIXES) and os.path.isfile(path):
                yield path


def demand_apart_from(outputs: Mapping[str, str | None], read: Iterable[tuple[str, str]]) -> None:
    """Demand that no file that is to be written is one that is read, however it is spelled.

    Args:
        outputs: files to be written, by the option that names them.
        read: files that are read, and what each is; asked for only if there is something to write.

    Raises:
        UsageError: one is, or two options name one file.
    """
    wanted = {option: (path, _identities(path)) for option, path in outputs.items() if path is not None}
    for (option, (path, one)), (other, (_, two)) in combinations(wanted.items(), 2):
        if one & two:
            raise UsageError(f"{other}: {path} is what {option} names, expected another file")
    for file, whose in read if wanted else ():
        for option, (path, identities) in wanted.items():
            if identities & _identities(file):
                raise UsageError(f"{option}: {path} is {whose}, expected another file")


def demand_apart_from_folder(
    option: str, folder: str | None, names: str, above: slice, read: Iterable[tuple[str, str]]
) -> None:
    """Demand the same of files that are written into a folder.

    Args:
        option: the one that names the folder.
        folder: None if nothing is to be written.
        names: a regular expression for the names of the files.
        above: which of the folders around a file may be the one that is named.
        read: files that are read, and what each is.

    Raises:
        UsageError: a file is read that would be written over.
    """
    for file, whose in read if folder else ():
        path = Path(os.path.realpath(file))
        if Path(os.path.realpath(folder or "")) in [*path.parents][above] and re.fullmatch(names, path.name):
            raise UsageError(f"{option}: {path.name} in {folder} is {whose}, expected another folder")


def _identities(path: str) -> set[tuple[int, int] | str]:
    """What a file is known by: its place and, of a regular file, its number."""
    found: set[tuple[int, int] | str] = {os.path.realpath(path)}
    with suppress(OSError, ValueError):
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            found.add((status.st_dev, status.st_ino))
    return found
