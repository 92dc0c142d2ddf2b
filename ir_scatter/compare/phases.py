"""Reports the progress of long work to a listener; defines the exception of an interrupted comparison."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Listener = Callable[[str], None]
_Item = TypeVar("_Item")

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
    """Prefix the phases reported in this block: "reading" becomes "2 of 5, model.xml: reading"."""
    listener = _LISTENER.get()
    with report_to(None if listener is None else lambda part: listener(f"{whole}: {part}")):
        yield


def begin(phase: str) -> None:
    """Report to the listener that a phase begins, for example "reading"."""
    if listener := _LISTENER.get():
        listener(phase)


def in_turn(items: Sequence[_Item], noun: str) -> Iterator[_Item]:
    """Yield items, and report before each how many are done: "12 of 34 nodes"."""
    for number, item in enumerate(items):
        begin(f"{number} of {len(items)} {noun}")
        yield item


def case_of(number: int, total: int) -> str:
    """Return ", case 2 of 5", or "" if there is only one.

    `number` may exceed `total`, as cases may be added.
    """
    total = max(total, number + 1)
    return f", case {number + 1} of {total}" if total > 1 else ""


class Interrupted(KeyboardInterrupt):
    """The user interrupted; `found` is the result so far, whose field `interrupted` says what is missing."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted")
        self.found = result
