"""An input has fewer dimensions than the document demands.

Why: there is no axis, or no tuple of coordinates, so there is nothing that an index could count
on.
Applies to: data of every operator (rank 1 at least, 2 for TensorScatter, whose first dimension is
the batch), indices of the ND operators (rank 1 at least).
Runtimes: OpenVINO refuses it, or fails at inference; onnxruntime refuses it.
Example: ScatterUpdate on 0-D data: no axis is legal.
Fix: add a dimension with Unsqueeze or Reshape.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import show
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT206", "rank-too-small", reads={Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES})
def rank_too_small(scatter: ScatterNode) -> Findings:
    for role in (scatter.data, scatter.indices, scatter.updates):
        if role is None or role.shape is None or len(role.shape) >= role.port.min_rank:
            continue
        message = (
            f"{role.port.name} is {show(role.shape)} of rank {len(role.shape)}, "
            f"expected rank {role.port.min_rank} at least"
        )
        yield Finding(message, role=role.port.role)
