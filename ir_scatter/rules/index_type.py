"""The element type of indices is none that the document allows.

Why: runtimes refuse the model; those that convert may cut large values.
Applies to: indices of every operator: any integer for ScatterUpdate and ScatterElementsUpdate,
i32 and i64 for ScatterNDUpdate, int32 and int64 for ScatterElements, int64 only for ScatterND and
TensorScatter.
Runtimes: onnxruntime refuses int32 indices of ScatterND; OpenVINO's frontend takes them.
Example: ScatterND with int32 indices.
Fix: convert the indices to i64.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Findings, Rule, wrong_type


@Rule("SCT204", "index-type", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def index_type(scatter: ScatterNode) -> Findings:
    yield from wrong_type(scatter, Role.INDICES)
