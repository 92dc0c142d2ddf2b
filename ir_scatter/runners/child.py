"""Run a module of this library in a child process with a time limit."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

from ir_scatter.core.shapes import counted

TIME_LIMIT = 300.0

_START = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "runpy.run_module(sys.argv[1], run_name='__main__')"
)
"""Modules are looked for where this process finds them, not where it was called."""


def ask(module: str, question: Any, time_limit: float = TIME_LIMIT) -> tuple[Any, str]:
    """Send JSON to a module's standard input and return its answer and, if there is none, why.

    Args:
        module: run with `python -m`; answers with JSON on standard output.
        question: anything that JSON can say.
        time_limit: in seconds.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _START, module, json.dumps(import_paths())],
            input=json.dumps(question).encode(),
            capture_output=True,
            timeout=time_limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {counted(round(time_limit), 'second')}"
    except OSError as error:
        return None, f"the process could not be started: {error.strerror}"
    if done.returncode < 0:
        return None, f"the process crashed ({signal.Signals(-done.returncode).name})"
    try:
        return json.loads(done.stdout), ""
    except ValueError:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return None, lines[-1] if lines else f"the process ended with {done.returncode}"


def import_paths() -> list[str]:
    """Return where this process finds modules, so that another finds the same."""
    return [path or os.getcwd() for path in sys.path]
