"""OpenVINO's GPU plugin on a machine without a GPU."""

from collections.abc import Mapping

from ir_scatter.runners import gpu_on_cpu
from ir_scatter.runners.gpu_on_cpu.environment import MODELS_PER_PROCESS
from ir_scatter.runners.openvino.device import PREFIX, OpenVinoRunner
from ir_scatter.runners.runner import Family, Runner

NAME = f"{PREFIX}GPU@cpu"


class GpuOnCpuRunner(OpenVinoRunner):
    """The plugin as it is, on Intel's OpenCL runtime for processors."""

    module = "ir_scatter.runners.openvino.gpu_on_cpu_child"
    remarks = gpu_on_cpu.FIDELITY
    questions_per_process = MODELS_PER_PROCESS

    def __init__(self) -> None:
        super().__init__("GPU", NAME)

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the packages involved; empty if one is not installed."""
        own = super().versions()
        return {**own, **gpu_on_cpu.versions()} if own and not self.problem() else {}

    def environment(self) -> Mapping[str, str]:
        """Return what is added to the environment of the process."""
        return gpu_on_cpu.environment()

    def problem(self) -> str:
        """Return why it cannot run here and what to install; "" if it can."""
        return gpu_on_cpu.problem() or ""

    def remedy(self, reason: str) -> str:
        """Return nothing: the reason says what to install."""
        return ""

    def full_name(self, told: str) -> str:
        """Return a name that nobody takes for that of a GPU."""
        return gpu_on_cpu.device_name(told) if told else ""


def _make(name: str) -> Runner | None:
    return GpuOnCpuRunner() if name == NAME else None


FAMILY = Family((NAME,), _make, 15)
