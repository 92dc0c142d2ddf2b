"""Installs releases of runtimes with pip, each into its own folder in the user's cache.

A child process of this Python imports packages only from such a folder. An environment is complete when the
record of its packages is written and the folder has its final name.
"""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ir_scatter.core.atomic_write import locked
from ir_scatter.core.errors import CannotWrite, Error, UsageError
from ir_scatter.core.files import cache_folder
from ir_scatter.core.process import python_command

_FIRST_WITH_NUMPY_2 = {"openvino": (2024, 3), "onnxruntime": (1, 19)}
"""The first release of each package that declares whether it supports NumPy 2; earlier ones need NumPy 1."""

_EARLIEST_YEAR = 1000
"""First version numbers above this are years."""

PACKAGES = frozenset(_FIRST_WITH_NUMPY_2)

_CHILD_PACKAGES = ("ml_dtypes", "onnx")
"""Packages that our code in the child process needs: element types that NumPy lacks, and a parser."""

_NAME = re.compile(rf"({'|'.join(_FIRST_WITH_NUMPY_2)})@(\d+\.\d+(?:\.\d+)?)", re.IGNORECASE)
_RECORD, _UNFINISHED = "record.json", ".unfinished-"
_AT_ONCE, _PATIENCE = 0.5, 900.0
"""Seconds to wait for another process that uses the folder: before the user is told, and before giving up."""
THIS_PYTHON = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
_AVAILABLE_VERSIONS = re.compile(r"\(from versions: (?!none)(.+)\)")


class CannotInstall(Error):
    """Error: a release cannot be installed or removed."""


class Release(NamedTuple):
    """A package and two or three version numbers, (2025, 4) or (2025, 4, 1). Two mean the newest patch."""

    package: str
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.package}@{self.version}"

    @property
    def version(self) -> str:
        return ".".join(map(str, self.numbers))

    @property
    def may_exist(self) -> bool:
        """Whether the first number is plausible: a year for openvino, a small number for onnxruntime."""
        return (self.numbers[0] > _EARLIEST_YEAR) == (_FIRST_WITH_NUMPY_2[self.package][0] > _EARLIEST_YEAR)

    def means(self, other: "Release") -> bool:
        return (self.package, self.numbers) == (other.package, other.numbers[: len(self.numbers)])


@dataclass(frozen=True, slots=True)
class Environment:
    """An installed release with its dependencies.

    Attributes:
        python: the Python for which it was installed, "cpython-311-linux-x86_64".
        size: size in bytes after the installation.
    """

    release: Release
    python: str
    folder: Path
    size: int

    @property
    def wheels(self) -> list[dict[str, str]]:
        """The recorded name, version and SHA-256 of each wheel."""
        wheels: list[dict[str, str]] = json.loads((self.folder / _RECORD).read_bytes())["wheels"]
        return wheels


def parse_release(text: str) -> Release:
    """Parse a text such as "openvino@2025.4" or "onnxruntime@1.17.3".

    Raises:
        UsageError: the text is not a release.
    """
    match = _NAME.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} is not a release, expected one like openvino@2025.4 or onnxruntime@1.17.3"
        )
    return Release(match[1].lower(), tuple(map(int, match[2].split("."))))


def installed() -> list[Environment]:
    """Return all complete environments, including those of other Pythons, ordered by release."""
    cache, environments = cache_folder(), list[Environment]()
    for record in () if cache is None else cache.glob(f"releases/*/*/{_RECORD}"):
        folder = record.parent
        try:
            size, release = int(json.loads(record.read_bytes())["bytes"]), parse_release(folder.name)
        # skip a damaged environment: it can be installed again
        except (OSError, ValueError, TypeError, KeyError, UsageError):
            continue
        environments.append(Environment(release, folder.parent.name, folder, size))
    return sorted(environments, key=lambda environment: (environment.release, environment.python))


def find(release: Release) -> Environment | None:
    """Return the environment of a release for this Python; None without one.

    A release of two numbers means its newest installed patch.
    """
    candidates = (environment for environment in reversed(installed()) if environment.python == THIS_PYTHON)
    return next((environment for environment in candidates if release.means(environment.release)), None)


def install(release: Release, tell: Callable[[str], object] | None = None) -> Environment:
    """Return the environment of a release; pip installs it if it is missing.

    Args:
        release: with two or three numbers.
        tell: called with a message before waiting for another process that uses the folder.

    Raises:
        CannotInstall: another process does not end, pip fails, or the disk is full.
    """
    with _locked_folder(tell) as root:
        environment = find(release)
        if environment is None:
            home = root / THIS_PYTHON
            home.mkdir(exist_ok=True)
            new = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=home))
            try:
                wheels = _pip_install(new, release)
                (version,) = (wheel["version"] for wheel in wheels if wheel["name"] == release.package)
                size = sum(file.lstat().st_size for file in new.rglob("*"))
                record = {"python": sys.version.split()[0], "bytes": size, "wheels": wheels}
                (new / _RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")
                place = home / f"{release.package}@{version}"
                shutil.rmtree(place, ignore_errors=True)
                new.rename(place)
            finally:
                shutil.rmtree(new, ignore_errors=True)
            environment = find(release)
            assert environment is not None
    return environment


def remove(release: Release) -> list[Environment]:
    """Delete the environments of a release and return them. Two numbers mean all patches.

    Raises:
        UsageError: the release is not installed.
        CannotInstall: another process uses it, or a folder cannot be removed.
    """
    with _locked_folder():
        every = installed()
        removed = [environment for environment in every if release.means(environment.release)]
        if not removed:
            names = (
                ", ".join(str(environment.release) for environment in every)
                or "nothing: no release is installed"
            )
            raise UsageError(f"{release} is not installed, expected {names}")
        for environment in removed:
            (environment.folder / _RECORD).unlink()
            shutil.rmtree(environment.folder)
    return removed


@contextmanager
def _locked_folder(tell: Callable[[str], object] | None = None) -> Iterator[Path]:
    """Lock the folder of environments, remove incomplete ones, and yield the folder."""
    cache = cache_folder()
    if cache is None:
        raise CannotInstall("there is no cache folder for releases, expected one: set XDG_CACHE_HOME")
    root = cache / "releases"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with suppress(CannotWrite), locked([root], _AT_ONCE):
            tell = None
        if tell is not None:
            tell("waiting for another ir-scatter process that installs or removes a release")
        with locked([root], _PATIENCE):
            for left in root.glob(f"*/{_UNFINISHED}*"):
                shutil.rmtree(left, ignore_errors=True)
            yield root
    except CannotWrite:
        reason = "another ir-scatter process installs or removes a release: try again later"
        raise CannotInstall(f"{root} is locked, as {reason}") from None
    except OSError as error:
        raise CannotInstall(f"{root} cannot be written: {(error.strerror or str(error)).lower()}") from None


def _pip_install(folder: Path, release: Release) -> list[dict[str, Any]]:
    """Install a release into a folder with pip; return name, version and SHA-256 of each wheel."""
    version = release.version + (".*" if len(release.numbers) < 3 else "")
    requirements = [f"{release.package}=={version}", *_CHILD_PACKAGES]
    if release.numbers < _FIRST_WITH_NUMPY_2[release.package]:
        requirements.append("numpy<2")
    report = folder / "report.json"
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile"]
    words += ["--only-binary", ":all:", "--target", str(folder), "--report", str(report)]
    done = subprocess.run(
        python_command("-m", "pip", *words, *requirements),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["pip gives no reason"]
        reason = next((line for line in lines if line.startswith("ERROR:")), lines[-1]).removeprefix(
            "ERROR: "
        )
        python, versions = "Python {}.{}".format(*sys.version_info), _AVAILABLE_VERSIONS.search(reason)
        if versions and f"requirement {release.package}==" in reason:
            alternatives = ", ".join(item for item in versions[1].split(", ") if "dev" not in item)
            reason = f"there is no wheel for {python} on this machine, expected one of {alternatives}"
        raise CannotInstall(f"{release} cannot be installed by pip: {reason}")
    installations = json.loads(report.read_bytes())["install"]
    report.unlink()
    return [
        {
            "name": item["metadata"]["name"],
            "version": item["metadata"]["version"],
            "sha256": item["download_info"]["archive_info"]["hashes"]["sha256"],
        }
        for item in sorted(installations, key=lambda item: str(item["metadata"]["name"]))
    ]
