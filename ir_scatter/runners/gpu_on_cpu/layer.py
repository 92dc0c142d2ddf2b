"""Compiles the OpenCL layer, a library between the OpenCL loader and the driver, and caches it."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from ir_scatter.core.errors import CannotWrite, UsageError
from ir_scatter.core.files import cache_folder
from ir_scatter.core.temporary import new_folder

_SOURCE = Path(__file__).with_name("layer.c")
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=c11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden")
_TIME_LIMIT = 60.0
"""Time limit of the C compiler, in seconds: generous, as the layer is one small file."""


def build_layer() -> Path:
    """Return the path of the compiled layer; its folder contains nothing else.

    The layer is compiled once for each source and compiler. If the cache cannot be written, the layer is in a
    temporary folder until this process ends.

    Raises:
        UsageError: there is no C compiler, the compiler fails, or no folder can be written.
    """
    compiler = _find_compiler()
    file = Path(compiler[0]).stat()
    command = [*compiler, *_FLAGS, str(file.st_size), str(file.st_mtime_ns)]
    key = hashlib.sha256("\0".join(command).encode() + _SOURCE.read_bytes()).hexdigest()[:16]
    name = f"layer-{key}.so"
    folder = cache_folder()  # the loader expects a list of layers, separated by colons
    cached = None if folder is None or ":" in str(folder) else folder / "opencl"
    if cached is not None:
        with suppress(OSError):
            return _compile_to(compiler, cached / name)
    try:
        return _compile_to(compiler, Path(_temporary_folder()) / name)
    except CannotWrite as error:
        raise UsageError(f"{error}; or set XDG_CACHE_HOME, for the compiled OpenCL layer") from None
    except OSError as error:
        tried = "no folder" if cached is None else f"neither {cached} nor a temporary folder"
        raise UsageError(
            f"{tried} can be written ({error.strerror}), "
            "expected one for the compiled OpenCL layer: set XDG_CACHE_HOME"
        ) from error


def _find_compiler() -> list[str]:
    """Return the command of the C compiler, starting with its full path."""
    wanted = os.environ.get("CC", "").split()
    for name in wanted[:1] or _COMPILERS:
        found = shutil.which(name)
        if found is not None:
            return [os.path.abspath(found), *wanted[1:]]
    is_missing = f"{wanted[0]}, which CC names, is not" if wanted else "none of cc, gcc and clang is"
    raise UsageError(
        f"{is_missing} on PATH, expected a C compiler to build the OpenCL layer: "
        "install one (Debian, Ubuntu: apt install gcc libc6-dev; Fedora: dnf install gcc) or set CC"
    )


@cache
def _temporary_folder() -> str:
    return new_folder()


def _compile_to(compiler: list[str], layer: Path) -> Path:
    """Compile the layer if it is missing, and move it to its path: no process reads a partial file."""
    if layer.is_file():
        return layer
    layer.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=layer.parent) as folder:
        built = Path(folder) / layer.name
        _compile([*compiler, *_FLAGS, "-o", str(built), str(_SOURCE)])
        built.replace(layer)
    return layer


def _compile(command: list[str]) -> None:
    try:
        subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TIME_LIMIT, check=True
        )
        return
    except subprocess.TimeoutExpired:
        reason = f"no answer within {_TIME_LIMIT:.0f} seconds"
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in lines if "error" in line]
        reason = (errors or lines or [f"it ended with {error.returncode}"])[0].strip()
    except OSError as error:
        reason = error.strerror or str(error)
    raise UsageError(
        f"{command[0]} cannot compile the OpenCL layer ({reason}), "
        "expected a C compiler that works: install one with the headers of the C library, or set CC"
    )
