"""The reduction is not defined for the element type of data.

Why: there is no mean of booleans, no sum of strings and no greater of two complex numbers.

Applies to: operators with a reduction. On booleans sum is OR, prod is AND, sub is XOR; mean is
refused.

Runtimes: OpenVINO refuses mean on boolean; onnxruntime has no reductions of strings.

Example: ScatterElementsUpdate-12 with boolean data and reduction="mean".

Fix: convert data to a number type first, or choose the reduction that was meant (max is OR).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops.spec import Role
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    reduction = site.reduction
    if site.data is None or site.data.element_type is None or reduction is None:
        return
    if site.data.element_type.name in site.spec.reduction_excludes.get(reduction, ()):
        shown = site.spec.show_type(site.data.element_type)
        written = site.attribute("reduction")
        yield Finding(f"reduction is {written} on {shown} data, expected another type", role=Role.DATA)


_READS = frozenset({Fact.OPERATOR, Fact.ATTRIBUTES, Fact.INPUTS, Fact.TYPES})

RULE = Rule("SCT213", "reduction-type", Severity.ERROR, _check, reads=_READS)
