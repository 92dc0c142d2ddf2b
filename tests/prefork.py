"""The command line in a process of its own, which is forked and not started: 0.03 s, not 0.4 s.

For tests of what a command reads and writes at the ends of its process. What a start imports, and how a process
ends by signals, is tested with the installed script.
"""

import array
import atexit
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

_PRELOADED = (
    "numpy", "lxml.etree", "onnx", "rich.console", "rich.table", "jinja2", "ir_scatter.lint", "ir_scatter.inspect",
    "ir_scatter.settings", "ir_scatter.evaluate", "ir_scatter.convert.pipeline", "ir_scatter.compare.run",
    "ir_scatter_cli.validate", "ir_scatter_cli.inspect", "ir_scatter_cli.convert", "ir_scatter_cli.run",
    "ir_scatter_cli.compare", "ir_scatter_cli.explain", "ir_scatter_cli.rules",
)  # fmt: skip
_LENGTH = 8


class Prefork:
    """A kept process that forks for each command."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", str(Path(__file__).resolve()), str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._process.wait(60)

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], files: Sequence[int]) -> int:
        """Run a command in the current folder with these files as its standard ones; return its exit code."""
        request = json.dumps([arguments, dict(environment), os.getcwd()]).encode()
        self._socket.sendmsg(
            [len(request).to_bytes(_LENGTH, "big")],
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))],
        )
        self._socket.sendall(request)
        return int.from_bytes(_received(self._socket, _LENGTH), "big", signed=True)

    def captured(
        self, arguments: Sequence[str], environment: Mapping[str, str], data: bytes
    ) -> tuple[int, bytes, bytes]:
        """Run a command with data in its standard input; return its exit code, and what it wrote."""
        with ExitStack() as stack:
            pipes = [
                [stack.enter_context(_opened(end)) for end in zip(os.pipe(), ("rb", "wb"), strict=True)]
                for _ in range(3)
            ]
            (theirs, ours), *outputs = pipes
            written = {"out": b"", "err": b""}

            def feed() -> None:
                with ours:
                    ours.write(data)

            def drain(name: str, file: io.FileIO) -> None:
                written[name] = file.readall()

            threads = [threading.Thread(target=feed)]
            for name, (reader, _) in zip(written, outputs, strict=True):
                threads.append(threading.Thread(target=drain, args=(name, reader)))
            for thread in threads:
                thread.start()
            files = [theirs, outputs[0][1], outputs[1][1]]
            code = self.run(arguments, environment, [file.fileno() for file in files])
            for file in files:
                file.close()
            for thread in threads:
                thread.join()
            return code, written["out"], written["err"]


def _opened(end: tuple[int, str]) -> io.FileIO:
    number, mode = end
    return io.FileIO(number, mode)


def _received(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        received += (part := connection.recv(count - len(received)))
        if not part:
            raise EOFError
    return received


def _serve(connection: socket.socket) -> None:
    for name in _PRELOADED:
        import_module(name)
    while True:
        try:
            head, files, _, _ = socket.recv_fds(connection, _LENGTH, 3)
            arguments, environment, folder = json.loads(_received(connection, int.from_bytes(head, "big")))
        except (EOFError, ValueError):
            return
        process = os.fork()
        if not process:
            connection.close()
            _run(arguments, environment, folder, files)
        for file in files:
            os.close(file)
        _, status = os.waitpid(process, 0)
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(_LENGTH, "big", signed=True))


def _run(arguments: list[str], environment: dict[str, str], folder: str, files: list[int]) -> NoReturn:
    """Become the command, as the script would in a new process."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    modes: tuple[Any, ...] = ("r", "w", "w")
    sys.stdin, sys.stdout, sys.stderr = (_text(number, mode) for number, mode in enumerate(modes))
    sys.argv = ["ir-scatter", *arguments]
    code: Any = 0
    try:
        import_module("ir_scatter_cli.main").main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        file.flush()
    os._exit(code if isinstance(code, int) else 1)


def _text(number: int, mode: str) -> Any:
    errors = "backslashreplace" if number == 2 else "strict"
    buffer = open(number, f"{mode}b", closefd=False)  # noqa: SIM115
    is_line = number == 2 or os.isatty(number)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=is_line)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
