"""Processes that answer for one file after the other, and may end or hang over any of them."""

import json
import os
import resource
import selectors
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.formats.ir_files import ROOT

_SECONDS = 30
_MEMORY = 6 << 30

Look = Callable[[str], dict[str, Any]]


class Child:
    """A process of a module that calls `answer`; it is started again if it ends or hangs."""

    def __init__(self, module: str, kind: str) -> None:
        self._command = [sys.executable, "-m", module, kind]
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[str]":
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(self._command, cwd=ROOT, text=True, **pipes)

    def ask(self, path: Path) -> dict[str, Any] | None:
        """Return the answer; None if the process ended, or was ended because it took too long."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(path, file=self.process.stdin, flush=True)
        with selectors.DefaultSelector() as selector:  # select() takes no descriptor above 1023
            selector.register(self.process.stdout, selectors.EVENT_READ)
            has_answered = selector.select(_SECONDS)
        line = self.process.stdout.readline() if has_answered else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.process.kill()
        self.process.communicate()
        self.process = self._start()
        return None

    def close(self) -> None:
        self.process.communicate()


def answer(looks: Mapping[str, Look]) -> None:
    """Answer for each path on standard input, in the way that the command line names."""
    look = looks[sys.argv[1]]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    for line in sys.stdin:
        path = line.rstrip("\n")
        try:
            found = look(path)
        except BaseException:
            found = {"bug": traceback.format_exc()}
        print(json.dumps(found), file=answers, flush=True)
