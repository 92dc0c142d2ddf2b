"""An input is connected that the operator does not have.

Why: what it was meant to do is not done, or the runtime refuses the model.
Applies to: every operator.
Runtimes: OpenVINO ends with "node index is out of range" or ignores it; onnxruntime refuses the
model.
Example: a ScatterNDUpdate with a fourth input, an axis: the ND operators have none.
Fix: remove the input, or use the operator that has it.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT102", "superfluous-input", reads={Fact.OPERATOR, Fact.INPUTS})
def superfluous_input(scatter: ScatterNode) -> Findings:
    expected = len(scatter.spec.ports)
    for index in range(expected, len(scatter.node.inputs)):  # an empty name counts as one, too
        message = f"input {index} is superfluous, expected {scatter.spec.input_names()} only"
        yield Finding(message, port=f"input {index}", port_index=index)
