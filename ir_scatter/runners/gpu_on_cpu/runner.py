"""The runner of OpenVINO's GPU plugin on a CPU, which the plugin sees as a GPU."""

import ctypes
import os
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from ir_scatter.core.errors import UsageError
from ir_scatter.core.words import listed
from ir_scatter.runners.base import Availability, Family
from ir_scatter.runners.gpu_on_cpu.layer import build_layer
from ir_scatter.runners.openvino.runner import PREFIX, OpenVinoRunner
from ir_scatter.version import version_of

NAME = "GPU plugin on the CPU OpenCL runtime"
"""The name of the device in reports; never just "GPU", since no GPU is involved."""

FIDELITY = (
    f"This is OpenVINO's {NAME}, not a GPU. The host code and the kernels are the plugin's own: a wrong "
    "index, a skipped copy, a refused type or a lost reduction seen here is the plugin's.",
    "The plugin sees a device without subgroups, since this runtime implements them differently from a GPU: "
    "matrix multiplication, convolution and softmax run reference kernels of the plugin instead of those for "
    "a GPU, and operators without a reference kernel are refused. The kernels of scatter operators use no "
    "subgroups and are the same.",
    "Kernels that rely on work-items running in lockstep, which OpenCL does not guarantee, compute garbage "
    "here: a transposition of [a, b, c] to [a, c, b] does. No kernel of a scatter operator does.",
    "Races, the order of memory accesses, NaN in minimum and maximum, and floating-point numbers beyond the "
    "range of the integer type they become follow the CPU. An access out of bounds may crash the process.",
    "Times measured here say nothing about a GPU.",
)
"""Sentences for every report with results of this runner."""

_MACHINE = "Linux on x86_64"
_LAYERS = "OPENCL_LAYERS"

_MODELS_PER_PROCESS = 200
"""Number of compiled models after which the child process is replaced: each model leaks about 3 MB."""

_RUNTIME = "libintelocl.so"
"""The OpenCL driver, which the OpenCL loader loads."""

_OPENVINO = (2026, 0)
"""The first OpenVINO release whose kernels this OpenCL runtime compiles."""

_INSTALL = 'pip install "ir-scatter[gpu-on-cpu]"'

_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "tbb": ("libtbb.so.12",),
    "intel-cmplr-lib-rt": ("libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so"),
    "intel-opencl-rt": ("libOpenCL.so.1", _RUNTIME),
}
"""Libraries by package, in loading order: each library after its dependencies.

The package intel-opencl-rt does not declare its dependency intel-cmplr-lib-rt.
"""


class GpuOnCpuRunner(OpenVinoRunner):
    """Runs models with the unmodified GPU plugin on a CPU. `FIDELITY` lists the differences from a GPU."""

    module = __name__
    remarks = FIDELITY
    is_default = False
    emulates = f"{PREFIX}GPU"
    questions_per_process = _MODELS_PER_PROCESS

    def __init__(self) -> None:
        super().__init__("GPU", f"{PREFIX}GPU@cpu")

    @property
    def is_on_cpu(self) -> bool:
        return True

    @cached_property
    def problem(self) -> str:
        """Why the plugin cannot run on this machine's CPU, and what to install; "" if it can.

        The first access may take a moment, because it compiles the OpenCL layer.
        """
        try:
            self.environment()
        except UsageError as error:
            return str(error)
        return ""

    @cached_property
    def versions(self) -> Mapping[str, str]:
        return {} if self.problem else {name: version_of(name) for name in ("openvino", *_PACKAGES)}

    def environment(self) -> dict[str, str]:
        machine = f"{platform.system()} on {platform.machine()}"
        if machine != _MACHINE:
            raise UsageError(f"this is {machine}, expected {_MACHINE}")
        openvino = version_of("openvino")
        if not openvino:
            raise UsageError(f"openvino is not installed: {_INSTALL}")
        year, release, *_ = [*openvino.split("."), "0"]
        if year.isdecimal() and release.isdecimal() and (int(year), int(release)) < _OPENVINO:
            first = ".".join(map(str, _OPENVINO))
            raise UsageError(f"openvino {openvino} is installed, expected {first} or later: {_INSTALL}")
        runtime = _find_libraries()[_RUNTIME]
        layer = build_layer()
        return {
            _LAYERS: str(layer),
            "OCL_ICD_FILENAMES": str(runtime),
            # a folder without registered drivers and further layers
            "OCL_ICD_VENDORS": str(layer.parent),
            "OPENCL_LAYER_PATH": str(layer.parent),
        }

    def remedy(self) -> str:
        return ""  # the text of the problem says what to install

    def availability(self) -> Availability:
        available = super().availability()
        name = available.full_name.removesuffix(" (iGPU)")
        return replace(available, full_name=f"{NAME} ({name})" if name else "")


def handlers() -> dict[str, Callable[..., Any]]:
    """Load the OpenCL runtime before openvino is imported; return the handlers of the child process.

    openvino contains an older oneTBB with the same library name as the runtime's. The first one that is
    loaded serves both, and the runtime does not load with the older one. The OpenCL loader would only report
    that there is no device; loading the libraries here gives the reason.
    """
    for path in [*map(str, _find_libraries().values()), os.environ[_LAYERS]]:
        try:
            ctypes.CDLL(path)
        except OSError as error:
            raise UsageError(f"{path} cannot be loaded: {error}") from error
    from ir_scatter.runners.openvino import child

    return child.handlers()


def _find_libraries() -> dict[str, Path]:
    """Return the paths of the libraries by name, in loading order.

    Raises:
        UsageError: a package is missing or incomplete.
    """
    installed = dict[str, Distribution]()
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            installed[name] = distribution(name)
    missing = [name for name in _PACKAGES if name not in installed]
    if missing:
        raise UsageError(
            f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} not installed: {_INSTALL}"
        )
    library_paths = {}
    for name, package in installed.items():
        for library in _PACKAGES[name]:
            files = [package.locate_file(file) for file in package.files or () if file.name == library]
            paths = [path for path in (Path(str(file)).resolve() for file in files) if path.is_file()]
            if not paths:
                wrong = f"{name} {package.version} is installed without its {library}"
                raise UsageError(f"{wrong}: pip install --force-reinstall {name}")
            library_paths[library] = paths[0]
    return library_paths


FAMILIES = (Family.of_one(f"{PREFIX}GPU@cpu", GpuOnCpuRunner, 15),)
