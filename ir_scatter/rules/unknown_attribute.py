"""An attribute is written that no version of the operator has.

Why: an IR's reader drops it in silence, so what it asks for does not happen; ONNX runtimes refuse
it.
Applies to: every operator.
Runtimes: OpenVINO ignores it in an IR. onnx.checker and onnxruntime: "Unrecognized attribute".
Example: <data axis="1"/> on ScatterUpdate, whose axis is an input.
Fix: remove it, or say the same in the way the document has for it.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT103", "unknown-attribute", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def unknown_attribute(scatter: ScatterNode) -> Findings:
    for name in scatter.node.attributes:
        if not any(spec.attribute(name) for spec in scatter.lookup.family):
            known = ", ".join(row.name for row in scatter.spec.attributes) or "none"
            yield Finding(f"attribute {name} is not documented, expected {known}")
