"""OpenVINO's devices: one runner for everything that `compile_model` takes."""

import re
from collections.abc import Mapping
from typing import Any

from ir_scatter.runners.child_runner import ChildRunner
from ir_scatter.runners.runner import Family, Runner

PREFIX = "openvino:"

_ONE = r"(?:CPU|GPU|NPU)(?:\.\w+)?"
_WITH_COUNT = rf"-?{_ONE}(?:\(\d+\))?"
_VIRTUAL = rf"(?:AUTO|MULTI|HETERO|BATCH)(?::{_WITH_COUNT}(?:,{_WITH_COUNT})*)?"
_SHORT = re.compile(rf"{PREFIX}(?:{_ONE}|{_VIRTUAL})", re.IGNORECASE)
_REMEDIES = {
    "GPU": "Intel's compute runtime for GPUs with the OpenCL loader (Debian, Ubuntu: intel-opencl-icd); "
    "without an Intel GPU: openvino:GPU@cpu",
    "NPU": "Intel's driver for NPUs (linux-npu-driver)",
}


class OpenVinoRunner(ChildRunner):
    """A device of OpenVINO.

    Attributes:
        device: as OpenVINO names it.
    """

    module = "ir_scatter.runners.openvino.child"
    packages: tuple[str, ...] = ("openvino",)
    install = "pip install openvino"
    has_precision = True
    can_prepare = True

    def __init__(self, device: str, name: str = "") -> None:
        """Make a runner.

        Args:
            device: as OpenVINO names it.
            name: the long one; that of the device if it is left out.
        """
        self.device = device
        self.name = name or PREFIX + device

    def options(self) -> Mapping[str, Any]:
        """Return what is added to every question."""
        return {"device": self.device}

    def remedy(self, reason: str) -> str:
        """Return what to install when something is missing."""
        if not self.versions():
            return self.install
        return "; ".join(remedy for word, remedy in _REMEDIES.items() if word in self.device)


def _make(name: str) -> Runner | None:
    """Return the runner of a device, by its long name."""
    if _SHORT.fullmatch(name) is None:
        return None
    return OpenVinoRunner(name[len(PREFIX) :].upper())


FAMILY = Family(tuple(PREFIX + device for device in ("CPU", "GPU", "NPU")), _make, 10)
