"""OpenVINO's GPU plugin, unmodified, on Intel's OpenCL runtime for processors: no GPU is needed.

    if (reason := gpu_on_cpu.problem()) is None:
        child = subprocess.Popen(command, env={**os.environ, **gpu_on_cpu.environment()})

and in the child, before anything imports openvino:

    gpu_on_cpu.prepare()

There "GPU" is this device and no other one, a real GPU of the machine included. What it computes is
worth what `FIDELITY` says.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from ir_scatter.core.errors import UsageError
from ir_scatter.runners.gpu_on_cpu.layer import build_layer

NAME = "GPU plugin on the CPU OpenCL runtime"
"""What reports call the device: never "GPU"."""

FIDELITY = (
    f"This is OpenVINO's {NAME}, not a GPU. The host code and the kernels are the plugin's own: a wrong "
    "index, a skipped copy, a refused type or a lost reduction seen here is the plugin's.",
    "The plugin is told of a device without subgroups, of which this runtime makes others than a GPU: matrix "
    "multiplication, convolution and softmax run reference kernels of the plugin, not those that a GPU runs, "
    "and what has no such kernel is refused. The kernels of scatter operators use no subgroups and are the "
    "same.",
    "Kernels that count on work-items running in step, which OpenCL does not promise, compute garbage here: "
    "a transposition of [a, b, c] to [a, c, b] does. No kernel of a scatter operator does.",
    "Races, the order of memory accesses, NaN in minimum and maximum, and floating-point numbers beyond the "
    "range of the integer type they become follow the CPU. An access out of bounds may end the process.",
    "Times measured here say nothing about a GPU.",
)
"""Sentences for every report that has a result of this runner."""

_SYSTEM, _MACHINE = "Linux", "x86_64"
_LAYERS = "OPENCL_LAYERS"

MODELS_PER_PROCESS = 200
"""After how many compiled models a child process should be replaced: each leaves some 3 MB behind."""

_RUNTIME = "libintelocl.so"
"""The driver that the OpenCL loader is told to use; the loader loads it."""

_OPENVINO = (2026, 0)
"""The first whose kernels this runtime compiles."""

_INSTALL = 'pip install "ir-scatter[gpu-on-cpu]"'

_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "tbb": ("libtbb.so.12",),
    "intel-cmplr-lib-rt": ("libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so"),
    "intel-opencl-rt": ("libOpenCL.so.1", _RUNTIME),
}
"""The libraries by package, each after those that it needs.

intel-opencl-rt does not name intel-cmplr-lib-rt as a dependency, and does not load without it.
"""


def problem() -> str | None:
    """Return why the GPU plugin cannot run on this machine's CPU and what to install; None if it can.

    The first answer may take a moment: the OpenCL layer is compiled for it.
    """
    try:
        environment()
    except UsageError as error:
        return str(error)
    return None


def environment() -> dict[str, str]:
    """Return the environment variables that a child process must be started with, beside our own.

    Raises:
        UsageError: it cannot run here; `problem` says the same.
    """
    system, machine = platform.system(), platform.machine()
    if (system, machine) != (_SYSTEM, _MACHINE):
        raise UsageError(f"this is {system} on {machine}, expected {_SYSTEM} on {_MACHINE}")
    openvino = _installed(["openvino"]).get("openvino")
    if openvino is None:
        raise UsageError(f"openvino is not installed: {_INSTALL}")
    year, release, *_ = [*openvino.version.split("."), "0"]
    if year.isdecimal() and release.isdecimal() and (int(year), int(release)) < _OPENVINO:
        wanted = ".".join(map(str, _OPENVINO))
        raise UsageError(f"openvino {openvino.version} is installed, expected {wanted} or later: {_INSTALL}")
    runtime = find_libraries()[_RUNTIME]
    layer = build_layer()
    return {
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


def versions() -> dict[str, str]:
    """Return the versions of the packages by their names, those that are installed."""
    return {name: package.version for name, package in _installed(_PACKAGES).items()}


def find_libraries() -> dict[str, Path]:
    """Return the paths of the libraries by their names, in the order in which they must be loaded.

    Raises:
        UsageError: a package is not installed, or not whole.
    """
    installed = _installed(_PACKAGES)
    missing = [name for name in _PACKAGES if name not in installed]
    if missing:
        listed = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
        raise UsageError(f"{listed} {'is' if len(missing) == 1 else 'are'} not installed: {_INSTALL}")
    found = {}
    for name, package in installed.items():
        for library in _PACKAGES[name]:
            files = [package.locate_file(file) for file in package.files or () if file.name == library]
            paths = [path for path in (Path(str(file)).resolve() for file in files) if path.is_file()]
            if not paths:
                wrong = f"{name} {package.version} is installed without its {library}"
                raise UsageError(f"{wrong}: pip install --force-reinstall {name}")
            found[library] = paths[0]
    return found


def _installed(names: Iterable[str]) -> dict[str, Distribution]:
    found = {}
    for name in names:
        with suppress(PackageNotFoundError):
            found[name] = distribution(name)
    return found
