"""Processes of runners that outlive the runner: starting one imports a runtime, which most tests do not test."""

import os
import sys
import threading
from typing import Any

from ir_scatter.core.process import Child, _Process

_OF_ONE_TEST = {"COLUMNS", "FORCE_COLOR", "NO_COLOR", "PYTEST_CURRENT_TEST", "IR_SCATTER_DEBUG"}
"""Variables that a runner's process does not read."""
_MOST_IDLE = 6

_Key = tuple[Any, ...]
_idle: list[tuple[_Key, _Process]] = []
_lock = threading.Lock()


class KeptChild(Child):
    """A child that leaves its process to the next one of the same module and environment.

    A process that crashed, ran out of time or was interrupted is ended, as always.
    """

    _is_asked = False

    def ask(self, name: str, *arguments: Any, limit: float, again: bool = True) -> tuple[Any, str]:
        self._is_asked = True
        answer = super().ask(name, *arguments, limit=limit, again=again)
        self._is_asked = False
        return answer

    def close(self) -> None:
        process = self._process
        if process is None or self._is_asked or process.questions == self._most or not _is_usable(process):
            super().close()
            return
        self._process = None
        with _lock:
            _idle.append((self._key(), process))
            surplus = _idle[:-_MOST_IDLE]
            del _idle[:-_MOST_IDLE]
        for _, process in surplus:
            process.end()

    def __del__(self) -> None:
        self.close()

    def _key(self) -> _Key:
        ours = {name: value for name, value in os.environ.items() if name not in _OF_ONE_TEST}
        added = self._environment()
        return self._module, self._packages, tuple(sys.path), *sorted(ours.items()), *sorted(added.items())

    def _started(self) -> _Process:
        if self._process is None:
            key = self._key()
            with _lock:
                fitting = [entry for entry in _idle if entry[0] == key]
                for entry in fitting[::-1]:
                    _idle.remove(entry)
                    if _is_usable(entry[1]):
                        self.starts += 1
                        self._process = entry[1]
                        break
        return super()._started()


def _is_usable(process: _Process) -> bool:
    return process.is_ours and process.popen.poll() is None
