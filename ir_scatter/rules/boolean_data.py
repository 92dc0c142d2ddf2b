"""Data is boolean where the document says numeric.

Why: the text of this version promises nothing for it. A warning, as runtimes take it as meant.
Applies to: ScatterUpdate-3, ScatterElementsUpdate-3 and ScatterNDUpdate-3.
Runtimes: OpenVINO's CPU plugin computes it; the GPU plugin has no ScatterElementsUpdate on
boolean.
Example: ScatterNDUpdate-3 on a boolean mask.
Fix: use ScatterElementsUpdate-12 or ScatterNDUpdate-15, whose text allows boolean, or convert to
u8.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT214", "boolean-data", reads={Fact.OPERATOR, Fact.INPUTS, Fact.TYPES})
def boolean_data(scatter: ScatterNode) -> Findings:
    data = scatter.data
    if data is None or data.element_type is None or data.element_type.kind != "boolean":
        return
    if data.element_type.name not in data.port.element_types:
        yield Finding(f"{data.port.name} is boolean, expected a numeric type", role=Role.DATA)
