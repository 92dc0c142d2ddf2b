"""The element type of data or updates is none that the document allows.

Why: runtimes refuse the model, or fail when they look for a kernel.
Applies to: data and updates of every operator. Boolean data has a rule of its own, SCT214.
Runtimes: OpenVINO refuses most at reading; strings end the process of the CPU plugin.
onnxruntime: "Type Error: Type 'tensor(...)' of input parameter is invalid".
Example: ScatterElements with bfloat16 data at opset 11, which came with version 13.
Fix: convert to an allowed type before the node and back after it, or raise the opset.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.rules.base import Findings, Rule, wrong_type


@Rule("SCT201", "element-type", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def element_type(scatter: ScatterNode) -> Findings:
    data = scatter.data.element_type if scatter.data else None
    for operand in (scatter.data, scatter.updates):
        if operand is None or operand.element_type is None or operand.element_type.kind == "boolean":
            continue
        if operand is scatter.updates and operand.element_type == data:
            continue
        yield from wrong_type(scatter, operand.port.role)
