"""Progress of a comparison, reported to a listener; and the exception for an interrupted one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Listener = Callable[[str], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def report_to(listener: Listener | None) -> Iterator[None]:
    """Report progress to `listener` within this block."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def within(whole: str) -> Iterator[None]:
    """Report the phases of this block as parts of a whole: "2 of 5, model.xml: reading"."""
    listener = _LISTENER.get()
    with report_to(None if listener is None else lambda part: listener(f"{whole}: {part}")):
        yield


def begin(phase: str) -> None:
    """Report that a phase begins."""
    if listener := _LISTENER.get():
        listener(phase)


def case_of(number: int, total: int) -> str:
    """Return ", case 2 of 5", "" if there is only one; cases may be added to those that were requested."""
    total = max(total, number + 1)
    return f", case {number + 1} of {total}" if total > 1 else ""


class Interrupted(KeyboardInterrupt):
    """The user interrupted; `found` is the result of the finished part, and names the missing one."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted")
        self.found = result
