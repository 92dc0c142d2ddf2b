"""A runtime for tests of the process around it: it echoes, sleeps, talks and crashes."""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from ir_scatter.core.process import Failure

_STATE = {"answered": 0}


def handlers() -> dict[str, Callable[..., Any]]:
    """Return what answers questions."""
    print("hello from the start")
    return {
        "echo": _echo,
        "state": _state,
        "talk": _talk,
        "sleep": _sleep,
        "fork": _fork,
        "crash": _crash,
        "crash_later": _crash_later,
        "leave": _leave,
        "fail": _fail,
        "bug": lambda: 1 // 0,
        "bug_later": lambda: 1 // (_STATE["answered"] == 0),
        "greedy": _greedy,
    }


def _echo(value: Any = None) -> Any:
    _STATE["answered"] += 1
    return value


def _state() -> dict[str, Any]:
    _STATE["answered"] += 1
    return {"answered": _STATE["answered"], "id": os.getpid(), "variable": os.environ.get("IR_SCATTER_TEST")}


def _talk() -> str:
    print("noise on standard output", flush=True)
    os.write(1, b"noise from native code\n" * 10_000)
    sys.stderr.write("noise on standard error\n")
    return os.read(0, 10).decode()


def _sleep(seconds: float) -> None:
    _STATE["answered"] += 1
    time.sleep(seconds)


def _fork(seconds: float) -> None:
    """Hang, and so does a fork that holds all that is open here."""
    os.fork()
    time.sleep(seconds)


def _crash(name: str) -> None:
    os.kill(os.getpid(), signal.Signals[name])


def _crash_later() -> int:
    """Crash only in a process that has answered before."""
    if _STATE["answered"]:
        os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def _leave() -> None:
    os.write(2, b"first words\nlast words\n")
    os._exit(3)


def _fail() -> None:
    raise Failure("refused", "I will not")


def _greedy() -> None:
    raise MemoryError
