"""A question that is asked before its answer is needed."""

import threading
from collections.abc import Callable
from typing import Any


class Ahead:
    """Asks in a thread, while the caller does something else.

    Attributes:
        about: what was asked.
    """

    def __init__(self, about: object, ask: Callable[[], dict[str, Any]]) -> None:
        """Begin.

        Args:
            about: what is asked.
            ask: gives the answer.
        """
        self.about = about
        self._answer: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._work, args=(ask,), daemon=True)
        self._thread.start()

    def wait(self) -> dict[str, Any] | None:
        """Return the answer; None if there is none."""
        self._thread.join()
        return self._answer

    def stop(self, close: Callable[[], None]) -> None:
        """End what is asked, and whatever it starts instead, until the thread gives up."""
        while self._thread.is_alive():
            close()
            self._thread.join(0.02)

    def _work(self, ask: Callable[[], dict[str, Any]]) -> None:
        try:
            self._answer = ask()
        except Exception:  # whoever runs the model will see it, and say so
            self._answer = None
