"""What a child process needs so that OpenVINO finds the GPU that is none."""

import ctypes
import os
import platform
import sys

from ir_scatter.core.errors import UsageError
from ir_scatter.runners.gpu_on_cpu.build import build_layer
from ir_scatter.runners.gpu_on_cpu.libraries import RUNTIME, check_openvino, find_libraries

_SYSTEM, _MACHINE = "Linux", "x86_64"
_LAYERS = "OPENCL_LAYERS"
_SUBGROUPS = "IR_SCATTER_SUBGROUPS"

MODELS_PER_PROCESS = 200
"""After how many compiled models a child process should be replaced: each leaves some 3 MB behind."""


def problem() -> str | None:
    """Return why the GPU plugin cannot run on this machine's CPU and what to install; None if it can.

    The first answer may take a moment: the OpenCL layer is compiled for it.
    """
    try:
        environment()
    except UsageError as error:
        return str(error)
    return None


def environment(*, subgroups: bool = False) -> dict[str, str]:
    """Return the environment variables that a child process must be started with, beside our own.

    Args:
        subgroups: let the plugin use its kernels for subgroups. It takes some models then that it
            refuses without ("Could not find a suitable kernel", NonZero), but matrix multiplication and
            convolution give mostly zeros: `FIDELITY_WITH_SUBGROUPS`.

    Raises:
        UsageError: it cannot run here; `problem` says the same.
    """
    system, machine = platform.system(), platform.machine()
    if (system, machine) != (_SYSTEM, _MACHINE):
        raise UsageError(f"this is {system} on {machine}, expected {_SYSTEM} on {_MACHINE}")
    check_openvino()
    runtime = find_libraries()[RUNTIME]
    layer = build_layer()
    return {
        _SUBGROUPS: "1" if subgroups else "",
        _LAYERS: str(layer),
        "OCL_ICD_FILENAMES": str(runtime),
        # Where drivers and further layers are registered: a folder that has none, whatever this machine has.
        "OCL_ICD_VENDORS": str(layer.parent),
        "OPENCL_LAYER_PATH": str(layer.parent),
    }


def prepare() -> None:
    """Load the libraries of the OpenCL runtime into this process, before openvino is imported.

    openvino brings an older oneTBB under the name of the one that the runtime needs. Whichever is loaded
    first serves both; with the older one the runtime does not load. The OpenCL loader says nothing of a
    library that it cannot load, but that there is no device: here it is said why.

    Raises:
        UsageError: a package is not installed, or a library cannot be loaded.
        RuntimeError: openvino has been imported already, or the environment is not that of `environment`.
    """
    if "openvino" in sys.modules:
        raise RuntimeError("prepare() must be called before openvino is imported")
    if _LAYERS not in os.environ:
        raise RuntimeError("prepare() must be called in a process that has the variables of environment()")
    for path in [*map(str, find_libraries().values()), os.environ[_LAYERS]]:
        try:
            ctypes.CDLL(path)
        except OSError as error:
            raise UsageError(f"{path} cannot be loaded: {error}") from error
