"""A child process that is kept and fed: for work that may crash, hang or ask for too much.

Questions and answers are bytes. The child runs `main` of a module, which is given an argument and
folders and returns the function that answers:

    def main(argument: str, folders: Sequence[str]) -> Callable[[bytes], bytes]: ...

Whatever it prints, and whatever native code prints, goes to a file that tells how it ended. It ends with
its parent, however that ends, and takes its files along.
"""

import atexit
import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from queue import Empty, SimpleQueue
from time import monotonic
from typing import IO, Literal, NoReturn, TypeAlias

from ir_scatter.core.shapes import counted

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from ir_scatter.core.process import serve; serve(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))"
)
"""Modules are looked for where the parent finds them, not where it was called."""

_LENGTH = struct.Struct("<Q")
_NOISE_BYTES = 4096
_LONGEST = 1e6
"""Seconds; a wait without end is one that a clock cannot hold."""

_OF_THE_PARENT: "list[Process]" = []
"""What a fork got from its parent and must neither use nor clean up."""

_Messages: TypeAlias = "SimpleQueue[bytes | None]"


class Stopped(Exception):
    """The process gave no answer.

    Attributes:
        status: "crashed", "timeout", or "unavailable" if it could not be started.
        message: how it ended.
    """

    def __init__(self, status: Literal["crashed", "timeout", "unavailable"], message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Process:
    """One child process.

    Attributes:
        id: of the process.
        folders: for files that go with questions and answers; they are removed with the process.
        questions: how many were asked.
    """

    def __init__(
        self,
        module: str,
        argument: str = "",
        *,
        environment: Mapping[str, str] | None = None,
        folders: Sequence[str] = (),
    ) -> None:
        """Start it.

        Args:
            module: has the function `main`.
            argument: what that is given.
            environment: what is added to our own.
            folders: that are its own from now on; one for temporary files is added.

        Raises:
            Stopped: it cannot be started.
        """
        self.folders = [*folders, tempfile.mkdtemp(prefix="ir_scatter_")]
        self.questions = 0
        self._owner = os.getpid()
        self._noise = os.path.join(self.folders[-1], "noise")
        paths = json.dumps([path or os.getcwd() for path in sys.path])
        command = [sys.executable, "-P", "-c", _START, paths, module, argument, json.dumps(self.folders)]
        try:
            with open(self._noise, "ab") as noise:
                self._popen = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=noise,
                    env={**os.environ, **(environment or {})},
                    start_new_session=True,
                )
        except OSError as error:
            _remove(self.folders)
            raise Stopped("unavailable", f"the process could not be started: {error.strerror}") from None
        atexit.register(self.end)
        self.id = self._popen.pid
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._stdin = self._popen.stdin
        self._waiting = 0
        self._answers: _Messages = SimpleQueue()
        self._reader = threading.Thread(
            target=_forward, args=(self._popen.stdout, self._answers), daemon=True
        )
        self._reader.start()

    @property
    def is_ours(self) -> bool:
        """Tell whether it may be asked: one that was there before a fork is the parent's."""
        return self._owner == os.getpid()

    def tell(self, question: bytes) -> None:
        """Ask what nobody waits for.

        Raises:
            Stopped: the process has ended.
        """
        self.questions += 1
        self._waiting += 1
        try:
            _write(self._stdin, question)
        except OSError:
            raise Stopped("crashed", self._how_it_ended()) from None

    def ask(self, question: bytes, limit: float) -> bytes:
        """Return the answer; whoever gets an exception instead must end the process.

        Args:
            question: what is asked.
            limit: in seconds, what was told before included.

        Raises:
            Stopped: there is no answer.
        """
        deadline = monotonic() + min(limit, _LONGEST)
        if not self._waiting:
            os.truncate(self._noise, 0)
        self.tell(question)
        while True:
            try:
                answer = self._answers.get(timeout=max(deadline - monotonic(), 0.001))
            except Empty:
                raise Stopped("timeout", f"no answer within {counted(limit, 'second')}") from None
            if answer is None:
                raise Stopped("crashed", self._how_it_ended())
            self._waiting -= 1
            if not self._waiting:
                return answer

    def end(self) -> None:
        """Kill the process and remove its files."""
        atexit.unregister(self.end)
        if not self.is_ours:
            _OF_THE_PARENT.append(self)
            return
        self._popen.kill()
        self._popen.wait()
        self._reader.join()
        with contextlib.suppress(OSError):  # what is left to flush has nowhere to go
            self._stdin.close()
        _remove(self.folders)

    def _how_it_ended(self) -> str:
        code = self._popen.wait()
        if code < 0:
            names = {one.value: one.name for one in signal.Signals}
            return f"the process crashed ({names.get(-code, f'signal {-code}')})"
        with open(self._noise, "rb") as file:
            file.seek(max(os.path.getsize(self._noise) - _NOISE_BYTES, 0))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1].strip()}" if lines else ""
        return f"the process ended with {code}{last}"


def serve(module: str, argument: str, folders: Sequence[str]) -> NoReturn:
    """Answer questions from standard input on standard output; what runs in the child process.

    The process ends when nobody can ask any more, whatever it may be doing at the time.
    """
    _leave_no_core_dumps()
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    waiting: _Messages = SimpleQueue()

    def listen() -> None:
        _forward(questions, waiting)
        _remove(folders)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    answer: Callable[[bytes], bytes] = import_module(module).main(argument, folders)
    while True:
        question = waiting.get()
        if question is not None:
            _write(answers, answer(question))


def _forward(file: IO[bytes], messages: _Messages) -> None:
    """Hand on whole messages; None when there are no more."""
    with file:
        while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
            (length,) = _LENGTH.unpack(head)
            message = file.read(length)
            if len(message) == length:
                messages.put(message)
    messages.put(None)


def _write(file: IO[bytes], message: bytes) -> None:
    file.write(_LENGTH.pack(len(message)))
    file.write(message)
    file.flush()


def _remove(folders: Sequence[str]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _leave_no_core_dumps() -> None:
    """Let a crash be quick."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
