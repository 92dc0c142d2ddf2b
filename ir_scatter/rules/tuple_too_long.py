"""A tuple of coordinates has more numbers than data has dimensions.

Why: there is no dimension that the last numbers could count on.
Applies to: the ND operators: k, the last dimension of indices, is at most the rank of data.
Runtimes: OpenVINO and onnxruntime refuse it; onnx.checker does not look.
Example: data [4], indices [5]: k = 5 > 1. A list of positions must be [5, 1].
Fix: unsqueeze the last dimension of indices, as most such indices are a list of positions.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import lowest, show
from ir_scatter.ops.spec import Layout, Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT209", "tuple-too-long", reads={Fact.OPERATOR, Fact.SHAPES})
def tuple_too_long(scatter: ScatterNode) -> Findings:
    data, indices = scatter.data_shape, scatter.indices_shape
    if scatter.spec.layout is not Layout.TUPLES or data is None or not indices:
        return
    if lowest(indices[-1]) > len(data):
        message = (
            f"indices is {show(indices)}, so k is {show(indices[-1:])[1:-1]}, "
            f"expected at most {len(data)}, the rank of data {show(data)}"
        )
        yield Finding(message, role=Role.INDICES)
