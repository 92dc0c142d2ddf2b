"""An attribute changes nothing because of what another one says.

Why: whoever wrote it expected an effect; without a reduction no initial value takes part in
anything.
Applies to: use_init_val = false with reduction none (ScatterElementsUpdate-12).
Runtimes: all ignore it.
Example: <data reduction="none" use_init_val="false"/>.
Fix: remove use_init_val, or name the reduction that was meant.
"""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops.spec import Reduction
from ir_scatter.rules.base import Finding, Findings, Rule

_NAME = "use_init_val"


@Rule("SCT108", "attribute-without-effect", Severity.NOTE, reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_without_effect(scatter: ScatterNode) -> Findings:
    if scatter.spec.attribute(_NAME) is None or scatter.spec.attribute("reduction") is None:
        return
    if scatter.attribute(_NAME) is False and scatter.reduction is Reduction.NONE:
        yield Finding("use_init_val is false, which changes nothing with reduction none")
