"""The file stores an input type that contradicts the producer's.

Why: one of the two is stale; whoever reads the wrong one draws wrong conclusions.

Applies to: every input of every operator. A Const's and a Parameter's own declaration counts as
right.

Runtimes: OpenVINO computes the types and ignores the stored ones.

Example: an input port I32 fed by a Const of i64.

Fix: save the model again with the runtime that reads it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Finding, Rule
from ir_scatter.rules.wording import operands

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    for operand in operands(site):
        stored, found = operand.stored_type, operand.element_type
        if stored is not None and found is not None and stored != found:
            shown, flows = site.spec.show_type(stored), site.spec.show_type(found)
            message = f"the stored type of {operand.port.name} is {shown}, but what flows in is {flows}"
            yield Finding(message, role=operand.port.role)


_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.STORED})

RULE = Rule("SCT504", "stored-input-type", Severity.WARNING, _check, reads=_READS)
