"""Runners of OpenVINO: all devices that `compile_model` accepts, and constant folding."""

import os
import re
from collections.abc import Mapping

from ir_scatter.core.process import Failure
from ir_scatter.core.shapes import Shape, parse_shape, show
from ir_scatter.runners.base import ISSUE_FORM, Family, Optimizations, Runner

PREFIX = "openvino:"
FOLD = "fold"
"""The word for constant folding in place of a device: "openvino:fold"."""
NOT_FOLDED = "is not folded"

VIRTUAL_DEVICES = ("AUTO", "MULTI", "HETERO", "BATCH")
"""Devices that distribute the work to other devices."""

_CPU_DEVICE, _GPU_DEVICE = "CPU", "GPU"
_NATIVE = frozenset({"Softmax", "LogSoftmax", "ScaledDotProductAttention"})
"""Operators whose GPU kernels call `native_exp`, an OpenCL C function without a specified accuracy.

On the CPU runtime of OpenCL, Softmax of 64 numbers differs by up to 1.8e-4 of an element.
"""
_ONE = r"(?:CPU|GPU|NPU)(?:\.\w+)?"
_WITH_COUNT = rf"-?{_ONE}(?:\(\d+\))?"
_VIRTUAL = rf"(?:{'|'.join(VIRTUAL_DEVICES)})(?::{_WITH_COUNT}(?:,{_WITH_COUNT})*)?"
_SHORT = re.compile(rf"{PREFIX}(?:{_ONE}|{_VIRTUAL})", re.IGNORECASE)
_REMEDIES = {
    "GPU": "an Intel GPU and intel-opencl-icd; without: openvino:GPU@cpu",
    "NPU": "an Intel NPU and linux-npu-driver",
}


ISSUE = {"OpenVINO Version": "version"} | {
    title: part for title, part in ISSUE_FORM.items() if part != "version"
}
"""The form of https://github.com/openvinotoolkit/openvino/issues; see `Runner.issue_form`."""


class OpenVinoRunner(Runner):
    """Runs models on one device of OpenVINO."""

    module = "ir_scatter.runners.openvino.child"
    packages: tuple[str, ...] = ("openvino",)
    install = "pip install openvino"
    has_precision = True

    folded_by = PREFIX + FOLD
    issue_form = ISSUE

    def __init__(self, device: str, name: str = "") -> None:
        self.device = device
        self.name = name or PREFIX + device
        self.is_virtual = device.startswith(VIRTUAL_DEVICES)
        self.approximates = _NATIVE if _GPU_DEVICE in device else frozenset()

    @property
    def listed_name(self) -> str:
        return PREFIX + _CPU_DEVICE if self.is_virtual else super().listed_name

    def optimizations(self) -> Optimizations:
        return _optimizations()

    @property
    def is_on_cpu(self) -> bool:
        return self.device.startswith(_CPU_DEVICE)

    def remedy(self) -> str:
        if not self.versions:
            return self.install
        return "; ".join(remedy for word, remedy in _REMEDIES.items() if word in self.device)


class FoldRunner(Runner):
    """Runs models by OpenVINO's pass ConstantFolding, its second implementation of the operators."""

    name = PREFIX + FOLD
    device = FOLD
    module = "ir_scatter.runners.openvino.child"
    packages = ("openvino",)
    install = "pip install openvino"
    remarks = ("It computes in the types of the model, and does not fold every operator.",)
    declines = NOT_FOLDED
    is_default = False
    folded_by = PREFIX + FOLD
    leaves_to = PREFIX + _CPU_DEVICE
    issue_form = ISSUE

    def optimizations(self) -> Optimizations:
        return _optimizations()


def _optimizations() -> Optimizations:
    from ir_scatter.runners.openvino.optimizations import OPTIMIZATIONS

    return OPTIMIZATIONS


def _make(name: str) -> Runner | None:
    """Return the runner of a device by its long name; None if the name belongs to another family."""
    return OpenVinoRunner(name[len(PREFIX) :].upper()) if _SHORT.fullmatch(name) else None


_CPU = OpenVinoRunner("CPU")


def export(source: str, target: str) -> str:
    """Convert an ONNX model to an IR with OpenVINO, in full precision; return the error, or ""."""
    try:
        _CPU.ask("export", source, target)
    except Failure as failure:
        return failure.message
    return ""


def propagate(path: str, input_shapes: Mapping[str, Shape]) -> tuple[dict[str, tuple[Shape, ...]], str]:
    """Infer shapes with OpenVINO; return the output shapes of every node by scope, and the error or "".

    Input shapes are keyed by the name of a Parameter or of its tensor. A scatter node that refuses its inputs
    is not an error here: rules report it more precisely.
    """
    shapes = {
        name: show(
            shape and tuple(dim if isinstance(dim, int) else dim._replace(symbol=None) for dim in shape)
        )
        for name, shape in input_shapes.items()
    }
    try:
        (shapes_by_scope, reason), _ = _CPU.ask("propagate", os.path.abspath(path), shapes)
    except Failure as failure:
        return {}, f"OpenVINO cannot propagate the shapes: {failure.message}"
    problem = f"OpenVINO cannot propagate the shapes everywhere: {reason}" if reason else ""
    return {scope: tuple(map(parse_shape, texts)) for scope, texts in shapes_by_scope.items()}, problem


FAMILIES = (
    Family(tuple(PREFIX + device for device in ("CPU", "GPU", "NPU")), _make, 10, PREFIX),
    Family.of_one(FoldRunner.name, FoldRunner, 20),
)
