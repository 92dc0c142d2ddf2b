"""Work beside that of the runtimes: in a thread that nobody has to wait for."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any


class Background:
    """Does one thing after the other in a thread; what never ends does not keep the process alive."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], Any]) -> "Future[Any]":
        """Do something after everything that was asked for before."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        future: Future[Any] = Future()
        self._waiting.put((future, work))
        return future

    def close(self) -> None:
        """Let the thread end when it has nothing more to do."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread = None

    def _work(self) -> None:
        while (entry := self._waiting.get()) is not None:
            future, work = entry
            try:
                future.set_result(work())
            except BaseException as error:  # whoever asks for the result gets it
                future.set_exception(error)
