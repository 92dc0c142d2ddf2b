"""The opset does not contain the operator.

Why: the runtime does not find the operator and refuses the model.
Applies to: every operator. ScatterNDUpdate came with opset4, not opset3; opset17 holds newly
added operators only.
Runtimes: OpenVINO: "Opset opset3 doesn't contain the operation with type: ScatterNDUpdate".
onnxruntime: "is not a registered function/op".
Example: <layer type="ScatterNDUpdate" version="opset3">.
Fix: write an opset that contains the operator.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT402", "not-in-opset", reads={Fact.OPERATOR}, is_legality=False, needs_row=False)
def not_in_opset(scatter: ScatterNode) -> Findings:
    if scatter.lookup.spec is None and scatter.lookup.is_known_opset:
        opset = scatter.node.opset if isinstance(scatter.node.opset, str) else f"opset {scatter.node.opset}"
        yield Finding(f"{scatter.lookup.type} is not in {opset}, expected {scatter.lookup.show_opsets()}")
