"""Runners of OpenVINO: everything that `compile_model` takes for a device, and its constant folding."""

import re

from ir_scatter.runners.base import Family, Runner

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


class OpenVinoRunner(Runner):
    """A device of OpenVINO."""

    module = "ir_scatter.runners.openvino.child"
    packages: tuple[str, ...] = ("openvino",)
    install = "pip install openvino"
    has_precision = True

    def __init__(self, device: str, name: str = "") -> None:
        self.device = device
        self.name = name or PREFIX + device

    def remedy(self) -> str:
        if not self.versions():
            return self.install
        return "; ".join(remedy for word, remedy in _REMEDIES.items() if word in self.device)


class FoldRunner(Runner):
    """The second implementation of OpenVINO's operators: the pass ConstantFolding, fed with constants."""

    name = f"{PREFIX}fold"
    module = "ir_scatter.runners.openvino.fold"
    packages = ("openvino",)
    install = "pip install openvino"
    remarks = ("It computes in the types of the model, and not every operator.",)


def _make(name: str) -> Runner | None:
    """Return the runner of a device, by its long name."""
    return OpenVinoRunner(name[len(PREFIX) :].upper()) if _SHORT.fullmatch(name) else None


FAMILIES = (
    Family(tuple(PREFIX + device for device in ("CPU", "GPU", "NPU")), _make, 10),
    Family.of_one(FoldRunner.name, FoldRunner, 20),
)
