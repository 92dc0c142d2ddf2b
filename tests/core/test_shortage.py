"""What says that memory, threads, files or room ran out, and what is a bug of ours."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ir_scatter.core.shortage import cannot_run, names_shortage, shortage

ROOT = Path(__file__).resolve().parents[2]
_MAPPED = "/x/libopenblas.so: failed to map segment from shared object"


def numpy_error() -> BaseException:
    """NumPy words the error of the loader anew, on twenty lines."""
    try:
        try:
            raise ImportError(_MAPPED, name="numpy._core._multiarray_umath")
        except ImportError as error:
            raise ImportError("\n\nIMPORTANT: PLEASE READ THIS") from error
    except ImportError as error:
        return error


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "not enough memory"),
        (ImportError(_MAPPED, name="onnx.onnx_cpp2py_export"), "not enough memory to load onnx"),
        (
            ImportError(_MAPPED, name="pybind11_state", path="/v/site-packages/onnxruntime/capi/state.so"),
            "not enough memory to load onnxruntime",
        ),
        (numpy_error(), "not enough memory to load numpy"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "not enough memory"),
        (OSError(_MAPPED), "not enough memory"),
        (RuntimeError("can't start new thread"), "no more processes or threads can be started"),
        (OSError(errno.EMFILE, "Too many open files"), "too many open files (ulimit -n)"),
        (ModuleNotFoundError("No module named 'lxml'", name="lxml"), "lxml cannot be imported: No module"),
    ],
)
def test_what_ran_out_is_named(error: BaseException, sentence: str) -> None:
    assert (cannot_run(error) or "").startswith(sentence)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a cog is loose"),
        KeyError("x"),
        ImportError("cannot import name 'x'", name="ir_scatter.lint"),
        OSError(errno.ENOENT, "No such file"),
    ],
)
def test_a_bug_is_no_shortage(error: BaseException) -> None:
    assert shortage(error) is None
    assert cannot_run(error) is None


def test_a_runtime_that_lacks_memory_without_a_limit_may_have_a_defect() -> None:
    assert names_shortage("the process could not be started: too many open files")
    assert not names_shortage("Check 'axis < rank' failed")


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux only")
@pytest.mark.parametrize(
    "command", [["inspect", "samples"], ["validate", "samples"], ["fuzz", "--on", "CPU"]]
)
def test_numpy_without_memory_ends_no_process(command: list[str]) -> None:
    """Its OpenBLAS would, with the exit code of findings."""
    limit = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20)); "
    program = f"{limit}sys.argv = ['ir-scatter', *{command!r}]; runpy.run_module('ir_scatter_cli', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}"},
    )  # fmt: skip
    assert done.returncode in {3, 4}, done.stderr
    assert "memory" in done.stdout + done.stderr
    assert "bug" not in done.stderr
    assert "Traceback" not in done.stderr
