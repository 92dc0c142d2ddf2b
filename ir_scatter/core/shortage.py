"""Whether an exception says that memory, threads, files or room has run out, whatever its type.

Each package words that in its own way: NumPy as an ImportError of twenty lines, the loader of shared objects
as "failed to map segment", a C++ library as `std::bad_alloc`.
"""

import errno
import os
from collections.abc import Iterator
from traceback import walk_tb

_MEMORY = "not enough memory"
_THREADS = "no more processes or threads can be started (ulimit -u)"
_FILES = "too many open files (ulimit -n)"
_WORDS = {
    "failed to map segment": _MEMORY,
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


def shortage(error: BaseException) -> str | None:
    """Return what ran out, and what could not be loaded for that: "not enough memory to load numpy".

    Returns:
        None if the exception, and those that caused it, say nothing like that.
    """
    chain = list(_causes(error))
    ran_out = next(filter(None, map(_ran_out, chain)), None)
    if ran_out is None:
        return None
    package = next(filter(None, map(_package, chain)), "")
    return f"{ran_out} to load {package}" if package and ran_out == _MEMORY else ran_out


def missing_package(error: BaseException) -> str | None:
    """Return the name of a package, not one of ours, that could not be imported; else None."""
    for cause in _causes(error):
        if isinstance(cause, ImportError) and (package := _package(cause)):
            return package
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen, current = set[int](), error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
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
    """Return the package that was being imported, as the error or the innermost file of a package says."""
    if isinstance(error, ImportError) and error.name:
        name = error.name.partition(".")[0]
        return "" if name.startswith("ir_scatter") else name
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
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
