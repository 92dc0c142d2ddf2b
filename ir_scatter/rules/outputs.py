"""The node has another number of outputs than the operator.

Why: runtimes refuse the model, or ignore an output that somebody may read.
Applies to: every operator: each has exactly one output, with the shape and type of data.
Runtimes: onnx.checker and onnxruntime refuse the model; OpenVINO fails where the second is read.
Example: outputs ["y", "mask"] on ScatterElements.
Fix: remove the superfluous output, or give the node the one it has.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT109", "outputs", reads={Fact.OPERATOR, Fact.INPUTS})
def outputs(scatter: ScatterNode) -> Findings:
    count = len(scatter.node.outputs)
    if count != 1:
        yield Finding(f"the node has {count} outputs, expected 1: {scatter.spec.output}")
