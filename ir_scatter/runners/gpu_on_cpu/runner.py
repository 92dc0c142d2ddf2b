"""OpenVINO's GPU plugin on a machine without a GPU, as a runner."""

from collections.abc import Callable, Mapping
from typing import Any

from ir_scatter.runners import gpu_on_cpu
from ir_scatter.runners.base import Family
from ir_scatter.runners.openvino.runner import PREFIX, OpenVinoRunner

NAME = f"{PREFIX}GPU@cpu"


class GpuOnCpuRunner(OpenVinoRunner):
    """The plugin as it is, on Intel's OpenCL runtime for processors."""

    module = __name__
    remarks = gpu_on_cpu.FIDELITY
    questions_per_process = gpu_on_cpu.MODELS_PER_PROCESS

    def __init__(self) -> None:
        super().__init__("GPU", NAME)

    def versions(self) -> Mapping[str, str]:
        own = super().versions()
        return {**own, **gpu_on_cpu.versions()} if own and not self.problem() else {}

    def environment(self) -> Mapping[str, str]:
        return gpu_on_cpu.environment()

    def problem(self) -> str:
        return gpu_on_cpu.problem() or ""

    def remedy(self) -> str:
        return ""  # the reason says what to install

    def full_name(self, told: str) -> str:
        return f"{gpu_on_cpu.NAME} ({told.removesuffix(' (iGPU)')})" if told else ""


def handlers() -> dict[str, Callable[..., Any]]:
    """Load what the plugin needs, before anything imports openvino, and return what answers questions."""
    gpu_on_cpu.prepare()
    from ir_scatter.runners.openvino import child

    return child.handlers()


FAMILIES = (Family.of_one(NAME, GpuOnCpuRunner, 15),)
