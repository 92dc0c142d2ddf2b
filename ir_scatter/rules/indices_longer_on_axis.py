"""Indices are longer than data on the axis, which this version forbids.

Why: the text demands that no dimension of indices exceeds data's; some target is named twice.
Applies to: ScatterElementsUpdate-3. Version 12 and ONNX allow it. A warning, as runtimes take it
as meant.
Runtimes: OpenVINO's CPU and GPU plugins compute it like version 12.
Example: data [3], indices [5].
Fix: use version="opset12", whose text allows it; `ir-scatter convert` writes it.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import show
from ir_scatter.ops.spec import IndicesLimit, Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule(
    "SCT211", "indices-longer-on-axis", reads={Fact.OPERATOR, Fact.AXIS, Fact.SHAPES}, mended_by="--to {type}"
)
def indices_longer_on_axis(scatter: ScatterNode) -> Findings:
    if scatter.spec.indices_limit is not IndicesLimit.EVERYWHERE:
        return
    longer = scatter.longer_dimensions()
    on_axis = scatter.axis in longer if scatter.written_axis is not None else len(longer) == 1
    if on_axis:
        message = (
            f"indices is {show(scatter.indices_shape)}, longer than data {show(scatter.data_shape)} "
            f"on the axis {longer[0] if scatter.axis is None else scatter.axis}, expected at most data's size"
        )
        yield Finding(message, role=Role.INDICES)
