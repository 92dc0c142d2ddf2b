"""A runtime for tests of the process around it: it echoes, sleeps, talks and crashes."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.runners.transport import Failure, Handler

_STATE = {"answered": 0}


def handlers() -> dict[str, Handler]:
    """Return what answers questions."""
    print("hello from the start")
    return {
        "echo": _echo,
        "talk": _talk,
        "sleep": _sleep,
        "crash": _crash,
        "crash_later": _crash_later,
        "leave": _leave,
        "fail": _fail,
        "bug": _bug,
    }


def _echo(question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
    _STATE["answered"] += 1
    answer = {"said": question.get("say"), "answered": _STATE["answered"], "id": os.getpid()}
    answer["variable"] = os.environ.get("IR_SCATTER_TEST")
    return answer, list(arrays)


def _talk(question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
    print("noise on standard output", flush=True)
    os.write(1, b"noise from native code\n" * 10_000)
    sys.stderr.write("noise on standard error\n")
    return {"read": os.read(0, 10).decode()}, []


def _sleep(question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
    _STATE["answered"] += 1
    time.sleep(question["seconds"])
    return {}, []


def _crash(question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
    os.kill(os.getpid(), signal.Signals[question["signal"]])
    return {}, []


def _crash_later(question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
    """Crash only in a process that has answered before."""
    if _STATE["answered"]:
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"answered": 0}, []


def _leave(question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
    os.write(2, b"first words\nlast words\n")
    os._exit(3)


def _fail(question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
    raise Failure("refused", "I will not")


def _bug(question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
    return {"value": 1 // 0}, []
