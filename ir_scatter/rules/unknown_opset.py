"""The opset of a scatter operator is no opset.

Why: the runtime does not know where to look for the operator and refuses the model.
Applies to: the version word of scatter layers in an IR (other layers may carry any word,
"extension" among them) and the imported opset of ONNX models.
Runtimes: OpenVINO: "Cannot create ScatterUpdate layer from unsupported opset".
Example: <layer type="ScatterUpdate" version="extension">.
Fix: write the opset, "opset3" to "opset16" in an IR.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT403", "unknown-opset", reads={Fact.OPERATOR}, is_legality=False, needs_row=False)
def unknown_opset(scatter: ScatterNode) -> Findings:
    if scatter.lookup.spec is None and not scatter.lookup.is_known_opset:
        opset = scatter.node.opset
        found = "missing" if opset is None else f"{opset!r}"
        message = f"the opset of {scatter.lookup.type} is {found}, expected {scatter.lookup.show_opsets()}"
        yield Finding(message)
