"""There are more indices than positions they could name, and there is no reduction.

Why: some target must be named more than once, and then the order of writing is undefined.
Applies to: every operator with reduction none whose indices are not constant.
Runtimes: see SCT304.
Example: 7 indices of ScatterUpdate on a dimension of size 5.
Fix: name the reduction that was meant, or give fewer indices.
"""

from ir_scatter.analysis.conditions import index_count, position_count
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import LARGEST_DIM, counted
from ir_scatter.ops.spec import IndicesLimit, Reduction, Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule(
    "SCT306",
    "more-indices-than-positions",
    Severity.NOTE,
    reads={Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.SHAPES, Fact.CONSTANCY},
)
def more_indices_than_positions(scatter: ScatterNode) -> Findings:
    if scatter.reduction is not Reduction.NONE or scatter.has_constant_indices:
        return
    if scatter.spec.indices_limit is IndicesLimit.EVERYWHERE or not scatter.indices_shape:
        return
    count, positions = index_count(scatter), position_count(scatter)
    if count is not None and positions is not None and positions < count <= LARGEST_DIM:
        message = f"{count} indices for {counted(positions, 'position')}: some are named more than once"
        yield Finding(message, role=Role.INDICES)
