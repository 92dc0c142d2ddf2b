"""How a question reaches the process that holds a runtime, and how that process answers.

A question and an answer are what JSON can say; arrays go along in files.
"""

import contextlib
import json
import os
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ir_scatter.core.process import Process, Stopped

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_SHARED_MEMORY = Path("/dev/shm")
_LONGEST = 400

ON_DISK = "on_disk"
"""Set in an answer whose arrays are too many to be held in memory."""

Answer: TypeAlias = "tuple[dict[str, Any], list[Array]]"
"""Has a word of `Status` under "status", and a "message" where it is not "ok"."""

Handler: TypeAlias = "Callable[[dict[str, Any], list[Array]], Answer]"


class Transport(Protocol):
    """Reaches a process that holds a runtime."""

    def ask(self, question: Mapping[str, Any], arrays: "Sequence[Array]", limit: float) -> Answer:
        """Return the answer; that there is none within the limit of seconds is one as well."""

    def tell(self, question: Mapping[str, Any]) -> None:
        """Ask for something that only makes later answers quicker, and do not wait."""

    def close(self) -> None:
        """End the process, if there is one."""


class ChildTransport(Transport):
    """Starts a process when it is needed, and another one after a crash.

    Attributes:
        starts: how many processes there were so far.
    """

    def __init__(
        self,
        module: str,
        environment: Callable[[], Mapping[str, str]] = dict,
        questions_per_process: int | None = None,
    ) -> None:
        """Make a transport; nothing is started yet.

        Args:
            module: has the function `handlers`, which imports the runtime and gives a `Handler` for each
                word that a question may have under "do".
            environment: gives what is added to the environment of the process; called when it starts.
            questions_per_process: after how many of them a new process takes over.
        """
        self.starts = 0
        self._module = module
        self._environment = environment
        self._most = questions_per_process
        self._process: Process | None = None
        self._lock = threading.Lock()

    @property
    def process_id(self) -> int | None:
        """Return the id of the process, None if there is none."""
        return None if self._process is None else self._process.id

    def ask(self, question: Mapping[str, Any], arrays: "Sequence[Array]", limit: float) -> Answer:
        """Return the answer and its arrays.

        A process that has worked before and crashes now may have been damaged then: the question is
        asked once more, in a new one. The answer then has under "died" how the other ended.

        Raises:
            RuntimeError: what answers has a bug.
        """
        died: dict[str, Any] = {}
        with self._lock:
            while True:
                is_fresh = not self._is_usable()
                try:
                    answer, found = self._ask(question, arrays, limit)
                    break
                except Stopped as stopped:
                    if is_fresh or stopped.status != "crashed":
                        return {"status": stopped.status, "message": stopped.message}, []
                    died["died"] = stopped.message
        if answer["status"] == "bug":
            raise RuntimeError(answer["message"])
        return {**answer, **died}, found

    def tell(self, question: Mapping[str, Any]) -> None:
        """Ask for something that only makes later answers quicker, and do not wait."""
        with self._lock, contextlib.suppress(Stopped):  # whoever asks next will see it
            self._started().tell(json.dumps(question).encode())

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _is_usable(self) -> bool:
        process = self._process
        return (
            process is not None and process.is_ours and (self._most is None or process.questions < self._most)
        )

    def _started(self) -> Process:
        if not self._is_usable():
            self.close()
            self.starts += 1
            self._process = Process(
                __name__, self._module, environment=self._environment(), folders=_fast_folders()
            )
        assert self._process is not None
        return self._process

    def _ask(self, question: Mapping[str, Any], arrays: "Sequence[Array]", limit: float) -> Answer:
        process = self._started()
        try:
            sent = _with_arrays(question, arrays, process.folders, f"question_{process.questions}")
            answer = json.loads(process.ask(sent, limit))
        except BaseException:
            self.close()
            raise
        return answer, _arrays_of(answer)


def _with_arrays(
    message: Mapping[str, Any], arrays: "Sequence[Array]", folders: Sequence[str], name: str
) -> bytes:
    """Return a message with arrays that lie in a file."""
    if arrays:
        from ir_scatter.runners.arrays import write

        message = {**message, "arrays": write(folders, name, arrays)}
    return json.dumps(message).encode()


def _arrays_of(message: Mapping[str, Any]) -> "list[Array]":
    if "arrays" not in message:
        return []
    from ir_scatter.runners.arrays import read

    return read(*message["arrays"])


def _fast_folders() -> list[str]:
    """Make a folder in shared memory, where there is some."""
    if sys.platform == "linux" and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        with contextlib.suppress(OSError):
            return [tempfile.mkdtemp(prefix="ir_scatter_", dir=_SHARED_MEMORY)]
    return []


class Failure(Exception):
    """A runtime does not do what it is asked to; raised by handlers.

    Attributes:
        status: the word of `Status` for it.
        message: in the runtime's own words.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def require(*names: str) -> None:
    """Import what is used of packages.

    Args:
        names: with the module: "openvino.Core".

    Raises:
        Failure: a package cannot be imported, or lacks something.
    """
    for name in names:
        module, _, attribute = name.rpartition(".")
        try:
            getattr(import_module(module), attribute)
        except BaseException as error:  # a package that wants to leave is no better
            raise Failure("unavailable", f"{module} cannot be imported: {_words(error)}") from None


def shortened(message: str) -> str:
    """Return a message on one line, and not too much of it."""
    text = " ".join(message.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def main(module: str, folders: Sequence[str]) -> Callable[[bytes], bytes]:
    """Return what answers questions in the process of a runtime, by the `handlers` of a module."""
    handlers: Mapping[str, Handler] = {}
    problem: Failure | None = None
    try:
        handlers = import_module(module).handlers()
    except Failure as failure:
        problem = failure
    except BaseException as error:
        problem = Failure("unavailable", _words(error))

    numbers = count()

    def answer(question: bytes) -> bytes:
        found: dict[str, Any]
        try:
            if problem is not None:
                raise problem
            asked = json.loads(question)
            found, arrays = handlers[asked["do"]](asked, _arrays_of(asked))
            room = folders[-1:] if found.pop(ON_DISK, False) else folders
            return _with_arrays({"status": "ok", **found}, arrays, room, f"answer_{next(numbers)}")
        except Failure as failure:
            found = {"status": failure.status, "message": failure.message}
        except MemoryError:
            found = {"status": "refused", "message": "there is not enough memory"}
        except ImportError as error:
            found = {"status": "unavailable", "message": _words(error)}
        except Exception:
            found = {"status": "bug", "message": traceback.format_exc()}
        return json.dumps(found).encode()

    return answer


def _words(error: BaseException) -> str:
    """Return what a package said when it could not be imported."""
    shown = shortened(str(error))
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__
