"""The side of a runtime: answers one question after the other, until nobody asks any more."""

import contextlib
import json
import os
import shutil
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from types import ModuleType
from typing import IO, Any, TypeAlias

from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners import arena

_OWN = ("ir_scatter", "tests", "__main__")
"""Packages whose failures are bugs of ours."""

_LONGEST = 400

ON_DISK = "on_disk"
"""Set in an answer whose arrays are too many to be held in memory."""

Handler: TypeAlias = Callable[[dict[str, Any], Sequence[Array]], tuple[dict[str, Any], list[Array]]]
"""Takes a question and its arrays and gives an answer and its arrays."""


class Failure(Exception):
    """A runtime does not do what it is asked to.

    Attributes:
        status: the word of `Status` for it.
        message: in the runtime's own words.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(slots=True)
class _Connection:
    """What joins this process with its parent.

    Attributes:
        answers: where they go.
        folders: for arrays.
        questions: those that wait.
    """

    answers: IO[bytes]
    folders: list[str]
    questions: "SimpleQueue[bytes]"


_CONNECTION: list[_Connection] = []


def start(module: str, folders: list[str]) -> None:
    """Take standard input and output for questions and answers, and run the module's `main`.

    Whatever it prints, and whatever native code prints, goes to standard error. The process ends
    when nobody can ask any more, whatever it may be doing at the time.

    Args:
        module: has the function `main`, which calls `serve`.
        folders: for arrays; they are removed in the end.
    """
    _no_core_dumps()
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    connection = _Connection(answers, folders, SimpleQueue())
    _CONNECTION[:] = [connection]
    threading.Thread(target=_listen, args=(questions, connection), daemon=True).start()
    try:
        main = import_module(module).main
    except Exception as error:
        if not _is_of_others(error):
            raise
        message = _told(error)
        serve({}, lambda: Failure("unavailable", message))
    main()


def needs(*names: str) -> Callable[[], Failure | None]:
    """Return what tells whether packages can be imported, and what they lack.

    Args:
        names: of what is used of them, with the module: "openvino.Core".
    """

    def problem() -> Failure | None:
        for name in names:
            module, _, attribute = name.rpartition(".")
            try:
                getattr(import_module(module), attribute)
            except BaseException as error:  # a package that wants to leave is no better
                return Failure("unavailable", f"{module} cannot be imported: {_told(error)}")
        return None

    return problem


def serve(handlers: Mapping[str, Handler], problem: Callable[[], Failure | None] = lambda: None) -> None:
    """Answer questions, which are lines of JSON, with lines of JSON; never return.

    Args:
        handlers: by the word that a question has under "do".
        problem: asked once, when the first question has come; what it gives is then every answer.
    """
    (connection,) = _CONNECTION
    failure: Failure | None = None
    number = 0
    while True:
        number += 1
        question = json.loads(connection.questions.get())
        failure = problem() if number == 1 else failure
        answer: dict[str, Any]
        if failure is None:
            answer = _answer(handlers, question, connection.folders, f"answer_{number}")
        else:
            answer = {"status": failure.status, "message": failure.message}
        connection.answers.write(json.dumps(answer).encode() + b"\n")
        connection.answers.flush()


def _listen(questions: IO[bytes], connection: _Connection) -> None:
    for line in questions:
        connection.questions.put(line)
    for folder in connection.folders:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _answer(
    handlers: Mapping[str, Handler], question: dict[str, Any], folders: list[str], name: str
) -> dict[str, Any]:
    try:
        arrays = arena.read(*question["arena"], remove=True)
        answer, found = handlers[question["do"]](question, arrays)
        room = folders[-1:] if answer.pop(ON_DISK, False) else folders
        answer["arena"] = arena.write(room, name, found)
    except Failure as failure:
        return {"status": failure.status, "message": failure.message}
    except MemoryError:
        return {"status": "refused", "message": "there is not enough memory"}
    except Exception as error:
        if _is_of_others(error):
            return {"status": "unavailable", "message": _told(error)}
        return {"status": "bug", "message": traceback.format_exc()}
    return answer


def _is_of_others(error: Exception) -> bool:
    """Tell whether a package of somebody else cannot be imported, or lacks what it should have."""
    if isinstance(error, AttributeError):
        if isinstance(error.obj, ModuleType) and not _is_own(error.obj.__name__):
            return True
    elif isinstance(error, ImportError) and error.name and not _is_own(error.name):
        return True
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(
        frame.f_code.co_name == "<module>" and not _is_own(frame.f_globals.get("__name__", _OWN[0]))
        for frame in frames
    )


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in _OWN


def _told(error: BaseException) -> str:
    """Return what a package said when it could not be imported, on one line."""
    text = " ".join(str(error).split())
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


def _no_core_dumps() -> None:
    """Let a crash be quick, and leave nothing behind."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
