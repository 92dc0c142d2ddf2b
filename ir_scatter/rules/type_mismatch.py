"""Data and updates have different element types.

Why: there is one type T for both and for the output; runtimes refuse the model.
Applies to: every operator.
Runtimes: OpenVINO: "Element types for input data and updates do not match". onnxruntime: "Type
parameter (T) bound to different types".
Example: data f32, updates f16.
Fix: convert updates to the type of data.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT202", "type-mismatch", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def type_mismatch(scatter: ScatterNode) -> Findings:
    data, updates = scatter.data, scatter.updates
    if data is None or updates is None or data.element_type is None or updates.element_type is None:
        return
    if data.element_type != updates.element_type:
        show = scatter.spec.show_type
        message = (
            f"{updates.port.name} is {show(updates.element_type)}, "
            f"expected {show(data.element_type)} like {data.port.name}"
        )
        yield Finding(message, role=Role.UPDATES)
