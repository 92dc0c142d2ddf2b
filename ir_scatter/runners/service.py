"""The side of a runtime: answers one question after the other, until nobody asks any more."""

import contextlib
import json
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from typing import IO, Any, TypeAlias

from ir_scatter.ops.plain.case import Array
from ir_scatter.runners import arena

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
    import_module(module).main()


def serve(handlers: Mapping[str, Handler]) -> None:
    """Answer questions, which are lines of JSON, with lines of JSON; never return.

    Args:
        handlers: by the word that a question has under "do".
    """
    (connection,) = _CONNECTION
    number = 0
    while True:
        number += 1
        question = json.loads(connection.questions.get())
        answer = _answer(handlers, question, connection.folders, f"answer_{number}")
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
        answer["arena"] = arena.write(folders, name, found)
    except Failure as failure:
        return {"status": failure.status, "message": failure.message}
    except MemoryError:
        return {"status": "refused", "message": "there is not enough memory"}
    except Exception:
        return {"status": "bug", "message": traceback.format_exc()}
    return answer


def _no_core_dumps() -> None:
    """Let a crash be quick, and leave nothing behind."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def import_paths() -> list[str]:
    """Return where this process finds modules, so that another finds the same."""
    return [path or os.getcwd() for path in sys.path]
