"""What a comparison is doing, told to whoever waits for it; and that it was interrupted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Listener = Callable[[str], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def told_to(listener: Listener | None) -> Iterator[None]:
    """Let somebody hear of every phase that begins in this block."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def within(whole: str) -> Iterator[None]:
    """Let the phases in this block be told as parts of a whole."""
    listener = _LISTENER.get()
    with told_to(None if listener is None else lambda part: listener(f"{whole}: {part}")):
        yield


def begin(phase: str) -> None:
    if listener := _LISTENER.get():
        listener(phase)


class Interrupted(KeyboardInterrupt):
    """Somebody did not want to wait any longer; `found` is what was finished, and says what is missing."""

    def __init__(self, found: Any) -> None:
        super().__init__("interrupted")
        self.found = found
