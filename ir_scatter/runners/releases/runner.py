"""Runners of releases other than the installed one: "openvino@2024.6.0:CPU", "onnxruntime@1.17.3".

Each runs the usual child program in this Python, with the packages of another environment.
"""

import re
from collections.abc import Mapping
from functools import cached_property

from ir_scatter.core.errors import UsageError
from ir_scatter.core.process import Child
from ir_scatter.runners.base import Family, Runner
from ir_scatter.runners.onnx.runner import OnnxRuntimeRunner
from ir_scatter.runners.openvino.runner import FAMILIES as DEVICES
from ir_scatter.runners.openvino.runner import FOLD, PREFIX, FoldRunner, OpenVinoRunner
from ir_scatter.runners.releases.environments import Release, find, parse_release

_LONG = re.compile(r"((?:openvino|onnxruntime)@[^:]*):?(.*)", re.IGNORECASE)
_SHORT = re.compile(rf"^{PREFIX}([^@]+)@(\d.*)$", re.IGNORECASE)


class _OfRelease(Runner):
    """Mixin that makes a runner use the environment of a release; must precede the base class."""

    module = "ir_scatter.runners.openvino.earlier"

    def __init__(self, release: Release, device: str = "") -> None:
        environment = find(release)
        self.release = release if environment is None else environment.release
        self.device = device
        self.name = f"{self.release}:{device}" if device else str(self.release)

    @property
    def problem(self) -> str:  # not cached: the release may be installed in the meantime
        if find(self.release) is not None:
            return ""
        command = f"ir-scatter devices --install {self.release}"
        return f"{self.release.package} {self.release.version} is not installed: {command}"

    def remedy(self) -> str:
        return ""  # the text of the problem has the remedy

    @property
    def versions(self) -> Mapping[str, str]:
        """The package version, under a name that includes the release."""
        environment = find(self.release)
        return {} if environment is None else {str(environment.release): environment.release.version}

    def environment(self) -> dict[str, str]:
        # the child process gets the folder as an argument; its own child processes need the variable
        environment = find(self.release)
        return {} if environment is None else {"PYTHONPATH": str(environment.folder)}

    @cached_property
    def child(self) -> Child:
        folder = self.environment()["PYTHONPATH"]
        return Child(self.module, self.environment, self.questions_per_process, folder)


class _Device(_OfRelease, OpenVinoRunner): ...


class _Fold(_OfRelease, FoldRunner): ...


class _OnnxRuntime(_OfRelease, OnnxRuntimeRunner):
    module = OnnxRuntimeRunner.module


def _make(name: str) -> Runner | None:
    """Return the runner of "openvino@2024.6:CPU", or of "openvino:CPU@2024.6", which means the same.

    None if the name contains no release.

    Raises:
        UsageError: the name contains a package and a release, but is malformed.
    """
    written = _SHORT.sub(r"openvino@\2:\1", name)
    match = _LONG.fullmatch(written)
    if match is None:
        return None
    text, device = match.groups()
    if text.lower().startswith("onnxruntime"):
        if device:
            raise UsageError(f"{name!r} names a device, expected {text} alone")
        return _OnnxRuntime(parse_release(text))
    if device.lower() == FOLD:
        return _Fold(parse_release(text), FOLD)
    like = next(filter(None, (family.make(PREFIX + device) for family in DEVICES)), None)
    if like is not None:
        return _Device(parse_release(text), like.device)
    if written != name:
        return None
    raise UsageError(f"{name!r} names no device, expected {text}:CPU or the like, or {text}:fold")


def release_of(name: str) -> Release | None:
    """Return the release in the name of a runner; None for the installed release."""
    match = _LONG.fullmatch(_SHORT.sub(r"openvino@\2:\1", name))
    return None if match is None else parse_release(match[1])


FAMILIES = (Family((), _make, 50),)
