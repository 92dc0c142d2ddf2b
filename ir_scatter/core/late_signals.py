"""Signals that wait until something is done that must not be interrupted."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def without_signals() -> Iterator[None]:
    """Let signals wait that a user or a build sends to end the process.

    To block them would not do: another thread, one of a library, would take them.
    """
    seen: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in _ENDING}
    known = {number: handler for number, handler in before.items() if handler is not None}
    try:
        for number in known:
            signal.signal(number, lambda number, _: seen.append(number))
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
        for late in seen:
            signal.raise_signal(late)
