"""The nodes that onnxruntime removes from a model, and at which stage.

Measured on onnxruntime 1.31.1. It computes nodes whose outputs are not used. Whether it infers a shape that
the file does not store is not predictable.
"""

from ir_scatter.analysis.reachability import UseKind
from ir_scatter.defects.base import Stage
from ir_scatter.runners.base import Optimizations

OPTIMIZATIONS = Optimizations(dropped={UseKind.STATIC_SHAPE: Stage.COMPILE})
