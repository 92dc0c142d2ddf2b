"""Recognises exceptions that mean that memory, threads, files or disk space have run out.

Packages report this in different ways: NumPy as an ImportError of twenty lines, the loader of shared objects
as "failed to map segment", a C++ library as `std::bad_alloc`.
"""

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType, TracebackType

_MEMORY = "not enough memory"
_THREADS = "no more processes or threads can be started (ulimit -u, ulimit -v)"
_FILES = "too many open files (ulimit -n)"
_LOADER = "failed to map segment"
_LONGEST = 400
_NUMPY_BYTES = 100 << 20
"""Address space in bytes that importing NumPy needs; measured with OpenBLAS on one thread: 80 MB."""
_WORDS = {
    _LOADER: _MEMORY,
    "not enough memory": _MEMORY,
    "memory allocation still failed": _MEMORY,
    "failed to allocate memory": _MEMORY,
    "cannot allocate memory": _MEMORY,
    "bad_alloc": _MEMORY,
    "can't start new thread": _THREADS,
    "too many open files": _FILES,
    "no space left on device": "no space left on device",
    "file too large": "the limit of file sizes is too low (ulimit -f)",
}
_NUMBERS = {
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: _THREADS,
    errno.EMFILE: _FILES,
    errno.ENFILE: "the system has too many open files",
    errno.ENOSPC: _WORDS["no space left on device"],
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: _WORDS["file too large"],
}
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def memory_of_machine() -> int | None:
    """Return the bytes of memory of the machine; None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def shortage(error: BaseException) -> str | None:
    """Describe the shortage that an exception reports: "not enough memory to load numpy".

    Returns:
        The description; None if neither the exception nor its causes report a shortage.
    """
    chain = list(_causes(error))
    ran_out = next(filter(None, map(_ran_out, chain)), None)
    if ran_out is None:
        return None
    package = next(filter(None, map(_package, chain)), "")
    return f"{ran_out} to load {package}" if package and ran_out == _MEMORY else ran_out


def names_shortage(message: str) -> bool:
    """Return whether a runtime's message reports that resources of this machine ran out.

    Missing memory counts only if the memory of the process is limited; otherwise a defect may cause it.
    """
    short = next((short for words, short in _WORDS.items() if words in message.lower()), None)
    return short is not None and (short != _MEMORY or _LOADER in message.lower() or is_memory_limited())


def is_memory_limited() -> bool:
    """Return whether the memory of this process is limited (ulimit -v)."""
    try:
        import resource
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


class _DemandMemory:
    """Import hook: raises an error for NumPy if memory is short, as its OpenBLAS would end the process.

    It is a finder of `sys.meta_path` without the usual base class, which would import `tempfile` and more.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name != "numpy":
            return
        try:
            import mmap

            mmap.mmap(-1, _NUMPY_BYTES).close()
        except (ImportError, OSError, MemoryError):
            raise ImportError("there is not enough memory", name="numpy") from None
        sys.meta_path.remove(self)


def demand_memory() -> None:
    """Make an import of NumPy raise an error, instead of ending the process, if memory is short.

    Only a limit of the process (ulimit -v) is checked.
    """
    if is_memory_limited() and "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread would need another 40 MB
        sys.meta_path.insert(0, _DemandMemory())


def cannot_run(error: BaseException) -> str | None:
    """Describe why a package cannot be imported or run; None if the exception is a bug of ir_scatter."""
    if ran_out := shortage(error):
        return ran_out
    for cause in _causes(error):
        if isinstance(cause, ImportError) and (package := _package(cause)):
            return f"{package} cannot be imported: {' '.join(str(cause).split())[:_LONGEST]}"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    visited, current = set[int](), error
    while current is not None and id(current) not in visited:
        visited.add(id(current))
        yield current
        current = current.__cause__ or current.__context__  # type: ignore[assignment]


def _ran_out(error: BaseException) -> str | None:
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return _NUMBERS[error.errno]
    if isinstance(error, ImportError | OSError | RuntimeError | SystemError):
        text = str(error).lower()
        return next((short for words, short in _WORDS.items() if words in text), None)
    return None


def _package(error: BaseException) -> str:
    """Return the package that failed, "" if unknown: from the error, or from the innermost frame."""
    for place in _INSTALLED:
        if isinstance(error, ImportError) and error.path and place in error.path:
            return error.path.rpartition(place)[2].partition(os.sep)[0].partition(".")[0]
    if isinstance(error, ImportError) and error.name:
        name = error.name.partition(".")[0]
        return "" if name.startswith("ir_scatter") else name
    files = [*_files_of(error.__traceback__)]
    if not any("importlib" in file for file in files) and not isinstance(error, ImportError):
        return ""
    for file in reversed(files):
        if os.path.abspath(file).startswith(_OURS + os.sep):
            break
        for place in _INSTALLED:
            if place in file:
                name = file.rpartition(place)[2].partition(os.sep)[0].removesuffix(".py")
                return "" if name.startswith("ir_scatter") else name
    return ""


def _files_of(traceback: TracebackType | None) -> Iterator[str]:
    """Yield the source file of each frame, the outermost first."""
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename
        traceback = traceback.tb_next
