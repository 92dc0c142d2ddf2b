"""The nodes that OpenVINO removes from a model, and from which stage on.

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
"""If the condition of a Loop is a constant or an Identity of one, the ONNX frontend passes the initial values
on and does not read the body. After Not(true), Cast(0) or Reshape(false) it does read it."""
