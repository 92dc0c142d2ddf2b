"""Where the installed packages keep the libraries of the OpenCL runtime."""

from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from ir_scatter.core.errors import UsageError

RUNTIME = "libintelocl.so"
"""The driver that the OpenCL loader is told to use; the loader loads it."""

_OPENVINO = (2026, 0)
_INSTALL = 'pip install "ir-scatter[gpu-on-cpu]"'

_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "tbb": ("libtbb.so.12",),
    "intel-cmplr-lib-rt": ("libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so"),
    "intel-opencl-rt": ("libOpenCL.so.1", RUNTIME),
}
"""The libraries by package, each after those that it needs.

intel-opencl-rt does not name intel-cmplr-lib-rt as a dependency, and does not load without it.
"""


def find_libraries() -> dict[str, Path]:
    """Return the paths of the libraries by their names, in the order in which they must be loaded.

    Raises:
        UsageError: a package is not installed, or not whole.
    """
    installed = {name: _distribution(name) for name in _PACKAGES}
    missing = [name for name, found in installed.items() if found is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(f"{_listed(missing)} {verb} not installed: {_INSTALL}")
    return {
        library: _locate(package, name, library)
        for name, package in installed.items()
        if package is not None
        for library in _PACKAGES[name]
    }


def check_openvino() -> None:
    """Refuse an OpenVINO whose kernels this runtime does not compile, or not all.

    Raises:
        UsageError: it is older than what was tried.
    """
    installed = _distribution("openvino")
    if installed is None:
        raise UsageError(f"openvino is not installed: {_INSTALL}")
    year, release, *_ = [*installed.version.split("."), "0"]
    if year.isdecimal() and release.isdecimal() and (int(year), int(release)) < _OPENVINO:
        wanted = ".".join(map(str, _OPENVINO))
        raise UsageError(f"openvino {installed.version} is installed, expected {wanted} or later: {_INSTALL}")


def versions() -> dict[str, str]:
    """Return the versions of the packages by their names, those that are installed."""
    found = {name: _distribution(name) for name in _PACKAGES}
    return {name: package.version for name, package in found.items() if package is not None}


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _locate(package: Distribution, name: str, library: str) -> Path:
    for file in package.files or ():
        if file.name == library:
            path = Path(str(package.locate_file(file))).resolve()
            if path.is_file():
                return path
    raise UsageError(
        f"{name} {package.version} is installed without its {library}: pip install --force-reinstall {name}"
    )


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
