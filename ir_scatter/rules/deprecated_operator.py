"""The operator is deprecated.

Why: a deprecated operator is refused by runtimes sooner or later, Scatter from opset 11 on.
Applies to: ONNX Scatter: a warning at opset 9 and 10, where it is legal; an error from 11 on.
Runtimes: onnx.checker and onnxruntime refuse it at opset 11 and above; OpenVINO takes it at any
opset.
Example: Scatter in a model of opset 13.
Fix: replace it by ScatterElements, which means the same, as `ir-scatter convert` does.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT401", "deprecated-operator", reads={Fact.OPERATOR}, is_legality=False, mended_by="")
def deprecated_operator(scatter: ScatterNode) -> Findings:
    successor = scatter.spec.deprecated_by
    if successor is None:
        return
    key = scatter.spec.key
    if scatter.spec.is_removed:
        message = f"{key.type} is deprecated at opset {scatter.node.opset}, expected {successor.type}"
    else:
        message = f"{key.type} is deprecated from opset {successor.version} on, use {successor.type} there"
    yield Finding(message)
