"""Runners of other releases than the one installed here: "openvino@2024.6.0:CPU", "onnxruntime@1.17.3".

Each is a process of this Python that runs the same program with the packages of an environment.
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
    """Runs in the environment of a release; mixed in before the runner of the one installed here."""

    module = "ir_scatter.runners.openvino.earlier"

    def __init__(self, release: Release, device: str = "") -> None:
        found = find(release)
        self.release = release if found is None else found.release
        self.device = device
        self.name = f"{self.release}:{device}" if device else str(self.release)

    @property
    def problem(self) -> str:  # it may be installed after it was asked for
        if find(self.release) is not None:
            return ""
        command = f"ir-scatter devices --install {self.release}"
        return f"{self.release.package} {self.release.version} is not installed beside the other: {command}"

    def remedy(self) -> str:
        return ""  # the problem says it

    @property
    def versions(self) -> Mapping[str, str]:
        """By a name of its own, as the package that is installed may take part as well."""
        found = find(self.release)
        return {} if found is None else {str(found.release): found.release.version}

    def environment(self) -> dict[str, str]:
        found = find(self.release)  # our child looks nowhere else; a program of its own is to find it as well
        return {} if found is None else {"PYTHONPATH": str(found.folder)}

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

    Raises:
        UsageError: it names a package and a release, but not well.
    """
    written = _SHORT.sub(r"openvino@\2:\1", name)
    found = _LONG.fullmatch(written)
    if found is None:
        return None
    text, device = found.groups()
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
    """Return the release that a runner is of by its name, None if it is of the one installed here."""
    found = _LONG.fullmatch(_SHORT.sub(r"openvino@\2:\1", name))
    return None if found is None else parse_release(found[1])


FAMILIES = (Family((), _make, 50),)
