"""The nodes that OpenVINO removes from a model, and at which stage.

Measured on openvino 2026.4.1, on CPU and with the GPU plugin on the CPU OpenCL runtime.
"""

from ir_scatter.analysis.reachability import UseKind
from ir_scatter.defects.base import Stage
from ir_scatter.runners.base import Optimizations

OPTIMIZATIONS = Optimizations(
    dropped={
        UseKind.UNREAD: Stage.READ,
        UseKind.STATIC_SHAPE: Stage.COMPILE,
        UseKind.STATIC_COUNT: Stage.COMPILE,
        UseKind.EMPTY_PART: Stage.COMPILE,
    },
    skipped_loops=Stage.READ,
)
"""The optimizations of every device.

If the condition of a Loop is a constant, or an Identity of a constant, the ONNX frontend passes the initial
values to the outputs and does not read the body. It reads the body after Not(true), Cast(0) or
Reshape(false).
"""
