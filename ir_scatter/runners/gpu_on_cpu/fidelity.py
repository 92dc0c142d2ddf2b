"""What a result of the GPU plugin is worth when no GPU has computed it."""

NAME = "GPU plugin on the CPU OpenCL runtime"
"""What reports call the device: never "GPU"."""

FIDELITY = (
    f"This is OpenVINO's {NAME}, not a GPU. The host code and the kernels are the plugin's own: a wrong "
    "index, a skipped copy, a refused type or a lost reduction seen here is the plugin's.",
    "The plugin is told of a device without subgroups, of which this runtime makes others than a GPU: matrix "
    "multiplication, convolution and softmax run reference kernels of the plugin, not those that a GPU runs. "
    "The kernels of scatter operators use no subgroups and are the same.",
    "Races, the order of memory accesses, NaN in minimum and maximum, and floating-point numbers beyond the "
    "range of the integer type they become follow the CPU. An access out of bounds may end the process.",
    "Times measured here say nothing about a GPU.",
)
"""Sentences for every report that has a result of this runner."""

_SUFFIX = " (iGPU)"


def device_name(told: str) -> str:
    """Return the full name of the device for a report.

    Args:
        told: what the plugin says, "AMD EPYC (iGPU)".
    """
    return f"{NAME} ({told.removesuffix(_SUFFIX)})"
