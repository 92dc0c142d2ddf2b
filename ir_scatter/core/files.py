"""From the paths that a user names to the files that are read; and the folder of what can be made again."""

import glob
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

SUFFIXES = (".xml", ".onnx")
STANDARD_INPUT = "-"
STDIN_NAME = "<stdin>"
"""What standard input is called in what is found in it."""


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
    """Search folders for models and expand globs; what does not exist stays, to be reported."""
    sources: dict[str, Source] = {}
    empty: list[str] = []
    for path in paths:
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


def search(folder: str) -> Iterator[str]:
    """Yield the files of a folder, and of those in it, that are named as models are."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(root, name)
            if name.lower().endswith(SUFFIXES) and os.path.isfile(path):
                yield path


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file, by which somebody else tells whether he has the same."""
    from hashlib import file_digest

    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path | None:
    """Return this library's folder in the user's cache, which may not be there yet; None without a home."""
    told = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not told.is_absolute():
        try:
            home = Path.home()
        except RuntimeError:
            return None
        usual = {"win32": home / "AppData" / "Local", "darwin": home / "Library" / "Caches"}
        told = usual.get(sys.platform, home / ".cache")
    return told / "ir-scatter"
