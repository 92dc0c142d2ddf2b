"""OpenVINO's GPU plugin, unmodified, on Intel's OpenCL runtime for processors: no GPU is needed.

    if (reason := gpu_on_cpu.problem()) is None:
        child = subprocess.Popen(command, env={**os.environ, **gpu_on_cpu.environment()})

and in the child, before anything imports openvino:

    gpu_on_cpu.prepare()

There "GPU" is this device and no other one, a real GPU of the machine included. What it computes is
worth what `FIDELITY` says.
"""

from ir_scatter.runners.gpu_on_cpu.environment import MODELS_PER_PROCESS, environment, prepare, problem
from ir_scatter.runners.gpu_on_cpu.fidelity import FIDELITY, FIDELITY_WITH_SUBGROUPS, NAME, device_name
from ir_scatter.runners.gpu_on_cpu.libraries import versions

__all__ = [
    "FIDELITY",
    "FIDELITY_WITH_SUBGROUPS",
    "MODELS_PER_PROCESS",
    "NAME",
    "device_name",
    "environment",
    "prepare",
    "problem",
    "versions",
]
