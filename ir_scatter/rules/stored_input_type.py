"""The file stores an input type that contradicts the producer's.

Why: one of the two is stale; whoever reads the wrong one draws wrong conclusions.
Applies to: every input of every operator. A Const's and a Parameter's own declaration counts as
right.
Runtimes: OpenVINO computes the types and ignores the stored ones.
Example: an input port I32 fed by a Const of i64.
Fix: save the model again with the runtime that reads it.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.base import OF_STORED, Finding, Findings, Rule


@Rule("SCT504", "stored-input-type", Severity.WARNING, reads=OF_STORED, is_legality=False)
def stored_input_type(scatter: ScatterNode) -> Findings:
    for operand in scatter.operands():
        stored, found = operand.stored.stored_type, operand.element_type
        if stored is not None and found is not None and stored != found:
            shown, flows = scatter.spec.show_type(stored), scatter.spec.show_type(found)
            message = f"the stored type of {operand.port.name} is {shown}, but what flows in is {flows}"
            yield Finding(message, role=operand.port.role)
