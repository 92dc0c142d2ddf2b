"""An attribute is written that another version of the operator has, but not this one.

Why: an IR's reader drops it in silence and the mathematics change: a sum becomes a replacement.
Applies to: every operator. A warning in an IR if the value is the later version's default, as
nothing is lost then.
Runtimes: OpenVINO drops `reduction` on ScatterElementsUpdate below opset12 and on ScatterNDUpdate
below opset15. onnxruntime refuses it below opset 16, OpenVINO's ONNX frontend honours it on
ScatterElements and refuses it on ScatterND.
Example: <layer type="ScatterElementsUpdate" version="opset3"><data reduction="sum"/>.
Fix: use the version that has the attribute, version="opset12" here.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT104", "attribute-not-in-version", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_not_in_version(scatter: ScatterNode) -> Findings:
    for name, written in scatter.node.attributes.items():
        if scatter.spec.attribute(name):
            continue
        rows = [spec for spec in scatter.lookup.family if spec.attribute(name)]
        for row in rows[:1]:
            attribute = row.attribute(name)
            is_default = attribute is not None and str(written).lower() == str(attribute.default).lower()
            message = (
                f"attribute {name} is {written!r}, but {scatter.spec.key} has no {name}: "
                f"expected {row.key} or no attribute"
            )
            yield Finding(message, is_tolerated=is_default and scatter.spec.drops_attributes)
