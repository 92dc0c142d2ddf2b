"""The side of a runtime: answers one question after the other, until nobody asks any more."""

import contextlib
import json
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
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
        status: the word of `Status` for it, or "bad-feed".
        message: in the runtime's own words.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


_PIPES: list[IO[bytes]] = []
"""Where questions come from, and where answers go."""


def start(module: str) -> None:
    """Take standard input and output for questions and answers, and run the module's `main`.

    Whatever it prints, and whatever native code prints, goes to standard error.
    """
    _no_core_dumps()
    _PIPES[:] = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    import_module(module).main()


def serve(handlers: Mapping[str, Handler]) -> None:
    """Answer questions, which are lines of JSON, with lines of JSON.

    The process ends when nobody can ask any more, whatever it may be doing at the time.

    Args:
        handlers: by the word that a question has under "do".
    """
    questions, answers = _PIPES
    folders: list[str] = json.loads(questions.readline())
    waiting: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(questions, waiting, folders), daemon=True).start()
    number = 0
    while True:
        number += 1
        answer = _answer(handlers, json.loads(waiting.get()), folders, f"answer_{number}")
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _listen(questions: IO[bytes], waiting: "SimpleQueue[bytes]", folders: list[str]) -> None:
    for line in questions:
        waiting.put(line)
    for folder in folders:
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
