"""The reduction is not defined for the element type of data.

Why: there is no mean of booleans, no sum of strings and no greater of two complex numbers.
Applies to: operators with a reduction. On booleans sum is OR, prod is AND, sub is XOR; mean is
refused.
Runtimes: OpenVINO refuses mean on boolean; onnxruntime has no reductions of strings.
Example: ScatterElementsUpdate-12 with boolean data and reduction="mean".
Fix: convert data to a number type first, or choose the reduction that was meant (max is OR).
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule("SCT213", "reduction-type", reads={Fact.OPERATOR, Fact.ATTRIBUTES, Fact.INPUTS, Fact.TYPES})
def reduction_type(scatter: ScatterNode) -> Findings:
    reduction = scatter.reduction
    if scatter.data is None or scatter.data.element_type is None or reduction is None:
        return
    if scatter.data.element_type.name in scatter.spec.reduction_excludes.get(reduction, ()):
        shown = scatter.spec.show_type(scatter.data.element_type)
        written = scatter.attribute("reduction")
        yield Finding(f"reduction is {written} on {shown} data, expected another type", role=Role.DATA)
