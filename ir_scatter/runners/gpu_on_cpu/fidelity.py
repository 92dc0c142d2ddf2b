"""What a result of the GPU plugin is worth when no GPU has computed it."""

NAME = "GPU plugin on the CPU OpenCL runtime"
"""What reports call the device: never "GPU"."""

_OWN = (
    f"This is OpenVINO's {NAME}, not a GPU. The host code and the kernels are the plugin's own: a wrong "
    "index, a skipped copy, a refused type or a lost reduction seen here is the plugin's."
)
_LOCKSTEP = (
    "Kernels that count on work-items running in step, which OpenCL does not promise, compute garbage here: "
    "a transposition of [a, b, c] to [a, c, b] does. No kernel of a scatter operator does."
)
_REST = (
    "Races, the order of memory accesses, NaN in minimum and maximum, and floating-point numbers beyond the "
    "range of the integer type they become follow the CPU. An access out of bounds may end the process.",
    "Times measured here say nothing about a GPU.",
)

FIDELITY = (
    _OWN,
    "The plugin is told of a device without subgroups, of which this runtime makes others than a GPU: matrix "
    "multiplication, convolution and softmax run reference kernels of the plugin, not those that a GPU runs, "
    "and what has no such kernel is refused. The kernels of scatter operators use no subgroups and are the "
    "same.",
    _LOCKSTEP,
    *_REST,
)
"""Sentences for every report that has a result of this runner."""

FIDELITY_WITH_SUBGROUPS = (
    _OWN,
    "The plugin uses its kernels for subgroups, of which this runtime makes others than a GPU: matrix "
    "multiplication and convolution give mostly zeros, and what comes from them means nothing. The kernels "
    "of scatter operators use no subgroups: their nodes are still worth comparing, each on its own inputs.",
    _LOCKSTEP,
    *_REST,
)
"""The same for a process that was started with `environment(subgroups=True)`."""

_SUFFIX = " (iGPU)"


def device_name(told: str) -> str:
    """Return the full name of the device for a report.

    Args:
        told: what the plugin says, "AMD EPYC (iGPU)".
    """
    return f"{NAME} ({told.removesuffix(_SUFFIX)})"
