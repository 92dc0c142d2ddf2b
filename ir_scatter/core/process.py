"""A reusable child process for work that may crash, hang or use too much memory.

A module defines the child's functions: its function `handlers` imports what they need and returns them by
name. Arguments and results are pickled; the bytes of arrays go through a file instead. The reader maps that
file and removes its name, so that no file is left over and unread arrays use no memory.

The output of the child, including that of native code, goes to a file, whose last line explains a crash. The
child ends and removes its files when its parent ends, even if the parent is killed.
"""

import atexit
import contextlib
import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import count
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeAlias

from ir_scatter.core.array_pickler import ArrayPickler
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.errors import CannotWrite
from ir_scatter.core.shortage import demand_memory, shortage
from ir_scatter.core.temporary import explained_temporary, new_folder, remove_after_parent
from ir_scatter.core.words import counted

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from ir_scatter.core.process import serve; serve(sys.argv[2], sys.argv[3])"
)
"""Program of a child that imports modules from the same places as its parent, but not from the current
folder.
"""

_START_APART = (
    "import sys, types; sys.path.append(sys.argv[1]); "
    "ours = sys.modules['ir_scatter'] = types.ModuleType('ir_scatter'); ours.__path__ = sys.argv[4:]; "
    "from ir_scatter.core.process import serve; serve(sys.argv[2], sys.argv[3])"
)
"""Program of a child that imports modules from Python, this library and one folder only, for other
releases of a package.
"""

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_ALIGNMENT = 64
"""Alignment of arrays in a file, in bytes: the most that vector instructions need."""

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""Environment variables that make a child, including its native code, write temporary files to its own
folder.
"""

_NOISE_BYTES = 4096
_LONGEST_WAIT = 1e6
"""Longest wait in seconds: an infinite one would overflow the clock."""

_LONGEST_MESSAGE = 400
_NUMBERS = count()
_OF_THE_PARENT: "list[_Process]" = []
"""Processes that a fork has inherited from its parent, and must neither use nor clean up."""

_Message: TypeAlias = tuple[bytes, str]
"""A pickle, and the path of the file with its arrays, "" if there are no bytes."""

_Messages: TypeAlias = "SimpleQueue[_Message | None]"


class Failure(Exception):
    """A child process returned no result.

    The status is "crashed", "timeout" or "unavailable"; handlers also raise it with "refused" or
    "unsupported" and the runtime's message. `at_inference` is True if the model was loaded and failed on its
    inputs.
    """

    at_inference = False

    def __init__(self, status: str, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message


def python_command(*words: str) -> list[str]:
    """Return the command of a Python process that imports nothing from the current folder.

    This is the only place that names the Python executable. The option -P keeps PYTHONPATH and the user's
    packages, where runtimes may be installed.
    """
    return [sys.executable, "-P", *words]


_ENVIRONMENT = threading.Lock()


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Keep processes spawned by `multiprocessing` in this block from importing from the current folder.

    An environment variable does that, as their command cannot be changed.
    """
    name = "PYTHONSAFEPATH"
    with _ENVIRONMENT:
        before = os.environ.get(name)
        os.environ[name] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before


class Child:
    """Runs handlers of a module in a child process, started when needed and replaced after a crash."""

    def __init__(
        self,
        module: str,
        environment: Callable[[], Mapping[str, str]] = dict,
        questions_per_process: int | None = None,
        packages: str = "",
    ) -> None:
        """Prepare a child; its process starts with the first call of `ask`.

        Args:
            module: the module whose `handlers` the child serves.
            environment: returns additional environment variables when a process starts.
            questions_per_process: after this many questions a new process takes over; None for no limit.
            packages: a folder of packages; the child then finds no other packages.
        """
        self.starts = 0
        self._module = module
        self._environment = environment
        self._most = questions_per_process
        self._packages = packages
        self._process: _Process | None = None
        self._lock = threading.Lock()

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.popen.pid

    def ask(self, name: str, *arguments: Any, limit: float, again: bool = True) -> tuple[Any, str]:
        """Call a handler in the child; return its result and how an earlier attempt crashed, or "".

        A process that has already worked may be damaged. If it crashes, or the handler raises an unexpected
        error, a new process tries once more, unless `again` is False.

        Raises:
            Failure: there is no result, or none within `limit` seconds.
            RuntimeError: the handler has a bug.
        """
        died = ""
        with self._lock:
            while True:
                process = self._started()
                is_fresh = not process.questions
                try:
                    result, problem = _unpacked(process.ask(name, arguments, limit))
                    if type(problem) is RuntimeError and not is_fresh:
                        raise Failure("crashed", "the process is damaged")
                    break
                except BaseException as error:
                    self.close()
                    if not isinstance(error, Failure) or error.status != "crashed" or is_fresh or not again:
                        raise
                    died = error.message
        try:
            if problem is not None:
                raise problem
        finally:
            del problem  # the traceback refers to this frame, and so to the arrays
        return result, died

    def start(self) -> None:
        """Start a process, which imports its modules; do not wait for it."""
        with self._lock, contextlib.suppress(Failure):  # `ask` reports a failure
            self._started()

    def interrupt(self) -> None:
        """Kill the process; an `ask` that waits in another thread raises Failure("crashed")."""
        if self._process is not None:
            self._process.popen.kill()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _started(self) -> "_Process":
        process = self._process
        if process is not None and process.is_ours and process.questions != self._most:
            return process
        self.close()
        self.starts += 1
        self._process = process = _Process(self._module, self._environment(), self._packages)
        return process


class _Process:
    """One child process; the caller must `end` it after an exception from `ask`."""

    def __init__(self, module: str, environment: Mapping[str, str], packages: str) -> None:
        try:
            self.folder = new_folder()
        except CannotWrite as error:
            raise Failure("unavailable", f"the process could not be started: {error}") from None
        self.questions = 0
        self._owner = os.getpid()
        self._noise = os.path.join(self.folder, "noise")
        paths = json.dumps([path or os.getcwd() for path in sys.path])
        command = python_command("-c", _START, paths, module, self.folder)
        if packages:
            command = python_command("-IS", "-c", _START_APART, packages, module, self.folder, _OURS)
        try:
            with open(self._noise, "ab") as noise:
                self.popen = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=noise,
                    env={**os.environ, **dict.fromkeys(_TEMPORARY, self.folder), **environment},
                    start_new_session=True,
                )
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            message = f"the process could not be started: {(error.strerror or str(error)).lower()}"
            raise Failure("unavailable", message) from None
        atexit.register(self.end)
        self._answers: _Messages = SimpleQueue()
        arguments = (self.popen.stdout, self._answers)
        self._reader = threading.Thread(target=_forward, args=arguments, daemon=True)
        try:
            self._reader.start()
        except RuntimeError as error:  # the system allows no more threads
            self.end()
            raise Failure("unavailable", f"the process could not be started: {error}") from None

    @property
    def is_ours(self) -> bool:
        """Return whether this process started the child, rather than inherited it by a fork."""
        return self._owner == os.getpid()

    def ask(self, name: str, arguments: tuple[Any, ...], limit: float) -> _Message:
        message = _packed((name, arguments), self.folder)
        if self.questions:
            os.truncate(self._noise, 0)
        self.questions += 1
        assert self.popen.stdin is not None
        with contextlib.suppress(OSError):  # the child has ended
            pickle.dump(message, self.popen.stdin, 5)
            self.popen.stdin.flush()
        try:
            answer = self._answers.get(timeout=min(limit, _LONGEST_WAIT))
        except Empty:
            raise Failure("timeout", f"no answer within {counted(limit, 'second')}") from None
        if answer is None:
            raise Failure("crashed", self._how_it_ended())
        return answer

    def end(self) -> None:
        """Kill the process and its children, and remove its files."""
        atexit.unregister(self.end)
        if not self.is_ours:
            _OF_THE_PARENT.append(self)
            return
        if hasattr(os, "killpg"):  # its children would keep its pipe open, so that the reader would never end
            with contextlib.suppress(OSError):
                os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.kill()
        self.popen.wait()
        if self._reader.ident is not None:
            self._reader.join()
        assert self.popen.stdin is not None
        with contextlib.suppress(OSError):  # the rest of the buffer cannot be written any more
            self.popen.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _how_it_ended(self) -> str:
        code = self.popen.wait()
        if code < 0:
            names = {member.value: member.name for member in signal.Signals}
            return f"the process crashed ({names.get(-code, f'signal {-code}')})"
        with open(self._noise, "rb") as file:
            file.seek(max(os.path.getsize(self._noise) - _NOISE_BYTES, 0))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1].strip()}" if lines else ""
        return f"the process ended with {code}{last}"


def serve(module: str, folder: str) -> NoReturn:
    """Answer questions from standard input on standard output: the main function of a child process.

    The process ends as soon as its standard input is closed, even in the middle of a question.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):  # without a core dump a crash is quick
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    demand_memory()
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    waiting: _Messages = SimpleQueue()

    def listen() -> None:
        _forward(questions, waiting)
        shutil.rmtree(folder, ignore_errors=True)
        remove_after_parent(os.path.dirname(folder))  # the parent was killed
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    handlers: Mapping[str, Callable[..., Any]] = {}
    problem: BaseException | None = None
    try:
        handlers = import_module(module).handlers()
    except BaseException as error:
        problem = error if isinstance(error, Failure) else Failure("unavailable", _words(error))
    while True:
        question = waiting.get()
        if question is None:  # the other thread ends the process
            continue
        try:
            if problem is not None:
                raise problem
            name, arguments = _unpacked(question)
            answer = _packed((handlers[name](*arguments), None), folder)
        except Exception as error:
            answer = _packed((None, _failure(error)), folder)
        question = arguments = None  # release the arrays before the next ones arrive
        pickle.dump(answer, answers, 5)
        answers.flush()


def _failure(error: Exception) -> Exception:
    """Return the exception to send to the parent for an error."""
    if isinstance(error, MemoryError):
        return Failure("refused", "there is not enough memory")
    if isinstance(error, CannotWrite):
        return Failure("unavailable", str(error))
    if isinstance(error, ImportError | OSError) and (ran_out := shortage(error)):
        return Failure("unavailable", ran_out)
    if isinstance(error, ImportError):
        return Failure("unavailable", _words(error))
    return error if isinstance(error, Failure) else RuntimeError(traceback.format_exc())


def require(*names: str) -> None:
    """Check that names can be imported, such as "openvino.Core".

    Raises:
        Failure: a package cannot be imported, or lacks a name.
    """
    for name in names:
        module, _, attribute = name.rpartition(".")
        try:
            getattr(import_module(module), attribute)
        except BaseException as error:  # even SystemExit
            raise Failure("unavailable", f"{module} cannot be imported: {_words(error)}") from None


def shortened(message: str) -> str:
    """Return a message as one line of limited length."""
    text = " ".join(message.split())
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 3] + "..."


def _words(error: BaseException) -> str:
    if ran_out := shortage(error):
        return ran_out
    message = shortened(str(error))
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


class _Pickler(ArrayPickler):
    """Pickles objects; the bytes of arrays go to a file, in C order.

    An array that occurs twice in a message is read as two arrays, unlike in a plain pickle.
    """

    def __init__(self, stream: io.BytesIO, file: IO[bytes]) -> None:
        super().__init__(stream, 5)
        self._file = file

    def place(self, name: str, array: "Array") -> tuple[int, str, tuple[int, ...]]:
        begin = self._file.seek(-self._file.tell() % _ALIGNMENT, os.SEEK_CUR)
        self._file.write(array.reshape(-1).view("u1").data)
        return begin, name, array.shape


def _packed(value: Any, folder: str) -> _Message:
    """Write the arrays of a value to a file in a folder; return the rest of the value as a message.

    Raises:
        CannotWrite: there is no room for the arrays.
    """
    stream, path = io.BytesIO(), os.path.join(folder, f"arrays_{os.getpid()}_{next(_NUMBERS)}")
    size = 0
    try:
        with explained_temporary(folder), open(path, "wb") as file:
            _Pickler(stream, file).dump(value)
            size = file.truncate()
    finally:
        if not size:
            with contextlib.suppress(OSError):
                os.unlink(path)
    return stream.getvalue(), path if size else ""


def _unpacked(message: _Message) -> Any:
    """Return the value of a message; its arrays are writable copies-on-write of the file."""
    data, path = message
    unpickler, whole = pickle.Unpickler(io.BytesIO(data)), None
    if path:
        import numpy

        whole = numpy.memmap(path, "u1", "c").view(numpy.ndarray)
        # some systems cannot remove a mapped file: it is removed with the folder
        with contextlib.suppress(OSError):
            os.unlink(path)

    def load(header: tuple[int, str, tuple[int, ...]]) -> Any:
        import numpy

        begin, name, shape = header
        type = dtype(ELEMENT_TYPES[name])
        return numpy.empty(shape, type) if whole is None else numpy.ndarray(shape, type, whole, begin)

    unpickler.persistent_load = load  # type: ignore[method-assign]
    return unpickler.load()


def _forward(file: IO[bytes], messages: _Messages) -> None:
    """Read messages from a pipe into a queue; put None at the end."""
    with file, contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            messages.put(pickle.load(file))
    messages.put(None)
