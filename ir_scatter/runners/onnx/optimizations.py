"""The nodes that onnxruntime removes from a model, and from which stage on.

Measured on onnxruntime 1.31.1, which computes nodes that nothing reads, and may or may not infer a shape that
the file does not store.
"""

from ir_scatter.analysis.reachability import UseKind
from ir_scatter.defects.base import Stage
from ir_scatter.runners.base import Optimizations

OPTIMIZATIONS = Optimizations(dropped={UseKind.STATIC_SHAPE: Stage.COMPILE})
