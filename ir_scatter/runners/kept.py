"""What a runtime's process keeps between questions."""

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

_SIZE = 3
"""Of one kind: with taps and without, and two models that are compared."""


class Kept:
    """Things that are dear to make, by key; the first part of a key is the kind."""

    def __init__(self) -> None:
        self._things: dict[tuple[Hashable, ...], Any] = {}

    def get(self, key: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        """Return what was made for a key, or make it; the one that was not used for longest goes."""
        found = self._things.pop(key) if key in self._things else make()
        self._things[key] = found
        same = [other for other in self._things if other[0] == key[0]]
        for other in same[:-_SIZE]:
            del self._things[other]
        return found

    def forget(self, key: tuple[Hashable, ...]) -> None:
        """Let go of what was made for a key."""
        self._things.pop(key, None)


def identity(path: str) -> tuple[Hashable, ...]:
    """Return what tells one state of a file, and of the weights beside it, from another."""
    found: list[Hashable] = [path]
    for name in (path, str(Path(path).with_suffix(".bin"))):
        try:
            state = os.stat(name)
        except OSError:
            found.append(None)
            continue
        found.append((state.st_mtime_ns, state.st_size, state.st_ino, state.st_dev))
    return tuple(found)
