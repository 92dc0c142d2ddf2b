"""Data and indices have different ranks where the document demands the same.

Why: the position of an index gives the position in data on every axis but one.
Applies to: ScatterElementsUpdate, Scatter and ScatterElements.
Runtimes: OpenVINO and onnxruntime refuse it; onnx.checker does not look.
Example: data [4, 5], indices [3]: expected rank 2.
Fix: ScatterUpdate or ScatterND take a list of indices; or unsqueeze and broadcast the indices.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import show
from ir_scatter.ops.spec import Layout, Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT207", "ranks-differ", reads={Fact.OPERATOR, Fact.SHAPES})
def ranks_differ(scatter: ScatterNode) -> Findings:
    data, indices = scatter.data_shape, scatter.indices_shape
    if scatter.spec.layout is not Layout.ELEMENTS or data is None or indices is None:
        return
    if len(data) != len(indices):
        message = f"indices is {show(indices)} of rank {len(indices)}, expected rank {len(data)} like data"
        yield Finding(message, role=Role.INDICES)
