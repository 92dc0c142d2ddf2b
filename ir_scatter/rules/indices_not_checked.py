"""Constant indices were not looked at because there are too many.

Why: silence would look like success.
Applies to: constant indices with more elements than --max-index-elements.
Runtimes: none is concerned.
Example: a constant of 100 million indices.
Fix: raise --max-index-elements.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import counted
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule(
    "SCT307", "indices-not-checked", Severity.NOTE, reads={Fact.INPUTS, Fact.CONSTANCY, Fact.UNREAD_INDICES}
)
def indices_not_checked(scatter: ScatterNode) -> Findings:
    if scatter.indices is None or scatter.has_constant_indices or not scatter.facts.skipped:
        return
    constant = scatter.facts.origin(scatter.indices.value)
    if constant is not None and constant in scatter.facts.skipped:
        message = (
            f"the values of {scatter.indices.port.name} were not checked: more than "
            f"{counted(scatter.facts.max_elements, 'element')}"
        )
        yield Finding(message, role=Role.INDICES)
