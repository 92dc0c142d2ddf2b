"""From the paths that a user names to the files that are read."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

SUFFIXES = (".xml", ".onnx")
STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read.

    Attributes:
        path: as it is to be named.
        is_named: False if it was found in a folder, so that it may turn out to be no model.
    """

    path: str
    is_named: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """What the named paths lead to.

    Attributes:
        sources: each file once, in the order of the names, folders sorted.
        empty_folders: folders without a file that could be a model.
    """

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
        for name in _expand(path):
            if path not in ("", STANDARD_INPUT) and Path(name).is_dir():
                files = [Source(file, is_named=False) for file in _search(name)]
                if not files:
                    empty.append(name)
            else:
                files = [Source(name)]
            for source in files:
                if not is_excluded(source.path, exclude):
                    known = sources.get(source.path)
                    if known is None or source.is_named:
                        sources[source.path] = source
    return Found(tuple(sources.values()), tuple(empty))


def is_excluded(path: str, patterns: Sequence[str]) -> bool:
    """Tell whether a glob matches the path, or, without a slash in it, any part of the path."""
    text = path.replace(os.sep, "/")
    parts = text.split("/")
    for pattern in patterns:
        if "/" not in pattern.rstrip("/"):
            if any(fnmatch(part, pattern.rstrip("/")) for part in parts):
                return True
        elif (
            fnmatch(text, pattern)
            or fnmatch(text, f"*/{pattern}")
            or fnmatch(text, f"{pattern.rstrip('/')}/*")
            or fnmatch(text, f"*/{pattern.rstrip('/')}/*")
        ):
            return True
    return False


def _expand(path: str) -> list[str]:
    if path == STANDARD_INPUT or os.path.lexists(path) or not glob.has_magic(path):
        return [path]
    return sorted(glob.glob(path, recursive=True)) or [path]


def _search(folder: str) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(root, name)
            if name.lower().endswith(SUFFIXES) and os.path.isfile(path):
                yield path
