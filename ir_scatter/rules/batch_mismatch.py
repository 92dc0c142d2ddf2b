"""The start positions of a cache are not one per batch.

Why: every sample of the batch has its own position to write at.
Applies to: write_indices of TensorScatter: its shape is [batch_size].
Runtimes: onnxruntime refuses it; no frontend of OpenVINO reads the operator.
Example: past_cache [8, 32, 2048, 128], write_indices [1]: expected [8].
Fix: expand write_indices to the batch.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import agree, show
from ir_scatter.ops.spec import Layout, Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT208", "batch-mismatch", reads={Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES})
def batch_mismatch(scatter: ScatterNode) -> Findings:
    data, indices = scatter.data_shape, scatter.indices_shape
    if scatter.spec.layout is not Layout.SEQUENCE or scatter.indices is None or not data:
        return
    expected = data[:1]
    if not agree(indices, expected):
        message = f"{scatter.indices.port.name} is {show(indices)}, expected {show(expected)} = [batch_size]"
        yield Finding(message, role=Role.INDICES)
