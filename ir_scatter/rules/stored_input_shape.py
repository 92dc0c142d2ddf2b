"""The file stores an input shape that contradicts the producer's.

Why: one of the two is stale; whoever reads the wrong one draws wrong conclusions.
Applies to: every input of every operator. A Const's and a Parameter's own declaration counts as
right.
Runtimes: OpenVINO and onnxruntime compute the shapes and ignore the stored ones.
Example: an input port [2] fed by a Const of shape [3].
Fix: save the model again with the runtime that reads it.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import agree, show
from ir_scatter.rules.base import OF_STORED, Finding, Findings, Rule


@Rule("SCT503", "stored-input-shape", Severity.WARNING, reads=OF_STORED, is_legality=False)
def stored_input_shape(scatter: ScatterNode) -> Findings:
    for operand in scatter.operands():
        stored = operand.stored.stored_shape
        if not agree(stored, operand.shape):
            message = (
                f"the stored shape of {operand.port.name} is {show(stored)}, "
                f"but what flows in is {show(operand.shape)}"
            )
            yield Finding(message, role=operand.port.role)
