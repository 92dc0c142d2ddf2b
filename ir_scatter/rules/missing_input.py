"""A required input is missing.

Why: the runtime refuses the model, most with a message that names neither the input nor the node.
Applies to: every operator; optional inputs (write_indices of TensorScatter) may be left out.
Runtimes: OpenVINO: "node index is out of range" or "is inconsistent". onnxruntime: INVALID_GRAPH.
Example: a ScatterUpdate with data, indices and updates: expected the fourth input, axis.
Fix: connect the input; an exporter that forgot the axis meant axis 0 more often than not, but
look.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import counted
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT101", "missing-input", reads={Fact.OPERATOR, Fact.INPUTS})
def missing_input(scatter: ScatterNode) -> Findings:
    inputs = scatter.node.inputs
    for index, port in enumerate(scatter.spec.ports):
        if not port.is_optional and (index >= len(inputs) or not inputs[index].is_present):
            given = counted(len(inputs), "input")
            message = f"{port.name} is missing: {given}, expected {scatter.spec.input_names()}"
            yield Finding(message, role=port.role)
