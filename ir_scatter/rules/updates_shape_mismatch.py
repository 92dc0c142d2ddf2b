"""The shape of updates is not the one that data, indices and axis demand.

Why: a runtime either refuses the model or reads past the end of updates.
Applies to: every operator. The expected shape is that of the operator's document. Unknown
dimensions agree with everything. For ScatterNDUpdate one element of any rank may stand for 0-D
updates.
Runtimes: OpenVINO refuses it where shapes are static. The reference evaluator of ONNX broadcasts
it in silence; onnx.checker does not look.
Example: data [4, 5], indices [2], axis 0, updates [3, 5]: expected [2, 5].
Fix: reshape or slice updates; if a dimension is off by one, the axis or the indices are wrong
instead.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import agree, element_count, show
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT203", "updates-shape-mismatch", reads={Fact.OPERATOR, Fact.INPUTS, Fact.AXIS, Fact.SHAPES})
def updates_shape_mismatch(scatter: ScatterNode) -> Findings:
    expected = scatter.expected_updates()
    if scatter.updates is None or not expected:
        return
    shape = scatter.updates.shape
    if any(agree(candidate, shape) for candidate in expected):
        return
    if scatter.spec.scalar_updates and () in expected and element_count(shape) in (1, None):
        return
    shapes = " or ".join(dict.fromkeys(map(show, expected)))
    name, formula = scatter.updates.port.name, scatter.spec.updates_formula
    yield Finding(f"{name} is {show(shape)}, expected {shapes} = {formula}", role=Role.UPDATES)
