"""A process that is kept and fed: it holds a runtime, and may crash."""

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import IO, Any

from ir_scatter.core.shapes import counted
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners import arena
from ir_scatter.runners.child import import_paths
from ir_scatter.runners.outcome import Status

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from ir_scatter.runners.service import start; start(sys.argv[1], json.loads(sys.argv[3]))"
)
_NOISE_BYTES = 4096
_LONGEST = 1e6
"""Seconds; a wait without end is one that a clock cannot hold."""

_OF_THE_PARENT: "list[_Process]" = []
"""What a fork got from its parent and must neither use nor clean up."""


class Stopped(Exception):
    """The process ended without an answer.

    Attributes:
        status: crashed, timeout, or unavailable if it could not be started.
        message: how it ended.
    """

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Worker:
    """Starts a process when it is needed, asks it, and starts another after a crash.

    Attributes:
        module: has the function `main`, which serves.
        starts: how many processes there were so far.
    """

    def __init__(
        self,
        module: str,
        environment: Callable[[], Mapping[str, str]] = lambda: {},
        questions_per_process: int | None = None,
    ) -> None:
        """Make a worker; nothing is started yet.

        Args:
            module: has the function `main`, which serves.
            environment: gives what is added to the environment of the process; called when it starts.
            questions_per_process: after how many of them a new process takes over.
        """
        self.module = module
        self.starts = 0
        self._environment = environment
        self._most = questions_per_process
        self._process: _Process | None = None
        self._lock = threading.Lock()

    @property
    def process_id(self) -> int | None:
        """Return the id of the process, None if there is none."""
        return None if self._process is None else self._process.id

    def ask(
        self, question: Mapping[str, Any], arrays: Sequence[Array], time_limit: float
    ) -> tuple[dict[str, Any], list[Array]]:
        """Return the answer and its arrays.

        A process that has worked before and crashes now may have been damaged then: the question is
        asked once more, in a new one. The answer then has under "died" how the other ended.

        Args:
            question: anything that JSON can say, with a word under "do".
            arrays: what goes with it.
            time_limit: in seconds, the start of a process included.

        Raises:
            Stopped: there is no answer; the next question finds a new process.
        """
        with self._lock:
            is_fresh = not self._is_usable()
            try:
                return self._ask(question, arrays, time_limit)
            except Stopped as stopped:
                if is_fresh or stopped.status is not Status.CRASHED:
                    raise
                died = stopped.message
            answer, found = self._ask(question, arrays, time_limit)
            return {**answer, "died": died}, found

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _is_usable(self) -> bool:
        """Tell whether a process may be asked; one that was there before a fork is the parent's."""
        process = self._process
        if process is None or process.owner != os.getpid():
            return False
        return self._most is None or process.count < self._most

    def _ask(
        self, question: Mapping[str, Any], arrays: Sequence[Array], time_limit: float
    ) -> tuple[dict[str, Any], list[Array]]:
        if not self._is_usable():
            self.close()
            self.starts += 1
            self._process = _Process(self.module, self._environment())
        assert self._process is not None
        try:
            return self._process.ask(question, arrays, time_limit)
        except BaseException:
            self.close()
            raise


class _Process:
    """One process and the pipes to it."""

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        self.owner = os.getpid()
        self._folders = arena.new_folders()
        self._noise = os.path.join(self._folders[-1], "noise")
        self.count = 0
        command = [
            *(sys.executable, "-P", "-c", _START, module),
            *(json.dumps(import_paths()), json.dumps(self._folders)),
        ]
        try:
            with open(self._noise, "ab") as noise:
                self._popen = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=noise,
                    env={**os.environ, **environment},
                    start_new_session=True,
                )
        except OSError as error:
            self._remove_folders()
            raise Stopped(Status.UNAVAILABLE, f"the process could not be started: {error.strerror}") from None
        atexit.register(self.end)
        self.id = self._popen.pid
        self._answers: SimpleQueue[bytes | None] = SimpleQueue()
        self._reader = threading.Thread(
            target=_forward, args=(self._popen.stdout, self._answers), daemon=True
        )
        self._reader.start()

    def ask(
        self, question: Mapping[str, Any], arrays: Sequence[Array], time_limit: float
    ) -> tuple[dict[str, Any], list[Array]]:
        """Return the answer; whoever gets an exception instead must end the process."""
        deadline = monotonic() + min(time_limit, _LONGEST)
        os.truncate(self._noise, 0)
        self.count += 1
        sent = arena.write(self._folders, f"question_{self.count}", arrays)
        self._send(json.dumps({**question, "arena": sent}))
        try:
            line = self._answers.get(timeout=max(deadline - monotonic(), 0.001))
        except Empty:
            message = f"no answer within {counted(time_limit, 'second')}"
            raise Stopped(Status.TIMEOUT, message) from None
        if line is None:
            raise Stopped(Status.CRASHED, self._how_it_ended())
        answer = json.loads(line)
        return answer, arena.read(*answer["arena"], remove=True) if "arena" in answer else []

    def end(self) -> None:
        """Kill the process and remove its files."""
        atexit.unregister(self.end)
        if self.owner != os.getpid():
            _OF_THE_PARENT.append(self)
            return
        self._popen.kill()
        self._popen.wait()
        self._reader.join()
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError):  # what is left to flush has nowhere to go
            self._popen.stdin.close()
        self._remove_folders()

    def _send(self, line: str) -> None:
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(line.encode() + b"\n")
            self._popen.stdin.flush()
        except OSError:
            raise Stopped(Status.CRASHED, self._how_it_ended()) from None

    def _how_it_ended(self) -> str:
        code = self._popen.wait()
        if code < 0:
            return f"the process crashed ({_signal_name(-code)})"
        with open(self._noise, "rb") as file:
            file.seek(max(os.path.getsize(self._noise) - _NOISE_BYTES, 0))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1].strip()}" if lines else ""
        return f"the process ended with {code}{last}"

    def _remove_folders(self) -> None:
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


def _forward(answers: IO[bytes], lines: "SimpleQueue[bytes | None]") -> None:
    """Hand on what the process says; None when it says no more."""
    with answers:
        for line in answers:
            if line.endswith(b"\n"):
                lines.put(line)
    lines.put(None)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
